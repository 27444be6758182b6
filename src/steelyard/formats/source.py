"""Where the lines of a dataset come from: a file, a gzip file, standard input or memory."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import sys
import tempfile
import weakref
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Protocol

from steelyard.errors import DatasetError
from steelyard.formats.jsontext import one_line

BOM = b"\xef\xbb\xbf"
_CHUNK = 1 << 20
_READ_AHEAD = 1 << 16


class SupportsRead(Protocol):
    """Whatever hands out bytes."""

    def read(self, size: int, /) -> bytes: ...


class LineSource:
    """Bytes that can be read line by line, again and again, and at any offset.

    Parameters
    ----------
    stream : binary file
        Seekable. Owned: it lives as long as the source.
    name : str
        What messages call it.
    """

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self._stream = stream
        weakref.finalize(self, stream.close)
        self.name = name
        self._ahead = (0, b"")

    @classmethod
    def open(cls, path: str | Path) -> LineSource:
        """Open a dataset path; ``-`` is standard input and ``.gz`` is unpacked beside memory.

        Raises
        ------
        DatasetError
            The path is missing, a folder, unreadable, or not the gzip file its name promises.
        """
        name = one_line(path)
        try:
            if str(path) == "-":
                return cls(_spooled(sys.stdin.buffer), "<stdin>")
            if str(path).endswith(".gz"):
                with gzip.open(path, "rb") as packed:
                    return cls(_spooled(packed), name)
            return cls(_reopenable(path), name)
        except (OSError, EOFError, zlib.error) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise DatasetError(f"{name}: cannot be read: {reason}") from None

    @classmethod
    def from_bytes(cls, data: bytes, name: str) -> LineSource:
        """Serve bytes already in memory."""
        return cls(io.BytesIO(data), name)

    def blocks(self, size: int) -> Iterator[bytes]:
        """Whole lines, about `size` bytes of them at a time; only ``\\n`` ends a line."""
        self._stream.seek(0)
        while block := self._stream.read(size):
            yield block if block.endswith(b"\n") else block + self._stream.readline()

    def read_at(self, offset: int, size: int) -> bytes:
        """Read `size` bytes at `offset`; safe from several threads."""
        if isinstance(self._stream, io.BytesIO):
            return bytes(self._stream.getbuffer()[offset : offset + size])
        return os.pread(self._stream.fileno(), size, offset)

    def read_near(self, offset: int, size: int) -> bytes:
        """As `read_at`, reading ahead for callers that go through the bytes in order."""
        start, ahead = self._ahead
        if not start <= offset or offset + size > start + len(ahead):
            start, ahead = offset, self.read_at(offset, max(size, _READ_AHEAD))
            self._ahead = (start, ahead)
        return ahead[offset - start : offset - start + size]

    def sha256(self) -> str:
        """Digest of the bytes, unpacked."""
        sha = hashlib.sha256()
        self._stream.seek(0)
        while chunk := self._stream.read(_CHUNK):
            sha.update(chunk)
        return sha.hexdigest()


def _reopenable(path: str | Path) -> IO[bytes]:
    stream = open(path, "rb", buffering=_CHUNK)  # noqa: SIM115 - owned by the source
    if stream.seekable():
        return stream
    with stream:
        return _spooled(stream)


def _spooled(stream: SupportsRead) -> IO[bytes]:
    # A real file, so that `read_at` works and memory stays flat however much arrives.
    copy = tempfile.TemporaryFile(buffering=_CHUNK)  # noqa: SIM115 - owned by the source
    try:
        while chunk := stream.read(_CHUNK):
            copy.write(chunk)
        copy.flush()
    except BaseException:
        copy.close()
        raise
    return copy
