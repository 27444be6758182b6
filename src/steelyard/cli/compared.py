"""A run beside its baseline, on the console and in files."""

from __future__ import annotations

from collections.abc import Sequence

import click
import msgspec

from steelyard.cli.gating import Gating
from steelyard.core.gates import Verdict
from steelyard.formats.files import write_whole
from steelyard.formats.jsontext import one_line, pretty
from steelyard.metrics.view import Settings
from steelyard.render.comparison import comparison_lines
from steelyard.render.comparison_markdown import comparison_markdown
from steelyard.run.compare import Comparing
from steelyard.run.gating import Limits, verdict
from steelyard.run.side import Side

SCHEMA = "steelyard-comparison/1"


class Compared:
    """A comparison and its verdict; `settled` takes the place of what the limits would say."""

    def __init__(
        self,
        ours: Side,
        theirs: Side,
        limits: Limits,
        settings: Settings,
        settled: Verdict | None = None,
    ) -> None:
        comparing = Comparing(ours, theirs, settings)
        self.ours, self.limits = ours, limits
        self.comparison = comparing.compare(limits.tolerances, limits.direction, margins=limits.margins)
        self.verdict = settled or verdict(limits, ours, comparing, self.comparison, settings)
        self.exit_code = self.verdict.exit_code
        self._unused = sorted((limits.tolerances or {}).keys() - comparing.drift.baseline.keys())

    def show(self, gating: Gating, slices: Sequence[str], flips: int, every: bool) -> Compared:
        """Print the comparison and the findings."""
        for warning in self._warnings():
            click.echo(f"steelyard: warning: {warning}", err=True)
        for line in comparison_lines(self.comparison, slices, flips, every):
            click.echo(line)
        dataset = self.ours.dataset
        gating.show(self.verdict, self.comparison, None if dataset is None else dataset.name)
        return self

    def _warnings(self) -> list[str]:
        found = [f"--tolerance {one_line(name)} names no metric of the baseline" for name in self._unused]
        recorded = self.ours.config.get("gate_policy")
        if self.limits.policy and recorded not in (None, self.limits.policy.document):
            found.append(
                "--gate-policy differs from the gate_policy the report records; it is what counts here"
            )
        return found

    def save(self, json_path: str | None, markdown_path: str | None) -> Compared:
        """Write the files asked for."""
        if json_path is not None:
            document = {
                "schema": SCHEMA,
                "comparison": msgspec.to_builtins(self.comparison),
                "verdict": {
                    "exit_code": self.exit_code,
                    "findings": msgspec.to_builtins(self.verdict.findings),
                },
            }
            write_whole(json_path, (pretty(document) + "\n").encode())
        if markdown_path is not None:
            text = "\n".join(comparison_markdown(self.comparison, self.verdict)) + "\n"
            write_whole(markdown_path, text.encode("utf-8", "backslashreplace"))
        return self
