"""Every code block of the README and docs is run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import PAGE, made_page

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    scripts = tmp_path / "bin"
    scripts.mkdir()
    launcher = scripts / "steelyard"
    launcher.write_text(f'#!/bin/sh\nexec {sys.executable} -m steelyard "$@"\n', encoding="utf-8")
    launcher.chmod(0o755)
    environment = os.environ | {"PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}
    for language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language == "python":
            exec(compile(text, str(page), "exec"), {"__name__": "docs"})
        elif language == "console":
            for line in text.splitlines():
                command = line.removeprefix("$ ")
                if line.startswith("$ ") and not command.startswith("pip "):
                    ran = subprocess.run(
                        ["bash", "-c", command], env=environment, capture_output=True, check=False
                    )
                    assert ran.returncode == 0, f"{command}: {ran.stderr.decode()}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert target.startswith("http") or (page.parent / target).exists(), target


def test_every_metric_is_documented() -> None:
    assert PAGE.read_text(encoding="utf-8") == made_page(), "make pages"


def test_every_engine_and_command_is_documented() -> None:
    from steelyard.cli.main import COMMANDS
    from steelyard.engines._base import ENGINES

    engines = (ROOT / "docs" / "engines.md").read_text(encoding="utf-8")
    everything = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert all(f"`{name}" in engines for name in ENGINES)
    assert all(f"steelyard {name}" in everything for name in COMMANDS)
