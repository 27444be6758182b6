"""One labelled case, as Python callers see it."""

from __future__ import annotations

from typing import Any

import msgspec

from steelyard.core.questions import Label, QuestionSet


class Case(msgspec.Struct, frozen=True, eq=False):
    """A state, its questions and what is known to be right.

    Attributes
    ----------
    row : int
        Position in the dataset, from 0.
    line : int
        Physical line in the file it came from, from 1.
    state : object
        Any JSON value.
    questions : QuestionSet
    expected : dict
        Question id to label; may cover only some of the questions.
    tags : tuple of str
    language, model : str or None
        `model` pins the checkpoint that must answer.
    id, group : str, int or None
        Rows of one group count as one cluster in every interval.
    """

    row: int
    line: int
    state: Any
    questions: QuestionSet
    expected: dict[str, Label]
    tags: tuple[str, ...] = ()
    language: str | None = None
    model: str | None = None
    id: str | int | None = None
    group: str | int | None = None
