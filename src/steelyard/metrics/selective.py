"""What is left when the least confident answers are set aside."""

from __future__ import annotations

from functools import partial

import numpy as np

from steelyard.metrics.decisions import Floats
from steelyard.metrics.estimates import NOT_ASKED, bare, from_rate, ranked_of
from steelyard.metrics.ranked import Ranked
from steelyard.metrics.registry import Measurement, metric
from steelyard.metrics.view import View
from steelyard.stats.proportions import risk_upper_bound
from steelyard.stats.ranking import (
    accepted_at,
    area_under_risk_coverage,
    augrc,
    augrc_influence,
    aurc_influence,
    auroc,
    auroc_influence,
    best_aurc,
    coverage_at_risk,
)

_CHOSEN = "its cut was chosen on these very answers, so the risk beyond it is understated"


@metric("aurc", better="lower", definition="aurc/ties-atomic/2", shared=True)
def aurc(view: View) -> Measurement | None:
    """Area under the risk-coverage curve, answers of equal confidence accepted together.

    Formula: mean over answers of the risk among all at least as confident.
    Needs: confidence, and a right and a wrong.
    Beware: moves with accuracy as well as with ranking; e_aurc and auroc_failure take that out.
    Source: Geifman, Uziel and El-Yaniv 2019 (arXiv 1805.08206).
    """
    ranked = view.ranked
    if ranked is None:
        return None
    value = area_under_risk_coverage(ranked.accepted, ranked.hits)
    levels = partial(aurc_influence, ranked.accepted, ranked.hits, value)
    return ranked_of(view, "aurc", value, levels, area_under_risk_coverage, root=True)


@metric("e_aurc", better="lower", definition="e_aurc/finite-n/1")
def e_aurc(view: View) -> Measurement | None:
    """Area under the risk-coverage curve less that of a ranking that puts every error last.

    Formula: aurc - best aurc with as many errors among as many answers.
    Needs: confidence, and a right and a wrong.
    Beware: 0 for a perfect ranking whatever the accuracy; it still grows with the error rate.
    Source: Geifman, Uziel and El-Yaniv 2019 (arXiv 1805.08206), its optimum exact for n answers.
    """
    ranked = view.ranked
    if ranked is None:
        return None
    n, hits = len(ranked), float(ranked.hits[-1])
    area = area_under_risk_coverage(ranked.accepted, ranked.hits)
    value = max(0.0, area - best_aurc(n, n - round(hits)))
    rate = hits / n

    def levels() -> tuple[Floats, Floats]:
        right, wrong = aurc_influence(ranked.accepted, ranked.hits, area)
        # The optimum e + (1 - e) ln(1 - e) grows with the error rate e by -ln(1 - e).
        slope = -np.log(max(rate, 0.5 / n))
        return right + slope * (1.0 - rate), wrong - slope * rate

    def statistic(accepted: Floats, right: Floats) -> float:
        errors = round(float(accepted[-1] - right[-1]))
        return area_under_risk_coverage(accepted, right) - best_aurc(round(float(accepted[-1])), errors)

    return ranked_of(view, "e_aurc", value, levels, statistic, root=True)


@metric("augrc", better="lower", definition="augrc/trapezoid/1", high=0.5)
def augrc_metric(view: View) -> Measurement | None:
    """Area under the generalised risk-coverage curve: the risk that an answer is accepted and wrong.

    Formula: (1 - auroc) a (1 - a) + (1 - a)^2 / 2 with accuracy a.
    Needs: confidence, and a right and a wrong.
    Beware: a random ranking reads e / 2, a perfect one e^2 / 2, with error rate e.
    Source: Traub et al. 2024 (arXiv 2407.01032).
    """
    ranked = view.ranked
    if ranked is None:
        return None
    levels = partial(augrc_influence, ranked.accepted, ranked.hits)
    return ranked_of(view, "augrc", augrc(ranked.accepted, ranked.hits), levels, augrc, high=0.5)


@metric("auroc_failure", better="higher", definition="auroc_failure/1")
def auroc_failure(view: View) -> Measurement | None:
    """Chance that a right answer is more confident than a wrong one: does confidence rank failures?

    Formula: area under the ROC curve of confidence against being right, ties counting half.
    Needs: confidence, and right as well as wrong answers.
    Beware: 0.5 is useless; says nothing of how many errors there are.
    Source: Hanley and McNeil 1982; DeLong et al. 1988 for the influence of an answer.
    """
    ranked = view.ranked
    value = None if ranked is None else auroc(ranked.accepted, ranked.hits)
    if ranked is None or value is None:
        return None
    levels = partial(auroc_influence, ranked.accepted, ranked.hits, value)
    return ranked_of(view, "auroc_failure", value, levels, auroc)


def selective_accuracy(view: View, coverage: float) -> Measurement | None:
    """Accuracy of the most confident answers that make up a share of all, ties accepted together."""
    ranked = view.ranked
    if ranked is None:
        return None
    level = accepted_at(ranked.accepted, coverage)
    accepted, hits = round(float(ranked.accepted[level])), round(float(ranked.hits[level]))
    details = {"accepted": accepted, "of": len(ranked), "threshold": float(ranked.level[level])}
    if view.listening:
        share = np.zeros(len(ranked))
        share[:accepted] = (ranked.correct[:accepted] - hits / accepted) / accepted
        view.hear(ranked.in_data_order(share), view.paired()[2], _cut_inflation(ranked, accepted))
    if not view.settings.intervals:
        return bare(hits / accepted, accepted, ranked.cases, NOT_ASKED, details=details)
    spread = ranked.spread_of_first(accepted)
    return from_rate(hits / accepted, spread, details=details, inflation=_cut_inflation(ranked, accepted))


def _cut_inflation(ranked: Ranked, accepted: int) -> float:
    """What moving with its sample adds to the variance of accuracy at a cut, as a factor.

    With coverage k, accuracy A above the cut and m at it: ``1 + (1 - k)(A - m)^2 / (A (1 - A))``. What
    counts as at the cut are whole levels, so that the order of equal confidences does not matter.
    """
    n = len(ranked)
    level = float(ranked.correct[:accepted].mean())
    if accepted == n or not 0.0 < level < 1.0:
        return 1.0
    reach = max(10, n // 20)
    ends, hits = np.append(0.0, ranked.accepted), np.append(0.0, ranked.hits)
    first = int(np.searchsorted(ends, max(0, accepted - reach), side="right")) - 1
    last = int(np.searchsorted(ends, min(n, accepted + reach)))
    at = float((hits[last] - hits[first]) / (ends[last] - ends[first]))
    return 1.0 + (1.0 - accepted / n) * (level - at) ** 2 / (level * (1.0 - level))


def _at_coverage(percent: int, shared: bool) -> None:
    name = f"selective_accuracy@{percent}"

    def compute(view: View) -> Measurement | None:
        return selective_accuracy(view, percent / 100)

    compute.__doc__ = f"""Accuracy of the most confident {percent} % of answers, ties accepted together.

    Formula: right / accepted, down to the confidence that first accepts the share.
    Needs: confidence, and a right and a wrong.
    Beware: wide ties accept more than was asked; the accepted count is in the details.
    Source: Geifman and El-Yaniv 2017 (arXiv 1705.08500); Wilson 1927, widened for the moving cut.
    """
    metric(name, better="higher", definition=f"{name}/ties-atomic/2", shared=shared)(compute)


def _at_risk(percent: int) -> None:
    name = f"coverage@risk{percent}"

    def compute(view: View) -> Measurement | None:
        return coverage_at(view, percent / 100)

    compute.__doc__ = f"""Largest share of answers to accept with at most {percent} % of them wrong.

    Formula: share accepted at the lowest cut whose risk is within the limit; 0 where none is.
    Needs: confidence, and a right and a wrong.
    Beware: chosen on the data it is read from: on new data the limit is broken about every second
        time. The details bound the risk at the cut as if it had been fixed beforehand.
    Source: Geifman and El-Yaniv 2017 (arXiv 1705.08500); Clopper and Pearson 1934 for the bound.
    """
    metric(name, better="higher", definition=f"{name}/ties-atomic/1")(compute)


def coverage_at(view: View, risk: float) -> Measurement | None:
    """Largest coverage whose risk is at most `risk`, with the exact bound of that risk."""
    ranked = view.ranked
    if ranked is None:
        return None
    level = coverage_at_risk(ranked.accepted, ranked.hits, risk)
    if level < 0:
        details: dict[str, object] = {"accepted": 0, "of": len(ranked)}
        return bare(0.0, len(ranked), ranked.cases, _CHOSEN, details=details)
    accepted, hits = round(float(ranked.accepted[level])), round(float(ranked.hits[level]))
    details = {
        "accepted": accepted,
        "of": len(ranked),
        "threshold": float(ranked.level[level]),
        "errors": accepted - hits,
    }
    if view.settings.intervals:
        details["risk_below_95"] = risk_upper_bound(accepted - hits, accepted, 0.05)
    return bare(accepted / len(ranked), len(ranked), ranked.cases, _CHOSEN, details=details)


for _percent, _shared in ((50, True), (80, True), (90, False), (95, False)):
    _at_coverage(_percent, _shared)
for _percent in (1, 5, 10):
    _at_risk(_percent)
