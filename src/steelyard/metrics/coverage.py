"""What is left when the least confident answers are set aside."""

from __future__ import annotations

from steelyard.metrics.registry import Measurement, View, metric, plain_value, rate_of
from steelyard.stats.coverage import accepted_at, area_under_risk_coverage

COVERAGES = (0.5, 0.8)
_NO_AURC = "an area under a ranked curve has no interval of this kind yet"


@metric("aurc", better="lower", shared=True)
def aurc(view: View) -> Measurement | None:
    """Area under the risk-coverage curve, answers of equal confidence accepted together."""
    if view.ranked is None:
        return None
    clusters = view.paired()[2]
    value = area_under_risk_coverage(view.ranked.accepted, view.ranked.hits)
    return plain_value(value, clusters, _NO_AURC, better="lower", definition="aurc/ties-atomic/2")


def selective_accuracy(view: View, coverage: float) -> Measurement | None:
    """Accuracy of the most confident answers that make up a share of all, ties accepted together."""
    if view.ranked is None:
        return None
    accepted = int(view.ranked.accepted[accepted_at(view.ranked.accepted, coverage)])
    threshold = float(view.ranked.confidence[accepted - 1])
    confidence, correct, clusters = view.paired()
    kept = confidence >= threshold
    name = f"selective_accuracy@{round(100 * coverage)}"
    details = {"accepted": accepted, "of": len(confidence), "threshold": threshold}
    return rate_of(
        correct[kept],
        clusters[kept],
        better="higher",
        definition=f"{name}/ties-atomic/2",
        details=details,
    )


@metric("selective_accuracy@50", better="higher", shared=True)
def selective_accuracy_50(view: View) -> Measurement | None:
    """Accuracy of the more confident half, ties accepted together."""
    return selective_accuracy(view, COVERAGES[0])


@metric("selective_accuracy@80", better="higher", shared=True)
def selective_accuracy_80(view: View) -> Measurement | None:
    """Accuracy of the most confident four fifths, ties accepted together."""
    return selective_accuracy(view, COVERAGES[1])
