"""How a metric becomes a measurement: its value, its n and its interval."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from steelyard.metrics.decisions import Floats
from steelyard.metrics.ranked import Ranked
from steelyard.metrics.registry import Measurement
from steelyard.metrics.view import View
from steelyard.stats.bootstrap import bca_interval, bootstrap
from steelyard.stats.clusters import (
    Clusters,
    Spread,
    cluster_spread,
    influence_variance,
    mean_interval,
    rate_interval,
)
from steelyard.stats.nulls import Null
from steelyard.stats.ranking import chance_inflation, spread_over
from steelyard.stats.special import normal_quantile, t_quantile
from steelyard.stats.sums import exact_mean

Pair = tuple[float, float]
ONE_CASE = "needs at least two cases"
NOT_ASKED = "intervals were left out"
ROUNDING = 1e-12
"""A standard error that is only rounding."""
AGREED = "every answer says the same, so how far they spread cannot be seen"
Z975 = normal_quantile(0.975)


def mean_of(
    view: View,
    values: Floats,
    clusters: Clusters,
    *,
    low: float = 0.0,
    high: float = math.inf,
    details: dict[str, Any] | None = None,
    exact: bool = False,
    null: Null | None = None,
) -> Measurement | None:
    """Measurement of a mean of values from `low` to `high`; None without values.

    `exact` rounds the sum once, as published figures need.
    """
    n = len(values)
    if not n:
        return None
    value = exact_mean(values) if exact else float(values.mean())
    if view.listening:
        view.hear((values - value) / n, clusters)
    if not view.settings.intervals:
        return Measurement(value, n, len(clusters), no_interval=NOT_ASKED, null=null, details=details)
    spread = cluster_spread(values, clusters)
    interval = _clipped(mean_interval(spread), low, high) if spread.se > ROUNDING else None
    return Measurement(
        value,
        n,
        len(clusters),
        interval=interval,
        method="cluster-robust t" if interval else None,
        no_interval=None if interval else AGREED if len(clusters) > 1 else ONE_CASE,
        deff=spread.deff,
        null=null,
        details=details,
    )


def rate_of(
    view: View, hits: Floats, clusters: Clusters, *, details: dict[str, Any] | None = None
) -> Measurement | None:
    """Measurement of a rate; None without values."""
    n = len(hits)
    if not n:
        return None
    value = float(np.count_nonzero(hits)) / n
    if view.listening:
        view.hear((hits - value) / n, clusters, hits=hits)
    if not view.settings.intervals:
        return Measurement(value, n, len(clusters), no_interval=NOT_ASKED, details=details)
    return from_rate(value, cluster_spread(hits, clusters), details=details)


def from_rate(
    value: float, spread: Spread, *, details: dict[str, Any] | None = None, inflation: float = 1.0
) -> Measurement:
    """Measurement of a rate from its spread.

    `inflation` widens the interval by what a threshold chosen from the same answers adds to the
    variance.
    """
    widened = msgspec.structs.replace(spread, deff=spread.deff * inflation)
    return Measurement(
        value,
        spread.n,
        spread.clusters,
        interval=rate_interval(widened),
        method="Wilson on effective n",
        deff=spread.deff,
        details=details,
    )


def ratio_of(
    view: View,
    above: Floats,
    below: Floats,
    clusters: Clusters,
    *,
    details: dict[str, Any] | None = None,
) -> Measurement | None:
    """Measurement of ``1 - sum(above) / sum(below)``, a skill; None when there is nothing below."""
    total = float(below.sum())
    if not len(above) or total <= 0.0:
        return None
    ratio = float(above.sum()) / total
    influence = -(above - ratio * below) * (len(above) / total)
    return from_influence(view, 1.0 - ratio, influence, clusters, high=1.0, low=-math.inf, details=details)


def from_influence(
    view: View,
    value: float,
    influence: Floats,
    clusters: Clusters,
    *,
    low: float = 0.0,
    high: float = math.inf,
    details: dict[str, Any] | None = None,
    null: Null | None = None,
) -> Measurement:
    """Measurement with an interval from what each answer does to the value."""
    n, groups = len(influence), len(clusters)
    if view.listening:
        view.hear(influence / n, clusters)
    if not view.settings.intervals or groups < 2:
        why = ONE_CASE if view.settings.intervals else NOT_ASKED
        return Measurement(value, n, groups, no_interval=why, null=null, details=details)
    half = t_quantile(0.975, groups - 1) * math.sqrt(influence_variance(influence, clusters))
    if half <= ROUNDING:
        return Measurement(value, n, groups, no_interval=AGREED, null=null, details=details)
    return Measurement(
        value,
        n,
        groups,
        interval=_clipped((value - half, value + half), low, high),
        method="influence function, cluster-robust t",
        null=null,
        details=details,
    )


def ranked_of(
    view: View,
    name: str,
    value: float,
    levels: Callable[[], tuple[Floats, Floats]],
    statistic: Callable[[Floats, Floats], float | None],
    *,
    high: float = 1.0,
    root: bool = False,
    details: dict[str, Any] | None = None,
) -> Measurement:
    """Measurement of an area under a curve over ranked answers.

    Parameters
    ----------
    view : View
    name : str
        Of the metric; its bootstrap draws belong to it.
    value : float
    levels : callable
        Influence of a right and of a wrong answer of each level.
    statistic : callable
        The value from running counts of accepted answers and hits.
    high : float
        Upper end of the range.
    root : bool
        Interval on the square root, for risks that errors among the first answers move; else on the logit.
    """
    ranked = view.ranked
    assert ranked is not None
    n = len(ranked)
    if view.listening:
        hear_ranked(view, ranked, levels(), root=root)
    if not view.settings.intervals or ranked.cases < 2:
        why = ONE_CASE if view.settings.intervals else NOT_ASKED
        return Measurement(value, n, ranked.cases, no_interval=why, details=details)
    right, wrong = levels()
    influence = ranked.case_sums(spread_over(right, wrong, ranked.accepted, ranked.correct))
    if view.whole and view.settings.resamples:
        interval, method = _resampled(view, name, value, influence, statistic), "case bootstrap, BCa"
    else:
        variance = ranked.cases / (ranked.cases - 1) * float((influence * influence).sum()) / n**2
        if root:
            variance *= chance_inflation(right, wrong, ranked.accepted, ranked.hits)
        interval = area_interval(value, reach_of(variance, ranked.cases, n), high=high, root=root)
        method = f"influence function, {'square-root' if root else 'logit'} scale"
    return Measurement(
        value,
        n,
        ranked.cases,
        interval=interval,
        method=method if interval else None,
        no_interval=None if interval else "at the end of its range no answer can move it",
        details=details,
    )


def hear_ranked(view: View, ranked: Ranked, levels: tuple[Floats, Floats], *, root: bool) -> None:
    """Let a view know what each ranked answer does to an area; `root` as in `ranked_of`."""
    influence = spread_over(*levels, ranked.accepted, ranked.correct)
    inflation = chance_inflation(*levels, ranked.accepted, ranked.hits) if root else 1.0
    _, _, clusters = view.paired()
    view.hear(ranked.in_data_order(influence) / len(ranked), clusters, inflation)


def hear_gaps(view: View, residual: Floats, bins: Any, clusters: Clusters) -> None:
    """Let a view know what each answer does to a sum of absolute gaps of bins."""
    sums = np.bincount(bins, weights=residual)
    gaps = np.sign(sums)[bins] * residual
    view.hear((gaps - gaps.mean()) / len(gaps), clusters)


def reach_of(variance: float, cases: int, n: int) -> float:
    """Half the width of a 95 % interval of an area.

    As for rates, only clusters make the number of cases, not of answers, the limit.
    """
    return (Z975 if cases == n else t_quantile(0.975, cases - 1)) * math.sqrt(variance)


def area_interval(value: float, half: float, *, high: float = 1.0, root: bool = False) -> Pair | None:
    """Interval of an area in (0, high), symmetric in its logit or square root; None at the ends."""
    if root:
        if value <= 0.0:
            return None
        centre, reach = math.sqrt(value), half / (2.0 * math.sqrt(value))
        return max(0.0, centre - reach) ** 2, min(high, (centre + reach) ** 2)
    value, half = value / high, half / high
    if not 0.0 < value < 1.0:
        return None
    centre, reach = math.log(value / (1.0 - value)), half / (value * (1.0 - value))
    # Beyond 700 the exponential would overflow, and nothing is left of the scale.
    low, top = (1.0 / (1.0 + math.exp(-max(-700.0, min(700.0, centre + s * reach)))) for s in (-1, 1))
    return low * high, top * high


def _resampled(
    view: View,
    name: str,
    value: float,
    influence: Floats,
    statistic: Callable[[Floats, Floats], float | None],
) -> Pair | None:
    ranked = view.ranked
    assert ranked is not None
    found = weighted_statistic(ranked, statistic)
    resamples, seed = view.settings.resamples, view.settings.seed
    draws = bootstrap(found, ranked.cases, resamples=resamples, seed=seed, name=name)
    return bca_interval(draws[:, 0], value, influence)


def weighted_statistic(
    ranked: Ranked, statistic: Callable[[Floats, Floats], float | None]
) -> Callable[[Floats], tuple[float]]:
    """The statistic as a function of how often each case counts."""
    ends = ranked.accepted.astype(np.int64) - 1

    def found(weights: Floats) -> tuple[float]:
        counted = weights[ranked.codes]
        accepted, hits = np.cumsum(counted)[ends], np.cumsum(counted * ranked.correct)[ends]
        there = np.flatnonzero(np.diff(accepted, prepend=0.0))
        value = statistic(accepted[there], hits[there]) if len(there) else None
        return (math.nan if value is None else value,)

    return found


def bare(value: float, n: int, cases: int, why: str, **rest: Any) -> Measurement:
    """Measurement without an interval, saying why."""
    return Measurement(value, n, cases, no_interval=why, **rest)


def _clipped(interval: Pair | None, low: float, high: float) -> Pair | None:
    return interval and (max(low, interval[0]), min(high, interval[1]))
