"""Replies kept on disk, so that the same request is paid for once."""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path

from steelyard.engines._http import Answered
from steelyard.errors import InputError
from steelyard.formats.jsontext import dumps, loads, one_line


class Cache:
    """Replies by what was asked; only what was answered is kept.

    Parameters
    ----------
    path : path
        A file, made when it is not there.

    Raises
    ------
    InputError
        The file cannot be opened, or is no cache.
    """

    def __init__(self, path: str | Path) -> None:
        try:
            self._base = sqlite3.connect(path, isolation_level=None, timeout=5.0)
            self._base.execute("pragma journal_mode=wal")
            self._base.execute(
                "create table if not exists replies (key text primary key, body blob, headers blob)"
            )
        except sqlite3.Error as error:
            raise InputError(f"cache {one_line(path)}: {one_line(error)}") from None

    @staticmethod
    def key(engine: str, url: str, model: str, body: bytes) -> str:
        """Digest of everything a reply may depend on."""
        return hashlib.sha256(b"\n".join((engine.encode(), url.encode(), model.encode(), body))).hexdigest()

    def get(self, key: str) -> Answered | None:
        """The reply kept under a key."""
        found = self._base.execute("select body, headers from replies where key = ?", (key,)).fetchone()
        return None if found is None else Answered(loads(found[0]), loads(found[1]), 1, kept=True)

    def put(self, key: str, answered: Answered) -> None:
        """Keep a reply."""
        row = (key, dumps(answered.body), dumps(answered.headers))
        self._base.execute("insert or replace into replies values (?, ?, ?)", row)

    def close(self) -> None:
        """Let go of the file."""
        self._base.close()
