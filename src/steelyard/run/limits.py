"""Limits given one by one, on overall values: the peer's `--min`, `--max` and tolerances as findings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from steelyard.core.comparison import Delta
from steelyard.core.gates import SLACK, Finding
from steelyard.errors import PolicyError
from steelyard.formats.jsontext import one_line, quote
from steelyard.metrics.registry import Measurement


def told_apart(*values: float) -> list[str]:
    """Numbers with four decimals, or as many as it takes to tell any two of them apart.

    >>> told_apart(0.79999, 0.8)
    ['0.79999', '0.80000']
    """
    for digits in range(4, 17):
        # Adding 0 takes the sign off a zero.
        shown = [f"{value + 0.0:.{digits}f}" for value in values]
        if all(
            one != other or a == b
            for at, (a, one) in enumerate(zip(values, shown, strict=True))
            for b, other in zip(values[:at], shown[:at], strict=True)
        ):
            return shown
    return [repr(value) for value in values]


def check_limits(limits: Mapping[str, float], what: str) -> None:
    """Refuse limits that decide nothing.

    Raises
    ------
    PolicyError
        A limit is NaN or infinite.
    """
    for metric, limit in limits.items():
        if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not math.isfinite(limit):
            raise PolicyError(f"{what} of {quote(metric)} is {limit}; write a finite number")


def limit_findings(
    overall: Mapping[str, float],
    mins: Mapping[str, float],
    maxs: Mapping[str, float],
    measured: Mapping[str, Measurement],
) -> Iterator[Finding]:
    """Each limit against the metric it names; a metric that is not there fails.

    Parameters
    ----------
    overall : mapping
        Values; NaN is no measurement.
    mins, maxs : mapping
        Inclusive limits.
    measured : mapping
        What else is known of the values.
    """
    for kind, limits in (("min", mins), ("max", maxs)):
        for metric, limit in limits.items():
            found = measured.get(metric)
            value = found.value if found is not None and metric not in overall else overall.get(metric)
            if value is None or math.isnan(value):
                yield _missing(
                    f"{kind} {metric}", metric, "is not in the report" if value is None else "is NaN"
                )
                continue
            sign = 1.0 if kind == "min" else -1.0
            fine = sign * (value - limit) >= -SLACK
            shown = told_apart(value, limit)
            relation = "at least" if kind == "min" else "at most"
            reason = f"{one_line(metric)} = {shown[0]}{over(found)}, limit {relation} {shown[1]}"
            beyond = unattainable(found, limit) if kind == "max" else ""
            yield Finding(
                rule=f"{kind} {metric}",
                metric=metric,
                outcome="pass" if fine else "fail",
                fails=not fine,
                reason=f"{reason}; {beyond}" if beyond else reason,
                kind=kind,
                limit=limit,
                value=value,
                n=found.n if found is not None else None,
            )


def _missing(rule: str, metric: str, why: str) -> Finding:
    return Finding(
        rule=rule, metric=metric, outcome="missing", fails=True, reason=f"{one_line(metric)} {why}"
    )


def delta_findings(deltas: Sequence[Delta]) -> Iterator[Finding]:
    """Every delta as a finding: it passes, or says why not."""
    for delta in deltas:
        outcome = "pass" if delta.ok else "missing" if delta.missing else "fail"
        yield Finding(
            rule=f"tolerance {delta.metric}",
            metric=delta.metric,
            outcome=outcome,  # type: ignore[arg-type]
            fails=not delta.ok,
            reason=delta_reason(delta),
            kind="tolerance",
            limit=delta.tolerance,
            value=delta.value,
            baseline=delta.baseline,
            difference=delta.diff,
        )


def delta_reason(delta: Delta) -> str:
    """A delta in one line, with enough digits to see why it fails."""
    name = one_line(delta.metric)
    if delta.incomparable:
        return f"{name} is not compared: {delta.incomparable}"
    if delta.missing or delta.value is None or delta.diff is None:
        return f"{name} has no value in this run; the baseline is {delta.baseline:.4f}"
    value, base = told_apart(delta.value, delta.baseline)
    moved, tolerance = f"{abs(delta.diff):.4f}", f"{delta.tolerance:.4f}"
    if not delta.ok:
        moved, tolerance = told_apart(abs(delta.diff), delta.tolerance)
    said = f"{name} = {value}, baseline {base}: "
    if not delta.diff:
        return said + f"unmoved, tolerance {tolerance}"
    said += f"{'up' if delta.diff > 0 else 'down'} by {moved}, tolerance {tolerance}"
    improved = delta.improved and not delta.ok
    return said + (" (an improvement; --direction worse lets it pass)" if improved else "")


def conflict_findings(conflicts: Sequence[str]) -> Iterator[Finding]:
    """One failure for a baseline that is another measurement."""
    if conflicts:
        yield Finding(
            rule="comparable",
            metric="identity",
            outcome="fail",
            fails=True,
            reason="baseline is not comparable: " + "; ".join(conflicts),
        )


def forbidden(rule: str, reason: str) -> Finding:
    """A failure of what must hold before any limit can be judged."""
    return Finding(rule=rule, metric="", outcome="fail", fails=True, reason=reason)


def named(metric: str, where: str) -> str:
    """A metric and its slice: ``ece[language=zh]``."""
    return f"{one_line(metric)}[{where}]" if where else one_line(metric)


def over(found: Measurement | None) -> str:
    """What a number is over, in brackets; nothing where that is not known."""
    if found is None or not found.n:
        return ""
    return f" (n={found.n}, {found.cases} cases)" if found.cases else f" (n={found.n})"


def unattainable(found: Measurement | None, limit: float) -> str:
    """Says when chance alone would break an upper limit more often than one time in twenty."""
    null = found.null if found is not None else None
    if found is None or null is None or limit >= null.q95:
        return ""
    said = f"unattainable: a perfectly calibrated model reads up to {null.q95:.4f} on {found.n} answers"
    if limit <= 0.0:
        return said
    return f"{said}; about {math.ceil(found.n * (null.q95 / limit) ** 2)} would do"
