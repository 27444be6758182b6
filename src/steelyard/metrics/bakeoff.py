"""Which measure of confidence to trust: all that the answers offer, side by side."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from steelyard.metrics.decisions import SCORED, Decisions, Floats, Ints
from steelyard.metrics.derived import MEASURES, column
from steelyard.metrics.estimates import area_interval, reach_of
from steelyard.stats.bins import bin_index, binned_null, expected_calibration_error, within_bins_deff
from steelyard.stats.clusters import Clusters, influence_variance
from steelyard.stats.ranking import (
    area_under_risk_coverage,
    aurc_influence,
    auroc,
    auroc_influence,
    chance_inflation,
    falling_order,
    ranked_levels,
    spread_over,
)
from steelyard.stats.special import t_quantile

USED = "used"
"""Name of the confidence column itself in the comparison."""
Pair = tuple[float, float]


class Score(msgspec.Struct, frozen=True):
    """One number of a measure, and how far it is from that of the confidence in use.

    Attributes
    ----------
    value : float
    interval : (float, float) or None
        95 %; None for a calibration error, which is biased upwards.
    difference, difference_interval
        Value less that of the confidence in use, on the same answers, cases kept together.
    null : float or None
        What perfect calibration would read.
    """

    value: float
    interval: Pair | None = None
    difference: float | None = None
    difference_interval: Pair | None = None
    null: float | None = None


class Contender(msgspec.Struct, frozen=True):
    """A measure of confidence and how well it does.

    `auroc` is None when all answers are right, or all wrong.
    """

    measure: str
    n: int
    cases: int
    auroc: Score | None
    aurc: Score
    ece: Score


class BakeOff(msgspec.Struct, frozen=True):
    """Contenders overall and by question; `left_out` counts answers that lack some measure."""

    overall: list[Contender]
    questions: dict[str, list[Contender]]
    left_out: int


def bake_off(table: Decisions, bins: int = 15) -> BakeOff:
    """Compare every confidence measure that choice and yes/no answers offer.

    Parameters
    ----------
    table : Decisions
    bins : int
        Of the calibration error.

    Returns
    -------
    BakeOff
        The confidence in use comes first. Measures are compared on the answers that have them all; one
        no answer of a question has is absent there.
    """
    rows = np.flatnonzero((table.status == SCORED) & ~np.isnan(table.confidence) & ~np.isnan(table.correct))
    overall, kept = _contenders(table, rows, bins)
    questions = {}
    for code, name in enumerate(table.names.qids):
        own = rows[table.qid[rows] == code]
        if len(own):
            questions[name] = _contenders(table, own, bins)[0]
    return BakeOff(overall, questions, len(rows) - kept)


class _Judged(msgspec.Struct, frozen=True, eq=False):
    """Values of one measure, and the influence of each answer on them, in dataset order."""

    auroc: float | None
    auroc_influence: Floats
    aurc: float
    aurc_influence: Floats
    inflation: float
    ece: float
    gaps: Floats
    null: float


def _contenders(table: Decisions, rows: Ints, bins: int) -> tuple[list[Contender], int]:
    columns = {USED: table.confidence[rows]} | {name: column(table, name)[rows] for name in MEASURES}
    offered = {name: values for name, values in columns.items() if not np.isnan(values).all()}
    if not offered:
        return [], 0
    common = ~np.isnan(np.sum(list(offered.values()), axis=0))
    rows = rows[common]
    if not len(rows):
        return [], 0
    correct, clusters = table.correct[rows], Clusters(table.cluster[rows])
    judged: dict[str, _Judged] = {}
    seen: list[tuple[Floats, _Judged]] = []
    for name, values in offered.items():
        own = values[common]
        # The confidence in use is one of the measures more often than not.
        known = next((found for other, found in seen if np.array_equal(other, own)), None)
        judged[name] = known or _judge(own, correct, clusters, bins)
        seen.append((own, judged[name]))
    used = judged[USED]
    return [_compared(name, found, used, clusters) for name, found in judged.items()], len(rows)


def _judge(confidence: Floats, correct: Floats, clusters: Clusters, bins: int) -> _Judged:
    order = falling_order(confidence)
    accepted, hits = ranked_levels(confidence[order], correct[order])

    def by_row(right: Floats, wrong: Floats) -> Floats:
        found = np.empty(len(order))
        found[order] = spread_over(right, wrong, accepted, correct[order])
        return found

    area = auroc(accepted, hits)
    risk = area_under_risk_coverage(accepted, hits)
    found = bin_index(confidence, bins)
    residual = correct - confidence
    sums = np.bincount(np.maximum(found, 0), weights=residual, minlength=bins)
    deff = 1.0 if clusters.alone else within_bins_deff(residual, clusters.compact, found, bins)
    nothing = np.zeros(len(order))
    levels = aurc_influence(accepted, hits, risk)
    return _Judged(
        area,
        nothing if area is None else by_row(*auroc_influence(accepted, hits, area)),
        risk,
        by_row(*levels),
        chance_inflation(*levels, accepted, hits),
        expected_calibration_error(confidence, correct, bins, found),
        np.sign(sums)[found] * residual,
        binned_null(confidence, bins, found, 0.0, deff).expectation,
    )


def _compared(name: str, own: _Judged, used: _Judged, clusters: Clusters) -> Contender:
    area = None
    if own.auroc is not None and used.auroc is not None:
        area = _score(name, (own.auroc, own.auroc_influence), (used.auroc, used.auroc_influence), clusters)
    risk = _score(
        name,
        (own.aurc, own.aurc_influence),
        (used.aurc, used.aurc_influence),
        clusters,
        inflations=(own.inflation, used.inflation),
    )
    ece = Score(own.ece, null=own.null)
    if name != USED:
        gaps, moved = own.gaps - used.gaps, own.ece - used.ece
        ece = Score(own.ece, None, moved, _around(moved, gaps - gaps.mean(), clusters), own.null)
    return Contender(name, len(own.gaps), len(clusters), area, risk, ece)


Found = tuple[float, Floats]


def _score(name: str, own: Found, used: Found, clusters: Clusters, inflations: Pair | None = None) -> Score:
    """A value and its influence, beside those of the confidence in use; risks have inflations."""
    widened, wider = (inflations[0], max(inflations)) if inflations else (1.0, 1.0)
    interval = None
    if len(clusters) > 1:
        variance = widened * influence_variance(own[1], clusters)
        half = reach_of(variance, len(clusters), len(own[1]))
        interval = area_interval(own[0], half, root=inflations is not None)
    if name == USED:
        return Score(own[0], interval)
    moved = own[0] - used[0]
    return Score(own[0], interval, moved, _around(moved, own[1] - used[1], clusters, wider))


def _around(value: float, influence: Floats, clusters: Clusters, inflation: float = 1.0) -> Pair | None:
    if len(clusters) < 2:
        return None
    variance = inflation * influence_variance(influence, clusters)
    half = t_quantile(0.975, len(clusters) - 1) * math.sqrt(variance)
    return value - half, value + half


class Steps(msgspec.Struct, frozen=True):
    """How finely confidences are told apart.

    Attributes
    ----------
    n : int
        Confidences.
    distinct : int
        Different values among them.
    decimals : int or None
        Fewest decimals that write all of them; None where more than four are needed, or there are none.
    """

    n: int
    distinct: int
    decimals: int | None


def confidence_steps(table: Decisions) -> Steps:
    """How finely the confidences of the scored answers are told apart."""
    values = table.confidence[np.isfinite(table.confidence)]
    distinct = np.unique(values)
    decimals = (
        places
        for places in range(5)
        if np.all(np.abs(distinct * 10.0**places - np.rint(distinct * 10.0**places)) < 1e-9)
    )
    return Steps(len(values), len(distinct), next(decimals, None) if len(values) else None)
