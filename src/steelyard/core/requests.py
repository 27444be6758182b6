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
    ASYNC = enum.auto()


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


class Facts(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What a server said of a reply besides the answers.

    Attributes
    ----------
    input_tokens, output_tokens : int or None
        None where it did not say: unknown, which is not 0.
    request_id : str or None
    server_ms : float or None
        Time by the server's own clock.
    attempts : int
        Times it was asked, the last one included.
    renormalised : int
        Answers whose rounded probabilities were scaled to sum to 1.
    truncated : bool
        The server says it read only a part of the state.
    revision : str or None
        Commit of the checkpoint that answered, where the engine found it out while running.
    narrowed : int
        Choices asked about some of their options only, as they have more than the server takes.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    request_id: str | None = None
    server_ms: float | None = None
    attempts: int = 1
    renormalised: int = 0
    truncated: bool = False
    narrowed: int = 0
    revision: str | None = None


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
    facts: Facts | None = None


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
    "rejected",
    "server_failed",
    "not_asked",
)
"""Reasons a whole row has no answers; the last one is no error: a gate had seen enough."""

REASONS = (*ROW_REASONS, "missing_answer", "refusal", "invalid_answer", "invalid_distribution", "unlabelled")
"""Reasons a question may not be scored: ``unlabelled`` means not applicable, ``not_asked`` that it was not
asked, the others errored."""

NOT_ASKED_CODE = 1 + REASONS.index("not_asked")
"""Reason code of what was not asked."""

CONFIDENCE_SOURCES = ("none", "answer_confidence", "confidence", "noul", "probabilities")
"""Where an answer's confidence was taken from, in order of preference after ``none``."""
