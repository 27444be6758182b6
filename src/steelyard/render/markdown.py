"""The report as Markdown; states and labels are untrusted text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from steelyard.formats.jsontext import one_line
from steelyard.metrics.bakeoff import BakeOff, Score
from steelyard.metrics.baselines import Against, Baselines
from steelyard.metrics.measure import Measured, Measurements
from steelyard.render.text import (
    Beside,
    NumberRow,
    count_lines,
    notes,
    number,
    overall_rows,
    slice_rows,
    span,
)

_COLUMNS = ("metric", "value", "95 % interval, or E0 and p", "n", "cases", "design effect")
_BASELINES = ("question", "baseline", "accuracy", "difference", "95 % interval", "skill", "verdict", "n")
_MEASURES = ("question", "measure", "auroc", "95 % of difference", "aurc", "95 %", "ece", "95 %", "n")
_MEANT = re.compile(r"[\\|`*{}\[\]<>#!~&]|(?<![^\W_])_|_(?![^\W_])")


def cell(text: str) -> str:
    """Text for a table cell: line breaks become spaces, everything Markdown would read is escaped.

    >>> cell("prio|hoch\\nnow")
    'prio\\\\|hoch now'
    """
    return _MEANT.sub(lambda found: "\\" + found[0], one_line(" ".join(str(text).split())))


def report_markdown(
    measurements: Measurements, counts: Mapping[str, Any], beside: Beside, config: Mapping[str, Any]
) -> str:
    """The whole report: counts, overall, baselines, confidence measures, every slice, and the notes."""
    return "\n".join(_lines(measurements, counts, beside, config)) + "\n"


def _lines(
    measurements: Measurements, counts: Mapping[str, Any], beside: Beside, config: Mapping[str, Any]
) -> Iterator[str]:
    yield "# Evaluation report"
    yield ""
    yield f"Dataset {cell(config['dataset'])} (sha256 {config['dataset_sha256'][:12]})."
    yield ""
    for line in count_lines(counts, measurements.overall):
        yield f"- {cell(line)}"
    yield ""
    yield from table(_COLUMNS, (_cells(row) for row in overall_rows(measurements.overall)))
    yield from _baselines(beside.baselines)
    yield from _contenders(beside.confidence)
    for dimension, values in measurements.slices.items():
        yield from _section(f"By {dimension}", (dimension, *_COLUMNS), _slice_cells(values))
    found = [*beside.lines(), *notes(measurements.overall, list(measurements.overall))]
    if found:
        yield ""
        for note in found:
            yield f"- {cell(note)}"


def _baselines(baselines: Baselines) -> Iterator[str]:
    if baselines.overall is None:
        return
    panels = [("all", baselines.overall), *baselines.questions.items()]
    rows = (
        (
            question,
            name,
            number(found.accuracy),
            number(found.difference),
            _span(found.interval),
            *_skill(found),
        )
        for question, panel in panels
        for name, found in panel.baselines.items()
    )
    yield from _section("Baselines of accuracy", _BASELINES, rows)


def _skill(found: Against) -> tuple[str, str, str]:
    return "-" if found.skill is None else number(found.skill), found.verdict, str(found.n)


def _contenders(found: BakeOff) -> Iterator[str]:
    groups = [("all", found.overall), *found.questions.items()]
    rows = (
        (question, one.measure, *_score(one.auroc), *_score(one.aurc), *_score(one.ece), str(one.n))
        for question, contenders in groups
        for one in contenders
    )
    yield from _section("Measures of confidence", _MEASURES, rows)


def _score(score: Score | None) -> tuple[str, str]:
    return ("-", "-") if score is None else (number(score.value), _span(score.difference_interval))


def _span(interval: tuple[float, float] | None) -> str:
    return span(interval) if interval else "-"


def _section(title: str, header: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    yield ""
    yield f"## {title}"
    yield ""
    yield from table(header, rows)


def _cells(row: NumberRow) -> tuple[str, ...]:
    return (row.metric, row.value, row.interval, row.n, row.cases, row.deff)


def _slice_cells(values: Mapping[str, Measured]) -> Iterator[tuple[str, ...]]:
    for value, rows in slice_rows(values):
        if not rows:
            yield (value, "nothing measured", "", "", "", "", "")
        for row in rows:
            yield (value, *_cells(row))


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table; every cell is escaped."""
    yield _row(header)
    yield "|" + "---|" * len(header)
    for row in rows:
        yield _row(row)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(cell, cells)) + " |"
