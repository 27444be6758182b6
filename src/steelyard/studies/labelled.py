"""Labelled evaluation: how good are the answers on data whose answers are known?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from steelyard.engines._base import Engine
from steelyard.engines.python import PythonEngine
from steelyard.engines.spec import make_engine
from steelyard.formats.dataset import Dataset
from steelyard.formats.replies import encode_reply
from steelyard.formats.report import read_report, rows_of
from steelyard.metrics.decisions import Floats
from steelyard.metrics.view import Settings
from steelyard.run.baseline import lexical_hits
from steelyard.run.collector import Collector
from steelyard.run.log import RunLog
from steelyard.run.options import RunOptions
from steelyard.run.report import Report
from steelyard.run.runner import Progress, Runner, Watch, engine_identity
from steelyard.run.saved import read_saved_run

_LATENCY = "per request: wall time of the call that returned it, unsplit"
_COST = "per decision: that call divided by the rows it held"


def _silent(done: int, total: int, errored: int) -> None:
    """Progress for callers that want none."""


def evaluate(
    engine: Engine | str | Callable[..., Any] | Any,
    dataset: Dataset,
    *,
    options: RunOptions | None = None,
    settings: Settings | None = None,
    out: str | Path | None = None,
    progress: Progress = _silent,
    watch: Watch | None = None,
) -> Report:
    """Score a labelled dataset on an engine.

    Parameters
    ----------
    engine : Engine, str or object
        An engine, a spec such as ``"scripted,accuracy=0.9"``, or anything with
        ``predict(state, questions)``.
    dataset : Dataset
    options : RunOptions, optional
        How the engine is asked; by default one row at a time, stopping at the first error.
    settings : Settings, optional
        How answers are judged; by default 15 bins.
    out : path, optional
        Run folder; an unfinished run found there is taken up.
    progress : callable, optional
        Told rows done, rows in all and rows errored, now and then.
    watch : Watch, optional
        Says in which order rows are asked and when enough were, as `Sequential` does.

    Returns
    -------
    Report

    Raises
    ------
    InputError, IncomparableError
        Before anything is asked.
    EngineError
        While asking, when `options.on_error` is ``fail``.

    Examples
    --------
    >>> question = {"type": "noul", "instructions": "Is it urgent?"}
    >>> rows = [{"state": state, "questions": {"q": question}, "expected": {"q": "!" in state}}
    ...         for state in ("now!", "later")]
    >>> report = evaluate(lambda state, questions: {"q": {"noul": 0.9 if "!" in state else 0.2}},
    ...                   Dataset.from_rows(rows))
    >>> accuracy = report.measurements.overall["noul_accuracy"]
    >>> accuracy.value, accuracy.n, accuracy.cases
    (1.0, 2, 2)
    """
    options = options or RunOptions()
    options.check()
    engine = as_engine(engine)
    log = RunLog(None if out is None else Path(out))
    try:
        asked = Runner(dataset, engine, options, log, progress, watch).run()
    finally:
        log.close()
    settings = settings or Settings()
    identity = engine_identity(engine)
    config = _asking(options, identity) | _judging(settings)
    beside = _beside(dataset, asked.facts.n_rows, settings, identity)
    return Report(dataset, asked, log, settings, config, identity, beside)


def as_engine(engine: Any) -> Engine:
    """An engine from a spec, a live object, or itself."""
    if isinstance(engine, Engine):
        return engine
    return make_engine(engine) if isinstance(engine, str) else PythonEngine.wrap(engine)


def _asking(options: RunOptions, engine: Mapping[str, Any]) -> dict[str, Any]:
    """What `laya-evals-report/1` records of how a run was made."""
    return {
        "model": options.model,
        "device": None,
        "revisions": {engine["name"]: engine["revision"]},
        "thresholds": {"min": {}, "max": {}, "baseline_tolerance": {}},
        "timing": _timing(options, engine),
    }


def _timing(options: RunOptions, engine: Mapping[str, Any]) -> dict[str, Any]:
    grouped = options.batch_size > 1 and "batch" in engine["abilities"]
    return {
        "latency_metric": _LATENCY,
        "cost_metric": _COST,
        "batch_size": options.batch_size if options.batch_size > 1 else None,
        "batch_form": "states" if grouped else None,
        "sort_by_length": options.sort_by_length,
        "sort_by_length_sent": options.sort_by_length and grouped,
        "min_confidence": options.min_confidence,
        "min_confidence_sent": options.min_confidence is not None,
    }


def _beside(
    dataset: Dataset, n_rows: int, settings: Settings, engine: Mapping[str, Any]
) -> dict[str, Floats]:
    """Baselines that have to be asked: the lexical engine, where that is cheap."""
    if n_rows > settings.lexical_rows or engine["name"] == "lexical":
        return {}
    hits = lexical_hits(dataset, n_rows)
    return {} if hits is None else {"lexical": hits}


def _judging(settings: Settings) -> dict[str, Any]:
    judging: dict[str, Any] = {"ece_bins": settings.bins, "seed": settings.seed}
    if settings.resamples:
        judging["resamples"] = settings.resamples
    if settings.score_within:
        judging["score_within"] = list(settings.score_within)
    return judging


def rescore_run(folder: str | Path, dataset: Dataset, settings: Settings) -> Report:
    """Judge a run folder again, without the engine.

    Raises
    ------
    IncomparableError
        The run was made on another dataset.
    ReportError
        The folder is not a run, or its log is damaged or unfinished.
    """
    saved = read_saved_run(folder, dataset)
    engine = saved.record["engine"]
    config = _asking(saved.options, engine) | _judging(settings)
    beside = _beside(dataset, saved.asked.facts.n_rows, settings, engine)
    return Report(dataset, saved.asked, saved.log, settings, config, engine, beside)


def rescore_report(path: str | Path, settings: Settings) -> Report:
    """Judge the cases of a saved report again.

    Identity, timings and provenance are the saved report's own: the cases cannot tell them.

    Raises
    ------
    ReportError
        Not a report, or one without cases.
    """
    saved = read_report(path)
    rows, replies, _ = rows_of(saved, str(path))
    dataset = Dataset.from_rows(rows, str(path))
    log = RunLog(None)
    log.start()
    log.append([encode_reply(reply, None, 1) for reply in replies])
    log.close()
    collector = Collector(dataset, len(dataset))
    collector.take_all(log.read())
    if "score_within" in saved["config"] and not settings.score_within:
        within = tuple(saved["config"]["score_within"])
        settings = msgspec.structs.replace(settings, score_within=within)
    config: Mapping[str, Any] = {
        key: value
        for key, value in saved["config"].items()
        if key not in ("errored", "laya_version", "timing")
    }
    report = Report(
        dataset, collector.finish(), log, settings, {**config, **_judging(settings)}, saved.get("engine")
    )
    report.overall |= {name: value for name, value in saved["overall"].items() if name.endswith("_ms")}
    return report
