"""``steelyard rescore``."""

from __future__ import annotations

from pathlib import Path

import click

from steelyard.cli.options import Judging
from steelyard.cli.options import judging as with_judging
from steelyard.errors import InputError


@click.command("rescore")
@click.argument("path", type=click.Path(exists=True))
@click.option("--data", type=click.Path(), metavar="DATASET", help="The run's dataset, when it has moved.")
@with_judging
def command(path: str, data: str | None, judging: Judging) -> int:
    """Judge a run folder or a saved report again; no engine is asked.

    PATH is a folder made by `run --out`, or a laya-evals-report/1 file with cases.
    """
    from steelyard.cli.output import save_report, show_report
    from steelyard.formats.dataset import Dataset
    from steelyard.run.log import dataset_path
    from steelyard.studies.labelled import rescore_report, rescore_run

    settings = judging.settings()
    if Path(path).is_dir():
        report = rescore_run(path, Dataset.from_jsonl(data or dataset_path(Path(path))), settings)
    elif data is not None:
        raise InputError("--data goes with a run folder; a report carries its own cases")
    else:
        report = rescore_report(path, settings)
    for note in report.absent:
        click.echo(f"steelyard: warning: {note}", err=True)
    save_report(report, judging)
    show_report(report, judging.slices, judging.every)
    return 0
