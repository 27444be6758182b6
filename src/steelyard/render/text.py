"""What every view shares: rows of numbers, and untrusted text made safe for a cell."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from steelyard.metrics.measure import Measured
from steelyard.metrics.registry import Measurement

HEADLINES = ("choice_accuracy", "noul_accuracy", "score_mae", "ece")
"""What a slice shows; the report file has every metric of it."""


class NumberRow(msgspec.Struct, frozen=True):
    """One measured number as text: n and interval always beside the value."""

    metric: str
    value: str
    interval: str
    n: str
    cases: str


def number_row(name: str, found: Measurement) -> NumberRow:
    """A measurement as text; ``-`` stands where there is no interval."""
    interval = f"{number(found.interval[0])} to {number(found.interval[1])}" if found.interval else "-"
    return NumberRow(name, number(found.value), interval, str(found.n), str(found.cases))


def number(value: float) -> str:
    """Four decimals, or enough digits to tell a small number from zero."""
    return f"{value:.4f}" if value == 0 or abs(value) >= 0.0001 else f"{value:.1e}"


def overall_rows(measured: Measured) -> list[NumberRow]:
    """Every metric of the whole table."""
    return [number_row(name, found) for name, found in measured.items()]


def slice_rows(values: Mapping[str, Measured]) -> Iterator[tuple[str, list[NumberRow]]]:
    """Headline metrics of each slice; a slice without any has an empty list."""
    for value, measured in values.items():
        yield value, [number_row(name, measured[name]) for name in HEADLINES if name in measured]


def notes(measured: Measured) -> list[str]:
    """What a reader must know of the numbers: why some have no interval, and how low an ECE could be."""
    reasons: dict[str, list[str]] = {}
    lines = []
    for name, found in measured.items():
        if found.no_interval:
            reasons.setdefault(found.no_interval, []).append(name)
        null = (found.details or {}).get("null_expectation")
        if null is not None:
            lines.append(
                f"{name} of a perfectly calibrated model would read about {number(null)} on {found.n} "
                "answers with these confidences"
            )
    return lines + [f"no interval for {', '.join(names)}: {reason}" for reason, names in reasons.items()]


def count_lines(counts: Mapping[str, Any], measured: Measured) -> list[str]:
    """What became of the questions asked, in words."""
    lines = [
        f"{counts['rows']} rows, {counts['questions']} questions: {counts['scored']} scored, "
        f"{counts['errored']} errored, {counts['not_applicable']} not applicable"
    ]
    if counts["by_reason"]:
        lines.append("reasons: " + ", ".join(f"{name} {n}" for name, n in counts["by_reason"].items()))
    for name in ("choice_accuracy", "noul_accuracy"):
        details = measured[name].details if name in measured else None
        if details:
            floor, errored = details["errors_as_wrong"], details["errored"]
            lines.append(
                f"{name} is over scored answers; with {errored} errored as wrong it is {number(floor)}"
            )
    if counts["ties_at_top"]:
        lines.append(f"{counts['ties_at_top']} answer(s) tie at the top; the option listed first is taken")
    if not counts["scored"]:
        lines.append("nothing was scored, so nothing was measured")
    return lines


def text_width(text: str) -> int:
    """Columns a terminal gives to `text`."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    marks = sum(unicodedata.combining(c) > 0 for c in text)
    return len(text) + wide - marks


def fitted(text: str, width: int) -> str:
    """`text` padded or cut to `width` columns."""
    if text_width(text) > width:
        while text_width(text) > width - 1:
            text = text[:-1]
        text += "…"
    return text + " " * (width - text_width(text))
