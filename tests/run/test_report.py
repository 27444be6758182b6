"""The report as a file: what is in it, byte for byte."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from steelyard import Dataset, InputError, ReportError, RunOptions, Settings, evaluate, rescore_report
from steelyard.formats.files import check_writable, whole_file, write_whole
from tests.conftest import FLAG, TEAM, make_rows

TIMES = ("latency_p50_ms", "latency_p95_ms", "cost_per_decision_p50_ms", "cost_per_decision_p95_ms")


def timeless(report: Any) -> Any:
    report.overall = {name: value for name, value in report.overall.items() if name not in TIMES}
    return report


def test_same_inputs_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        report = timeless(evaluate("scripted,seed=2", Dataset.from_rows(make_rows(40))))
        report.write_json(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert b"NaN" not in (tmp_path / "a").read_bytes()


def test_the_file_is_the_document(tmp_path: Path) -> None:
    report = evaluate("scripted", Dataset.from_rows(make_rows(7)))
    for cases in (True, False):
        report.write_json(tmp_path / "r.json", cases=cases)
        text = (tmp_path / "r.json").read_text(encoding="utf-8")
        assert json.loads(text) == json.loads(json.dumps(report.to_json(cases=cases)))
    assert json.loads(text)["cases"] == []


def test_top_level_and_peer_names_only_in_overall() -> None:
    document = evaluate("scripted", Dataset.from_rows(make_rows(30))).to_json()
    assert list(document)[:3] == ["config", "overall", "slices"]
    assert list(document)[-1] == "cases"
    peer = {"choice_accuracy", "noul_accuracy", "score_mae", "mean_confidence", "ece", "brier", "aurc"}
    assert set(document["overall"]) == peer | {"selective_accuracy@50", "selective_accuracy@80", *TIMES}
    assert set(document["slices"]) == {"language", "model", "qid", "tag"}
    assert set(document["measurements"]["slices"]) == {
        "language",
        "model",
        "qid",
        "tag",
        "type",
        "option_count",
    }
    config = document["config"]
    assert config["schema"] == "laya-evals-report/1"
    assert config["coverage_metric_definition"] == 2
    assert "laya_version" not in config
    found = document["measurements"]["overall"]["choice_accuracy"]
    assert set(found) == {"value", "n", "cases", "better", "definition", "interval", "method", "deff"}


def test_option_order_is_kept() -> None:
    question = TEAM | {"criteria": ["zeta", "alpha", "mid"]}
    rows = [{"state": "s", "questions": {"q": question}, "expected": {"q": "mid"}}]
    case = next(iter(evaluate("lexical", Dataset.from_rows(rows)).cases()))
    assert list(case["answer"]["probabilities"]) == ["zeta", "alpha", "mid"]
    assert case["question"]["criteria"] == ["zeta", "alpha", "mid"]


def test_cases_can_be_joined() -> None:
    rows = make_rows(4)
    rows[2]["state"] = {"b": 1, "a": 2}
    report = evaluate("scripted", Dataset.from_rows(rows))
    cases = list(report.cases())
    assert [(case["row"], case["qid"]) for case in cases][:4] == [
        (0, "team"),
        (0, "level"),
        (0, "flag"),
        (1, "team"),
    ]
    assert {case["id"] for case in cases} == {"r0", "r1", "r2", "r3"}
    assert len({case["state_sha256"] for case in cases}) == 4


def test_confusion_counts() -> None:
    rows = [
        {"state": s, "questions": {"team": TEAM, "flag": FLAG}, "expected": {"team": s, "flag": s == "sales"}}
        for s in ("sales", "billing", "billing")
    ]
    report = evaluate(
        lambda s, q: {"team": {"choice": "billing"}, "flag": {"noul": 0.9}}, Dataset.from_rows(rows)
    )
    assert report.to_json()["confusion"] == {
        "flag": {"false": {"true": 2}, "true": {"true": 1}},
        "team": {"billing": {"billing": 2}, "sales": {"billing": 1}},
    }


def test_nothing_scored_is_nothing_measured() -> None:
    report = evaluate(
        "scripted,fail_every=1", Dataset.from_rows(make_rows(5)), options=RunOptions(on_error="skip")
    )
    document = report.to_json()
    assert document["overall"] == {}
    assert document["measurements"]["overall"] == {}
    assert document["measurements"]["slices"]["language"] == {"de": {}, "en": {}, "fr": {}}
    assert document["cases"] == []
    assert document["confusion"] == {}


def test_dataset_without_labels_or_questions() -> None:
    rows = [
        {"state": 1, "questions": {"q": FLAG}, "expected": {}},
        {"state": 2, "questions": {}, "expected": {}},
    ]
    report = evaluate(lambda s, q: {"answers": {qid: {"noul": 0.5} for qid in q}}, Dataset.from_rows(rows))
    assert report.counts["not_applicable"] == 1
    assert report.to_json()["cases"] == []


def test_rescore_of_our_own_report(tmp_path: Path) -> None:
    report = evaluate(
        "scripted,bad_every=9",
        Dataset.from_rows(make_rows(40)),
        options=RunOptions(on_error="skip"),
        settings=Settings(score_within=(0.5,)),
    )
    report.write_json(tmp_path / "r.json")
    again = rescore_report(tmp_path / "r.json", Settings())
    assert again.overall == report.overall
    assert again.slices == report.slices
    assert again.config["dataset_sha256"] == report.config["dataset_sha256"]
    assert again.engine == report.engine


def test_rescore_without_probabilities(tmp_path: Path) -> None:
    rows = make_rows(6)
    answers = {"team": {"type": "choice", "choice": "sales"}, "flag": {"type": "noul", "noul": 1}}
    answers["level"] = {"type": "score", "score": 1.5}
    report = evaluate(lambda s, q: answers, Dataset.from_rows(rows))
    document = report.to_json()
    for case in document["cases"]:
        for key in ("question", "row"):
            case.pop(key)
    (tmp_path / "r.json").write_text(json.dumps(document), encoding="utf-8")
    again = rescore_report(tmp_path / "r.json", Settings())
    for name in ("choice_accuracy", "noul_accuracy", "score_mae"):
        assert again.overall[name] == report.overall[name]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not JSON"),
        ("[]", "a report is an object, not array"),
        ('{"config": {}}', "overall must be an object"),
        ('{"config": {}, "overall": {}, "slices": {}, "cases": {}}', "cases must be an array"),
        ('{"config": {}, "overall": {}, "slices": {}, "cases": []}', "holds no cases"),
        (
            '{"config": {}, "overall": {}, "slices": {}, "cases": [{"qid": "q"}]}',
            "case 0 lacks qid, answer or expected",
        ),
        ('{"config": {}, "overall": {"x": NaN}, "slices": {}, "cases": []}', "NaN is not JSON"),
        (
            '{"config": {}, "config": {}, "overall": {}, "slices": {}, "cases": []}',
            'key "config" appears twice',
        ),
    ],
)
def test_reports_that_are_none(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "r.json").write_text(text, encoding="utf-8")
    with pytest.raises(ReportError, match=words):
        rescore_report(tmp_path / "r.json", Settings())


def test_a_row_answered_twice_in_a_report(tmp_path: Path) -> None:
    case = {"row": 0, "qid": "q", "answer": {"type": "noul", "noul": 0.5}, "expected": True}
    document = {"config": {}, "overall": {}, "slices": {}, "cases": [case, case]}
    (tmp_path / "r.json").write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(ReportError, match="twice for one row"):
        rescore_report(tmp_path / "r.json", Settings())


def test_whole_files(tmp_path: Path) -> None:
    target = tmp_path / "f"
    write_whole(target, b"one")
    target.chmod(0o600)
    write_whole(target, b"two")
    assert target.read_bytes() == b"two"
    assert target.stat().st_mode & 0o777 == 0o600

    def stopped_halfway() -> None:
        with whole_file(target) as stream:
            stream.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        stopped_halfway()
    assert target.read_bytes() == b"two"
    assert os.listdir(tmp_path) == ["f"]
    with pytest.raises(InputError, match="is a folder"):
        write_whole(tmp_path, b"x")
    for path, words in ((tmp_path, "is a folder"), (tmp_path / "no" / "f", "does not exist")):
        with pytest.raises(InputError, match=words):
            check_writable(path)


def test_unwritable_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InputError, match="not writable"):
        check_writable(tmp_path / "f")
