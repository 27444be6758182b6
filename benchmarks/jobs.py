"""One measured job a call: `python -m benchmarks.jobs NAME ARGS...` prints CPU, wall and memory.

Peer jobs import only the peer and the standard library, so that they run under its own Python.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def validate(path: str) -> Callable[[], Any]:
    from steelyard.formats.scan import scan
    from steelyard.formats.source import LineSource

    return lambda: scan(LineSource.open(path))


def peer_validate(path: str) -> Callable[[], Any]:
    from laya.evals import Dataset

    return lambda: Dataset.from_jsonl(path)


def read(path: str) -> Callable[[], Any]:
    def job() -> None:
        with open(path, "rb", buffering=1 << 20) as stream:
            for _ in stream:
                pass

    return job


def judge(data: str, folder: str) -> Callable[[], Any]:
    from steelyard import Dataset, Settings, rescore_run

    def job() -> None:
        report = rescore_run(folder, Dataset.from_jsonl(data), Settings())
        report.write_json(Path(folder) / "bench.json", cases=False)

    return job


def _peer_runner(answers: str) -> Any:
    with open(answers, encoding="utf-8") as stream:
        replies = iter([json.loads(line) for line in stream])

    class Runner:
        def predict(self, state: Any, questions: Any) -> Any:
            return next(replies)

    return Runner()


def peer_evaluate(data: str, answers: str) -> Callable[[], Any]:
    from laya.evals import Dataset, ece, evaluate

    ece([0.5], [True])
    dataset, runner = Dataset.from_jsonl(data), _peer_runner(answers)
    return lambda: evaluate(runner, dataset)


def peer_judge(data: str, answers: str) -> Callable[[], Any]:
    from laya.evals import Dataset, ece, evaluate

    ece([0.5], [True])

    def job() -> None:
        report = evaluate(_peer_runner(answers), Dataset.from_jsonl(data))
        Path(answers + ".peer.json").write_text(json.dumps(report.overall), encoding="utf-8")

    return job


def _sliced(columns: str) -> Any:
    """The judged table of `tables.save_columns`."""
    import numpy as np

    from benchmarks.tables import sliced_table

    return sliced_table(np.load(columns))


PEER_DIMENSIONS = ("language", "model", "qid", "tag")


def measure_points(columns: str) -> Callable[[], Any]:
    """The peer's metrics on its own slices, from columns."""
    from steelyard.metrics.measure import METRICS, measure
    from steelyard.metrics.view import Settings

    table = _sliced(columns)
    shared = [metric.name for metric in METRICS.values() if metric.shared]

    def job() -> None:
        found = measure(table, Settings(intervals=False), PEER_DIMENSIONS, shared)
        groups = {"": {"": found.overall}} | found.slices
        values = {
            f"{dimension}/{value}": {name: m.value for name, m in one.items()}
            for dimension, group in groups.items()
            for value, one in group.items()
        }
        Path(columns + ".ours.json").write_text(json.dumps(values), encoding="utf-8")

    return job


def peer_points(columns: str) -> Callable[[], Any]:
    """The same by the peer, from the records it keeps."""
    import numpy as np
    from laya import evals

    evals.ece([0.5], [True])
    found = {name: column.tolist() for name, column in np.load(columns).items()}
    cases = [
        {
            "qid": f"q{qid}",
            "language": f"l{language}",
            "model": None,
            "tags": [f"t{one}", f"t{other}"],
            "confidence": c,
            "correct": y > 0,
            "scores": {"choice_accuracy": y, "noul_accuracy": None, "score_mae": None, "mean_confidence": c},
        }
        for qid, language, (one, other), c, y in zip(
            *(found[name] for name in ("qid", "language", "tags", "confidence", "correct")), strict=True
        )
    ]

    class Evaluator:
        def __init__(self, name: str) -> None:
            self.name = name

    evaluators = [Evaluator(name) for name in cases[0]["scores"]]

    def job() -> None:
        values = {"/": evals._aggregate(cases, evaluators)}
        for dimension in PEER_DIMENSIONS:
            groups: dict[str, list[Any]] = {}
            for case in cases:
                for value in case["tags"] if dimension == "tag" else [case[dimension]]:
                    if value is not None:
                        groups.setdefault(value, []).append(case)
            for value, group in groups.items():
                values[f"{dimension}/{value}"] = evals._aggregate(group, evaluators)
        Path(columns + ".peer.json").write_text(json.dumps(values), encoding="utf-8")

    return job


def measure_some(columns: str, names: str, intervals: str, resamples: str = "0") -> Callable[[], Any]:
    """Some metrics on all slices, or overall alone with resamples; `all` are those without simulation."""
    from steelyard.metrics.measure import DIMENSIONS, METRICS, measure
    from steelyard.metrics.view import Settings

    table = _sliced(columns)
    settings = Settings(intervals=intervals == "yes", resamples=int(resamples))
    wanted = (
        [metric.name for metric in METRICS.values() if not metric.deep]
        if names == "all"
        else names.split(",")
    )
    return lambda: measure(table, settings, () if settings.resamples else DIMENSIONS, wanted)


def overhead(data: str) -> Callable[[], Any]:
    """A whole run on an engine that answers at once."""
    from benchmarks.data import QUESTIONS
    from steelyard import Dataset, RunOptions, evaluate

    names = QUESTIONS["route"]["criteria"]
    answers = {
        "route": {"type": "choice", "choice": "sales", "probabilities": dict.fromkeys(names, 0.25)},
        "urgency": {"type": "score", "score": 2.0, "probabilities": {str(i): 0.2 for i in range(5)}},
        "refund": {"type": "noul", "noul": 0.5},
    }

    class Instant:
        def predict(self, state: Any, questions: Any) -> Any:
            return answers

        def predict_batch(self, states: Any, questions: Any) -> Any:
            return [answers] * len(states)

    return lambda: evaluate(Instant(), Dataset.from_jsonl(data), options=RunOptions(batch_size=64))


def waits(data: str, concurrency: str) -> Callable[[], Any]:
    """A run on an engine that waits 5 ms a call."""
    from steelyard import Dataset, RunOptions, evaluate

    answers = {"route": {"choice": "sales"}, "urgency": {"score": 2.0}, "refund": {"noul": 0.5}}

    class Waits:
        abilities = ("concurrent",)

        def predict(self, state: Any, questions: Any) -> Any:
            time.sleep(0.005)
            return answers

    dataset = Dataset.from_jsonl(data)
    times: list[tuple[float, int]] = []

    def told(done: int, total: int, errored: int) -> None:
        times.append((time.perf_counter(), done))

    def job() -> float:
        evaluate(Waits(), dataset, options=RunOptions(concurrency=int(concurrency)), progress=told)
        (start, first), (end, last) = times[0], times[-1]
        return (last - first) / (end - start)

    return job


def peak_mb() -> float:
    """Peak resident memory of this process.

    Read from the kernel's own record: `ru_maxrss` of a fresh process may still be its parent's.
    """
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    prepared = globals()[sys.argv[1]](*sys.argv[2:])
    cpu, wall = time.process_time(), time.perf_counter()
    rate = prepared()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    found = {"cpu": cpu, "wall": wall, "mb": peak_mb()}
    if isinstance(rate, float):
        found["slowness"] = 1.0 / rate
    print(json.dumps(found))
