"""The known failure classes, by their numbers in the case list."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from steelyard import Dataset, DatasetError, InvalidAnswerError, RunOptions, evaluate
from steelyard.formats.columns import CaseColumns
from steelyard.metrics.accuracy import f1_scores
from steelyard.metrics.timing import median_and_p95, timing_metrics
from steelyard.run.log import RunLog
from steelyard.stats.bins import bin_index, expected_calibration_error
from steelyard.stats.ranking import accepted_at, area_under_risk_coverage, levels
from tests.conftest import Ran

SKIP = RunOptions(on_error="skip")


def pairs(open_cases: Path, name: str) -> tuple[Any, Any]:
    document = json.loads((open_cases / f"{name}.pairs.json").read_text(encoding="utf-8"))
    return np.array(document["confidence"], float), np.array(document["correct"], float)


def replayed(open_cases: Path, name: str, options: RunOptions = SKIP) -> Any:
    data = Dataset.from_jsonl(open_cases / f"{name}.data.jsonl")
    return evaluate(f"replay:{open_cases / f'{name}.answers.jsonl'}", data, options=options)


def columns(found: Any) -> dict[str, float]:
    c, y = found
    accepted, hits = levels(c, y)
    half, most = accepted_at(accepted, 0.5), accepted_at(accepted, 0.8)
    return {
        "ece": expected_calibration_error(c, y),
        "brier": float(np.mean((c - y) ** 2)),
        "aurc": area_under_risk_coverage(accepted, hits),
        "@50": hits[half] / accepted[half],
        "n@50": accepted[half],
        "@80": hits[most] / accepted[most],
        "n@80": accepted[most],
    }


def test_g01_zero_confidence_is_in_the_first_bin(open_cases: Path) -> None:
    c, y = pairs(open_cases, "G01_zero_conf")
    found = columns((c, y))
    assert found["ece"] == pytest.approx(0.4, abs=1e-15)
    assert (found["brier"], found["aurc"]) == pytest.approx((0.315, 0.125))
    assert expected_calibration_error(np.zeros(1), np.ones(1)) == 1.0
    assert np.bincount(bin_index(c, 15)).sum() == len(c)


def test_g02_confidence_one_has_no_bin_of_its_own(open_cases: Path) -> None:
    found = columns(pairs(open_cases, "G02_one_conf"))
    assert found["ece"] == pytest.approx(0.3375)
    assert (found["brier"], found["aurc"]) == pytest.approx((0.290625, 0.458333), abs=1e-6)
    assert expected_calibration_error(np.array([0.95, 1.0]), np.array([1.0, 0.0])) == pytest.approx(0.475)


def test_g03_noul_is_calibrated_on_its_answer(open_cases: Path) -> None:
    report = replayed(open_cases, "G03_noul_side")
    assert report.table.confidence.tolist() == pytest.approx([0.9, 0.9, 0.98, 0.6])
    assert report.overall["noul_accuracy"] == 0.5
    assert report.overall["mean_confidence"] == pytest.approx(0.845)
    assert report.overall["ece"] == pytest.approx(0.355)
    assert report.overall["brier"] == pytest.approx(0.2951)
    assert report.overall["aurc"] == pytest.approx(0.291667, abs=1e-6)
    half = report.measurements.overall["selective_accuracy@50"]
    assert (half.value, half.n, half.details["accepted"]) == (pytest.approx(2 / 3), 3, 3)
    assert report.overall["selective_accuracy@80"] == 0.5


def test_g04_constant_and_few(open_cases: Path) -> None:
    constant = columns(pairs(open_cases, "G04_constant"))
    assert (constant["ece"], constant["aurc"], constant["@50"], constant["n@50"]) == (
        pytest.approx(0.2),
        pytest.approx(0.5),
        0.5,
        10,
    )
    few = columns(pairs(open_cases, "G04_small"))
    assert (few["ece"], few["aurc"], few["@50"]) == (pytest.approx(0.98), 1.0, 0.0)


def test_g05_numbers_that_are_no_probabilities(open_cases: Path) -> None:
    report = replayed(open_cases, "G05_invalid_probs")
    errored = {entry["index"]: entry["error"] for entry in report.config["errored"]}
    assert sorted(errored) == [0, 1, 2, 3, 4, 5]
    assert "NaN" in errored[0]
    assert "infinite" in errored[1]
    assert "-0.1" in errored[2]
    assert 'probabilities.billing is string "0.9"' in errored[5]
    assert report.counts["scored"] == 2
    assert report.measurements.overall["choice_accuracy"].n == 2
    # Row 6: a boolean is not a confidence, so the probabilities speak for it.
    assert report.table.confidence[6:].tolist() == [0.6, 0.9]
    with pytest.raises(
        InvalidAnswerError, match=r"row 0, question team: answers\.team\.probabilities\.billing is NaN"
    ):
        replayed(open_cases, "G05_invalid_probs", RunOptions())


def test_g05_last_row_alone(open_cases: Path, tmp_path: Path) -> None:
    for name in ("data", "answers"):
        lines = (open_cases / f"G05_invalid_probs.{name}.jsonl").read_text(encoding="utf-8").splitlines()
        line = json.loads(lines[7])
        line.pop("row", None)
        (tmp_path / f"x.{name}.jsonl").write_text(json.dumps(line), encoding="utf-8")
    report = replayed(tmp_path, "x")
    assert report.overall["ece"] == pytest.approx(0.1)
    assert report.overall["brier"] == pytest.approx(0.01)


def test_g06_sums_are_named_and_never_mended(open_cases: Path) -> None:
    report = replayed(open_cases, "G06_sum_not_one")
    errored = {entry["index"]: entry["error"] for entry in report.config["errored"]}
    assert sorted(errored) == [0, 3]
    assert "sum to 0.5" in errored[0]
    assert "sum to 1.8" in errored[3]
    assert report.table.confidence[1:3].tolist() == [0.6666, 0.50005]


def test_g07_ties_do_not_depend_on_order(open_cases: Path) -> None:
    found = columns(pairs(open_cases, "G07_ties"))
    assert found == columns(pairs(open_cases, "G07_ties_shuffled"))
    assert found["aurc"] == pytest.approx(121 / 360)
    assert (found["@50"], found["n@50"], found["@80"], found["n@80"]) == (pytest.approx(2 / 3), 6, 0.625, 8)
    assert (found["ece"], found["brier"]) == (pytest.approx(0.161), pytest.approx(0.20201))


def test_g08_ties_at_the_top(open_cases: Path) -> None:
    report = replayed(open_cases, "G08_ties_argmax")
    labels = report.table.names.labels
    assert [labels[code] for code in report.table.pred_label[:2]] == ["red", "blue"]
    assert report.table.correct.tolist() == [1, 0, 1, 0]
    assert report.counts["ties_at_top"] == 2


def test_g09_macro_f1_over_labels_that_occur(open_cases: Path) -> None:
    document = json.loads((open_cases / "G09_macro_f1.json").read_text(encoding="utf-8"))
    wanted = {"mixed": 0.6, "single": 1.0, "stray": 3 / 7}
    for name, value in wanted.items():
        codes = [np.array([ord(label) for label in document[name][side]]) for side in ("gold", "pred")]
        assert f1_scores(*codes)[0].mean() == pytest.approx(value)


def test_g10_errors_stay_in_sight(open_cases: Path) -> None:
    report = replayed(open_cases, "G10_errored_rows")
    assert (report.counts["rows"], report.counts["scored"], report.counts["errored"]) == (10, 8, 2)
    accuracy = report.measurements.overall["choice_accuracy"]
    assert (accuracy.value, accuracy.n) == (0.75, 8)
    assert accuracy.details == {"errored": 2, "errors_as_wrong": 0.6}
    assert [entry["index"] for entry in report.config["errored"]] == [3, 8]
    found = (report.overall["ece"], report.overall["brier"], report.overall["aurc"])
    assert found == pytest.approx((0.05, 0.19, 0.25))


def test_g11_a_failure_is_not_an_answer(open_cases: Path) -> None:
    report = replayed(open_cases, "G11_failed_but_matching")
    assert (report.counts["scored"], report.counts["errored"]) == (1, 3)
    assert report.overall["choice_accuracy"] == 1.0
    assert report.counts["by_reason"] == {"recorded_error": 2, "invalid_answer": 1}


def test_g16_bom_crlf_comments_and_line_numbers(open_cases: Path) -> None:
    marked, plain = (
        Dataset.from_jsonl(open_cases / f"G16_{name}.data.jsonl") for name in ("bom_crlf", "plain")
    )
    assert len(marked) == len(plain) == 3
    assert marked.questions_sha256 == plain.questions_sha256
    assert marked.sha256 != plain.sha256
    assert "\r" not in "".join(case.state for case in marked)
    assert [case.line for case in marked] == [case.line for case in plain] == [3, 4, 5]
    with pytest.raises(DatasetError, match=r"G16_bad_line6\.data\.jsonl:6: not JSON") as fault:
        Dataset.from_jsonl(open_cases / "G16_bad_line6.data.jsonl")
    assert "line 1" not in str(fault.value)


def test_g17_only_a_line_feed_ends_a_line(open_cases: Path) -> None:
    data = Dataset.from_jsonl(open_cases / "G17_line_seps.data.jsonl")
    assert [len(case.state) for case in data] == [12, 5, 9]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("G18_dup_keys", 'key "team" appears twice'),
        ("G18_dup_question", 'key "team" appears twice'),
        ("G18_nan_literal", "NaN is not JSON"),
        ("G20_5000_digits", "too many digits"),
    ],
)
def test_g18_g20_refused_with_place(
    open_cases: Path, steelyard: Callable[..., Ran], name: str, text: str
) -> None:
    ran = steelyard("validate", open_cases / f"{name}.data.jsonl")
    assert ran.code == 2
    assert f"{name}.data.jsonl:1: " in ran.err
    assert text in ran.err


def test_g19_half_a_surrogate_pair(open_cases: Path, tmp_path: Path) -> None:
    data = Dataset.from_jsonl(open_cases / "G19_surrogate.data.jsonl")
    written = []
    for name in ("a", "b"):
        report = evaluate("lexical", data, out=tmp_path / name)
        assert report.counts["scored"] == 2
        report.overall = {key: 0.0 if key.endswith("_ms") else value for key, value in report.overall.items()}
        report.write_json(tmp_path / f"{name}.json")
        written.append((tmp_path / f"{name}.json").read_bytes())
    assert written[0] == written[1]
    json.loads(written[0].decode("utf-8"))
    assert data.case(0).state == "half pair \ud835 here"
    echoed = evaluate(lambda state, _: {"team": {"choice": "billing", "note": state}}, data).to_json()
    assert json.loads(json.dumps(echoed))["cases"][0]["answer"]["note"] == data.case(0).state


def test_g20_big_integers_survive(open_cases: Path) -> None:
    data = Dataset.from_jsonl(open_cases / "G20_big_ints.data.jsonl")
    assert data.case(0).state == {"order": 9007199254740993, "neg": -18446744073709551617}
    echoed = evaluate(lambda state, _: {"team": {"choice": "billing", "order": state["neg"]}}, data).to_json()
    assert echoed["cases"][0]["answer"]["order"] == -18446744073709551617


def test_g21_label_types_all_at_once(open_cases: Path, steelyard: Callable[..., Ran]) -> None:
    ran = steelyard("validate", open_cases / "G21_label_types.data.jsonl")
    assert ran.code == 2
    lines = [int(line.split(".jsonl:")[1].split(":")[0]) for line in ran.err.strip().split("\n")]
    assert lines == [1, 3, 4, 5, 6, 7, 8]


def test_g22_labels_that_look_the_same(open_cases: Path, steelyard: Callable[..., Ran]) -> None:
    ran = steelyard("validate", open_cases / "G22_normal_form.data.jsonl")
    assert ran.code == 2
    first, second = ran.err.strip().split("\n")
    assert ":1: " in first
    assert "only by Unicode normal form" in first
    assert ":3: " in second


def test_g23_batches_short_and_reordered(open_cases: Path) -> None:
    data = Dataset.from_jsonl(open_cases / "G23_batch.data.jsonl")

    class Short:
        def predict_batch(self, states: list[str], questions: Any) -> list[Any]:
            return [{"team": {"choice": "billing"}} for _ in states][: len(states) - 1]

    report = evaluate(Short(), data, options=RunOptions(batch_size=4, on_error="skip"))
    assert report.counts["scored"] == 0
    assert "4 requests sent, 3 answers came back" in report.config["errored"][0]["error"]
    assert report.overall == {}


def test_g23_timing_rules() -> None:
    found = timing_metrics(np.array([100.0] * 4 + [20.0]), np.array([4.0] * 4 + [1.0]))
    assert found == {
        "latency_p50_ms": 100.0,
        "latency_p95_ms": 100.0,
        "cost_per_decision_p50_ms": 25.0,
        "cost_per_decision_p95_ms": 25.0,
    }
    assert median_and_p95(np.arange(1.0, 22.0)) == (11.0, 20.0)
    assert timing_metrics(np.array([np.nan]), np.ones(1)) == {}


def as_log(open_cases: Path, name: str, folder: Path) -> RunLog:
    folder.mkdir()
    (folder / "replies.jsonl").write_bytes((open_cases / f"{name}.cases.jsonl").read_bytes())
    (folder / "run.json").write_text('{"schema": "steelyard-run/1", "dataset_path": "x"}', encoding="utf-8")
    return RunLog(folder)


def test_g24_torn_tail_torn_middle_and_no_final_newline(open_cases: Path, tmp_path: Path) -> None:
    torn = as_log(open_cases, "G24_torn_tail", tmp_path / "tail")
    torn.open({}, "x")
    assert [row for row, _ in torn.lines()] == [0, 1, 2, 3]
    assert len(torn.warnings) == 1
    torn.close()
    middle = as_log(open_cases, "G24_torn_middle", tmp_path / "middle")
    before = middle.path.read_bytes()
    middle.open({}, "x")
    with pytest.raises(ValueError, match=r"replies\.jsonl:3: not a reply record"):
        list(middle.lines())
    assert middle.path.read_bytes() == before
    middle.close()
    whole = as_log(open_cases, "G24_no_final_newline", tmp_path / "whole")
    whole.open({}, "x")
    whole.append([b'{"row":5,"answers":{}}'])
    assert [row for row, _ in whole.lines()] == [0, 1, 2, 3, 4, 5]
    assert not whole.warnings
    whole.close()


def program(
    *args: object, env: dict[str, str] | None = None, **options: Any
) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "steelyard", *map(str, args)]
    return subprocess.run(command, capture_output=True, env=os.environ | (env or {}), check=False, **options)


def test_g25_full_device_leaves_the_old_report(open_cases: Path, tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    target.write_text("old", encoding="utf-8")
    small = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))  # noqa: E731
    args = ("run", open_cases / "G26_wide_text.data.jsonl", "--quiet", "--json", target)
    ran = program(*args, env={"TMPDIR": str(tmp_path)}, preexec_fn=small)
    assert ran.returncode == 2
    assert b"cannot be written" in ran.stderr
    assert b"Traceback" not in ran.stderr
    assert target.read_text(encoding="utf-8") == "old"
    assert [path.name for path in tmp_path.iterdir() if "report" in path.name] == ["report.json"]
    full = program("run", open_cases / "G16_plain.data.jsonl", "--quiet", "--json", "/dev/full")
    assert full.returncode == 2
    assert b"No space left" in full.stderr


def test_g26_pipes_code_pages_and_cells(open_cases: Path, tmp_path: Path) -> None:
    data = open_cases / "G26_wide_text.data.jsonl"
    outputs = []
    for encoding in ("utf-8", "cp1252", "ascii"):
        paths = ["--json", tmp_path / f"{encoding}.json", "--markdown", tmp_path / f"{encoding}.md"]
        ran = program(
            "run", data, "--slice", "language", "--quiet", *paths, env={"PYTHONIOENCODING": encoding}
        )
        assert ran.returncode == 0, ran.stderr
        document = json.loads((tmp_path / f"{encoding}.json").read_bytes())
        quality = {name: value for name, value in document["overall"].items() if not name.endswith("_ms")}
        outputs.append((quality, document["cases"], (tmp_path / f"{encoding}.md").read_bytes()))
    assert outputs[0] == outputs[1] == outputs[2]
    check_tables(outputs[0][2].decode("utf-8"))
    assert "prio\\|hoch" in outputs[0][2].decode("utf-8")
    assert "| a b |" in outputs[0][2].decode("utf-8")


def check_tables(text: str) -> None:
    width = None
    for line in text.split("\n"):
        if not line.startswith("|"):
            width = None
            continue
        pipes = line.replace("\\\\", "").replace("\\|", "").count("|")
        width = width or pipes
        assert pipes == width, line


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_g26_a_closed_pipe_is_not_an_error(open_cases: Path, unbuffered: str) -> None:
    data = open_cases / "G26_wide_text.data.jsonl"
    line = f"{sys.executable} -m steelyard run {data} --quiet --slice language | head -1"
    env = os.environ | ({"PYTHONUNBUFFERED": unbuffered} if unbuffered else {})
    ran = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line}"], capture_output=True, env=env, check=False
    )
    assert ran.returncode in (0, 141)
    assert b"Traceback" not in ran.stderr
    assert b"ignored" not in ran.stderr


@pytest.mark.parametrize("width", ["40", "200"])
def test_g26_the_report_is_the_same_at_any_width(open_cases: Path, width: str) -> None:
    ran = program("validate", open_cases / "G26_wide_text.data.jsonl", env={"COLUMNS": width})
    same = program("validate", open_cases / "G26_wide_text.data.jsonl", env={"COLUMNS": "80"})
    assert ran.stdout == same.stdout
    assert max(map(len, ran.stdout.decode().split("\n"))) <= 400


def test_empty_columns_have_a_summary() -> None:
    assert CaseColumns().summary()["rows"] == 0


REPORTS = ("candidate", "baseline")
BROKEN_LIMITS = ("nan", "NaN", "inf", "-inf", "1e999", "-0.1", "", "0,05", "true")


@pytest.mark.parametrize("value", BROKEN_LIMITS)
@pytest.mark.parametrize("flag", ["--tolerance", "--margin", "--min", "--max", "--min-accuracy", "--max-ece"])
def test_g12_a_limit_that_cannot_fail_is_refused_before_anything_else(
    open_cases: Path, steelyard: Callable[..., Ran], tmp_path: Path, flag: str, value: str
) -> None:
    given = value if flag in ("--min-accuracy", "--max-ece") else f"choice_accuracy={value}"
    negative_is_fine = value == "-0.1" and flag in ("--min", "--max", "--min-accuracy", "--max-ece")
    files = [open_cases / f"G12_{name}.report.json" for name in REPORTS]
    ran = steelyard("compare", files[0], "--baseline", files[1], flag, given)
    assert ran.code == (1 if negative_is_fine else 2)
    if not negative_is_fine:
        assert value in ran.err
        # The engine is never made, nor is the dataset read.
        ran = steelyard("run", tmp_path / "none.jsonl", "--engine", "no_engine", flag, given)
        assert ran.code == 2
        assert "none.jsonl" not in ran.err


@pytest.mark.parametrize("value", [*BROKEN_LIMITS, "null", '"0.9"', "NaN", "1e999"])
def test_g12_nor_does_a_policy_take_one(
    open_cases: Path, steelyard: Callable[..., Ran], tmp_path: Path, value: str
) -> None:
    rule = '{"slice": {"language": "en"}, "metric": "ece", "min_count": 1, "max_drop": %s}'
    files = [open_cases / f"G12_{name}.report.json" for name in REPORTS]
    for version in (1, 2):
        policy = tmp_path / "policy.json"
        text = f'{{"version": {version}, "rules": [{rule % value}]}}'
        policy.write_text(text, encoding="utf-8")
        line = ("--baseline", files[1], "--gate-policy", policy)
        assert steelyard("compare", files[0], *line).code == 2
        ran = steelyard("run", tmp_path / "none.jsonl", *line)
        assert ran.code == 2
        assert "none.jsonl" not in ran.err


def test_g12_a_real_drop_fails_and_the_limits_are_recorded(
    open_cases: Path, steelyard: Callable[..., Ran], tmp_path: Path
) -> None:
    files = [open_cases / f"G12_{name}.report.json" for name in REPORTS]
    ran = steelyard("compare", files[0], "--baseline", files[1], "--tolerance", "choice_accuracy=0.02")
    assert ran.code == 1
    assert "FAIL choice_accuracy = 0.3000, baseline 0.9000: down by 0.6000, tolerance 0.0200" in ran.err
    data = tmp_path / "d.jsonl"
    data.write_text(
        '{"state": 1, "questions": {"q": {"type": "noul", "instructions": "?"}}, "expected": {"q": true}}\n',
        encoding="utf-8",
    )
    line = ("--quiet", "--max", "ece=0.9", "--min-accuracy", "0", "--json", tmp_path / "r.json")
    assert steelyard("run", data, *line).code == 0
    config = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["config"]
    assert config["thresholds"] == {
        "min": {"noul_accuracy": 0.0},
        "max": {"ece": 0.9},
        "baseline_tolerance": {},
    }


def test_g13_a_broken_baseline_is_refused(
    open_cases: Path, steelyard: Callable[..., Ran], tmp_path: Path
) -> None:
    report = open_cases / "G12_candidate.report.json"
    lines = (open_cases / "G13_baselines.txt").read_text(encoding="utf-8").splitlines()
    path = tmp_path / "baseline.json"
    said = [
        "nan",
        "null",
        "boolean",
        "string",
        "no metrics",
        "no metrics",
        "not null",
        "not array",
        "inf",
        "not JSON",
    ]
    for text, word in zip(lines, said, strict=True):
        path.write_text(text, encoding="utf-8")
        for command in (("compare", report), ("run", tmp_path / "d.jsonl")):
            (tmp_path / "d.jsonl").write_text(
                '{"state": 1, "questions": {"q": {"type": "noul", "instructions": "?"}}, '
                '"expected": {"q": true}}\n',
                encoding="utf-8",
            )
            ran = steelyard(*command, "--baseline", path)
            assert ran.code == 2, text
            assert "baseline.json: " in ran.err
            assert word in ran.err
            if "choice_accuracy" in text:
                assert '"choice_accuracy"' in ran.err
    path.write_bytes(b"")
    assert steelyard("compare", report, "--baseline", path).code == 2
    path.write_bytes(b"\xff\xfe")
    assert steelyard("compare", report, "--baseline", path).code == 2
    assert steelyard("compare", report, "--baseline", tmp_path).code == 2
    assert steelyard("compare", report, "--baseline", tmp_path / "none.json").code == 2


def test_g14_zero_is_a_limit(open_cases: Path, steelyard: Callable[..., Ran], tmp_path: Path) -> None:
    report = open_cases / "G14_report.report.json"
    base = tmp_path / "base.json"
    base.write_text('{"overall": {"ece": 0.2}}', encoding="utf-8")
    for flags, code in (
        (("--max", "ece=0"), 1),
        (("--min", "choice_accuracy=0"), 0),
        (("--max", "score_mae=0"), 0),
        (("--tolerance", "ece=0"), 0),
    ):
        ran = steelyard("compare", report, "--baseline", base, *flags)
        assert ran.code == code, flags
    base.write_text('{"overall": {"ece": 0.2001}}', encoding="utf-8")
    assert steelyard("compare", report, "--baseline", base, "--tolerance", "ece=0").code == 1
    base.write_text('{"overall": {"choice_accuracy": 0}}', encoding="utf-8")
    ran = steelyard("compare", report, "--baseline", base)
    assert "choice_accuracy    baseline=0.0000 value=0.0000 diff=+0.0000" in ran.out


def test_g15_exactly_at_the_limit(open_cases: Path, steelyard: Callable[..., Ran], tmp_path: Path) -> None:
    found = json.loads((open_cases / "G15_cases.json").read_text(encoding="utf-8"))
    ours, base = tmp_path / "ours.json", tmp_path / "base.json"
    for case in found:
        value = case.get("candidate", case.get("value"))
        ours.write_text(json.dumps({"overall": {"choice_accuracy": value}}), encoding="utf-8")
        base.write_text(
            json.dumps({"overall": {"choice_accuracy": case.get("baseline", value)}}), encoding="utf-8"
        )
        limit = case.get("tolerance", case.get("min"))
        flag = "--tolerance" if "tolerance" in case else "--min"
        markdown, document = tmp_path / "c.md", tmp_path / "c.json"
        ran = steelyard(
            "compare",
            ours,
            "--baseline",
            base,
            flag,
            f"choice_accuracy={limit}",
            "--markdown",
            markdown,
            "--json",
            document,
        )
        assert ran.code == (0 if case["pass"] else 1), case
        reasons = [one["reason"] for one in json.loads(document.read_text())["verdict"]["findings"]]
        for reason in reasons:
            assert reason.replace("_", "\\_") in markdown.read_text() or reason in markdown.read_text()
        if not case["pass"]:
            assert any(f"FAIL {reason}" in ran.err for reason in reasons)
    assert "choice_accuracy = 0.79999, limit at least 0.80000" in ran.err
