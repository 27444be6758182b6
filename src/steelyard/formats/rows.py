"""One line of a dataset: decoding, and the slow way that explains what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import UNSET, Raw

from steelyard.core.questions import QuestionSet
from steelyard.formats.jsontext import JsonFault, count_keys, dumps, loads, quote, strict_loads, type_name
from steelyard.formats.labels import explain_label
from steelyard.formats.questions import QuestionFault, parse_questions

Made = TypeVar("Made")
CACHE_SIZE = 1024
KEPT_AT_ONCE = 128
_REQUIRED = ("state", "questions", "expected")


class Row(msgspec.Struct, gc=False):
    """A decoded line; optional fields that are absent are UNSET, questions stay as text."""

    state: Any
    questions: Raw
    expected: dict[str, Any]
    tags: Any = UNSET
    language: Any = UNSET
    model: Any = UNSET
    id: Any = UNSET
    group: Any = UNSET


_row = msgspec.json.Decoder(Row)
decode_rows = _row.decode_lines


class RowFault(ValueError):
    """A line that is not a row; the message may hold several lines, one for each fault."""


class QuestionCache(dict[bytes, tuple[QuestionSet, Made]], Generic[Made]):
    """Question sets by their text; `cache[raw]` parses what it does not hold.

    The first few sets are kept at once, others from their second sight on: data with options of its
    own in every row would otherwise fill the cache with sets that never come again.

    Parameters
    ----------
    make : callable
        What to keep beside each question set, given the set and whether it will be kept.
    """

    def __init__(self, make: Callable[[QuestionSet, bool], Made]) -> None:
        super().__init__()
        self._make = make
        self._seen: set[int] = set()

    def __missing__(self, raw: bytes) -> tuple[QuestionSet, Made]:
        try:
            questions = parse_questions(raw)
        except QuestionFault as fault:
            raise RowFault(str(fault)) from None
        key = hash(raw)
        if len(self) >= KEPT_AT_ONCE and key not in self._seen:
            if len(self._seen) >= 64 * CACHE_SIZE:
                self._seen.clear()
            self._seen.add(key)
            return questions, self._make(questions, False)
        if len(self) >= CACHE_SIZE:
            del self[next(iter(self))]
        entry = self[raw] = (questions, self._make(questions, True))
        return entry


def decode_row(line: bytes) -> Row:
    """Decode one line that a scan has found good."""
    try:
        return _row.decode(line)
    except (msgspec.MsgspecError, RecursionError):
        return explain_row(line)


def explain_row(line: bytes) -> Row:
    """Read a line strictly: either a row, or every fault of its shape.

    Raises
    ------
    RowFault
        What is wrong, in the order state, questions, expected.
    """
    try:
        value = strict_loads(line)
    except JsonFault as error:
        raise RowFault(str(error)) from None
    if type(value) is not dict:
        raise RowFault(f"a row is an object, not {type_name(value)}")
    faults = [f"{key} is missing" for key in _REQUIRED if key not in value]
    faults += [
        f"{key} must be an object, not {type_name(value[key])}"
        for key in _REQUIRED[1:]
        if key in value and type(value[key]) is not dict
    ]
    if faults:
        raise RowFault("\n".join(faults))
    optional = {key: value[key] for key in Row.__struct_fields__[3:] if key in value}
    return Row(value["state"], Raw(dumps(value["questions"])), value["expected"], **optional)


def has_repeated_key(line: bytes) -> bool:
    """Whether some object of a decodable line names a key twice.

    Colons are at least as many as keys, so equality with the decoded keys proves there is none.
    """
    if count_keys(loads(line)) == line.count(b":"):
        return False
    try:
        strict_loads(line)
    except JsonFault:
        return True
    return False


def plain_row(row: Row, questions: QuestionSet) -> Row:
    """The same row with tags, language and model as text or absent.

    Raises
    ------
    RowFault
        Every fault of its labels and optional fields.
    """
    faults = []
    for qid, label in row.expected.items():
        question = questions.questions.get(qid)
        if question is None:
            faults.append(f"expected names {quote(qid)}, which questions does not ask")
        elif question.gold(label) is None:
            faults.append(f"expected.{qid}: {explain_label(question, label)}")
    if row.tags and type(row.tags) is not list:
        faults.append(f"tags must be an array, not {type_name(row.tags)}")
    if not (row.model is UNSET or row.model is None or _is_text(row.model)):
        faults.append(f"model must be text, not {type_name(row.model)} {quote(row.model)}")
    for name, value in (("id", row.id), ("group", row.group)):
        if not (value is UNSET or value is None or type(value) is int or _is_text(value)):
            faults.append(f"{name} must be text or a whole number, not {type_name(value)} {quote(value)}")
    if faults:
        raise RowFault("\n".join(faults))
    tags = list(map(str, row.tags)) if row.tags else UNSET
    language = row.language if row.language is UNSET or row.language is None else str(row.language)
    return Row(row.state, row.questions, row.expected, tags, language, row.model, row.id, row.group)


def _is_text(value: Any) -> bool:
    return type(value) is str and bool(value.strip())
