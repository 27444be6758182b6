"""The golden vectors of the interchange formats."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.formats.questions import identity_text, questions_sha256
from steelyard.metrics.timing import median_and_p95
from steelyard.stats.bins import expected_calibration_error
from steelyard.stats.ranking import accepted_at, area_under_risk_coverage, levels

NAN = float("nan")
VECTORS = [
    (
        "V1",
        [0.95, 0.9, 0.9, 0.6, 0.6, 0.5, 0, 1],
        [1, 1, 0, 1, 0, 0, 0, 1],
        {"ece": 0.19375, "brier": 0.1990625, "aurc": 0.2619047619047619, 0.5: 0.75, 0.8: 0.5714285714285714},
    ),
    ("V2", [1.0] * 8, [1, 1, 1, 1, 0, 0, 0, 0], {"ece": 0.5, "brier": 0.5, "aurc": 0.5, 0.5: 0.5}),
    ("V3", [0.9, NAN, 0.8, NAN], [1, 1, 0, 0], {"ece": 0.225, "aurc": 0.375, 0.5: 0.5, 0.8: 0.5}),
    ("V4", [1.2, -0.1, 0.5], [1, 0, 1], {"ece": 1 / 6, "brier": 0.1, "aurc": 1 / 9}),
    ("V5", [1 / 15, 2 / 15, 3 / 15, 0], [1, 0, 1, 0], {"ece": 0.4666666666666667}),
    ("V6", [0.9, 0.8, 0.7, 0.6, 0.5], [1, 1, 0, 1, 0], {0.5: 2 / 3, 0.8: 0.75, 1.0: 0.6}),
]


@pytest.mark.parametrize(
    ("confidence", "correct", "wanted"), [v[1:] for v in VECTORS], ids=[v[0] for v in VECTORS]
)
def test_metric_vectors(
    confidence: list[float], correct: list[int], wanted: dict[str | float, float]
) -> None:
    c, y = np.array(confidence, float), np.array(correct, float)
    accepted, hits = levels(c, y)
    found: dict[str | float, float] = {
        "ece": expected_calibration_error(c, y),
        "brier": float(np.mean((c - y) ** 2)),
        "aurc": area_under_risk_coverage(accepted, hits),
    }
    for coverage in (0.5, 0.8, 1.0):
        at = accepted_at(accepted, coverage)
        found[coverage] = hits[at] / accepted[at]
    for name, value in wanted.items():
        assert found[name] == pytest.approx(value, abs=1e-15), name


def test_risk_coverage_curve() -> None:
    accepted, hits = levels(np.array(VECTORS[0][1], float), np.array(VECTORS[0][2], float))
    assert (accepted / 8).tolist() == [0.125, 0.25, 0.5, 0.75, 0.875, 1]
    assert (1 - hits / accepted).tolist() == pytest.approx([0, 0, 0.25, 1 / 3, 3 / 7, 0.5])


def test_percentiles() -> None:
    assert median_and_p95(np.arange(1.0, 21.0)) == (10.5, 19)
    assert median_and_p95(np.array([4.0, 1, 3, 2])) == (2.5, 4)


G1 = ("route", {"type": "choice", "instructions": "Pick a team", "criteria": {"a": "first", "b": "second"}})
G2 = ("ok", {"type": "noul", "instructions": "Is it ok?"})
G3 = (
    "lvl",
    {
        "type": "score",
        "instructions": {"ask": "Hur brådskande?"},
        "criteria": ["low", "high"],
        "option_order": [1, 0],
    },
)


@pytest.mark.parametrize(
    ("questions", "digest"),
    [
        ([G1], "8a7321c6c6a9cf795f63bf6b95767102e6b9c891035b6df1660a7c1c8d42ec9d"),
        ([G1, G2], "711f0f0d7ace02d9e86a6d06c449cc2684fad8e5edb3cebf91c088bf1f70bc94"),
        ([G3, G2, G1, G1], "9bcf53de68cfc7cae4142f04f76d1550aa410a038949ab1a983a727ca8220c70"),
        ([("x", 3)], "803b7e81be214d8df4819aa5c01a6354e4979e52fbdb8c37f98768fdffbb648e"),
    ],
    ids=["G1", "G2", "G3", "not an object"],
)
def test_questions_sha256(questions: list[tuple[str, object]], digest: str) -> None:
    assert questions_sha256(identity_text(qid, body) for qid, body in questions) == digest
