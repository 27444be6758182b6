"""Scores taken apart into miscalibration, discrimination and uncertainty."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from steelyard.stats.bins import Binned
from steelyard.stats.isotonic import isotonic

Floats = NDArray[np.float64]


class Parts(msgspec.Struct, frozen=True):
    """A mean score and its parts.

    ``score = miscalibration - discrimination + uncertainty + within``; `within` is 0 for `corp`.
    """

    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float
    within: float = 0.0


def corp(n: Floats, confidence: Floats, hits: Floats) -> tuple[Parts, Floats]:
    """CORP decomposition of the mean squared distance of confidence from being right.

    Parameters
    ----------
    n, confidence, hits : array, shape (groups,)
        Answers of equal confidence, their confidence ascending, and right ones; groups >= 1.

    Returns
    -------
    (Parts, array)
        Parts, the first two at least 0, and the recalibrated confidence of each group. Source:
        Dimitriadis, Gneiting and Jordan 2021 (arXiv 2008.03033).
    """
    total = float(n.sum())
    fitted = isotonic(hits, n)
    base = float(hits.sum()) / total
    uncertainty = base * (1.0 - base)
    # Sums of squares taken as differences, so that the parts add up to the last bit.
    score = float((n * confidence**2 - 2.0 * confidence * hits + hits).sum()) / total
    best = float((n * fitted**2 - 2.0 * fitted * hits + hits).sum()) / total
    return Parts(score, max(0.0, score - best), max(0.0, uncertainty - best), uncertainty), fitted


def miscalibrations(n: Floats, confidence: Floats, draws: Floats) -> Floats:
    """Miscalibration of each row of `draws`, hits by group, shape (draws,)."""
    rows, groups = draws.shape
    problem = np.repeat(np.arange(rows), groups)
    fitted = isotonic(draws.ravel(), np.tile(n, rows), problem).reshape(rows, groups)
    # For a fit to block means the two squared distances differ by a product of sums.
    gain = n * (confidence**2 - fitted**2) - 2.0 * (confidence - fitted) * draws
    found: Floats = np.maximum(0.0, gain.sum(axis=1) / n.sum())
    return found


def murphy(table: Binned, score: float) -> Parts:
    """Murphy's decomposition over bins, its bias corrected.

    Parameters
    ----------
    table : Binned
    score : float
        Mean squared distance of confidence from being right.

    Returns
    -------
    Parts
        Reliability, resolution and uncertainty less what chance adds to them: bins of one answer
        are left uncorrected. `within` is what is missing to the score because confidences differ
        inside a bin. Source: Murphy 1973; Stephenson, Coelho and Jolliffe 2008; Ferro and Fricker
        2012.
    """
    total = float(table.n.sum())
    share, rate = table.n / total, table.hits / table.n
    base = float(table.hits.sum()) / total
    bias = float((share * rate * (1.0 - rate) / np.maximum(table.n - 1.0, 1.0)).sum())
    drift = base * (1.0 - base) / max(total - 1.0, 1.0)
    reliability = float((share * table.gap**2).sum())
    resolution = float((share * (rate - base) ** 2).sum())
    plain = reliability - resolution + base * (1.0 - base)
    return Parts(
        score, reliability - bias, resolution - bias + drift, base * (1.0 - base) + drift, score - plain
    )
