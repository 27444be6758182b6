"""``steelyard plan``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from steelyard.cli.options import Finite, check_outputs
from steelyard.errors import InputError

_SHARE = Finite(0, 1, above=True)


@click.command("plan")
@click.option("--drop", type=_SHARE, help="Change of accuracy that must show.")
@click.option(
    "--cases", type=click.IntRange(2), metavar="N", help="Cases at hand: the smallest change they show."
)
@click.option("--risk", type=_SHARE, help="Risk to certify.")
@click.option("--coverage", type=_SHARE, default=1.0, show_default=True, help="Coverage it is certified at.")
@click.option("--true-risk", type=Finite(0, 1), help="What that risk truly is.  [default: the pilot's]")
@click.option("--ece", type=_SHARE, help="Calibration error that chance alone must stay below.")
@click.option("--power", type=Finite(0.01, 0.9999), default=0.8, show_default=True, help="Chance to succeed.")
@click.option("--alpha", type=Finite(0.0001, 0.5), default=0.05, show_default=True, help="Two-sided level.")
@click.option("--discordance", type=_SHARE, help="Share of answers only one of two engines gets right.")
@click.option("--rate", type=_SHARE, help="Accuracy now.")
@click.option("--deff", type=Finite(1), help="Design effect of answers that share a case.")
@click.option(
    "--pilot",
    "pilots",
    type=click.Path(exists=True, file_okay=False),
    multiple=True,
    metavar="DIR",
    help="Run folder to read the variances from; two of the same data measure the discordance.",
)
@click.option("--data", metavar="DATASET", help="The pilot's dataset, when it has moved.")
@click.option("--json", "json_path", type=click.Path(dir_okay=False), metavar="FILE", help="Write the plan.")
def command(pilots: tuple[str, ...], data: str | None, json_path: str | None, **aims: Any) -> int:
    """Say how many cases it takes to see a change, certify a risk, or quieten a calibration error."""
    check_outputs([json_path])
    import msgspec

    from steelyard.formats.dataset import Dataset
    from steelyard.formats.files import write_whole
    from steelyard.formats.jsontext import pretty
    from steelyard.render.console import wrapped
    from steelyard.run.log import dataset_path
    from steelyard.studies.planning import Aims, plan, read_pilot

    if len(pilots) > 2:
        raise InputError("--pilot is given at most twice: two runs of the same data")
    if data is not None and not pilots:
        raise InputError("--data goes with --pilot")
    if all(aims[name] is None for name in ("drop", "cases", "risk", "ece")):
        raise click.UsageError("name an aim: --drop, --cases, --risk or --ece")
    pilot = None
    if pilots:
        pilot = read_pilot(pilots, Dataset.from_jsonl(data or dataset_path(Path(pilots[0]))))
    needs = plan(Aims(**aims), pilot)
    if json_path is not None:
        document = {"pilot": msgspec.to_builtins(pilot), "needs": msgspec.to_builtins(needs)}
        write_whole(json_path, (pretty(document) + "\n").encode())
    for need in needs:
        cases = "no number of cases" if need.cases is None else f"{need.cases} cases"
        for line in wrapped(f"{cases}: {need.aim}; {need.assuming}"):
            click.echo(line)
    return 0
