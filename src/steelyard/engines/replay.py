"""Recorded answers, played back row by row."""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from steelyard.core.requests import Ability, CallOptions, Failure, Reply, Request
from steelyard.engines._base import Engine
from steelyard.engines.python import reply_from_body
from steelyard.errors import InputError
from steelyard.formats.jsontext import JsonFault, one_line, quote, strict_loads, type_name
from steelyard.formats.report import align_cases, read_report
from steelyard.formats.rows import has_repeated_key
from steelyard.formats.source import BOM, LineSource

if TYPE_CHECKING:
    from steelyard.formats.dataset import Dataset

_NOT_RECORDED = Failure("no_recorded_reply", "nothing was recorded for this row")
_BLOCK = 1 << 18


class _Record(msgspec.Struct):
    answers: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: Any = None
    row: int | msgspec.UnsetType = msgspec.UNSET
    id: str | int | msgspec.UnsetType = msgspec.UNSET
    model: str | None = None
    routing: Any = None


_decode = msgspec.json.Decoder(_Record).decode


class ReplayEngine(Engine):
    """Plays back a JSON Lines file, a run folder, or a saved report.

    A line holds ``{"answers": {...}}`` or the bare answers, and answers the row it names by `row`
    or `id`, else the row of its own number. A line with `error` is an errored row whatever answers
    stand beside it.
    """

    name = "replay"
    summary = "recorded answers: JSONL, a run folder, or a laya-evals-report/1 file"
    needs = "a file of answers"
    target_help = "PATH"
    abilities = Ability.BATCH | Ability.PIN_MODEL

    def __init__(self, target: str | None = None, **settings: Any) -> None:
        super().__init__(target, **settings)
        path = Path(target or "")
        self._is_log = path.is_dir()
        self._path = path / "replies.jsonl" if self._is_log else path
        try:
            self._source = LineSource.open(self._path)
        except ValueError as error:
            raise InputError(f'engine "replay": {error}') from None
        self.revision = f"sha256:{self._source.sha256()}"
        self._places: array[int] = array("q")
        self._cases: dict[int, Reply] | None = None

    def prepare(self, dataset: Dataset, options: CallOptions) -> None:
        report = None if self._is_log else self._report()
        if report is not None:
            self._cases = align_cases(dataset, report, str(self._path))
            return
        self._index(dataset)

    def _report(self) -> Mapping[str, Any] | None:
        """The file as a report, or None when it is lines."""
        first = next(self._source.blocks(1 << 12), b"").removeprefix(BOM).lstrip()
        head = first.split(b"\n", 1)[0]
        if b'"answers"' in head or not first.startswith(b"{"):
            return None
        try:
            value = json.loads(head)
        except ValueError:
            return read_report(self._path)
        is_report = isinstance(value, dict) and "cases" in value and "overall" in value
        return read_report(self._path) if is_report else None

    def _index(self, dataset: Dataset) -> None:
        """Find the line that answers each row."""
        self._places = array("q", [-1]) * (2 * len(dataset))
        ids: dict[Any, int] | None = None
        number, start, keyed = 0, 0, 0
        for block in self._source.blocks(_BLOCK):
            offset, start = start, start + len(block)
            for line in block.split(b"\n"):
                text = line.strip().removeprefix(BOM)
                if text and not text.startswith(b"#"):
                    record = self._record(text, number)
                    if record.id is not msgspec.UNSET and record.row is msgspec.UNSET and ids is None:
                        ids = {case.id: case.row for case in dataset if case.id is not None}
                    row, named = self._row_of(record, number, ids, len(dataset))
                    keyed += named
                    if self._places[2 * row] >= 0 and not self._is_log:
                        raise InputError(f"{self._path}: row {row} is answered twice; keep one answer")
                    self._places[2 * row], self._places[2 * row + 1] = offset, len(line)
                    number += 1
                offset += len(line) + 1
        if number != len(dataset) and not keyed:
            raise InputError(
                f"{self._path}: {number} recorded answers for {len(dataset)} rows; "
                "give each line a row or an id, or record all rows"
            )

    def _row_of(
        self, record: _Record, number: int, ids: dict[Any, int] | None, rows: int
    ) -> tuple[int, bool]:
        row = number if record.row is msgspec.UNSET else record.row
        named = record.row is not msgspec.UNSET
        if not named and record.id is not msgspec.UNSET and ids is not None:
            if record.id not in ids:
                raise InputError(
                    f"{self._path}: answer {number + 1} names id {quote(record.id)}, which no row has"
                )
            row, named = ids[record.id], True
        if not 0 <= row < rows:
            hint = "name rows from 0" if named else "give each line a row or an id"
            raise InputError(
                f"{self._path}: answer {number + 1} is for row {row}, the dataset has {rows}; {hint}"
            )
        return row, named

    def _record(self, text: bytes, number: int) -> _Record:
        try:
            record = _decode(text)
            if has_repeated_key(text):
                strict_loads(text)
            return record
        except JsonFault as fault:
            raise InputError(f"{self._path}: answer {number + 1}: {fault}") from None
        except (msgspec.MsgspecError, RecursionError):
            pass
        value = self._lenient(text, number)
        if isinstance(value.get("row"), dict) or not ("answers" in value or "error" in value):
            return _Record()
        row, name = value.get("row", msgspec.UNSET), value.get("id", msgspec.UNSET)
        if not (row is msgspec.UNSET or type(row) is int):
            raise InputError(
                f"{self._path}: answer {number + 1}: row is {type_name(row)}, not a whole number"
            )
        return _Record(row=row, id=name)

    def _lenient(self, text: bytes, number: int) -> dict[str, Any]:
        """Read a line as the vendor's tool wrote it, NaN literals included, to say what is wrong."""
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{self._path}: answer {number + 1} is not JSON: {one_line(error)}") from None
        if not isinstance(value, dict):
            raise InputError(f"{self._path}: answer {number + 1} is {type_name(value)}, not an object")
        return value

    def answer(self, requests: Sequence[Request], options: CallOptions) -> Sequence[Reply]:
        return [self._reply(request.row) for request in requests]

    def _reply(self, row: int) -> Reply:
        if self._cases is not None:
            return self._cases.get(row) or Reply(row, failure=_NOT_RECORDED)
        offset, size = self._places[2 * row], self._places[2 * row + 1]
        if offset < 0:
            return Reply(row, failure=_NOT_RECORDED)
        text = self._source.read_near(offset, size).strip().removeprefix(BOM)
        try:
            record = _decode(text)
        except (msgspec.MsgspecError, RecursionError):
            return _from_body(row, self._lenient(text, row))
        if record.error is not None:
            return Reply(row, failure=_recorded(record.error))
        if record.answers is msgspec.UNSET:
            return Reply(row, msgspec.Raw(text))
        routed = record.routing.get("model") if isinstance(record.routing, dict) else None
        return Reply(row, record.answers, routed or record.model)


def _from_body(row: int, body: dict[str, Any]) -> Reply:
    error = body.get("error")
    if error is not None and not (isinstance(error, dict) and "type" in error):
        return Reply(row, failure=_recorded(error))
    return reply_from_body(row, body)


def _recorded(error: Any) -> Failure:
    if isinstance(error, dict) and isinstance(error.get("message"), str):
        return Failure("recorded_error", one_line(error["message"]))
    return Failure("recorded_error", one_line(error))
