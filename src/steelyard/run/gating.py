"""Every limit on one build, from flags and from a policy, as one verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from steelyard.core.comparison import Comparison, Direction
from steelyard.core.gates import Finding, Policy, Rule, Verdict
from steelyard.errors import PolicyError
from steelyard.formats.jsontext import quote
from steelyard.metrics.registry import Measurement
from steelyard.metrics.view import Settings
from steelyard.run.compare import Comparing
from steelyard.run.drift import check_tolerances, metric_map
from steelyard.run.gates import check_policy, judge
from steelyard.run.limits import check_limits, conflict_findings, delta_findings, limit_findings
from steelyard.run.side import Side


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a build must keep.

    Attributes
    ----------
    tolerances : dict or None
        How far metrics may drift from the baseline, the others not at all; None leaves that to margins
        or to a policy of version 2, where there are some.
    direction : str
        ``worse`` lets metrics move freely to their better side.
    margins : dict
        How much worse a metric may get, shown by the paired difference.
    mins, maxs : dict
        Limits on overall values.
    min_accuracy : float or None
        Of choice answers, or of yes/no answers where there are no choices.
    policy : Policy or None
    """

    tolerances: dict[str, float] | None = None
    direction: Direction = "both"
    margins: dict[str, float] = {}
    mins: dict[str, float] = {}
    maxs: dict[str, float] = {}
    min_accuracy: float | None = None
    policy: Policy | None = None

    def check(self, *, baseline: bool) -> None:
        """Refuse limits that could not be judged, before anything is asked.

        Raises
        ------
        PolicyError
            A number that decides nothing, a relative limit without a baseline, or an unknown metric.
        """
        check_tolerances(self.tolerances or {})
        check_limits(self.mins, "minimum")
        check_limits(self.maxs, "maximum")
        check_limits({"min_accuracy": self.min_accuracy} if self.min_accuracy is not None else {}, "minimum")
        if not baseline and (self.tolerances or self.direction == "worse"):
            raise PolicyError("--tolerance and --direction need a baseline; name one with --baseline")
        for policy in self.policies():
            check_policy(policy, baseline=baseline)

    def policies(self) -> list[Policy]:
        """The policy, and the margins as one."""
        rules = tuple(
            Rule(name=f"margin {metric}", metric=metric, kind="margin", limit=margin)
            for metric, margin in self.margins.items()
        )
        for metric, margin in self.margins.items():
            if not 0.0 <= margin < float("inf"):
                raise PolicyError(
                    f"margin of {quote(metric)} is {margin}; write a finite number of 0 or more"
                )
        given = [self.policy] if self.policy else []
        return given + ([Policy(version=2, rules=rules)] if rules else [])

    @property
    def exact(self) -> bool:
        """Whether every metric is held against the baseline's, as the peer does."""
        statistical = bool(self.margins) or (self.policy is not None and self.policy.version == 2)
        return self.tolerances is not None or not statistical

    def recorded(self, overall: Mapping[str, float]) -> dict[str, Any]:
        """What a report says of the limits it was held to."""
        found: dict[str, Any] = {
            "thresholds": {
                "min": self.resolved(overall),
                "max": dict(self.maxs),
                "baseline_tolerance": dict(self.tolerances or {}),
            }
        }
        if self.margins:
            found["thresholds"]["margin"] = dict(self.margins)
        return found | ({"gate_policy": self.policy.document} if self.policy else {})

    def resolved(self, overall: Mapping[str, float]) -> dict[str, float]:
        """The minima, the one of accuracy under the name this run has it by."""
        if self.min_accuracy is None:
            return dict(self.mins)
        name = "choice_accuracy" if "choice_accuracy" in overall else "noul_accuracy"
        return {**self.mins, name: self.min_accuracy}


def verdict(
    limits: Limits,
    ours: Side,
    comparing: Comparing | None = None,
    comparison: Comparison | None = None,
    settings: Settings | None = None,
) -> Verdict:
    """Judge a run by every limit.

    Parameters
    ----------
    limits : Limits
    ours : Side
    comparing, comparison : optional
        The run beside its baseline, and what came of it.
    settings : Settings, optional
    """
    found = list(_findings(limits, ours, comparing, comparison, settings))
    # What forbids judging may be said by several policies.
    return Verdict(tuple({(one.rule, one.reason): one for one in found}.values()))


def _findings(
    limits: Limits,
    ours: Side,
    comparing: Comparing | None,
    comparison: Comparison | None,
    settings: Settings | None,
) -> Iterator[Finding]:
    if comparison is not None:
        yield from conflict_findings(comparison.conflicts)
        if limits.exact:
            yield from delta_findings(comparison.deltas)
    overall = metric_map(ours.document, ours.name, baseline=False)
    measured = measured_overall(ours)
    yield from limit_findings(overall, limits.resolved(overall), limits.maxs, measured)
    for policy in limits.policies():
        yield from judge(policy, ours, comparing, settings).findings


def measured_overall(side: Side) -> dict[str, Measurement]:
    """Overall measurements a report has beside its values; empty for reports of other tools."""
    block: Any = side.document.get("measurements")
    found = block.get("overall") if isinstance(block, dict) else None
    try:
        return msgspec.convert(found or {}, dict[str, Measurement])
    except msgspec.ValidationError:
        return {}
