"""What a fake server may do wrong, and when."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from steelyard.errors import InputError
from steelyard.formats.jsontext import one_line, quote

FAULTS = ("429", "500", "503", "529", "html504", "drop", "cut", "408")
"""Kinds of faults, drawn alike."""


class Quirks(msgspec.Struct, frozen=True, kw_only=True):
    """Habits of a fake server.

    Attributes
    ----------
    seed : int
        Of the answers and the faults.
    latency_ms : float
        Before each reply.
    fault_rate : float
        Share of requests that fail in one of `FAULTS`; a request fails at most `fault_run` times in a row.
    faults : str
        Which of them, joined by ``+``; all by default.
    fault_run : int
    retry_after : str
        Sent with 429 and 503: seconds, ``ms:250``, or a date; empty for none.
    key : str
        Key that must be sent; a wrong one is 401.
    missing_key : int
        Status when none is sent.
    reject_every : int
        Every so many states are refused with 422; 0 for none.
    refuse_every : int
        Every so many answers of the list wire are refusals.
    decimals : int
        Probabilities are rounded to so many.
    missing_usage, sorted_keys, short_batches, wrong_answers : bool
        No token counts; options sorted by name; a result too few; distributions that sum to 1.5.
    reads : int
        Only so many characters of a state are read, without a word; 0 for all.
    says_truncated : bool
        It says so when it did.
    noise : float
        Repeats of a request differ by so much.
    unknown_model : str
        ``reroute`` answers anyway, ``refuse`` is 404.
    drip_ms : float
        Between the bytes of a reply, ten pieces each.
    strict : bool
        As the strict mode of Laya serve: nothing but the fields of the wire.
    """

    seed: int = 0
    latency_ms: float = 0.0
    fault_rate: float = 0.0
    faults: str = "+".join(FAULTS)
    fault_run: int = 2
    retry_after: str = "ms:5"
    key: str = ""
    missing_key: int = 403
    reject_every: int = 0
    refuse_every: int = 0
    decimals: int = 4
    missing_usage: bool = False
    sorted_keys: bool = False
    short_batches: bool = False
    wrong_answers: bool = False
    reads: int = 0
    says_truncated: bool = False
    noise: float = 0.0
    unknown_model: str = "reroute"
    drip_ms: float = 0.0
    strict: bool = False


def parse_quirks(pairs: list[str]) -> Quirks:
    """Quirks from ``name=value`` texts; a bare name is true.

    Raises
    ------
    InputError
        No quirk of that name, or a value it cannot have.
    """
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if name not in Quirks.__struct_fields__:
            known = ", ".join(Quirks.__struct_fields__)
            raise InputError(f"no quirk named {quote(name)} ({known})")
        found[name] = text if equals else "true"
    try:
        quirks = msgspec.convert(found, Quirks, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(f"quirk {one_line(error)}") from None
    for fault in quirks.faults.split("+"):
        if fault not in FAULTS:
            raise InputError(f"no fault named {quote(fault)} ({', '.join(FAULTS)})")
    return quirks


def share(*parts: object) -> float:
    """A number in [0, 1) that belongs to these parts."""
    digest = hashlib.blake2b("\x1f".join(map(str, parts)).encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "big") / 2.0**64
