"""An audit as lines of text; states and labels are untrusted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from steelyard.core.findings import Balance, Conflict, Disagreement, NearDuplicate
from steelyard.formats.jsontext import dumps, one_line
from steelyard.metrics.confusable import Confusable, OptionUse
from steelyard.render.console import wrapped
from steelyard.render.text import fitted, number, span

_STATE = 56


def audit_lines(found: Any, limit: int) -> Iterator[str]:
    """Lines of an audit, at most `limit` of each kind.

    Parameters
    ----------
    found : Audit
    limit : int
        The rest is counted.
    """
    yield f"{found.rows} rows, {found.runs} run(s)"
    if found.runs:
        title = (
            "labels the runs contradict, the surest first (runs that agree, probability above the label's)"
        )
        yield from _section(title, found.disagreements, limit, _disagreement)
    yield from _section("equal states with different labels", found.conflicts, limit, _conflict)
    title = "states that are nearly the same and count as independent"
    yield from _section(title, found.near_duplicates, limit, _near)
    if found.near_unchecked:
        yield f"  and {found.near_unchecked} less likely pairs that were not compared"
    yield from _section("labels of each question, the most uneven first", found.balance, limit, _balance)
    if found.runs:
        yield from _section("options no run ever chose", found.options, limit, _option)
        unclear = [pair for pair in found.confusable if (pair.interval or [pair.auroc])[0] <= 0.5]
        title = "options the engine cannot tell apart (auroc not above 0.5 for sure)"
        yield from _section(title, unclear, limit, _pair)
        rest = [pair for pair in found.confusable if pair not in unclear and pair.auroc < 0.8]
        yield from _section("options it tells apart badly (auroc below 0.8)", rest, limit, _pair)


def _section(title: str, items: Sequence[Any], limit: int, line: Any) -> Iterator[str]:
    yield ""
    yield from wrapped(f"{title}: {len(items) or 'none'}")
    for item in items[:limit]:
        for text in line(item):
            indent = text[: len(text) - len(text.lstrip())]
            yield from (indent + part for part in wrapped(text.strip(), 80 - len(indent)))
    if len(items) > limit:
        yield f"  ... and {len(items) - limit} more; --json has them all"


def _disagreement(one: Disagreement) -> Iterator[str]:
    agree = f"{one.runs}/{one.of}  {number(one.confidence)}"
    yield f"  {_place(one.place, 40)} {one_line(one.question, 24)}  {agree}"
    yield f"    labelled {_value(one.expected)}, answered {_value(one.answer)}"
    yield f"    {fitted(one.state, _STATE).rstrip()}"


def _place(place: str, width: int) -> str:
    """A file and line, cut at its head where it is long: the line number tells most."""
    shown = one_line(place, 1000)
    return shown if len(shown) <= width else "…" + shown[1 - width :]


def _value(value: Any) -> str:
    return one_line(value if isinstance(value, str) else dumps(value).decode(), 32)


def _conflict(one: Conflict) -> Iterator[str]:
    yield f"  {one_line(one.question, 24)}: {fitted(one.state, _STATE).rstrip()}"
    for label, places in one.labels.items():
        more = f" and {len(places) - 3} more" if len(places) > 3 else ""
        yield f"    {one_line(label, 32)}: {', '.join(_place(place, 40) for place in places[:3])}{more}"


def _near(one: NearDuplicate) -> Iterator[str]:
    labels = "same labels" if one.same_labels else "DIFFERENT labels"
    yield f"  {number(one.similarity)}  {_place(one.first, 36)} {_place(one.second, 36)} {labels}"
    yield f"    {fitted(one.state, _STATE).rstrip()}"


def _balance(one: Balance) -> Iterator[str]:
    yield (
        f"  {fitted(one_line(one.question, 24), 24)} n={one.n}, {one.labels} labels as even as "
        f"{one.effective:.1f}; {one_line(one.majority, 24)} {100 * one.majority_share:.1f}%"
    )
    for word, names in (("fewer than 5", one.rare), ("never", one.never)):
        if names:
            more = f", ... {len(names)} in all" if len(names) > 6 else ""
            yield from wrapped(f"    {word}: {', '.join(one_line(name, 24) for name in names[:6])}{more}")


def _option(one: OptionUse) -> Iterator[str]:
    yield (
        f"  {one_line(one.question, 24)}: {one_line(one.option, 32)} (offered {one.offered}, label of "
        f"{one.labelled})"
    )


def _pair(one: Confusable) -> Iterator[str]:
    reach = f", {span(one.interval)}" if one.interval else ""
    yield (
        f"  {one_line(one.question, 20)}: {one_line(one.first, 20)} / {one_line(one.second, 20)}: auroc "
        f"{number(one.auroc)}{reach}, n={one.n_first}+{one.n_second}, swapped {one.swapped}"
    )
