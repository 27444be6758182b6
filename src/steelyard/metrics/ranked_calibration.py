"""Calibration of ranked answers: equal-mass bins, and no bins at all."""

from __future__ import annotations

import math
from functools import cached_property, partial

import numpy as np

from steelyard.metrics.calibration import BIASED
from steelyard.metrics.decisions import Floats, Ints
from steelyard.metrics.estimates import NOT_ASKED, ROUNDING, bare
from steelyard.metrics.registry import UNBOUNDED, Measurement, metric
from steelyard.metrics.view import View
from steelyard.stats.bins import (
    binned,
    debiased_square,
    equal_mass_index,
    square_influence,
    within_bins_deff,
)
from steelyard.stats.clusters import cluster_spread
from steelyard.stats.cumulative import (
    MAD_MEAN,
    MAD_Q95,
    RANGE_MEAN,
    RANGE_Q95,
    largest_deviation,
    range_survival,
    residual_walk,
    sup_survival,
    walk_range,
)
from steelyard.stats.nulls import Null, chi_square_null
from steelyard.stats.special import normal_cdf, t_quantile

MASS_BINS = 15
_NO_CHANCE = "needs two cases, and both right and wrong in a bin"
_TEST = "a test statistic: its p says how far from calibrated it is"


class _Mass:
    """Sums over equal-mass bins of the ranked answers, where each answer is, and the design effect."""

    def __init__(self, view: View) -> None:
        ranked = view.ranked
        assert ranked is not None
        found = equal_mass_index(ranked.accepted, MASS_BINS)
        self.table = binned(found, ranked.sizes, ranked.level, ranked.level_hits, MASS_BINS)
        filled = np.cumsum(np.bincount(found, minlength=MASS_BINS) > 0) - 1
        self._ranked, self._level_bin = ranked, filled[found]
        self.residual = ranked.correct - ranked.confidence

    @cached_property
    def each(self) -> Ints:
        """Row of the table each ranked answer is in."""
        return np.repeat(self._level_bin, self._ranked.sizes.astype(np.int64))

    @cached_property
    def deff(self) -> float:
        """Design effect inside the bins."""
        if self._ranked.alone:
            return 1.0
        return within_bins_deff(self.residual, self._ranked.codes, self.each, len(self.table.n))


@metric("ece_adaptive", better="lower", definition="ece_adaptive/15-equal-mass/1")
def ece_adaptive(view: View) -> Measurement | None:
    """Calibration error over 15 bins of equal mass, answers of equal confidence kept together.

    Formula: as ece, bin edges at quantiles of the confidence.
    Needs: confidence, and a right and a wrong.
    Beware: biased upwards like ece.
    Source: Nixon et al. 2019 (arXiv 1904.01685).
    """
    ranked = view.ranked
    if ranked is None:
        return None
    mass = view.memo("mass", partial(_Mass, view))
    null = mass.table.null(mass.deff) if view.settings.intervals else None
    return bare(mass.table.error(), len(ranked), ranked.cases, BIASED, null=null)


@metric("ece_debiased_rms", better="lower", definition="ece_debiased_rms/15-equal-mass-cases/1", low=-1.0)
def ece_debiased_rms(view: View) -> Measurement | None:
    """Root mean square calibration error with the bias taken out; its square may be negative.

    Formula: sign(D) sqrt|D|, D = sum n_b/n (gap^2 - deff y (1 - y) / (n_b - 1)), 15 equal-mass bins.
    Needs: confidence, and a right and a wrong.
    Beware: D is unbiased, its root is not; below zero means no sign of miscalibration.
    Source: Kumar, Liang and Ma 2019 (arXiv 1909.10155); Ferro and Fricker 2012.
    """
    ranked = view.ranked
    if ranked is None:
        return None
    mass = view.memo("mass", partial(_Mass, view))
    n, table = len(ranked), mass.table
    square, chance = debiased_square(table, mass.deff)
    if not view.settings.intervals or not chance or ranked.cases < 2:
        why = _NO_CHANCE if view.settings.intervals else NOT_ASKED
        return bare(_root(square), n, ranked.cases, why)
    null = chi_square_null(table.spread * mass.deff / (n * table.n), square)
    sums = ranked.case_sums(square_influence(table, mass.each, mass.residual))
    moved = ranked.cases / (ranked.cases - 1) * float((sums * sums).sum()) / n**2
    plain = float((table.n * table.gap**2).sum()) / n
    slope, z = moved / plain if plain else 0.0, t_quantile(0.975, ranked.cases - 1)
    low, high = _score_bounds(square, slope, chance, z)
    return Measurement(
        _root(square),
        n,
        ranked.cases,
        interval=(max(-1.0, _root(low)), min(1.0, _root(high))),
        method="influence function and chance, score interval of the square",
        null=Null(0.0, _root(null.q95), null.p, _root(square), null.method),
        details={"square": square},
    )


def _score_bounds(square: float, slope: float, chance: float, z: float) -> tuple[float, float]:
    """Squares d that the one found is within z standard errors of, ``sqrt(slope d + chance^2)`` each."""
    centre = square + 0.5 * z * z * slope
    half = z * math.sqrt(max(0.0, slope * square + chance**2 + 0.25 * (z * slope) ** 2))
    return min(square, centre - half), max(square, centre + half)


def _root(square: float) -> float:
    return math.copysign(math.sqrt(abs(square)), square)


def _walk(view: View) -> tuple[Floats, float]:
    """The walk of residuals, and its spread at the end under perfect calibration."""
    ranked = view.ranked
    assert ranked is not None
    walk = residual_walk(ranked.confidence, ranked.correct - ranked.confidence)
    spread = float((ranked.sizes * ranked.level * (1.0 - ranked.level)).sum())
    return walk, math.sqrt(max(0.0, spread) * _residual_deff(view)) / len(ranked)


def _residual_deff(view: View) -> float:
    confidence, correct, clusters = view.paired()
    if clusters.alone or not view.settings.intervals:
        return 1.0
    return view.memo("residual_deff", lambda: cluster_spread(correct - confidence, clusters).deff)


@metric("ecce_mad", better="lower", definition="ecce_mad/1")
def ecce_mad(view: View) -> Measurement | None:
    """Largest cumulative residual in order of confidence: calibration without bins.

    Formula: max over j of |(1/n) sum of the first j residuals|, at the ends of tie groups.
    Needs: confidence, and a right and a wrong.
    Beware: a calibrated model reads about 1.25 times its standard error, not zero.
    Source: Arrieta-Ibarra et al. 2022 (arXiv 2205.09680); null by Brownian motion.
    """
    if view.ranked is None:
        return None
    walk, scale = view.memo("walk", partial(_walk, view))
    value = largest_deviation(walk)
    p = sup_survival(value / scale) if scale else float(value <= ROUNDING)
    return _by_walk(view, value, MAD_MEAN * scale, MAD_Q95 * scale, p)


@metric("ecce_range", better="lower", definition="ecce_range/1")
def ecce_range(view: View) -> Measurement | None:
    """Range of the cumulative residuals: sees confidence that errs both ways.

    Formula: highest less lowest cumulative residual over n, the start at 0 among them.
    Needs: confidence, and a right and a wrong.
    Beware: a calibrated model reads about 1.6 times its standard error.
    Source: Arrieta-Ibarra et al. 2022 (arXiv 2205.09680); Feller 1951 for the null.
    """
    if view.ranked is None:
        return None
    walk, scale = view.memo("walk", partial(_walk, view))
    value = walk_range(walk)
    p = range_survival(value / scale) if scale else float(value <= ROUNDING)
    return _by_walk(view, value, RANGE_MEAN * scale, RANGE_Q95 * scale, p)


def _by_walk(view: View, value: float, mean: float, q95: float, p: float) -> Measurement:
    ranked = view.ranked
    assert ranked is not None
    null = Null(mean, q95, p, value - mean, "Brownian motion") if view.settings.intervals else None
    return bare(value, len(ranked), ranked.cases, BIASED, null=null)


@metric("spiegelhalter_z", better="neither", definition="spiegelhalter_z/1", low=-UNBOUNDED, high=UNBOUNDED)
def spiegelhalter_z(view: View) -> Measurement | None:
    """Standardised difference of the Brier score from what the confidences promise.

    Formula: sum (y - c)(1 - 2c) / sqrt(sum (1 - 2c)^2 c (1 - c)).
    Needs: confidence, and a right and a wrong; some confidence that is not 0, 1/2 or 1.
    Beware: a test, not a size: with many answers any model fails it. Its p allows for cases.
    Source: Spiegelhalter 1986.
    """
    confidence, correct, clusters = view.paired()
    weights = 1.0 - 2.0 * confidence
    spread = float((weights**2 * confidence * (1.0 - confidence)).sum()) if len(confidence) else 0.0
    if spread <= 0.0:
        return None
    terms = (correct - confidence) * weights
    value = float(terms.sum()) / math.sqrt(spread)
    if not view.settings.intervals:
        return bare(value, len(terms), len(clusters), _TEST)
    deff = 1.0 if clusters.alone else cluster_spread(terms, clusters).deff
    p = 2.0 * normal_cdf(-abs(value) / math.sqrt(deff))
    return bare(value, len(terms), len(clusters), _TEST, deff=deff, details={"p": p})
