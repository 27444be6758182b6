"""Does the stated confidence mean what it says?"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from steelyard.metrics.decisions import Floats
from steelyard.metrics.estimates import bare, mean_of
from steelyard.metrics.registry import UNBOUNDED, Measurement, metric
from steelyard.metrics.view import View
from steelyard.stats.bins import (
    Binned,
    bin_index,
    bin_spread,
    binned,
    debiased_square,
    equal_mass_index,
    expected_calibration_error,
    within_bins_deff,
)
from steelyard.stats.clusters import Clusters, cluster_spread
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
from steelyard.stats.nulls import Null, chi_square_null, half_normal_null
from steelyard.stats.special import normal_cdf, normal_quantile

MASS_BINS = 15
BIASED = "biased upwards, so an interval around it would not cover; see what perfect calibration reads"
_TEST = "a test statistic: its p says how far from calibrated it is"


@metric("ece", better="lower", definition="ece/{bins}-equal-width/1", shared=True)
def ece(view: View) -> Measurement | None:
    """Expected calibration error of choice and yes/no answers over equal-width bins.

    Formula: sum over bins of n_b/n |mean confidence - accuracy|; bins (lo, hi], the first closed at 0.
    Needs: confidence, and a right and a wrong.
    Beware: biased upwards, the more the fewer answers: a perfectly calibrated model reads about
        0.08 on 100. Read the excess over its null, never the bare value.
    Source: Naeini et al. 2015; null in closed form after Broecker and Smith 2007.
    """
    confidence, correct, clusters = view.paired()
    n = len(confidence)
    if not n:
        return None
    value = expected_calibration_error(confidence, correct, view.settings.bins, view.bins)
    null = None
    if view.settings.intervals:
        spread = bin_spread(confidence, view.settings.bins, view.bins)
        null = half_normal_null(spread * (math.sqrt(view.bins_deff) / n), value)
    return bare(value, n, len(clusters), BIASED, null=null)


def _own_error(view: View, stated: Floats, outcome: Floats, clusters: Clusters) -> Measurement:
    n = len(stated)
    bins = view.settings.bins
    found = bin_index(stated, bins)
    value = expected_calibration_error(stated, outcome, bins, found)
    null = None
    if view.settings.intervals:
        deff = (
            1.0
            if clusters.alone
            else within_bins_deff(outcome - stated, clusters.compact, np.maximum(found, 0), bins)
        )
        null = half_normal_null(bin_spread(stated, bins, found) * (math.sqrt(deff) / n), value)
    return bare(value, n, len(clusters), BIASED, null=null)


@metric("ece_yes", better="lower", definition="ece_yes/{bins}-equal-width/1")
def ece_yes(view: View) -> Measurement | None:
    """Calibration error of P(true) against yes, over the whole of 0 to 1.

    Formula: as ece, with the probability of yes and whether yes was right.
    Needs: noul labels.
    Beware: it differs from ece of the same answers, which folds both sides onto 0.5 to 1; a lean
        towards yes shows here only.
    Source: as ece.
    """
    kept = view.where("value", kind=2)
    if kept is None:
        return None
    return _own_error(view, view.column("value")[kept], view.column("gold")[kept], view.clusters(kept))


@metric("score_ece", better="lower", definition="score_ece/{bins}-equal-width/1")
def score_ece(view: View) -> Measurement | None:
    """Calibration error of score answers: probability of the likeliest level against it being right.

    Formula: as ece, with the top probability and whether that level is the label.
    Needs: score labels on whole levels, and answers with probabilities.
    Beware: kept apart from the pooled ece, which is over choice and yes/no answers only.
    Source: as ece.
    """
    kept = view.where("level_correct", "top_probability")
    if kept is None:
        return None
    top, right = view.column("top_probability")[kept], view.column("level_correct")[kept]
    return _own_error(view, top, right, view.clusters(kept))


def _mass_table(view: View, bins: int = MASS_BINS) -> tuple[Binned, float]:
    """Sums over equal-mass bins of the ranked answers, and the design effect inside them."""
    ranked = view.ranked
    assert ranked is not None
    found = equal_mass_index(ranked.accepted, bins)
    table = binned(found, ranked.sizes, ranked.level, ranked.level_hits, bins)
    if ranked.alone or not view.settings.intervals:
        return table, 1.0
    each = np.repeat(found, ranked.sizes.astype(np.int64))
    return table, within_bins_deff(ranked.correct - ranked.confidence, ranked.codes, each, bins)


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
    table, deff = view.memo("mass", partial(_mass_table, view))
    null = table.null(deff) if view.settings.intervals else None
    return bare(table.error(), len(ranked), ranked.cases, BIASED, null=null)


@metric("ece_debiased_rms", better="lower", definition="ece_debiased_rms/15-equal-mass/1", low=-1.0)
def ece_debiased_rms(view: View) -> Measurement | None:
    """Root mean square calibration error with the bias taken out; its square may be negative.

    Formula: sign(D) sqrt|D|, D = sum n_b/n (gap^2 - y (1 - y) / (n_b - 1)) over equal-mass bins.
    Needs: confidence, and a right and a wrong.
    Beware: D is unbiased, its root is not; below zero means no sign of miscalibration.
    Source: Kumar, Liang and Ma 2019 (arXiv 1909.10155); Ferro and Fricker 2012.
    """
    ranked = view.ranked
    if ranked is None:
        return None
    table, deff = view.memo("mass", partial(_mass_table, view))
    square, error = debiased_square(table)
    n, why = len(ranked), "no bin holds two answers"
    if not view.settings.intervals or not error:
        return bare(_root(square), n, ranked.cases, why if not error else "intervals were left out")
    null = chi_square_null(table.spread * deff / (n * table.n), square)
    reach = normal_quantile(0.975) * error * deff
    return Measurement(
        _root(square),
        n,
        ranked.cases,
        interval=(_root(square - reach), _root(square + reach)),
        method="normal, on the square",
        null=Null(0.0, _root(null.q95), null.p, _root(square), null.method),
        details={"square": square},
    )


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
    p = sup_survival(value / scale) if scale else float(value <= 1e-12)
    return _by_walk(view, value, Null(MAD_MEAN * scale, MAD_Q95 * scale, p, value - MAD_MEAN * scale, ""))


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
    p = range_survival(value / scale) if scale else float(value <= 1e-12)
    mean = RANGE_MEAN * scale
    return _by_walk(view, value, Null(mean, RANGE_Q95 * scale, p, value - mean, ""))


def _by_walk(view: View, value: float, null: Null) -> Measurement:
    ranked = view.ranked
    assert ranked is not None
    kept = None
    if view.settings.intervals:
        kept = Null(null.expectation, null.q95, null.p, null.excess, "Brownian motion")
    return bare(value, len(ranked), ranked.cases, BIASED, null=kept)


@metric("confidence_gap", better="neither", definition="confidence_gap/1", low=-1.0)
def confidence_gap(view: View) -> Measurement | None:
    """Mean confidence less accuracy: above zero is overconfident. The most readable single number.

    Formula: mean of confidence - correct.
    Needs: confidence, and a right and a wrong.
    Beware: errors both ways cancel; ecce_range sees them.
    Source: calibration in the large; interval cluster-robust.
    """
    confidence, correct, clusters = view.paired()
    return mean_of(view, confidence - correct, clusters, low=-1.0, high=1.0)


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


@metric("brier", better="lower", definition="brier/top-answer/1", shared=True)
def brier(view: View) -> Measurement | None:
    """Mean squared distance of confidence from being right: the score of the top answer only.

    Formula: mean of (confidence - correct)^2.
    Needs: confidence, and a right and a wrong.
    Beware: not the Brier score over all options; that is brier_multiclass.
    Source: Brier 1950.
    """
    confidence, correct, clusters = view.paired()
    return mean_of(view, (confidence - correct) ** 2, clusters, high=1.0)


@metric("mean_confidence", better="neither", definition="mean_confidence/1", shared=True)
def mean_confidence(view: View) -> Measurement | None:
    """Mean of the confidence column over every answer, score answers included.

    Formula: mean of confidence.
    Needs: confidence.
    Beware: never compare runs whose confidence_sources differ.
    Source: the peer's definition.
    """
    return mean_of(view, *view.defined("confidence"), high=1.0, exact=True)
