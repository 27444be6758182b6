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
