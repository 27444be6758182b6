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
from steelyard.metrics.registry import FACTS
from steelyard.run.collector import Collector
from steelyard.run.judge import join

OPTIONS = ["a", "b", "c"]
QUESTIONS: dict[str, Any] = {
    "pick": {"type": "choice", "instructions": "?", "criteria": OPTIONS},
    "rate": {"type": "score", "instructions": "?", "criteria": ["0", "1", "2", "3"]},
    "flag": {"type": "noul", "instructions": "?"},
}
EDGES = [0.5, 1 / 3] + [k / 15 for k in range(16)]
EDGES += [math.nextafter(edge, side) for edge in EDGES for side in (0.0, 1.0)]


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


BARE = Settings(score_within=(0.5,), intervals=False, deep=("language", "tag"))
RANGES = {metric.name: (metric.low, metric.high) for metric in metrics_for(BARE)}


def measured(made: list[tuple[dict[str, Any], dict[str, Any]]], judged: Settings = BARE) -> Measurements:
    return measure(table_of(made), judged)


def values(found: Measurements) -> dict[str, float]:
    return values_of(found.overall)


def values_of(found: Any) -> dict[str, float]:
    return {name: m.value for name, m in found.items()}


@given(cases)
@settings(max_examples=60, deadline=None)
def test_bounds_intervals_and_counts(made: Any) -> None:
    for name, m in measured(made, Settings(score_within=(0.5,))).overall.items():
        low, high = RANGES[name]
        assert low - 1e-12 <= m.value <= high + 1e-12, name
        assert 1 <= m.cases <= m.n <= len(made)
        assert m.definition
        assert "{" not in m.definition
        assert m.better in ("higher", "lower", "neither")
        assert (m.interval is None) == (m.method is None)
        assert (m.interval is None) == (m.no_interval is not None), name
        if m.interval:
            assert low <= m.interval[0] <= m.value + 1e-9, name
            assert m.value - 1e-9 <= m.interval[1] <= high + 1e-12, name
        if m.null:
            assert 0 <= m.null.p <= 1
            assert m.null.expectation >= 0
            assert m.null.excess == pytest.approx(m.value - m.null.expectation)


@given(cases)
@settings(max_examples=40, deadline=None)
def test_leaving_intervals_out_changes_no_value(made: Any) -> None:
    full = Settings(score_within=(0.5,))
    assert values(measured(made, full)) == values(measured(made))


@given(cases, st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_row_order_does_not_matter(made: Any, random: Any) -> None:
    shuffled = list(made)
    random.shuffle(shuffled)
    ours, theirs = values(measured(made)), values(measured(shuffled))
    assert ours == pytest.approx(theirs, abs=1e-9)


GROWS_WITH_N = ("selective", "e_aurc", "ece_debiased", "murphy", "spiegelhalter", "score_threshold")
"""A cut at half of an odd number falls elsewhere once it is doubled; the others know their n."""


@given(cases)
@settings(max_examples=40, deadline=None)
def test_doubling_the_data_changes_no_value(made: Any) -> None:
    ours, theirs = values(measured(made)), values(measured([*made, *made]))
    for name, value in ours.items():
        if not name.startswith(GROWS_WITH_N) and not name.endswith("_prior"):
            assert theirs[name] == pytest.approx(value, abs=1e-5 if "cox" in name else 1e-9), name


@given(cases)
@settings(max_examples=40, deadline=None)
def test_a_slice_is_the_table_of_its_rows(made: Any) -> None:
    found = measured(made)
    for language in {row["language"] for row, _ in made}:
        alone = measured([(row, answers) for row, answers in made if row["language"] == language])
        assert own(found.slices["language"][language]) == pytest.approx(own(alone.overall), abs=1e-12)
    tags = {tag for row, _ in made for tag in row["tags"]}
    for tag in tags:
        alone = measured([(row, answers) for row, answers in made if tag in row["tags"]])
        assert own(found.slices["tag"][tag]) == pytest.approx(own(alone.overall), abs=1e-12)


def own(found: Any) -> dict[str, float]:
    """Values that owe nothing to rows outside the slice; class priors are those of the whole data."""
    return {n: v for n, v in values_of(found).items() if not n.endswith(("_prior", "_majority"))}


RANKING = ("aurc", "e_aurc", "augrc", "auroc_failure", "selective", "coverage@", "corp_discrimination")


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
    ranked = {name for name in ours if name.startswith(RANKING)}
    assert len(ranked) >= 10 or not any(name == "aurc" for name in ours)
    for name in ranked:
        assert theirs[name] == pytest.approx(ours[name], abs=1e-9), name


def test_every_metric_is_met_by_these_laws() -> None:
    """A table with every question type, a soft label and fifty answers a label has them all."""
    rows = [pick(OPTIONS[i % 3], OPTIONS[(i * i) % 3], 0.4 + 0.01 * (i % 50)) for i in range(60)]
    soft = {
        "state": "s",
        "questions": {"pick": QUESTIONS["pick"]},
        "expected": {"pick": {"a": 0.75, "b": 0.25}},
    }
    rows.append((soft, {"pick": {"choice": "a", "probabilities": {"a": 0.5, "b": 0.5, "c": 0.0}}}))
    for i in range(8):
        levels = {"0": 0.1, "1": 0.2, "2": 0.3, "3": 0.4}
        row = {"state": "s", "questions": {"rate": QUESTIONS["rate"]}, "expected": {"rate": i % 4}}
        rows.append((row, {"rate": {"score": 2.0, "probabilities": levels}}))
        flag = {"state": "s", "questions": {"flag": QUESTIONS["flag"]}, "expected": {"flag": i % 3 == 0}}
        rows.append((flag, {"flag": {"noul": i / 8}}))
    assert set(values(measured(rows))) == set(RANGES)


def pick(label: str, answer: str, p: float) -> tuple[dict[str, Any], dict[str, Any]]:
    rest = (1 - p) / 2
    spread = {option: p if option == answer else rest for option in OPTIONS}
    row = {"state": "s", "questions": {"pick": QUESTIONS["pick"]}, "expected": {"pick": label}}
    return row, {"pick": {"choice": answer, "probabilities": spread}}


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
    assert found.details == {"clip": 1e-15, "clipped": 1, "infinite_without_clip": True}
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
    for metric in metrics_for(Settings()):
        assert metric.summary
        assert set(metric.facts) == set(FACTS), metric.name


def test_nothing_measured_is_nothing() -> None:
    made = [
        (
            {"state": "s", "questions": {"flag": QUESTIONS["flag"]}, "expected": {"flag": True}},
            {"flag": {"noul": 2.0}},
        )
    ]
    found = measured(made, Settings())
    assert found.overall == {}
    assert found.slices["type"] == {"noul": {}}
    empty = measured([({"state": "s", "questions": {"flag": QUESTIONS["flag"]}, "expected": {}}, {})])
    assert (empty.overall, empty.slices) == ({}, {})


def test_one_class_has_no_failure_ranking() -> None:
    found = values(measured([pick("a", "a", 0.9), pick("b", "b", 0.7)], Settings()))
    assert "auroc_failure" not in found
    assert "cox_slope" not in found
    assert found["aurc"] == found["e_aurc"] == found["augrc"] == 0.0
    assert found["coverage@risk1"] == 1.0
