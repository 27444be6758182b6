"""Files written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from steelyard.errors import InputError
from steelyard.formats.jsontext import one_line


@contextlib.contextmanager
def whole_file(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a temporary beside `path`; it takes the name only after everything is on disk.

    Raises
    ------
    InputError
        The folder is missing, the path is a folder, or the device refused the bytes. What stood
        under the name before is untouched.
    """
    target = Path(path)
    temporary = None
    try:
        if target.is_dir():
            raise InputError(f"{one_line(path)}: is a folder; name a file")
        # A device or pipe cannot be replaced, only written to.
        if target.exists() and not target.is_file():
            with target.open("wb") as stream:
                yield stream
            return
        fd, temporary = tempfile.mkstemp(prefix=f".{target.name[:40]}.", suffix=".tmp", dir=target.parent)
        with os.fdopen(fd, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        _keep_mode(temporary, target)
        os.replace(temporary, target)
        temporary = None
    except OSError as error:
        raise InputError(f"{one_line(path)}: cannot be written: {error.strerror or error}") from None
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def _keep_mode(temporary: str, target: Path) -> None:
    if target.exists():
        mode = target.stat().st_mode & 0o777
    else:
        mask = os.umask(0)
        os.umask(mask)
        mode = 0o666 & ~mask
    os.chmod(temporary, mode)


def write_whole(path: str | Path, data: bytes) -> None:
    """Write `data` to `path` whole or not at all."""
    with whole_file(path) as stream:
        stream.write(data)


def check_writable(path: str | Path) -> None:
    """Refuse early what `whole_file` would refuse after the work is done.

    Raises
    ------
    InputError
        The path is a folder, or its folder is missing or not writable.
    """
    target = Path(path)
    if target.is_dir():
        raise InputError(f"{one_line(path)}: is a folder; name a file")
    if not target.parent.is_dir():
        raise InputError(f"{one_line(path)}: folder {one_line(target.parent)} does not exist; make it first")
    if not os.access(target.parent if not target.exists() else target, os.W_OK):
        raise InputError(f"{one_line(path)}: not writable; choose another place")
