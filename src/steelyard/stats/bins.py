"""Equal-width bins of confidence, with edges that belong where the field puts them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from steelyard.stats.grouping import group_order


def bin_index(confidence: NDArray[np.float64], bins: int) -> NDArray[np.int64]:
    """Bin of each confidence: (lo, hi], the first closed at 0.

    Parameters
    ----------
    confidence : array, shape (n,)
        In [0, 1]; anything else, NaN among it, gets -1 and is in no bin.
    bins : int
        At least 1.

    Returns
    -------
    array of int, shape (n,)
        Equal to a search of ``linspace(0, 1, bins + 1)``, neighbours of every edge included.
    """
    edges = np.linspace(0.0, 1.0, bins + 1)
    found = np.searchsorted(edges, confidence, side="left") - 1
    found[confidence == 0.0] = 0
    found[~((confidence >= 0.0) & (confidence <= 1.0))] = -1
    return found


def expected_calibration_error(
    confidence: NDArray[np.float64],
    correct: NDArray[np.float64],
    bins: int = 15,
    found: NDArray[np.int64] | None = None,
) -> float:
    """Expected calibration error over equal-width bins.

    Parameters
    ----------
    confidence, correct : array, shape (n,)
        n >= 1. Confidences outside [0, 1] fall in no bin but stay in n.
    bins : int
        At least 1.
    found : array of int, optional
        `bin_index` of the confidences, where it is known already.

    Returns
    -------
    float
        In [0, 1]. Source: Naeini et al. 2015; sum over bins of n_b/n |mean confidence - accuracy|.
    """
    found = bin_index(confidence, bins) if found is None else found
    order, ends = group_order(found, bins)
    confidence, correct = confidence[order], correct[order]
    total, n = 0.0, len(found)
    for start, end in pairwise(ends.tolist()):
        if end > start:
            gap = confidence[start:end].mean() - correct[start:end].mean()
            total += (end - start) / n * abs(gap)
    return float(total)


def calibrated_expectation(
    confidence: NDArray[np.float64], bins: int = 15, found: NDArray[np.int64] | None = None
) -> float:
    """What the calibration error of a perfectly calibrated model would read on these confidences.

    Parameters
    ----------
    confidence : array, shape (n,)
        n >= 1, in [0, 1].
    bins : int
        At least 1.
    found : array of int, optional
        `bin_index` of the confidences, where it is known already.

    Returns
    -------
    float
        ``sqrt(2 / pi) * sum over bins of sqrt(sum of c (1 - c)) / n``: the mean absolute value of a
        normal variable, bin by bin, for independent answers. Within about 6 % of simulation.
    """
    found = bin_index(confidence, bins) if found is None else found
    inside = found >= 0
    spread = np.bincount(found[inside], weights=(confidence * (1.0 - confidence))[inside], minlength=bins)
    return float(np.sqrt(2.0 / np.pi) * np.sqrt(spread).sum() / len(confidence))
