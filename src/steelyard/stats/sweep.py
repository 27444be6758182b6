"""Calibration error over as many bins as the data can order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from steelyard.stats.bins import equal_mass_index
from steelyard.stats.ranking import level_sizes

Floats = NDArray[np.float64]
MOST_BINS = 100


def sweep_errors(accepted: Floats, confidence: Floats, draws: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Calibration error of each row of hits over its own number of equal-mass bins.

    Parameters
    ----------
    accepted, confidence : array, shape (levels,)
        Running counts and confidences, falling.
    draws : array, shape (rows, levels)
        Right answers of each level.

    Returns
    -------
    (array, int array), shape (rows,) each
        Errors, and the bins used: the last number, from 1 up to 100, before accuracies stop rising
        with confidence. Source: Roelofs et al. 2022 (arXiv 2012.08668).
    """
    rows, n = len(draws), accepted[-1]
    running = np.concatenate((np.zeros((rows, 1)), np.cumsum(draws, axis=1)), axis=1)
    reach = np.concatenate(([0.0], accepted))
    stated = np.concatenate(([0.0], np.cumsum(level_sizes(accepted) * confidence)))
    error, used = np.empty(rows), np.zeros(rows, np.int64)
    going = np.arange(rows)
    for bins in range(1, min(MOST_BINS, len(accepted)) + 1):
        found = equal_mass_index(accepted, bins)
        ends = np.concatenate(([0], np.flatnonzero(found[1:] != found[:-1]) + 1, [len(found)]))
        hits = np.diff(running[going[:, None], ends], axis=1)
        rate = hits / np.diff(reach[ends])
        ordered = np.all(rate[:, 1:] <= rate[:, :-1], axis=1)
        going, hits = going[ordered], hits[ordered]
        if not len(going):
            break
        error[going] = np.abs(hits - np.diff(stated[ends])).sum(axis=1) / n
        used[going] = bins
    return error, used
