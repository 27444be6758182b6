"""Policy version 1, judged the way the peer judges it, with limits that are inclusive."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from steelyard.core.gates import SLACK, Finding, Policy, Rule
from steelyard.formats.jsontext import one_line
from steelyard.formats.policy import slice_name
from steelyard.run.compare import Comparing
from steelyard.run.drift import IDENTITY
from steelyard.run.limits import forbidden, told_apart
from steelyard.run.side import Side

_PAIRED = ("ece", "brier", "aurc")


def judge_version_1(policy: Policy, ours: Side, comparing: Comparing | None) -> Iterator[Finding]:
    """Findings of a version 1 policy, and of what forbids judging by it.

    Parameters
    ----------
    policy : Policy
    ours : Side
    comparing : Comparing or None
        The run beside its baseline; None fails every relative rule.
    """
    sides = [("this run", ours)] + ([("the baseline", comparing.theirs)] if comparing else [])
    for name, side in sides:
        if side.config.get("errored"):
            yield forbidden("errors", f"{name} has errored rows")
    if policy.relative:
        yield from _identity(ours, comparing)
    for rule in policy.rules:
        if rule.relative and comparing is None:
            continue
        yield _judged(rule, ours, comparing)


def _identity(ours: Side, comparing: Comparing | None) -> Iterator[Finding]:
    if comparing is None:
        yield forbidden("baseline", "a relative rule needs a baseline")
        return
    unknown = [
        key for key in IDENTITY if ours.config.get(key) is None or comparing.theirs.config.get(key) is None
    ]
    if unknown:
        yield forbidden("identity", f"both reports must say their {', '.join(unknown)}")
    if comparing.conflicts:
        yield forbidden("comparable", "baseline is not comparable: " + "; ".join(comparing.conflicts))


def _judged(rule: Rule, ours: Side, comparing: Comparing | None) -> Finding:
    where = slice_name(rule.slice)
    name = f"{one_line(rule.metric)}[{where}]"
    facts: dict[str, Any] = {"rule": rule.name, "metric": rule.metric, "slice": where, "kind": rule.kind}
    facts |= {"limit": rule.limit, "fails": True}
    value, n = value_of(ours, rule), count_of(ours, rule)
    if value is None:
        return Finding(outcome="missing", reason=f"{name}: the metric or the slice is missing", **facts)
    facts |= {"value": value, "n": n}
    if n < rule.min_count:
        return Finding(
            outcome="missing", reason=f"{name} is over {n} answers, min_count is {rule.min_count}", **facts
        )
    if not rule.relative:
        sign = 1.0 if rule.kind == "min" else -1.0
        fine = sign * (value - rule.limit) >= -SLACK
        shown = told_apart(value, rule.limit)
        relation = "at least" if rule.kind == "min" else "at most"
        reason = f"{name} = {shown[0]} (n={n}), limit {relation} {shown[1]}"
        return Finding(outcome="pass" if fine else "fail", reason=reason, **facts | {"fails": not fine})
    assert comparing is not None
    return _moved(rule, name, facts, comparing)


def _moved(rule: Rule, name: str, facts: dict[str, Any], comparing: Comparing) -> Finding:
    stale = comparing.drift.incomparable(rule.metric)
    if stale is not None:
        return Finding(outcome="fail", reason=f"{name} is not compared: {stale}", **facts)
    base, n = value_of(comparing.theirs, rule), count_of(comparing.theirs, rule)
    if base is None:
        return Finding(
            outcome="missing", reason=f"{name}: the baseline lacks the metric or the slice", **facts
        )
    if n < rule.min_count:
        reason = f"{name} is over {n} answers of the baseline, min_count is {rule.min_count}"
        return Finding(outcome="missing", reason=reason, **facts)
    drift = facts["value"] - base
    moved = -drift if rule.kind == "max_drop" else drift
    fine = moved <= rule.limit + SLACK
    value, shown_base = told_apart(facts["value"], base)
    shown, limit = told_apart(moved, rule.limit)
    word = "drop" if rule.kind == "max_drop" else "rise"
    reason = f"{name} = {value} (n={facts['n']}), baseline {shown_base} (n={n}): "
    reason += f"{word} {shown}, at most {limit}"
    facts |= {"baseline": base, "difference": drift, "fails": not fine}
    return Finding(outcome="pass" if fine else "fail", reason=reason, **facts)


def value_of(side: Side, rule: Rule) -> float | None:
    """The value a report's slice has, None where it has none that is a finite number."""
    (dimension, value), *_ = rule.slice
    found: Any = side.document.get("slices")
    for key in (dimension, value, rule.metric):
        found = found.get(key) if isinstance(found, dict) else None
    if type(found) not in (int, float):
        return None
    try:
        return float(found) if math.isfinite(found) else None
    except OverflowError:
        return None


def count_of(side: Side, rule: Rule) -> int:
    """Scored answers of a metric in a slice.

    A report's cases are counted; one without cases is believed where it says its own counts.
    """
    (dimension, value), *_ = rule.slice
    metric = "ece" if _is_paired(rule.metric) else rule.metric
    cases = side.document.get("cases")
    if isinstance(cases, list) and cases:
        return sum(_counts(case, dimension, value, rule.metric) for case in cases)
    found: Any = side.document.get("measurements")
    for key in ("slices", dimension, value, metric, "n"):
        found = found.get(key) if isinstance(found, dict) else None
    return found if type(found) is int else 0


def _is_paired(metric: str) -> bool:
    """Whether a metric is over pairs of confidence and correctness."""
    return metric in _PAIRED or metric.startswith("selective_accuracy@")


def _counts(case: Any, dimension: str, value: str, metric: str) -> bool:
    if not isinstance(case, Mapping):
        return False
    found = case.get("tags") if dimension == "tag" else [case.get(dimension)]
    values = found if isinstance(found, (list, tuple)) else []
    if value not in [str(one) for one in values if one is not None]:
        return False
    if _is_paired(metric):
        return _number(case.get("confidence")) and isinstance(case.get("correct"), bool)
    scores = case.get("scores")
    return _number(scores.get(metric)) if isinstance(scores, dict) else False


def _number(value: Any) -> bool:
    try:
        return type(value) in (int, float) and math.isfinite(value)
    except OverflowError:
        return False
