"""Which field the confidence is read from, and the published effect of it."""

from __future__ import annotations

from typing import Any

import pytest

from steelyard import Dataset, evaluate
from tests.conftest import FLAG, LEVEL, TEAM

ROWS = [
    {"state": "a", "questions": {"q": TEAM}, "expected": {"q": "billing"}},
    {"state": "b", "questions": {"q": LEVEL}, "expected": {"q": 2}},
    {"state": "c", "questions": {"q": FLAG}, "expected": {"q": True}},
]
FULL = {
    "a": {"type": "choice", "choice": "billing", "answer_confidence": 0.95, "confidence": 0.7887},
    "b": {"type": "score", "score": 2.0, "answer_confidence": 0.9, "confidence": 0.6410},
    "c": {"type": "noul", "noul": 0.87},
}


def report(answers: dict[str, Any]) -> Any:
    return evaluate(lambda state, questions: {"q": answers[state]}, Dataset.from_rows(ROWS))


def test_full_and_strict_payloads() -> None:
    strict = {state: {k: v for k, v in a.items() if k != "answer_confidence"} for state, a in FULL.items()}
    full = report(FULL)
    assert full.overall["mean_confidence"] == pytest.approx(0.9067, abs=5e-5)
    assert full.overall["ece"] == pytest.approx(0.0900, abs=5e-5)
    bare = report(strict)
    assert bare.overall["mean_confidence"] == pytest.approx(0.7666, abs=5e-5)
    assert bare.overall["ece"] == pytest.approx(0.1707, abs=5e-5)
    assert full.counts["confidence_sources"] == {"answer_confidence": 2, "noul": 1}
    assert bare.counts["confidence_sources"] == {"confidence": 2, "noul": 1}


def test_probabilities_are_the_last_resort() -> None:
    answer = {
        "type": "choice",
        "choice": "billing",
        "probabilities": {"billing": 0.5, "support": 0.3, "sales": 0.2},
    }
    found = report(FULL | {"a": answer})
    assert found.counts["confidence_sources"]["probabilities"] == 1
    assert found.table.confidence[0] == 0.5


def test_no_confidence_at_all_leaves_the_answer_out_of_calibration() -> None:
    found = report(FULL | {"a": {"type": "choice", "choice": "billing"}})
    assert found.measurements.overall["choice_accuracy"].n == 1
    assert found.measurements.overall["ece"].n == 1
    assert found.counts["confidence_sources"]["none"] == 1
