"""Saved reports: read, aligned with a dataset, or taken apart into one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from steelyard.core.requests import Failure, Reply
from steelyard.errors import ReportError
from steelyard.formats.garbage import collector_paused
from steelyard.formats.jsontext import JsonFault, one_line, quote, strict_loads, type_name

if TYPE_CHECKING:
    from steelyard.formats.dataset import Dataset

SCHEMA = "laya-evals-report/1"
COVERAGE_DEFINITION = 2
BIG = 1 << 20
"""Bytes from which the cases of a report are read the quick way."""


def read_document(path: str | Path, *, nan: bool = True, cases: bool = True) -> dict[str, Any]:
    """Read a JSON object that stands for a run: a report, or a bare map of metrics.

    Parameters
    ----------
    path : path
    nan : bool
        Let NaN and infinities pass, as other tools write them.
    cases : bool
        False leaves the cases out where that saves reading them.

    Raises
    ------
    ReportError
        Unreadable, not JSON, or not an object.
    """
    name = one_line(path)
    try:
        data = Path(path).read_bytes()
        with collector_paused():
            value = _with_fast_cases(data, cases) if len(data) > BIG else None
            if value is None:
                value = strict_loads(data, nan=nan)
    except OSError as error:
        raise ReportError(f"{name}: cannot be read: {error.strerror or error}") from None
    except JsonFault as error:
        raise ReportError(f"{name}: {error}") from None
    if not isinstance(value, dict):
        raise ReportError(f"{name}: a report is an object, not {type_name(value)}")
    return value


def _with_fast_cases(data: bytes, cases: bool) -> dict[str, Any] | None:
    """A report whose cases, nearly all of its bytes, take the quick way; None where that cannot be."""
    try:
        parts = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        if "cases" not in parts:
            return None
        found = msgspec.json.decode(parts["cases"]) if cases else []
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return {
        key: found if key == "cases" else strict_loads(bytes(text), nan=True) for key, text in parts.items()
    }


def read_report(path: str | Path) -> dict[str, Any]:
    """Read a `laya-evals-report/1` file.

    Raises
    ------
    ReportError
        Unreadable, not strict JSON, or without the parts of a report.
    """
    name, value = one_line(path), read_document(path, nan=False)
    for key, kind in (("config", dict), ("overall", dict), ("slices", dict), ("cases", list)):
        if not isinstance(value.get(key), kind):
            raise ReportError(
                f"{name}: {key} must be {'an object' if kind is dict else 'an array'}; is it a report?"
            )
    return value


def _faulty(report: Mapping[str, Any]) -> dict[int, str]:
    """Rows of `config.errored` whose whole call failed."""
    errored = report["config"].get("errored") or []
    return {
        entry["index"]: str(entry.get("error", "error"))
        for entry in errored
        if isinstance(entry, dict) and type(entry.get("index")) is int and "question" not in entry
    }


def align_cases(dataset: Dataset, report: Mapping[str, Any], name: str) -> dict[int, Reply]:
    """Match a report's cases to the rows of the dataset it was made from.

    Cases that name their row are matched by it, the others in order; question and label must agree.

    Raises
    ------
    ReportError
        A case does not belong where it would go, or some are left over.
    """
    errored = _faulty(report)
    replies: dict[int, Reply] = {}
    cases = _Cases(report["cases"], name)
    for row in range(len(dataset)):
        if row in errored:
            replies[row] = Reply(row, failure=Failure("recorded_error", one_line(errored[row])))
            continue
        expected = dataset.read(row)[0].expected
        answers: dict[str, Any] = {}
        model = None
        for qid, label in expected.items():
            found = cases.take(row, qid)
            if found is None:
                continue
            if found.get("expected") != label or type(found.get("expected")) is not type(label):
                raise ReportError(
                    f"{one_line(name)}: case {cases.position - 1} expects {quote(found.get('expected'))} for "
                    f"{quote(qid)}, {dataset.place(row)} expects {quote(label)}; "
                    "is it a report on this dataset?"
                )
            answers[qid] = found.get("answer")
            model = found.get("model") or model
        if answers or not expected:
            replies[row] = Reply(row, answers, model if isinstance(model, str) else None)
    if cases.position < len(report["cases"]):
        left = len(report["cases"]) - cases.position
        raise ReportError(f"{one_line(name)}: {left} case(s) match no row; is it a report on this dataset?")
    return replies


class _Cases:
    """Cases in file order, handed out to rows that ask for them."""

    def __init__(self, cases: Sequence[Any], name: str) -> None:
        self._cases, self._name = cases, name
        self.position = 0

    def take(self, row: int, qid: str) -> Mapping[str, Any] | None:
        """The next case if it is this row's answer to `qid`, else None when it names another row."""
        if self.position >= len(self._cases):
            return None
        case = self._cases[self.position]
        if not isinstance(case, dict) or not isinstance(case.get("answer"), dict):
            raise ReportError(f"{one_line(self._name)}: case {self.position} has no answer object")
        if case.get("row", row) != row or case.get("qid") != qid:
            return None
        self.position += 1
        return case


class RowKey(NamedTuple):
    """What a report's cases say of their row; None where they do not."""

    row: int | None
    id: str | int | None
    state_sha256: str | None


def rows_of(report: Mapping[str, Any], name: str) -> tuple[list[dict[str, Any]], list[Reply], list[RowKey]]:
    """Take a report apart into dataset rows, replies and what is known of each row.

    Options the report does not show are taken from the probabilities, a score's levels from its
    legend. Cases that name neither row nor id become rows of their own.

    Raises
    ------
    ReportError
        A case is not one, or the report has none.
    """
    rows: list[dict[str, Any]] = []
    replies: list[Reply] = []
    keys: list[RowKey] = []
    last: Any = None
    for position, case in enumerate(report["cases"]):
        try:
            qid, answer, expected = case["qid"], case["answer"], case["expected"]
            body = case.get("question") or _question_of(answer, expected)
        except (KeyError, TypeError, AttributeError):
            raise ReportError(f"{one_line(name)}: case {position} lacks qid, answer or expected") from None
        row = case.get("row", case.get("id"))
        if row is None or row != last:
            rows.append({"state": f"case {position}", "questions": {}, "expected": {}})
            rows[-1] |= {key: case[key] for key in ("language", "tags", "id", "group") if case.get(key)}
            replies.append(Reply(len(rows) - 1, {}, case.get("model")))
            keys.append(_key_of(case))
            last = row
        if qid in rows[-1]["questions"]:
            raise ReportError(f"{one_line(name)}: case {position} answers {quote(qid)} twice for one row")
        rows[-1]["questions"][qid] = body
        rows[-1]["expected"][qid] = expected
        replies[-1].answers[qid] = answer
    if not rows:
        raise ReportError(f"{one_line(name)}: holds no cases; judge a report that was written with cases")
    return rows, replies, keys


def _key_of(case: Mapping[str, Any]) -> RowKey:
    row, identity, digest = case.get("row"), case.get("id"), case.get("state_sha256")
    return RowKey(
        row if type(row) is int else None,
        identity if type(identity) in (str, int) else None,
        digest if isinstance(digest, str) else None,
    )


def _question_of(answer: Mapping[str, Any], expected: Any) -> dict[str, Any]:
    kind = answer.get("type")
    body: dict[str, Any] = {"type": kind, "instructions": "as recorded"}
    probabilities = answer.get("probabilities") or {}
    if kind == "choice":
        body["criteria"] = list(dict.fromkeys([*probabilities] or [str(answer.get("choice")), str(expected)]))
    elif kind == "score":
        levels = len(answer.get("legend") or probabilities)
        known = max(float(expected), float(answer.get("score") or 0))
        body["criteria"] = [f"level {i}" for i in range(levels or int(-(-known // 1)) + 1)]
    return body
