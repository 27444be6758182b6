"""Selective prediction: cuts on confidence that never split answers of equal confidence."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def levels(
    confidence: NDArray[np.float64], correct: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Accepted answers and hits at each distinct confidence, most confident first.

    Parameters
    ----------
    confidence, correct : array, shape (n,)
        n >= 1. NaN confidences form one level, ranked last.

    Returns
    -------
    (accepted, hits) : arrays, shape (number of levels,)
        Running counts, the last entry of `accepted` being n.
    """
    order = np.argsort(-confidence, kind="stable")
    return ranked_levels(confidence[order], correct[order])


def ranked_levels(
    ranked: NDArray[np.float64], correct: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """As `levels`, for answers already in order of falling confidence."""
    change = (ranked[1:] != ranked[:-1]) & ~(np.isnan(ranked[1:]) & np.isnan(ranked[:-1]))
    last = np.flatnonzero(np.concatenate((change, [True])))
    accepted = (last + 1).astype(np.float64)
    return accepted, np.cumsum(correct)[last]


def area_under_risk_coverage(accepted: NDArray[np.float64], hits: NDArray[np.float64]) -> float:
    """Mean over answers of the risk at their level (AURC, ties atomic).

    Source: Geifman, Uziel and El-Yaniv 2019 (arXiv 1805.08206), with tie groups kept whole.
    """
    risk = 1.0 - hits / accepted
    width = np.diff(np.concatenate(([0.0], accepted)))
    return float(np.sum(risk * width) / accepted[-1])


def accepted_at(accepted: NDArray[np.float64], coverage: float) -> int:
    """Position of the level that first accepts a share of the answers.

    Parameters
    ----------
    accepted : array
        As `levels` gives it.
    coverage : float
        In (0, 1]; at least one answer is accepted.
    """
    wanted = max(1, math.ceil(coverage * accepted[-1]))
    return int(np.searchsorted(accepted, wanted, side="left"))
