"""A run folder can be left at any moment and taken up again."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steelyard import Dataset, IncomparableError, InputError, ReportError, RunOptions, evaluate, rescore_run
from steelyard.metrics.view import Settings
from steelyard.run.log import RunLog
from tests.conftest import Ran, make_rows

ENGINE = "scripted,accuracy=0.7,latency=0.0005"


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def timeless(path: Path) -> str:
    """A report with everything that is a time taken out."""
    document = json.loads(path.read_text(encoding="utf-8"))
    document["overall"] = {name: v for name, v in document["overall"].items() if not name.endswith("_ms")}
    document["config"].pop("timing")
    return json.dumps(document)


def command(data: Path, folder: Path, *more: object) -> list[str]:
    base = [sys.executable, "-m", "steelyard", "run", str(data), "--engine", ENGINE]
    return [*base, "--out", str(folder), "--quiet", *map(str, more)]


def run(data: Path, folder: Path, *more: object) -> None:
    subprocess.run(command(data, folder, *more), check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("more", [(), ("--batch-size", "7", "--concurrency", "4")], ids=["in turn", "pool"])
def test_killed_at_random_moments_resumes_to_the_same_report(tmp_path: Path, more: tuple[str, ...]) -> None:
    data = write(tmp_path / "d.jsonl", make_rows(300))
    run(data, tmp_path / "whole", *more)
    whole = timeless(tmp_path / "whole" / "report.json")
    rng = random.Random(13)
    folder = tmp_path / "killed"
    for _ in range(6):
        process = subprocess.Popen(command(data, folder, *more), stdout=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.15, 0.45))
        process.kill()
        process.wait()
    run(data, folder, *more)
    assert timeless(folder / "report.json") == whole
    assert (folder / "report.md").read_bytes() == (tmp_path / "whole" / "report.md").read_bytes()


def test_cut_at_every_byte_of_the_last_lines(tmp_path: Path) -> None:
    data = Dataset.from_rows(make_rows(4))
    whole = evaluate("scripted", data, out=tmp_path / "whole").to_json()
    text = (tmp_path / "whole" / "replies.jsonl").read_bytes()
    record = (tmp_path / "whole" / "run.json").read_bytes()
    start = text.index(b"\n", text.index(b"\n") + 1) + 1
    for cut in range(start, len(text), 17):
        folder = tmp_path / f"cut{cut}"
        folder.mkdir()
        (folder / "run.json").write_bytes(record)
        (folder / "replies.jsonl").write_bytes(text[:cut])
        found = evaluate("scripted", data, out=folder)
        assert found.to_json()["cases"] == whole["cases"]
        assert found.to_json()["measurements"] == whole["measurements"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopped_by_a_signal_says_how_far_it_came(tmp_path: Path, number: int, code: int) -> None:
    data = write(tmp_path / "d.jsonl", make_rows(3000))
    process = subprocess.Popen(
        command(data, tmp_path / "out"), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    while not (tmp_path / "out" / "replies.jsonl").exists():
        time.sleep(0.01)
    time.sleep(0.3)
    os.kill(process.pid, number)
    error = process.communicate(timeout=20)[1].decode()
    assert process.returncode == code
    assert "of 3000 rows done; the same command takes it up" in error
    assert "Traceback" not in error
    kept = (tmp_path / "out" / "replies.jsonl").read_bytes()
    assert kept.endswith(b"\n")
    assert not (tmp_path / "out" / "report.json").exists()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"engine": "scripted,accuracy=0.6"}, "engine.settings.accuracy was 0.8, is now 0.6"),
        ({"engine": "lexical"}, 'engine.name was "scripted", is now "lexical"'),
        ({"options": RunOptions(batch_size=2)}, "settings.batch_size was 1, is now 2"),
        ({"options": RunOptions(limit=3)}, "settings.limit was null, is now 3"),
        ({"rows": 9}, "dataset.rows was 8, is now 9"),
        ({"question": "Another?"}, "questions_sha256 was"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_another_run_is_refused_naming_what_changed(
    tmp_path: Path, change: dict[str, Any], named: str
) -> None:
    evaluate("scripted", Dataset.from_rows(make_rows(8)), out=tmp_path)
    before = (tmp_path / "replies.jsonl").read_bytes()
    rows = make_rows(change.get("rows", 8))
    if "question" in change:
        flag = {"type": "noul", "instructions": change["question"]}
        rows = [row | {"questions": row["questions"] | {"flag": flag}} for row in rows]
    with pytest.raises(IncomparableError, match="holds another run") as refusal:
        evaluate(
            change.get("engine", "scripted"),
            Dataset.from_rows(rows),
            options=change.get("options"),
            out=tmp_path,
        )
    assert named in str(refusal.value)
    assert (tmp_path / "replies.jsonl").read_bytes() == before


def test_settings_that_change_no_answer_may_change(tmp_path: Path) -> None:
    data = Dataset.from_rows(make_rows(8))
    first = evaluate("scripted", data, out=tmp_path)
    again = evaluate(
        "scripted", data, out=tmp_path, options=RunOptions(on_error="skip", timeout=5, concurrency=3)
    )
    assert again.to_json()["cases"] == first.to_json()["cases"]


def test_errors_are_kept_unless_asked_to_retry(tmp_path: Path) -> None:
    data = Dataset.from_rows(make_rows(10))
    calls: list[str] = []

    class Flaky:
        broken = True

        def predict(self, state: str, questions: Any) -> Any:
            calls.append(state)
            if self.broken and state.endswith("3"):
                raise RuntimeError("down")
            return {"answers": {"team": {"choice": "sales"}, "level": {"score": 1}, "flag": {"noul": 0.2}}}

    flaky = Flaky()
    skip = RunOptions(on_error="skip")
    assert evaluate(flaky, data, out=tmp_path, options=skip).counts["errored"] == 3
    flaky.broken = False
    calls.clear()
    assert evaluate(flaky, data, out=tmp_path, options=skip).counts["errored"] == 3
    assert calls == []
    retried = evaluate(flaky, data, out=tmp_path, options=RunOptions(on_error="skip", retry_errors=True))
    assert calls == ["message number 3"]
    assert retried.counts["errored"] == 0
    calls.clear()
    evaluate(flaky, data, out=tmp_path, options=RunOptions(on_error="skip", retry_errors=True))
    assert calls == []
    assert len(retried.to_json()["cases"]) == 30


def test_a_failed_run_keeps_what_it_had(tmp_path: Path) -> None:
    data = Dataset.from_rows(make_rows(10))
    with pytest.raises(Exception, match="row 6"):
        evaluate("scripted,fail_every=7", data, out=tmp_path)
    kept = (tmp_path / "replies.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line)["row"] for line in kept]
    assert rows[:6] == [0, 1, 2, 3, 4, 5]
    assert 6 not in rows


def test_two_runs_cannot_share_a_folder(tmp_path: Path) -> None:
    data = Dataset.from_rows(make_rows(3))
    evaluate("scripted", data, out=tmp_path)
    record = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    identity = {key: record[key] for key in record if key not in ("schema", "dataset_path")}
    holder = RunLog(tmp_path)
    holder.open(identity, "d")
    with pytest.raises(InputError, match="another run is writing here"):
        evaluate("scripted", data, out=tmp_path)
    holder.close()


def test_replies_without_a_record_are_refused(tmp_path: Path) -> None:
    (tmp_path / "replies.jsonl").write_text("something\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"has replies but no run\.json"):
        evaluate("scripted", Dataset.from_rows(make_rows(3)), out=tmp_path)


def test_rescore_equals_the_run_and_takes_other_bins(tmp_path: Path) -> None:
    data = Dataset.from_rows(make_rows(60))
    report = evaluate("scripted", data, out=tmp_path)
    again = rescore_run(tmp_path, data, Settings())
    assert again.to_json()["measurements"] == report.to_json()["measurements"]
    assert again.config == report.config
    other = rescore_run(tmp_path, data, Settings(bins=5))
    assert other.measurements.overall["ece"].definition == "ece/5-equal-width/1"


def test_rescore_refuses_an_unfinished_run_and_another_dataset(tmp_path: Path) -> None:
    data = Dataset.from_rows(make_rows(6))
    evaluate("scripted", data, out=tmp_path)
    with pytest.raises(IncomparableError, match=r"dataset\.rows was 6, is now 7"):
        rescore_run(tmp_path, Dataset.from_rows(make_rows(7)), Settings())
    log = tmp_path / "replies.jsonl"
    log.write_bytes(log.read_bytes().split(b"\n", 1)[1])
    with pytest.raises(ReportError, match="1 of 6 rows have no reply yet"):
        rescore_run(tmp_path, data, Settings())


def test_rescore_command_finds_the_dataset(tmp_path: Path, steelyard: Callable[..., Ran]) -> None:
    data = write(tmp_path / "d.jsonl", make_rows(9))
    assert steelyard("run", data, "--engine", "scripted", "--out", tmp_path / "r", "--quiet").code == 0
    assert steelyard("rescore", tmp_path / "r", "--bins", 4, "--json", tmp_path / "x.json").code == 0
    moved = data.rename(tmp_path / "moved.jsonl")
    assert steelyard("rescore", tmp_path / "r").code == 2
    assert steelyard("rescore", tmp_path / "r", "--data", moved).code == 0
    assert "ece/4-equal-width/1" in (tmp_path / "x.json").read_text(encoding="utf-8")
    assert steelyard("rescore", tmp_path / "x.json", "--data", moved).code == 2
    assert steelyard("rescore", tmp_path / "x.json").code == 0


def test_invalid_answers_are_retried_too(tmp_path: Path) -> None:
    data = Dataset.from_rows(make_rows(10))

    class Mends:
        broken = True

        def predict(self, state: str, questions: Any) -> Any:
            flag = 7.0 if self.broken and state.endswith("4") else 0.25
            return {"team": {"choice": "sales"}, "level": {"score": 1}, "flag": {"noul": flag}}

    mends = Mends()
    first = evaluate(mends, data, out=tmp_path, options=RunOptions(on_error="skip"))
    assert (first.counts["errored"], first.counts["rows_errored"]) == (1, 1)
    mends.broken = False
    retried = evaluate(mends, data, out=tmp_path, options=RunOptions(on_error="skip", retry_errors=True))
    assert retried.counts["errored"] == 0
    assert retried.table.value[retried.table.kind == 2].tolist() == [0.25] * 10
    assert rescore_run(tmp_path, data, Settings()).counts == retried.counts


def test_log_lines_for_rows_that_are_not_there_are_passed_over(tmp_path: Path) -> None:
    data = Dataset.from_rows(make_rows(3))
    report = evaluate("scripted", data, out=tmp_path)
    with (tmp_path / "replies.jsonl").open("a", encoding="utf-8") as stream:
        stream.write('{"row":-1,"answers":{}}\n{"row":99,"answers":{}}\n')
    assert rescore_run(tmp_path, data, Settings()).measurements == report.measurements
