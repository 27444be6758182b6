"""The noise floor: an engine beside itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from steelyard import Dataset, RunOptions, evaluate
from steelyard.fake.quirks import Quirks
from steelyard.fake.server import FakeServer
from steelyard.run.repeats import noise
from tests.conftest import Ran, make_rows


def test_an_engine_that_never_differs() -> None:
    data = Dataset.from_rows(make_rows(30), "data")
    tables = [evaluate("scripted", data).table for _ in range(3)]
    found = noise(tables)
    assert (found.runs, found.n, found.cases, found.changed) == (3, 90, 30, 0.0)
    assert (found.moved_mean, found.moved_most) == (0.0, 0.0)
    assert len(set(found.accuracies)) == 1


def test_what_changed_is_counted() -> None:
    data = Dataset.from_rows(make_rows(200), "data")
    first, second = (evaluate(f"scripted,accuracy={p},seed=1", data).table for p in (0.9, 0.6))
    found = noise([first, second])
    same = noise([first, second, first])
    assert found.changed > 0.15
    assert same.changed == pytest.approx(found.changed / 2)
    low, high = found.interval
    assert low < found.changed < high
    assert found.moved_most > found.moved_mean > 0
    assert found.accuracies[0] > found.accuracies[1]


def test_nothing_scored_is_nothing() -> None:
    data = Dataset.from_rows(make_rows(6), "data")
    table = evaluate("scripted,fail_every=1", data, options=RunOptions(on_error="skip")).table
    found = noise([table, table])
    assert (found.n, found.changed, found.interval, found.moved_mean) == (0, None, None, None)
    assert found.accuracies == [None, None]


def test_repeats_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steelyard: Callable[..., Ran]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in make_rows(20)), encoding="utf-8")
    with FakeServer(Quirks(noise=2.0)) as server:
        line = ("run", "d.jsonl", "-e", f"systemone:{server.url}", "--quiet", "--repeat", 3, "--out", "run")
        ran = steelyard(*line)
        assert ran.code == 0, ran.err
        assert server.answered == 60
        assert "repeats: of 60 answers asked 3 times" in ran.out
        assert steelyard(*line).out == ran.out
        assert server.answered == 60
    config = json.loads(Path("run/report.json").read_text(encoding="utf-8"))["config"]
    assert config["repeat"]["runs"] == 3
    assert config["repeat"]["moved_most"] > 0
    assert Path("run/repeat-3/replies.jsonl").exists()
    assert steelyard("run", "d.jsonl", "--repeat", 2, "--cache", "c", "-e", "systemone:http://x").code == 2
    ran = steelyard(
        "run", "d.jsonl", "--repeat", 2, "--quiet", "-e", "scripted,fail_every=1", "--on-error", "skip"
    )
    assert "no answer was scored in every run" in ran.out
