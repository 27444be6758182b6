"""Answers laid out column by column, for the many replies that are all alike.

A block of replies to one question set is uniform when every reply answers every question in order, each
field has one type throughout, and probabilities list the options in their own order. Anything else is
for the reader that goes answer by answer; both end in the same columns and the same checks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.core.questions import Question, QuestionSet

Floats = NDArray[np.float64]
UNIFORM_AT_LEAST = 8
"""Smaller groups are not worth the set-up."""


class Column(NamedTuple):
    """Answers to one question: shape (n,) each, and the distributions as (n, options) or (n, 0)."""

    pred: NDArray[Any]
    label: NDArray[Any]
    value: Floats
    confidence: Floats
    source: int
    stated: Floats
    matrix: Floats


class NotUniformError(Exception):
    """These replies differ among themselves."""


def uniform_columns(
    asked: QuestionSet, answers: Sequence[dict[str, Any]], label_code: Callable[[str], int], wire: type
) -> list[Column]:
    """One column a question.

    Parameters
    ----------
    asked : QuestionSet
    answers : sequence of dict
        Decoded answers by question id, one dict a reply.
    label_code : callable
        Code of a choice label.
    wire : type
        What a decoded answer is.

    Raises
    ------
    NotUniformError
        The replies are not all alike.
    """
    ids = tuple(asked.questions)
    if list(map(tuple, answers)).count(ids) != len(answers):
        raise NotUniformError
    return [
        _column(question, [reply[qid] for reply in answers], label_code, wire)
        for qid, question in asked.questions.items()
    ]


def _column(question: Question, group: list[Any], label_code: Callable[[str], int], wire: type) -> Column:
    n = len(group)
    if set(map(type, group)) != {wire}:
        raise NotUniformError
    kinds = [answer.type for answer in group]
    if kinds.count(question.kind) + kinds.count(None) != n:
        raise NotUniformError
    matrix = _matrix(question, [answer.probabilities for answer in group])
    pred = label = np.full(n, -1)
    value = np.full(n, np.nan)
    if question.code == 0:
        choices = [answer.choice for answer in group]
        if set(map(type, choices)) != {str} or not question.index.keys() >= set(choices):
            raise NotUniformError
        pred = np.array([question.index[choice] for choice in choices])
        label = np.array([label_code(option) for option in question.options])[pred]
    else:
        value = _numbers([answer.score if question.code == 1 else answer.noul for answer in group])
    given, stated = [a.answer_confidence for a in group], [a.confidence for a in group]
    nothing = stated.count(None) == n
    own = np.full(n, np.nan) if nothing else _numbers(stated)
    if given.count(None) < n:
        confidence, source = _numbers(given), 1
    elif not nothing:
        confidence, source = own, 2
    elif question.code == 2:
        confidence, source = np.maximum(value, 1.0 - value), 3
    elif matrix.shape[1]:
        confidence, source = matrix.max(axis=1), 4
    else:
        confidence, source = own, 0
    return Column(pred, label, value, confidence, source, own, matrix)


def _numbers(values: list[Any]) -> Floats:
    if set(map(type, values)) != {float}:
        raise NotUniformError
    return np.array(values, np.float64)


def _matrix(question: Question, vectors: list[Any]) -> Floats:
    n, size = len(vectors), len(question.options)
    absent = vectors.count(None)
    if absent == n:
        return np.empty((n, 0))
    if absent or list(map(tuple, vectors)).count(question.options) != n:
        raise NotUniformError
    flat = np.fromiter(chain.from_iterable(map(dict.values, vectors)), np.float64, n * size)
    return flat.reshape(n, size)
