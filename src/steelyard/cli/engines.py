"""``steelyard engines``."""

from __future__ import annotations

import click

from steelyard.cli.options import engine_tables
from steelyard.formats.jsontext import one_line, pretty


@click.command("engines")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def command(as_json: bool) -> int:
    """List the engines, what each needs, and those named in steelyard.toml."""
    from steelyard.engines._base import ENGINES
    from steelyard.engines.spec import engine_class
    from steelyard.render.console import wrapped

    rows = []
    for name in ENGINES:
        kind = engine_class(name)
        spec = f"{name}:{kind.target_help}" if kind.target_help else name
        rows.append({"name": name, "spec": spec, "needs": kind.needs, "summary": kind.summary})
    named = {name: str(entry.get("spec", "")) for name, entry in engine_tables().items()}
    if as_json:
        click.echo(pretty({"engines": rows, "named": named}))
        return 0
    for row in rows:
        click.echo(f"{row['spec']:<22} needs {row['needs']}")
        for line in wrapped(f"  {row['summary']}", 78):
            click.echo(f"  {line.strip()}")
    for name, spec in named.items():
        click.echo(f"{one_line(name, 22):<22} steelyard.toml: {one_line(spec, 50)}")
    click.echo("\nSpec: NAME[:TARGET][,key=value], for example scripted,accuracy=0.9,seed=1")
    return 0
