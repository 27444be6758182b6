"""Runs on an event loop: stopped, killed and taken up, with nothing paid for twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from steelyard import Ability, CallOptions, Dataset, Engine, EngineFailedError, Reply, RunOptions, evaluate
from steelyard.fake.quirks import Quirks
from steelyard.fake.server import FakeServer
from tests.conftest import make_rows


class Lazy(Engine):
    """Answers on the loop, and counts."""

    name = "lazy"
    abilities = Ability.ASYNC | Ability.CONCURRENT

    def __init__(self, stop_at: int = 10**9, odd: str = "") -> None:
        super().__init__()
        self.asked, self.open_calls = 0, 0
        self._stop_at, self._odd = stop_at, odd

    async def open(self) -> None:
        self.open_calls += 1

    async def shut(self) -> None:
        self.open_calls -= 1

    async def answer_async(self, requests: Any, options: CallOptions) -> Any:
        import asyncio

        self.asked += 1
        turn = self.asked
        await asyncio.sleep(0.002 if turn % 2 else 0.004)
        if turn >= self._stop_at:
            raise EngineFailedError("no more")
        if self._odd == "raises" and turn % 5 == 0:
            raise ValueError("odd")
        if self._odd == "others":
            return [Reply(request.row + 1, {}) for request in requests]
        if self._odd == "slow":
            await asyncio.sleep(5)
        return [Reply(request.row, {"team": {"choice": "sales"}, "level": {"score": 1}, "flag": {"noul": 1}})
                for request in requests]  # fmt: skip


def data(n: int = 60) -> Dataset:
    return Dataset.from_rows(make_rows(n), "data")


def test_replies_come_in_any_order_and_are_joined() -> None:
    engine = Lazy()
    report = evaluate(engine, data(), options=RunOptions(concurrency=7))
    assert report.counts["scored"] == 180
    assert (engine.asked, engine.open_calls) == (60, 0)


def test_a_fault_of_one_call_is_its_own() -> None:
    report = evaluate(Lazy(odd="raises"), data(), options=RunOptions(concurrency=3, on_error="skip"))
    assert report.counts["by_reason"] == {"engine_failed": 36}
    assert "ValueError: odd" in report.config["errored"][0]["error"]
    report = evaluate(Lazy(odd="others"), data(4), options=RunOptions(on_error="skip"))
    assert report.counts["by_reason"] == {"wrong_count": 12}
    report = evaluate(Lazy(odd="slow"), data(3), options=RunOptions(on_error="skip", timeout=0.05))
    assert report.counts["by_reason"] == {"timeout": 9}


def test_the_first_error_stops_a_run_that_is_to_stop() -> None:
    engine = Lazy(odd="raises")
    with pytest.raises(EngineFailedError, match="ValueError: odd"):
        evaluate(engine, data(), options=RunOptions(concurrency=2))
    assert engine.asked < 60
    assert engine.open_calls == 0


def test_what_was_answered_before_the_end_is_kept(tmp_path: Path) -> None:
    engine = Lazy(stop_at=20)
    with pytest.raises(EngineFailedError, match="no more"):
        evaluate(engine, data(), options=RunOptions(concurrency=4), out=tmp_path)
    kept = len((tmp_path / "replies.jsonl").read_text(encoding="utf-8").splitlines())
    assert 19 <= kept == engine.asked - sum(1 for _ in range(engine.asked - kept))
    again = Lazy()
    evaluate(again, data(), out=tmp_path)
    assert again.asked == 60 - kept


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_stopped_run_under_faults_loses_nothing(sign: signal.Signals, tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in make_rows(400)), encoding="utf-8")
    quirks = Quirks(latency_ms=4, fault_rate=0.3)
    with FakeServer(quirks) as server:
        spec = f"systemone:{server.url},backoff=0.001"
        line = [
            sys.executable,
            "-m",
            "steelyard",
            "run",
            str(path),
            "-e",
            spec,
            "--out",
            str(tmp_path / "run"),
        ]
        line += ["--concurrency", "8", "--quiet"]
        with subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            until = time.monotonic() + 20
            while server.answered < 120 and time.monotonic() < until:
                time.sleep(0.005)
            os.kill(process.pid, sign)
            assert process.stderr is not None
            said = process.stderr.read()
            code = process.wait(20)
        if sign != signal.SIGKILL:
            assert code == 128 + sign
            assert "the same command takes it up" in said
        kept = len((tmp_path / "run" / "replies.jsonl").read_text(encoding="utf-8").splitlines())
        paid = server.answered
        report = evaluate(
            spec, Dataset.from_jsonl(path), out=tmp_path / "run", options=RunOptions(concurrency=8)
        )
        assert server.answered - paid == 400 - kept
        if sign != signal.SIGKILL:
            # What was under way when the signal came was waited for and kept.
            assert kept == paid
            assert server.answered == 400
    with FakeServer() as plain:
        wanted = evaluate(
            f"systemone:{plain.url}", Dataset.from_jsonl(path), options=RunOptions(concurrency=8)
        )
    assert report.table.value.tolist() == pytest.approx(wanted.table.value.tolist(), nan_ok=True)
    assert report.table.pred.tolist() == wanted.table.pred.tolist()
