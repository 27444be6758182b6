"""Keys: read from the environment or a file, sent to one server, and said to nobody."""

from __future__ import annotations

import os
from pathlib import Path

from steelyard.errors import InputError
from steelyard.formats.jsontext import one_line

HIDDEN = "***"


class Secret:
    """A key that does not show itself.

    Parameters
    ----------
    text : str
        Empty when there is none.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str = "") -> None:
        self._text = text

    def __repr__(self) -> str:
        return f"Secret({HIDDEN})" if self._text else "Secret()"

    def __bool__(self) -> bool:
        return bool(self._text)

    def reveal(self) -> str:
        """The key itself, for the header it goes into."""
        return self._text

    def hidden(self, text: str) -> str:
        """`text` with the key struck out, as servers like to repeat it."""
        return text.replace(self._text, HIDDEN) if self._text else text


def read_secret(name: str | None, path: str | None) -> Secret:
    """A key from a file, else from an environment variable; none when neither is named or set.

    Raises
    ------
    InputError
        The file cannot be read or is empty, or the key could not be a header.
    """
    if path:
        try:
            text = Path(path).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "is not UTF-8"
            raise InputError(f"key file {one_line(path)}: {why}") from None
        if not text:
            raise InputError(f"key file {one_line(path)} is empty")
        place = f"key file {one_line(path)}"
    else:
        text, place = os.environ.get(name or "", "").strip(), f"environment variable {name}"
    if text and not (text.isascii() and text.isprintable()):
        raise InputError(f"the key in {place} has characters no header can carry")
    return Secret(text)
