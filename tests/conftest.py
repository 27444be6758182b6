"""Fixtures every test may use."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from steelyard.cli.main import _run

os.environ.setdefault("OMP_NUM_THREADS", "1")
hypothesis.settings.register_profile("ci", derandomize=True, deadline=None)
if os.environ.get("CI"):
    # A landing must not depend on luck; everyone else looks for new examples.
    hypothesis.settings.load_profile("ci")

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared data beside the checkout."""
    if not SHARED.is_dir():
        pytest.skip("no ../shared folder beside this checkout")
    return SHARED


@pytest.fixture(scope="session")
def open_cases(shared: Path) -> Path:
    """Input files of the known failure classes."""
    return shared / "cases" / "open"


class Ran:
    """What a command line did."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def steelyard(capfd: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run a command line in this process, exit code and both streams included."""

    def run(*args: Any) -> Ran:
        capfd.readouterr()
        code = _run([str(arg) for arg in args])
        out, err = capfd.readouterr()
        return Ran(code, out, err)

    return run


TEAM = {"type": "choice", "instructions": "Which team?", "criteria": ["billing", "support", "sales"]}
LEVEL = {"type": "score", "instructions": "How urgent?", "criteria": ["low", "mid", "high"]}
FLAG = {"type": "noul", "instructions": "Is it about money?"}


def make_rows(n: int, questions: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """`n` labelled rows over three question types, deterministic and varied."""
    asked = questions or {"team": TEAM, "level": LEVEL, "flag": FLAG}
    labels = {"team": TEAM["criteria"], "level": [0, 1, 2], "flag": [True, False]}
    return [
        {
            "id": f"r{i}",
            "state": f"message number {i}",
            "questions": asked,
            "expected": {qid: labels[qid][(i * 7 + k) % len(labels[qid])] for k, qid in enumerate(asked)},
            "language": ("en", "de", "fr")[i % 3],
            "tags": ["even" if i % 2 == 0 else "odd", "all"],
        }
        for i in range(n)
    ]
