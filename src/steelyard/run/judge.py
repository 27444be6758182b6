"""Dataset columns and answers joined into the decisions table."""

from __future__ import annotations

from array import array
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from steelyard.core.requests import NOT_ASKED_CODE, Facts
from steelyard.formats.answer_table import Answers
from steelyard.formats.columns import CaseColumns
from steelyard.metrics.decisions import ERRORED, NOT_ASKED, SCORED, Decisions, Floats, Ints, Names
from steelyard.metrics.losses import losses, soft_losses
from steelyard.stats.grouping import distinct, first_positions, ragged


class RowFacts(msgspec.Struct):
    """What is known of each dataset row once it was asked.

    Attributes
    ----------
    n_rows : int
        Rows that were to be asked, from the first.
    ms, shared : arrays, shape (n_rows,)
        Wall time of the call (NaN when it failed) and rows that shared it, 0 for a row not asked.
    model : int array, shape (n_rows,)
        Code of the model that answered, -1 for unknown.
    models : list of str
    cost : array, shape (n_rows,)
        Money each row took, NaN where that is not known.
    said : dict
        Row to what its server said besides the answers, where it said anything.
    """

    n_rows: int
    ms: Floats
    shared: Floats
    model: NDArray[np.int32]
    models: list[str]
    cost: Floats
    said: dict[int, Facts]


def _array(column: array[int], dtype: type) -> NDArray[Any]:
    return np.array(column, dtype)


def join(cases: CaseColumns, answers: Answers, facts: RowFacts, labels: list[str]) -> Decisions:
    """Build the decisions table.

    Parameters
    ----------
    cases : CaseColumns
        The dataset.
    answers : Answers
        One entry for each question of the first `facts.n_rows` rows, sorted by row and place.
    facts : RowFacts
    labels : list of str
        Choice labels by code, covering gold and predictions; options met for the first time are added.

    Returns
    -------
    Decisions
        One row a labelled question of those rows, in dataset order.
    """
    asked = labelled(cases, facts.n_rows)
    row, kind, place, gold = asked.row, asked.kind, asked.place, asked.gold
    first = first_positions(answers.row, facts.n_rows)
    at = first[row] + place
    reason = answers.reason[at]
    scored = reason == 0
    value = np.where(scored, answers.value[at], np.nan)
    size = np.where(scored, answers.size[at], 0)
    starts = np.cumsum(answers.size) - answers.size
    flat = answers.probabilities[ragged(starts[at], size)]
    found = losses(kind, gold, value, size, flat)
    soft = soft_losses(*_soft(cases, len(row)), kind, value, size, flat)
    option_set, option_sets = _option_sets(cases, labels, row, place, kind)
    taken = _taken(answers, at, scored)
    sides = np.where(scored & (kind == 2), (value >= 0.5) == (gold == 1.0), np.nan)
    correct = np.where(scored & (kind == 0), taken["pred"] == gold, sides)
    # Where a label's mass is shared at the top there is no one right answer.
    torn = soft.row[soft.tied & (kind[soft.row] != 1)]
    for column in (correct, found.p_gold, found.brier, found.log_loss):
        column[torn] = np.nan
    tag_row, tag = _tags(cases, row, facts.n_rows)
    return Decisions(
        row=row,
        place=place,
        cluster=asked.cluster,
        qid=asked.qid,
        kind=kind,
        options=asked.options,
        language=_array(cases.language, np.int32)[row],
        model=facts.model[row],
        status=_status(reason),
        reason=reason,
        gold=gold,
        gold_label=asked.gold_label,
        value=value,
        correct=correct,
        error=np.where(scored & (kind == 1), np.abs(value - gold), np.nan),
        **taken,
        **msgspec.structs.asdict(found),
        size=size,
        flat=flat,
        option_set=option_set,
        soft=soft,
        tag_row=tag_row,
        tag=tag,
        names=Names(
            asked.qid_names, cases.languages.list(), facts.models, cases.tag_names.list(), labels, option_sets
        ),
    )


def _status(reason: NDArray[np.int8]) -> NDArray[np.int8]:
    found = np.where(reason == NOT_ASKED_CODE, NOT_ASKED, ERRORED)
    return np.where(reason == 0, SCORED, found).astype(np.int8)


def _taken(answers: Answers, at: Ints, scored: NDArray[np.bool_]) -> dict[str, Any]:
    """What the scored answers say, and nothing where there is none."""
    return {
        "pred": np.where(scored, answers.pred[at], -1).astype(np.int32),
        "pred_label": np.where(scored, answers.label[at], -1).astype(np.int32),
        "confidence": np.where(scored, answers.confidence[at], np.nan),
        "source": np.where(scored, answers.source[at], 0).astype(np.int8),
        "stated": np.where(scored, answers.stated[at], np.nan),
    }


class Labelled(msgspec.Struct, frozen=True, eq=False):
    """Every label of the first rows of a dataset, in order: columns as `Decisions` has them."""

    row: Ints
    place: Ints
    cluster: Ints
    qid: NDArray[np.int32]
    kind: NDArray[np.int8]
    options: NDArray[np.int32]
    gold: Floats
    gold_label: NDArray[np.int32]
    qid_names: list[str]


def labelled(cases: CaseColumns, n_rows: int) -> Labelled:
    """The labels of the first `n_rows` rows, and what each is a label of."""
    n_labels = _array(cases.n_labels, np.int64)[:n_rows]
    row = np.repeat(np.arange(n_rows), n_labels)
    names = sorted({qid for qid, *_ in cases.shapes})
    codes = {qid: code for code, qid in enumerate(names)}
    shapes = [(codes[qid], *rest) for qid, *rest in cases.shapes]
    keys = np.array(shapes, np.int64).reshape(-1, 4)[_array(cases.shape, np.int64)[: len(row)]]
    qid, kind, options, place = keys.T
    return Labelled(
        row,
        place,
        _clusters(cases, n_rows)[row],
        qid.astype(np.int32),
        kind.astype(np.int8),
        options.astype(np.int32),
        np.array(cases.gold, np.float64)[: len(row)],
        _array(cases.label, np.int32)[: len(row)],
        names,
    )


def _soft(cases: CaseColumns, n_labels: int) -> tuple[Ints, Ints, Floats]:
    """Table rows of labels that are distributions, their options, and the labels end to end."""
    row = _array(cases.soft_at, np.int64)
    kept = int(np.searchsorted(row, n_labels))
    size = _array(cases.soft_size, np.int64)[:kept]
    return row[:kept], size, np.array(cases.soft_mass, np.float64)[: int(size.sum())]


def _option_sets(
    cases: CaseColumns, labels: list[str], row: Ints, place: Ints, kind: NDArray[np.int8]
) -> tuple[NDArray[np.int32], list[tuple[int, ...]]]:
    """Which options each choice row was asked, and the label codes of each set of them."""
    places = [len(asked.questions) for asked in cases.question_sets]
    first = np.concatenate(([0], np.cumsum(places, dtype=np.int64)))
    asked = _array(cases.asked, np.int64)[row]
    known = (asked >= 0) & (kind == 0)
    found = np.where(known, first[np.where(known, asked, 0)] + place, -1).astype(np.int32)
    codes = {label: code for code, label in enumerate(labels)}
    sets: list[tuple[int, ...]] = []
    for questions in cases.question_sets:
        for question in questions.questions.values():
            choice = question.code == 0
            for option in question.options if choice else ():
                if option not in codes:
                    codes[option] = len(labels)
                    labels.append(option)
            sets.append(tuple(codes[option] for option in question.options) if choice else ())
    return found, sets


def _clusters(cases: CaseColumns, n_rows: int) -> NDArray[np.int64]:
    """Cluster of each row: itself, or its group."""
    group = _array(cases.group, np.int64)[:n_rows]
    return np.where(group >= 0, len(cases) + group, np.arange(n_rows))


def _tags(
    cases: CaseColumns, row: NDArray[np.int64], n_rows: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Pairs of table row and tag code, each once, sorted by table row."""
    counts = _array(cases.n_tags, np.int64)
    starts = (np.cumsum(counts) - counts)[:n_rows]
    sizes = counts[:n_rows][row]
    tags = _array(cases.tags, np.int64)[ragged(starts[row], sizes)]
    pairs = np.repeat(np.arange(len(row)), sizes)
    n_tags = max(1, len(cases.tag_names))
    key = pairs * n_tags + tags
    if len(key) and np.any(key[1:] <= key[:-1]):
        key, _ = distinct(key)
    return key // n_tags, (key % n_tags).astype(np.int32)
