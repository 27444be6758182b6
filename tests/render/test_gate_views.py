"""Verdicts and comparisons as people and builds read them: hostile names, narrow columns, dead links."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from steelyard import Dataset, compare, evaluate
from steelyard.core.comparison import Comparison, Delta, Flip
from steelyard.core.gates import Finding, Verdict
from steelyard.metrics.view import Settings
from steelyard.render.comparison import comparison_lines, flip_text
from steelyard.render.comparison_markdown import comparison_markdown
from steelyard.render.gates import (
    annotation_lines,
    finding_lines,
    gate_markdown,
    junit_xml,
    verdict_line,
)
from steelyard.render.several import several_lines, several_markdown
from steelyard.render.text import text_width
from steelyard.run.gating import Limits, verdict
from steelyard.run.several import side_by_side
from steelyard.run.side import document_side, side_of
from tests.conftest import make_rows

EVIL = "a<b>&\"'|`*_[x](y)\x1b[31m\x00\ud800\u202e%0A::error::\r\n,:"


def finding(outcome: str, fails: bool, reason: str = "r", rule: str = "rule 1", where: str = "") -> Finding:
    return Finding(rule=rule, metric="m", outcome=outcome, fails=fails, reason=reason, slice=where)


VERDICT = Verdict(
    (
        finding("pass", False, "fine"),
        finding("fail", True, EVIL, EVIL, f"language={EVIL}"),
        finding("inconclusive", False, "cannot tell"),
        finding("missing", True, "gone"),
    )
)


def test_junit_is_xml_whatever_the_names() -> None:
    text = junit_xml(VERDICT)
    tree = ElementTree.fromstring(text.encode("utf-8", "backslashreplace"))
    suite = tree.find("testsuite")
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("4", "2", "1")
    cases = suite.findall("testcase")
    assert [case[0].tag for case in cases] == ["system-out", "failure", "skipped", "failure"]
    assert cases[1].find("failure").get("type") == "fail"
    assert "\\x1b[31m\\x00" in cases[1].get("name")
    assert cases[3].find("failure").get("message") == "gone"
    assert junit_xml(Verdict(())).count("testcase") == 0


def test_annotations_cannot_be_forged() -> None:
    lines = list(annotation_lines(VERDICT, None, "data.jsonl"))
    assert len(lines) == 3
    assert all("\n" not in line and "\r" not in line for line in lines)
    assert [line.split(" ")[0] for line in lines] == ["::error", "::error", "::warning"]
    head = lines[0].removeprefix("::error ").split("::")[0]
    assert head.startswith("title=steelyard%3A a<b>")
    assert "," not in head
    assert "%0D%0A" in head
    assert "%250A" in head


def test_regressions_are_annotated_at_their_lines() -> None:
    rows = make_rows(80)
    data = Dataset.from_rows(rows, "data.jsonl")
    found = compare(evaluate("scripted,accuracy=0.5", data), evaluate("scripted,accuracy=0.95", data))
    lines = list(annotation_lines(Verdict(()), found, "data.jsonl"))
    assert len(lines) == 10
    first = next(flip for flip in found.paired.flips if not flip.gained)
    assert lines[0].startswith(
        f"::warning title=steelyard%3A regression,file=data.jsonl,line={first.row + 1}::"
    )
    assert not list(annotation_lines(Verdict(()), found, None))
    many = Verdict(tuple(finding("inconclusive", False) for _ in range(12)))
    assert len(list(annotation_lines(many, found, "data.jsonl"))) == 10


def test_markdown_escapes_and_puts_failures_first() -> None:
    lines = list(gate_markdown(VERDICT))
    table = [line for line in lines if line.startswith("| ")][1:]
    assert [line.split(" ")[1] for line in table] == ["FAIL", "FAIL", "PASS", "WARN"]
    assert "\x1b" not in "".join(lines)
    assert "\\<b\\>" in table[0]
    # No cell breaks out of its column.
    assert all(line.replace("\\|", "").count("|") == 4 for line in table)
    assert next(iter(gate_markdown(Verdict(())))) == "## Not gated"


def test_the_verdict_in_a_line() -> None:
    assert verdict_line(VERDICT) == "gate: 2 of 4 limits kept, 1 of them cannot be told"
    assert verdict_line(Verdict(())) == "no limit was set, so nothing was gated"
    assert list(finding_lines(VERDICT.findings))[1:] == ["WARN cannot tell", "FAIL gone"]


def hostile_pair() -> tuple[Any, Any]:
    rows = [
        row
        | {"language": EVIL[:8] + str(at % 2), "tags": ["x" * 90], "state": EVIL + "終" * 60, "id": f"i{at}"}
        for at, row in enumerate(make_rows(40))
    ]
    data = Dataset.from_rows([json.loads(json.dumps(row)) for row in rows], EVIL)
    return tuple(evaluate(f"scripted,accuracy={accuracy}", data) for accuracy in (0.6, 0.9))


def test_console_lines_hold_no_control_characters_and_fit() -> None:
    found = compare(*hostile_pair())
    limits = Limits(tolerances={"ece": 0.0})
    lines = list(comparison_lines(found, ["language", "tag", "model"], flips=5, every=True))
    text = "\n".join(lines)
    assert "\x1b" not in text
    assert "\ud800" not in text
    assert "\u202e" not in text
    inner = [line for block in lines for line in block.split("\n")]
    assert max(text_width(line) for line in inner if "baseline=" not in line) <= 80
    assert "regressions (5 of" in text
    assert verdict(limits, side_of(hostile_pair()[0])).gated is False
    markdown = "\n".join(comparison_markdown(found, VERDICT))
    assert "\x1b" not in markdown
    assert "<b>" not in markdown.replace("\\<b\\>", "")


def test_markdown_of_a_comparison_without_cases() -> None:
    found = compare({"overall": {"ece": 0.1}}, {"overall": {"ece": 0.2, "gone": 1}})
    text = "\n".join(comparison_markdown(found, Verdict(())))
    assert "not paired: this run holds no cases" in text
    assert "missing from the report" in text
    lines = "\n".join(comparison_lines(found))
    assert "identity: schema unknown, dataset\\_sha256 unknown" not in lines
    assert "identity: schema unknown, dataset_sha256 unknown" in lines


def test_an_incomparable_metric_says_why() -> None:
    delta = Delta(metric="aurc", baseline=0.1, tolerance=0.0, ok=False, incomparable="stale")
    found = Comparison(
        candidate="a", baseline="b", identity={}, conflicts=[], deltas=[delta], unpaired="no cases"
    )
    assert "aurc               baseline=0.1000 value=none not compared: stale" in list(
        comparison_lines(found)
    )


def test_a_flip_without_confidence_or_id() -> None:
    flip = Flip("row 3", None, 3, None, "q", False, "a", "a", "b", None, None, None, None)
    assert flip_text(flip) == 'row 3, q: was "a", is "b", expected "a"'


def test_several_runs_side_by_side() -> None:
    data = Dataset.from_rows(make_rows(60), "data")
    sides = [
        side_of(evaluate(f"scripted,accuracy={accuracy}", data), name)
        for name, accuracy in (("one", 0.5), ("two", 0.7), (EVIL, 0.95))
    ]
    sides.append(document_side({"overall": {"ece": 0.1}}, "bare"))
    other = Dataset.from_rows([row | {"id": f"z{at}"} for at, row in enumerate(make_rows(30))], "other")
    sides.append(side_of(evaluate("scripted", other), "other"))
    found = side_by_side(sides, Settings())
    assert [run.name for run in found.runs] == ["one", "two", EVIL, "bare", "other"]
    assert set(found.runs[0].measured) == {"accuracy", "score_mae", "ece", "brier_multiclass", "aurc"}
    assert found.runs[3].measured == {}
    paired = [match for match in found.matches if match.found]
    assert len(paired) == 6
    assert all(match.q >= match.found.p - 1e-12 for match in paired)
    assert next(m for m in paired if (m.first, m.second) == ("one", EVIL)).word == "worse"
    assert any(match.why and "holds no cases" in match.why for match in found.matches)
    assert any("have another dataset_sha256" in note for note in found.notes)
    text = "\n".join(several_lines(found))
    assert max(text_width(line) for line in text.split("\n")) <= 80
    assert "\x1b" not in text
    assert "\x1b" not in "\n".join(several_markdown(found))


@pytest.mark.parametrize("name", ["json", "markdown"])
def test_same_inputs_same_bytes(name: str, tmp_path: Path, steelyard: Any) -> None:
    data = Dataset.from_rows(make_rows(30), "data")
    for run, accuracy in (("a", 0.9), ("b", 0.7)):
        evaluate(f"scripted,accuracy={accuracy}", data).write_json(tmp_path / run)
    for turn in ("1", "2"):
        steelyard("compare", tmp_path / "a", "--baseline", tmp_path / "b", f"--{name}", tmp_path / turn)
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()
    assert b"NaN" not in (tmp_path / "1").read_bytes()
