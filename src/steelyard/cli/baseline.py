"""``steelyard baseline``."""

from __future__ import annotations

import click


@click.group("baseline")
def command() -> None:
    """Keep the report that later runs are held against."""


@command.command("update")
@click.argument("report", type=click.Path(exists=True))
@click.option(
    "--to", "target", type=click.Path(dir_okay=False), required=True, metavar="FILE", help="The baseline."
)
@click.option("--dry-run", is_flag=True, help="Show what would move, and write nothing.")
def update(report: str, target: str, dry_run: bool) -> int:
    """Make REPORT, a report file or a run folder, the baseline; what moves is shown.

    A run with errored rows is refused. The file is written whole or not at all.
    """
    from steelyard.formats.files import write_whole
    from steelyard.formats.jsontext import one_line, quote
    from steelyard.render.comparison import delta_line
    from steelyard.run.baselines import plan_update

    found = plan_update(report, target)
    for key, (old, new) in found.identity.items():
        click.echo(f"{key}: was {quote(old)}, is {quote(new)}")
    for delta in found.deltas:
        click.echo(delta_line(delta))
    if found.appear:
        click.echo(f"new: {', '.join(one_line(name) for name in found.appear)}")
    if not (found.deltas or found.appear or found.identity):
        click.echo("nothing moves")
    if dry_run:
        return 0
    write_whole(target, found.data)
    click.echo(f"wrote {one_line(target)}")
    return 0
