"""Does the stated confidence mean what it says?"""

from __future__ import annotations

from steelyard.metrics.estimates import bare, hear_gaps, mean_of
from steelyard.metrics.registry import Measurement, metric
from steelyard.metrics.view import View
from steelyard.stats.bins import binned_null, expected_calibration_error, within_bins_deff

BIASED = "biased upwards, so an interval around it would not cover; see what perfect calibration reads"


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
    if view.listening:
        hear_gaps(view, correct - confidence, view.bins, clusters)
    null = None
    if view.settings.intervals:
        null = binned_null(confidence, view.settings.bins, view.bins, value, view.bins_deff)
    return bare(value, n, len(clusters), BIASED, null=null)


def _own_error(view: View, stated: str, outcome: str, kind: int) -> Measurement | None:
    """Calibration error of one column against another, for answers of one type."""
    kept = view.where(stated, outcome, kind=kind)
    if kept is None:
        return None
    p, y, bins = view.column(stated)[kept], view.column(outcome)[kept], view.settings.bins
    found, clusters = view.column(view.bin_name(stated))[kept], view.clusters(kept)
    value, null = expected_calibration_error(p, y, bins, found), None
    if view.listening:
        hear_gaps(view, y - p, found, clusters)
    if view.settings.intervals:
        deff = 1.0 if clusters.alone else within_bins_deff(y - p, clusters.compact, found, bins)
        null = binned_null(p, bins, found, value, deff)
    return bare(value, len(p), len(clusters), BIASED, null=null)


@metric("ece_yes", better="lower", definition="ece_yes/{bins}-equal-width/1")
def ece_yes(view: View) -> Measurement | None:
    """Calibration error of P(true) against yes, over the whole of 0 to 1.

    Formula: as ece, with the probability of yes and whether yes was right.
    Needs: noul labels.
    Beware: it differs from ece of the same answers, which folds both sides onto 0.5 to 1; a lean
        towards yes shows here only.
    Source: as ece.
    """
    return _own_error(view, "value", "gold", 2)


@metric("score_ece", better="lower", definition="score_ece/{bins}-equal-width/1")
def score_ece(view: View) -> Measurement | None:
    """Calibration error of score answers: probability of the likeliest level against it being right.

    Formula: as ece, with the top probability and whether that level is the label.
    Needs: score labels on whole levels, and answers with probabilities.
    Beware: kept apart from the pooled ece, which is over choice and yes/no answers only.
    Source: as ece.
    """
    return _own_error(view, "top_probability", "level_correct", 1)


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
