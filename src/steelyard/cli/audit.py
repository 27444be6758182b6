"""``steelyard audit``."""

from __future__ import annotations

import click

from steelyard.cli.options import Finite, check_outputs


@click.command("audit")
@click.argument("dataset", type=click.Path(allow_dash=True))
@click.option(
    "--run",
    "runs",
    type=click.Path(exists=True, file_okay=False),
    multiple=True,
    metavar="DIR",
    help="A run folder made on the dataset. Repeatable.",
)
@click.option(
    "--against", metavar="DATASET", help="Another split: look for near-duplicates of its states instead."
)
@click.option(
    "--near", type=Finite(0, 1, above=True), default=0.8, show_default=True, help="Similarity that counts."
)
@click.option(
    "--limit", type=click.IntRange(0), default=10, show_default=True, help="Findings of a kind shown."
)
@click.option(
    "--json", "json_path", type=click.Path(dir_okay=False), metavar="FILE", help="Write all findings."
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the hashing.")
def command(
    dataset: str,
    runs: tuple[str, ...],
    against: str | None,
    near: float,
    limit: int,
    json_path: str | None,
    seed: int,
) -> int:
    """Look for labels that are probably wrong and rows that mislead; no engine is asked.

    DATASET is a JSON Lines file, the same packed as .gz, or - for standard input. Runs add the labels
    they contradict, options they never choose, and options they cannot tell apart.
    """
    check_outputs([json_path])
    import msgspec

    from steelyard.formats.dataset import Dataset
    from steelyard.formats.files import write_whole
    from steelyard.formats.jsontext import pretty
    from steelyard.render.audit import audit_lines
    from steelyard.studies.audit import audit

    data = Dataset.from_jsonl(dataset)
    other = None if against is None else Dataset.from_jsonl(against)
    found = audit(data, runs, against=other, near=near, seed=seed)
    if json_path is not None:
        write_whole(
            json_path, (pretty(msgspec.to_builtins(found)) + "\n").encode("utf-8", "backslashreplace")
        )
    for line in audit_lines(found, limit):
        click.echo(line)
    return 0
