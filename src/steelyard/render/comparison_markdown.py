"""A comparison as Markdown; names, states and answers are untrusted text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from steelyard.core.comparison import Comparison, Difference, Paired
from steelyard.core.gates import Verdict
from steelyard.render.comparison import (
    delta_line,
    flip_text,
    identity_line,
    joining_lines,
    verdict_lines,
)
from steelyard.render.gates import gate_markdown
from steelyard.render.markdown import cell, table
from steelyard.render.text import chance, number, span

MAX_FLIPS = 200
_HEADER = ("metric", "run", "baseline", "difference", "95 % interval", "n", "cases", "p")


def comparison_markdown(found: Comparison, verdict: Verdict) -> Iterator[str]:
    """The verdict, what moved, on which slices, and every answer that flipped."""
    yield "# Comparison"
    yield ""
    yield f"Run {cell(found.candidate)} against baseline {cell(found.baseline)}."
    yield f"{cell(identity_line(found).capitalize())}."
    yield ""
    yield from gate_markdown(verdict)
    yield ""
    yield "## Overall"
    yield ""
    for delta in found.deltas:
        yield f"- {cell(' '.join(delta_line(delta).split()))}"
    yield ""
    yield "## Paired"
    yield ""
    if found.paired is None:
        yield cell(f"not paired: {found.unpaired}")
        return
    yield from _paired(found.paired)


def _paired(found: Paired) -> Iterator[str]:
    for line in (*joining_lines(found), *verdict_lines(found)):
        yield f"- {cell(line)}"
    yield ""
    yield from table(_HEADER, (_cells(one, one.p) for one in found.differences))
    if found.slices:
        yield ""
        yield "## Slices"
        yield ""
        rows = ((f"{one.dimension}={one.value}", *_cells(one.found, one.q)) for one in found.slices)
        yield from table(("slice", *_HEADER[:-1], "q"), rows)
    for title, gained, count in (("Regressions", False, found.lost), ("Gains", True, found.gained)):
        flips = [flip for flip in found.flips if flip.gained == gained][:MAX_FLIPS]
        if flips:
            yield ""
            yield f"## {title} ({len(flips)} of {count})"
            yield ""
            for flip in flips:
                yield f"- {cell(flip_text(flip))}" + ("" if flip.state is None else f": {cell(flip.state)}")


def _cells(one: Difference, p: float | None) -> Sequence[str]:
    return (
        one.metric,
        number(one.candidate),
        number(one.baseline),
        number(one.value),
        span(one.interval) if one.interval else f"- ({one.no_interval})",
        str(one.n),
        str(one.cases),
        "-" if p is None else chance(p).lstrip("="),
    )
