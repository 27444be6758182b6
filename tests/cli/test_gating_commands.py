"""Comparing, gating and keeping baselines from the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ran, make_rows

POLICY = """
version = 2
[[rules]]
name = "no worse"
metric = "accuracy"
margin = 0.1
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steelyard: Callable[..., Ran]) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    Path("data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in make_rows(90)), encoding="utf-8")
    for name, accuracy in (("good", 0.95), ("bad", 0.5)):
        spec = f"scripted,accuracy={accuracy}"
        assert steelyard("run", "data.jsonl", "-e", spec, "--out", name, "--quiet").code == 0
    Path("gates.toml").write_text(POLICY, encoding="utf-8")
    return tmp_path


def read(path: str) -> Any:
    return json.loads(Path(path).read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("line", "code", "out", "err"),
    [
        ("compare good --baseline good", 0, "gate: 9 of 9 limits kept", ""),
        ("compare bad --baseline good", 1, "regressions (10 of", "FAIL choice_accuracy"),
        ("compare bad --baseline good --direction worse --slice language", 1, "by language", "FAIL"),
        ("compare good --baseline bad --direction worse", 1, "", "FAIL mean_confidence"),
        ("compare good --baseline good --gate-policy gates.toml", 0, "gate: 1 of 1 limits kept", ""),
        ("compare bad --baseline good --gate-policy gates.toml", 1, "", "FAIL accuracy = "),
        ("compare bad --baseline good --margin accuracy=0.1", 1, "", "drop"),
        ("compare good --baseline good --margin accuracy=0.1 --all --resamples 20", 0, "smece", ""),
        ("compare good --baseline good --margin nothing=0.1", 2, "", 'no metric named "nothing"'),
        ("compare good --baseline good --margin mean_confidence=0.1", 2, "", "neither better"),
        ("compare good --baseline good --tolerance typo=0.1", 0, "", "typo names no metric"),
        ("compare good", 2, "", "name a --baseline, or two runs"),
        ("compare good bad", 0, "every two runs", ""),
        ("compare good bad --min ece=0.1", 2, "", "limits go with --baseline"),
        ("compare good bad --baseline good", 2, "", "--baseline goes with one report"),
        ("compare good --baseline none.json", 2, "", "none.json: cannot be read"),
        ("compare none --baseline good", 2, "", "none: cannot be read"),
        ("compare good --baseline good --data none.jsonl", 2, "", "none.jsonl: cannot be read"),
        ("compare good --baseline good --gate-policy none.toml", 2, "", "none.toml: cannot be read"),
        ("compare good --baseline good --json no/where.json", 2, "", "does not exist"),
        ("compare good --baseline good --junit no/where.xml", 2, "", "does not exist"),
        ("run data.jsonl --tolerance ece=0.1", 2, "", "need a baseline"),
        ("run data.jsonl --gate-policy gates.toml", 2, "", "needs a baseline; name one with --baseline"),
        ("run data.jsonl --sequential", 2, "", "--sequential needs a --baseline"),
        ("run data.jsonl --baseline good --sequential --min ece=1", 2, "", "takes one limit"),
        ("run data.jsonl --baseline good --sequential --margin ece=0.1", 2, "", "takes one limit"),
        ("run data.jsonl --max-ece 0.0001 --quiet", 1, "", "unattainable"),
        ("run data.jsonl --min choice_accuracy=0 --quiet", 0, "gate: 1 of 1 limits kept", ""),
        ("run data.jsonl --min gone=0 --quiet", 1, "", "FAIL gone is not in the report"),
        ("baseline update good --to base.json", 0, "wrote base.json", ""),
        ("baseline update good --to good/report.json", 2, "", "is the baseline itself"),
        ("baseline update good/report.json --to no/base.json", 2, "", "does not exist"),
        ("baseline update data.jsonl --to base.json", 2, "", "not JSON"),
        ("baseline update", 2, "", "Missing argument"),
    ],
)
def test_lines(here: Path, steelyard: Callable[..., Ran], line: str, code: int, out: str, err: str) -> None:
    ran = steelyard(*line.split())
    assert ran.code == code, ran.err + ran.out
    assert out in ran.out
    assert err in ran.err
    assert "Traceback" not in ran.err


def test_a_run_held_to_a_baseline_keeps_its_files_when_it_fails(
    here: Path, steelyard: Callable[..., Ran]
) -> None:
    line = "run data.jsonl -e scripted,accuracy=0.5 --out new --quiet --baseline good --margin accuracy=0.05"
    ran = steelyard(*line.split(), "--json", "r.json", "--junit", "j.xml", "--slice", "language")
    assert ran.code == 1
    assert "FAIL accuracy = " in ran.err
    found = read("new/comparison.json")
    assert found["schema"] == "steelyard-comparison/1"
    assert found["verdict"]["exit_code"] == 1
    assert found["comparison"]["paired"]["joining"]["scored"] == 270
    assert "## Failed" in Path("new/comparison.md").read_text(encoding="utf-8")
    assert read("r.json")["config"]["thresholds"]["margin"] == {"accuracy": 0.05}
    assert 'name="margin accuracy"' in Path("j.xml").read_text(encoding="utf-8")
    assert read("new/report.json")["config"]["thresholds"] == read("r.json")["config"]["thresholds"]


def test_the_policy_is_recorded_and_a_change_of_it_is_said(here: Path, steelyard: Callable[..., Ran]) -> None:
    line = "run data.jsonl -e scripted,accuracy=0.95 --quiet --baseline good --gate-policy gates.toml"
    assert steelyard(*line.split(), "--json", "r.json").code == 0
    assert read("r.json")["config"]["gate_policy"]["rules"][0]["margin"] == 0.1
    assert steelyard("compare", "r.json", "--baseline", "good", "--gate-policy", "gates.toml").err == ""
    Path("other.toml").write_text(POLICY.replace("0.1", "0.2"), encoding="utf-8")
    ran = steelyard("compare", "r.json", "--baseline", "good", "--gate-policy", "other.toml")
    assert "warning: --gate-policy differs from the gate_policy the report records" in ran.err


def test_a_sequential_run_stops_with_its_verdict(here: Path, steelyard: Callable[..., Ran]) -> None:
    rows = [row | {"id": f"r{at}"} for at, row in enumerate(make_rows(500))]
    Path("big.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    steelyard("run", "big.jsonl", "-e", "scripted,accuracy=0.9", "--out", "base", "--quiet")
    line = "run big.jsonl -e scripted,accuracy=0.5 --out seq --quiet --baseline base --sequential"
    ran = steelyard(*line.split(), "--seed", "4")
    assert ran.code == 1
    assert "FAIL accuracy is surely worse than the baseline" in ran.err
    assert "rows were not asked: the gate had seen enough" in ran.out
    assert "go by its verdict" in ran.out
    assert steelyard("baseline", "update", "seq", "--to", "b.json").code == 2
    (found,) = read("seq/comparison.json")["verdict"]["findings"]
    assert found["rule"] == "sequential accuracy"


def test_a_baseline_is_updated_whole_and_says_what_moves(here: Path, steelyard: Callable[..., Ran]) -> None:
    assert steelyard("baseline", "update", "good", "--to", "base.json").code == 0
    assert Path("base.json").read_bytes() == Path("good/report.json").read_bytes()
    assert "nothing moves" in steelyard("baseline", "update", "good", "--to", "base.json").out
    ran = steelyard("baseline", "update", "bad", "--to", "base.json", "--dry-run")
    assert "choice_accuracy    baseline=" in ran.out
    assert Path("base.json").read_bytes() == Path("good/report.json").read_bytes()
    os.symlink("base.json", "link.json")
    assert "is the baseline itself" in steelyard("baseline", "update", "base.json", "--to", "link.json").err
    line = "run data.jsonl -e scripted,fail_every=9 --on-error skip --quiet --json e.json"
    steelyard(*line.split())
    ran = steelyard("baseline", "update", "e.json", "--to", "base.json")
    assert (ran.code, "10 errored row(s)" in ran.err) == (2, True)
    Path("other.jsonl").write_text("".join(json.dumps(row) + "\n" for row in make_rows(40)), encoding="utf-8")
    steelyard("run", "other.jsonl", "--quiet", "-e", "scripted", "--json", "o.json")
    assert "dataset_sha256: was" in steelyard("baseline", "update", "o.json", "--to", "base.json").out
    assert steelyard("compare", "good", "--baseline", "base.json").code == 1


def test_github_annotates_inside_a_build_and_is_text_outside(
    here: Path, steelyard: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = ("compare", "bad", "--baseline", "good", "--margin", "accuracy=0.1", "--github")
    ran = steelyard(*line)
    assert "## Failed" in ran.out
    assert "::error" not in ran.out
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(here / "summary.md"))
    (here / "summary.md").write_text("before\n", encoding="utf-8")
    ran = steelyard(*line)
    assert "::error title=steelyard%3A margin accuracy::accuracy = " in ran.out
    assert "::warning title=steelyard%3A regression,file=data.jsonl,line=" in ran.out
    summary = (here / "summary.md").read_text(encoding="utf-8")
    assert summary.startswith("before\n## Failed")
    assert "### Regressions" in summary
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(here / "no" / "summary.md"))
    assert steelyard(*line).code == 2
    monkeypatch.delenv("GITHUB_STEP_SUMMARY")
    assert steelyard(*line).code == 1


def test_another_dataset_names_the_key_and_both_values(here: Path, steelyard: Callable[..., Ran]) -> None:
    Path("other.jsonl").write_text("".join(json.dumps(row) + "\n" for row in make_rows(89)), encoding="utf-8")
    steelyard("run", "other.jsonl", "-e", "scripted,accuracy=0.95", "--quiet", "--json", "o.json")
    line = ["compare", "o.json", "--baseline", "good"]
    for flags in ([], ["--margin", "accuracy=0.5"], ["--tolerance", "ece=1"]):
        ran = steelyard(*line, *flags)
        assert ran.code == 1
        assert "FAIL baseline is not comparable: dataset_sha256 (dataset bytes): baseline is" in ran.err
        for report in ("o.json", "good/report.json"):
            assert read(report)["config"]["dataset_sha256"] in ran.err
    assert "267 answers of 89 cases" in ran.out


PLUGIN_TEST = """
import pytest
from steelyard import evaluate, Dataset


def test_same(steelyard):
    run = steelyard.evaluate("scripted,accuracy=0.95", "data.jsonl")
    verdict = steelyard.assert_no_regression(run, "good", "gates.toml")
    assert verdict.exit_code == 0
    with pytest.raises(pytest.fail.Exception, match="about 189 cases would do: cannot tell"):
        steelyard.assert_no_regression(run, "good")


def test_worse(steelyard):
    run = steelyard.evaluate("scripted,accuracy=0.5", Dataset.from_jsonl("data.jsonl"))
    steelyard.assert_no_regression(run, "good", "gates.toml")
"""


def test_the_pytest_fixture(here: Path) -> None:
    Path("test_engine.py").write_text(PLUGIN_TEST, encoding="utf-8")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("COV")}
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_engine.py"],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "1 failed, 1 passed" in ran.stdout
    assert "drop" in ran.stdout
    assert "asserting.py" not in ran.stdout


def test_importing_the_plugin_is_cheap() -> None:
    code = "import sys, steelyard.pytest_plugin; print('numpy' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"
