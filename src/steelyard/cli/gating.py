"""Flags of limits, and where a verdict goes."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from steelyard.cli.options import Finite, bundled

if TYPE_CHECKING:
    from steelyard.core.comparison import Comparison
    from steelyard.core.gates import Verdict
    from steelyard.run.gating import Limits


class Limit(click.ParamType):  # type: ignore[type-arg]
    """``METRIC=VALUE`` with a finite value, of 0 or more where it says how far something may move."""

    name = "METRIC=VALUE"

    def __init__(self, *, negative: bool = True) -> None:
        self.negative = negative

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, tuple):
            return value
        name, _, text = str(value).partition("=")
        name = name.strip()
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not name or not math.isfinite(number) or (number < 0 and not self.negative):
            wanted = "a finite number" if self.negative else "a finite number of 0 or more"
            self.fail(f"{value!r} is not METRIC=VALUE with {wanted}", param, ctx)
        return name, number


class Gating(NamedTuple):
    """The limits a command line names, and where to show what came of them."""

    baseline: str | None
    tolerance: tuple[tuple[str, float], ...]
    direction: str
    margin: tuple[tuple[str, float], ...]
    minimum: tuple[tuple[str, float], ...]
    maximum: tuple[tuple[str, float], ...]
    min_accuracy: float | None
    max_ece: float | None
    gate_policy: str | None
    junit_path: str | None
    github: bool

    def limits(self) -> Limits:
        """The limits, read and found to be such as can be judged."""
        from steelyard.formats.policy import read_policy
        from steelyard.run.gating import Limits

        limits = Limits(
            tolerances=dict(self.tolerance) if self.tolerance else None,
            direction="worse" if self.direction == "worse" else "both",
            margins=dict(self.margin),
            mins=dict(self.minimum),
            maxs=dict(self.maximum) | ({} if self.max_ece is None else {"ece": self.max_ece}),
            min_accuracy=self.min_accuracy,
            policy=read_policy(self.gate_policy) if self.gate_policy else None,
        )
        limits.check(baseline=self.baseline is not None)
        return limits

    def show(self, verdict: Verdict, comparison: Comparison | None, dataset: str | None) -> None:
        """Print findings, write the JUnit file, and tell the build."""
        from steelyard.formats.files import write_whole
        from steelyard.render.gates import finding_lines, junit_xml, verdict_line

        if self.junit_path is not None:
            write_whole(self.junit_path, junit_xml(verdict).encode("utf-8", "backslashreplace"))
        if self.github:
            tell_build(verdict, comparison, dataset)
        for line in finding_lines(verdict.findings):
            click.echo(line, err=True)
        if verdict.gated:
            click.echo(verdict_line(verdict), err=bool(verdict.failures))


def tell_build(verdict: Verdict, comparison: Comparison | None, dataset: str | None) -> None:
    """Annotations and a step summary inside GitHub Actions; the summary as plain text elsewhere."""
    from steelyard.errors import InputError
    from steelyard.formats.jsontext import one_line
    from steelyard.render.gates import annotation_lines, gate_markdown

    lines = list(gate_markdown(verdict, comparison))
    if os.environ.get("GITHUB_ACTIONS") != "true":
        click.echo("\n".join(lines))
        return
    for line in annotation_lines(verdict, comparison, dataset):
        click.echo(line)
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        try:
            with open(summary, "a", encoding="utf-8", errors="backslashreplace") as stream:
                stream.write("\n".join(lines) + "\n")
        except OSError as error:
            raise InputError(f"{one_line(summary)}: cannot be written: {error.strerror or error}") from None


_DRIFT = Limit(negative=False)
_GATING = (
    click.option("--baseline", metavar="FILE", help="Report or run folder to hold this run against."),
    click.option(
        "--tolerance",
        type=_DRIFT,
        multiple=True,
        help="How far a metric may drift from the baseline; the others not at all. Repeatable.",
    ),
    click.option(
        "--direction",
        type=click.Choice(["both", "worse"]),
        default="both",
        show_default=True,
        help="Hold drift to the tolerance both ways, or only to the worse.",
    ),
    click.option(
        "--margin",
        type=_DRIFT,
        multiple=True,
        help="How much worse than the baseline a metric may get, shown by paired evidence. Repeatable.",
    ),
    click.option("--min", "minimum", type=Limit(), multiple=True, help="Least value. Repeatable."),
    click.option("--max", "maximum", type=Limit(), multiple=True, help="Largest value. Repeatable."),
    click.option("--min-accuracy", type=Finite(), help="Least accuracy of choices, else of yes/no answers."),
    click.option("--max-ece", type=Finite(), help="Largest calibration error."),
    click.option("--gate-policy", metavar="FILE", help="Rules to judge by, JSON or TOML."),
    click.option(
        "--junit",
        "junit_path",
        type=click.Path(dir_okay=False),
        metavar="FILE",
        help="Write the verdict as JUnit XML, one test case a rule.",
    ),
    click.option(
        "--github", is_flag=True, help="Annotate the build and write its summary; plain text elsewhere."
    ),
)


gating = bundled("gating", Gating, Gating._fields, _GATING, ("junit_path",))
"""Flags of every command that can fail a build, handed over as one `Gating`."""
