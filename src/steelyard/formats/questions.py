"""Question bodies as datasets and wires spell them."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Iterable
from typing import Any

import msgspec

from steelyard.core.questions import (
    KINDS,
    SIDES,
    ChoiceQuestion,
    NoulQuestion,
    Question,
    QuestionSet,
    ScoreQuestion,
    scalar_text,
)
from steelyard.formats.jsontext import JsonFault, count_keys, dumps, quote, strict_loads, type_name

_decode = msgspec.json.Decoder().decode


class QuestionFault(ValueError):
    """A question body that no engine could answer; the message names field and mend."""


def parse_questions(raw: bytes) -> QuestionSet:
    """Parse the JSON object of questions.

    Raises
    ------
    QuestionFault
        One message for each fault, joined by newlines, each starting with the question's path.
    """
    try:
        bodies = _decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        bodies = _strictly(raw)
    if type(bodies) is not dict:
        raise QuestionFault(f"questions must be an object, not {type_name(bodies)}")
    n_colons, n_keys = raw.count(b":"), _count_plain_keys(bodies)
    if n_colons != n_keys:
        n_keys = count_keys(bodies)
        if n_colons != n_keys:
            _strictly(raw)
    questions, faults = {}, []
    for qid, body in bodies.items():
        try:
            questions[qid] = parse_question(qid, body, ascii_only=raw.isascii())
        except QuestionFault as fault:
            faults.append(f"questions.{qid}: {fault}")
    if faults:
        raise QuestionFault("\n".join(faults))
    limits = tuple([question.limit for question in questions.values()])
    return QuestionSet(questions, bodies, n_keys, raw, limits)


def _count_plain_keys(bodies: dict[str, Any]) -> int:
    """Keys of bodies whose only inner object is `criteria`, the common shape; else too few."""
    total = len(bodies)
    for body in bodies.values():
        if type(body) is dict:
            criteria = body.get("criteria")
            total += len(body) + (len(criteria) if type(criteria) is dict else 0)
    return total


def _strictly(raw: bytes) -> Any:
    try:
        return strict_loads(raw)
    except JsonFault as error:
        raise QuestionFault(f"questions: {error}") from None


def parse_question(qid: str, body: Any, *, ascii_only: bool = False) -> Question:
    """Parse one question body.

    Parameters
    ----------
    qid : str
        Its id, non-blank.
    body : object
        The authored body: `type`, `instructions`, and `criteria` as its type wants them.
    ascii_only : bool
        The caller knows that all of it is ASCII, so look-alike options need not be sought.

    Raises
    ------
    QuestionFault
        The body cannot be asked.
    """
    if not qid.strip():
        raise QuestionFault("a question id must not be blank")
    if type(body) is not dict:
        raise QuestionFault(f"must be an object, not {type_name(body)}")
    kind = body.get("type")
    instructions = body.get("instructions")
    if kind not in KINDS:
        raise QuestionFault(f"type {quote(kind)} is not one of {', '.join(KINDS)}")
    if not (type(instructions) is str and instructions.strip()) and not _has_content(instructions):
        raise QuestionFault("instructions must say what to answer: text, or a non-empty object or list")
    if "labels" in body and kind != "noul":
        raise QuestionFault("labels belongs to noul questions; name options in criteria")
    criteria = body.get("criteria")
    if kind == "choice":
        question: Question = _choice(qid, instructions, criteria, ascii_only)
    elif kind == "score":
        question = _score(qid, instructions, criteria)
    else:
        question = _noul(qid, instructions, criteria, body.get("labels"))
    if "option_order" in body:
        _check_order(body["option_order"], len(question.options))
    return question


def _has_content(instructions: Any) -> bool:
    return type(instructions) in (int, float) or (type(instructions) in (dict, list) and bool(instructions))


def _check_order(order: Any, size: int) -> None:
    if (
        type(order) is not list
        or not all(type(i) is int for i in order)
        or sorted(order) != list(range(size))
    ):
        raise QuestionFault(f"option_order must hold 0 to {size - 1}, each once")


def _choice(qid: str, instructions: Any, criteria: Any, ascii_only: bool) -> ChoiceQuestion:
    if type(criteria) is dict and criteria:
        labels, descriptions = tuple(criteria), tuple(criteria.values())
    elif type(criteria) is list and criteria:
        for label in criteria:
            if label is None or type(label) in (dict, list):
                raise QuestionFault(f"criteria holds {type_name(label)}; an option is text or a number")
        if len(set(criteria)) < len(criteria):
            again = next(label for i, label in enumerate(criteria) if label in criteria[:i])
            raise QuestionFault(f"option {quote(again)} is listed twice in criteria")
        labels, descriptions = tuple(map(scalar_text, criteria)), (None,) * len(criteria)
        if len(set(labels)) < len(labels):
            raise QuestionFault("two options in criteria read the same once written as text")
    else:
        raise QuestionFault("criteria must list at least one option, as an object or an array")
    if not all(labels) or any(map(str.isspace, labels)):
        raise QuestionFault("criteria holds a blank option; give it a name")
    if not ascii_only:
        _check_twins(labels)
    return ChoiceQuestion(qid, instructions, labels, descriptions)


def _check_twins(labels: Iterable[str]) -> None:
    seen: dict[str, str] = {}
    for label in labels:
        twin = seen.setdefault(unicodedata.normalize("NFC", label), label)
        if twin is not label:
            raise QuestionFault(
                f"options {quote(twin)} ({code_points(twin, label)}) and {quote(label)} "
                f"({code_points(label, twin)}) differ only by Unicode normal form; keep one"
            )


def code_points(text: str, other: str) -> str:
    """The first code points at which `text` departs from `other`, for messages about look-alikes.

    >>> code_points("caf\\u00e9", "cafe\\u0301")
    'U+00E9'
    """
    start = next(
        (i for i, (a, b) in enumerate(zip(text, other, strict=False)) if a != b), min(len(text), len(other))
    )
    return " ".join(f"U+{ord(c):04X}" for c in text[start : start + 2])


def _score(qid: str, instructions: Any, criteria: Any) -> ScoreQuestion:
    if type(criteria) is not list or not criteria:
        raise QuestionFault("criteria must be an array of levels, lowest first")
    if None in criteria:
        raise QuestionFault("criteria holds a null level; say what it means")
    keys = tuple(map(str, range(len(criteria))))
    return ScoreQuestion(qid, instructions, keys, criteria)


def _noul(qid: str, instructions: Any, criteria: Any, labels: Any) -> NoulQuestion:
    described: dict[str, Any] = {}
    if criteria is not None:
        if type(criteria) is not dict:
            raise QuestionFault(f"criteria of a noul question is an object, not {type_name(criteria)}")
        described = {key.lower(): text for key, text in criteria.items()}
        if not set(described) <= set(SIDES) or len(described) < len(criteria):
            raise QuestionFault("criteria of a noul question has only the keys true and false")
    names = labels if labels is not None else {"false": "no", "true": "yes"}
    if type(names) is not dict or set(names) != set(SIDES) or not all(map(_is_name, names.values())):
        raise QuestionFault('labels must be {"false": text, "true": text}')
    if names["false"] == names["true"]:
        raise QuestionFault("labels gives both sides the same name")
    descriptions = tuple(map(described.get, SIDES))
    return NoulQuestion(qid, instructions, SIDES, descriptions, (names["false"], names["true"]))


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def identity_text(qid: str, body: Any) -> str:
    """Canonical text of one question for `questions_sha256` (FORMATS.md 3.2)."""
    fields = body if isinstance(body, dict) else {}
    instructions = fields.get("instructions")
    if not isinstance(instructions, str):
        instructions = json.dumps(instructions, ensure_ascii=False)
    identity = {"qid": qid, "type": fields.get("type"), "instructions": instructions}
    identity |= {key: fields.get(key) for key in ("labels", "criteria")}
    if "option_order" in fields:
        identity["option_order"] = fields["option_order"]
    return json.dumps(identity, ensure_ascii=False, separators=(",", ":"), default=str)


def questions_sha256(texts: Iterable[str]) -> str:
    """Fingerprint of a set of question identities; order and repetition do not matter.

    Parameters
    ----------
    texts : iterable of str
        `identity_text` of each question asked. None at all gives the digest of nothing.
    """
    sha = hashlib.sha256()
    for text in sorted(set(texts)):
        sha.update(text.encode("utf-8", "surrogatepass") + b"\n")
    return sha.hexdigest()


def batch_signature(questions: QuestionSet) -> bytes:
    """Key under which cases may share a call: ids in any order, every body byte for byte."""
    return dumps(sorted(questions.bodies.items()))
