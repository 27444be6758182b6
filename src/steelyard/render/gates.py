"""Verdicts where people read them: lines, Markdown, JUnit, and annotations of a build."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape, quoteattr

from steelyard.core.comparison import Comparison
from steelyard.core.gates import Finding, Verdict
from steelyard.render.comparison import flip_text
from steelyard.render.markdown import cell

MAX_ANNOTATIONS = 10
"""A build shows no more of one kind from one step."""
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def word_of(finding: Finding) -> str:
    """One word for what a finding does to the build."""
    if finding.fails:
        return "FAIL"
    return "WARN" if finding.outcome == "inconclusive" else "PASS"


def verdict_line(verdict: Verdict) -> str:
    """The verdict in one line."""
    findings = verdict.findings
    if not findings:
        return "no limit was set, so nothing was gated"
    failed = len(verdict.failures)
    unsure = sum(finding.outcome == "inconclusive" for finding in findings)
    said = f"{len(findings) - failed} of {len(findings)} limits kept"
    return f"gate: {said}" + (f", {unsure} of them cannot be told" if unsure else "")


def gate_markdown(verdict: Verdict, comparison: Comparison | None = None) -> Iterator[str]:
    """The verdict as Markdown, failures first; flipped answers below it."""
    yield f"## {'Failed' if verdict.failures else 'Passed' if verdict.gated else 'Not gated'}"
    yield ""
    yield cell(verdict_line(verdict))
    if verdict.findings:
        yield ""
        yield "| verdict | rule | what was found |"
        yield "|---|---|---|"
        for finding in sorted(verdict.findings, key=lambda finding: not finding.fails):
            yield f"| {word_of(finding)} | {cell(finding.rule)} | {cell(finding.reason)} |"
    paired = comparison.paired if comparison is not None else None
    lost = [flip for flip in paired.flips if not flip.gained] if paired is not None else []
    if lost and paired is not None:
        yield ""
        yield f"### Regressions ({min(len(lost), MAX_ANNOTATIONS)} of {paired.lost})"
        yield ""
        for flip in lost[:MAX_ANNOTATIONS]:
            state = "" if flip.state is None else f": {cell(flip.state[:200])}"
            yield f"- {cell(flip_text(flip))}{state}"


def junit_xml(verdict: Verdict, name: str = "steelyard") -> str:
    """A JUnit document with one test case a finding; nothing in it depends on when it was made."""
    failed = len(verdict.failures)
    skipped = sum(not one.fails and one.outcome == "inconclusive" for one in verdict.findings)
    counts = f'tests="{len(verdict.findings)}" failures="{failed}" errors="0" skipped="{skipped}"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites {counts}>",
        f"  <testsuite name={_attribute(name)} {counts}>",
        *(line for finding in verdict.findings for line in _test_case(finding, name)),
        "  </testsuite>",
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"


def _test_case(finding: Finding, suite: str) -> Iterator[str]:
    title = finding.rule + (f" [{finding.slice}]" if finding.slice else "")
    yield f"    <testcase classname={_attribute(suite)} name={_attribute(title)}>"
    if finding.fails:
        yield f"      <failure type={_attribute(finding.outcome)} message={_attribute(finding.reason)}/>"
    elif finding.outcome == "inconclusive":
        yield f"      <skipped message={_attribute(finding.reason)}/>"
    else:
        yield f"      <system-out>{escape(_xml(finding.reason))}</system-out>"
    yield "    </testcase>"


def _attribute(text: str) -> str:
    return quoteattr(_xml(text))


def _xml(text: str) -> str:
    """Text with what XML cannot hold written as escapes."""
    return _NOT_XML.sub(lambda found: found[0].encode("unicode_escape", "surrogatepass").decode(), text)


def annotation_lines(verdict: Verdict, comparison: Comparison | None, dataset: str | None) -> Iterator[str]:
    """Commands that make a build show failures, and regressions at the lines of the dataset.

    Parameters
    ----------
    verdict : Verdict
    comparison : Comparison or None
    dataset : str or None
        File the lines are of; None leaves regressions out.
    """
    failing = [finding for finding in verdict.findings if finding.fails]
    for finding in failing[:MAX_ANNOTATIONS]:
        yield _command("error", finding.reason, title=f"steelyard: {finding.rule}")
    unsure = [one for one in verdict.findings if not one.fails and one.outcome == "inconclusive"]
    flips = comparison.paired.flips if comparison is not None and comparison.paired is not None else []
    lost = [flip for flip in flips if not flip.gained and flip.line is not None] if dataset else []
    # Warnings share their ten places: what cannot be told comes first.
    for finding in unsure[:MAX_ANNOTATIONS]:
        yield _command("warning", finding.reason, title=f"steelyard: {finding.rule}")
    for flip in lost[: max(0, MAX_ANNOTATIONS - len(unsure))]:
        where = {"file": dataset or "", "line": str(flip.line)}
        yield _command("warning", flip_text(flip), title="steelyard: regression", **where)


def _command(kind: str, message: str, **properties: str) -> str:
    shown = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{kind} {shown}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def finding_lines(findings: Sequence[Finding]) -> Iterator[str]:
    """Findings that fail or cannot be told, as the console shows them."""
    for finding in findings:
        word = word_of(finding)
        if word != "PASS":
            yield f"{word} {finding.reason}"
