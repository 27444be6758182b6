"""An export on ONNX Runtime, with and without torch: the peer's own figures, to the last digit."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from steelyard import Dataset, EngineError, InputError, RunOptions, Settings, evaluate, make_engine
from tests.conftest import SHARED

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: make test-laya sets it up")
pytest.importorskip("tokenizers", reason="tokenizers is not installed: make test-laya sets it up")


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the shared checkpoint, as a loader may rewrite its files."""
    if not SHARED.is_dir():
        pytest.skip("no ../shared folder beside this checkout")
    folder = tmp_path_factory.mktemp("laya") / "checkpoint"
    shutil.copytree(SHARED / "peer" / "checkpoint", folder)
    return folder


def spec(checkpoint: Path, **settings: Any) -> str:
    extra = "".join(f",{name}={value}" for name, value in settings.items())
    return f"onnx:{SHARED / 'peer' / 'tiny.onnx'},model={checkpoint}{extra}"


def quality(report: Any) -> dict[str, float]:
    return {name: value for name, value in report["overall"].items() if not name.endswith("_ms")}


@pytest.mark.parametrize("batch_size", [1, 16])
def test_every_figure_and_answer_is_the_peers(checkpoint: Path, batch_size: int) -> None:
    data = Dataset.from_jsonl(SHARED / "peer" / "support.jsonl")
    report = evaluate(spec(checkpoint), data, options=RunOptions(batch_size=batch_size)).to_json()
    peer = json.loads((SHARED / "peer" / "report_onnx.json").read_text(encoding="utf-8"))
    assert quality(report) == quality(peer)
    fields = ("type", "choice", "score", "noul", "confidence", "answer_confidence")
    for ours, theirs in zip(report["cases"], peer["cases"], strict=True):
        for field in fields:
            assert ours["answer"].get(field) == theirs["answer"].get(field)
        assert ours["answer"].get("probabilities") == theirs["answer"].get("probabilities")


def test_the_checkpoint_may_be_on_the_hub(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A cache as the hub's client lays it out; nothing is downloaded.
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    commit, place = "a" * 40, tmp_path / "models--some--tiny"
    shutil.copytree(checkpoint, place / "snapshots" / commit)
    (place / "refs").mkdir()
    (place / "refs" / "main").write_text(commit, encoding="utf-8")
    data = Dataset.from_jsonl(SHARED / "peer" / "support.jsonl")
    here = evaluate(spec(checkpoint), data)
    there = evaluate(f"onnx:{SHARED / 'peer' / 'tiny.onnx'},model=some/tiny", data)
    assert quality(there.to_json()) == quality(here.to_json())
    assert there.engine["settings"]["model_revision"] == commit
    with pytest.raises(EngineError, match="some/tiny is no folder, and cannot be had from the hub"):
        make_engine(f"onnx:{SHARED / 'peer' / 'tiny.onnx'},model=some/tiny,revision={'b' * 40}")
    with pytest.raises(InputError, match="a folder has none"):
        make_engine(spec(checkpoint, revision="b" * 40))


def test_facts_and_identity(checkpoint: Path) -> None:
    data = Dataset.from_jsonl(SHARED / "peer" / "support.jsonl")
    report = evaluate(spec(checkpoint, exact="true"), data)
    assert report.engine["revision"].startswith("sha256:")
    assert report.engine["settings"]["probabilities"] == "exact"
    assert report.counts["server"]["input_tokens"] > 1000
    assert report.counts["server"]["rows_truncated"] == 0
    values = report.table.confidence
    assert any(round(value, 4) != value for value in values.tolist())


def test_planted_temperatures_are_shown_raw_and_applied(checkpoint: Path, tmp_path: Path) -> None:
    folder = tmp_path / "sharp"
    shutil.copytree(checkpoint, folder)
    config = json.loads((folder / "rl_agent_config.json").read_text(encoding="utf-8"))
    config["temperature_by_options"] = {"choice:11+": 0.1}
    (folder / "rl_agent_config.json").write_text(json.dumps(config), encoding="utf-8")
    data = Dataset.from_jsonl(SHARED / "peer" / "support.jsonl")
    found = {
        unclamped: evaluate(spec(folder, unclamped=unclamped), data, settings=Settings(deep=()))
        for unclamped in ("false", "true")
    }
    shown = found["true"].engine["settings"]["temperatures"]
    assert shown["by_bucket"] == {"choice:11+": 0.1}
    assert shown["applied_by_bucket"] == {"choice:11+": 0.5}
    # The colder the temperature, the surer the wrong answers.
    assert found["true"].overall["ece"] > found["false"].overall["ece"]
    assert found["true"].overall["choice_accuracy"] == found["false"].overall["choice_accuracy"]


def test_calibration_files(checkpoint: Path, tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    bins = {"choice:3-5": {"bins": 2, "values": [0.25, 0.75]}}
    path.write_text(
        json.dumps({"version": 2, "temperature": [5, 5, 5], "binning_map": bins}), encoding="utf-8"
    )
    data = Dataset.from_jsonl(SHARED / "peer" / "support.jsonl")
    report = evaluate(spec(checkpoint, calibration=path), data)
    few = (report.table.kind == 0) & (report.table.options < 6)
    assert set(report.table.confidence[few].tolist()) <= {0.25, 0.75}
    assert report.overall["mean_confidence"] < 0.96
    path.write_text("[]", encoding="utf-8")
    with pytest.raises(InputError, match="a calibration is an object"):
        make_engine(spec(checkpoint, calibration=path))
    path.write_text("{", encoding="utf-8")
    with pytest.raises(InputError, match="not JSON"):
        make_engine(spec(checkpoint, calibration=path))


def test_long_states_are_cut_and_it_is_said(checkpoint: Path) -> None:
    question = {"type": "noul", "instructions": "Does the customer ask for money back?"}
    long = "word " * 2000
    rows = [
        {"state": state, "questions": {"q": question}, "expected": {"q": True}}
        for state in ("short", long, [long, "I want my money back"], {"text": "hi"})
    ]
    report = evaluate(spec(checkpoint), Dataset.from_rows(rows, "d"), options=RunOptions(batch_size=4))
    assert report.counts["server"]["rows_truncated"] == 2
    assert report.counts["scored"] == 4


def test_option_order_gives_answers_in_the_callers_order(checkpoint: Path) -> None:
    criteria = {"billing": "invoices", "technical": "errors", "account": "login", "sales": "quotes"}
    body = {"type": "choice", "instructions": "Which team?", "criteria": criteria}
    rows = [
        {"state": "I cannot log in", "questions": {"q": asked}, "expected": {"q": "account"}}
        for asked in (body, body | {"option_order": [0, 1, 2, 3]}, body | {"option_order": [3, 2, 1, 0]})
    ]
    report = evaluate(spec(checkpoint), Dataset.from_rows(rows, "d"))
    answers = [case["answer"]["probabilities"] for case in report.cases()]
    assert answers[0] == answers[1]
    assert list(answers[2]) == list(criteria)


def test_too_many_options_for_the_window_fail_the_row(checkpoint: Path) -> None:
    body = {"type": "choice", "instructions": "?", "criteria": [f"label {at}" for at in range(200)]}
    rows = [{"state": "s", "questions": {"q": body}, "expected": {"q": "label 1"}}]
    report = evaluate(spec(checkpoint), Dataset.from_rows(rows, "d"), options=RunOptions(on_error="skip"))
    assert "do not fit into 256 tokens" in report.config["errored"][0]["error"]


def test_what_is_no_export_or_no_checkpoint(checkpoint: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs model=FOLDER"):
        make_engine(f"onnx:{SHARED / 'peer' / 'tiny.onnx'}")
    with pytest.raises(InputError, match="cannot be read: No such file"):
        make_engine(f"onnx:{tmp_path / 'none.onnx'},model={checkpoint}")
    rows = [
        {"state": "s", "questions": {"q": {"type": "noul", "instructions": "?"}}, "expected": {"q": True}}
    ]
    data = Dataset.from_rows(rows, "d")
    (tmp_path / "bad.onnx").write_text("no export", encoding="utf-8")
    with pytest.raises(Exception, match="is no export"):
        evaluate(f"onnx:{tmp_path / 'bad.onnx'},model={checkpoint}", data)
    broken = tmp_path / "broken"
    shutil.copytree(checkpoint, broken)
    (broken / "tokenizer" / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match="the tokenizer cannot be read"):
        evaluate(spec(broken), data)
    pinned = Dataset.from_rows([rows[0] | {"model": "english"}], "d")
    with pytest.raises(InputError, match='pins model "english", which engine "onnx" cannot honour'):
        evaluate(spec(checkpoint), pinned)
