"""Per-answer losses of whole distributions."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from steelyard.metrics.decisions import Floats, Ints, Soft
from steelyard.stats.grouping import ragged

CLIP = 1e-15
"""Smallest probability of the right answer that log loss takes as it is."""


class Losses(msgspec.Struct, frozen=True):
    """Per-answer losses that need the whole distribution; NaN where they do not apply."""

    p_gold: Floats
    brier: Floats
    log_loss: Floats
    rps: Floats
    level_correct: Floats
    tied: NDArray[np.bool_]


def losses(kind: NDArray[np.int8], gold: Floats, value: Floats, size: Ints, flat: Floats) -> Losses:
    """Losses of answers with ragged distributions.

    Parameters
    ----------
    kind, gold, value : arrays, shape (n,)
        Question type, gold position or level or 0/1, and P(true) for noul answers.
    size : int array, shape (n,)
        Options in each distribution, 0 where the answer has none.
    flat : float array
        The distributions end to end.

    Returns
    -------
    Losses
        Brier over classes is ``sum_k (p_k - 1[k = gold])^2`` in [0, 2], a noul answer counting as two
        classes; log loss is ``-ln max(p_gold, 1e-15)``; the ranked probability score is divided by
        K - 1 (Epstein 1969; Murphy 1971). Score answers have RPS and `level_correct` only, and only
        where the gold level is whole.
    """
    n = len(kind)
    p_gold, brier, rps = np.full(n, np.nan), np.full(n, np.nan), np.full(n, np.nan)
    level_correct, tied = np.full(n, np.nan), np.zeros(n, bool)
    noul = np.flatnonzero((kind == 2) & ~np.isnan(value))
    p_gold[noul] = np.where(gold[noul] == 1.0, value[noul], 1.0 - value[noul])
    brier[noul] = 2.0 * (value[noul] - gold[noul]) ** 2
    sized = np.flatnonzero(size)
    if len(sized):
        sizes, ends = size[sized], np.cumsum(size[sized])
        starts = ends - sizes
        top = np.maximum.reduceat(flat, starts)
        at_top = flat == np.repeat(top, sizes)
        tied[sized] = np.add.reduceat(at_top, starts, dtype=np.int64) > 1
        positions = np.arange(len(flat)) - np.repeat(starts, sizes)
        whole = gold[sized] == np.floor(gold[sized])
        at_gold = flat[starts + np.where(whole, gold[sized], 0).astype(np.int64)]
        squares = np.add.reduceat(flat * flat, starts)
        choice, level = kind[sized] == 0, (kind[sized] == 1) & whole
        p_gold[sized] = np.where(choice | level, at_gold, p_gold[sized])
        brier[sized] = np.where(choice, squares - 2.0 * at_gold + 1.0, brier[sized])
        first_top = np.minimum.reduceat(np.where(at_top, positions, len(flat)), starts)
        level_correct[sized] = np.where(level, first_top == gold[sized], level_correct[sized])
        rps[sized] = np.where(
            level & (sizes > 1), _ranked(flat, starts, sizes, gold[sized], positions), np.nan
        )
    log_loss = np.where(kind == 1, np.nan, -np.log(np.maximum(p_gold, CLIP)))
    return Losses(p_gold, np.maximum(brier, 0.0), log_loss, rps, level_correct, tied)


def _ranked(flat: Floats, starts: Ints, sizes: Ints, gold: Floats, positions: Ints) -> Floats:
    total = np.cumsum(flat)
    before = np.where(starts > 0, total[starts - 1], 0.0)
    cumulative = total - np.repeat(before, sizes)
    step = positions >= np.repeat(gold, sizes)
    last = positions == np.repeat(sizes - 1, sizes)
    terms = np.where(last, 0.0, (cumulative - step) ** 2)
    return np.add.reduceat(terms, starts) / np.maximum(sizes - 1, 1)


def soft_losses(
    row: Ints, gold_size: Ints, gold: Floats, kind: NDArray[np.int8], value: Floats, size: Ints, flat: Floats
) -> Soft:
    """Losses against labels that are distributions.

    Parameters
    ----------
    row : int array, shape (labels,)
        Table rows that have such a label, ascending.
    gold_size, gold : arrays
        Options of each label, and the labels end to end.
    kind, value, size, flat : arrays
        Columns of the whole table.

    Returns
    -------
    Soft
        Cross-entropy ``-sum g ln max(p, 1e-15)`` and divergence ``sum g ln(g / p)`` in nats, and
        ``sum (p - g)^2`` in [0, 2]. Source: Kullback and Leibler 1951; Gneiting and Raftery 2007.
    """
    starts = np.cumsum(gold_size) - gold_size
    if not len(row):
        return Soft(row, np.zeros(0, bool), np.empty(0), np.empty(0), np.empty(0))
    answer = np.full(len(gold), np.nan)
    sized = np.flatnonzero(size[row] == gold_size)
    at = np.cumsum(size.astype(np.int64)) - size
    answer[ragged(starts[sized], gold_size[sized])] = flat[ragged(at[row[sized]], size[row[sized]])]
    sides = np.flatnonzero((kind[row] == 2) & (size[row] == 0) & ~np.isnan(value[row]))
    answer[starts[sides]], answer[starts[sides] + 1] = 1.0 - value[row[sides]], value[row[sides]]
    top = np.repeat(np.maximum.reduceat(gold, starts), gold_size)
    crossed = -gold * np.log(np.maximum(answer, CLIP))
    own = gold * np.log(np.maximum(gold, CLIP))
    cross_entropy = np.add.reduceat(crossed, starts)
    return Soft(
        row,
        np.add.reduceat((gold == top).astype(np.int64), starts) > 1,
        cross_entropy,
        np.maximum(0.0, cross_entropy + np.add.reduceat(own, starts)),
        np.add.reduceat((answer - gold) ** 2, starts),
    )
