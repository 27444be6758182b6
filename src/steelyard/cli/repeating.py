"""A run asked several times over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import click
import msgspec

from steelyard.render.console import wrapped
from steelyard.render.text import number, span
from steelyard.run.repeats import noise
from steelyard.run.report import Report


def repeats(once: Callable[[str | None], Report], out: str | None, times: int) -> list[Report]:
    """The run, and its repeats in folders of their own inside its folder."""
    folders = [None if out is None else str(Path(out) / f"repeat-{turn}") for turn in range(2, times + 1)]
    return [once(folder) for folder in (out, *folders)]


def record_noise(report: Report, others: Sequence[Report]) -> None:
    """Put how far the repeats differ into the report's config."""
    if others:
        found = noise([report.table, *(other.table for other in others)])
        report.config["repeat"] = msgspec.to_builtins(found)


def show_noise(report: Report) -> None:
    """Print how far the repeats differ, where there were some."""
    found = report.config.get("repeat")
    if found is None:
        return
    if found["changed"] is None:
        click.echo("repeats: no answer was scored in every run")
        return
    said = f"repeats: of {found['n']} answers asked {found['runs']} times {number(found['changed'])} change"
    if found["interval"]:
        said += f" ({span(found['interval'])})"
    if found["moved_mean"] is not None:
        mean, most = number(found["moved_mean"]), number(found["moved_most"])
        said += f"; P(label) moves by {mean} in the mean, {most} at most"
    shown = ", ".join("-" if value is None else number(value) for value in found["accuracies"])
    for line in wrapped(f"{said}; accuracy of each run: {shown}"):
        click.echo(line)
