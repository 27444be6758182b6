"""Comparison and gates for tests and scripts: runs in, differences or an assertion out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steelyard.core.comparison import Comparison, Direction
from steelyard.core.gates import Policy, Rule, Verdict
from steelyard.formats.policy import parse_policy, read_policy
from steelyard.metrics.view import Settings
from steelyard.run.compare import Comparing
from steelyard.run.drift import Drift, as_peer, check_tolerances, conflicts
from steelyard.run.gates import judge
from steelyard.run.limits import delta_reason
from steelyard.run.report import Report
from steelyard.run.side import Side, document_side, read_side, side_of
from steelyard.run.verdict import MARGIN

Run = Report | str | Path | Mapping[str, Any]
"""A report, the path of one or of a run folder, or a report's document."""
Rules = Policy | str | Path | Mapping[str, Any]
"""A policy, the path of one, or its document."""


def side(run: Run, name: str = "this run") -> Side:
    """Any run as a comparison sees it.

    Raises
    ------
    ReportError
        A path that holds no run.
    """
    if isinstance(run, Report):
        return side_of(run, name)
    return document_side(run, name) if isinstance(run, Mapping) else read_side(run)


def compare(
    run: Run,
    baseline: Run,
    tolerances: Mapping[str, float] | None = None,
    *,
    direction: Direction = "both",
    margins: Mapping[str, float] | None = None,
    settings: Settings | None = None,
) -> Comparison:
    """Hold a run against a baseline.

    Parameters
    ----------
    run, baseline : Report, path or document
    tolerances : mapping of str to float, optional
        How far a metric may drift; the others not at all.
    direction : str
        ``worse`` lets metrics move freely to their better side.
    margins : mapping of str to float, optional
        Within which a change does not matter; others have 0.02.
    settings : Settings, optional
        `resamples` above 0 draws the intervals.

    Returns
    -------
    Comparison
        With paired differences where both runs have cases in common.

    Raises
    ------
    ReportError, PolicyError
        A run or tolerance that cannot be used.

    Examples
    --------
    >>> found = compare({"overall": {"ece": 0.1}}, {"overall": {"ece": 0.2}}, {"ece": 0.05})
    >>> found.deltas[0].ok, found.deltas[0].improved
    (False, True)
    """
    comparing = Comparing(side(run), side(baseline, "the baseline"), settings)
    return comparing.compare(tolerances, direction, margins=margins)


def check(
    run: Run, policy: Rules, baseline: Run | None = None, *, settings: Settings | None = None
) -> Verdict:
    """Judge a run by a policy.

    Parameters
    ----------
    run : Report, path or document
    policy : Policy, path or document
    baseline : Report, path or document, optional
    settings : Settings, optional

    Raises
    ------
    ReportError, PolicyError
        A run or policy that cannot be used.
    """
    rules = _policy(policy)
    ours = side(run)
    comparing = None if baseline is None else Comparing(ours, side(baseline, "the baseline"), settings)
    return judge(rules, ours, comparing, settings)


def _policy(policy: Rules) -> Policy:
    if isinstance(policy, Policy):
        return policy
    return parse_policy(dict(policy)) if isinstance(policy, Mapping) else read_policy(policy)


DEFAULT_POLICY = Policy(
    version=2, rules=(Rule(name="accuracy", metric="accuracy", kind="margin", limit=MARGIN),)
)
"""Accuracy surely no more than two points worse."""


def assert_no_regression(run: Run, baseline: Run, policy: Rules = DEFAULT_POLICY) -> Verdict:
    """Fail a test when a run breaks a policy.

    Parameters
    ----------
    run, baseline : Report, path or document
    policy : Policy, path or document
        By default accuracy must surely be no more than 0.02 below the baseline's.

    Returns
    -------
    Verdict

    Raises
    ------
    AssertionError
        Names every limit that was not kept.
    """
    verdict = check(run, policy, baseline)
    if verdict.failures:
        raise AssertionError("\n".join(finding.reason for finding in verdict.failures))
    return verdict


def assert_regression(
    report: Report, baseline: Mapping[str, Any], tolerances: Mapping[str, float] | None = None
) -> dict[str, dict[str, Any]]:
    """Fail a test when overall metrics drift from a baseline's, or the two are not the same measurement.

    Parameters
    ----------
    report : Report
    baseline : mapping
        A report's document, or a bare map of metrics.
    tolerances : mapping of str to float, optional
        How far a metric may drift; the others not at all.

    Returns
    -------
    dict
        Metric to baseline, value, diff and tolerance.

    Raises
    ------
    AssertionError
        Names each metric that moved too far.
    """
    drift = Drift(report.document(), baseline)
    deltas = drift.deltas(check_tolerances(tolerances or {}))
    failed = [delta_reason(delta) for delta in deltas if not delta.ok]
    failed += conflicts(drift.config, drift.base_config)
    if failed:
        raise AssertionError("evaluation regressed: " + "; ".join(failed))
    return {delta.metric: as_peer(delta) for delta in deltas}
