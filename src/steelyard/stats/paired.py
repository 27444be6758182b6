"""Two engines on the same cases: is one better?"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from steelyard.stats.bootstrap import generator
from steelyard.stats.proportions import LEVEL, binomial_cdf
from steelyard.stats.special import normal_quantile

CHUNK = 1 << 18
EXACT_CASES = 16
"""Up to this many cases that differ, all sign patterns are gone through."""


def mcnemar_exact(gains: int, losses: int) -> float:
    """Two-sided p of the exact McNemar test: are gains and losses equally likely?

    Parameters
    ----------
    gains, losses : int
        Cases only one of the two got right.

    Returns
    -------
    float
        In (0, 1]; 1 when nothing differs. Source: McNemar 1947, with the exact binomial.
    """
    n = gains + losses
    return min(1.0, 2.0 * binomial_cdf(min(gains, losses), n, 0.5)) if n else 1.0


def mcnemar_mid_p(gains: int, losses: int) -> float:
    """As `mcnemar_exact`, counting half of the observed outcome: closer to its nominal size.

    Source: Fagerland, Lydersen and Laake 2013.
    """
    n, least = gains + losses, min(gains, losses)
    if not n:
        return 1.0
    log_point = math.lgamma(n + 1) - math.lgamma(least + 1) - math.lgamma(n - least + 1) - n * math.log(2.0)
    return min(1.0, 2.0 * binomial_cdf(least, n, 0.5) - math.exp(log_point))


def sign_flip(differences: NDArray[np.float64], *, resamples: int = 9999, seed: int = 0) -> float:
    """Two-sided p of a permutation test: the sign of each case's difference is flipped at random.

    Parameters
    ----------
    differences : array, shape (cases,)
        Sum of each case's paired differences.
    resamples, seed : int
        Used with more than 16 cases that differ; with fewer, every pattern is gone through.

    Returns
    -------
    float
        In (0, 1]; 1 when nothing differs. Source: Fisher 1935; Phipson and Smyth 2010 for the
        ``(1 + k) / (1 + resamples)``.
    """
    moved = differences[differences != 0]
    if not len(moved):
        return 1.0
    size = np.abs(moved)
    reached = abs(float(moved.sum())) - 1e-12 * float(size.sum())
    if len(moved) <= EXACT_CASES:
        patterns = np.arange(1 << len(moved))[:, None] >> np.arange(len(moved)) & 1
        sums = ((2.0 * patterns - 1.0) * size).sum(axis=1)
        return float(np.count_nonzero(np.abs(sums) >= reached) / len(sums))
    rng = generator(seed, "sign_flip")
    total, k = float(size.sum()), 0
    # Cases of the same size are interchangeable: how many of them flip is all that matters.
    sizes, counts = np.unique(size, return_counts=True)
    step = max(1, CHUNK // len(sizes))
    for start in range(0, resamples, step):
        drawn = rng.binomial(counts, 0.5, (min(step, resamples - start), len(sizes)))
        k += int(np.count_nonzero(np.abs(2.0 * (drawn * sizes).sum(axis=1) - total) >= reached))
    return float((1 + k) / (1 + resamples))


def tango_interval(gains: int, losses: int, n: int, level: float = LEVEL) -> tuple[float, float]:
    """Score interval of ``(gains - losses) / n``, the difference of two paired rates.

    Parameters
    ----------
    gains, losses, n : int
        Cases only one of the two got right, and all cases, n >= 1.
    level : float

    Returns
    -------
    (float, float)
        Inside [-1, 1]. Source: Tango 1998; the bounds are found by bisection on the score.
    """
    z = normal_quantile(0.5 + level / 2)
    value = (gains - losses) / n

    def beyond(delta: float) -> float:
        return abs(_score(gains, losses, n, delta)) - z

    return _crossing(beyond, value, -1.0), _crossing(beyond, value, 1.0)


def _score(gains: int, losses: int, n: int, delta: float) -> float:
    """Score statistic of the hypothesis that the difference is `delta`."""
    a = 2.0 * n
    b = -gains - losses + (2.0 * n - gains + losses) * delta
    c = -losses * delta * (1.0 - delta)
    likeliest = (math.sqrt(max(0.0, b * b - 4.0 * a * c)) - b) / (2.0 * a)
    variance = n * (2.0 * likeliest + delta * (1.0 - delta))
    distance = gains - losses - n * delta
    if variance <= 0.0:
        return 0.0 if distance == 0 else math.copysign(math.inf, distance)
    return distance / math.sqrt(variance)


def _crossing(beyond: Callable[[float], float], inside: float, outside: float) -> float:
    if beyond(outside) <= 0:
        return outside
    for _ in range(80):
        middle = 0.5 * (inside + outside)
        inside, outside = (inside, middle) if beyond(middle) > 0 else (middle, outside)
    return 0.5 * (inside + outside)
