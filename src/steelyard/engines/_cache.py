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
    folder : path
        Made when it is not there; the replies are one SQLite file in it, and one run at a time writes.

    Raises
    ------
    InputError
        The file cannot be opened, or is no cache.
    """

    def __init__(self, folder: str | Path) -> None:
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
            self._base = sqlite3.connect(Path(folder) / "replies.sqlite", isolation_level=None, timeout=5.0)
            self._base.execute("pragma journal_mode=wal")
            self._base.execute(
                "create table if not exists replies (key text primary key, body blob, headers blob)"
            )
        except (sqlite3.Error, OSError) as error:
            said = getattr(error, "strerror", None) or error
            raise InputError(f"cache {one_line(folder)}: {one_line(said)}; name a folder") from None

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
