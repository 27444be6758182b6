"""Index arithmetic for groups and ragged runs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def ragged(starts: NDArray[np.int64], sizes: NDArray[Any]) -> NDArray[np.int64]:
    """Flat positions of runs that begin at `starts` and hold `sizes` items.

    >>> ragged(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    ends = np.cumsum(sizes, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    flat: NDArray[np.int64] = np.arange(total) + np.repeat(starts - (ends - sizes), sizes)
    return flat


def distinct(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distinct values in order, and how often each occurs; by sorting, which beats hashing here."""
    ordered = np.sort(values)
    starts = np.flatnonzero(np.concatenate((np.ones(min(1, len(values)), bool), ordered[1:] != ordered[:-1])))
    return ordered[starts], np.diff(np.concatenate((starts, [len(values)])))


def first_positions(sorted_codes: NDArray[Any], groups: int) -> NDArray[np.int64]:
    """Where each group begins in codes that are sorted, and the total: shape (groups + 1,)."""
    return np.concatenate(([0], np.cumsum(np.bincount(sorted_codes, minlength=groups))))


def group_order(codes: NDArray[Any], groups: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Stable order by group, and where each group begins and ends.

    Parameters
    ----------
    codes : int array, shape (n,)
        From 0 to groups - 1; negative codes belong to no group and are left out.
    groups : int

    Returns
    -------
    (order, bounds)
        ``order[bounds[g]:bounds[g + 1]]`` are the positions of group g, ascending.
    """
    # Sorting 16-bit codes is a radix sort, many times faster than comparing.
    keys = codes.astype(np.int16) if groups < 32_000 else codes
    order = np.argsort(keys, kind="stable")
    left_out, *counts = np.bincount(keys + 1, minlength=groups + 1).tolist()
    return order[left_out:], np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
