"""A run held to its limits: what is read before it starts, and judged once it is done."""

from __future__ import annotations

from pathlib import Path

import click

from steelyard.cli.compared import Compared
from steelyard.cli.gating import Gating
from steelyard.cli.options import Judging
from steelyard.formats.dataset import Dataset
from steelyard.metrics.view import Settings
from steelyard.run.drift import metric_map
from steelyard.run.gating import Limits, verdict
from steelyard.run.report import Report
from steelyard.run.sequential import Sequential
from steelyard.run.side import Side, read_side, side_of

FLIPS = 3


class Held:
    """Limits on a run, with the baseline read before an engine is asked.

    Parameters
    ----------
    gating : Gating
    limits : Limits
    data : Dataset
    settings : Settings
    sequential : bool
        Stop the run as soon as its accuracy is known to be worse than the baseline's, or not to be.
    rows : int or None
        How many rows are asked, when not all.
    """

    def __init__(
        self,
        gating: Gating,
        limits: Limits,
        data: Dataset,
        settings: Settings,
        *,
        sequential: bool,
        rows: int | None,
    ) -> None:
        self._gating, self._limits, self._settings = gating, limits, settings
        self._baseline: Side | None = None
        self.watch: Sequential | None = None
        if gating.baseline is not None:
            self._baseline = read_side(gating.baseline, near=data)
            metric_map(self._baseline.document, self._baseline.name, baseline=True)
        if sequential:
            self.watch = self._sequential(data, settings.seed, rows)

    def _sequential(self, data: Dataset, seed: int, rows: int | None) -> Sequential:
        limits = self._limits
        if self._baseline is None:
            raise click.UsageError("--sequential needs a --baseline")
        if limits != Limits(margins=limits.margins) or limits.margins.keys() - {"accuracy"}:
            raise click.UsageError(
                "--sequential takes one limit, --margin accuracy=VALUE; leave the others out"
            )
        return Sequential(
            data, self._baseline, margin=limits.margins.get("accuracy", 0.0), seed=seed, rows=rows
        )

    def judge(self, report: Report, judging: Judging, out: str | None) -> int:
        """Show what became of every limit; the exit code."""
        ours = side_of(report)
        if self._baseline is None:
            found = verdict(self._limits, ours, settings=self._settings)
            self._gating.show(found, None, report.dataset.name)
            return found.exit_code
        click.echo("")
        settled = None if self.watch is None else self.watch.verdict(bool(report.config.get("errored")))
        compared = Compared(ours, self._baseline, self._limits, self._settings, settled)
        compared.show(self._gating, judging.slices, FLIPS, judging.every)
        if report.counts.get("rows_not_asked"):
            click.echo("the run stopped at what it saw: go by its verdict, not by intervals for a fixed n")
        if out is not None:
            compared.save(str(Path(out) / "comparison.json"), str(Path(out) / "comparison.md"))
        return compared.exit_code
