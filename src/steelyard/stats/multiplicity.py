"""Many tests at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def benjamini_hochberg(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """False discovery rate at which each test is first rejected (q-values).

    Parameters
    ----------
    p : array, shape (m,)
        In [0, 1], independent or positively dependent.

    Returns
    -------
    array, shape (m,)
        In the order of `p`; empty input gives an empty array. Source: Benjamini and Hochberg 1995.
    """
    m = len(p)
    order = np.argsort(p, kind="stable")
    stepped = p[order] * m / np.arange(1, m + 1)
    q = np.empty(m)
    q[order] = np.minimum(1.0, np.minimum.accumulate(stepped[::-1])[::-1])
    return q


def benjamini_yekutieli(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """As `benjamini_hochberg`, valid under any dependence, as of slices that overlap.

    Source: Benjamini and Yekutieli 2001.
    """
    harmonic = float((1.0 / np.arange(1, len(p) + 1)).sum())
    return np.minimum(1.0, benjamini_hochberg(p) * harmonic)


def holm(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """P-values adjusted so that any false rejection is as rare as one test's, under any dependence.

    Parameters
    ----------
    p : array, shape (m,)
        In [0, 1].

    Returns
    -------
    array, shape (m,)
        In the order of `p`; empty input gives an empty array. Source: Holm 1979.
    """
    m = len(p)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(m)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(m, 0, -1)))
    return adjusted
