"""The few special functions the intervals need."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

_TINY = 1e-300
_EPS = 1e-15


def normal_quantile(p: float) -> float:
    """Quantile of the standard normal, `p` in (0, 1)."""
    return NormalDist().inv_cdf(p)


def beta_cdf(x: float, a: float, b: float) -> float:
    """Regularised incomplete beta function I_x(a, b).

    Parameters
    ----------
    x : float
        In [0, 1].
    a, b : float
        Positive.

    Returns
    -------
    float
        In [0, 1], to about 1e-14. Source: continued fraction of DLMF 8.17.22, evaluated by Lentz's
        method as modified by Thompson and Barnett.
    """
    if x <= 0.0 or x >= 1.0:
        return float(x >= 1.0)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    if x < (a + 1.0) / (a + b + 2.0):
        return front * _beta_fraction(x, a, b) / a
    return 1.0 - front * _beta_fraction(1.0 - x, b, a) / b


def _beta_fraction(x: float, a: float, b: float) -> float:
    c = 1.0
    d = 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1.0))
    h = d
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for step in (even, odd):
            d = 1.0 / _away_from_zero(1.0 + step * d)
            c = _away_from_zero(1.0 + step / c)
            h *= d * c
        if abs(d * c - 1.0) < _EPS:
            break
    return h


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def t_cdf(t: float, df: float) -> float:
    """Distribution function of Student's t with `df` > 0 degrees of freedom."""
    tail = 0.5 * beta_cdf(df / (df + t * t), 0.5 * df, 0.5)
    return 1.0 - tail if t > 0 else tail


@lru_cache(maxsize=4096)
def t_quantile(p: float, df: int) -> float:
    """Quantile of Student's t, by bisection to 1e-12.

    Parameters
    ----------
    p : float
        In (0.5, 1).
    df : int
        Degrees of freedom, at least 1.
    """
    low, high = 0.0, 2.0
    while t_cdf(high, df) < p:
        high *= 2.0
    while high - low > 1e-12 * max(1.0, high):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if t_cdf(middle, df) < p else (low, middle)
    return 0.5 * (low + high)
