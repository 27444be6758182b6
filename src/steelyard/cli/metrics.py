"""``steelyard metrics``."""

from __future__ import annotations

import click

from steelyard.errors import UnknownNameError


@click.command("metrics")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--markdown", is_flag=True, help="Print the page of all metrics.")
def command(names: tuple[str, ...], markdown: bool) -> int:
    """List the metrics, or say everything about some: formula, range, needs, traps, source."""
    from steelyard.metrics.measure import metrics_for
    from steelyard.metrics.view import Settings
    from steelyard.render.catalogue import metric_lines, metrics_markdown
    from steelyard.render.text import fitted

    known = {metric.name: metric for metric in metrics_for(Settings())}
    for name in names:
        if name not in known:
            raise UnknownNameError.among("metric", name, known)
    if markdown:
        click.echo(metrics_markdown(list(known.values())), nl=False)
        return 0
    for name in names:
        for line in metric_lines(known[name]):
            click.echo(line)
        click.echo()
    if not names:
        for name, metric in known.items():
            click.echo(fitted(f"{name:<24} {metric.summary}", 80).rstrip())
    return 0
