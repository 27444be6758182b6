"""A run beside its baseline: what is joined, how far it moved, and what is said of it."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from steelyard import (
    Dataset,
    IncomparableError,
    PolicyError,
    ReportError,
    RunOptions,
    Settings,
    assert_regression,
    compare,
    evaluate,
    read_side,
)
from steelyard.core.comparison import Difference
from steelyard.run.compare import Comparing
from steelyard.run.limits import told_apart
from steelyard.run.side import document_side, side_of
from steelyard.run.verdict import cases_needed, judgement
from tests.conftest import FLAG, LEVEL, TEAM, Ran, make_rows

SKIP = RunOptions(on_error="skip")


def data(n: int = 60, **extra: Any) -> Dataset:
    return Dataset.from_rows([row | extra for row in make_rows(n)], "data")


def run(dataset: Dataset, accuracy: float = 0.8, seed: int = 1, **how: Any) -> Any:
    return evaluate(f"scripted,accuracy={accuracy},seed={seed}", dataset, **how)


def document(report: Any) -> Any:
    return json.loads(json.dumps(report.to_json()))


def without_rows(report: Any) -> Any:
    """As another tool writes it: cases say neither row nor id nor state."""
    found = document(report)
    kept = ("qid", "language", "model", "tags", "expected", "answer", "confidence", "correct", "scores")
    found["cases"] = [{key: case[key] for key in kept} for case in found["cases"]]
    del found["measurements"], found["confidence"]
    return found


def differences(found: Any) -> dict[str, Difference]:
    return {one.metric: one for one in found.paired.differences}


def test_a_run_equals_itself() -> None:
    report = run(data())
    found = compare(report, report)
    assert all(delta.ok and delta.diff == 0 for delta in found.deltas)
    assert not [delta for delta in found.deltas if delta.metric.endswith("_ms")]
    assert (found.paired.joining.scored, found.paired.joining.cases) == (180, 60)
    assert not found.paired.flips
    assert {one.value for one in found.paired.differences} == {0.0}
    assert not found.conflicts


def test_gains_and_losses_are_counted_and_tested() -> None:
    dataset = data(300)
    found = compare(run(dataset, 0.9), run(dataset, 0.7))
    accuracy = differences(found)["accuracy"]
    assert accuracy.gains - accuracy.losses == round(accuracy.value * accuracy.n)
    assert accuracy.value == pytest.approx(accuracy.candidate - accuracy.baseline)
    assert accuracy.interval[0] > 0
    assert accuracy.p < 0.001
    assert accuracy.test == "sign flip over cases"
    choice = differences(found)["choice_accuracy"]
    assert (choice.test, choice.method) == ("McNemar mid-p", "Tango score")
    words = {said.metric: said.word for said in found.paired.judgements}
    assert words["accuracy"] == "better"
    back = compare(run(dataset, 0.7), run(dataset, 0.9))
    assert {said.metric: said.word for said in back.paired.judgements}["accuracy"] == "worse"
    assert differences(back)["accuracy"].value == -accuracy.value


def test_flips_are_listed_with_their_states(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in make_rows(90)), encoding="utf-8")
    dataset = Dataset.from_jsonl(path)
    found = compare(run(dataset, 0.7), run(dataset, 0.9))
    flips = found.paired.flips
    accuracy = differences(found)["accuracy"]
    assert sum(not flip.gained for flip in flips) == accuracy.losses
    assert sum(flip.gained for flip in flips) == accuracy.gains
    assert [flip.gained for flip in flips] == sorted(flip.gained for flip in flips)
    first = flips[0]
    assert first.state == f"message number {first.row}"
    assert (first.line, first.id, first.place) == (first.row + 1, f"r{first.row}", f"{path}:{first.row + 1}")
    assert first.expected != first.candidate
    assert first.expected == first.baseline
    sure = [flip.candidate_confidence for flip in flips if not flip.gained]
    assert sure == sorted(sure, reverse=True)


@pytest.mark.parametrize("shape", ["live", "document", "file", "folder", "shuffled", "peer"])
def test_every_shape_of_a_run_gives_the_same_differences(shape: str, tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in make_rows(50)), encoding="utf-8")
    dataset = Dataset.from_jsonl(path)
    ours = run(dataset, 0.9, out=tmp_path / "ours")
    theirs = run(dataset, 0.6, out=tmp_path / "theirs")
    wanted = differences(compare(ours, theirs))
    for report, name in ((ours, "ours"), (theirs, "theirs")):
        report.write_json(tmp_path / name / "report.json")
    found = document(ours)
    if shape == "shuffled":
        # Cases of one row stay together; rows come in any order.
        rows = [found["cases"][at : at + 3] for at in range(0, 150, 3)]
        np.random.default_rng(0).shuffle(rows)
        found["cases"] = [case for row in rows for case in row]
        del found["config"]["dataset"]
    given = {
        "live": (ours, theirs),
        "document": (found, document(theirs)),
        "file": (tmp_path / "ours" / "report.json", tmp_path / "theirs" / "report.json"),
        "folder": (tmp_path / "ours", tmp_path / "theirs"),
        "shuffled": (found, document(theirs)),
        "peer": (without_rows(ours), without_rows(theirs)),
    }[shape]
    got = compare(*given)
    assert got.paired is not None, got.unpaired
    assert got.paired.joining.scored == 150
    for name, one in differences(got).items():
        assert one.value == pytest.approx(wanted[name].value, abs=1e-12), name
        assert one.interval == pytest.approx(wanted[name].interval, abs=1e-12), name


def test_cases_that_say_nothing_of_their_rows_are_joined_in_order() -> None:
    dataset = data(40)
    ours, theirs = without_rows(run(dataset, 0.9)), without_rows(run(dataset, 0.7))
    found = compare(ours, theirs)
    assert found.paired.joining.by_order
    assert found.paired.joining.cases == 120
    del ours["cases"][7]
    assert "name the dataset with --data" in compare(ours, theirs).unpaired
    ours["config"]["errored"] = [{"index": 2, "error": "x"}]
    assert "errored rows" in compare(ours, theirs).unpaired


def test_what_does_not_join_is_counted() -> None:
    rows = make_rows(30)
    theirs = run(Dataset.from_rows(rows, "data"), 0.7)
    other = copy.deepcopy(rows)
    other[0]["state"] = "another message"
    other[1]["expected"]["team"] = next(
        label for label in TEAM["criteria"] if label != other[1]["expected"]["team"]
    )
    other[2]["id"] = "new"
    del other[3]
    ours = run(Dataset.from_rows(other, "data"), 0.9)
    found = compare(document(ours), document(theirs))
    joining = found.paired.joining
    assert (joining.other_state, joining.other_label) == (3, 1)
    assert (joining.only_candidate, joining.only_baseline) == (3, 6)
    assert joining.joined == 29 * 3 - 3 - 1 - 3
    assert [text.split(" ")[0] for text in found.conflicts] == ["dataset_sha256"]
    assert theirs.config["dataset_sha256"] in found.conflicts[0]
    assert ours.config["dataset_sha256"] in found.conflicts[0]


def test_errored_answers_are_left_out_and_counted() -> None:
    dataset = data(40)
    ours = evaluate("scripted,accuracy=0.9,fail_every=10", dataset, options=SKIP)
    found = compare(ours, run(dataset, 0.9))
    assert found.paired.joining.candidate_errored == 12
    assert found.paired.joining.scored == 108
    back = compare(run(dataset, 0.9), document(ours))
    assert back.paired.joining.scored == 108
    assert back.paired.joining.only_candidate == 12


def test_nothing_in_common_is_said() -> None:
    ours = run(Dataset.from_rows(make_rows(5), "a"))
    other = [row | {"id": f"x{at}"} for at, row in enumerate(make_rows(5))]
    found = compare(document(ours), document(run(Dataset.from_rows(other, "b"))))
    assert found.paired is None
    assert found.unpaired == "no answer was scored in both runs on the same state and label"


def test_rows_of_one_id_cannot_be_told_apart() -> None:
    found = document(run(data(5)))
    for case in found["cases"]:
        case["id"] = None
    found["cases"][1], found["cases"][3] = found["cases"][3], found["cases"][1]
    assert "cannot be told apart" in compare(run(data(5)), found).unpaired


def test_groups_stay_together() -> None:
    rows = [row | {"group": at // 3} for at, row in enumerate(make_rows(60))]
    dataset = Dataset.from_rows(rows, "data")
    found = compare(run(dataset, 0.9), run(dataset, 0.6))
    assert found.paired.joining.cases == 20
    assert differences(found)["choice_accuracy"].test == "sign flip over cases"


def test_reports_without_cases_are_compared_overall_only() -> None:
    dataset = data(20)
    ours = run(dataset).to_json(cases=False)
    found = compare(ours, run(dataset).overall)
    assert found.paired is None
    assert "holds no cases" in found.unpaired
    cuts = [delta for delta in found.deltas if not delta.ok]
    assert {delta.metric for delta in cuts} == {"aurc", "selective_accuracy@50", "selective_accuracy@80"}
    assert all("definition 1 (unrecorded)" in delta.incomparable for delta in cuts)
    assert found.identity["schema"] == (None, "laya-evals-report/1")


def test_slices_have_q_values_and_say_whether_they_are_a_part() -> None:
    dataset = data(120)
    found = compare(run(dataset, 0.9), run(dataset, 0.6)).paired.slices
    languages = [one for one in found if one.dimension == "language" and one.found.metric == "noul_accuracy"]
    assert [one.value for one in languages] == ["de", "en", "fr"]
    assert sum(one.found.n for one in languages) == 120
    for one in found:
        assert one.q is None or one.q >= one.found.p - 1e-12
        assert one.part == (one.value not in ("all", "scripted"))


def test_the_verdict_in_words() -> None:
    def found(low: float, high: float, **rest: Any) -> Difference:
        value = (low + high) / 2
        fields = {"better": "higher", "n": 100, "cases": 100, "se": (high - low) / 4} | rest
        return Difference(
            metric="m",
            definition="m/1",
            candidate=0.0,
            baseline=0.0,
            value=value,
            interval=(low, high),
            **fields,
        )

    assert judgement(found(0.01, 0.05)).word == "better"
    assert judgement(found(0.01, 0.05, better="lower")).word == "worse"
    assert judgement(found(-0.05, -0.01, better="lower")).word == "better"
    assert judgement(found(0.01, 0.05, better="neither")).word == "moved"
    assert judgement(found(-0.01, 0.01)).word == "equivalent"
    assert judgement(found(0.005, 0.015)).text == "better, though by less than the margin of 0.02"
    unclear = judgement(found(-0.1, 0.1))
    assert unclear.word == "unclear"
    assert unclear.cases > 100
    assert f"about {unclear.cases} cases would do (100 here)" in unclear.text
    wider = judgement(found(-0.1, 0.1), margin=0.05)
    assert 100 < wider.cases < unclear.cases
    none = Difference(
        metric="m", better="higher", definition="m/1", candidate=1.0, baseline=0.5, value=0.5, n=1, cases=1,
        no_interval="needs at least two cases",
    )  # fmt: skip
    assert judgement(none).text == "needs at least two cases"
    assert cases_needed(none, 0.02) is None


def test_cases_needed_would_be_enough() -> None:
    """Twenty times the data that is missing tells a difference that is there."""
    dataset = data(60)
    small = differences(compare(run(dataset, 0.82, 1), run(dataset, 0.8, 2)))["choice_accuracy"]
    wanted = cases_needed(small, 0.05)
    large = data(wanted)
    found = differences(compare(run(large, 0.8, 1), run(large, 0.8, 2)))["choice_accuracy"]
    assert found.interval[1] - found.interval[0] < 2 * 0.05 * 1.3


def test_definitions_and_confidences_that_differ_are_not_compared() -> None:
    dataset = data(40)
    ours = evaluate("scripted", dataset, settings=Settings(bins=10))
    found = compare(ours, run(dataset, 0.8, 0))
    ece = next(delta for delta in found.deltas if delta.metric == "ece")
    assert ece.incomparable == 'the baseline is "ece/15-equal-width/1", this run "ece/10-equal-width/1"'
    assert not ece.ok
    assert "ece" not in differences(found)
    peer = without_rows(run(dataset))
    assert next(d for d in compare(ours, peer).deltas if d.metric == "ece").incomparable

    def stated(state: str, questions: Any) -> Any:
        return {"team": {"choice": "billing", "confidence": 0.7}, "flag": {"noul": 0.9}}

    rows = [
        {"state": f"s{at}", "questions": {"team": TEAM, "flag": FLAG}, "expected": {"team": "billing"}}
        for at in range(20)
    ]
    asked = Dataset.from_rows(rows, "data")
    mixed = compare(evaluate(stated, asked), run(asked))
    brier = next(delta for delta in mixed.deltas if delta.metric == "brier")
    assert 'confidence of "team" is taken from' in brier.incomparable
    assert next(delta for delta in mixed.deltas if delta.metric == "choice_accuracy").incomparable is None


def test_the_direction_lets_improvements_pass() -> None:
    base = {"overall": {"choice_accuracy": 0.5, "score_mae": 0.5, "mine": 0.5}}
    ours = {"overall": {"choice_accuracy": 0.9, "score_mae": 0.1, "mine": 0.9}}
    both = {delta.metric: delta for delta in compare(ours, base).deltas}
    assert not any(delta.ok for delta in both.values())
    assert (both["choice_accuracy"].improved, both["score_mae"].improved, both["mine"].improved) == (
        True,
        True,
        False,
    )
    worse = {delta.metric: delta.ok for delta in compare(ours, base, direction="worse").deltas}
    assert worse == {"choice_accuracy": True, "score_mae": True, "mine": False}
    back = {delta.metric: delta.ok for delta in compare(base, ours, direction="worse").deltas}
    assert not any(back.values())


@pytest.mark.parametrize("bad", [math.nan, math.inf, -0.1, True, "0.1", None, 10**400])
def test_a_tolerance_that_cannot_fail_is_refused(bad: Any) -> None:
    overall = {"overall": {"ece": 0.1}}
    with pytest.raises(PolicyError, match='tolerance of "ece" is'):
        compare(overall, overall, {"ece": bad})


def test_the_report_compares_as_the_peers_does() -> None:
    report = run(data(30))
    base = {"overall": report.overall | {"latency_p50_ms": 1e9}, "config": {"coverage_metric_definition": 2}}
    assert report.compare(base) == (
        True,
        {
            name: {"baseline": value, "value": value, "diff": 0.0, "tolerance": 0.0}
            for name, value in sorted(report.overall.items())
            if not name.endswith("_ms")
        },
    )
    fine, deltas = report.compare({"overall": {"ece": report.overall["ece"] + 0.1, "gone": 1}}, {"ece": 0.2})
    assert not fine
    assert deltas["gone"]["missing"] is True
    assert math.isnan(deltas["gone"]["diff"])
    assert report.comparable_to(report.to_json(cases=False)) == (True, [])
    fine, reasons = report.comparable_to({"dataset_sha256": "other"})
    assert not fine
    assert reasons == [
        f"dataset_sha256 (dataset bytes): baseline is other, this run is {report.dataset.sha256}"
    ]
    assert assert_regression(report, base)["ece"]["diff"] == 0.0
    with pytest.raises(AssertionError, match=r"evaluation regressed: ece = .* dataset_sha256"):
        assert_regression(report, {"overall": {"ece": 0.9}, "dataset_sha256": "other"})
    with pytest.raises(ReportError, match="not a number"):
        report.compare({"overall": {"ece": None}})


def test_a_folder_needs_its_report_and_its_dataset(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"holds no report\.json"):
        read_side(tmp_path)
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in make_rows(9)), encoding="utf-8")
    report = run(Dataset.from_jsonl(path), out=tmp_path / "run")
    report.write_json(tmp_path / "run" / "report.json")
    moved = path.rename(tmp_path / "moved.jsonl")
    side = read_side(tmp_path / "run")
    assert (side.dataset, side.live, len(side.table)) == (None, False, 27)
    assert compare(tmp_path / "run", report).paired.joining.scored == 27
    side = read_side(tmp_path / "run", near=Dataset.from_jsonl(moved))
    assert side.live
    other = Dataset.from_rows(make_rows(8), "other")
    with pytest.raises(IncomparableError):
        read_side(tmp_path / "run", other)
    report.write_json(tmp_path / "report.json")
    with pytest.raises(ReportError, match="is it a report on this dataset"):
        read_side(tmp_path / "report.json", other)


def test_cases_that_cannot_be_judged_do_not_stop_the_comparison() -> None:
    found = document(run(data(5)))
    found["cases"] = [{"qid": "team", "answer": 3, "expected": "x"}, "nonsense"]
    side = document_side(found, "odd")
    assert side.table is None
    assert side.lacking.startswith("the cases of odd cannot be judged")
    assert "lacks qid, answer or expected" in compare(found, run(data(5))).unpaired


def test_a_drop_of_three_points_in_two_thousand_is_seen_and_none_is_not() -> None:
    """Paired, with one answer in ten that differs."""
    rng = np.random.default_rng(7)
    rows = [
        {"state": f"s{at}", "questions": {"team": TEAM}, "expected": {"team": "billing"}}
        for at in range(2000)
    ]
    dataset = Dataset.from_rows(rows, "data")

    def engine(right: Any) -> Any:
        def predict(state: str, questions: Any) -> Any:
            chosen = "billing" if right[int(state[1:])] else "sales"
            return {"team": {"choice": chosen, "confidence": 0.9}}

        return predict

    base = rng.random(2000) < 0.85
    order = rng.permutation(2000)
    words = {}
    for name, lost, won in (("none", 100, 100), ("drop", 130, 70)):
        ours = base.copy()
        ours[[at for at in order if base[at]][:lost]] = False
        ours[[at for at in order if not base[at]][:won]] = True
        found = compare(evaluate(engine(ours), dataset), evaluate(engine(base), dataset))
        words[name] = {said.metric: said.word for said in found.paired.judgements}["accuracy"]
        assert differences(found)["accuracy"].value == pytest.approx((won - lost) / 2000)
    assert words == {"none": "equivalent", "drop": "worse"}


def test_resamples_give_every_metric_an_interval_near_the_other_one() -> None:
    dataset = data(150)
    ours, theirs = run(dataset, 0.9), run(dataset, 0.7)
    plain = differences(compare(ours, theirs))
    drawn = differences(compare(ours, theirs, settings=Settings(resamples=200, seed=3)))
    assert drawn == differences(compare(ours, theirs, settings=Settings(resamples=200, seed=3)))
    for name, one in drawn.items():
        assert one.method == "shared case bootstrap, percentile" or one.interval is None, name
        if plain[name].interval and one.interval:
            width = plain[name].interval[1] - plain[name].interval[0]
            assert one.interval == pytest.approx(plain[name].interval, abs=0.35 * width), name
    without = {name for name, one in drawn.items() if one.interval is None}
    assert without <= {"coverage@risk1", "coverage@risk5", "coverage@risk10"}
    assert {name for name, one in plain.items() if one.interval is None} > without


def test_told_apart_shows_as_many_digits_as_it_takes() -> None:
    assert told_apart(0.79999, 0.8) == ["0.79999", "0.80000"]
    assert told_apart(0.5, 0.5) == ["0.5000", "0.5000"]
    assert told_apart(1e-17, 0.0) == ["1e-17", "0.0"]


def test_unpaired_types_and_questions_do_not_join() -> None:
    rows = [{"id": "a", "state": "s", "questions": {"q": FLAG}, "expected": {"q": True}}]
    other = [{"id": "a", "state": "s", "questions": {"q": LEVEL}, "expected": {"q": 1}}]
    ours, theirs = (run(Dataset.from_rows(found, "d")) for found in (rows, other))
    assert Comparing(side_of(ours), side_of(theirs)).joining.other_label == 1
    third = [{"id": "a", "state": "s", "questions": {"z": FLAG}, "expected": {"z": True}}]
    found = Comparing(side_of(ours), side_of(run(Dataset.from_rows(third, "d"))))
    assert (found.joining.only_candidate, found.joining.only_baseline) == (1, 1)


def test_a_missing_dataset_file_is_no_fault(tmp_path: Path, steelyard: Callable[..., Ran]) -> None:
    report = run(data(12))
    report.write_json(tmp_path / "r.json")
    ran = steelyard("compare", tmp_path / "r.json", "--baseline", tmp_path / "r.json")
    assert ran.code == 0, ran.err
    assert "paired: 36 answers of 12 cases" in ran.out
