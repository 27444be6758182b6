"""Does the stated confidence mean what it says?"""

from __future__ import annotations

from steelyard.metrics.registry import Measurement, View, mean_of, metric, plain_value
from steelyard.stats.bins import bin_index, calibrated_expectation, expected_calibration_error

_NO_ECE = "a plug-in calibration error is biased upwards, so an interval around it would not cover"


@metric("ece", better="lower", shared=True)
def ece(view: View) -> Measurement | None:
    """Expected calibration error of choice and yes/no answers over equal-width bins."""
    confidence, correct, clusters = view.paired()
    if not len(confidence):
        return None
    bins = view.settings.bins
    found = bin_index(confidence, bins)
    value = expected_calibration_error(confidence, correct, bins, found)
    details = {"null_expectation": calibrated_expectation(confidence, bins, found)}
    definition = f"ece/{bins}-equal-width/1"
    return plain_value(value, clusters, _NO_ECE, better="lower", definition=definition, details=details)


@metric("brier", better="lower", shared=True)
def brier(view: View) -> Measurement | None:
    """Mean squared distance of confidence from being right: the score of the top answer only."""
    confidence, correct, clusters = view.paired()
    squares = (confidence - correct) ** 2
    return mean_of(squares, clusters, better="lower", definition="brier/top-answer/1", upper=1.0)


@metric("mean_confidence", better="neither", shared=True)
def mean_confidence(view: View) -> Measurement | None:
    """Mean of the confidence column over every answer, score answers included."""
    return mean_of(
        *view.defined("confidence"), better="neither", definition="mean_confidence/1", upper=1.0, exact=True
    )
