"""How many cases it takes to see something."""

from __future__ import annotations

import math
from collections.abc import Callable

from steelyard.stats.proportions import binomial_cdf, risk_upper_bound
from steelyard.stats.special import normal_cdf, normal_quantile

MOST = 10**9


def paired_cases(
    drop: float, discordance: float, *, power: float = 0.8, alpha: float = 0.05, deff: float = 1.0
) -> int:
    """Cases two engines must share for a difference of rates to show.

    Parameters
    ----------
    drop : float
        True difference, above 0 and at most `discordance`.
    discordance : float
        Share of cases only one of the two gets right, in (0, 1].
    power, alpha : float
        In (0, 1); the test is two-sided.
    deff : float
        Design effect of the differences, at least 1.

    Returns
    -------
    int
        ``(z_{1-alpha/2} sqrt(psi) + z_power sqrt(psi - d^2))^2 / d^2`` times `deff`, rounded up.
        Source: Connor 1987; Miettinen 1968.
    """
    return _up(deff * (_paired_root(discordance, drop, power, alpha) / drop) ** 2)


def _paired_root(discordance: float, drop: float, power: float, alpha: float) -> float:
    rest = max(0.0, discordance - drop * drop)
    return normal_quantile(1 - alpha / 2) * math.sqrt(discordance) + normal_quantile(power) * math.sqrt(rest)


def paired_power(n: int, drop: float, discordance: float, *, alpha: float = 0.05, deff: float = 1.0) -> float:
    """Chance that a difference shows on n shared cases: `paired_cases` the other way round."""
    rest = max(1e-300, discordance - drop * drop)
    reach = drop * math.sqrt(n / deff) - normal_quantile(1 - alpha / 2) * math.sqrt(discordance)
    return normal_cdf(reach / math.sqrt(rest))


def paired_mde(
    n: int, discordance: float, *, power: float = 0.8, alpha: float = 0.05, deff: float = 1.0
) -> float | None:
    """Smallest difference n shared cases show with that power; None when none can."""
    low, high = 0.0, discordance
    if paired_power(n, high, discordance, alpha=alpha, deff=deff) < power:
        return None
    for _ in range(60):
        middle = 0.5 * (low + high)
        enough = paired_power(n, middle, discordance, alpha=alpha, deff=deff) >= power
        low, high = (low, middle) if enough else (middle, high)
    return high


def unpaired_cases(
    rate: float, drop: float, *, power: float = 0.8, alpha: float = 0.05, deff: float = 1.0
) -> int:
    """Cases each of two independent sets needs for a drop from `rate` to show.

    Source: Fleiss, Levin and Paik 2003, without continuity correction.
    """
    lower = rate - drop
    middle = 0.5 * (rate + lower)
    root = normal_quantile(1 - alpha / 2) * math.sqrt(2.0 * middle * (1.0 - middle))
    root += normal_quantile(power) * math.sqrt(rate * (1.0 - rate) + lower * (1.0 - lower))
    return _up(deff * (root / drop) ** 2)


def unpaired_mde(
    n: int, rate: float, *, power: float = 0.8, alpha: float = 0.05, deff: float = 1.0
) -> float | None:
    """Smallest drop that n cases in each of two sets show; None when even a drop to 0 does not."""
    if unpaired_cases(rate, rate, power=power, alpha=alpha, deff=deff) > n:
        return None
    low, high = 0.0, rate
    for _ in range(60):
        middle = 0.5 * (low + high)
        enough = middle > 0 and unpaired_cases(rate, middle, power=power, alpha=alpha, deff=deff) <= n
        low, high = (low, middle) if enough else (middle, high)
    return high


def accepted_to_certify(limit: float, true_risk: float, *, power: float = 0.8, delta: float = 0.05) -> int:
    """Accepted answers it takes to show, with an exact bound, that their risk is at most `limit`.

    Parameters
    ----------
    limit : float
        In (0, 1).
    true_risk : float
        In [0, limit): what the risk really is.
    power : float
        Chance that the bound comes out.
    delta : float
        Chance the bound may be wrong.

    Returns
    -------
    int
        From it on, the power never falls below the one asked for by more than the bound's own steps.
        With a true risk of 0 it is ``ln delta / ln(1 - limit)``, rounded up.
    """

    def enough(m: int) -> bool:
        return certifying_power(m, limit, true_risk, delta) >= power

    return _least(enough)


def certifying_power(m: int, limit: float, true_risk: float, delta: float = 0.05) -> float:
    """Chance that m accepted answers bound the risk by `limit`, at confidence 1 - `delta`."""
    low, high = -1, m
    while high - low > 1:
        middle = (low + high) // 2
        fine = risk_upper_bound(middle, m, delta) <= limit
        low, high = (middle, high) if fine else (low, middle)
    return binomial_cdf(low, m, true_risk)


def _least(enough: Callable[[int], bool]) -> int:
    high = 1
    while not enough(high):
        high *= 2
        if high > MOST:
            return MOST
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _up(cases: float) -> int:
    return max(1, math.ceil(min(cases, float(MOST)) - 1e-9))
