"""Answers on the wire, checked against their questions and laid out in columns.

One rule for every way an answer arrives: live, recorded, resumed or taken from a saved report. An
answer that breaks the contract is errored with a reason and never mended.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from steelyard.core.questions import Question, QuestionSet, scalar_text
from steelyard.core.requests import CONFIDENCE_SOURCES, REASONS, Failure
from steelyard.formats.jsontext import quote, type_name
from steelyard.stats.grouping import ragged

ROUNDING = 5e-5
"""Half a unit in the fourth decimal: what each of k rounded probabilities may be off by."""

_SOURCE = {name: code for code, name in enumerate(CONFIDENCE_SOURCES)}
_NAN = float("nan")
_NOTHING = (-1, _NAN, _NAN, 0, _NAN, 0, -1)


class WireAnswer(msgspec.Struct):
    """The fields of an answer that are judged; the rest is kept in the log and passed over."""

    type: Any = None
    choice: Any = UNSET
    score: Any = UNSET
    noul: Any = UNSET
    probabilities: dict[str, float] | None = None
    confidence: Any = None
    answer_confidence: Any = None


class Fault(Exception):
    """An answer breaks the contract."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Answers(msgspec.Struct):
    """Columns of answers, one entry a question asked, in the order they were taken.

    `row` and `place` say which question. `reason` is 0, or one more than the position in REASONS.
    `pred` is the position of the chosen option (-1 when the type has none), `value` the expected
    level or P(true), `confidence` and `source` the confidence column and where it came from,
    `stated` the engine's own `confidence` field. `size` counts probabilities, `probabilities` is
    flat. `messages` explains failures by (row, place).
    """

    row: NDArray[np.int64]
    place: NDArray[np.int32]
    reason: NDArray[np.int8]
    pred: NDArray[np.int32]
    value: NDArray[np.float64]
    confidence: NDArray[np.float64]
    source: NDArray[np.int8]
    stated: NDArray[np.float64]
    size: NDArray[np.int32]
    probabilities: NDArray[np.float64]
    label: NDArray[np.int32]
    messages: dict[tuple[int, int], str]

    @classmethod
    def join(cls, blocks: Sequence[Answers]) -> Answers:
        """One table from many, sorted by row and place; of two answers to one question the later counts."""
        if not blocks:
            return AnswerReader([]).take([])
        columns = {
            name: np.concatenate([getattr(block, name) for block in blocks])
            for name in cls.__struct_fields__[:-1]
        }
        messages = {key: text for block in blocks for key, text in block.messages.items()}
        row, place = columns["row"], columns["place"]
        step = (row[1:] - row[:-1]).astype(np.int64) * (1 << 20) + (place[1:] - place[:-1])
        if np.all(step > 0):
            return cls(**columns, messages=messages)
        order = np.lexsort((place, row))
        last = np.concatenate(
            (np.any([np.diff(row[order]) != 0, np.diff(place[order]) != 0], axis=0), [True])
        )
        order = order[last]
        starts = np.cumsum(columns["size"]) - columns["size"]
        columns["probabilities"] = columns["probabilities"][ragged(starts[order], columns["size"][order])]
        for name in cls.__struct_fields__[:-1]:
            if name != "probabilities":
                columns[name] = columns[name][order]
        return cls(**columns, messages=messages)


class AnswerReader:
    """Checks replies against the questions they answer.

    Parameters
    ----------
    labels : list of str
        Label names by code; names met for the first time are appended.
    """

    def __init__(self, labels: list[str]) -> None:
        self.labels = {name: code for code, name in enumerate(labels)}

    def take(
        self, replies: Iterable[tuple[int, QuestionSet, dict[str, WireAnswer | Failure] | Failure]]
    ) -> Answers:
        """Lay out replies: row, the questions asked, and answers by id or the failure of the row."""
        rows: list[int] = []
        counts: list[int] = []
        limits: list[float] = []
        fields: list[float] = []
        flat: list[float] = []
        failed: list[tuple[int, str, str]] = []
        for row, asked, answers in replies:
            questions = asked.questions
            rows.append(row)
            counts.append(len(questions))
            limits += asked.limits
            failure = answers if isinstance(answers, Failure) else _stray(answers, questions)
            for qid, question in questions.items():
                try:
                    if failure is not None:
                        raise Fault(failure.reason, failure.message)
                    fields += self._read(question, answers.get(qid), flat)  # type: ignore[union-attr]
                except Fault as fault:
                    failed.append((len(fields) // 7, fault.reason, str(fault)))
                    fields += _NOTHING
        return _columns(rows, counts, limits, fields, flat, failed)

    def _read(
        self, question: Question, answer: WireAnswer | Failure | None, flat: list[float]
    ) -> tuple[Any, ...]:
        """Fields of one answer after `reason`; appends its probabilities to `flat`.

        The common shapes are taken inline: this is the hottest code of a run.
        """
        if answer is None:
            raise Fault("missing_answer", "no answer")
        if isinstance(answer, Failure):
            raise Fault(answer.reason, answer.message)
        kind, code = answer.type, question.code
        if kind is not None and kind != question.kind:
            raise Fault("invalid_answer", f"type is {quote(kind)}, the question's is {question.kind}")
        probabilities = answer.probabilities
        if not probabilities:
            vector: list[float] = []
        elif tuple(probabilities) == question.options:
            vector = list(probabilities.values())
        else:
            vector = _aligned(question, probabilities)
        pred = label = -1
        value = _NAN
        if code == 0:
            choice = answer.choice
            pred = (
                question.index[choice]
                if type(choice) is str and choice in question.index
                else _choice(question, choice, vector)
            )
            name = question.options[pred]
            label = self.labels.setdefault(name, len(self.labels))
        elif code == 1:
            value = answer.score
            if type(value) is not float:
                value = _number(value, "score", vector)
        else:
            value = answer.noul
            if type(value) is not float:
                value = _number(value, "noul", [])
        stated = answer.confidence
        confidence, source = answer.answer_confidence, 1
        if type(confidence) is not float:
            confidence, source = _confidence(answer, value if code == 2 else _NAN, vector)
        if type(stated) is not float:
            stated = float(stated) if type(stated) is int else _NAN
        flat += vector
        return pred, value, confidence, source, stated, len(vector), label


def _columns(
    rows: list[int],
    counts: list[int],
    limits: list[float],
    fields: list[float],
    flat: list[float],
    failed: list[tuple[int, str, str]],
) -> Answers:
    sizes = np.array(counts, np.int64)
    pred, value, confidence, source, stated, size, label = np.array(fields, np.float64).reshape(-1, 7).T
    answers = Answers(
        np.repeat(np.array(rows, np.int64), sizes),
        ragged(np.zeros(len(sizes), np.int64), sizes).astype(np.int32),
        np.zeros(len(pred), np.int8),
        pred.astype(np.int32),
        value.copy(),
        confidence.copy(),
        source.astype(np.int8),
        stated.copy(),
        size.astype(np.int32),
        np.array(flat, np.float64),
        label.astype(np.int32),
        {},
    )
    for at, reason, message in failed:
        _fail(answers, at, reason, message)
    _check_ranges(answers, np.array(limits, np.float64))
    return answers


def _stray(answers: dict[str, Any], questions: dict[str, Question]) -> Failure | None:
    if answers.keys() <= questions.keys():
        return None
    stray = ", ".join(quote(qid) for qid in answers if qid not in questions)
    return Failure("unexpected_question", f"answers {stray}, which was not asked")


def _aligned(question: Question, probabilities: dict[str, float]) -> list[float]:
    if probabilities.keys() != question.index.keys():
        extra = [key for key in probabilities if key not in question.index]
        text = f"has {quote(extra[0])}, which is not an option" if extra else "does not cover every option"
        raise Fault("invalid_answer", f"probabilities {text}")
    return [probabilities[option] for option in question.options]


def _choice(question: Question, choice: Any, vector: list[float]) -> int:
    if choice is UNSET or choice is None:
        if not vector:
            raise Fault("invalid_answer", "neither choice nor probabilities")
        # Ties go to the option the question lists first.
        return vector.index(max(vector))
    name = choice if isinstance(choice, str) else scalar_text(choice)
    if name not in question.index:
        raise Fault("invalid_answer", f"choice {quote(choice)} is not an option")
    return question.index[name]


def _number(value: Any, field: str, vector: list[float]) -> float:
    if type(value) is float or type(value) is int:
        return value
    if value is UNSET and vector:
        return sum(level * p for level, p in enumerate(vector))
    word = "missing" if value is UNSET else f"{type_name(value)}, not a number"
    raise Fault("invalid_answer", f"{field} is {word}")


def _confidence(answer: WireAnswer, noul: float, vector: list[float]) -> tuple[float, int]:
    """The confidence column and its source, first usable wins (FORMATS.md 2.2)."""
    value = answer.answer_confidence
    if type(value) is float or type(value) is int:
        return value, _SOURCE["answer_confidence"]
    value = answer.confidence
    if type(value) is float or type(value) is int:
        return value, _SOURCE["confidence"]
    for name, given in (("answer_confidence", answer.answer_confidence), ("confidence", answer.confidence)):
        if given is not None and type(given) is not bool:
            raise Fault("invalid_answer", f"{name} is {type_name(given)}, not a number")
    if not math.isnan(noul):
        return max(noul, 1.0 - noul), _SOURCE["noul"]
    return (max(vector), _SOURCE["probabilities"]) if vector else (_NAN, _SOURCE["none"])


def _check_ranges(answers: Answers, limit: NDArray[np.float64]) -> None:
    """Error answers whose numbers are out of range or whose probabilities do not add up."""
    fine = answers.reason == 0
    value, confidence, stated = answers.value, answers.confidence, answers.stated
    _mark(answers, fine & (answers.source > 0) & ~((confidence >= 0) & (confidence <= 1)), "confidence")
    _mark(answers, fine & ((stated < 0) | (stated > 1)), "stated")
    _mark(answers, fine & ~np.isnan(limit) & ~((value >= 0) & (value <= limit)), "value")
    sized = np.flatnonzero(answers.size)
    if not len(sized):
        return
    starts = (np.cumsum(answers.size) - answers.size)[sized]
    sums = np.add.reduceat(answers.probabilities, starts)
    low = np.minimum.reduceat(answers.probabilities, starts)
    high = np.maximum.reduceat(answers.probabilities, starts)
    off = ~(np.abs(sums - 1.0) <= answers.size[sized] * ROUNDING + 1e-12)
    for at in np.flatnonzero(off | ~(low >= 0) | ~(high <= 1)):
        if not low[at] >= 0 or not high[at] <= 1:
            worst = low[at] if not low[at] >= 0 else high[at]
            text = f"probabilities hold {worst:.6g}, outside 0 to 1"
        else:
            text = f"probabilities sum to {sums[at]:.6g}, not 1"
        _fail(answers, int(sized[at]), "invalid_distribution", text)


def _mark(answers: Answers, bad: NDArray[np.bool_], field: str) -> None:
    for at in np.flatnonzero(bad):
        number = getattr(answers, field)[at]
        _fail(answers, int(at), "invalid_answer", f"{field} {number:.6g} is out of range")


def _fail(answers: Answers, at: int, reason: str, message: str) -> None:
    answers.reason[at] = 1 + REASONS.index(reason)
    answers.messages[int(answers.row[at]), int(answers.place[at])] = message
