"""A comparison in lines of at most 80 columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from steelyard.core.comparison import Comparison, Delta, Difference, Flip, Paired, SliceDifference
from steelyard.formats.jsontext import one_line, quote
from steelyard.render.console import wrapped
from steelyard.render.text import SHOWN, chance, fitted, number, span, text_width

Q_SHOWN = 0.05
"""Slices that moved at this false discovery rate are shown without being asked for."""


def comparison_lines(
    found: Comparison, slices: Collection[str] = (), flips: int = 10, every: bool = False
) -> Iterator[str]:
    """Lines of a comparison: identity, drift, paired differences, slices and flipped answers."""
    yield from wrapped(f"run: {one_line(found.candidate)}")
    yield from wrapped(f"baseline: {one_line(found.baseline)}")
    yield from wrapped(identity_line(found))
    yield ""
    for delta in found.deltas:
        yield delta_line(delta)
    yield ""
    if found.paired is None:
        yield from wrapped(f"not paired: {found.unpaired}")
        return
    yield from paired_lines(found.paired, slices, flips, every)


def identity_line(found: Comparison) -> str:
    """Whether the two are the same measurement, key by key."""
    said = []
    for key, (theirs, ours) in found.identity.items():
        word = "unknown" if theirs is None or ours is None else "same" if theirs == ours else "DIFFERENT"
        said.append(f"{key} {word}")
    return "identity: " + ", ".join(said)


def delta_line(delta: Delta) -> str:
    """One overall metric beside its baseline, as the peer prints it."""
    head = f"{one_line(delta.metric):<18} baseline={delta.baseline:.4f}"
    if delta.incomparable:
        value = "none" if delta.value is None else f"{delta.value:.4f}"
        return f"{head} value={value} not compared: {one_line(delta.incomparable)}"
    if delta.value is None or delta.diff is None:
        return f"{head} missing from the report"
    return f"{head} value={delta.value:.4f} diff={delta.diff:+.4f} (tol {delta.tolerance:.4f})"


def paired_lines(
    found: Paired, slices: Collection[str] = (), flips: int = 10, every: bool = False
) -> Iterator[str]:
    """The same answers of both runs."""
    for line in joining_lines(found):
        yield from wrapped(line)
    shown = [one for one in found.differences if every or one.metric in (*SHOWN, "accuracy")]
    yield ""
    yield _row("metric", "run", "baseline", "differs", "95% interval", "n", "p")
    for one in shown:
        yield _row(one.metric, number(one.candidate), number(one.baseline), *_cells(one, one.p))
    if len(shown) < len(found.differences):
        yield f"and {len(found.differences) - len(shown)} more: --all shows them, --json has them"
    yield ""
    for line in verdict_lines(found):
        yield from wrapped(line)
    yield from _slice_lines(found.slices, slices)
    yield from flip_lines(found, flips)


def joining_lines(found: Paired) -> Iterator[str]:
    """What was joined, and what was not."""
    joining = found.joining
    yield f"paired: {joining.scored} answers of {joining.cases} cases that both runs scored"
    if joining.by_order:
        yield "cases do not say which row they are, so each answer counts as a case of its own"
    left = [
        f"{count} {words}"
        for count, words in (
            (joining.candidate_errored, "errored in this run only"),
            (joining.baseline_errored, "errored in the baseline only"),
            (joining.only_candidate, "in this run only"),
            (joining.only_baseline, "in the baseline only"),
            (joining.other_state, "with another state"),
            (joining.other_label, "with another label"),
        )
        if count
    ]
    if left:
        yield "left out: " + ", ".join(left)


def verdict_lines(found: Paired) -> Iterator[str]:
    """What the differences say, in words."""
    known = {one.metric: one for one in found.differences}
    for said in found.judgements:
        one = known[said.metric]
        line = f"{said.metric}: {said.text}. {number(one.candidate)} against {number(one.baseline)}"
        if one.interval:
            line += f", difference {_signed(one.value)} ({span(one.interval)}; n={one.n}, {one.cases} cases)"
        if one.gains is not None:
            line += f"; {one.gains} gained, {one.losses} lost"
        if one.p is not None and one.test:
            line += f", {one.test} p{chance(one.p)}"
        if one.mde is not None:
            line += f"; a change of {number(one.mde)} would show 4 times in 5"
        yield line


def _slice_lines(found: Sequence[SliceDifference], asked: Collection[str]) -> Iterator[str]:
    moved = [
        one
        for one in found
        if one.q is not None and one.q <= Q_SHOWN and one.part and one.dimension not in asked
    ]
    for dimension in asked:
        own = [one for one in found if one.dimension == dimension]
        yield from _slice_table(f"by {dimension}", own, f"by {dimension}: no answer has one")
    if moved:
        yield from _slice_table("other slices that moved (q <= .05)", moved, "")


def _slice_table(title: str, found: Sequence[SliceDifference], nothing: str) -> Iterator[str]:
    yield ""
    if not found:
        yield nothing
        return
    yield title
    yield _slice_row("slice", "metric", "differs", "95% interval", "n", "q")
    for one in found:
        name = one_line(f"{one.dimension}={one.value}", 78)
        yield _slice_row(name, one.found.metric, *_cells(one.found, one.q))


def flip_lines(found: Paired, limit: int) -> Iterator[str]:
    """Answers only one run has right: regressions, then gains."""
    yield ""
    yield from wrapped(
        f"{found.lost} answers were right and are wrong, {found.gained} the other way round; "
        f"{found.changed} more changed but are as right or wrong as before"
    )
    for name, gained, count in (("regressions", False, found.lost), ("gains", True, found.gained)):
        if count and limit:
            flips = [flip for flip in found.flips if flip.gained == gained][:limit]
            yield f"{name} ({len(flips)} of {count})"
            for flip in flips:
                yield from _flip_lines(flip)


def _flip_lines(flip: Flip) -> Iterator[str]:
    yield from wrapped(f"  {flip_text(flip)}")
    if flip.state is not None:
        yield f"    {fitted(one_line(flip.state, 300), 76).rstrip()}"


def flip_text(flip: Flip) -> str:
    """A flipped answer in one line, without its state."""
    before, after = (
        quote(answer) + ("" if sure is None else f" ({sure:.2f})")
        for answer, sure in (
            (flip.baseline, flip.baseline_confidence),
            (flip.candidate, flip.candidate_confidence),
        )
    )
    place = one_line(flip.place) + (f" id {quote(flip.id)}" if flip.id is not None else "")
    return (
        f"{place}, {one_line(flip.question, 60)}: was {before}, is {after}, expected {quote(flip.expected)}"
    )


def _cells(one: Difference, p: float | None) -> tuple[str, str, str, str]:
    interval = span(one.interval) if one.interval else "-"
    return _signed(one.value), interval, str(one.n), "-" if p is None else chance(p).lstrip("=")


def _row(metric: str, run: str, baseline: str, differs: str, interval: str, n: str, p: str) -> str:
    return f"{fitted(metric, 21)} {run:>8} {baseline:>8} {differs:>7}  {interval:<18} {n:>6} {p:>5}".rstrip()


def _slice_row(name: str, metric: str, differs: str, interval: str, n: str, q: str) -> str:
    head = fitted(name, 20) if text_width(name) <= 20 else name + "\n" + " " * 20
    return f"{head} {fitted(metric, 15)} {differs:>8}  {interval:<18} {n:>6} {q:>5}".rstrip()


def _signed(value: float) -> str:
    return ("+" if value > 0 else "") + number(value)
