"""``steelyard run``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from steelyard.cli.gating import Gating
from steelyard.cli.gating import gating as with_gating
from steelyard.cli.naming import Naming
from steelyard.cli.naming import naming as with_engine
from steelyard.cli.options import Finite, Judging
from steelyard.cli.options import judging as with_judging

if TYPE_CHECKING:
    from steelyard.run.report import Report
    from steelyard.run.runner import Interrupted


@click.command("run")
@click.argument("dataset", type=click.Path(allow_dash=True))
@click.option(
    "--model", metavar="NAME", help="Model every row is asked of; with --onnx the export's checkpoint."
)
@click.option(
    "--batch-size",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Rows of equal questions a call.",
)
@click.option("--sort-by-length", is_flag=True, help="Put states of like length into one batch.")
@click.option(
    "--min-confidence", type=Finite(0, 1), help="Have the engine mark answers below this confidence."
)
@click.option(
    "--on-error",
    type=click.Choice(["fail", "skip"]),
    default="fail",
    show_default=True,
    help="Stop at the first errored row, or record it.",
)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Ask only the first N rows.")
@click.option(
    "--timeout", type=Finite(0, above=True), metavar="SECONDS", help="Give up on a call after this long."
)
@click.option(
    "--concurrency",
    type=click.IntRange(1, 4096),
    default=1,
    show_default=True,
    help="Calls in flight, for engines that wait.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Run folder; the same command again takes up an unfinished run.",
)
@click.option("--retry-errors", is_flag=True, help="With --out: ask errored rows again.")
@click.option(
    "--repeat",
    type=click.IntRange(1, 1000),
    default=1,
    metavar="N",
    help="Ask everything N times, to see how far the engine differs from itself.",
)
@click.option("--quiet", is_flag=True, help="No progress.")
@with_engine
@with_gating
@click.option(
    "--sequential",
    is_flag=True,
    help="Ask in random order and stop as soon as accuracy is surely worse than the baseline, or surely not.",
)
@with_judging
def command(
    dataset: str,
    out: str | None,
    repeat: int,
    quiet: bool,
    naming: Naming,
    gating: Gating,
    sequential: bool,
    judging: Judging,
    **asking: Any,
) -> int:
    """Score a labelled dataset on an engine, and hold it to limits.

    DATASET is a JSON Lines file, the same packed as .gz, or - for standard input. With --baseline, limits or
    a policy the exit code is 1 when a limit is broken; files are written all the same.
    """
    if asking["retry_errors"] and out is None:
        raise click.UsageError("--retry-errors needs --out: without a run folder there is nothing to retry")
    if repeat > 1 and (naming.cache or sequential):
        raise click.UsageError("--repeat asks anew, all rows: leave --cache and --sequential out")
    limits = gating.limits()
    from steelyard.cli.held import Held
    from steelyard.cli.output import save_report, show_report
    from steelyard.cli.progress import progress
    from steelyard.cli.repeating import record_noise, repeats, show_noise
    from steelyard.formats.dataset import Dataset, shown_warnings
    from steelyard.run.options import RunOptions
    from steelyard.run.plan import idle_options
    from steelyard.run.runner import Interrupted
    from steelyard.studies.labelled import evaluate

    data = Dataset.from_jsonl(dataset)
    _warn(shown_warnings(data))
    settings = judging.settings()
    held = Held(gating, limits, data, settings, sequential=sequential, rows=asking["limit"])
    engine = naming.engine(asking)
    options = RunOptions(**asking)
    _warn(idle_options(engine, options))

    def once(folder: str | None) -> Report:
        with progress(quiet) as shown:
            return evaluate(
                engine, data, options=options, settings=settings, out=folder, progress=shown, watch=held.watch
            )

    try:
        report, *others = repeats(once, out, repeat)
    except Interrupted as stop:
        return _stopped(stop, out)
    _warn([*report.warnings, *report.absent])
    report.config |= limits.recorded(report.overall)
    record_noise(report, others)
    save_report(report, judging, out)
    show_report(report, judging.slices, judging.every)
    show_noise(report)
    return held.judge(report, judging, out)


def _stopped(stop: Interrupted, out: str | None) -> int:
    kept = "the same command takes it up" if out else "nothing was kept; name a run folder with --out"
    click.echo(f"steelyard: stopped with {stop.done} of {stop.total} rows done; {kept}", err=True)
    return 128 + stop.signal


def _warn(warnings: list[str]) -> None:
    for warning in warnings:
        click.echo(f"steelyard: warning: {warning}", err=True)
