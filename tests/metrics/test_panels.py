"""Baselines, the confidence bake-off, curves, soft labels and bootstrap intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sklearn.metrics
from benchmarks.coverage import draw
from benchmarks.tables import choice_table

from steelyard import Audit, Dataset, IncomparableError, Report, Settings, evaluate
from steelyard.metrics.bakeoff import USED, bake_off, confidence_steps
from steelyard.metrics.baselines import ABOVE, BELOW, baseline_panels
from steelyard.metrics.confusable import confusable_options, option_use
from steelyard.metrics.curves import reliability_table, risk_coverage_curve
from steelyard.metrics.measure import measure
from steelyard.render.audit import audit_lines
from steelyard.run.mix import check_confidence_mix
from steelyard.stats.ranking import area_under_risk_coverage
from tests.conftest import FLAG, LEVEL, TEAM


def judged(
    questions: dict[str, Any], made: list[tuple[dict[str, Any], dict[str, Any]]], **settings: Any
) -> Report:
    rows = [
        {"state": str(i), "questions": questions, "expected": labels} for i, (labels, _) in enumerate(made)
    ]
    return evaluate(
        lambda state, asked: made[int(state)][1], Dataset.from_rows(rows), settings=Settings(**settings)
    )


def picked(option: str, p: list[float]) -> dict[str, Any]:
    return {"choice": option, "probabilities": dict(zip(TEAM["criteria"], p, strict=True))}


def test_baselines_by_hand() -> None:
    labels = ["billing"] * 6 + ["support"] * 3 + ["sales"]
    made = [({"team": label}, {"team": picked("support", [0.2, 0.5, 0.3])}) for label in labels]
    panel = judged({"team": TEAM}, made, lexical_rows=0).panels.baselines.overall
    assert panel is not None
    found = {name: one.accuracy for name, one in panel.baselines.items()}
    assert panel.accuracy == pytest.approx(0.3)
    assert found["majority"] == pytest.approx(0.6)
    assert found["uniform"] == pytest.approx(1 / 3)
    assert found["first_option"] == pytest.approx(0.6)
    assert found["class_prior"] == pytest.approx((6 * 5 / 9 + 3 * 2 / 9) / 10)
    assert panel.baselines["majority"].skill == pytest.approx((0.3 - 0.6) / 0.4)
    assert panel.baselines["majority"].difference == pytest.approx(-0.3)
    assert "lexical" not in found
    report = judged({"team": TEAM}, made, lexical_rows=0)
    for name, metric in (
        ("majority", "majority"),
        ("class_prior", "prior"),
        ("first_option", "first_option"),
    ):
        assert report.measurements.overall[f"accuracy_skill_{metric}"].value == pytest.approx(
            panel.baselines[name].skill
        )


def test_a_model_below_a_baseline_is_told_so() -> None:
    right = [({"flag": False}, {"flag": {"noul": 0.1}})] * 10
    wrong = [({"flag": False}, {"flag": {"noul": 0.9}})] * 50
    yes = [({"flag": True}, {"flag": {"noul": 0.9}})] * 5
    report = judged({"flag": FLAG}, right + wrong + yes)
    overall = report.panels.baselines.overall
    assert overall is not None
    assert overall.baselines["majority"].verdict == BELOW
    assert overall.baselines["lexical"].n == 65
    better = judged({"flag": FLAG}, [*right * 5, *yes * 8], lexical_rows=0).panels.baselines.overall
    assert better is not None
    assert better.baselines["majority"].verdict == ABOVE
    nothing = baseline_panels(choice_table(np.empty(0), np.empty(0), np.empty(0, int)))
    assert nothing.overall is None


def test_skills_of_reference_forecasts_are_nothing() -> None:
    """Uniform probabilities have no skill against the uniform, and the prior none against itself."""
    made = [({"team": TEAM["criteria"][i % 3]}, {"team": picked("billing", [1 / 3] * 3)}) for i in range(30)]
    found = judged({"team": TEAM}, made, lexical_rows=0).measurements.overall
    assert found["brier_skill_uniform"].value == pytest.approx(0.0)
    assert found["log_skill_uniform"].value == pytest.approx(0.0)
    # Leaving itself out, the prior of balanced labels is a little worse than even.
    assert 0 < found["brier_skill_prior"].value < 0.1
    # Being sure of one of three is wrong twice in three times, at a cost of 2.
    assert found["brier_skill_majority"].value == pytest.approx(1 - (2 / 3) / (4 / 3))


def test_score_skills_by_hand() -> None:
    answer = {"score": 1.0, "probabilities": {"0": 1 / 3, "1": 1 / 3, "2": 1 / 3}}
    made = [({"level": level}, {"level": answer}) for level in (0, 0, 1, 2)]
    found = judged({"level": LEVEL}, made).measurements.overall
    assert found["rps_skill_uniform"].value == pytest.approx(0.0)
    prior = [  # of the other three labels: shares at or below 0 and 1, against the label's own step
        ((1 / 3 - 1) ** 2 + (2 / 3 - 1) ** 2) / 2,
        ((1 / 3 - 1) ** 2 + (2 / 3 - 1) ** 2) / 2,
        ((2 / 3 - 0) ** 2 + (2 / 3 - 1) ** 2) / 2,
        ((2 / 3 - 0) ** 2 + (3 / 3 - 0) ** 2) / 2,
    ]
    own = [((1 / 3 - 1) ** 2 + (2 / 3 - 1) ** 2) / 2] * 2 + [(1 / 9 + 1 / 9) / 2] + [(1 / 9 + 4 / 9) / 2]
    assert found["rps_skill_prior"].value == pytest.approx(1 - sum(own) / sum(prior))
    assert found["score_bias"].value == pytest.approx(0.25)


def test_kappa_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(2)
    gold, pred = rng.integers(0, 3, 80), rng.integers(0, 3, 80)
    made = []
    for g, p in zip(gold.tolist(), pred.tolist(), strict=True):
        shares = {str(k): 0.8 if k == p else 0.1 for k in range(3)}
        made.append(({"level": g}, {"level": {"score": float(p), "probabilities": shares}}))
    found = judged({"level": LEVEL}, made).measurements.overall
    wanted = sklearn.metrics.cohen_kappa_score(gold, pred, weights="quadratic")
    assert found["score_kappa"].value == pytest.approx(wanted, abs=1e-9)
    assert found["score_within_one"].value == pytest.approx(np.mean(np.abs(gold - pred) <= 1))


def test_bake_off_by_hand() -> None:
    answers = [([0.5, 0.3, 0.2], 0.9), ([0.6, 0.2, 0.2], 0.5), ([0.4, 0.35, 0.25], 0.7)]
    made = [
        ({"team": label}, {"team": picked("billing", p) | {"answer_confidence": c, "confidence": 0.1}})
        for (p, c), label in zip(answers, ("support", "billing", "billing"), strict=True)
    ]
    report = judged({"team": TEAM}, made)
    found = {one.measure: one for one in report.panels.confidence.overall}
    assert set(found) == {USED, "stated", "top_probability", "margin", "concentration", "uniform_margin"}
    assert report.panels.mix == {"team": {"answer_confidence": 3}}
    assert found[USED].auroc is not None
    assert found[USED].auroc.value == 0.0
    top = found["top_probability"].auroc
    assert top is not None
    assert top.value == 0.5
    assert top.difference == 0.5
    assert found["stated"].ece.value == pytest.approx(abs(2 / 3 - 0.1))
    # Margins .2, .4, .05; concentration 1 - H / ln 3; top over even (p - 1/3) / (2/3).
    assert found["margin"].ece.value == pytest.approx((0.2 + 0.6 + 0.95) / 3)
    assert found["uniform_margin"].ece.value == pytest.approx((0.25 + 0.6 + 0.9) / 3)
    assert list(report.panels.confidence.questions) == ["team"]


def test_margin_over_uniform_is_the_published_example() -> None:
    question = {"type": "choice", "instructions": "?", "criteria": ["a", "b", "c", "d"]}
    p = {"a": 0.33, "b": 0.25, "c": 0.22, "d": 0.2}
    made = [({"q": "a"}, {"q": {"choice": "a", "probabilities": p}})]
    found = {one.measure: one for one in judged({"q": question}, made).panels.confidence.overall}
    assert found["uniform_margin"].ece.value == pytest.approx(1 - 0.107, abs=5e-4)


def test_bake_off_without_some_measures() -> None:
    made = [({"flag": i % 2 == 0}, {"flag": {"noul": 0.3 + 0.05 * i}}) for i in range(8)]
    found = judged({"flag": FLAG}, made).panels.confidence
    assert [one.measure for one in found.overall] == [
        USED,
        *("top_probability", "margin", "concentration", "uniform_margin"),
    ]
    assert found.left_out == 0
    empty = bake_off(choice_table(np.empty(0), np.empty(0), np.empty(0, int)))
    assert empty.overall == []


def test_other_measures_are_not_compared() -> None:
    check_confidence_mix({"q": {"probabilities": 3}}, {"q": {"probabilities": 9}, "r": {"noul": 1}})
    with pytest.raises(IncomparableError, match=r'confidence of "q" is taken from noul \(3\) in a and from'):
        check_confidence_mix({"q": {"noul": 3}}, {"q": {"probabilities": 3}}, ("a", "b"))


def test_curves_hold_the_metrics() -> None:
    table = draw(np.random.default_rng(1), 900, 1, 1.4)
    found = measure(table, Settings(), ()).overall
    bins = reliability_table(table)
    ece = sum(b.n / 900 * abs((b.accuracy or 0) - (b.confidence or 0)) for b in bins)
    assert ece == pytest.approx(found["ece"].value)
    assert sum(b.n for b in bins) == 900
    assert all(b.interval and b.interval[0] <= (b.accuracy or 0) <= b.interval[1] for b in bins if b.n)
    whole = risk_coverage_curve(table, most=1000)
    assert len(whole) == 900
    accepted = np.array([point.accepted for point in whole], float)
    hits = accepted * (1 - np.array([point.risk for point in whole]))
    assert area_under_risk_coverage(accepted, hits) == pytest.approx(found["aurc"].value)
    thin = risk_coverage_curve(table)
    assert len(thin) == 400
    assert thin[-1] == whole[-1]
    assert {point.threshold for point in thin} <= {point.threshold for point in whole}


def test_bootstrap_agrees_with_influence() -> None:
    table = draw(np.random.default_rng(4), 300, 3, 1.4)
    names = ("auroc_failure", "aurc", "augrc", "e_aurc")
    fast = measure(table, Settings(), (), names).overall
    slow = measure(table, Settings(resamples=1500), (), names).overall
    again = measure(table, Settings(resamples=1500), (), names[::-1]).overall
    for name in names:
        (a, b), (c, d) = fast[name].interval or (0, 0), slow[name].interval or (0, 0)
        assert slow[name].method == "case bootstrap, BCa"
        assert abs((d - c) / (b - a) - 1) < 0.15, name
        assert abs((a + b) - (c + d)) / 2 < 0.2 * (b - a), name
        assert again[name].interval == slow[name].interval


def test_soft_labels_by_hand() -> None:
    soft = {"billing": 0.75, "support": 0.25}
    made = [
        (
            {"team": soft, "flag": {"true": 0.8, "false": 0.2}, "level": {"1": 0.5, "2": 0.5}},
            {
                "team": picked("billing", [0.5, 0.5, 0.0]),
                "flag": {"noul": 0.6},
                "level": {"score": 1.0, "probabilities": {"0": 0.0, "1": 0.5, "2": 0.5}},
            },
        ),
        ({"team": {"sales": 0.5, "support": 0.5}}, {"team": picked("sales", [0.0, 0.5, 0.5])}),
    ]
    report = judged({"team": TEAM, "flag": FLAG, "level": LEVEL}, made)
    found = report.measurements.overall
    assert report.counts["soft_labels"] == 4
    assert report.counts["soft_labels_tied"] == 2
    assert found["choice_accuracy"].n == 1
    assert found["log_loss"].n == found["brier_multiclass"].n == found["ece"].n == 2
    assert found["choice_accuracy"].value == 1.0
    assert found["noul_accuracy"].value == 1.0
    assert found["score_mae"].value == pytest.approx(0.5)
    squares = [0.25**2 * 2, 2 * 0.2**2, 0.0, 0.0]
    assert found["soft_brier"].value == pytest.approx(np.mean(squares))
    log = np.log
    kl = [0.75 * log(1.5) + 0.25 * log(0.5), 0.8 * log(0.8 / 0.6) + 0.2 * log(0.2 / 0.4), 0.0, 0.0]
    assert found["soft_divergence"].value == pytest.approx(np.mean(kl))
    crossed = [-log(0.5), -0.8 * log(0.6) - 0.2 * log(0.4), -log(0.5), -log(0.5)]
    assert found["soft_cross_entropy"].value == pytest.approx(np.mean(crossed))


def test_options_nobody_chose_and_options_not_told_apart() -> None:
    rng = np.random.default_rng(5)
    made = []
    for i in range(60):
        label = TEAM["criteria"][i % 3]
        blur = float(rng.uniform(0.2, 0.3))
        p = [0.1, 0.9 - blur, blur] if label == "billing" else [0.9, 0.1 - blur / 3, blur / 3]
        made.append(({"team": label}, {"team": picked(TEAM["criteria"][int(np.argmax(p))], p)}))
    table = judged({"team": TEAM}, made, lexical_rows=0).table
    unused = [use.option for use in option_use(table) if not use.chosen]
    assert unused == ["sales"]
    worst = confusable_options(table)[-1]
    pairs = {(pair.first, pair.second): pair for pair in confusable_options(table)}
    unclear = pairs["support", "sales"]
    assert unclear.interval is not None
    assert unclear.interval[0] <= 0.5 <= unclear.interval[1]
    assert worst.auroc <= 1.0
    assert pairs["billing", "support"].auroc == 0.0
    assert unclear.n_first == unclear.n_second == 20


def test_agreement_is_no_certainty() -> None:
    """Three right answers of three are not above even odds for sure, and nothing is 1.0 to 1.0."""
    made = [({"flag": True}, {"flag": {"noul": 1.0}})] * 3
    report = judged({"flag": FLAG}, made, lexical_rows=0)
    overall = report.panels.baselines.overall
    assert overall is not None
    assert overall.baselines["uniform"].verdict == "not told apart"
    brier = report.measurements.overall["brier"]
    assert brier.value == 0.0
    assert brier.interval is None
    assert "cannot be seen" in (brier.no_interval or "")


def test_a_shared_majority_is_a_shared_guess() -> None:
    labels = ["billing", "billing", "sales", "sales", "support"]
    made = [({"team": label}, {"team": picked("billing", [0.5, 0.3, 0.2])}) for label in labels]
    for order in (made, made[::-1]):
        panel = judged({"team": TEAM}, order, lexical_rows=0).panels.baselines.overall
        assert panel is not None
        assert panel.baselines["majority"].accuracy == pytest.approx(0.4)


def test_the_worst_threshold_counts_its_own_answers() -> None:
    other = {**LEVEL, "instructions": "How hard?"}
    rows = []
    for i in range(6):
        qid, question = ("level", LEVEL) if i < 4 else ("effort", other)
        rows.append({"state": str(i), "questions": {qid: question}, "expected": {qid: 2}})

    def predict(state: str, asked: Any) -> Any:
        sure = [0.0, 0.0, 1.0] if "level" in asked else [1.0, 0.0, 0.0]
        shares = {str(k): p for k, p in enumerate(sure)}
        return {qid: {"score": float(np.argmax(sure)), "probabilities": shares} for qid in asked}

    found = evaluate(predict, Dataset.from_rows(rows)).measurements.overall["score_threshold_ece"]
    assert found.value == 1.0
    assert (found.n, found.cases) == (2, 2)
    every = {"effort": [1.0, 1.0], "level": [0.0, 0.0]}
    assert found.details == {"question": "effort", "threshold": 0, "every": every}


def test_the_bake_off_and_the_metrics_say_the_same() -> None:
    for per_case in (1, 4):
        table = draw(np.random.default_rng(6), 200, per_case, 1.4)
        found = measure(table, Settings(), ()).overall
        used = bake_off(table).overall[0]
        assert used.auroc is not None
        for score, name in ((used.auroc, "auroc_failure"), (used.aurc, "aurc")):
            assert score.value == pytest.approx(found[name].value)
            assert score.interval == pytest.approx(found[name].interval)
        null = found["ece"].null
        assert null is not None
        assert used.ece.null == pytest.approx(null.expectation)


def test_options_told_apart_perfectly_are_not_called_unclear() -> None:
    made = [
        ({"team": label}, {"team": picked(label, [0.9 if o == label else 0.05 for o in TEAM["criteria"]])})
        for label in TEAM["criteria"] * 6
    ]
    report = judged({"team": TEAM}, made, lexical_rows=0)
    pairs = confusable_options(report.table)
    assert [(pair.auroc, pair.interval) for pair in pairs] == [(1.0, None)] * 3
    found = Audit("d", 18, 1, [], [], [], 0, [], [], pairs)
    assert "tell apart (auroc not above 0.5 for sure): none" in " ".join(audit_lines(found, 5))


@pytest.mark.parametrize(("values", "decimals", "distinct"), [
    ([0.5, 0.25, 0.5], 2, 2),
    ([1.0, 0.0], 0, 2),
    ([0.1, 1.0 - 0.7], 1, 2),
    ([0.1234, 0.5], 4, 2),
    ([0.12345, 0.5], None, 2),
    ([1.0 / 3.0], None, 1),
    ([], None, 0),
])  # fmt: skip
def test_rounded_confidences_are_recognised(values: list[float], decimals: int | None, distinct: int) -> None:
    rows = [{"state": "s", "questions": {"team": TEAM}, "expected": {"team": "billing"}} for _ in values] or [
        {"state": "s", "questions": {"team": TEAM}, "expected": {"team": "billing"}}
    ]
    told = iter(values)

    def predict(state: Any, questions: Any) -> Any:
        value = next(told, None)
        return {"team": {"choice": "billing"} | ({} if value is None else {"answer_confidence": value})}

    report = evaluate(predict, Dataset.from_rows(rows))
    found = confidence_steps(report.table)
    assert (found.n, found.distinct, found.decimals) == (len(values), distinct, decimals)
    assert report.document()["confidence"]["steps"]["distinct"] == distinct
