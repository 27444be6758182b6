"""Sums that do not depend on the order of what is summed."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

_LARGEST = 2.0**20
_MOST = 1 << 31


def exact_sum(values: NDArray[np.float64]) -> float:
    """Sum rounded once, so that order does not show; equal to ``math.fsum``.

    Parameters
    ----------
    values : array, shape (n,)
        Finite. An empty array sums to 0.

    Notes
    -----
    Each number is split into multiples of 2^-30, of 2^-62 and a rest that is nearly always nothing.
    The first two are added as whole numbers, column by column.
    """
    if not len(values):
        return 0.0
    if len(values) > _MOST or not np.abs(values).max() < _LARGEST:
        return math.fsum(values.tolist())
    coarse = np.rint(values * 2.0**30)
    fine = (values - coarse * 2.0**-30) * 2.0**62
    whole = np.rint(fine)
    rest = fine - whole
    total = (int(coarse.astype(np.int64).sum()) << 32) + int(whole.astype(np.int64).sum())
    if rest.any():
        # Twice as fine again, which reaches below the last bit of any number that matters.
        extra = math.fsum(rest[rest != 0].tolist())
        return _rounded(total, extra)
    return total / 2**62


def _rounded(total: int, extra: float) -> float:
    numerator, denominator = extra.as_integer_ratio()
    return (total * denominator + numerator) / (2**62 * denominator)


def exact_mean(values: NDArray[np.float64]) -> float:
    """Mean of an exact sum; values must not be empty."""
    return exact_sum(values) / len(values)
