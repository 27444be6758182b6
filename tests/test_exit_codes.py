"""A table of command lines and how they end."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ran, make_rows

COMMANDS = [
    ("--help", 0, "Commands", ""),
    ("--version", 0, "steelyard", ""),
    ("nothing", 2, "", "no command named"),
    ("validte x", 2, "", 'did you mean "validate"?'),
    ("validate", 2, "", "Missing argument"),
    ("validate {tmp}/missing.jsonl", 2, "", "missing.jsonl: cannot be read: No such file"),
    ("validate {tmp}", 2, "", "cannot be read: Is a directory"),
    ("validate {tmp}/good.jsonl", 0, "12 rows, 36 labels", ""),
    ("validate {tmp}/good.jsonl --json", 0, '"valid": true', ""),
    ("validate {tmp}/bad.jsonl", 2, "", "bad.jsonl:2: not JSON"),
    ("validate {tmp}/bad.jsonl --json", 2, '"n_faults": 1', ""),
    ("validate {tmp}/empty.jsonl", 2, "", "holds no rows"),
    ("run {tmp}/good.jsonl --quiet", 0, "choice_accuracy", "using lexical"),
    ("run {tmp}/good.jsonl --engine nothing", 2, "", 'no engine named "nothing"'),
    ("run {tmp}/good.jsonl --engine lexicl", 2, "", 'did you mean "lexical"?'),
    ("run {tmp}/good.jsonl --engine lexical,sharpnes=2", 2, "", 'no setting "sharpnes"'),
    ("run {tmp}/good.jsonl --engine lexical:here", 2, "", "takes no target"),
    ("run {tmp}/good.jsonl --engine replay", 2, "", "needs a target"),
    ("run {tmp}/good.jsonl --engine replay:{tmp}/no.jsonl", 2, "", "no.jsonl: cannot be read"),
    ("run {tmp}/good.jsonl --engine scripted,accuracy=2", 2, "", "accuracy must be a number from 0 to 1"),
    ("run {tmp}/good.jsonl --engine python:nothing_here:f", 2, "", "No module named"),
    ("run {tmp}/good.jsonl --engine python:json", 2, "", "name both module and attribute"),
    ("run {tmp}/good.jsonl --batch-size 0", 2, "", "--batch-size"),
    ("run {tmp}/good.jsonl --timeout nan", 2, "", "'nan' is not a number above 0"),
    ("run {tmp}/good.jsonl --timeout inf", 2, "", "'inf' is not a number"),
    ("run {tmp}/good.jsonl --min-confidence 1.5", 2, "", "is not a number from 0 to 1"),
    ("run {tmp}/good.jsonl --min-confidence 0,05", 2, "", "is not a number from 0 to 1"),
    ("run {tmp}/good.jsonl --min-confidence 0.5", 2, "", "takes no min_confidence"),
    ("run {tmp}/good.jsonl --model english", 2, "", "takes no model"),
    ("run {tmp}/good.jsonl --score-within -1", 2, "", "is not a number of at least 0"),
    ("run {tmp}/good.jsonl --max-ece 0.1", 1, "", "FAIL ece = "),
    ("run {tmp}/good.jsonl --device cpu", 2, "", 'engine "lexical" has no setting "device"'),
    ("run {tmp}/good.jsonl --onnx x.onnx", 2, "", "needs model=FOLDER"),
    ("run {tmp}/good.jsonl --onnx x.onnx --engine lexical", 2, "", "--onnx names an engine of its own"),
    ("run {tmp}/good.jsonl --calibration c.json", 2, "", "--calibration goes with --onnx"),
    ("run {tmp}/good.jsonl --max-cost 1 --engine lexical", 2, "", 'has no setting "max_cost"'),
    ("run {tmp}/good.jsonl --max-cost 0", 2, "", "is not a number above 0"),
    ("run {tmp}/good.jsonl --slice colour", 2, "", "'colour' is not one of"),
    ("run {tmp}/good.jsonl --retry-errors", 2, "", "--retry-errors needs --out"),
    ("run {tmp}/good.jsonl --json {tmp}/no/r.json", 2, "", "does not exist"),
    ("run {tmp}/good.jsonl --json {tmp}", 2, "", "is a directory"),
    (
        "run {tmp}/good.jsonl --engine scripted,fail_every=5 --quiet",
        2,
        "",
        "row 4, question team: scripted failure",
    ),
    ("run {tmp}/good.jsonl --engine scripted,bad_every=5 --quiet", 2, "", "probabilities"),
    ("run {tmp}/good.jsonl --engine scripted,fail_every=5 --on-error skip --quiet", 0, "6 errored", ""),
    (
        "run {tmp}/good.jsonl --engine scripted,fail_every=1 --on-error skip --quiet",
        0,
        "nothing was measured",
        "",
    ),
    ("run {tmp}/pinned.jsonl --quiet", 2, "", 'pinned.jsonl:1: pins model "english"'),
    ("rescore {tmp}/good.jsonl", 2, "", "not JSON"),
    ("rescore {tmp}", 2, "", "run.json: cannot be read"),
    ("rescore {tmp}/nothing", 2, "", "does not exist"),
    ("engines", 0, "lexical", ""),
    ("engines --json", 0, '"name": "replay"', ""),
]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps(row) for row in make_rows(12)]
    (tmp_path / "good.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "bad.jsonl").write_text(lines[0] + '\n{"state": \n', encoding="utf-8")
    (tmp_path / "empty.jsonl").write_text("# nothing\n\n", encoding="utf-8")
    pinned = json.dumps(make_rows(1)[0] | {"model": "english"})
    (tmp_path / "pinned.jsonl").write_text(pinned + "\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(("line", "code", "out", "err"), COMMANDS, ids=[line for line, *_ in COMMANDS])
def test_exit_code(
    files: Path, steelyard: Callable[..., Ran], line: str, code: int, out: str, err: str
) -> None:
    ran = steelyard(*line.format(tmp=files).split())
    assert ran.code == code, ran.err
    assert out in ran.out
    assert err in ran.err
    assert "Traceback" not in ran.out + ran.err


def test_every_error_line_names_the_program(files: Path, steelyard: Callable[..., Ran]) -> None:
    ran = steelyard("run", files / "good.jsonl", "--engine", "replay:none")
    assert all(line.startswith("steelyard: ") for line in ran.err.strip().split("\n"))


def test_named_engine_of_the_toml_file(files: Path, steelyard: Callable[..., Ran]) -> None:
    Path("steelyard.toml").write_text(
        '[engines.mine]\nspec = "scripted,seed=3"\naccuracy = 1.0\n', encoding="utf-8"
    )
    ran = steelyard(
        "run", files / "good.jsonl", "--engine", "mine,sharpness=0", "--quiet", "--json", "r.json"
    )
    assert ran.code == 0, ran.err
    engine = json.loads(Path("r.json").read_text(encoding="utf-8"))["engine"]
    assert (engine["name"], engine["settings"]["accuracy"], engine["settings"]["seed"]) == (
        "scripted",
        1.0,
        3,
    )
    assert "mine" in steelyard("engines").out


@pytest.mark.parametrize("text", ["[engines\n", "engines = 3\n", "[engines.mine]\nx = 1\n"])
def test_broken_toml_file(files: Path, steelyard: Callable[..., Ran], text: str) -> None:
    Path("steelyard.toml").write_text(text, encoding="utf-8")
    ran = steelyard("run", files / "good.jsonl", "--engine", "mine")
    assert ran.code == 2
    assert "steelyard.toml" in ran.err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("--engine python:json:dumps --batch-size 4 --on-error skip", "does not batch"),
        ("--engine lexical --concurrency 4", "declares no overlapping calls"),
        ("--engine lexical --sort-by-length", "--sort-by-length needs a --batch-size"),
        ("--engine scripted --score-within 0.5 --limit 1", ""),
    ],
)
def test_what_has_no_effect_is_said(
    files: Path, steelyard: Callable[..., Ran], flags: str, words: str
) -> None:
    ran = steelyard("run", files / "good.jsonl", "--quiet", *flags.split())
    assert ran.code == 0
    assert words in ran.err
    assert bool(ran.err) is bool(words)


def test_a_tolerance_without_score_answers_is_said(files: Path, steelyard: Callable[..., Ran]) -> None:
    row = {"state": 1, "questions": {"q": {"type": "noul", "instructions": "?"}}, "expected": {"q": True}}
    (files / "noul.jsonl").write_text(json.dumps(row), encoding="utf-8")
    line = ["--score-within", "0.5", "--json", files / "r.json"]
    ran = steelyard("run", files / "noul.jsonl", "--engine", "scripted", "--quiet", *line)
    assert "score_within_0.5 has no value" in ran.err
    assert "score_within_0.5 has no value" in steelyard("rescore", files / "r.json").err
