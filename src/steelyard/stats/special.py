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
    d = 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > _TINY else _TINY)
    h = d
    for m in range(1, 10_000):
        twice = a + 2 * m
        even = m * (b - m) * x / ((twice - 1.0) * twice)
        odd = -(a + m) * (a + b + m) * x / (twice * (twice + 1.0))
        for step in (even, odd):
            d = 1.0 + step * d
            d = 1.0 / (d if abs(d) > _TINY else _TINY)
            c = 1.0 + step / c
            if abs(c) < _TINY:
                c = _TINY
            h *= d * c
        if abs(d * c - 1.0) < _EPS:
            break
    return h


def t_cdf(t: float, df: float) -> float:
    """Distribution function of Student's t with `df` > 0 degrees of freedom."""
    tail = 0.5 * beta_cdf(df / (df + t * t), 0.5 * df, 0.5)
    return 1.0 - tail if t > 0 else tail


@lru_cache(maxsize=4096)
def t_quantile(p: float, df: int) -> float:
    """Quantile of Student's t, by Newton steps to about 1e-12.

    Parameters
    ----------
    p : float
        In (0.5, 1).
    df : int
        Degrees of freedom, at least 1. One and two have closed forms; beyond, the start is the
        Cornish-Fisher expansion (Abramowitz and Stegun 26.7.5).
    """
    if df == 1:
        return math.tan(math.pi * (p - 0.5))
    if df == 2:
        return (2 * p - 1) * math.sqrt(2 / (4 * p * (1 - p)))
    z = normal_quantile(p)
    t = z + (z**3 + z) / (4 * df) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * df**2)
    scale = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - 0.5 * math.log(df * math.pi)
    for _ in range(50):
        density = math.exp(scale - (df + 1) / 2 * math.log1p(t * t / df))
        step = (t_cdf(t, df) - p) / density
        # The distribution is concave here, so a step never overshoots downwards by more than t.
        t -= max(-t, min(step, t / 2))
        if abs(step) < 1e-12 * t:
            break
    return t


def normal_cdf(x: float) -> float:
    """Distribution function of the standard normal."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def beta_quantile(p: float, a: float, b: float) -> float:
    """Quantile of the beta distribution, `p` in [0, 1], by Newton steps kept inside a bracket.

    The start is the normal approximation of Abramowitz and Stegun 26.5.22 where it applies.
    """
    if p <= 0.0 or p >= 1.0:
        return float(p >= 1.0)
    low, high, x = 0.0, 1.0, a / (a + b)
    if a > 1.0 and b > 1.0:
        z = normal_quantile(1.0 - p) if p > 0.5 else -normal_quantile(p)
        over, under = 1.0 / (2.0 * a - 1.0), 1.0 / (2.0 * b - 1.0)
        mean, part = 2.0 / (over + under), (z * z - 3.0) / 6.0
        w = z * math.sqrt(mean + part) / mean if mean + part > 0 else 0.0
        w -= (under - over) * (part + 5.0 / 6.0 - 2.0 / (3.0 * mean))
        x = a / (a + b * math.exp(2.0 * w))
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    for _ in range(200):
        miss = beta_cdf(x, a, b) - p
        low, high = (low, x) if miss > 0 else (x, high)
        density = math.exp(scale + (a - 1.0) * math.log(x) + (b - 1.0) * math.log1p(-x))
        new = x - miss / density if density > 0 else -1.0
        if not low < new < high:
            new = 0.5 * (low + high)
        x, moved = new, abs(new - x)
        if moved <= 1e-14 * x or high - low <= 1e-16 * high:
            break
    return x
