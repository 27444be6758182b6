"""Answers on the wire, checked against their questions and laid out in columns.

One rule for every way an answer arrives: live, recorded, resumed or taken from a saved report. An
answer that breaks the contract is errored with a reason and never mended.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from steelyard.core.questions import Question, QuestionSet, scalar_text
from steelyard.core.requests import CONFIDENCE_SOURCES, Failure
from steelyard.formats.answer_table import Answers, check_ranges
from steelyard.formats.jsontext import quote, type_name
from steelyard.formats.uniform import UNIFORM_AT_LEAST, NotUniformError, uniform_columns
from steelyard.stats.grouping import ragged

_SOURCE = {name: code for code, name in enumerate(CONFIDENCE_SOURCES)}
_NAN = float("nan")
_NOTHING = (-1, _NAN, _NAN, 0, _NAN, 0, -1)


class WireAnswer(msgspec.Struct, gc=False):
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


Taken = tuple[int, QuestionSet, Any]
"""Row, the questions asked, and the answers by id or the failure of the row."""


class AnswerReader:
    """Checks replies against the questions they answer.

    Parameters
    ----------
    labels : list of str
        Label names by code; names met for the first time are appended.
    """

    def __init__(self, labels: list[str]) -> None:
        self.labels = {name: code for code, name in enumerate(labels)}

    def take(self, replies: Sequence[Taken]) -> Answers:
        """Lay out replies: row, the questions asked, and answers by id or the failure of the row."""
        groups: dict[int, list[Taken]] = {}
        odd: list[Taken] = []
        for reply in replies:
            (groups.setdefault(id(reply[1]), []) if type(reply[2]) is dict else odd).append(reply)
        blocks = []
        for group in groups.values():
            uniform = self._uniform(group) if len(group) >= UNIFORM_AT_LEAST else None
            if uniform is None:
                odd += group
            else:
                blocks.append(uniform)
        if odd or not blocks:
            blocks.append(self._one_by_one(odd))
        return blocks[0] if len(blocks) == 1 else Answers.join(blocks)

    def _uniform(self, group: list[Taken]) -> Answers | None:
        """The group's answers if they are all alike and there are any."""
        asked, n = group[0][1], len(group)
        try:
            found = uniform_columns(asked, [reply[2] for reply in group], self._label_code, WireAnswer)
        except NotUniformError:
            return None
        if not found:
            return None

        def across(columns: list[NDArray[Any]], dtype: type) -> NDArray[Any]:
            return np.stack(columns, axis=1).astype(dtype).ravel()

        width = len(found)
        answers = Answers(
            np.repeat(np.array([row for row, _, _ in group], np.int64), width),
            np.tile(np.arange(width, dtype=np.int32), n),
            np.zeros(n * width, np.int8),
            across([column.pred for column in found], np.int32),
            across([column.value for column in found], np.float64),
            across([column.confidence for column in found], np.float64),
            np.tile(np.array([column.source for column in found], np.int8), n),
            across([column.stated for column in found], np.float64),
            np.tile(np.array([column.matrix.shape[1] for column in found], np.int32), n),
            np.concatenate([column.matrix for column in found], axis=1).ravel(),
            across([column.label for column in found], np.int32),
            {},
        )
        check_ranges(answers, np.tile(np.array(asked.limits), n))
        return answers

    def _label_code(self, name: str) -> int:
        return self.labels.setdefault(name, len(self.labels))

    def _one_by_one(self, replies: Sequence[Taken]) -> Answers:
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
                    fields += self._read(question, answers.get(qid), flat)
                except Fault as fault:
                    failed.append((len(fields) // 7, fault.reason, str(fault)))
                    fields += _NOTHING
        return _columns(rows, counts, limits, fields, flat, failed)

    def _read(
        self, question: Question, answer: WireAnswer | Failure | None, flat: list[float]
    ) -> tuple[Any, ...]:
        """Fields of one answer after `reason`; appends its probabilities to `flat`."""
        if answer is None:
            raise Fault("missing_answer", "no answer")
        if isinstance(answer, Failure):
            raise Fault(answer.reason, answer.message)
        if answer.type == "refusal":
            raise Fault("refusal", "the engine refused to answer")
        if answer.type is not None and answer.type != question.kind:
            raise Fault("invalid_answer", f"type is {quote(answer.type)}, the question's is {question.kind}")
        vector = _aligned(question, answer.probabilities) if answer.probabilities else []
        pred = label = -1
        value = _NAN
        if question.code == 0:
            pred = _choice(question, answer.choice, vector)
            label = self._label_code(question.options[pred])
        elif question.code == 1:
            value = _number(answer.score, "score", vector)
        else:
            value = _number(answer.noul, "noul", [])
        confidence, source = _confidence(answer, value if question.code == 2 else _NAN, vector)
        stated = float(answer.confidence) if type(answer.confidence) in (int, float) else _NAN
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
        answers.fail(at, reason, message)
    check_ranges(answers, np.array(limits, np.float64))
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
