"""A Laya checkpoint folder: what it says of itself, and a digest of all its bytes."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from steelyard.core.questions import KINDS, option_bucket
from steelyard.errors import InputError
from steelyard.formats.jsontext import JsonFault, one_line, strict_loads

CONFIG = "rl_agent_config.json"
COLDEST, HOTTEST = 0.5, 5.0
"""Temperatures outside are not applied: the loader clamps them."""


class Temperatures(msgspec.Struct, frozen=True):
    """Temperatures of a checkpoint, as it says and as they are applied.

    Attributes
    ----------
    by_type, by_bucket : dict
        As the checkpoint says, by question type and by option-count bucket.
    applied_by_type, applied_by_bucket : dict
        Clamped to 0.5 to 5; what is no number is 1.
    """

    by_type: dict[str, Any]
    by_bucket: dict[str, Any]
    applied_by_type: dict[str, float]
    applied_by_bucket: dict[str, float]

    def of(self, kind: str, options: int, *, clamped: bool = True) -> float:
        """Temperature for a question of `options` options: its bucket's, else its type's."""
        bucket = option_bucket(kind, options)
        if clamped:
            return self.applied_by_bucket.get(bucket, self.applied_by_type.get(kind, 1.0))
        found = self.by_bucket.get(bucket, self.by_type.get(kind, 1.0))
        return float(found) if _usable(found) else 1.0


def is_checkpoint(path: str | Path) -> bool:
    """Whether a path is a folder with a checkpoint's configuration."""
    return (Path(path) / CONFIG).is_file()


def read_config(folder: str | Path) -> dict[str, Any]:
    """The configuration of a checkpoint folder.

    Raises
    ------
    InputError
        Missing, unreadable, or no JSON object.
    """
    return read_object(Path(folder) / CONFIG, "a checkpoint's configuration")


def no_commit(revision: str | None) -> None:
    """Refuse a commit for a folder.

    Raises
    ------
    InputError
        One is named.
    """
    if revision is not None:
        raise InputError("revision pins a checkpoint of the hub; a folder has none, so leave it out")


def read_object(path: Path, what: str) -> dict[str, Any]:
    """A file that holds one JSON object; `what` names it in the message.

    Raises
    ------
    InputError
        Missing, unreadable, or no JSON object.
    """
    try:
        found = strict_loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"{one_line(path)}: cannot be read: {error.strerror or error}") from None
    except JsonFault as error:
        raise InputError(f"{one_line(path)}: {error}") from None
    if not isinstance(found, dict):
        raise InputError(f"{one_line(path)}: {what} is an object")
    return found


def temperatures(config: Mapping[str, Any]) -> Temperatures:
    """The temperatures a configuration holds; 1 where it holds none.

    >>> temperatures({"temperature": [1.2, 9, None]}).applied_by_type
    {'choice': 1.2, 'score': 5.0, 'noul': 1.0}
    """
    listed = config.get("temperature")
    values = listed if isinstance(listed, list) else []
    by_type = dict(zip(KINDS, values, strict=False))
    buckets = config.get("temperature_by_options")
    by_bucket = dict(buckets) if isinstance(buckets, dict) else {}
    return Temperatures(
        by_type,
        by_bucket,
        {kind: _clamped(value) for kind, value in by_type.items()},
        {bucket: _clamped(value) for bucket, value in by_bucket.items()},
    )


def _usable(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and value > 0


def _clamped(value: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        return 1.0
    return min(HOTTEST, max(COLDEST, float(value)))


def folder_sha256(folder: str | Path) -> str:
    """Digest of every file below a folder, names included, whatever the order they are listed in."""
    root = Path(folder)
    total = hashlib.sha256()
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        total.update(path.relative_to(root).as_posix().encode("utf-8", "surrogateescape") + b"\0")
        with path.open("rb") as stream:
            total.update(hashlib.file_digest(stream, "sha256").digest())
    return total.hexdigest()
