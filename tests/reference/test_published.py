"""Real recorded answers and the figures published about them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steelyard import Dataset, RunOptions, Settings, evaluate, rescore_report


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_swedish_support_to_the_last_digit(shared: Path) -> None:
    folder = shared / "data" / "laya_swedish_support"
    report = evaluate(f"replay:{folder / 'responses.jsonl'}", Dataset.from_jsonl(folder / "dataset.jsonl"))
    published = json.loads((folder / "published_overall.json").read_text(encoding="utf-8"))
    by_qid = published.pop("by_qid")
    assert {name: report.overall[name] for name in published} == published
    for qid, figures in by_qid.items():
        assert {name: report.slices["qid"][qid][name] for name in figures} == figures
    assert report.measurements.overall["ece"].n == 60


@pytest.mark.parametrize("mode", ["choice_fa", "choice_en"])
def test_persian_with_ten_bins(shared: Path, tmp_path: Path, mode: str) -> None:
    folder = shared / "data" / "laya_persian_fa"
    cases = [c for c in read_lines(folder / "responses_multilingual.jsonl") if c["mode"] == mode]
    labels = ["billing", "technical", "cancel", "other"]
    question = {"type": "choice", "instructions": "What does the customer want?", "criteria": labels}
    data = Dataset.from_rows(
        {
            "id": c["case_id"],
            "state": c["case_id"],
            "questions": {"q": question},
            "expected": {"q": c["expected"]},
        }
        for c in cases
    )
    answers = tmp_path / "answers.jsonl"
    with answers.open("w", encoding="utf-8") as stream:
        for c in reversed(cases):
            fields = {"probabilities": c["probabilities"], "answer_confidence": c["answer_confidence"]}
            answer = {"type": "choice", "choice": c["prediction"], **fields}
            stream.write(json.dumps({"id": c["case_id"], "answers": {"q": answer}}) + "\n")
    report = evaluate(f"replay:{answers}", data, settings=Settings(bins=10))
    published = json.loads((folder / "published_summary.json").read_text(encoding="utf-8"))[mode]
    assert report.overall["choice_accuracy"] == published["accuracy"]
    assert report.overall["ece"] == pytest.approx(published["ece_10_bins"], abs=1e-16)
    # The publisher summed in plain floating point: the last digit of a mean may differ.
    assert report.overall["mean_confidence"] == pytest.approx(published["mean_answer_confidence"], abs=2e-16)
    assert report.measurements.overall["macro_f1"].value == published["macro_f1"]
    assert report.measurements.overall["ece"].definition == "ece/10-equal-width/1"


def test_massive_english_to_four_decimals(shared: Path, tmp_path: Path) -> None:
    folder = shared / "data" / "laya_massive_en_release"
    cases = read_lines(folder / "cases.jsonl")
    data = Dataset.from_rows(
        {
            "state": c["state"],
            "questions": {
                "intent": {"type": "choice", "instructions": c["instructions"], "criteria": c["options"]}
            },
            "expected": {"intent": c["gold_label"]},
            "language": c["lang"],
        }
        for c in cases
    )
    answers = tmp_path / "answers.jsonl"
    with answers.open("w", encoding="utf-8") as stream:
        for c in cases:
            answer = {"type": "choice", "choice": c["pred_label"], "answer_confidence": c["confidence"]}
            stream.write(json.dumps({"intent": answer}) + "\n")
    report = evaluate(f"replay:{answers}", data)
    published = json.loads((folder / "published_report.json").read_text(encoding="utf-8"))
    measured = report.measurements.overall
    found = {
        "n": measured["choice_accuracy"].n,
        "accuracy": round(report.overall["choice_accuracy"], 4),
        "macro_f1": round(measured["macro_f1_positions"].value, 4),
        "ece": round(report.overall["ece"], 4),
        "mean_confidence": round(report.overall["mean_confidence"], 4),
        "acc_at_50_coverage": round(report.overall["selective_accuracy@50"], 4),
    }
    assert found == {name: published[name] for name in found}
    assert round(measured["macro_f1"].value, 4) == 0.6743
    assert measured["macro_f1"].details == {"classes": 29}


def test_peer_report_is_judged_again_exactly(shared: Path) -> None:
    saved = json.loads((shared / "peer" / "report.json").read_text(encoding="utf-8"))
    report = rescore_report(shared / "peer" / "report.json", Settings())
    assert report.overall == saved["overall"]
    assert report.slices == saved["slices"]
    for key in ("dataset_sha256", "questions_sha256", "schema", "coverage_metric_definition"):
        assert report.config[key] == saved["config"][key]


@pytest.mark.parametrize("batch_size", [1, 7])
def test_peer_report_replayed_on_its_dataset(shared: Path, batch_size: int) -> None:
    saved = json.loads((shared / "peer" / "report.json").read_text(encoding="utf-8"))
    data = Dataset.from_jsonl(shared / "peer" / "support.jsonl")
    report = evaluate(
        f"replay:{shared / 'peer' / 'report.json'}",
        data,
        options=RunOptions(batch_size=batch_size),
        settings=Settings(score_within=(0.25,)),
    )
    quality = {name: value for name, value in saved["overall"].items() if not name.endswith("_ms")}
    assert {name: report.overall[name] for name in quality} == quality
    assert report.slices == saved["slices"]
    assert report.config["dataset_sha256"] == saved["config"]["dataset_sha256"]
    assert report.config["questions_sha256"] == saved["config"]["questions_sha256"]


def test_our_cases_carry_what_the_peers_do(shared: Path) -> None:
    saved = json.loads((shared / "peer" / "report.json").read_text(encoding="utf-8"))
    data = Dataset.from_jsonl(shared / "peer" / "support.jsonl")
    replay = f"replay:{shared / 'peer' / 'report.json'}"
    ours = list(evaluate(replay, data, settings=Settings(score_within=(0.25,))).cases())
    assert len(ours) == len(saved["cases"])
    for mine, theirs in zip(ours, saved["cases"], strict=True):
        assert {key: mine[key] for key in theirs} == theirs
