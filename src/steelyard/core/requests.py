"""What is sent to an engine and what comes back, joined by row and never by position."""

from __future__ import annotations

import enum
from typing import Any

import msgspec

from steelyard.core.questions import QuestionSet


class Ability(enum.Flag):
    """What an engine declares it can do; nothing is sniffed outside its own adapter."""

    NONE = 0
    BATCH = enum.auto()
    LOGITS = enum.auto()
    TEMPERATURE = enum.auto()
    PIN_MODEL = enum.auto()
    MIN_CONFIDENCE = enum.auto()
    SORT_BY_LENGTH = enum.auto()
    CONCURRENT = enum.auto()


class Request(msgspec.Struct, frozen=True, eq=False):
    """One case as an engine sees it: the labels stay behind."""

    row: int
    state: Any
    questions: QuestionSet
    id: str | int | None = None
    model: str | None = None


class Failure(msgspec.Struct, frozen=True, eq=True):
    """Why a question or a whole row has no usable answer."""

    reason: str
    message: str


class Reply(msgspec.Struct, frozen=True, eq=False):
    """The answers to one request, or the failure in their place.

    `answers` maps question ids to answer objects: Python values, or `msgspec.Raw` when an engine
    already holds them as JSON text. `cost` is the money this row took, None when that is not known.
    """

    row: int
    answers: Any = None
    model: str | None = None
    failure: Failure | None = None
    cost: float | None = None


class CallOptions(msgspec.Struct, frozen=True, eq=True):
    """Knobs that travel with every call of a run."""

    batch_size: int = 1
    sort_by_length: bool = False
    min_confidence: float | None = None


ROW_REASONS = (
    "timeout",
    "engine_failed",
    "no_recorded_reply",
    "recorded_error",
    "wrong_count",
    "unexpected_question",
    "not_asked",
)
"""Reasons a whole row has no answers; the last one is no error: a gate had seen enough."""

REASONS = (*ROW_REASONS, "missing_answer", "invalid_answer", "invalid_distribution", "unlabelled")
"""Reasons a question may not be scored: ``unlabelled`` means not applicable, ``not_asked`` that it was not
asked, the others errored."""

NOT_ASKED_CODE = 1 + REASONS.index("not_asked")
"""Reason code of what was not asked."""

CONFIDENCE_SOURCES = ("none", "answer_confidence", "confidence", "noul", "probabilities")
"""Where an answer's confidence was taken from, in order of preference after ``none``."""
