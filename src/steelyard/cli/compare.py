"""``steelyard compare``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from steelyard.cli.gating import Gating
from steelyard.cli.gating import gating as with_gating
from steelyard.cli.options import SLICES, check_outputs

if TYPE_CHECKING:
    from steelyard.metrics.view import Settings
    from steelyard.run.side import Side


@click.command("compare")
@click.argument("reports", nargs=-1, required=True)
@with_gating
@click.option("--data", metavar="DATASET", help="The runs' dataset, when it has moved.")
@click.option(
    "--slice", "slices", type=click.Choice(SLICES), multiple=True, help="Show this slice. Repeatable."
)
@click.option(
    "--flips",
    type=click.IntRange(0),
    default=10,
    show_default=True,
    help="Flipped answers shown of each kind.",
)
@click.option("--all", "every", is_flag=True, help="Show every metric, not only the main ones.")
@click.option(
    "--resamples",
    type=click.IntRange(0, 1_000_000),
    default=0,
    metavar="N",
    help="Take the intervals of every metric from the same N resamples of the cases.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the resamples.")
@click.option(
    "--json",
    "json_path",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Write the comparison and the verdict.",
)
@click.option(
    "--markdown",
    "markdown_path",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Write both as Markdown.",
)
def command(
    reports: tuple[str, ...],
    gating: Gating,
    data: str | None,
    slices: tuple[str, ...],
    flips: int,
    every: bool,
    resamples: int,
    seed: int,
    json_path: str | None,
    markdown_path: str | None,
) -> int:
    """Hold a report against a baseline, or several runs against each other.

    REPORTS are report files or run folders. With --baseline there is one, and the exit code is 1 when it
    moved further than the limits allow. Without, two or more are set side by side.
    """
    check_outputs([json_path, markdown_path])
    if gating.baseline is None and len(reports) < 2:
        raise click.UsageError("name a --baseline, or two runs or more to set side by side")
    if gating.baseline is not None and len(reports) > 1:
        raise click.UsageError("--baseline goes with one report; without it, several are set side by side")
    limits = gating.limits()
    from steelyard.formats.dataset import Dataset
    from steelyard.metrics.view import Settings
    from steelyard.run.side import read_side

    dataset = None if data is None else Dataset.from_jsonl(data)
    sides: list[Side] = []
    for path in (*reports, *([gating.baseline] if gating.baseline is not None else [])):
        # Runs of one dataset read it once.
        near = next((side.dataset for side in sides if side.dataset is not None), None)
        sides.append(read_side(path, dataset, near))
    settings = Settings(resamples=resamples, seed=seed)
    if gating.baseline is None:
        if limits != type(limits)():
            raise click.UsageError("limits go with --baseline; without one runs are set side by side")
        return _side_by_side(sides, settings, json_path, markdown_path)
    from steelyard.cli.compared import Compared

    compared = Compared(sides[0], sides[1], limits, settings)
    return compared.show(gating, slices, flips, every).save(json_path, markdown_path).exit_code


def _side_by_side(
    sides: list[Side], settings: Settings, json_path: str | None, markdown_path: str | None
) -> int:
    import msgspec

    from steelyard.formats.files import write_whole
    from steelyard.formats.jsontext import pretty
    from steelyard.render.several import several_lines, several_markdown
    from steelyard.run.several import side_by_side

    found = side_by_side(sides, settings)
    if json_path is not None:
        write_whole(json_path, (pretty(msgspec.to_builtins(found)) + "\n").encode())
    if markdown_path is not None:
        write_whole(markdown_path, ("\n".join(several_markdown(found)) + "\n").encode())
    for line in several_lines(found):
        click.echo(line)
    return 0
