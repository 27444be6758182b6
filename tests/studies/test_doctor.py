"""What the doctor finds in engines whose faults are known."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steelyard import make_engine
from steelyard.engines.python import PythonEngine
from steelyard.fake.quirks import Quirks
from steelyard.fake.server import FakeServer
from steelyard.studies.doctor import CANARY, Check, doctor
from tests.conftest import Ran


def outcomes(checks: list[Check]) -> dict[str, str]:
    return {check.name: check.outcome for check in checks}


def examined(quirks: Quirks, spec: str = "systemone:{url}") -> list[Check]:
    with FakeServer(quirks) as server:
        return doctor(make_engine(spec.format(url=server.url) + ",backoff=0.001"))


def test_a_healthy_server() -> None:
    found = outcomes(examined(Quirks(), "systemone:laya-serve,base_url={url}"))
    assert found == {
        "choice questions": "pass",
        "score questions": "pass",
        "noul questions": "pass",
        "option order": "pass",
        "repeat noise": "pass",
        "batches": "pass",
        "unknown model": "warn",
        "usage": "pass",
        "long states": "pass",
    }


@pytest.mark.parametrize(
    ("quirks", "name", "outcome", "words"),
    [
        (Quirks(reads=4000), "long states", "fail", "read whole up to 2000"),
        (Quirks(reads=20), "long states", "fail", "read whole up to 0"),
        (Quirks(noise=0.5), "repeat noise", "warn", "differs by at most"),
        (Quirks(missing_usage=True), "usage", "warn", "0 of 4"),
        (Quirks(unknown_model="refuse"), "unknown model", "pass", "refused: status 404"),
        (Quirks(), "unknown model", "warn", "rerouted without a word: answered by fake-1"),
        (Quirks(wrong_answers=True), "choice questions", "fail", "not answered: probabilities"),
        (Quirks(reject_every=1), "noul questions", "fail", "state is not acceptable"),
    ],
)
def test_each_fault_is_found(quirks: Quirks, name: str, outcome: str, words: str) -> None:
    check = next(check for check in examined(quirks) if check.name == name)
    assert check.outcome == outcome
    assert words in check.text


def test_batches_that_are_short_fail() -> None:
    found = examined(Quirks(short_batches=True), "systemone:laya-serve,base_url={url}")
    assert outcomes(found)["batches"] == "fail"


def test_an_engine_that_goes_by_the_slot() -> None:
    def predict(state: str, questions: Any) -> Any:
        body = questions["q"]
        if body["type"] == "choice":
            return {"q": {"choice": next(iter(body["criteria"]))}}
        if body["type"] == "score":
            return {"q": {"score": 1.0}}
        if len(state) > 3000:
            raise ValueError("too long")
        return {"q": {"noul": 0.9 if CANARY in state else 0.1}}

    found = {check.name: check for check in doctor(PythonEngine.wrap(predict))}
    assert found["option order"].outcome == "warn"
    assert "0 of 4" in found["option order"].text
    assert found["choice questions"].outcome == "warn"
    assert found["long states"].text == "8000 characters are refused, not cut"
    assert found["long states"].numbers == {"safe_characters": 2000}
    assert found["batches"].outcome == found["usage"].outcome == found["unknown model"].outcome == "skip"


def test_the_command(tmp_path: Path, steelyard: Callable[..., Ran]) -> None:
    with FakeServer(Quirks(reads=4000)) as server:
        ran = steelyard("doctor", "-e", f"systemone:{server.url}", "--json", tmp_path / "d.json")
    assert ran.code == 1
    assert "fail long states" in ran.out
    checks = json.loads((tmp_path / "d.json").read_text(encoding="utf-8"))["checks"]
    assert len(checks) == 9
    assert steelyard("doctor", "-e", "lexical").code == 0
    assert steelyard("doctor", "-e", "nothing").code == 2
    assert steelyard("doctor").code == 2
