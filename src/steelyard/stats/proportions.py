"""Binomial probabilities and intervals for rates of independent answers."""

from __future__ import annotations

import math

from steelyard.stats.special import beta_cdf, beta_quantile

LEVEL = 0.95


def wilson(rate: float, n: float, z: float) -> tuple[float, float]:
    """Wilson score interval.

    Parameters
    ----------
    rate : float
        Observed, in [0, 1].
    n : float
        Observations, possibly effective, above 0.
    z : float
        Normal or t quantile.
    """
    denominator = 1.0 + z * z / n
    centre = (rate + z * z / (2 * n)) / denominator
    half = z / denominator * math.sqrt(rate * (1.0 - rate) / n + z * z / (4 * n * n))
    # Rounding must not push the bounds past the rate itself at 0 and 1.
    return min(rate, max(0.0, centre - half)), max(rate, min(1.0, centre + half))


def binomial_cdf(k: int, n: int, p: float) -> float:
    """P(X <= k) of n independent trials of probability `p`; 0 below 0 and 1 from n on."""
    if k < 0:
        return 0.0
    return 1.0 if k >= n else beta_cdf(1.0 - p, n - k, k + 1.0)


def binomial_tail(k: int, n: int, p: float) -> float:
    """P(X >= k) of n independent trials of probability `p`, exact in both tails."""
    if k <= 0:
        return 1.0
    return 0.0 if k > n else beta_cdf(p, k, n - k + 1.0)


def clopper_pearson(k: int, n: int, level: float = LEVEL) -> tuple[float, float]:
    """Exact interval of a rate: it covers with at least `level` whatever the rate is.

    Parameters
    ----------
    k, n : int
        Successes among trials, 0 <= k <= n and n >= 1.
    level : float
        In (0, 1).

    Returns
    -------
    (float, float)
        Source: Clopper and Pearson 1934.
    """
    tail = 0.5 * (1.0 - level)
    return risk_lower_bound(k, n, tail), risk_upper_bound(k, n, tail)


def risk_upper_bound(errors: int, n: int, delta: float) -> float:
    """Bound that a rate exceeds with probability at most `delta`; 1 when nothing was tried.

    Zero errors in 59 trials bound the rate by 0.05 at delta 0.05:

    >>> round(risk_upper_bound(0, 59, 0.05), 4), risk_upper_bound(0, 0, 0.05)
    (0.0495, 1.0)
    """
    return 1.0 if errors >= n else beta_quantile(1.0 - delta, errors + 1.0, n - errors)


def risk_lower_bound(errors: int, n: int, delta: float) -> float:
    """Bound that a rate falls below with probability at most `delta`."""
    return 0.0 if errors <= 0 else beta_quantile(delta, errors, n - errors + 1.0)


def jeffreys(k: int, n: int, level: float = LEVEL) -> tuple[float, float]:
    """Interval of a rate from the beta(1/2, 1/2) prior; 0 and 1 are kept where k is 0 or n.

    Source: Brown, Cai and DasGupta 2001.
    """
    tail = 0.5 * (1.0 - level)
    low = 0.0 if k == 0 else beta_quantile(tail, k + 0.5, n - k + 0.5)
    high = 1.0 if k == n else beta_quantile(1.0 - tail, k + 0.5, n - k + 0.5)
    return low, high
