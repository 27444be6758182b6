"""Ranked answers: areas under their curves, and how much each answer moves them.

Everything here takes answers already in order of falling confidence, as levels of equal confidence:
`accepted` and `hits` are running counts at the end of each level, the last entries being all answers
and all hits. An influence is given as two values a level, for a right and for a wrong answer there;
over the answers it sums to zero, and the variance of the statistic is the sum over cases of its
squared case sums, over n squared (Hampel 1974).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from steelyard.stats.isotonic import isotonic

_SMALL = 5000
Floats = NDArray[np.float64]


def level_sizes(running: Floats) -> Floats:
    """Answers (or hits) of each level, from running counts."""
    return np.diff(running, prepend=0.0)


def auroc(accepted: Floats, hits: Floats) -> float | None:
    """Probability that a right answer is more confident than a wrong one, ties counting half.

    Returns
    -------
    float or None
        In [0, 1]; None when all answers are right, or all wrong. Source: Hanley and McNeil 1982.
    """
    right, wrong = float(hits[-1]), float(accepted[-1] - hits[-1])
    if right == 0 or wrong == 0:
        return None
    misses = accepted - hits
    below = wrong - misses + 0.5 * level_sizes(misses)
    return float((level_sizes(hits) * below).sum() / (right * wrong))


def auroc_influence(accepted: Floats, hits: Floats, area: float) -> tuple[Floats, Floats]:
    """Influence of a right and a wrong answer of each level on `auroc`, which must be defined.

    Source: placement values of DeLong, DeLong and Clarke-Pearson 1988.
    """
    n, right = float(accepted[-1]), float(hits[-1])
    misses = accepted - hits
    wrong = float(misses[-1])
    beaten = (wrong - misses + 0.5 * level_sizes(misses)) / wrong
    above = (hits - 0.5 * level_sizes(hits)) / right
    return n / right * (beaten - area), n / wrong * (above - area)


def area_under_risk_coverage(accepted: Floats, hits: Floats) -> float:
    """Mean over answers of the risk at their level (AURC, ties atomic).

    Source: Geifman, Uziel and El-Yaniv 2019 (arXiv 1805.08206), with tie groups kept whole.
    """
    risk = 1.0 - hits / accepted
    return float((risk * level_sizes(accepted)).sum() / accepted[-1])


def aurc_influence(accepted: Floats, hits: Floats, area: float) -> tuple[Floats, Floats]:
    """Influence of a right and a wrong answer of each level on `area_under_risk_coverage`.

    An answer enters the risk of its own level and of every less confident one.
    """
    risk = 1.0 - hits / accepted
    share = level_sizes(accepted) / accepted
    reach = np.cumsum(share[::-1])[::-1]
    drag = np.cumsum((share * risk)[::-1])[::-1]
    right = risk - area - drag
    return right, right + reach


def best_aurc(n: int, errors: int) -> float:
    """AURC of a ranking that puts every error last, with n answers.

    The risk stays 0 up to the errors, then is ``j / (n - errors + j)`` at the j-th of them.
    """
    j = np.arange(1.0, errors + 1.0)
    return float((j / (n - errors + j)).sum() / n)


def augrc(accepted: Floats, hits: Floats) -> float:
    """Area under the generalised risk-coverage curve, by trapezoids from (0, 0).

    Returns
    -------
    float
        In [0, 1/2]: ``(1 - AUROC) a (1 - a) + (1 - a)^2 / 2`` with accuracy a. Source: Traub et al.
        2024 (arXiv 2407.01032).
    """
    n = accepted[-1]
    risk = np.concatenate(([0.0], (accepted - hits) / n))
    return float((level_sizes(accepted) * (risk[1:] + risk[:-1])).sum() / (2.0 * n))


def augrc_influence(accepted: Floats, hits: Floats) -> tuple[Floats, Floats]:
    """Influence of a right and a wrong answer of each level on `augrc`."""
    n = float(accepted[-1])
    risk = (accepted - hits) / n
    middle = risk - 0.5 * level_sizes(risk)
    area = augrc(accepted, hits)
    # An error weighs by the coverage at and below it; any answer by the risk at its level.
    covered = 1.0 - (accepted - 0.5 * level_sizes(accepted)) / n
    right = middle - 2.0 * area
    return right, right + covered


def spread_over(right: Floats, wrong: Floats, accepted: Floats, correct: Floats) -> Floats:
    """Influence of each ranked answer from that of each level, shape (n,)."""
    sizes = level_sizes(accepted).astype(np.int64)
    return np.where(correct > 0, np.repeat(right, sizes), np.repeat(wrong, sizes))


def chance_inflation(right: Floats, wrong: Floats, accepted: Floats, hits: Floats) -> float:
    """Factor by which the variance of a statistic grows when errors might have fallen elsewhere.

    The few most confident answers move an area most, and are seldom wrong in the sample at hand; their
    risk is not zero for that. Here each answer is wrong with the isotonic risk of its rank, half an
    error and one answer added to each block, in place of what it happened to be.

    Parameters
    ----------
    right, wrong, accepted, hits : array, shape (levels,)
        Influences and running counts.

    Returns
    -------
    float
        At least 1; 1 above 5,000 levels, where it no longer matters.
    """
    if len(accepted) > _SMALL:
        return 1.0
    sizes, misses = level_sizes(accepted), level_sizes(accepted - hits)
    fitted = isotonic(misses, sizes)
    starts = np.flatnonzero(np.concatenate(([True], fitted[1:] != fitted[:-1])))
    counts = np.diff(np.concatenate((starts, [len(fitted)])))
    block = np.add.reduceat(sizes, starts)
    risk = np.repeat((np.add.reduceat(misses, starts) + 0.5) / (block + 1.0), counts)
    seen = float((misses * wrong**2 + (sizes - misses) * right**2).sum())
    smooth = float((sizes * (risk * wrong**2 + (1.0 - risk) * right**2)).sum())
    return max(1.0, smooth / seen) if seen > 0 else 1.0


def coverage_at_risk(accepted: Floats, hits: Floats, risk: float) -> int:
    """Level with the most accepted answers whose risk is at most `risk`; -1 when there is none."""
    fine = np.flatnonzero(accepted - hits <= risk * accepted + 1e-9)
    return int(fine[-1]) if len(fine) else -1


def accepted_at(accepted: Floats, coverage: float) -> int:
    """Position of the level that first accepts a share of the answers.

    Parameters
    ----------
    accepted : array
        Running counts.
    coverage : float
        In (0, 1]; at least one answer is accepted.
    """
    wanted = max(1, math.ceil(coverage * accepted[-1]))
    return int(np.searchsorted(accepted, wanted, side="left"))


def falling_order(confidence: Floats) -> NDArray[np.int64]:
    """Positions in order of falling confidence, equal ones as they came.

    Confidences in [0, 1] of four decimals at most, the commonest kind, are sorted as 16-bit numbers.
    """
    keys = np.rint(confidence * 10_000.0)
    if len(keys) and keys.min() >= 0 and keys.max() <= 10_000 and np.array_equal(keys / 10_000.0, confidence):
        return np.argsort(-keys.astype(np.int16), kind="stable")
    return np.argsort(-confidence, kind="stable")


def ranked_levels(ranked: Floats, correct: Floats) -> tuple[Floats, Floats]:
    """Running counts of answers and hits at the end of each level of equal confidence.

    Parameters
    ----------
    ranked, correct : array, shape (n,)
        Confidences falling; n >= 1.
    """
    last = np.flatnonzero(np.concatenate((ranked[1:] != ranked[:-1], [True])))
    return (last + 1).astype(np.float64), np.cumsum(correct)[last]


def levels(confidence: Floats, correct: Floats) -> tuple[Floats, Floats]:
    """`ranked_levels` of answers in any order; NaN confidences form one level, ranked last."""
    confidence = np.where(np.isnan(confidence), -np.inf, confidence)
    order = falling_order(confidence)
    return ranked_levels(confidence[order], correct[order])
