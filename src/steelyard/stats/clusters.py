"""Means and rates whose observations come in clusters."""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import NDArray

from steelyard.stats.special import t_quantile

LEVEL = 0.95


class Spread(msgspec.Struct, frozen=True):
    """How sure a clustered mean is.

    Attributes
    ----------
    mean : float
    n, clusters : int
    se : float
        Cluster-robust standard error of the mean.
    deff : float
        Design effect, at least 1: variance with clusters over variance without.
    """

    mean: float
    n: int
    clusters: int
    se: float
    deff: float


def cluster_spread(values: NDArray[np.float64], clusters: NDArray[np.int64]) -> Spread:
    """Mean of `values` with a standard error that knows about clusters.

    Parameters
    ----------
    values : array, shape (n,)
        n >= 1, finite.
    clusters : array of int, shape (n,)
        Cluster of each value.

    Returns
    -------
    Spread
        `se` is 0 with fewer than two clusters. Source: SE^2 = G/(G-1) / n^2 * sum over clusters of
        (sum of deviations)^2, as in Miller 2024 (arXiv 2411.00640); deff = SE^2 / SE_iid^2.
    """
    n = len(values)
    mean = float(values.sum() / n)
    sums = cluster_sums(values - mean, clusters)
    groups = len(sums)
    if groups < 2:
        return Spread(mean, n, groups, 0.0, 1.0)
    # No BLAS here: its threads would spin for nothing.
    variance = groups / (groups - 1) * float((sums * sums).sum()) / n**2
    if groups == n:
        return Spread(mean, n, groups, math.sqrt(variance), 1.0)
    plain = float(((values - mean) ** 2).sum()) / (n - 1) / n
    deff = max(1.0, variance / plain) if plain > 0 else n / groups
    return Spread(mean, n, groups, math.sqrt(variance), deff)


def count_clusters(clusters: NDArray[np.int64]) -> int:
    """Distinct clusters; fast when they come in order, as cases do."""
    if len(clusters) == 0:
        return 0
    if np.any(clusters[1:] < clusters[:-1]):
        clusters = np.sort(clusters)
    return 1 + int(np.count_nonzero(clusters[1:] != clusters[:-1]))


def cluster_sums(values: NDArray[np.float64], clusters: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sum of `values` in each cluster, in order of cluster code."""
    if len(values) == 0:
        return np.empty(0)
    if np.any(clusters[1:] < clusters[:-1]):
        order = np.argsort(clusters, kind="stable")
        values, clusters = values[order], clusters[order]
    starts = np.flatnonzero(np.concatenate(([True], clusters[1:] != clusters[:-1])))
    return np.add.reduceat(values, starts)


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
    df = spread.clusters - 1 if 1 < spread.clusters < spread.n else 1_000_000
    effective = spread.n / spread.deff if spread.clusters > 1 else 1.0
    z = t_quantile(0.5 + level / 2, df)
    return wilson(spread.mean, effective, z)


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
