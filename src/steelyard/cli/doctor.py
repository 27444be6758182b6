"""``steelyard doctor``."""

from __future__ import annotations

import click

from steelyard.cli.options import check_outputs, engine_tables


@click.command("doctor")
@click.option("-e", "--engine", "spec", required=True, metavar="SPEC", help="As in `steelyard run`.")
@click.option(
    "--json", "json_path", type=click.Path(dir_okay=False), metavar="FILE", help="Write the checks."
)
def command(spec: str, json_path: str | None) -> int:
    """Check that an engine keeps its contract; no labels are needed.

    Exit code 1 when a check fails. A warning is something to know of before numbers are compared.
    """
    check_outputs([json_path])
    import msgspec

    from steelyard.engines.spec import make_engine
    from steelyard.formats.files import write_whole
    from steelyard.formats.jsontext import one_line, pretty
    from steelyard.render.console import wrapped
    from steelyard.studies.doctor import doctor

    checks = doctor(make_engine(spec, engine_tables()))
    if json_path is not None:
        write_whole(json_path, (pretty({"checks": msgspec.to_builtins(checks)}) + "\n").encode())
    for check in checks:
        for line in wrapped(f"{check.outcome:<4} {check.name}: {one_line(check.text, 300)}"):
            click.echo(line)
    return int(any(check.outcome == "fail" for check in checks))
