"""What a calibration statistic reads when calibration is perfect."""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec
import numpy as np
from numpy.typing import NDArray

from steelyard.stats.bootstrap import generator
from steelyard.stats.special import normal_cdf

Floats = NDArray[np.float64]
Z95 = 1.6448536269514722
_NOTHING = 1e-24
"""A variance that is only rounding."""
MOST_CELLS = 500_000
FEWEST_DRAWS, MOST_DRAWS = 200, 1000


class Null(msgspec.Struct, frozen=True):
    """A statistic beside what perfect calibration reads on the same confidences.

    Attributes
    ----------
    expectation, q95 : float
        Mean and 95th percentile under perfect calibration.
    p : float
        Chance of a value at least as large; in [0, 1], 0 only where no other value is possible.
    excess : float
        Value less expectation.
    method : str
    """

    expectation: float
    q95: float
    p: float
    excess: float
    method: str


def half_normal_null(spread: Floats, value: float) -> Null:
    """Null of a sum of absolute values of independent normal variables.

    Parameters
    ----------
    spread : array, shape (bins,)
        Standard deviation of each.
    value : float
        The statistic.

    Returns
    -------
    Null
        The mean is ``sqrt(2 / pi) sum of spread``; percentile and p come from the gamma distribution
        with the same first three cumulants.
    """
    first = math.sqrt(2.0 / math.pi)
    k1 = first * float(spread.sum())
    k2 = (1.0 - 2.0 / math.pi) * float((spread**2).sum())
    k3 = first * (4.0 / math.pi - 1.0) * float((spread**3).sum())
    return gamma_null(k1, k2, k3, value)


def chi_square_null(weights: Floats, value: float) -> Null:
    """Null of a weighted sum of independent ``chi^2 - 1`` variables of one degree of freedom."""
    k2, k3 = 2.0 * float((weights**2).sum()), 8.0 * float((weights**3).sum())
    return gamma_null(0.0, k2, k3, value)


def gamma_null(k1: float, k2: float, k3: float, value: float) -> Null:
    """Null of a variable with these cumulants, as a shifted gamma distribution.

    Source: Pearson's type III, its normal score by Wilson and Hilferty 1931.
    """
    method = "closed form"
    if k2 < _NOTHING:
        return Null(k1, k1, 1.0 if value <= k1 + 1e-12 else 0.0, value - k1, method)
    skew = k3 / k2**1.5
    shape = 4.0 / (skew * skew)
    root = 1.0 - 1.0 / (9.0 * shape) + Z95 / (3.0 * math.sqrt(shape))
    q95 = k1 + math.sqrt(k2) * (root**3 - 1.0) * math.sqrt(shape)
    standard = 1.0 + (value - k1) / math.sqrt(k2 * shape)
    z = 3.0 * math.sqrt(shape) * (math.copysign(abs(standard) ** (1 / 3), standard) - 1.0 + 1 / (9 * shape))
    return Null(k1, q95, normal_cdf(-z), value - k1, method)


def simulated_null(draws: Floats, value: float) -> Null:
    """Null from draws of the statistic; p is ``(1 + draws >= value) / (1 + draws)``.

    Source: Broecker and Smith 2007; Vaicenavicius et al. 2019 (arXiv 1902.06977).
    """
    reached = int(np.count_nonzero(draws >= value - 1e-12))
    expectation = float(draws.mean())
    return Null(
        expectation,
        float(np.quantile(draws, 0.95)),
        (1 + reached) / (1 + len(draws)),
        value - expectation,
        f"{len(draws)} simulated",
    )


def calibrated_hits(n: Floats, confidence: Floats, *, seed: int = 0) -> Floats:
    """Right answers of each group of equal confidence, drawn as if every confidence were true.

    Parameters
    ----------
    n, confidence : array, shape (groups,)
    seed : int

    Returns
    -------
    array, shape (draws, groups)
        From 200 to 1,000 draws, fewer for more groups.
    """
    draws = min(MOST_DRAWS, max(FEWEST_DRAWS, MOST_CELLS // max(1, len(n))))
    rng = generator(seed, "calibrated")
    shape = (draws, len(n))
    if n.max(initial=1.0) <= 1.0:
        return (rng.random(shape) < confidence).astype(np.float64)
    return rng.binomial(n.astype(np.int64), confidence, shape).astype(np.float64)


def by_blocks(statistic: Callable[[Floats], Floats], hits: Floats, most: int = MOST_CELLS) -> Floats:
    """A statistic of many draws, some of them at a time so that memory stays bounded."""
    step = max(1, most // max(1, hits.shape[1]))
    return np.concatenate([statistic(hits[at : at + step]) for at in range(0, len(hits), step)])
