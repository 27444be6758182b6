"""Smooth calibration error: residuals under a kernel in place of bins."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
CELLS = 1024
"""Fewest cells of the grid on [0, 1]."""
MAX_CELLS = 1 << 14
_STEPS, _RUNGS = 34, 64


def smooth_calibration_error(confidence: Floats, residual: Floats, n: int) -> float:
    """Kernel calibration error at the bandwidth that equals it.

    Parameters
    ----------
    confidence : array, shape (groups,)
        In [0, 1], groups >= 1.
    residual : array, shape (groups,)
        Right answers less confidence, summed over answers of equal confidence.
    n : int
        Answers.

    Returns
    -------
    float
        In [0, 1]. Source: Blasiok and Nakkiran 2024 (arXiv 2309.12236): the integral over t of
        ``|mean of residual x K(t, confidence)|``, K a Gaussian reflected at 0 and 1, its width the
        fixed point. At least 20 cells lie in a width.
    """
    if np.any(confidence[1:] < confidence[:-1]):
        order = np.argsort(confidence, kind="stable")
        confidence, residual = confidence[order], residual[order]
    cells = CELLS
    while True:
        found = _fixed_point(grid_residuals(confidence, residual[None, :], cells)[0] / n)
        if cells >= MAX_CELLS or cells * found >= 20.0:
            return found
        cells *= 4


def grid_residuals(confidence: Floats, residual: Floats, cells: int) -> Floats:
    """Residuals shared between the two grid points beside each confidence.

    Parameters
    ----------
    confidence : array, shape (groups,)
        Ascending.
    residual : array, shape (rows, groups)
    cells : int

    Returns
    -------
    array, shape (rows, cells + 1)
    """
    at = confidence * cells
    low = np.minimum(at.astype(np.int64), cells - 1)
    share = at - low
    starts = np.flatnonzero(np.concatenate(([True], low[1:] != low[:-1])))
    mass = np.zeros((len(residual), cells + 1))
    mass[:, low[starts]] = np.add.reduceat(residual * (1.0 - share), starts, axis=1)
    mass[:, low[starts] + 1] += np.add.reduceat(residual * share, starts, axis=1)
    return mass


def _spectrum(mass: Floats) -> NDArray[np.complex128]:
    """Cosine terms of mass reflected at both ends: an even function of period 2.

    The end points meet their own image, so they count twice.
    """
    doubled = np.concatenate((mass, mass[:, -2:0:-1]), axis=1)
    cells = mass.shape[1] - 1
    doubled[:, 0] *= 2.0
    doubled[:, cells] *= 2.0
    return np.fft.rfft(doubled)


def _areas(spectrum: NDArray[np.complex128], damping: Floats) -> Floats:
    """Integral over [0, 1] of the absolute smoothed residual, shape (rows,)."""
    cells = spectrum.shape[1] - 1
    curve = np.abs(np.fft.irfft(spectrum * damping, n=2 * cells)[:, : cells + 1])
    found: Floats = curve.sum(axis=1) - 0.5 * (curve[:, 0] + curve[:, -1])
    return found


def _damping(width: Floats, cells: int) -> Floats:
    found: Floats = np.exp(-0.5 * (np.pi * np.arange(cells + 1) * width[:, None]) ** 2)
    return found


def _fixed_point(mass: Floats) -> float:
    cells, spectrum = len(mass) - 1, _spectrum(mass[None, :])
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        width = 0.5 * (low + high)
        above = _areas(spectrum, _damping(np.array([width]), cells))[0] > width
        low, high = (width, high) if above else (low, width)
    return 0.5 * (low + high)


def fixed_points(mass: Floats) -> Floats:
    """Smooth calibration error of many rows of residual mass, to about 1e-3 of itself.

    Parameters
    ----------
    mass : array, shape (rows, cells + 1)
        Residuals over n, on equally spaced points from 0 to 1.

    Returns
    -------
    array, shape (rows,)
        Found by halving a ladder of 64 widths, then between two rungs by a straight line.
    """
    cells, spectrum = mass.shape[1] - 1, _spectrum(mass)
    widths = np.geomspace(0.25 / cells, 1.0, _RUNGS + 1)
    table = _damping(widths, cells)
    low, high = np.zeros(len(mass), np.int64), np.full(len(mass), _RUNGS)
    for _ in range(_RUNGS.bit_length() - 1):
        middle = (low + high) // 2
        above = _areas(spectrum, table[middle]) > widths[middle]
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    over = _areas(spectrum, table[low]) - widths[low]
    under = widths[high] - _areas(spectrum, table[high])
    share = np.clip(over / np.maximum(over + under, 1e-300), 0.0, 1.0)
    found: Floats = widths[low] + share * (widths[high] - widths[low])
    return found
