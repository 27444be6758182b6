"""Metrics by name. Adding one is a function with a decorator; the rest follows from it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from steelyard.metrics.decisions import Decisions, Floats, Ints
from steelyard.stats.clusters import cluster_spread, count_clusters, mean_interval, rate_interval


class Settings(msgspec.Struct, frozen=True):
    """Choices of a judge that move numbers; part of every definition id they touch."""

    bins: int = 15
    score_within: tuple[float, ...] = ()


class Measurement(msgspec.Struct, frozen=True, omit_defaults=True):
    """A metric's value on one slice, with everything needed to trust it or not.

    Attributes
    ----------
    value : float
    n, cases : int
        Answers the value is over, and the distinct clusters they came from.
    interval : (float, float) or None
        95 %; `method` names how, and `no_interval` says why there is none.
    better : str
        ``higher``, ``lower`` or ``neither``.
    definition : str
        Id under which two numbers may be compared, such as ``ece/15-equal-width/1``.
    details : dict
        Further facts, such as the answers a coverage cut accepted.
    """

    value: float
    n: int
    cases: int
    better: str
    definition: str
    interval: tuple[float, float] | None = None
    method: str | None = None
    no_interval: str | None = None
    details: dict[str, Any] | None = None


class Gathered:
    """A table re-ordered by `index`, each column gathered when first wanted."""

    def __init__(self, table: Decisions, index: Ints | None) -> None:
        self.table = table
        self._index = index
        self._columns: dict[str, Any] = {}

    def column(self, name: str) -> Any:
        """The column in the new order."""
        if name not in self._columns:
            column = getattr(self.table, name)
            self._columns[name] = column if self._index is None else column[self._index]
        return self._columns[name]


class Ranked(msgspec.Struct, frozen=True, eq=False):
    """The answers of a slice that have confidence and correctness, most confident first.

    `accepted` and `hits` are running counts at the end of each level of equal confidence.
    """

    confidence: Floats
    accepted: Floats
    hits: Floats


class View:
    """One slice: consecutive rows of a gathered table.

    Parameters
    ----------
    gathered : Gathered
    start, stop : int
        The rows of this slice.
    settings : Settings
    ranked : Ranked or None
        None when no answer has both confidence and correctness.
    """

    __slots__ = ("_gathered", "_paired", "_start", "_stop", "ranked", "settings")

    def __init__(
        self, gathered: Gathered, start: int, stop: int, settings: Settings, ranked: Ranked | None
    ) -> None:
        self._gathered, self._start, self._stop = gathered, start, stop
        self.settings = settings
        self.ranked = ranked
        self._paired: tuple[Floats, Floats, Ints] | None = None

    def __len__(self) -> int:
        return self._stop - self._start

    def column(self, name: str) -> Any:
        """A column of the table on this slice, rows in dataset order."""
        return self._gathered.column(name)[self._start : self._stop]

    def paired(self) -> tuple[Floats, Floats, Ints]:
        """Confidence, correctness and cluster of the answers that have both of the first."""
        if self._paired is None:
            confidence, correct = self.column("confidence"), self.column("correct")
            kept = ~np.isnan(confidence + correct)
            self._paired = (confidence[kept], correct[kept], self.column("cluster")[kept])
        return self._paired

    def defined(self, name: str, kind: int | None = None) -> tuple[Floats, Ints]:
        """Values of a column where it is defined, for one question type or all, and their clusters."""
        values = self.column(name)
        keep = ~np.isnan(values)
        if kind is not None:
            keep &= self.column("kind") == kind
        return values[keep], self.column("cluster")[keep]


Compute = Callable[[View], Measurement | None]


class Metric(msgspec.Struct, frozen=True):
    """A registered metric.

    `shared` metrics are the peer's own and go into `overall` and `slices` under its names; the rest
    appear among the measurements only.
    """

    name: str
    better: str
    compute: Compute
    shared: bool
    summary: str


METRICS: dict[str, Metric] = {}


def metric(name: str, *, better: str, shared: bool = False) -> Callable[[Compute], Compute]:
    """Register a metric; its docstring's first line becomes its summary.

    Raises
    ------
    ValueError
        The name is taken.
    """

    def register(compute: Compute) -> Compute:
        if name in METRICS:
            raise ValueError(f"metric {name} is registered twice")
        METRICS[name] = Metric(name, better, compute, shared, (compute.__doc__ or "").strip().split("\n")[0])
        return compute

    return register


def exact_mean(values: Floats) -> float:
    """Mean whose sum is rounded once, so that row order does not show."""
    return math.fsum(values.tolist()) / len(values)


def mean_of(
    values: Floats,
    clusters: Ints,
    *,
    better: str,
    definition: str,
    upper: float = math.inf,
    details: dict[str, Any] | None = None,
    exact: bool = False,
) -> Measurement | None:
    """Measurement of a mean of values from 0 to `upper`; None without values.

    `exact` rounds the sum once, as published figures need; it costs a pass in Python.
    """
    if not len(values):
        return None
    spread = cluster_spread(values, clusters)
    interval = mean_interval(spread)
    if interval:
        interval = (max(0.0, interval[0]), min(upper, interval[1]))
    return Measurement(
        exact_mean(values) if exact else float(np.mean(values)),
        spread.n,
        spread.clusters,
        better,
        definition,
        interval,
        "cluster-robust t" if interval else None,
        None if interval else "needs at least two cases",
        details,
    )


def rate_of(
    hits: Floats, clusters: Ints, *, better: str, definition: str, details: dict[str, Any] | None = None
) -> Measurement | None:
    """Measurement of a rate; None without values."""
    if not len(hits):
        return None
    spread = cluster_spread(hits, clusters)
    return Measurement(
        float(np.count_nonzero(hits)) / len(hits),
        spread.n,
        spread.clusters,
        better,
        definition,
        rate_interval(spread),
        "Wilson on effective n",
        None,
        details,
    )


def plain_value(
    value: float,
    clusters: Ints,
    why: str,
    *,
    better: str,
    definition: str,
    details: dict[str, Any] | None = None,
) -> Measurement:
    """Measurement without an interval, saying why."""
    return Measurement(
        value, len(clusters), count_clusters(clusters), better, definition, no_interval=why, details=details
    )
