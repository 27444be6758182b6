"""The judged table: one row a labelled question, a struct of numpy arrays."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from steelyard.core.questions import KINDS, option_bucket

SCORED, ERRORED, NOT_ASKED = 0, 1, 2
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Names(msgspec.Struct, frozen=True):
    """What the codes of a table stand for."""

    qids: list[str]
    languages: list[str]
    models: list[str]
    tags: list[str]
    labels: list[str]
    option_sets: list[tuple[int, ...]]
    """Label codes of the options of each choice question, in its order."""


class Soft(msgspec.Struct, frozen=True, eq=False):
    """Labels that are distributions over the options.

    Attributes
    ----------
    row : int array, shape (labels,)
        Table rows, ascending.
    tied : bool array, shape (labels,)
        Several options share the highest mass, so that no single one is right.
    cross_entropy, divergence, brier : float array, shape (labels,)
        Losses of the answer against the label, NaN where it has no distribution.
    """

    row: Ints
    tied: NDArray[np.bool_]
    cross_entropy: Floats
    divergence: Floats
    brier: Floats


class Decisions(msgspec.Struct):
    """One row a labelled question, in dataset order.

    Attributes
    ----------
    row, place, cluster : int arrays
        Dataset row, position of the question in its set, and cluster (the row itself, or its group).
    qid, kind, options, language, model : int arrays
        Codes; `options` is a count; -1 where a row has no language or model.
    status, reason : int8 arrays
        SCORED, ERRORED or NOT_ASKED, and the reply's reason code (0 when scored).
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
    size, flat : int32 and float arrays
        Options in each row's distribution (0 where there is none), and the distributions end to end.
    option_set : int array
        Which of `names.option_sets` a choice row was asked, -1 where that is not known.
    soft : Soft
        Rows whose label is a distribution.
    tag_row, tag : int arrays
        Pairs (table row, tag code), each once.
    derived : dict
        Columns worked out from the others, kept once they were wanted.
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
    size: NDArray[np.int32]
    flat: Floats
    option_set: NDArray[np.int32]
    soft: Soft
    tag_row: Ints
    tag: NDArray[np.int32]
    names: Names
    derived: dict[str, Any] = {}

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
