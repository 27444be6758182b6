"""The report as lines of at most 80 columns, the same whatever the terminal's width."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from steelyard.formats.jsontext import one_line
from steelyard.metrics.measure import Measurements
from steelyard.render.text import (
    Beside,
    NumberRow,
    count_lines,
    fitted,
    notes,
    overall_rows,
    slice_rows,
    text_width,
)

_NAME, _METRIC = 12, 22


def report_lines(
    measurements: Measurements,
    counts: Mapping[str, Any],
    beside: Beside,
    timing: Mapping[str, float],
    slices: Sequence[str],
    every: bool = False,
) -> Iterator[str]:
    """Lines of a report: counts, the main or all overall metrics, the slices asked for, and notes."""
    yield from count_lines(counts, measurements.overall)
    rows = overall_rows(measurements.overall, every)
    if rows:
        yield ""
        yield _line("metric", "", "value", "95% interval", "n", "cases")
        for row in rows:
            yield _line(row.metric, "", row.value, row.interval, row.n, row.cases)
        if len(rows) < len(measurements.overall):
            yield f"and {len(measurements.overall) - len(rows)} more: --all shows them, --json has them"
    if timing:
        shown = ", ".join(f"{name[:-3]} {value:.3g} ms" for name, value in timing.items())
        yield from wrapped(f"timing: {shown}")
    for dimension in slices:
        yield from _slice_lines(dimension, measurements)
    found = [*beside.lines(), *notes(measurements.overall, [row.metric for row in rows])]
    if found:
        yield ""
        for note in found:
            yield from wrapped(note)


def _slice_lines(dimension: str, measurements: Measurements) -> Iterator[str]:
    values = measurements.slices.get(dimension)
    yield ""
    if not values:
        yield f"by {dimension}: no row has one"
        return
    yield f"by {dimension}"
    for value, rows in slice_rows(values):
        name = one_line(value)
        if not rows:
            yield f"{fitted(name, _NAME)}  nothing measured"
            continue
        if text_width(name) > _NAME:
            yield from wrapped(name)
            name = ""
        for row in rows:
            yield _row(name, row)
            name = ""


def _row(name: str, row: NumberRow) -> str:
    return _line(name, row.metric, row.value, row.interval, row.n, row.cases)


def _line(name: str, metric: str, value: str, interval: str, n: str, cases: str) -> str:
    # A name without a metric beside it may have the metric's columns too.
    head = f"{fitted(name, _NAME)} {metric:<{_METRIC}}" if metric else fitted(name, _NAME + 1 + _METRIC)
    return f"{head} {value:>9}  {interval:<17} {n:>7} {cases:>6}".rstrip()


def wrapped(text: str, width: int = 80) -> Iterator[str]:
    """`text` broken at spaces into lines of at most `width` columns, the later ones indented."""
    line = ""
    for word in text.split(" "):
        if line.strip() and text_width(line) + 1 + text_width(word) > width:
            yield line
            line = "  " + word
        else:
            line = f"{line} {word}" if line else word
    yield line
