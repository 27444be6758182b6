"""Where a finished report goes: the console and files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from steelyard.cli.options import Judging
from steelyard.formats.files import write_whole
from steelyard.render.console import report_lines
from steelyard.render.markdown import report_markdown
from steelyard.render.text import Beside
from steelyard.run.report import Report


def show_report(report: Report, slices: Sequence[str], every: bool = False) -> None:
    """Print a report: the main metrics, or every one of them."""
    timing = {name: value for name, value in report.overall.items() if name.endswith("_ms")}
    beside = _beside(report)
    for line in report_lines(report.measurements, report.counts, beside, timing, slices, every):
        click.echo(line)


def _beside(report: Report) -> Beside:
    panels = report.panels
    return Beside(panels.baselines, panels.confidence, panels.mix, panels.steps)


def save_report(report: Report, judging: Judging, folder: str | None = None) -> None:
    """Write the files asked for, and those of a run folder, each whole or not at all."""
    if folder is not None:
        report.write_json(Path(folder) / "report.json", cases=not judging.no_cases)
        _write_markdown(report, Path(folder) / "report.md")
    if judging.json_path is not None:
        report.write_json(judging.json_path, cases=not judging.no_cases)
    if judging.markdown_path is not None:
        _write_markdown(report, judging.markdown_path)


def _write_markdown(report: Report, path: str | Path) -> None:
    text = report_markdown(report.measurements, report.counts, _beside(report), report.config)
    write_whole(path, text.encode("utf-8", "backslashreplace"))
