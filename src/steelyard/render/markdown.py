"""The report as Markdown; states and labels are untrusted text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from steelyard.formats.jsontext import one_line
from steelyard.metrics.measure import Measured, Measurements
from steelyard.render.text import NumberRow, count_lines, notes, overall_rows, slice_rows

_COLUMNS = ("metric", "value", "95 % interval", "n", "cases")
_MEANT = re.compile(r"[\\|`*{}\[\]<>#!~&]|(?<![^\W_])_|_(?![^\W_])")


def cell(text: str) -> str:
    """Text for a table cell: line breaks become spaces, everything Markdown would read is escaped.

    >>> cell("prio|hoch\\nnow")
    'prio\\\\|hoch now'
    """
    return _MEANT.sub(lambda found: "\\" + found[0], one_line(" ".join(str(text).split())))


def report_markdown(measurements: Measurements, counts: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """The whole report: counts, overall, every slice, and the notes."""
    return "\n".join(_lines(measurements, counts, config)) + "\n"


def _lines(measurements: Measurements, counts: Mapping[str, Any], config: Mapping[str, Any]) -> Iterator[str]:
    yield "# Evaluation report"
    yield ""
    yield f"Dataset {cell(config['dataset'])} (sha256 {config['dataset_sha256'][:12]})."
    yield ""
    for line in count_lines(counts, measurements.overall):
        yield f"- {cell(line)}"
    yield ""
    yield from _table(_COLUMNS, (_cells(row) for row in overall_rows(measurements.overall)))
    for dimension, values in measurements.slices.items():
        yield ""
        yield f"## By {dimension}"
        yield ""
        yield from _table((dimension, *_COLUMNS), _slice_cells(values))
    found = notes(measurements.overall)
    if found:
        yield ""
        for note in found:
            yield f"- {cell(note)}"


def _cells(row: NumberRow) -> tuple[str, ...]:
    return (row.metric, row.value, row.interval, row.n, row.cases)


def _slice_cells(values: Mapping[str, Measured]) -> Iterator[tuple[str, ...]]:
    for value, rows in slice_rows(values):
        if not rows:
            yield (value, "nothing measured", "", "", "", "")
        for row in rows:
            yield (value, *_cells(row))


def _table(header: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    yield _row(header)
    yield "|" + "---|" * len(header)
    for row in rows:
        yield _row(row)


def _row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(map(cell, cells)) + " |"
