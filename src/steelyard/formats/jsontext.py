"""Strict JSON in and out: repeated keys and NaN refused, lone surrogates kept escaped."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, NoReturn

import msgspec

_SURROGATE = re.compile("[\ud800-\udfff]")


def _scalar(value: Any) -> Any:
    """A number of an array library as a plain one; engines return them without thinking."""
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        return value.item()
    raise TypeError(f"a {type(value).__name__} is no JSON value")


_encoder = msgspec.json.Encoder(enc_hook=_scalar)


class JsonFault(ValueError):
    """Text that is not the JSON we accept; the message says where."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise JsonFault(f"key {quote(key)} appears twice in one object")
            seen.add(key)
    return out


def _constant(name: str) -> NoReturn:
    raise JsonFault(f"{name} is not JSON; write a number or null")


def _number(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise JsonFault(f"number {text[:24]} is out of range")
    return value


_strict = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant, parse_float=_number)
_with_nan = json.JSONDecoder(object_pairs_hook=_pairs)


def strict_loads(data: bytes | str, *, nan: bool = False) -> Any:
    """Parse one JSON value, refusing what the standard reader lets through.

    Parameters
    ----------
    data : bytes or str
        UTF-8 text; a leading byte-order mark is allowed.
    nan : bool
        Let NaN and infinities pass, as other tools write them.

    Raises
    ------
    JsonFault
        Repeated key, NaN or infinity, number out of range, over-deep nesting, bad UTF-8 or syntax.
    """
    try:
        text = data if isinstance(data, str) else str(data, "utf-8-sig")
        value = (_with_nan if nan else _strict).decode(text)
    except JsonFault:
        raise
    except UnicodeDecodeError as error:
        raise JsonFault(f"not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise JsonFault(f"not JSON: {error.msg.lower()} at column {error.colno}") from None
    except RecursionError:
        raise JsonFault("nested too deeply") from None
    except ValueError:
        raise JsonFault("a number has too many digits (at most 4300)") from None
    return value


def loads(data: bytes | str) -> Any:
    """Parse JSON that was checked before: fast, with lone surrogates as the slow way out."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, RecursionError):
        return strict_loads(data)


def dumps(value: Any) -> bytes:
    """Compact JSON as valid UTF-8; lone surrogates are written as ``\\udXXX`` escapes.

    >>> dumps({"a": "\\ud835", "b": [1, 2.5]})
    b'{"a":"\\\\ud835","b":[1,2.5]}'
    """
    try:
        return _encoder.encode(value)
    except (UnicodeEncodeError, OverflowError):
        return pretty(value, indent=None).encode()


def pretty(value: Any, indent: int | None = 2, *, sort_keys: bool = False) -> str:
    """Strict JSON text that always encodes to UTF-8; NaN is refused."""
    separators = (",", ": ") if indent else (",", ":")
    text = json.dumps(
        value, ensure_ascii=False, allow_nan=False, indent=indent, separators=separators, sort_keys=sort_keys
    )
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def digest(value: Any) -> str:
    """Sha256 of a JSON value in compact form, key order kept."""
    return hashlib.sha256(dumps(value)).hexdigest()


def count_keys(value: Any) -> int:
    """Object keys at every depth of a decoded JSON value."""
    total = 0
    stack = [value]
    while stack:
        item = stack.pop()
        if type(item) is dict:
            total += len(item)
            item = item.values()
        elif type(item) is not list:
            continue
        stack.extend(inner for inner in item if type(inner) is dict or type(inner) is list)
    return total


def one_line(text: object, limit: int = 200) -> str:
    """Untrusted text fit for a one-line message: control characters escaped, length bounded."""
    shown = str(text)
    if len(shown) > limit:
        shown = shown[: limit - 1] + "…"
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "replace").decode() for c in shown)


def quote(value: object) -> str:
    """A value between quotes for a message, control characters and surrogates escaped."""
    return (
        f'"{one_line(value, 80)}"' if isinstance(value, str) else one_line(json.dumps(value, default=str), 80)
    )


def type_name(value: object) -> str:
    """JSON's word for the type of a decoded value."""
    names = {bool: "boolean", str: "string", int: "number", float: "number", list: "array", dict: "object"}
    return "null" if value is None else names.get(type(value), type(value).__name__)
