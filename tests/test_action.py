"""The composite action's script, run the way a build runs it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.conftest import make_rows

ROOT = Path(__file__).resolve().parents[1]


def script() -> str:
    """The text of the last step: an indented block."""
    text = (ROOT / "action.yml").read_text(encoding="utf-8").rpartition("run: |\n")[2]
    return re.sub("^ {8}", "", text, flags=re.MULTILINE)


def run(here: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    launcher = here / "bin" / "steelyard"
    launcher.parent.mkdir(exist_ok=True)
    launcher.write_text(f'#!/bin/sh\nexec {sys.executable} -m steelyard "$@"\n', encoding="utf-8")
    launcher.chmod(0o755)
    given = {"DATASET": "d.jsonl", "ENGINE": "scripted", "BASELINE": "", "POLICY": "", "ARGUMENTS": ""}
    environment = os.environ | given | {"OUT": "out", "GITHUB_ACTIONS": "true"} | inputs
    environment["PATH"] = f"{launcher.parent}{os.pathsep}{os.environ['PATH']}"
    environment["GITHUB_STEP_SUMMARY"] = str(here / "summary.md")
    return subprocess.run(
        ["bash", "-e", "-c", script()], cwd=here, env=environment, capture_output=True, text=True, check=False
    )


def test_the_action_gates_a_build(tmp_path: Path) -> None:
    rows = "".join(json.dumps(row) + "\n" for row in make_rows(60))
    (tmp_path / "d.jsonl").write_text(rows, encoding="utf-8")
    first = run(tmp_path, ENGINE="scripted,accuracy=0.95")
    assert first.returncode == 0, first.stderr
    (tmp_path / "out" / "report.json").rename(tmp_path / "base.json")
    arguments = "--margin=accuracy=0.1\n--batch-size=8\n\n"
    line = {"BASELINE": "base.json", "ARGUMENTS": arguments}
    fine = run(tmp_path, OUT="same", ENGINE="scripted,accuracy=0.95", **line)
    assert fine.returncode == 0, fine.stderr
    bad = run(tmp_path, OUT="bad", ENGINE="scripted,accuracy=0.5", **line)
    assert bad.returncode == 1
    assert "::error title=steelyard%3A margin accuracy::" in bad.stdout
    assert "## Failed" in (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert (tmp_path / "bad.junit.xml").exists()


def test_inputs_are_never_part_of_the_script() -> None:
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    for block in re.findall(r"run: (.*?)(?=\n    - |\Z)", text, flags=re.DOTALL):
        assert "${{" not in block


def test_names_with_spaces_and_shell_words_stay_names(tmp_path: Path) -> None:
    rows = "".join(json.dumps(row) + "\n" for row in make_rows(12))
    (tmp_path / "my data; touch x.jsonl").write_text(rows, encoding="utf-8")
    found = run(tmp_path, DATASET="my data; touch x.jsonl", OUT="a b", ARGUMENTS="--slice=$(touch y)")
    assert found.returncode == 2
    assert not (tmp_path / "y").exists()
    assert not (tmp_path / "x.jsonl").exists()
    assert run(tmp_path, DATASET="my data; touch x.jsonl", OUT="a b").returncode == 0
