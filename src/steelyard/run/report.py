"""The report: a pure function of the dataset and the reply log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from steelyard._version import __version__
from steelyard.core.requests import CONFIDENCE_SOURCES
from steelyard.formats.dataset import Dataset
from steelyard.formats.files import whole_file
from steelyard.formats.jsontext import digest, loads, pretty
from steelyard.formats.report import COVERAGE_DEFINITION, SCHEMA
from steelyard.metrics.confusion import confusion
from steelyard.metrics.decisions import SCORED, Decisions, Floats
from steelyard.metrics.measure import Measured, measure, metrics_for
from steelyard.metrics.timing import timing_metrics
from steelyard.metrics.view import Settings
from steelyard.run.collector import Asked
from steelyard.run.counts import call_counts, counts_of, errored_of
from steelyard.run.drift import Drift, as_peer, check_tolerances, conflicts, identity_of
from steelyard.run.judge import join
from steelyard.run.log import RunLog
from steelyard.run.panels import Panels

PEER_DIMENSIONS = ("language", "model", "qid", "tag")


class Report:
    """What a run showed.

    Attributes
    ----------
    config, overall, slices : dict
        As `laya-evals-report/1` has them; only the peer's metric names.
    measurements : Measurements
        Every metric with n, cases, interval and definition, overall and by slice.
    counts : dict
        What became of every question asked.
    engine, identity : dict
    panels : Panels
        Baselines, confidence measures, reliability and the risk-coverage curve.
    table : Decisions
        The judged answers the numbers come from.
    warnings, absent : lists of str
        What the reader should know of the log, and metrics asked for that have no value.
    """

    def __init__(
        self,
        dataset: Dataset,
        asked: Asked,
        log: RunLog,
        settings: Settings,
        config: Mapping[str, Any],
        engine: Any,
        beside: Mapping[str, Floats] | None = None,
    ) -> None:
        self.dataset, self._log = dataset, log
        self.warnings = list(log.warnings)
        self.table = join(dataset.columns, asked.answers, asked.facts, asked.labels)
        self.measurements = measure(self.table, settings)
        self.panels = Panels(self.table, settings, beside)
        self._settings = settings
        self._within = tuple(f"score_within_{tolerance:g}" for tolerance in settings.score_within)
        measured = self.measurements.overall
        shared = [metric.name for metric in metrics_for(settings) if metric.shared]
        self.absent = [
            f"{name} has no value: no score answer with a label"
            for name in self._within
            if name not in measured
        ]
        self.overall = _values(self.measurements.overall, shared)
        self.overall |= timing_metrics(asked.facts.ms, asked.facts.shared)
        self.slices = {
            dimension: {value: _values(found, shared) for value, found in values.items()}
            for dimension, values in self.measurements.slices.items()
            if dimension in PEER_DIMENSIONS
        }
        self.counts = counts_of(self.table, asked)
        self.engine = engine
        self.config = _config(dataset, self.table, asked, config)
        self.identity = {
            "dataset_sha256": self.config["dataset_sha256"],
            "questions_sha256": self.config["questions_sha256"],
            "engine": engine,
        }

    def document(self) -> dict[str, Any]:
        """The report without its cases, as plain JSON values."""
        return {
            "config": self.config,
            "overall": dict(sorted(self.overall.items())),
            "slices": self.slices,
            "counts": self.counts,
            "measurements": {
                "overall": msgspec.to_builtins(self.measurements.overall),
                "slices": msgspec.to_builtins(self.measurements.slices),
            },
            "confusion": confusion(self.table),
            **self.panels.document(),
            "engine": self.engine,
            "identity": self.identity,
        }

    def cases(self) -> Iterator[dict[str, Any]]:
        """Every scored answer in dataset order, with what is needed to join and inspect it."""
        table = self.table
        replies = self._log.lines()
        row, reply, case, digested = -1, b"", None, ""
        for at in np.flatnonzero(table.status == SCORED).tolist():
            if table.row[at] != row:
                row = int(table.row[at])
                while (found := next(replies))[0] != row:
                    pass
                reply = loads(found[1])["answers"]
                case, digested = self.dataset.case(row), ""
            assert case is not None
            digested = digested or digest(case.state)
            qid = table.names.qids[table.qid[at]]
            model = table.model[at]
            yield {
                "row": row,
                "id": case.id,
                "group": case.group,
                "state_sha256": digested,
                "qid": qid,
                "question": case.questions.bodies[qid],
                "language": case.language,
                "model": table.names.models[model] if model >= 0 else None,
                "tags": list(case.tags),
                "expected": case.expected[qid],
                "answer": reply[qid],
                "confidence": _number(table.confidence[at]),
                "confidence_source": CONFIDENCE_SOURCES[table.source[at]],
                "correct": None if np.isnan(table.correct[at]) else bool(table.correct[at]),
                "scores": self._scores(at),
            }

    def _scores(self, at: int) -> dict[str, float | None]:
        table = self.table
        correct, kind = _number(table.correct[at]), table.kind[at]
        error = _number(table.error[at])
        scores = {
            "choice_accuracy": correct if kind == 0 else None,
            "noul_accuracy": correct if kind == 2 else None,
            "score_mae": error,
            "mean_confidence": _number(table.confidence[at]),
        }
        for name, tolerance in zip(self._within, self._settings.score_within, strict=True):
            scores[name] = None if error is None else float(error <= tolerance)
        return scores

    def to_json(self, *, cases: bool = True) -> dict[str, Any]:
        """The whole report as plain JSON values."""
        return self.document() | {"cases": list(self.cases()) if cases else []}

    def compare(
        self, baseline: Mapping[str, Any], tolerances: Mapping[str, float] | None = None
    ) -> tuple[bool, dict[str, dict[str, Any]]]:
        """Whether overall metrics stay within tolerances of a baseline's, and how far each moved.

        Parameters
        ----------
        baseline : mapping
            A report's document, or a bare map of metrics.
        tolerances : mapping of str to float, optional
            How far a metric may drift; the others not at all.

        Returns
        -------
        (bool, dict)
            Metric to ``baseline``, ``value``, ``diff`` and ``tolerance``, and ``missing`` or
            ``incomparable`` where there is no difference (NaN).

        Raises
        ------
        ReportError, PolicyError
            A baseline or tolerance that cannot be used.
        """
        found = Drift(self.document(), baseline).deltas(check_tolerances(tolerances or {}))
        return all(delta.ok for delta in found), {delta.metric: as_peer(delta) for delta in found}

    def comparable_to(self, baseline: Mapping[str, Any]) -> tuple[bool, list[str]]:
        """Whether nothing says that a baseline is another measurement, and what does."""
        reasons = conflicts(self.config, identity_of(baseline))
        return not reasons, reasons

    def write_json(self, path: str | Path, *, cases: bool = True) -> None:
        """Write the report whole or not at all, cases one a line and never all in memory.

        Raises
        ------
        InputError
            The file cannot be written; what stood there is untouched.
        """
        head = pretty(self.document())
        with whole_file(path) as stream:
            stream.write(head[: head.rindex("\n")].encode() + b',\n  "cases": [')
            between = b"\n"
            for case in self.cases() if cases else ():
                stream.write(between + b"    " + pretty(case, indent=None).encode())
                between = b",\n"
            stream.write(b"]\n}" if between == b"\n" else b"\n  ]\n}")


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _values(found: Measured, names: list[str]) -> dict[str, float]:
    return {name: found[name].value for name in sorted(names) if name in found}


def _config(dataset: Dataset, table: Decisions, asked: Asked, given: Mapping[str, Any]) -> dict[str, Any]:
    config: dict[str, Any] = {
        "schema": SCHEMA,
        "coverage_metric_definition": COVERAGE_DEFINITION,
        "dataset": dataset.name,
        "dataset_sha256": dataset.sha256,
        "questions_sha256": dataset.questions_sha256,
        "steelyard_version": __version__,
    }
    config |= given
    if "timing" in config:
        config["timing"] = config["timing"] | call_counts(asked.facts)
    errored = errored_of(table, asked.answers)
    return config | ({"errored": errored} if errored else {})
