"""Several runs side by side, as lines and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.core.comparison import Match, Reading, Several
from steelyard.formats.jsontext import one_line
from steelyard.render.console import wrapped
from steelyard.render.markdown import cell
from steelyard.render.text import chance, fitted, number, span

_COLUMNS = "| run | metric | value | 95 % interval, or E0 | n | cases |"


def several_lines(found: Several) -> Iterator[str]:
    """Each run's numbers, then every two runs on the answers both scored."""
    yield f"{fitted('metric', 18)} {'value':>9}  {'95% interval':<18} {'n':>7} {'cases':>7}"
    for run in found.runs:
        yield from wrapped(one_line(run.name) + (f" ({one_line(run.engine)})" if run.engine else ""))
        if not run.measured:
            yield "  holds no cases, so nothing is measured again"
        for metric, one in run.measured.items():
            cells = f"{number(one.value):>9}  {_beside(one):<18} {one.n:>7} {one.cases:>7}"
            yield f"  {fitted(metric, 16)} {cells}"
    yield ""
    yield "every two runs, on the answers both scored:"
    for match in found.matches:
        yield from wrapped(f"  {match_text(match)}")
    for note in found.notes:
        yield from wrapped(f"note: {one_line(note, 400)}")


def match_text(match: Match) -> str:
    """One match in a line."""
    names = f"{one_line(match.first)} against {one_line(match.second)}"
    one = match.found
    if one is None:
        return f"{names}: not paired: {match.why}"
    said = f"{names}, {one.metric}: {match.word}. {number(one.candidate)} against {number(one.baseline)}"
    if one.interval:
        said += f", difference {number(one.value)} ({span(one.interval)}; n={one.n}, {one.cases} cases)"
    return said + (f", q{chance(match.q)}" if match.q is not None else "")


def several_markdown(found: Several) -> Iterator[str]:
    """The same as Markdown."""
    yield "# Runs side by side"
    yield ""
    yield _COLUMNS
    yield "|---|---|---|---|---|---|"
    for run in found.runs:
        for metric, one in run.measured.items():
            cells = (cell(run.name), metric, number(one.value), _beside(one), str(one.n), str(one.cases))
            yield f"| {' | '.join(cells)} |"
    yield ""
    for match in found.matches:
        yield f"- {cell(match_text(match))}"
    for note in found.notes:
        yield f"- {cell(note)}"


def _beside(one: Reading) -> str:
    """The interval, or what a perfectly calibrated model would read."""
    if one.interval:
        return span(one.interval)
    return "-" if one.expectation is None else f"E0 {number(one.expectation)}"
