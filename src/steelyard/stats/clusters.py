"""Means and rates whose observations come in clusters."""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import NDArray

from steelyard.stats.proportions import LEVEL, wilson
from steelyard.stats.special import t_quantile

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_PLENTY = 1_000_000


class Clusters:
    """Which answers belong together: answer i to cluster ``codes[i]``.

    Parameters
    ----------
    codes : int array, shape (n,)
        In any order; fast when equal codes are neighbours in ascending order, as cases are.
    """

    __slots__ = ("_compact", "_order", "_starts", "n")

    def __init__(self, codes: Ints) -> None:
        self.n = len(codes)
        self._compact: Ints | None = None
        self._order: Ints | None = None
        if np.any(codes[1:] < codes[:-1]):
            self._order = np.argsort(codes, kind="stable")
            codes = codes[self._order]
        first = np.ones(min(1, self.n), bool)
        self._starts = np.flatnonzero(np.concatenate((first, codes[1:] != codes[:-1])))

    def __len__(self) -> int:
        return len(self._starts)

    @property
    def alone(self) -> bool:
        """Whether every answer is a cluster of its own."""
        return len(self._starts) == self.n

    @property
    def compact(self) -> Ints:
        """The same clusters as codes from 0, none left out, shape (n,)."""
        if self._compact is None:
            sizes = np.diff(np.concatenate((self._starts, [self.n])))
            codes = np.repeat(np.arange(len(self)), sizes)
            if self._order is not None:
                codes[self._order] = codes.copy()
            self._compact = codes
        return self._compact

    def sums(self, values: Floats) -> Floats:
        """Sum of `values` in each cluster, in ascending order of code."""
        if self._order is not None:
            values = values[self._order]
        return values if self.alone else np.add.reduceat(values, self._starts)


class Spread(msgspec.Struct, frozen=True):
    """How sure a clustered mean is.

    Attributes
    ----------
    mean : float
    n, clusters : int
    se : float
        Cluster-robust standard error of the mean; 0 with fewer than two clusters.
    deff : float
        Design effect, at least 1: variance with clusters over variance without.
    """

    mean: float
    n: int
    clusters: int
    se: float
    deff: float


def cluster_spread(values: Floats, clusters: Clusters) -> Spread:
    """Mean of `values` with a standard error that knows about clusters.

    Parameters
    ----------
    values : array, shape (n,)
        n >= 1, finite.
    clusters : Clusters
        Of n answers.

    Returns
    -------
    Spread
        Source: SE^2 = G/(G-1) / n^2 * sum over clusters of (sum of deviations)^2, as in Miller 2024
        (arXiv 2411.00640); deff = SE^2 / SE_iid^2.
    """
    n, groups = len(values), len(clusters)
    mean = float(values.sum() / n)
    if groups < 2:
        return Spread(mean, n, groups, 0.0, 1.0)
    deviations = values - mean
    # No BLAS here: its threads would spin for nothing.
    square = float((deviations * deviations).sum())
    return spread_from(mean, square, n, None if clusters.alone else clusters.sums(deviations))


def spread_from(mean: float, square: float, n: int, sums: Floats | None, groups: int = 0) -> Spread:
    """Spread of a mean from sums of its deviations.

    Parameters
    ----------
    mean, square : float
        Of n values, n >= 2; `square` is the sum of their squared deviations.
    n : int
    sums : array or None
        Sum of deviations of each cluster; None where each value is one.
    groups : int
        How many of `sums` stand for a cluster; by default all.
    """
    plain = square / (n - 1) / n
    if sums is None:
        return Spread(mean, n, n, math.sqrt(plain), 1.0)
    groups = groups or len(sums)
    variance = groups / (groups - 1) * float((sums * sums).sum()) / n**2
    deff = max(1.0, variance / plain) if plain > 0 else n / groups
    return Spread(mean, n, groups, math.sqrt(variance), deff)


def influence_variance(influence: Floats, clusters: Clusters) -> float:
    """Variance of a statistic from the influence of each answer on it.

    Parameters
    ----------
    influence : array, shape (n,)
        Sums to zero.
    clusters : Clusters

    Returns
    -------
    float
        ``G/(G-1) / n^2 * sum over clusters of (sum of influences)^2``; 0 with one cluster. Source:
        Hampel 1974, clusters as in `cluster_spread`.
    """
    sums, groups = clusters.sums(influence), len(clusters)
    return groups / (groups - 1) * float((sums * sums).sum()) / len(influence) ** 2 if groups > 1 else 0.0


def mean_interval(spread: Spread, level: float = LEVEL) -> tuple[float, float] | None:
    """Cluster-robust t interval of a mean; None with fewer than two clusters.

    >>> mean_interval(Spread(0.5, 10, 1, 0.0, 1.0)) is None
    True
    """
    if spread.clusters < 2:
        return None
    half = t_quantile(0.5 + level / 2, spread.clusters - 1) * spread.se
    return spread.mean - half, spread.mean + half


def rate_interval(spread: Spread, level: float = LEVEL) -> tuple[float, float]:
    """Wilson interval of a rate on its effective n, `n / deff`.

    With clusters of several answers the normal quantile gives way to Student's, as their number
    and not the number of answers says how well the design effect is known.

    Returns
    -------
    (float, float)
        Inside [0, 1]. Source: Wilson 1927; effective n as in Kish 1965.
    """
    df = spread.clusters - 1 if 1 < spread.clusters < spread.n else _PLENTY
    effective = spread.n / spread.deff if spread.clusters > 1 else 1.0
    z = t_quantile(0.5 + level / 2, df)
    return wilson(spread.mean, effective, z)
