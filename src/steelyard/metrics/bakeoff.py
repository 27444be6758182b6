"""Which measure of confidence to trust: all that the answers offer, side by side."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from steelyard.metrics.decisions import SCORED, Decisions, Floats, Ints
from steelyard.metrics.derived import MEASURES, column
from steelyard.metrics.estimates import on_logit
from steelyard.stats.bins import bin_index, bin_spread, expected_calibration_error, within_bins_deff
from steelyard.stats.clusters import Clusters, influence_variance
from steelyard.stats.nulls import half_normal_null
from steelyard.stats.ranking import (
    area_under_risk_coverage,
    aurc_influence,
    auroc,
    auroc_influence,
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
    judged = {name: _judge(values[common], correct, clusters, bins) for name, values in offered.items()}
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
    spread = bin_spread(confidence, bins, found) * math.sqrt(deff) / len(order)
    nothing = np.zeros(len(order))
    return _Judged(
        area,
        nothing if area is None else by_row(*auroc_influence(accepted, hits, area)),
        risk,
        by_row(*aurc_influence(accepted, hits, risk)),
        expected_calibration_error(confidence, correct, bins, found),
        np.sign(sums)[found] * residual,
        half_normal_null(spread, 0.0).expectation,
    )


def _compared(name: str, own: _Judged, used: _Judged, clusters: Clusters) -> Contender:
    n, cases = len(own.gaps), len(clusters)

    def score(value: float, influence: Floats, other: float, others: Floats) -> Score:
        half = _half(influence, clusters)
        interval = None if half is None else on_logit(value, half)
        if name == USED:
            return Score(value, interval)
        return Score(value, interval, value - other, _around(value - other, influence - others, clusters))

    area = None
    if own.auroc is not None and used.auroc is not None:
        area = score(own.auroc, own.auroc_influence, used.auroc, used.auroc_influence)
    gaps = own.gaps - used.gaps
    moved = own.ece - used.ece
    ece = Score(own.ece, null=own.null)
    if name != USED:
        ece = Score(own.ece, None, moved, _around(moved, gaps - gaps.mean(), clusters), own.null)
    return Contender(
        name, n, cases, area, score(own.aurc, own.aurc_influence, used.aurc, used.aurc_influence), ece
    )


def _half(influence: Floats, clusters: Clusters) -> float | None:
    if len(clusters) < 2:
        return None
    return t_quantile(0.975, len(clusters) - 1) * math.sqrt(influence_variance(influence, clusters))


def _around(value: float, influence: Floats, clusters: Clusters) -> Pair | None:
    half = _half(influence, clusters)
    return None if half is None else (value - half, value + half)
