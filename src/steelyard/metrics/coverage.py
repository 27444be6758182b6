"""What is left when the least confident answers are set aside."""

from __future__ import annotations

import numpy as np

from steelyard.metrics.calibration import paired
from steelyard.metrics.registry import Measurement, View, metric, plain_value, rate_of
from steelyard.stats.coverage import accepted_at, area_under_risk_coverage

COVERAGES = (0.5, 0.8)
_NO_AURC = "an area under a ranked curve has no interval of this kind yet"


@metric("aurc", better="lower", shared=True)
def aurc(view: View) -> Measurement | None:
    """Area under the risk-coverage curve, answers of equal confidence accepted together."""
    if view.levels is None:
        return None
    clusters = paired(view)[2]
    value = area_under_risk_coverage(*view.levels)
    return plain_value(value, clusters, _NO_AURC, better="lower", definition="aurc/ties-atomic/2")


def selective_accuracy(view: View, coverage: float) -> Measurement | None:
    """Accuracy of the most confident answers that make up a share of all, ties accepted together."""
    if view.levels is None:
        return None
    accepted, _ = view.levels
    at = accepted_at(accepted, coverage)
    confidence, correct, clusters = paired(view)
    ranked = np.sort(confidence)[::-1]
    threshold = ranked[int(accepted[at]) - 1]
    kept = confidence >= threshold
    name = f"selective_accuracy@{round(100 * coverage)}"
    details = {"accepted": int(accepted[at]), "of": len(confidence), "threshold": float(threshold)}
    return rate_of(
        correct[kept], clusters[kept], better="higher", definition=f"{name}/ties-atomic/2", details=details
    )


@metric("selective_accuracy@50", better="higher", shared=True)
def selective_accuracy_50(view: View) -> Measurement | None:
    """Accuracy of the more confident half, ties accepted together."""
    return selective_accuracy(view, COVERAGES[0])


@metric("selective_accuracy@80", better="higher", shared=True)
def selective_accuracy_80(view: View) -> Measurement | None:
    """Accuracy of the most confident four fifths, ties accepted together."""
    return selective_accuracy(view, COVERAGES[1])
