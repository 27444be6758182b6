"""One slice of the judged table, as metrics see it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from steelyard.metrics.decisions import Decisions, Floats, Ints
from steelyard.metrics.derived import BIN, column, defined, has_kind
from steelyard.metrics.ranked import Ranked
from steelyard.stats.bins import bin_index, within_bins_deff
from steelyard.stats.clusters import Clusters

Made = TypeVar("Made")


class Settings(msgspec.Struct, frozen=True):
    """Choices of a judge.

    Attributes
    ----------
    bins : int
        Of the calibration error; part of its definition.
    score_within : tuple of float
        Tolerances, in levels, that get a metric each.
    deep : tuple of str
        Dimensions whose slices get the dear metrics as well.
    intervals : bool
        False leaves intervals out.
    resamples : int
        Above 0: overall ranked metrics get bootstrap intervals from so many resamples of the cases.
    seed : int
        Of everything drawn at random.
    lexical_rows : int
        Up to so many rows, the lexical engine is asked too, as a baseline.
    """

    bins: int = 15
    score_within: tuple[float, ...] = ()
    deep: tuple[str, ...] = ()
    intervals: bool = True
    resamples: int = 0
    seed: int = 0
    lexical_rows: int = 2000


class Gathered:
    """A table re-ordered by `index`, each column gathered when first wanted.

    `clusters` takes the place of the table's own, as when it stands beside another table.
    """

    def __init__(self, table: Decisions, index: Ints | None, clusters: Ints | None = None) -> None:
        self.table = table
        self.index = index
        self._columns: dict[str, Any] = {} if clusters is None else {"cluster": clusters}

    def column(self, name: str) -> Any:
        """The column in the new order."""
        if name not in self._columns:
            found = column(self.table, name)
            self._columns[name] = found if self.index is None else found[self.index]
        return self._columns[name]


class Heard(msgspec.Struct, frozen=True, eq=False):
    """What each row of a view does to a metric.

    Attributes
    ----------
    share : array, shape (rows,)
        How far the row moves the value; sums to about zero.
    inflation : float
        By what a moving cut or ranking widens the variance.
    hits : array or None
        Of a rate: 1, 0, or NaN where a row does not count.
    """

    share: Floats
    inflation: float
    hits: Floats | None


class View:
    """One slice: consecutive rows of a gathered table.

    Parameters
    ----------
    gathered : Gathered
    start, stop : int
        The rows of this slice.
    settings : Settings
    order : int array
        Positions inside the slice of the answers with confidence and correctness, most confident
        first.
    whole : bool
        Whether this is the whole table.
    listening : bool
        Whether metrics are to say, in `heard`, what each row does to their value.
    """

    def __init__(
        self,
        gathered: Gathered,
        start: int,
        stop: int,
        settings: Settings,
        order: Ints,
        whole: bool = False,
        listening: bool = False,
    ) -> None:
        self.gathered, self.settings, self.whole = gathered, settings, whole
        self.listening = listening
        self.heard: Heard | None = None
        self._start, self._stop, self._order = start, stop, order
        self._kept: list[tuple[NDArray[np.bool_], Clusters]] = []
        self._memo: dict[str, Any] = {}

    def __len__(self) -> int:
        return self._stop - self._start

    def column(self, name: str) -> Any:
        """A column of the table on this slice, rows in dataset order."""
        return self.gathered.column(name)[self._start : self._stop]

    def clusters(self, kept: NDArray[np.bool_] | None) -> Clusters:
        """Clusters of the rows in a mask, or of all; worked out once for each mask."""
        if kept is None:
            return self.memo("clusters", lambda: Clusters(self.column("cluster")))
        for known, clusters in self._kept:
            if np.array_equal(known, kept):
                return clusters
        found = self.clusters(None) if kept.all() else Clusters(self.column("cluster")[kept])
        self._kept.append((kept, found))
        return found

    def hear(
        self, share: Floats, clusters: Clusters, inflation: float = 1.0, hits: Floats | None = None
    ) -> None:
        """Take in what each answer of `clusters` does to a metric, and the hits of a rate."""
        kept = next((kept for kept, known in self._kept if known is clusters), slice(None))
        full = np.zeros(len(self))
        full[kept] = share
        if hits is not None:
            found = np.full(len(self), np.nan)
            found[kept] = hits
            hits = found
        self.heard = Heard(full, inflation, hits)

    @cached_property
    def paired_rows(self) -> NDArray[np.bool_] | None:
        """Mask of the answers that have confidence and correctness; None when all have."""
        if len(self._order) == len(self):
            return None
        kept = np.zeros(len(self), bool)
        kept[self._order] = True
        return kept

    def _paired(self, name: str) -> Any:
        values = self.column(name)
        return values if self.paired_rows is None else values[self.paired_rows]

    def paired(self) -> tuple[Floats, Floats, Clusters]:
        """Confidence, correctness and cluster of the answers that have both of the first."""
        return (
            self.memo("confidence", lambda: self._paired("confidence")),
            self.memo("correct", lambda: self._paired("correct")),
            self.clusters(self.paired_rows),
        )

    @cached_property
    def ranked(self) -> Ranked | None:
        """The paired answers in order of falling confidence; None when there is none."""
        order, kept = self._order, self.paired_rows
        if not len(order):
            return None
        if kept is not None:
            order = (np.cumsum(kept) - 1)[order]
        confidence, correct, clusters = self.paired()
        return Ranked(confidence[order], correct[order], order, clusters)

    @cached_property
    def bins(self) -> NDArray[np.int16]:
        """Equal-width bin of each paired answer."""
        found: NDArray[np.int16] = self._paired(self.bin_name("confidence"))
        return found

    def bin_name(self, name: str) -> str:
        """Name of the column that holds the equal-width bins of another."""
        return f"{BIN}{self.settings.bins}:{name}"

    @cached_property
    def bins_deff(self) -> float:
        """Design effect of residuals inside equal-width bins; 1 where each answer is its own case."""
        return self.residual_deff(self.settings.bins)

    def residual_deff(self, bins: int) -> float:
        """Design effect of residuals inside so many equal-width bins."""
        confidence, correct, clusters = self.paired()
        if clusters.alone:
            return 1.0
        own = bins == self.settings.bins
        found = self.bins if own else bin_index(confidence, bins)
        return within_bins_deff(correct - confidence, clusters.compact, found, bins)

    def memo(self, key: str, make: Callable[[], Made]) -> Made:
        """What `make` gives, kept under `key` for the metrics that share it."""
        if key not in self._memo:
            self._memo[key] = make()
        found: Made = self._memo[key]
        return found

    def defined(self, name: str, kind: int | None = None) -> tuple[Floats, Clusters]:
        """Values of a column where it is defined, for one question type or all, and their clusters."""
        kept = self.where(name, kind=kind)
        if kept is None:
            return np.empty(0), self.clusters(None)
        values = self.column(name)
        if kind is None and defined(self.gathered.table, name):
            return values, self.clusters(None)
        return values[kept], self.clusters(kept)

    def where(self, *names: str, kind: int | None = None) -> NDArray[np.bool_] | None:
        """Mask of the rows in which every one of these columns has a value; None when there is none."""
        return self.memo(f"where:{names}{kind}", lambda: self._where(names, kind))

    def _where(self, names: tuple[str, ...], kind: int | None) -> NDArray[np.bool_] | None:
        table = self.gathered.table
        there = [defined(table, name) for name in names]
        if False in there or (kind is not None and not has_kind(table, kind)):
            return None
        masks = [
            self.memo(f"there:{name}", partial(self._there, name))
            for name, all_there in zip(names, there, strict=True)
            if not all_there
        ]
        if kind is not None:
            masks.append(self.memo(f"kind:{kind}", lambda: self.column("kind") == kind))
        kept = np.logical_and.reduce(masks) if masks else np.ones(len(self), bool)
        return kept if kept.any() else None

    def _there(self, name: str) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = ~np.isnan(self.column(name))
        return found
