"""Calibration without bins: the walk of residuals in order of confidence."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
MAD_MEAN, RANGE_MEAN = math.sqrt(math.pi / 2.0), math.sqrt(8.0 / math.pi)
"""Means of the largest absolute value and of the range of Brownian motion on [0, 1]."""
MAD_Q95, RANGE_Q95 = 2.241402727332142, 2.497672161048652
"""Their 95th percentiles."""


def residual_walk(ranked: Floats, residual: Floats) -> Floats:
    """Cumulative mean of residuals at the end of each level of equal confidence.

    Parameters
    ----------
    ranked : array, shape (n,)
        Confidences in order, n >= 1.
    residual : array, shape (n,)
        Correct less confidence, in the same order.
    """
    ends = np.concatenate((ranked[1:] != ranked[:-1], [True]))
    return np.cumsum(residual)[ends] / len(ranked)


def largest_deviation(walk: Floats) -> float:
    """ECCE-MAD: the walk's largest absolute value. Source: Arrieta-Ibarra et al. 2022 (2205.09680)."""
    return float(np.abs(walk).max())


def walk_range(walk: Floats) -> float:
    """ECCE-R: the walk's highest less its lowest point, its start at 0 among them."""
    return max(0.0, float(walk.max())) - min(0.0, float(walk.min()))


def sup_survival(x: float) -> float:
    """P(largest absolute value of Brownian motion on [0, 1] > x).

    Source: reflection principle, Feller 1971; the theta series that converges at once on either
    side of 1.
    """
    if x <= 0.0:
        return 1.0
    if x < 1.0:
        terms = (
            (-1.0) ** k / (2 * k + 1) * math.exp(-((2 * k + 1) ** 2) * math.pi**2 / (8 * x * x))
            for k in range(8)
        )
        return 1.0 - 4.0 / math.pi * math.fsum(terms)
    tails = ((-1.0) ** k * math.erfc((2 * k + 1) * x / math.sqrt(2.0)) for k in range(8))
    return min(1.0, 2.0 * math.fsum(tails))


def range_survival(x: float) -> float:
    """P(range of Brownian motion on [0, 1] > x). Source: Feller 1951."""
    if x <= 0.2:
        return 1.0
    tails = ((-1.0) ** (k - 1) * k * math.erfc(k * x / math.sqrt(2.0)) for k in range(1, 60))
    return min(1.0, max(0.0, 4.0 * math.fsum(tails)))
