"""Isotonic regression by pooling adjacent violators, many problems at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_PASSES = 64


def isotonic(sums: Floats, weights: Floats, problem: NDArray[np.int64] | None = None) -> Floats:
    """Non-decreasing least-squares fit to the means ``sums / weights``.

    Parameters
    ----------
    sums, weights : array, shape (n,)
        Weighted sum and weight (above 0) of each group of equal x, x ascending.
    problem : int array, shape (n,), optional
        Non-decreasing; entries of one code are one problem, fitted apart from the others.

    Returns
    -------
    array, shape (n,)
        Empty input gives an empty array. Source: Ayer et al. 1955. Runs of violators are pooled a
        pass at a time, which leaves the fit unique and needs few passes; what is left after 64 goes
        block by block.
    """
    n = len(sums)
    if n == 0:
        return np.empty(0)
    of = np.zeros(n, np.int64) if problem is None else problem
    first = np.arange(n)
    for _ in range(_PASSES):
        means = sums / weights
        kept = np.concatenate(([True], (means[:-1] < means[1:]) | (of[:-1] != of[1:])))
        if kept.all():
            break
        starts = np.flatnonzero(kept)
        sums, weights = np.add.reduceat(sums, starts), np.add.reduceat(weights, starts)
        of, first = of[starts], first[starts]
    else:
        means, first = _by_stack(sums, weights, of, first)
    return np.repeat(means, np.diff(np.concatenate((first, [n]))))


def _by_stack(
    sums: Floats, weights: Floats, of: NDArray[np.int64], first: NDArray[np.int64]
) -> tuple[Floats, NDArray[np.int64]]:
    stack: list[tuple[float, float, int, int]] = []
    for item in zip(sums.tolist(), weights.tolist(), of.tolist(), first.tolist(), strict=True):
        total, weight, code, start = item
        while stack and stack[-1][2] == code and stack[-1][0] / stack[-1][1] >= total / weight:
            above, more, _, start = stack.pop()
            total, weight = total + above, weight + more
        stack.append((total, weight, code, start))
    means = np.array([total / weight for total, weight, _, _ in stack])
    return means, np.array([start for *_, start in stack])
