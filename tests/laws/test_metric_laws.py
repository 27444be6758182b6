"""Laws every metric must keep, on tables made by hypothesis."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import sklearn.metrics as oracle
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard import Dataset, Settings
from steelyard.core.requests import Reply
from steelyard.formats.replies import encode_reply, parse_reply
from steelyard.metrics.decisions import Decisions
from steelyard.metrics.measure import Measurements, measure, metrics_for
from steelyard.run.judge import join
from steelyard.run.runner import Collector

OPTIONS = ["a", "b", "c"]
QUESTIONS: dict[str, Any] = {
    "pick": {"type": "choice", "instructions": "?", "criteria": OPTIONS},
    "rate": {"type": "score", "instructions": "?", "criteria": ["0", "1", "2", "3"]},
    "flag": {"type": "noul", "instructions": "?"},
}
EDGES = [0.0, 1.0, 0.5, 1 / 3] + [k / 15 for k in range(16)]
UPPER = {"brier_multiclass": 2.0, "score_mae": 3.0, "log_loss": math.inf}


@st.composite
def vector(draw: Any, size: int) -> list[float]:
    weights = draw(st.lists(st.integers(0, 5), min_size=size, max_size=size).filter(any))
    return [weight / sum(weights) for weight in weights]


@st.composite
def case(draw: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    qid = draw(st.sampled_from(list(QUESTIONS)))
    confidence = draw(st.sampled_from(EDGES) | st.floats(0, 1, allow_subnormal=False))
    if qid == "pick":
        label: Any = draw(st.sampled_from(OPTIONS))
        p = dict(zip(OPTIONS, draw(vector(3)), strict=True))
        answer = {
            "choice": draw(st.sampled_from(OPTIONS)),
            "probabilities": p,
            "answer_confidence": confidence,
        }
    elif qid == "rate":
        label = draw(st.integers(0, 3))
        levels = draw(vector(4))
        p = {str(i): x for i, x in enumerate(levels)}
        answer = {"score": min(3.0, sum(i * x for i, x in enumerate(levels))), "probabilities": p}
    else:
        label = draw(st.booleans())
        answer = {"noul": draw(st.sampled_from([0.0, 0.5, 1.0]) | st.floats(0, 1, allow_subnormal=False))}
    row = {
        "state": "s",
        "questions": {qid: QUESTIONS[qid]},
        "expected": {qid: label},
        "language": draw(st.sampled_from(["en", "de"])),
        "tags": draw(st.lists(st.sampled_from(["x", "y"]), max_size=2)),
    }
    return row, {qid: answer}


cases = st.lists(case(), min_size=1, max_size=25)


def table_of(made: list[tuple[dict[str, Any], dict[str, Any]]]) -> Decisions:
    data = Dataset.from_rows(row for row, _ in made)
    collector = Collector(data, len(data))
    collector.take_all(
        parse_reply(encode_reply(Reply(row, answers), 1.0, 1)) for row, (_, answers) in enumerate(made)
    )
    asked = collector.finish()
    return join(data.columns, asked.answers, asked.facts, asked.labels)


def measured(made: list[tuple[dict[str, Any], dict[str, Any]]]) -> Measurements:
    return measure(table_of(made), Settings(score_within=(0.5,)))


def values(found: Measurements) -> dict[str, float]:
    return {name: m.value for name, m in found.overall.items()}


@given(cases)
@settings(max_examples=60, deadline=None)
def test_bounds_intervals_and_counts(made: Any) -> None:
    found = measured(made)
    for name, m in found.overall.items():
        assert 0 <= m.value <= UPPER.get(name, 1.0) + 1e-12, name
        assert 1 <= m.cases <= m.n <= len(made)
        assert m.definition
        assert m.better in ("higher", "lower", "neither")
        if m.interval:
            low, high = m.interval
            assert 0 <= low <= m.value + 1e-9, name
            assert m.value - 1e-9 <= high <= UPPER.get(name, 1.0) + 1e-12, name
            assert m.method
        else:
            assert m.no_interval


@given(cases, st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_row_order_does_not_matter(made: Any, random: Any) -> None:
    shuffled = list(made)
    random.shuffle(shuffled)
    ours, theirs = values(measured(made)), values(measured(shuffled))
    assert ours == pytest.approx(theirs, abs=1e-12)


@given(cases)
@settings(max_examples=40, deadline=None)
def test_doubling_the_data_changes_no_value(made: Any) -> None:
    ours, theirs = values(measured(made)), values(measured([*made, *made]))
    for name, value in ours.items():
        # A cut at half of an odd number falls elsewhere once it is doubled.
        if not name.startswith("selective"):
            assert theirs[name] == pytest.approx(value, abs=1e-12), name


@given(cases)
@settings(max_examples=40, deadline=None)
def test_a_slice_is_the_table_of_its_rows(made: Any) -> None:
    found = measured(made)
    for language in {row["language"] for row, _ in made}:
        alone = measured([(row, answers) for row, answers in made if row["language"] == language])
        assert values_of(found.slices["language"][language]) == pytest.approx(values(alone), abs=1e-12)
    tags = {tag for row, _ in made for tag in row["tags"]}
    for tag in tags:
        alone = measured([(row, answers) for row, answers in made if tag in row["tags"]])
        assert values_of(found.slices["tag"][tag]) == pytest.approx(values(alone), abs=1e-12)


def values_of(found: Any) -> dict[str, float]:
    return {name: m.value for name, m in found.items()}


@given(cases)
@settings(max_examples=40, deadline=None)
def test_ranking_metrics_see_only_the_order_of_confidence(made: Any) -> None:
    squeezed = []
    for row, answers in made:
        answer = dict(next(iter(answers.values())))
        if "choice" in answer:
            answer["answer_confidence"] = answer["answer_confidence"] / 2
        elif "noul" in answer:
            answer["answer_confidence"] = max(answer["noul"], 1 - answer["noul"]) / 2
        squeezed.append((row, {next(iter(answers)): answer}))
    ours, theirs = values(measured(made)), values(measured(squeezed))
    for name in ("aurc", "selective_accuracy@50", "selective_accuracy@80"):
        if name in ours:
            assert theirs[name] == pytest.approx(ours[name], abs=1e-12)


@given(cases)
@settings(max_examples=40, deadline=None)
def test_oracles_agree(made: Any) -> None:
    table, found = table_of(made), values(measured(made))
    choice = table.kind == 0
    if choice.any():
        gold, pred = table.gold_label[choice], table.pred_label[choice]
        union = np.union1d(gold, pred)
        f1 = oracle.f1_score(gold, pred, labels=union, average="macro", zero_division=0)
        assert found["macro_f1"] == pytest.approx(f1)
        assert found["choice_accuracy"] == pytest.approx(oracle.accuracy_score(gold, pred))
    if (table.kind == 1).any():
        mae = oracle.mean_absolute_error(table.gold[table.kind == 1], table.value[table.kind == 1])
        assert found["score_mae"] == pytest.approx(mae)
    kept = table.kind != 1
    if kept.any():
        expected = np.mean(-np.log(np.clip(table.p_gold[kept], 1e-15, None)))
        assert found["log_loss"] == pytest.approx(expected)


@given(st.lists(vector(2), min_size=2, max_size=8), st.data())
@settings(max_examples=30, deadline=None)
def test_two_levels_make_rps_a_brier_score(vectors: list[list[float]], data: Any) -> None:
    question = {"type": "score", "instructions": "?", "criteria": ["no", "yes"]}
    labels = [data.draw(st.integers(0, 1)) for _ in vectors]
    made = [
        (
            {"state": "s", "questions": {"q": question}, "expected": {"q": label}},
            {"q": {"score": p[1], "probabilities": {"0": p[0], "1": p[1]}}},
        )
        for p, label in zip(vectors, labels, strict=True)
    ]
    wanted = np.mean([(p[1] - label) ** 2 for p, label in zip(vectors, labels, strict=True)])
    assert values(measured(made))["rps"] == pytest.approx(wanted)


def test_multiclass_brier_and_rps_by_hand() -> None:
    rows = [
        (
            {"state": "s", "questions": {"pick": QUESTIONS["pick"]}, "expected": {"pick": "b"}},
            {"pick": {"choice": "a", "probabilities": {"a": 0.5, "b": 0.3, "c": 0.2}}},
        ),
        (
            {"state": "s", "questions": {"rate": QUESTIONS["rate"]}, "expected": {"rate": 2}},
            {"rate": {"score": 1.0, "probabilities": {"0": 0.4, "1": 0.3, "2": 0.2, "3": 0.1}}},
        ),
    ]
    found = values(measured(rows))
    assert found["brier_multiclass"] == pytest.approx(0.25 + 0.49 + 0.04)
    assert found["log_loss"] == pytest.approx(-math.log(0.3))
    assert found["rps"] == pytest.approx((0.4**2 + 0.7**2 + (0.9 - 1) ** 2) / 3)
    assert found["score_accuracy"] == 0.0


def test_clipped_log_loss_is_counted() -> None:
    made = [
        (
            {"state": "s", "questions": {"flag": QUESTIONS["flag"]}, "expected": {"flag": True}},
            {"flag": {"noul": 0.0}},
        )
    ]
    found = measured(made).overall["log_loss"]
    assert found.details == {"clip": 1e-15, "clipped": 1}
    assert found.value == pytest.approx(-math.log(1e-15))


def test_a_fractional_level_has_distance_but_no_rank_score() -> None:
    made = [
        (
            {"state": "s", "questions": {"rate": QUESTIONS["rate"]}, "expected": {"rate": 1.5}},
            {"rate": {"score": 1.0, "probabilities": {"0": 0.4, "1": 0.3, "2": 0.2, "3": 0.1}}},
        )
    ]
    found = measured(made).overall
    assert found["score_mae"].value == 0.5
    assert not {"rps", "score_accuracy"} & set(found)


def test_groups_are_clusters() -> None:
    rows = []
    for i in range(12):
        row = {"state": str(i), "questions": {"flag": QUESTIONS["flag"]}, "expected": {"flag": i % 3 == 0}}
        rows.append((row | {"group": i // 4}, {"flag": {"noul": 0.9}}))
    assert measured(rows).overall["noul_accuracy"].cases == 3
    assert measured([({**row, "group": None}, a) for row, a in rows]).overall["noul_accuracy"].cases == 12


def test_names_and_directions_are_there() -> None:
    names = [metric.name for metric in metrics_for(Settings(score_within=(0.25, 1)))]
    assert len(names) == len(set(names))
    assert {"score_within_0.25", "score_within_1"} <= set(names)
    assert all(metric.summary for metric in metrics_for(Settings()))
