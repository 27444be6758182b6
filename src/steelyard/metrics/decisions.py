"""The judged table: one row a labelled question, a struct of numpy arrays."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from steelyard.core.questions import KINDS, option_bucket

SCORED, ERRORED = 0, 1
CLIP = 1e-15
"""Smallest probability of the right answer that log loss takes as it is."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Names(msgspec.Struct, frozen=True):
    """What the codes of a table stand for."""

    qids: list[str]
    languages: list[str]
    models: list[str]
    tags: list[str]
    labels: list[str]


class Decisions(msgspec.Struct):
    """One row a labelled question, in dataset order.

    Attributes
    ----------
    row, place, cluster : int arrays
        Dataset row, position of the question in its set, and cluster (the row itself, or its group).
    qid, kind, options, language, model : int arrays
        Codes; `options` is a count; -1 where a row has no language or model.
    status, reason : int8 arrays
        SCORED or ERRORED, and the reply's reason code (0 when scored).
    gold, gold_label, pred, pred_label : arrays
        Gold is an option position, level or 0/1; labels are codes of choice labels, else -1.
    value, confidence, stated, p_gold : float arrays
        NaN where there is none.
    source : int8 array
        Where the confidence came from.
    correct : float array
        1, 0, or NaN where right and wrong do not apply (score questions, errored rows).
    error, brier, log_loss, rps, level_correct : float arrays
        Per-answer losses, NaN where they do not apply.
    tied : bool array
        More than one option shares the top probability.
    tag_row, tag : int arrays
        Pairs (table row, tag code), each once.
    """

    row: Ints
    place: Ints
    cluster: Ints
    qid: NDArray[np.int32]
    kind: NDArray[np.int8]
    options: NDArray[np.int32]
    language: NDArray[np.int32]
    model: NDArray[np.int32]
    status: NDArray[np.int8]
    reason: NDArray[np.int8]
    gold: Floats
    gold_label: NDArray[np.int32]
    pred: NDArray[np.int32]
    pred_label: NDArray[np.int32]
    value: Floats
    confidence: Floats
    source: NDArray[np.int8]
    stated: Floats
    p_gold: Floats
    correct: Floats
    error: Floats
    brier: Floats
    log_loss: Floats
    rps: Floats
    level_correct: Floats
    tied: NDArray[np.bool_]
    tag_row: Ints
    tag: NDArray[np.int32]
    names: Names

    def __len__(self) -> int:
        return len(self.row)

    def dimension(self, name: str) -> tuple[Ints | None, NDArray[Any], list[str]]:
        """Slice codes of a dimension.

        Returns
        -------
        (rows, codes, values)
            `rows` is None when every table row has one code; codes below 0 belong to no slice.

        Raises
        ------
        KeyError
            Not one of DIMENSIONS.
        """
        if name == "tag":
            return self.tag_row, self.tag, self.names.tags
        if name == "type":
            return None, self.kind, list(KINDS)
        if name == "option_count":
            shapes, codes = np.unique(self.kind.astype(np.int64) << 32 | self.options, return_inverse=True)
            buckets = [option_bucket(KINDS[shape >> 32], shape & 0xFFFFFFFF) for shape in shapes.tolist()]
            values = sorted(set(buckets))
            return None, np.array([values.index(bucket) for bucket in buckets], np.int32)[codes], values
        column, values = {
            "language": (self.language, self.names.languages),
            "model": (self.model, self.names.models),
            "qid": (self.qid, self.names.qids),
        }[name]
        return None, column, values


DIMENSIONS = ("language", "model", "qid", "tag", "type", "option_count")
"""Slices of a report; the first four are the peer's."""


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
