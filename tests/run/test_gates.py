"""Policies judged: what passes, what fails, and what cannot be told."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import pytest

from steelyard import (
    Dataset,
    PolicyError,
    ReportError,
    RunOptions,
    Settings,
    assert_no_regression,
    check,
    evaluate,
)
from steelyard.core.gates import Finding
from steelyard.metrics.registry import Measurement
from steelyard.run.gating import Limits, verdict
from steelyard.run.limits import limit_findings, unattainable
from steelyard.run.reach import Reach, reach_of
from steelyard.run.side import document_side, side_of
from steelyard.stats.nulls import Null
from tests.conftest import make_rows

SKIP = RunOptions(on_error="skip")


def run(accuracy: float = 0.8, n: int = 100, seed: int = 1, **how: Any) -> Any:
    data = Dataset.from_rows(make_rows(n), "data")
    return evaluate(f"scripted,accuracy={accuracy},seed={seed}", data, **how)


def judged(report: Any, *rules: Any, baseline: Any = None, **policy: Any) -> list[Finding]:
    return list(check(report, {"version": 2, "rules": list(rules)} | policy, baseline).findings)


def outcome(report: Any, baseline: Any = None, **rule: Any) -> str:
    (found,) = judged(report, rule, baseline=baseline)
    return found.outcome


REPORT = run(0.8, 200)


@pytest.mark.parametrize(
    ("limit", "point", "interval"),
    [
        (0.5, "pass", "pass"),
        (0.78, "pass", "inconclusive"),
        (0.83, "fail", "inconclusive"),
        (0.95, "fail", "fail"),
    ],
)
def test_a_limit_on_the_value_and_on_what_the_data_can_show(limit: float, point: str, interval: str) -> None:
    accuracy = REPORT.measurements.overall["choice_accuracy"].value
    assert 0.78 <= accuracy <= 0.83
    assert outcome(REPORT, metric="choice_accuracy", min=limit, evidence="point") == point
    assert outcome(REPORT, metric="choice_accuracy", min=limit) == interval
    mirrored = {"pass": "fail", "fail": "pass"}
    assert outcome(REPORT, metric="choice_accuracy", max=limit, evidence="point") == mirrored[point]
    assert outcome(REPORT, metric="choice_accuracy", max=limit) == mirrored.get(interval, interval)


def test_limits_are_inclusive_and_forgive_rounding() -> None:
    value = REPORT.measurements.overall["brier"].value
    for limit in (value, value - 5e-10, value + 5e-10):
        for kind in ("min", "max"):
            assert outcome(REPORT, metric="brier", evidence="point", **{kind: limit}) == "pass"
    assert outcome(REPORT, metric="brier", evidence="point", max=value - 2e-9) == "fail"


def test_the_bounds_shown_are_those_that_decide() -> None:
    (found,) = judged(REPORT, {"metric": "choice_accuracy", "min": 0.7})
    low, high = REPORT.measurements.overall["choice_accuracy"].interval
    assert low < found.interval[0] < found.value < found.interval[1] < high
    assert "90 % interval" in found.reason
    assert outcome(REPORT, metric="choice_accuracy", min=found.interval[0] - 1e-6) == "pass"
    assert outcome(REPORT, metric="choice_accuracy", min=found.interval[0] + 1e-6) == "inconclusive"
    assert outcome(REPORT, metric="choice_accuracy", min=found.interval[1] + 1e-6) == "fail"
    (wider,) = judged(REPORT, {"metric": "choice_accuracy", "min": 0.7}, alpha=0.01)
    assert wider.interval[0] < found.interval[0]
    assert (found.n, found.cases) == (200, 200)


@pytest.mark.parametrize(("policy", "fails"), [("fail", True), ("warn", False), ("pass", False)])
def test_when_it_cannot_be_told(policy: str, fails: bool) -> None:
    (found,) = judged(REPORT, {"metric": "choice_accuracy", "min": 0.8, "when_inconclusive": policy})
    assert (found.outcome, found.fails) == ("inconclusive", fails)
    assert found.reason.endswith(": cannot tell")


def test_a_star_is_every_value_of_the_run_and_of_the_baseline() -> None:
    found = judged(REPORT, {"metric": "accuracy", "min": 0.1, "slice": {"language": "*"}})
    assert [one.slice for one in found] == ["language=de", "language=en", "language=fr"]
    assert {one.outcome for one in found} == {"pass"}
    both = judged(REPORT, {"metric": "accuracy", "min": 0.1, "slice": {"language": "en", "qid": "*"}})
    assert [one.slice for one in both] == [
        "language=en, qid=flag",
        "language=en, qid=level",
        "language=en, qid=team",
    ]
    assert [one.outcome for one in both] == ["pass", "missing", "pass"]
    assert [one.n for one in both if one.n] == [67, 67]
    fewer = evaluate(
        "scripted", Dataset.from_rows([row for row in make_rows(90) if row["language"] != "fr"], "data")
    )
    rule = {"metric": "accuracy", "max_drop": 0.9, "slice": {"language": "*"}, "evidence": "point"}
    found = judged(fewer, rule, baseline=fewer.to_json() | {"slices": {}})
    assert [one.slice for one in found] == ["language=de", "language=en"]
    base = copy.deepcopy(REPORT.to_json())
    del base["config"]["dataset_sha256"]
    found = judged(fewer, rule, baseline=base)
    assert [(one.slice, one.outcome) for one in found][-1] == ("language=fr", "missing")


def test_an_empty_slice_is_missing_and_fails_whatever_the_policy() -> None:
    for rule in ({"min": 0.1}, {"max": 1}, {"min": 0.1, "slice": {"language": "xx"}}):
        where = {"metric": "accuracy", "slice": {"language": "zh"}, "when_inconclusive": "pass"} | rule
        (found,) = judged(REPORT, where)
        assert (found.outcome, found.fails) == ("missing", True)
    (found,) = judged(REPORT, {"metric": "accuracy", "min": 0.1, "slice": {"language": "zh", "tag": "*"}})
    assert "no answer is in such a slice" in found.reason


def test_too_few_answers_cannot_tell() -> None:
    (found,) = judged(REPORT, {"metric": "accuracy", "min": 0.1, "min_count": 401})
    assert (found.outcome, found.n) == ("inconclusive", 400)
    assert "is over 400 answers, min_count is 401" in found.reason
    assert outcome(REPORT, metric="accuracy", min=0.1, min_count=400) == "pass"


def test_nothing_measured_never_passes() -> None:
    nothing = evaluate("scripted,fail_every=1", Dataset.from_rows(make_rows(20), "data"), options=SKIP)
    rules = [{"metric": name, "max": 1e9} for name in ("accuracy", "ece", "score_mae", "latency_p50_ms")]
    found = judged(nothing, *rules, on_errors="allow")
    assert {one.outcome for one in found} == {"missing"}
    assert all(one.fails for one in found)
    base = run(n=20)
    found = judged(nothing, {"metric": "accuracy", "margin": 1}, baseline=base, on_errors="allow")
    assert [one.outcome for one in found] == ["missing"]
    with pytest.raises(ReportError, match="has no metrics, so nothing in it could fail"):
        judged(base, {"metric": "accuracy", "margin": 1}, baseline=nothing)


def test_errored_rows_fail_unless_allowed() -> None:
    report = evaluate("scripted,fail_every=10", Dataset.from_rows(make_rows(50), "data"), options=SKIP)
    rule = {"metric": "accuracy", "min": 0.1}
    assert [one.rule for one in judged(report, rule) if one.fails] == ["errors"]
    assert not [one for one in judged(report, rule, on_errors="allow") if one.fails]


def test_facts_of_the_run() -> None:
    report = evaluate("scripted,fail_every=10", Dataset.from_rows(make_rows(50), "data"), options=SKIP)
    found = judged(
        report,
        {"metric": "answered", "min": 0.5},
        {"metric": "answered", "min": 0.89, "evidence": "point"},
        {"metric": "answered", "min": 0.93},
        {"metric": "errored", "max": 15},
        {"metric": "errored", "max": 14},
        {"metric": "errored:engine_failed", "max": 15},
        {"metric": "errored:timeout", "max": 0},
        {"metric": "latency_p95_ms", "max": 1e6},
        {"metric": "latency_p95_ms", "max": 0},
        on_errors="allow",
    )
    assert [one.outcome for one in found] == [
        "pass", "pass", "inconclusive", "pass", "fail", "pass", "pass", "pass", "fail",
    ]  # fmt: skip
    assert found[0].value == 0.9
    assert found[3].value == 15
    saved = report.to_json(cases=False)
    recorded = judged(
        saved,
        {"metric": "answered", "min": 0.89, "evidence": "point"},
        {"metric": "answered", "min": 0.5},
        {"metric": "errored:engine_failed", "max": 15},
        {"metric": "latency_p95_ms", "max": 1e6},
        {"metric": "answered", "min": 0.1, "slice": {"language": "en"}},
        on_errors="allow",
    )
    assert [one.outcome for one in recorded] == ["pass", "inconclusive", "pass", "pass", "missing"]


def test_facts_need_no_count_and_may_be_relative() -> None:
    report = evaluate("scripted,fail_every=10", Dataset.from_rows(make_rows(50), "data"), options=SKIP)
    found = judged(
        report,
        {"metric": "errored", "max_increase": 15},
        {"metric": "errored", "max_increase": 14},
        {"metric": "answered", "margin": 0.1},
        {"metric": "answered", "margin": 0.05},
        {"metric": "latency_p95_ms", "margin": 1e6},
        {"metric": "errored", "max": 15},
        baseline=run(n=50),
        on_errors="allow",
        min_count=100,
    )
    assert [one.outcome for one in found] == ["pass", "fail", "pass", "fail", "pass", "pass"]


def test_facts_of_another_tools_report_are_what_it_lists() -> None:
    report = evaluate("scripted,fail_every=10", Dataset.from_rows(make_rows(50), "data"), options=SKIP)
    document = json.loads(json.dumps(report.to_json()))
    del document["counts"]
    found = judged(
        document,
        {"metric": "errored", "max": 5},
        {"metric": "errored", "max": 4},
        {"metric": "answered", "min": 0.9, "evidence": "point"},
        {"metric": "errored:timeout", "max": 9},
        {"metric": "errored", "max": 9, "slice": {"language": "en"}},
        on_errors="allow",
    )
    assert [one.outcome for one in found] == ["pass", "fail", "pass", "missing", "missing"]


def test_a_calibration_limit_below_chance_is_unattainable() -> None:
    report = run(0.8, 100)
    null = report.measurements.overall["ece"].null
    (found,) = judged(report, {"metric": "ece", "max": 0.02})
    assert found.outcome == "inconclusive"
    assert (
        f"unattainable: a perfectly calibrated model reads up to {null.q95:.4f} on 200 answers"
        in found.reason
    )
    wanted = int(np.ceil(200 * (null.q95 / 0.02) ** 2))
    assert f"about {wanted} would do" in found.reason
    (point,) = judged(report, {"metric": "ece", "max": 0.02, "evidence": "point"})
    assert "unattainable" in point.reason
    assert outcome(report, metric="ece", max=0.3) == "pass"
    assert "would do" not in unattainable(Measurement(0.1, 10, 10, null=Null(0.1, 0.2, 0.5, 0.0, "m")), 0.0)
    flags = list(limit_findings({"ece": 0.1}, {}, {"ece": 0.02}, report.measurements.overall))
    assert "unattainable" in flags[0].reason


def test_what_would_do_does() -> None:
    """On as many answers as the message names the limit is above what chance reads."""
    report = run(0.8, 100)
    (found,) = judged(report, {"metric": "ece", "max": 0.05})
    wanted = int(found.reason.split("about ")[1].split()[0])
    assert run(0.8, wanted // 2 + 1).measurements.overall["ece"].null.q95 <= 0.05 * 1.03


def test_a_calibrated_engine_passes_where_there_is_enough_and_a_bad_one_fails() -> None:
    rows = make_rows(1500, {"flag": {"type": "noul", "instructions": "Money?"}})
    data = Dataset.from_rows(rows, "data")
    rng = np.random.default_rng(3)
    expected = [row["expected"]["flag"] for row in rows]
    sure = rng.uniform(0.55, 0.95, len(rows))
    said = [yes if rng.random() < p else not yes for yes, p in zip(expected, sure, strict=True)]

    def engine(shift: float) -> Any:
        def predict(state: str, questions: Any) -> Any:
            at = int(state.rsplit(maxsplit=1)[-1])
            p = min(0.999, sure[at] + shift)
            return {"flag": {"noul": p if said[at] else 1 - p}}

        return predict

    assert outcome(evaluate(engine(0.0), data), metric="ece", max=0.06) == "pass"
    assert outcome(evaluate(engine(0.15), data), metric="ece", max=0.06) == "fail"


def test_metrics_without_an_interval_cannot_tell_but_can_be_compared() -> None:
    (found,) = judged(REPORT, {"metric": "coverage@risk10", "min": 0.0})
    assert found.outcome == "inconclusive"
    assert "no interval: its cut was chosen on these very answers" in found.reason
    assert outcome(REPORT, metric="coverage@risk10", min=0.0, evidence="point") == "pass"
    assert outcome(REPORT, metric="score_within_0.5", min=0.01) == "pass"


def test_margins_are_judged_on_paired_evidence() -> None:
    base, same, worse, better = run(0.9, 300), run(0.9, 300), run(0.7, 300), run(0.97, 300)
    rule = {"metric": "accuracy", "margin": 0.05}
    assert outcome(same, base, **rule) == "pass"
    assert outcome(better, base, **rule) == "pass"
    (found,) = judged(worse, rule, baseline=base)
    assert (found.outcome, found.fails) == ("fail", True)
    assert found.difference == pytest.approx(found.value - found.baseline)
    assert found.interval[0] < found.difference < found.interval[1] < -0.05
    other = run(0.9, 300, seed=2)
    (found,) = judged(other, rule | {"margin": 0.01}, baseline=base)
    assert found.outcome == "inconclusive"
    assert "cases would do: cannot tell" in found.reason
    assert outcome(worse, base, metric="score_mae", margin=0.05) == "fail"
    assert outcome(better, base, metric="score_mae", margin=0.5) == "pass"
    assert outcome(worse, base, metric="accuracy", max_increase=0.01) == "pass"
    assert outcome(worse, base, metric="mean_confidence", max_drop=0.5) == "pass"
    assert outcome(same, base, metric="macro_f1", margin=0.0) == "pass"


def test_relative_limits_on_values_need_no_cases() -> None:
    base, ours = run(0.9), run(0.8)
    drop = base.overall["choice_accuracy"] - ours.overall["choice_accuracy"]
    for given, against in ((ours, base), (ours.to_json(cases=False), base.to_json(cases=False))):
        rule = {"metric": "choice_accuracy", "evidence": "point"}
        assert outcome(given, against, **rule, max_drop=drop) == "pass"
        assert outcome(given, against, **rule, max_drop=drop - 1e-6) == "fail"
        assert outcome(given, against, **rule, margin=drop) == "pass"
        assert outcome(against, given, **rule, max_increase=drop - 1e-6) == "fail"
        sliced = judged(given, rule | {"margin": 1, "slice": {"language": "*"}}, baseline=against)
        assert [one.outcome for one in sliced] == ["pass"] * 3
    (found,) = judged(ours.to_json(cases=False), {"metric": "choice_accuracy", "margin": 1}, baseline=base)
    assert found.outcome == "missing"
    assert "has no paired evidence: this run holds no cases" in found.reason
    (found,) = judged({"overall": {"choice_accuracy": 0.5}}, {"metric": "choice_accuracy", "min": 0.2})
    assert found.outcome == "inconclusive"
    bare = {"overall": {"choice_accuracy": 0.5}}
    assert outcome(bare, metric="choice_accuracy", min=0.5, evidence="point") == "pass"
    assert outcome(bare, metric="choice_accuracy", min=0.5, evidence="point", min_count=2) == "inconclusive"
    assert outcome(bare, metric="choice_accuracy", min=0, slice={"language": "en"}) == "missing"
    assert outcome(bare, metric="choice_accuracy", min=0, slice={"language": "en", "tag": "x"}) == "missing"


def test_another_dataset_fails_and_another_definition_is_missing() -> None:
    base = run(0.8, 40).to_json()
    base["config"]["dataset_sha256"] = "other"
    found = judged(run(0.8, 40), {"metric": "accuracy", "margin": 0.5}, baseline=base)
    assert [one.rule for one in found if one.fails] == ["comparable"]
    ten = run(0.8, 40, settings=Settings(bins=10))
    (found,) = judged(ten, {"metric": "ece", "margin": 0.5}, baseline=run(0.8, 40))
    assert found.outcome == "missing"
    assert "is not compared" in found.reason


def test_control_over_many_rules_keeps_false_failures_rare() -> None:
    """A dozen limits at the truth, none of which is broken: how often does a build fail?"""
    rng = np.random.default_rng(11)
    failed = {"none": 0, "family": 0, "fdr": 0}
    rules = [{"metric": "choice_accuracy", "min": 0.7, "slice": {"tag": f"t{k}"}} for k in range(12)]
    question = {"type": "choice", "instructions": "Which?", "criteria": ["a", "b"]}
    runs = 60
    for _ in range(runs):
        right = rng.random(12 * 40) < 0.7
        rows = [
            {"state": f"{at}", "questions": {"q": question}, "expected": {"q": "a"}, "tags": [f"t{at % 12}"]}
            for at in range(12 * 40)
        ]

        def predict(state: str, questions: Any, right: Any = right) -> Any:
            return {"q": {"choice": "a" if right[int(state)] else "b"}}

        report = evaluate(predict, Dataset.from_rows(rows, "data"))
        for control in failed:
            found = judged(report, *rules, control=control, when_inconclusive="pass")
            failed[control] += any(one.fails for one in found)
    assert failed["none"] > 12
    assert failed["family"] <= 8
    assert failed["family"] <= failed["fdr"] <= failed["none"]


def test_p_is_told_and_adjusted() -> None:
    rules = [{"metric": "choice_accuracy", "min": 0.9}, {"metric": "noul_accuracy", "min": 0.9}]
    plain, held = (judged(REPORT, *rules, control=control) for control in ("none", "family"))
    assert all(one.p <= two.p for one, two in zip(plain, held, strict=True))
    assert held[0].p == pytest.approx(min(1.0, 2 * min(plain[0].p, plain[1].p)), rel=0.5)


def test_reach_in_standard_errors() -> None:
    reach = reach_of(Measurement(0.5, 10, 10, interval=(0.3, 0.8)))
    assert reach.bounds(0.025) == pytest.approx((0.3, 0.8))
    assert reach.chance_beyond(0.3, above=True) == pytest.approx(0.025)
    assert reach.chance_beyond(0.8, above=False) == pytest.approx(0.025)
    assert reach.chance_beyond(0.5, above=True) == pytest.approx(0.5)
    assert Reach(1.0, 0.1, 0.0).chance_beyond(0.5, above=False) == 1.0
    assert Reach(1.0, 0.1, 0.0).chance_beyond(1.0, above=False) == 0.5
    assert Reach(1.0, why="x").bounds(0.05) is None
    assert Reach(1.0, why="x").chance_beyond(0.5, above=True) is None


def test_assert_no_regression() -> None:
    base = run(0.9, 300)
    assert assert_no_regression(run(0.9, 300), base).exit_code == 0
    with pytest.raises(AssertionError, match=r"accuracy = .*drop"):
        assert_no_regression(run(0.6, 300), base)
    policy = {"version": 2, "rules": [{"metric": "accuracy", "min": 0.99}]}
    with pytest.raises(AssertionError):
        assert_no_regression(base, base, policy)


def test_flags_and_policy_make_one_verdict() -> None:
    ours = side_of(REPORT)
    limits = Limits(mins={"accuracy": 0.99, "gone": 0.1}, maxs={"ece": 0.5}, min_accuracy=0.5)
    found = verdict(limits, ours)
    assert [(one.rule, one.outcome) for one in found.findings] == [
        ("min accuracy", "fail"),
        ("min gone", "missing"),
        ("min choice_accuracy", "pass"),
        ("max ece", "pass"),
    ]
    assert found.exit_code == 1
    assert verdict(Limits(), ours).gated is False
    assert limits.recorded(REPORT.overall) == {
        "thresholds": {
            "min": {"accuracy": 0.99, "gone": 0.1, "choice_accuracy": 0.5},
            "max": {"ece": 0.5},
            "baseline_tolerance": {},
        }
    }
    noul = document_side({"overall": {"noul_accuracy": 0.4}}, "r")
    (found,) = verdict(Limits(min_accuracy=0.5), noul).findings
    assert (found.rule, found.outcome) == ("min noul_accuracy", "fail")


@pytest.mark.parametrize(
    "limits",
    [
        Limits(mins={"ece": float("nan")}),
        Limits(maxs={"ece": float("inf")}),
        Limits(min_accuracy=float("nan")),
        Limits(tolerances={"ece": 0.1}),
        Limits(direction="worse"),
        Limits(margins={"accuracy": 0.1}),
        Limits(margins={"accuracy": float("nan")}),
    ],
)
def test_limits_that_decide_nothing_are_refused(limits: Limits) -> None:
    with pytest.raises(PolicyError):
        limits.check(baseline=False)


def test_version_1_on_a_run_just_made_counts_as_on_its_file() -> None:
    policy = {
        "version": 1,
        "rules": [
            {"slice": {"language": "en"}, "metric": "choice_accuracy", "min_count": 67, "min": 0.1},
            {"slice": {"language": "en"}, "metric": "ece", "min_count": 134, "max": 0.9},
            {"slice": {"language": "en"}, "metric": "ece", "min_count": 135, "max": 0.9},
            {"slice": {"tag": "even"}, "metric": "selective_accuracy@50", "min_count": 200, "max_drop": 0.1},
            {"slice": {"qid": "gone"}, "metric": "ece", "min_count": 1, "max": 0.9},
        ],
    }
    document = json.loads(json.dumps(REPORT.to_json()))
    live, saved = (check(run, policy, document) for run in (REPORT, document))
    assert live == saved
    assert [one.outcome for one in live.findings] == ["pass", "pass", "missing", "pass", "missing"]
    assert check(REPORT.to_json(cases=False), policy, document) == live


def test_a_damaged_block_of_measurements_is_no_crash() -> None:
    document = REPORT.to_json(cases=False)
    document["measurements"] = {"overall": {"accuracy": {"value": "x"}}, "slices": 3}
    assert outcome(document, metric="accuracy", min=0.1) == "missing"
    assert verdict(Limits(mins={"ece": 0.0}), document_side(document, "r")).exit_code == 0
