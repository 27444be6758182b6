"""What a run cost: recorded with each reply, never guessed."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from steelyard import Dataset, RunOptions, Settings, check, evaluate, rescore_run
from tests.conftest import FLAG, Ran

ROWS = [{"state": f"s{at}", "questions": {"q": FLAG}, "expected": {"q": True}} for at in range(8)]


def engine(costs: Any) -> Any:
    def predict(state: str, questions: Any) -> Any:
        return {"answers": {"q": {"noul": 0.9}}, "cost": costs[int(state[1:])]}

    return predict


def outcomes(report: Any, **limits: float) -> list[str]:
    rules = [{"metric": name, "max": limit} for name, limit in limits.items()]
    return [one.outcome for one in check(report, {"version": 2, "rules": rules}).findings]


def test_cost_is_summed_exactly_and_gated(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    data = Dataset.from_jsonl(path)
    report = evaluate(engine([0.1] * 8), data, out=tmp_path / "run")
    assert report.counts["money"] == {"total": math.fsum([0.1] * 8), "rows": 8, "rows_unknown": 0}
    assert outcomes(report, money_total=0.8, money_per_row=0.1) == ["pass", "pass"]
    assert outcomes(report, money_total=0.79, money_per_row=0.09) == ["fail", "fail"]
    assert outcomes(report.to_json(cases=False), money_total=0.8) == ["pass"]
    assert rescore_run(tmp_path / "run", data, Settings()).counts["money"] == report.counts["money"]


@pytest.mark.parametrize("odd", [None, -1, math.nan, math.inf, True, "0.1"])
def test_an_unknown_cost_is_unknown_and_not_nothing(odd: Any) -> None:
    report = evaluate(engine([0.1] * 7 + [odd]), Dataset.from_rows(ROWS), options=RunOptions())
    assert report.counts["money"]["rows_unknown"] == 1
    assert outcomes(report, money_total=100.0) == ["missing"]


def test_no_cost_at_all_is_no_block() -> None:
    report = evaluate("scripted", Dataset.from_rows(ROWS))
    assert "money" not in report.counts
    assert outcomes(report, money_total=100.0, money_per_row=1.0) == ["missing", "missing"]
    assert outcomes({"overall": {"ece": 0.1}}, money_total=100.0) == ["missing"]


def test_the_console_says_it(tmp_path: Path, steelyard: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "paid_engine.py").write_text(
        "def predict(state, questions):\n"
        "    return {'answers': {'q': {'noul': 0.9}}, 'cost': None if state == 's3' else 0.25}\n",
        encoding="utf-8",
    )
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    ran: Ran = steelyard("run", "d.jsonl", "-e", "python:paid_engine:predict", "--quiet")
    assert "money: 1.75 for 7 rows, unknown for 1 more" in ran.out
