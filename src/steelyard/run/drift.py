"""A run's overall numbers beside a baseline's: the peer's comparison, its faults mended."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from steelyard.core.comparison import Delta, Direction
from steelyard.core.gates import SLACK
from steelyard.errors import PolicyError, ReportError
from steelyard.formats.jsontext import quote, type_name
from steelyard.formats.report import COVERAGE_DEFINITION, SCHEMA
from steelyard.metrics.measure import better_of, needs_confidence

IDENTITY = {
    "schema": "report shape",
    "dataset_sha256": "dataset bytes",
    "questions_sha256": "questions asked",
}
TOURNAMENT = "laya-tournament-evals-report/1"


def identity_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """A document's config, identity keys it only has at the top taken in."""
    config = document.get("config")
    found = dict(config) if isinstance(config, dict) else {}
    return found | {
        key: document[key] for key in IDENTITY if found.get(key) is None and document.get(key) is not None
    }


def conflicts(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """Why two configs are not of the same measurement: each key and both values.

    A key one side lacks is unknown, and no conflict.
    """
    found = [
        f"{key} ({label}): baseline is {_said(theirs[key])}, this run is {_said(ours[key])}"
        for key, label in IDENTITY.items()
        if ours.get(key) is not None and theirs.get(key) is not None and ours[key] != theirs[key]
    ]
    if ours.get("schema") == theirs.get("schema") == TOURNAMENT:
        here, there = ours.get("tournament_group_size"), theirs.get("tournament_group_size")
        if here is None or there is None or here != there:
            found.append(f"tournament_group_size: baseline is {_said(there)}, this run is {_said(here)}")
    return found


def _said(value: Any) -> str:
    return value if isinstance(value, str) and value.isalnum() else quote(value)


def metric_map(document: Mapping[str, Any], name: str, *, baseline: bool) -> dict[str, float]:
    """The overall metrics of a report, or of a bare map of metrics.

    Raises
    ------
    ReportError
        Not an object of numbers; a baseline must also have one, and all of them finite.
    """
    found = document.get("overall", document if baseline else {})
    if not isinstance(found, dict):
        raise ReportError(f"{name}: overall is {type_name(found)}; a report has an object of metrics there")
    if baseline and not found:
        raise ReportError(f"{name}: has no metrics, so nothing in it could fail; name a report with some")
    for metric, value in found.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ReportError(f"{name}: metric {quote(metric)} is {type_name(value)}, not a number")
        if baseline and not _finite(value):
            raise ReportError(f"{name}: metric {quote(metric)} is {value}, which is no measurement")
    return {metric: float(value) if _finite(value) else math.nan for metric, value in found.items()}


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def check_tolerances(tolerances: Mapping[str, Any]) -> dict[str, float]:
    """Tolerances that can fail.

    Raises
    ------
    PolicyError
        One is no number, NaN, infinite or below 0.
    """
    for metric, value in tolerances.items():
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not _finite(value) or value < 0:
            shown = value if number else quote(value)
            raise PolicyError(f"tolerance of {quote(metric)} is {shown}; write a finite number of 0 or more")
    return {metric: float(value) for metric, value in tolerances.items()}


def coverage_conflict(ours: Any, theirs: Any) -> str | None:
    """Why metrics that cut by coverage are not comparable: both sides must cut as we do now."""
    stale = [
        f"{name} has {'definition 1 (unrecorded)' if found is None else quote(found)}"
        for name, found in (("this run", ours), ("the baseline", theirs))
        if found != COVERAGE_DEFINITION
    ]
    if not stale:
        return None
    return (
        f"{' and '.join(stale)}, but a coverage cut is definition {COVERAGE_DEFINITION} now; make the report "
        "anew before comparing it"
    )


def cuts_coverage(metric: str) -> bool:
    """Whether the peer's coverage definition is part of what this metric means."""
    return metric == "aurc" or metric.startswith("selective_accuracy@")


class Drift:
    """Overall metrics of a run against those of a baseline.

    Parameters
    ----------
    ours, theirs : mapping
        Documents: reports; `theirs` may be a bare map of metrics.
    mixed : str or None
        Why confidences of the two are not the same measure, where that is known.
    names : (str, str)
        What to call the two in messages.
    """

    def __init__(
        self,
        ours: Mapping[str, Any],
        theirs: Mapping[str, Any],
        mixed: str | None = None,
        names: tuple[str, str] = ("this run", "the baseline"),
    ) -> None:
        self.config, self.base_config = identity_of(ours), identity_of(theirs)
        self.overall = metric_map(ours, names[0], baseline=False)
        self.baseline = metric_map(theirs, names[1], baseline=True)
        # Only the peer's own place counts here: a definition at the top was never written.
        config = theirs.get("config")
        self._coverage = coverage_conflict(
            self.config.get("coverage_metric_definition"),
            config.get("coverage_metric_definition") if isinstance(config, dict) else None,
        )
        self._definitions = _definitions(ours), _definitions(theirs)
        self._mixed = mixed

    def incomparable(self, metric: str) -> str | None:
        """Why the two values of a metric are not the same measure; None when nothing says so."""
        if cuts_coverage(metric) and self._coverage:
            return self._coverage
        here, there = (found.get(metric) for found in self._definitions)
        if here is not None and there is not None and here != there:
            return f"the baseline is {quote(there)}, this run {quote(here)}"
        return self._mixed if self._mixed and needs_confidence(metric) else None

    def deltas(self, tolerances: Mapping[str, float], direction: Direction = "both") -> list[Delta]:
        """Every metric of the baseline, in name order.

        Timings are left out unless a tolerance names them. Limits are inclusive, and forgive rounding.
        With the direction ``worse`` a metric may move freely to its better side.
        """
        return [
            self._delta(metric, tolerances.get(metric, 0.0), direction)
            for metric in sorted(self.baseline)
            if not metric.endswith("_ms") or metric in tolerances
        ]

    def _delta(self, metric: str, tolerance: float, direction: Direction) -> Delta:
        base, value = self.baseline[metric], self.overall.get(metric)
        why = self.incomparable(metric)
        if why is not None:
            known = value if value is not None and not math.isnan(value) else None
            return Delta(
                metric=metric, baseline=base, tolerance=tolerance, ok=False, value=known, incomparable=why
            )
        if value is None or math.isnan(value):
            return Delta(metric=metric, baseline=base, tolerance=tolerance, ok=False, missing=True)
        diff = value - base
        better = better_of(metric)
        improved = (diff > 0 and better == "higher") or (diff < 0 and better == "lower")
        within = abs(diff) <= tolerance + SLACK
        return Delta(
            metric=metric,
            baseline=base,
            tolerance=tolerance,
            ok=within or (direction == "worse" and improved),
            value=value,
            diff=diff,
            improved=improved and not within,
        )


def as_peer(delta: Delta) -> dict[str, Any]:
    """A delta as the peer says it, NaN where there is no number."""
    found: dict[str, Any] = {
        "baseline": delta.baseline,
        "value": math.nan if delta.value is None else delta.value,
        "diff": math.nan if delta.diff is None else delta.diff,
        "tolerance": delta.tolerance,
    }
    if delta.missing:
        found["missing"] = True
    return found | ({"incomparable": delta.incomparable} if delta.incomparable else {})


def _definitions(document: Mapping[str, Any]) -> dict[str, str]:
    """Definition id of each overall metric, where a report says, or its schema does."""
    measurements = document.get("measurements")
    if measurements is None and identity_of(document).get("schema") == SCHEMA:
        return {"ece": "ece/15-equal-width/1"}
    overall = measurements.get("overall") if isinstance(measurements, dict) else None
    return {
        metric: found["definition"]
        for metric, found in (overall.items() if isinstance(overall, dict) else ())
        if isinstance(found, dict) and isinstance(found.get("definition"), str)
    }
