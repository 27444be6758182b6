"""The run folder: what was asked for, and every reply as it came."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from steelyard.errors import IncomparableError, InputError, ReportError
from steelyard.formats.files import write_whole
from steelyard.formats.jsontext import JsonFault, one_line, pretty, quote, strict_loads
from steelyard.formats.replies import ParsedReply, parse_replies, parse_reply
from steelyard.formats.source import LineSource

try:
    import fcntl
except ImportError:  # pragma: no cover - not on this platform
    fcntl = None  # type: ignore[assignment]

RUN_SCHEMA = "steelyard-run/1"
_BLOCK = 1 << 18


class RunLog:
    """Append-only replies of one run, and the identity they belong to.

    Parameters
    ----------
    folder : Path or None
        None keeps the log in a temporary folder for as long as the object lives.
    """

    def __init__(self, folder: Path | None) -> None:
        if folder is None:
            folder = Path(tempfile.mkdtemp(prefix="steelyard-"))
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.folder = folder
        self.path = self.folder / "replies.jsonl"
        self.warnings: list[str] = []
        self._stream: Any = None

    def open(self, identity: Mapping[str, Any], dataset: str) -> None:
        """Start a run, or take up one of the same identity.

        Raises
        ------
        IncomparableError
            The folder belongs to another run; the message names what changed.
        InputError
            The folder cannot be used, or another process is writing to it.
        """
        record = self.folder / "run.json"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if record.exists():
                refuse_change(read_run(self.folder), identity, str(self.folder))
            elif self.path.exists() and self.path.stat().st_size:
                raise InputError(
                    f"{one_line(self.folder)}: has replies but no run.json; choose another folder"
                )
            self.start()
            self._lock()
            if not record.exists():
                whole = {"schema": RUN_SCHEMA, **identity, "dataset_path": dataset}
                write_whole(record, (pretty(whole) + "\n").encode())
        except OSError as error:
            raise InputError(f"{one_line(self.folder)}: cannot be used: {error.strerror or error}") from None
        self._mend_tail()

    def start(self) -> None:
        """Open the log for appending."""
        self._stream = open(self.path, "ab", buffering=0)  # noqa: SIM115 - closed by close()
        weakref.finalize(self, self._stream.close)

    def _lock(self) -> None:
        if fcntl is not None:
            try:
                fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._stream.close()
                raise InputError(
                    f"{one_line(self.folder)}: another run is writing here; wait, or choose another folder"
                ) from None

    def _mend_tail(self) -> None:
        """Drop a torn last line, and end a whole one that lacks its line feed."""
        for offset, line in _log_lines(self.path):
            if line.endswith(b"\n"):
                continue
            if _is_whole(line):
                self._stream.write(b"\n")
            else:
                os.truncate(self.path, offset)
                self.warnings.append(
                    f"{one_line(self.path)}: dropped a torn last line; its row is asked again"
                )

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Row and text of every reply here, the last one of each row, in row order.

        Raises
        ------
        ReportError
            A line in the middle is not a reply record; the file is left as it is.
        """
        places: dict[int, tuple[int, int]] = {}
        source = LineSource.open(self.path)
        for offset, size, row in self._rows():
            places[row] = (offset, size)
        for row in sorted(places):
            yield row, source.read_near(*places[row])

    def read(self) -> Iterator[ParsedReply]:
        """Every reply here, parsed, in order of arrival; of two for one row the later one counts.

        Raises
        ------
        ReportError
            As `lines`.
        """
        number = 1
        for block in LineSource.open(self.path).blocks(_BLOCK):
            try:
                replies = parse_replies(block)
            except JsonFault as fault:
                raise ReportError(
                    f"{one_line(self.path)}:{fault.args[1] + number}: {fault.args[0]}"
                ) from None
            number += len(replies)
            yield from replies

    def _rows(self) -> Iterator[tuple[int, int, int]]:
        for number, (offset, line) in enumerate(_log_lines(self.path), 1):
            try:
                if not line.startswith(b'{"row":') or not line.endswith(b"}\n"):
                    raise ValueError
                end = min(at for at in (line.find(b",", 7), line.find(b"}", 7)) if at > 0)
                yield offset, len(line) - 1, int(line[7:end])
            except ValueError:
                raise ReportError(
                    f"{one_line(self.path)}:{number}: not a reply record; restore the file"
                ) from None

    def append(self, lines: Iterable[bytes]) -> None:
        """Write whole lines in one go."""
        data = b"".join([line + b"\n" for line in lines])
        try:
            while data:
                data = data[self._stream.write(data) :]
        except OSError as error:
            raise InputError(f"{one_line(self.path)}: cannot be written: {error.strerror or error}") from None

    def close(self) -> None:
        """Stop writing; what is there can still be read."""
        if self._stream is not None:
            with contextlib.suppress(OSError):
                self._stream.close()


def _log_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    offset = 0
    with open(path, "rb", buffering=1 << 20) as stream:
        for line in stream:
            yield offset, line
            offset += len(line)


def _is_whole(line: bytes) -> bool:
    try:
        parse_reply(line)
    except JsonFault:
        return False
    return True


def read_run(folder: Path) -> dict[str, Any]:
    """The identity a run folder was made with.

    Raises
    ------
    ReportError
        Not a run folder, or its record cannot be read.
    """
    path = folder / "run.json"
    try:
        value = strict_loads(path.read_bytes())
    except OSError as error:
        mend = "name a folder that `run --out` made"
        raise ReportError(f"{one_line(path)}: cannot be read: {error.strerror or error}; {mend}") from None
    except JsonFault as error:
        raise ReportError(f"{one_line(path)}: {error}") from None
    if not isinstance(value, dict) or value.get("schema") != RUN_SCHEMA:
        raise ReportError(f"{one_line(path)}: not a {RUN_SCHEMA} record")
    return {key: item for key, item in value.items() if key not in ("schema", "dataset_path")}


def dataset_path(folder: Path) -> str:
    """Where the run's dataset stood when the run was made.

    Raises
    ------
    ReportError
        Not a run folder.
    """
    read_run(folder)
    return str(strict_loads((folder / "run.json").read_bytes())["dataset_path"])


def refuse_change(
    old: Mapping[str, Any], new: Mapping[str, Any], name: str, mend: str = "choose another folder"
) -> None:
    """Refuse to mix two runs, telling how to mend it.

    Raises
    ------
    IncomparableError
        Names every part that differs, with both values.
    """
    changes = list(_differences(old, new, ""))
    if changes:
        shown = "; ".join(f"{key} was {quote(was)}, is now {quote(now)}" for key, was, now in changes)
        raise IncomparableError(f"{one_line(name)}: holds another run: {shown}; {mend}")


def _differences(old: Any, new: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys([*old, *new]):
            yield from _differences(old.get(key), new.get(key), f"{path}.{key}" if path else key)
    elif old != new:
        yield path, old, new
