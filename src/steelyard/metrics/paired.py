"""Two judged tables on the same answers: how far every metric moved, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import cached_property

import msgspec
import numpy as np

from steelyard.core.comparison import Difference, Pair
from steelyard.metrics.decisions import SCORED, Decisions, Floats, Ints
from steelyard.metrics.registry import Measurement, Metric
from steelyard.metrics.view import Gathered, Heard, Settings, View
from steelyard.stats.bootstrap import generator, percentile_interval, resampled_cases
from steelyard.stats.clusters import Clusters
from steelyard.stats.grouping import ragged
from steelyard.stats.paired import mcnemar_mid_p, sign_flip, tango_interval
from steelyard.stats.power import paired_mde
from steelyard.stats.ranking import falling_order
from steelyard.stats.special import normal_quantile, t_cdf, t_quantile

ALIKE = "both say the same of every answer"
NO_SHARE = "how far one answer moves it is not known; --resamples draws an interval"
ONE_CASE = "needs at least two cases"
POWER = normal_quantile(0.975) + normal_quantile(0.8)
_ROUNDING = 1e-12


class Pairing(msgspec.Struct, frozen=True, eq=False):
    """Answers that two tables both have, in the order of the first.

    Attributes
    ----------
    ours, theirs : Decisions
    at, other : int arrays, shape (n,)
        Their rows: answer i is row ``at[i]`` of the one and ``other[i]`` of the other.
    """

    ours: Decisions
    theirs: Decisions
    at: Ints
    other: Ints

    def __len__(self) -> int:
        return len(self.at)

    def subset(self, kept: Ints) -> Pairing:
        """Some of the answers, by position."""
        return Pairing(self.ours, self.theirs, self.at[kept], self.other[kept])

    def scored(self) -> Pairing:
        """The answers both scored."""
        both = (self.ours.status[self.at] == SCORED) & (self.theirs.status[self.other] == SCORED)
        return self.subset(np.flatnonzero(both))


def view_of(
    table: Decisions, rows: Ints, settings: Settings, *, clusters: Ints | None = None, listening: bool = False
) -> View:
    """Any rows of a table as one slice.

    Parameters
    ----------
    table : Decisions
    rows : int array
        In any order, repeats allowed.
    settings : Settings
    clusters : int array, optional
        Cluster of each, in place of the table's own.
    listening : bool
    """
    confidence = table.confidence[rows]
    there = (table.status[rows] == SCORED) & ~np.isnan(confidence) & ~np.isnan(table.correct[rows])
    ranked = np.flatnonzero(there)
    ranked = ranked[falling_order(confidence[ranked])]
    return View(Gathered(table, rows, clusters), 0, len(rows), settings, ranked, listening=listening)


class Compared:
    """The differences of a pairing, one metric at a time.

    Parameters
    ----------
    pair : Pairing
        Of answers both scored.
    settings : Settings
        `resamples` above 0 draws intervals from so many resamples of the cases, all metrics on the same
        ones; else they come from what each answer does to each metric.
    """

    def __init__(self, pair: Pairing, settings: Settings) -> None:
        self.pair, self._settings = pair, settings
        quiet = msgspec.structs.replace(settings, intervals=False, resamples=0)
        self._quiet = quiet
        self._cluster = pair.ours.cluster[pair.at]
        self._ours = view_of(pair.ours, pair.at, quiet, listening=True)
        self._theirs = view_of(pair.theirs, pair.other, quiet, clusters=self._cluster, listening=True)

    @cached_property
    def clusters(self) -> Clusters:
        """Cases of the answers."""
        return Clusters(self._cluster)

    def difference(self, metric: Metric) -> Difference | None:
        """How far one metric moved; None where either side has no value."""
        ours, heard = _asked(metric, self._ours)
        theirs, other = _asked(metric, self._theirs)
        if ours is None or theirs is None:
            return None
        found = Difference(
            metric=metric.name,
            better=metric.better,
            definition=ours.definition,
            candidate=ours.value,
            baseline=theirs.value,
            value=ours.value - theirs.value,
            n=ours.n,
            cases=ours.cases,
        )
        if heard is None or other is None:
            return msgspec.structs.replace(found, no_interval=NO_SHARE)
        if heard.hits is not None and other.hits is not None:
            return self._of_rates(found, heard.hits, other.hits)
        return self._of_shares(found, heard, other, metric)

    def differences(self, metrics: Iterable[Metric]) -> list[Difference]:
        """The differences of every metric both sides have; intervals from resamples where asked for."""
        wanted = list(metrics)
        found = [self.difference(metric) for metric in wanted]
        if self._settings.resamples and len(self.clusters) > 1:
            drawn = self._drawn(
                [metric for metric, one in zip(wanted, found, strict=True) if one is not None]
            )
            found = [one and _with_draws(one, drawn[one.metric]) for one in found]
        return [one for one in found if one is not None]

    def _of_shares(self, found: Difference, ours: Heard, theirs: Heard, metric: Metric) -> Difference:
        sums, groups = self.clusters.sums(ours.share - theirs.share), len(self.clusters)
        if groups < 2:
            return msgspec.structs.replace(found, no_interval=ONE_CASE)
        widened = max(ours.inflation, theirs.inflation)
        se = math.sqrt(widened * groups / (groups - 1) * float((sums * sums).sum()))
        if se <= _ROUNDING:
            return msgspec.structs.replace(found, no_interval=ALIKE, p=1.0 if not found.value else None)
        t = t_quantile(0.975, groups - 1)
        reach = metric.high - metric.low
        low, high = found.value - t * se, found.value + t * se
        return msgspec.structs.replace(
            found,
            interval=(max(-reach, low), min(reach, high)),
            method="influence function, cluster-robust t",
            se=se,
            df=groups - 1,
            p=2.0 * t_cdf(-abs(found.value) / se, groups - 1),
            test="t",
            mde=POWER * se,
        )

    def _of_rates(self, found: Difference, ours: Floats, theirs: Floats) -> Difference:
        """Rates: only the answers that differ say anything."""
        moved = np.nan_to_num(ours - theirs)
        n, gains, losses = found.n, int((moved > 0).sum()), int((moved < 0).sum())
        groups = len(self.clusters)
        if groups < 2:
            return msgspec.structs.replace(found, gains=gains, losses=losses, no_interval=ONE_CASE)
        centred = np.where(np.isnan(ours), 0.0, moved - found.value) / n
        sums = self.clusters.sums(centred)
        se = math.sqrt(groups / (groups - 1) * float((sums * sums).sum()))
        plain = math.sqrt(float((centred * centred).sum()) * n / max(1, n - 1))
        deff = max(1.0, (se / plain) ** 2) if plain > 0 else n / found.cases
        alone = found.cases == n
        if alone or not gains + losses:
            interval, method = _tango(gains, losses, n / deff if alone else found.cases), "Tango score"
        else:
            half = t_quantile(0.975, groups - 1) * se
            interval = (max(-1.0, found.value - half), min(1.0, found.value + half))
            method = "cluster-robust t"
        p = mcnemar_mid_p(gains, losses) if alone else sign_flip(self.clusters.sums(moved))
        return msgspec.structs.replace(
            found,
            interval=interval,
            method=method,
            se=se,
            df=groups - 1,
            p=p,
            test="McNemar mid-p" if alone else "sign flip over cases",
            mde=paired_mde(n, max(gains + losses, 1) / n, deff=deff),
            gains=gains,
            losses=losses,
            deff=deff,
        )

    def _drawn(self, metrics: list[Metric]) -> dict[str, Floats]:
        """Differences of every metric on the same resamples of the cases."""
        order = np.argsort(self.clusters.compact, kind="stable")
        sizes = np.bincount(self.clusters.compact)
        starts = np.cumsum(sizes) - sizes
        resamples, settings = self._settings.resamples, self._settings
        found = {metric.name: np.full(resamples, np.nan) for metric in metrics}
        draws = resampled_cases(len(sizes), resamples, generator(settings.seed, "compare"))
        for at, cases in enumerate(draws):
            kept = order[ragged(starts[cases], sizes[cases])]
            # A case drawn twice is two cases.
            clusters = np.repeat(np.arange(len(cases)), sizes[cases])
            ours, theirs = (
                view_of(table, rows[kept], self._quiet, clusters=clusters)
                for table, rows in ((self.pair.ours, self.pair.at), (self.pair.theirs, self.pair.other))
            )
            for metric in metrics:
                here, there = metric.measure(ours), metric.measure(theirs)
                if here is not None and there is not None:
                    found[metric.name][at] = here.value - there.value
        return found


def _asked(metric: Metric, view: View) -> tuple[Measurement | None, Heard | None]:
    view.heard = None
    return metric.measure(view), view.heard


def _tango(gains: int, losses: int, n: float) -> Pair:
    return tango_interval(gains, losses, max(gains + losses, round(n)))


def _with_draws(found: Difference, draws: Floats) -> Difference:
    interval = percentile_interval(draws)
    if interval is None or interval[0] == interval[1]:
        return found
    return msgspec.structs.replace(
        found, interval=interval, method="shared case bootstrap, percentile", no_interval=None
    )


def slices_of(table: Decisions, rows: Ints, dimension: str) -> Iterator[tuple[str, Ints]]:
    """Values of a dimension among some rows of a table, and the positions of their rows.

    Parameters
    ----------
    table : Decisions
    rows : int array
        Ascending.
    dimension : str
        One of DIMENSIONS.

    Yields
    ------
    (str, int array)
        In name order; values none of the rows has are left out.
    """
    pairs, codes, values = table.dimension(dimension)
    if pairs is None:
        positions, codes = np.arange(len(rows)), codes[rows]
    else:
        where = np.full(len(table), -1, np.int64)
        where[rows] = np.arange(len(rows))
        kept = np.flatnonzero(where[pairs] >= 0)
        positions, codes = where[pairs[kept]], codes[kept]
    for code in sorted(np.unique(codes[codes >= 0]).tolist(), key=lambda code: values[code]):
        yield values[code], positions[codes == code]
