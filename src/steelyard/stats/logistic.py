"""Logistic recalibration of confidences."""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
EDGE = 1e-6
RIDGE = 1e-9
_STEPS, _CLOSE = 60, 1e-10


class Fit(msgspec.Struct, frozen=True, eq=False):
    """A fitted coefficient and the influence of each answer on it, shape (n,).

    Influences are those of leaving an answer out (HC3; MacKinnon and White 1985).
    """

    value: float
    influence: Floats


def _logit(confidence: Floats) -> Floats:
    inside = np.clip(confidence, EDGE, 1.0 - EDGE)
    return np.log(inside / (1.0 - inside))


def _chance(score: Floats) -> Floats:
    found: Floats = 1.0 / (1.0 + np.exp(-np.clip(score, -500.0, 500.0)))
    return found


def slope_fit(confidence: Floats, correct: Floats) -> Fit | None:
    """Maximum likelihood b of ``logit P(right) = a + b logit c``.

    Parameters
    ----------
    confidence, correct : array, shape (n,)
        Both right and wrong answers are there.

    Returns
    -------
    Fit or None
        None when all confidences are equal, or answers so well parted that b has no bound. A ridge
        of 1e-9 an answer keeps the steps finite. Source: Cox 1958.
    """
    x = _logit(confidence)
    if x.min() == x.max():
        return None
    rate = float(correct.mean())
    a, b, n = math.log(rate / (1.0 - rate)), 0.0, len(x)
    for _ in range(_STEPS):
        p = _chance(a + b * x)
        weight, rest = p * (1.0 - p), correct - p
        s0, s1, s2 = float(weight.sum()), float((weight * x).sum()), float((weight * x * x).sum())
        s0, s2 = s0 + RIDGE * n, s2 + RIDGE * n
        g0, g1 = float(rest.sum()), float((rest * x).sum()) - RIDGE * n * b
        square = s0 * s2 - s1 * s1
        da, db = (s2 * g0 - s1 * g1) / square, (s0 * g1 - s1 * g0) / square
        # A step of more than two is cut: far from the top the curve is no parabola.
        cut = min(1.0, 2.0 / max(abs(da), abs(db), 1e-300))
        a, b = a + cut * da, b + cut * db
        if max(abs(da), abs(db)) < _CLOSE:
            # Leaving an answer out moves the fit by more than its influence, by its leverage.
            leverage = weight * (s2 - 2.0 * s1 * x + s0 * x * x) / square
            return Fit(b, n * (s0 * x - s1) * rest / (square * np.maximum(1.0 - leverage, 0.1)))
    return None


def offset_fit(confidence: Floats, correct: Floats) -> Fit | None:
    """Maximum likelihood a of ``logit P(right) = a + logit c``; as `slope_fit` otherwise."""
    x, a, n = _logit(confidence), 0.0, len(confidence)
    for _ in range(_STEPS):
        p = _chance(a + x)
        rest, weight = correct - p, float((p * (1.0 - p)).sum()) + RIDGE * n
        step = float(rest.sum()) / weight
        a += max(-2.0, min(2.0, step))
        if abs(step) < _CLOSE:
            return Fit(a, n * rest / (weight * np.maximum(1.0 - p * (1.0 - p) / weight, 0.1)))
    return None
