"""Which field confidences come from, and whether two runs took the same."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from steelyard.core.requests import CONFIDENCE_SOURCES
from steelyard.errors import IncomparableError
from steelyard.formats.jsontext import quote
from steelyard.metrics.decisions import SCORED, Decisions

Mix = Mapping[str, Mapping[str, int]]


def confidence_mix(table: Decisions) -> dict[str, dict[str, int]]:
    """Which field the confidence of the scored answers came from, counted by question id."""
    scored = table.status == SCORED
    width = len(CONFIDENCE_SOURCES)
    key = table.qid[scored].astype(np.int64) * width + table.source[scored]
    counts = np.bincount(key, minlength=width * len(table.names.qids)).reshape(-1, width).tolist()
    return {
        qid: {name: n for name, n in zip(CONFIDENCE_SOURCES, found, strict=True) if n}
        for qid, found in zip(table.names.qids, counts, strict=True)
        if any(found)
    }


def check_confidence_mix(ours: Mix, theirs: Mix, names: tuple[str, str] = ("ours", "theirs")) -> None:
    """Refuse to compare confidences that are not the same measure.

    Parameters
    ----------
    ours, theirs : mapping
        As `confidence_mix` gives them; only questions both have are looked at.
    names : (str, str)
        What to call the two in the message.

    Raises
    ------
    IncomparableError
        A question's confidence comes from other fields on the one side than on the other.
    """
    for qid, found in ours.items():
        other = theirs.get(qid, found)
        if set(found) != set(other):
            raise IncomparableError(
                f"confidence of {quote(qid)} is taken from {_listed(found)} in {names[0]} and from "
                f"{_listed(other)} in {names[1]}; ask both engines for the same field, or compare metrics "
                "that need no confidence"
            )


def _listed(found: Mapping[str, int]) -> str:
    return ", ".join(f"{name} ({n})" for name, n in sorted(found.items()))
