"""The reply log: one line a reply, and the foreign shapes replay understands."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from steelyard.core.requests import Facts, Failure, Reply
from steelyard.formats.answers import WireAnswer
from steelyard.formats.jsontext import JsonFault, dumps, loads, quote, type_name

Judgeable = dict[str, WireAnswer | Failure] | Failure


class LoggedReply(msgspec.Struct, omit_defaults=True, gc=False):
    """One line of `replies.jsonl`.

    `ms` and `shared` are the wall time of the call that returned this reply and how many rows
    shared it; a failed call has no time. `cost` is the money the row took, where that is known.
    """

    row: int
    answers: dict[str, WireAnswer] | None = None
    error: Failure | None = None
    model: str | None = None
    ms: float | None = None
    shared: int = 1
    cost: float | None = None
    facts: Facts | None = None


class _LooseReply(msgspec.Struct):
    row: int
    answers: dict[str, msgspec.Raw] | None = None
    error: Failure | None = None
    model: str | None = None
    ms: float | None = None
    shared: int = 1
    cost: float | None = None
    facts: Facts | None = None


_logged = msgspec.json.Decoder(LoggedReply)
_loose = msgspec.json.Decoder(_LooseReply)
_answer = msgspec.json.Decoder(WireAnswer)


class ParsedReply(msgspec.Struct, eq=False, gc=False):
    """A reply line read back: what is judged, and the facts of its call."""

    row: int
    answers: Judgeable
    model: str | None
    ms: float | None
    shared: int
    cost: float | None = None
    facts: Facts | None = None


def encode_reply(reply: Reply, ms: float | None, shared: int) -> bytes:
    """One log line, without its line feed.

    Parameters
    ----------
    reply : Reply
        Answers as Python values or as `msgspec.Raw` JSON.
    ms : float or None
        Wall time of the call in milliseconds; None when it failed.
    shared : int
        Rows that shared the call.
    """
    failure = reply.failure
    answers = reply.answers
    body = None
    if failure is None:
        try:
            body = dumps(answers)
        except (TypeError, ValueError, RecursionError, msgspec.MsgspecError, JsonFault) as error:
            failure = Failure("invalid_answer", f"answers cannot be written as JSON: {str(error)[:120]}")
    # NaN is written as null, so null is where a number that is none may hide.
    if body is not None and b"null" in body and not isinstance(answers, msgspec.Raw):
        where = not_finite(answers, "answers")
        failure = Failure("invalid_answer", where) if where else None
    head = b'{"row":%d' % reply.row
    if failure is None:
        head += b',"answers":' + (body or b"{}")
    else:
        head += b',"error":' + dumps(failure)
    if reply.model is not None:
        head += b',"model":' + dumps(str(reply.model))
    if ms is not None:
        head += b',"ms":%.4f' % ms
    if reply.cost is not None:
        head += b',"cost":' + dumps(reply.cost)
    if reply.facts is not None:
        head += b',"facts":' + dumps(reply.facts)
    return head + (b',"shared":%d}' % shared if shared != 1 else b"}")


def not_finite(value: Any, path: str) -> str | None:
    """Path of the first NaN or infinity inside a value, with what it is; None when there is none.

    >>> not_finite({"p": [0.5, float("nan")]}, "answers")
    'answers.p[1] is NaN'
    """
    if type(value) is float and not math.isfinite(value):
        return f"{path} is {'NaN' if math.isnan(value) else 'infinite'}"
    items: Any = ()
    if isinstance(value, dict):
        items = ((f"{path}.{key}", item) for key, item in value.items())
    elif isinstance(value, (list, tuple)):
        items = ((f"{path}[{i}]", item) for i, item in enumerate(value))
    for inner, item in items:
        found = not_finite(item, inner)
        if found:
            return found
    return None


def parse_reply(line: bytes) -> ParsedReply:
    """Read one log line.

    Raises
    ------
    JsonFault
        The line is not a reply record.
    """
    try:
        reply: Any = _logged.decode(line)
        answers = reply.answers
    except (msgspec.MsgspecError, RecursionError):
        reply, answers = _parse_loosely(line)
    return _parsed(reply, answers)


def parse_replies(block: bytes) -> list[ParsedReply]:
    """Read whole log lines, many at a time.

    Raises
    ------
    JsonFault
        A line is not a reply record; its arguments are the text and the line's position in the block.
    """
    try:
        return [_parsed(reply, reply.answers) for reply in _logged.decode_lines(block)]
    except (msgspec.MsgspecError, RecursionError):
        pass
    replies = []
    for position, line in enumerate(block.removesuffix(b"\n").split(b"\n")):
        try:
            replies.append(parse_reply(line))
        except JsonFault:
            raise JsonFault("not a reply record; restore the file", position) from None
    return replies


def _parsed(reply: Any, answers: Any) -> ParsedReply:
    if reply.error is not None:
        answers = reply.error
    elif answers is None:
        answers = Failure("missing_answer", "the reply holds no answers")
    return ParsedReply(reply.row, answers, reply.model, reply.ms, reply.shared, reply.cost, reply.facts)


def _parse_loosely(line: bytes) -> tuple[Any, dict[str, WireAnswer | Failure] | Failure | None]:
    try:
        reply = _loose.decode(line)
    except (msgspec.MsgspecError, RecursionError):
        return _parse_odd(line)
    if reply.answers is None:
        return reply, None
    answers: dict[str, WireAnswer | Failure] = {}
    for qid, raw in reply.answers.items():
        try:
            answers[qid] = _answer.decode(raw)
        except (msgspec.MsgspecError, RecursionError):
            answers[qid] = Failure("invalid_answer", explain_answer(loads(bytes(raw))))
    return reply, answers


def _parse_odd(line: bytes) -> tuple[Any, dict[str, WireAnswer | Failure] | Failure | None]:
    """Lone surrogates, or answers that are not an object of objects."""
    value = loads(line)
    if type(value) is not dict or type(value.get("row")) is not int:
        raise JsonFault("not a reply record")
    given = value.pop("answers", None)
    try:
        reply = msgspec.convert(value, _LooseReply)
    except msgspec.MsgspecError:
        raise JsonFault("not a reply record") from None
    if given is None:
        return reply, None
    if type(given) is not dict:
        return reply, Failure("invalid_answer", f"answers is {type_name(given)}, not an object")
    answers: dict[str, WireAnswer | Failure] = {}
    for qid, body in given.items():
        try:
            answers[qid] = msgspec.convert(body, WireAnswer)
        except msgspec.MsgspecError:
            answers[qid] = Failure("invalid_answer", explain_answer(body))
    return reply, answers


def explain_answer(body: Any) -> str:
    """Say what keeps a JSON value from being an answer, naming the field."""
    if type(body) is not dict:
        return f"the answer is {type_name(body)}, not an object"
    probabilities = body.get("probabilities")
    if probabilities is not None and type(probabilities) is not dict:
        return f"probabilities is {type_name(probabilities)}, not an object"
    for option, value in (probabilities or {}).items():
        if type(value) not in (int, float):
            return f"probabilities.{option} is {type_name(value)} {quote(value)}, not a number"
    return "the answer cannot be read"
