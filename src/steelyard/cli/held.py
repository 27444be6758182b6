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
from steelyard.run.side import Side, read_side, side_of

FLIPS = 3


class Held:
    """Limits on a run, with the baseline read before an engine is."""

    def __init__(self, gating: Gating, limits: Limits, data: Dataset, settings: Settings) -> None:
        self._gating, self._limits, self._settings = gating, limits, settings
        self.baseline: Side | None = None
        if gating.baseline is not None:
            self.baseline = read_side(gating.baseline, near=data)
            metric_map(self.baseline.document, self.baseline.name, baseline=True)

    def judge(self, report: Report, judging: Judging, out: str | None) -> int:
        """Show what became of every limit; the exit code."""
        ours = side_of(report)
        if self.baseline is None:
            found = verdict(self._limits, ours, settings=self._settings)
            self._gating.show(found, None, report.dataset.name)
            return found.exit_code
        click.echo("")
        compared = Compared(ours, self.baseline, self._limits, self._settings)
        compared.show(self._gating, judging.slices, FLIPS, judging.every)
        if out is not None:
            compared.save(str(Path(out) / "comparison.json"), str(Path(out) / "comparison.md"))
        return compared.exit_code
