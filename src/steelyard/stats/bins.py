"""Bins of confidence: equal width with the field's edges, and equal mass with ties kept whole."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from steelyard.stats.clusters import Clusters
from steelyard.stats.grouping import group_order
from steelyard.stats.nulls import Null, half_normal_null
from steelyard.stats.ranking import level_sizes

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.integer[Any]]


def bin_index(confidence: Floats, bins: int) -> Ints:
    """Bin of each confidence: (lo, hi], the first closed at 0.

    Parameters
    ----------
    confidence : array, shape (n,)
        In [0, 1]; anything else, NaN among it, gets -1 and is in no bin.
    bins : int
        At least 1.

    Returns
    -------
    array of int, shape (n,)
        Equal to a search of ``linspace(0, 1, bins + 1)``, neighbours of every edge included.
    """
    edges = np.linspace(0.0, 1.0, bins + 1)
    found = np.searchsorted(edges, confidence, side="left") - 1
    found[confidence == 0.0] = 0
    found[~((confidence >= 0.0) & (confidence <= 1.0))] = -1
    return found


def equal_mass_index(accepted: Floats, bins: int) -> Ints:
    """Bin of each level of equal confidence, so that bins hold equal shares of the answers.

    Parameters
    ----------
    accepted : array, shape (levels,)
        Running counts of answers.
    bins : int
        At least 1; some stay empty where one level holds more than a bin's share.

    Returns
    -------
    array of int, shape (levels,)
        Non-decreasing; a level goes where its middle answer falls.
    """
    middle = accepted - 0.5 * level_sizes(accepted)
    found: Ints = np.minimum((bins * middle / accepted[-1]).astype(np.int64), bins - 1)
    return found


def expected_calibration_error(
    confidence: Floats, correct: Floats, bins: int = 15, found: Codes | None = None
) -> float:
    """Expected calibration error over equal-width bins.

    Parameters
    ----------
    confidence, correct : array, shape (n,)
        n >= 1. Confidences outside [0, 1] fall in no bin but stay in n.
    bins : int
        At least 1.
    found : array of int, optional
        `bin_index` of the confidences, where it is known already.

    Returns
    -------
    float
        In [0, 1]. Source: Naeini et al. 2015; sum over bins of n_b/n |mean confidence - accuracy|.
    """
    found = bin_index(confidence, bins) if found is None else found
    order, ends = group_order(found, bins)
    confidence, correct = confidence[order], correct[order]
    total, n = 0.0, len(found)
    for start, end in pairwise(ends.tolist()):
        if size := end - start:
            # The very sums and quotients of numpy's mean, without its overhead.
            stated, right = np.add.reduce(confidence[start:end]), np.add.reduce(correct[start:end])
            total += size / n * abs(float(stated) / size - float(right) / size)
    return total


def bin_spread(confidence: Floats, bins: int, found: Codes) -> Floats:
    """Standard deviation of each bin's count of right answers under perfect calibration.

    ``sqrt(sum of c (1 - c))`` over the bin; answers in no bin (code -1) are left out.
    """
    if len(found) and found.min() < 0:
        confidence, found = confidence[found >= 0], found[found >= 0]
    weights = confidence * (1.0 - confidence)
    spread: Floats = np.sqrt(np.bincount(found, weights=weights, minlength=bins))
    return spread


def binned_null(confidence: Floats, bins: int, found: Codes, value: float, deff: float = 1.0) -> Null:
    """Null of the calibration error `value` over bins, `deff` being the design effect inside them."""
    spread = bin_spread(confidence, bins, found) * (math.sqrt(deff) / len(confidence))
    return half_normal_null(spread, value)


def within_bins_deff(residual: Floats, codes: Ints, found: Codes, bins: int) -> float:
    """Design effect of residuals inside their bins: how much answers of one case hang together there.

    Parameters
    ----------
    residual : array, shape (n,)
        Correct less confidence.
    codes, found : int arrays, shape (n,)
        Case and bin of each answer, from 0.

    Returns
    -------
    float
        At least 1: the variance of bin sums with cases over that without.
    """
    sizes = np.bincount(found, minlength=bins)
    means = np.bincount(found, weights=residual, minlength=bins) / np.maximum(sizes, 1)
    residual = residual - means[found]
    plain = float((residual * residual).sum())
    if plain <= 0.0:
        return 1.0
    key = codes * bins + found
    # A table of every case and bin is small beside sorting, unless bins are many.
    few = int(key.max()) < 32 * len(key) + 1000
    sums = np.bincount(key, weights=residual) if few else Clusters(key).sums(residual)
    return max(1.0, float((sums * sums).sum()) / plain)


class Binned(msgspec.Struct, frozen=True, eq=False):
    """Sums over the answers of each bin that holds any, shape (bins,) each.

    `spread` is the variance of `hits` under perfect calibration: the sum of c (1 - c).
    """

    n: Floats
    confidence: Floats
    hits: Floats
    spread: Floats

    @property
    def gap(self) -> Floats:
        """Accuracy less mean confidence."""
        return (self.hits - self.confidence) / self.n

    def error(self) -> float:
        """Sum over bins of their share times the absolute gap."""
        return float(np.abs(self.hits - self.confidence).sum() / self.n.sum())

    def null(self, deff: float = 1.0) -> Null:
        """What `error` would be of a perfectly calibrated model."""
        return half_normal_null(np.sqrt(self.spread * deff) / float(self.n.sum()), self.error())


def binned(found: Codes, n: Floats, confidence: Floats, hits: Floats, bins: int) -> Binned:
    """Sum groups of equal confidence over bins.

    Parameters
    ----------
    found : int array, shape (groups,)
        Bin of each group.
    n, confidence, hits : array, shape (groups,)
        Answers, their one confidence, and right ones.
    """
    columns = (n, n * confidence, hits, n * confidence * (1.0 - confidence))
    sums: list[Any] = [np.bincount(found, weights=column, minlength=bins) for column in columns]
    filled = sums[0] > 0
    return Binned(*(column[filled] for column in sums))


def debiased_square(table: Binned, deff: float = 1.0) -> tuple[float, float]:
    """Squared calibration error without the bias of small bins, and the standard error of chance.

    Parameters
    ----------
    table : Binned
    deff : float
        Design effect inside the bins: the noise of a bin's accuracy is that much larger.

    Returns
    -------
    (float, float)
        ``sum n_b/n (gap^2 - deff y (1 - y) / (n_b - 1))`` over bins of two answers or more; its sign
        is kept. The error is ``sqrt(sum 2 w^2 v^2)``, v being what was subtracted: what is left of
        it where gaps are nothing. Source: Broecker 2012; Ferro and Fricker 2012; Kumar, Liang and Ma
        2019 (arXiv 1909.10155).
    """
    kept = table.n >= 2
    if not kept.any():
        return 0.0, 0.0
    n, gap, rate = table.n[kept], table.gap[kept], table.hits[kept] / table.n[kept]
    share, noise = n / table.n.sum(), deff * rate * (1.0 - rate) / (n - 1.0)
    square = float((share * (gap**2 - noise)).sum())
    return square, math.sqrt(2.0 * float((share**2 * noise**2).sum()))


def square_influence(table: Binned, found: Codes, residual: Floats) -> Floats:
    """Influence of each answer on the squared calibration error, but for what chance adds to it.

    Parameters
    ----------
    table : Binned
    found : int array, shape (n,)
        Which row of `table` each answer is in.
    residual : array, shape (n,)
        Correct less confidence.
    """
    gap = table.gap
    influence = (2.0 * gap)[found] * residual - (gap**2)[found]
    centred: Floats = influence - influence.mean()
    return centred
