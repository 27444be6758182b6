"""Whole cases resampled: the interval of last resort, and the oracle of the fast ones."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from steelyard.stats.proportions import LEVEL
from steelyard.stats.special import normal_cdf, normal_quantile

Floats = NDArray[np.float64]


def generator(seed: int, name: str) -> np.random.Generator:
    """Random numbers of one metric: the same whatever else is computed, in whatever order."""
    digest = hashlib.sha256(name.encode()).digest()
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, *digest[:16]])))


def resampled_cases(cases: int, resamples: int, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Draws of `cases` cases with replacement, as positions."""
    for _ in range(resamples):
        yield rng.integers(cases, size=cases)


def bootstrap(
    statistic: Callable[[Floats], Sequence[float]],
    cases: int,
    *,
    resamples: int = 2000,
    seed: int = 0,
    name: str = "",
) -> Floats:
    """Statistics on resampled cases, all of them on the same resample.

    Parameters
    ----------
    statistic : callable
        From how often each case was drawn, shape (cases,), to m values.
    cases : int
        At least 1.
    resamples, seed : int
    name : str
        What the draws belong to; with `seed` it decides them.

    Returns
    -------
    array, shape (resamples, m)
        Source: Efron 1979; clusters as in Field and Welsh 2007.
    """
    draws = resampled_cases(cases, resamples, generator(seed, name))
    return np.array([statistic(np.bincount(drawn, minlength=cases).astype(np.float64)) for drawn in draws])


def bootstrap_ratio(
    numerators: Floats, denominators: Floats, *, resamples: int = 2000, seed: int = 0, name: str = ""
) -> Floats:
    """Ratios of sums on resampled cases: means and rates, and differences of paired ones.

    Parameters
    ----------
    numerators, denominators : array, shape (cases, m)
        Sums of each case.

    Returns
    -------
    array, shape (resamples, m)
        NaN where a resample leaves nothing to divide by.
    """
    found = np.full((resamples, numerators.shape[1]), np.nan)
    draws = resampled_cases(len(numerators), resamples, generator(seed, name))
    for at, drawn in enumerate(draws):
        below = denominators[drawn].sum(axis=0)
        np.divide(numerators[drawn].sum(axis=0), below, out=found[at], where=below != 0)
    return found


def percentile_interval(draws: Floats, level: float = LEVEL) -> tuple[float, float] | None:
    """Middle `level` of the draws; None without two finite ones."""
    return _quantiles(draws, 0.5 - level / 2, 0.5 + level / 2)


def bca_interval(
    draws: Floats, value: float, influence: Floats, level: float = LEVEL
) -> tuple[float, float] | None:
    """Bias-corrected and accelerated interval.

    Parameters
    ----------
    draws : array, shape (resamples,)
    value : float
        The statistic on the data itself.
    influence : array, shape (cases,)
        Influence of each case, or its jackknife deviations (mean less value without the case).
    level : float

    Returns
    -------
    (float, float) or None
        The percentile interval where all draws lie on one side of the value. Source: Efron 1987.
    """
    finite = draws[np.isfinite(draws)]
    if len(finite) < 2:
        return None
    below = (np.count_nonzero(finite < value) + 0.5 * np.count_nonzero(finite == value)) / len(finite)
    spread = float((influence**2).sum())
    if not 0.0 < below < 1.0 or spread == 0.0:
        return percentile_interval(draws, level)
    bias = normal_quantile(below)
    speed = float((influence**3).sum()) / (6.0 * spread**1.5)
    low, high = (
        normal_cdf(bias + (bias + z) / (1.0 - speed * (bias + z)))
        for z in (normal_quantile(0.5 - level / 2), normal_quantile(0.5 + level / 2))
    )
    return _quantiles(finite, low, high)


def _quantiles(draws: Floats, low: float, high: float) -> tuple[float, float] | None:
    finite = draws[np.isfinite(draws)]
    if len(finite) < 2:
        return None
    found = np.quantile(finite, [low, high])
    return float(found[0]), float(found[1])


def jackknife_ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Deviations of a ratio of sums as each case is left out, shape (cases,)."""
    left = (numerator.sum() - numerator) / (denominator.sum() - denominator)
    deviations: Floats = left.mean() - left
    return deviations
