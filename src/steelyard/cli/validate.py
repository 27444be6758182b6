"""``steelyard validate``."""

from __future__ import annotations

from typing import Any

import click

from steelyard.errors import DatasetError
from steelyard.formats.jsontext import one_line, pretty
from steelyard.formats.scan import Findings, scan
from steelyard.formats.source import LineSource

MAX_QUESTIONS = 60
"""Question ids shown on the console."""


@click.command("validate")
@click.argument("dataset", type=click.Path(allow_dash=True))
@click.option("--json", "as_json", is_flag=True, help="Print findings and counts as JSON.")
def command(dataset: str, as_json: bool) -> int:
    """Check a labelled dataset and count what is in it; no engine is asked.

    DATASET is a JSON Lines file, the same packed as .gz, or - for standard input. Every fault is
    reported at once; exit code 2 when there is any.
    """
    source = LineSource.open(dataset)
    columns, findings = scan(source)
    summary = columns.summary()
    if as_json:
        click.echo(pretty(_document(source, findings, summary)))
        return 2 if findings.n_faults else 0
    if findings.n_faults:
        raise DatasetError.from_faults(findings.faults, findings.n_faults)
    for warning in findings.warnings:
        click.echo(f"steelyard: warning: {warning}", err=True)
    for line in _lines(summary):
        click.echo(line)
    return 0


def _document(source: LineSource, findings: Findings, summary: dict[str, Any]) -> dict[str, Any]:
    return {
        "dataset": source.name,
        "valid": findings.n_faults == 0,
        "n_faults": findings.n_faults,
        "faults": findings.faults,
        "n_warnings": findings.n_warnings,
        "warnings": findings.warnings,
        "counts": summary,
    }


def _lines(summary: dict[str, Any]) -> list[str]:
    types = ", ".join(f"{n} {kind}" for kind, n in summary["types"].items())
    lines = [f"{summary['rows']} rows, {summary['labels']} labels ({types or 'none'})"]
    languages = [f"{one_line(name, 20)} {n}" for name, n in summary["languages"].items()]
    if summary["rows_without_language"] and languages:
        languages.append(f"none {summary['rows_without_language']}")
    if languages:
        more = f", ... {len(languages)} in all" if len(languages) > 12 else ""
        lines.append(f"languages: {', '.join(languages[:12])}{more}")
    lines += [
        "",
        f"{'question':<24} {'type':<7} {'options':>8} {'labels':>8} {'distinct':>9} {'majority':>9}",
    ]
    questions = summary["questions"]
    for qid, facts in list(questions.items())[:MAX_QUESTIONS]:
        options = facts["options"]
        sizes = str(options[0]) if len(options) == 1 else f"{options[0]}-{options[-1]}"
        share = "-" if facts["majority_share"] is None else f"{100 * facts['majority_share']:.1f}%"
        kinds = "/".join(facts["types"])
        lines.append(
            f"{one_line(qid, 24):<24} {kinds:<7} {sizes:>8} {facts['labels']:>8} "
            f"{facts['distinct_labels']:>9} {share:>9}"
        )
    if len(questions) > MAX_QUESTIONS:
        lines.append(f"... and {len(questions) - MAX_QUESTIONS} more question ids; --json has them all")
    return lines
