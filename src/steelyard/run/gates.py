"""Policies judged: what a run, alone or beside its baseline, can show of every rule."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from steelyard.core.gates import SLACK, Finding, Policy, Rule, Verdict
from steelyard.errors import PolicyError
from steelyard.formats.policy import slice_name
from steelyard.metrics.view import Settings
from steelyard.run.compare import Comparing
from steelyard.run.evidence import ANSWERED, Where, Witness, better, check_metric, is_fact
from steelyard.run.limits import forbidden, named, over, told_apart, unattainable
from steelyard.run.peer_gates import judge_version_1
from steelyard.run.reach import Reach, reach_of
from steelyard.run.side import Side
from steelyard.run.verdict import cases_needed
from steelyard.stats.multiplicity import benjamini_hochberg, holm


def check_policy(policy: Policy, *, baseline: bool) -> None:
    """Refuse a policy that could not be judged, before anything is asked.

    Raises
    ------
    PolicyError
        A rule is relative and there is no baseline, or names what no rule can be on.
    """
    if policy.relative and not baseline:
        rule = next(rule for rule in policy.rules if rule.relative)
        raise PolicyError(f"{rule.name} has a {rule.kind}, which needs a baseline; name one with --baseline")
    for rule in policy.rules if policy.version == 2 else ():
        try:
            check_metric(rule.metric, rule.slice)
        except PolicyError as error:
            raise PolicyError(f"{rule.name}: {error}") from None
        if rule.kind == "margin" and better(rule.metric) == "neither":
            raise PolicyError(
                f"{rule.name}: {rule.metric} is neither better higher nor lower; use max_drop or max_increase"
            )


def judge(
    policy: Policy, ours: Side, comparing: Comparing | None = None, settings: Settings | None = None
) -> Verdict:
    """Judge a run by a policy.

    Parameters
    ----------
    policy : Policy
    ours : Side
    comparing : Comparing, optional
        The run beside its baseline, for rules that need one.
    settings : Settings, optional

    Returns
    -------
    Verdict
        A finding for each rule and slice, and for what forbids judging.

    Raises
    ------
    PolicyError
        As `check_policy`.
    """
    check_policy(policy, baseline=comparing is not None)
    if policy.version == 1:
        return Verdict(tuple(judge_version_1(policy, ours, comparing)))
    return Verdict(tuple(_Judge(policy, ours, comparing, settings or Settings()).findings()))


class _Draft(msgspec.Struct):
    """A finding in the making: how likely it is that the limit holds, or is broken, by chance alone."""

    rule: Rule
    fields: dict[str, Any]
    holds: float | None = None
    broken: float | None = None


class _Judge:
    def __init__(self, policy: Policy, ours: Side, comparing: Comparing | None, settings: Settings) -> None:
        self.policy, self.ours, self.comparing = policy, ours, comparing
        self.witness = Witness(ours, comparing, settings)

    def findings(self) -> Iterator[Finding]:
        yield from self._forbidden()
        drafts = [draft for rule in self.policy.rules for draft in self._of_rule(rule)]
        self._control(drafts)
        for draft in drafts:
            yield self._settled(draft)

    def _forbidden(self) -> Iterator[Finding]:
        if self.policy.on_errors == "fail":
            for name, side in (("this run", self.ours), ("the baseline", self._baseline())):
                if side is not None and side.config.get("errored"):
                    reason = f'{name} has errored rows; on_errors = "allow" judges what is there'
                    yield forbidden("errors", reason)
        if self.policy.relative and self.comparing and self.comparing.conflicts:
            yield forbidden(
                "comparable", "baseline is not comparable: " + "; ".join(self.comparing.conflicts)
            )

    def _baseline(self) -> Side | None:
        return self.comparing.theirs if self.comparing and self.policy.relative else None

    def _of_rule(self, rule: Rule) -> Iterator[_Draft]:
        places = self.witness.places(rule.slice)
        if not places:
            where = slice_name(rule.slice)
            yield self._missing(
                rule, rule.slice, f"{named(rule.metric, where)}: no answer is in such a slice"
            )
        for place in places:
            yield self._relative(rule, place) if rule.relative else self._absolute(rule, place)

    def _draft(self, rule: Rule, place: Where, **fields: Any) -> _Draft:
        known = {"rule": rule.name, "metric": rule.metric, "kind": rule.kind, "limit": rule.limit}
        return _Draft(rule, {**known, "slice": slice_name(place), **fields})

    def _missing(self, rule: Rule, place: Where, reason: str) -> _Draft:
        return self._draft(rule, place, outcome="missing", reason=reason)

    def _few(self, rule: Rule, place: Where, n: int, cases: int) -> _Draft:
        name = named(rule.metric, slice_name(place))
        reason = f"{name} is over {n} answers, min_count is {rule.min_count}"
        return self._draft(rule, place, outcome="inconclusive", reason=reason, n=n, cases=cases)

    def _absolute(self, rule: Rule, place: Where) -> _Draft:
        found, reach = self.witness.measure(self.ours, rule.metric, place)
        name = named(rule.metric, slice_name(place))
        if found is None or reach is None:
            return self._missing(rule, place, f"{name} has no value: nothing was measured")
        if _too_few(rule, found.n):
            return self._few(rule, place, found.n, found.cases)
        relation = "at least" if rule.kind == "min" else "at most"
        value, limit = told_apart(found.value, rule.limit)
        draft = self._draft(rule, place, value=found.value, n=found.n or None, cases=found.cases or None)
        said = self._bounds(rule, reach, draft)
        draft.fields["reason"] = f"{name} = {value}{said}{over(found)}, limit {relation} {limit}"
        beyond = unattainable(found, rule.limit) if rule.kind == "max" else ""
        if beyond:
            draft.fields["reason"] += f"; {beyond}"
        sign = 1.0 if rule.kind == "min" else -1.0
        if rule.evidence == "point":
            draft.fields["outcome"] = "pass" if sign * (found.value - rule.limit) >= -SLACK else "fail"
        elif beyond:
            draft.fields["outcome"] = "inconclusive"
        else:
            self._weigh(draft, reach, rule.limit, above=rule.kind == "min")
        return draft

    def _relative(self, rule: Rule, place: Where) -> _Draft:
        assert self.comparing is not None
        name = named(rule.metric, slice_name(place))
        why = self.comparing.drift.incomparable(rule.metric)
        if why:
            return self._missing(rule, place, f"{name} is not compared: {why}")
        down = rule.kind == "max_drop" or (rule.kind == "margin" and better(rule.metric) == "higher")
        if rule.evidence == "point" or is_fact(rule.metric) or rule.metric == ANSWERED:
            return self._point_difference(rule, place, name, down)
        if self.comparing.unpaired:
            return self._missing(rule, place, f"{name} has no paired evidence: {self.comparing.unpaired}")
        found = self.witness.difference(rule.metric, place)
        if found is None:
            reason = f"{name} has no difference: no answer of it is in both runs"
            return self._missing(rule, place, reason)
        if _too_few(rule, found.n):
            return self._few(rule, place, found.n, found.cases)
        value, base = told_apart(found.candidate, found.baseline)
        draft = self._draft(
            rule,
            place,
            value=found.candidate,
            baseline=found.baseline,
            difference=found.value,
            n=found.n,
            cases=found.cases,
        )
        reach = reach_of(found)
        if found.interval is None and found.p == 1.0:
            reach = Reach(0.0, 0.0, 0.0)
        said = self._bounds(rule, reach, draft)
        word = "drop" if down else "rise"
        moved, limit = told_apart(-found.value if down else found.value, rule.limit)
        draft.fields["reason"] = (
            f"{name} = {value}, baseline {base} (n={found.n}, {found.cases} cases): difference "
            f"{found.value:+.4f}{said}; {word} {moved}, at most {limit}"
        )
        self._weigh(draft, reach, -rule.limit if down else rule.limit, above=down)
        needed = cases_needed(found, rule.limit) if rule.limit > 0 and draft.holds is not None else None
        if needed and self._undecided(draft):
            draft.fields["reason"] += f"; about {needed} cases would do"
        return draft

    def _point_difference(self, rule: Rule, place: Where, name: str, down: bool) -> _Draft:
        assert self.comparing is not None
        here, _ = self.witness.measure(self.ours, rule.metric, place)
        there, _ = self.witness.measure(self.comparing.theirs, rule.metric, place)
        if here is None or there is None:
            lacks = "this run" if here is None else "the baseline"
            return self._missing(rule, place, f"{name}: {lacks} has no value")
        n = min(here.n, there.n)
        if _too_few(rule, n):
            return self._few(rule, place, n, min(here.cases, there.cases))
        moved = there.value - here.value if down else here.value - there.value
        value, base = told_apart(here.value, there.value)
        shown, limit = told_apart(moved, rule.limit)
        reason = f"{name} = {value}{over(here)}, baseline {base}{over(there)}: "
        reason += f"{'drop' if down else 'rise'} {shown}, at most {limit}"
        return self._draft(
            rule,
            place,
            outcome="pass" if moved <= rule.limit + SLACK else "fail",
            reason=reason,
            value=here.value,
            baseline=there.value,
            difference=here.value - there.value,
            n=n or None,
        )

    def _bounds(self, rule: Rule, reach: Reach, draft: _Draft) -> str:
        if rule.evidence == "point":
            return ""
        bounds = reach.bounds(self.policy.alpha)
        if bounds is None:
            return f" (no interval: {reach.why})"
        if bounds[0] == bounds[1]:
            return ""
        draft.fields["interval"] = bounds
        return f", {100 * (1 - 2 * self.policy.alpha):g} % interval {bounds[0]:.4f} to {bounds[1]:.4f}"

    def _weigh(self, draft: _Draft, reach: Reach, limit: float, *, above: bool) -> None:
        """Both chances; `above` says on which side of the limit the truth should be."""
        if reach.below == reach.above == 0.0:
            distance = reach.value - limit if above else limit - reach.value
            draft.fields["outcome"] = "pass" if distance >= -SLACK else "fail"
            return
        draft.holds = reach.chance_beyond(limit, above=above)
        draft.broken = reach.chance_beyond(limit, above=not above)
        if draft.holds is None or draft.broken is None:
            draft.fields["outcome"] = "inconclusive"

    def _undecided(self, draft: _Draft) -> bool:
        alpha = self.policy.alpha
        return draft.holds is not None and draft.holds > alpha and (draft.broken or 0.0) > alpha

    def _control(self, drafts: list[_Draft]) -> None:
        """Adjust the chance that a limit looks broken for how many limits there are.

        The build passes only when all rules do, so a false pass needs no such care.
        """
        tested = [draft for draft in drafts if draft.broken is not None]
        if self.policy.control == "none" or not tested:
            return
        adjust = holm if self.policy.control == "family" else benjamini_hochberg
        adjusted = adjust(np.array([draft.broken for draft in tested], np.float64))
        for draft, p in zip(tested, adjusted.tolist(), strict=True):
            draft.broken = p

    def _settled(self, draft: _Draft) -> Finding:
        rule, fields, alpha = draft.rule, draft.fields, self.policy.alpha
        if draft.holds is not None and draft.broken is not None:
            passed, failed = draft.holds <= alpha, draft.broken <= alpha
            fields["outcome"] = "pass" if passed else "fail" if failed else "inconclusive"
            fields["p"] = draft.broken
        outcome = fields["outcome"]
        fails = outcome in ("fail", "missing")
        if outcome == "inconclusive":
            fails = rule.when_inconclusive == "fail"
            fields["reason"] += ": cannot tell"
        return Finding(fails=fails, **fields)


def _too_few(rule: Rule, n: int) -> bool:
    """Whether a number is over fewer answers than the rule wants; where n is not known, any count is."""
    if is_fact(rule.metric):
        return False
    return n < rule.min_count and (n > 0 or rule.min_count > 1)
