"""What every view shares: rows of numbers, and untrusted text made safe for a cell."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec

from steelyard.formats.jsontext import one_line
from steelyard.metrics.bakeoff import USED, BakeOff, Steps
from steelyard.metrics.baselines import BELOW, Baselines
from steelyard.metrics.measure import Measured
from steelyard.metrics.registry import Measurement

FEW_TO_TELL = 20
"""Fewer confidences than this tell nothing of how they were rounded."""
HEADLINES = ("choice_accuracy", "noul_accuracy", "score_mae", "ece")
"""What a slice shows; the report file has every metric of it."""
SHOWN = (
    "choice_accuracy",
    "noul_accuracy",
    "macro_f1",
    "score_mae",
    "score_accuracy",
    "score_kappa",
    "rps",
    "ece",
    "ecce_mad",
    "confidence_gap",
    "brier",
    "mean_confidence",
    "brier_multiclass",
    "log_loss",
    "brier_skill_prior",
    "aurc",
    "auroc_failure",
    "selective_accuracy@50",
    "selective_accuracy@80",
    "soft_divergence",
)
"""What the whole table shows unless every metric is asked for."""


class NumberRow(msgspec.Struct, frozen=True):
    """One measured number as text: n and interval always beside the value."""

    metric: str
    value: str
    interval: str
    n: str
    cases: str
    deff: str


def number_row(name: str, found: Measurement) -> NumberRow:
    """A measurement as text; where there is no interval, what perfect calibration reads, or ``-``."""
    beside = "-"
    if found.interval:
        beside = span(found.interval)
    elif found.null:
        beside = f"E0 {number(found.null.expectation)} p{chance(found.null.p)}"
    deff = "-" if found.deff is None else f"{found.deff:.2f}"
    return NumberRow(name, number(found.value), beside, str(found.n), str(found.cases), deff)


def span(interval: tuple[float, float]) -> str:
    """Both ends of an interval."""
    return f"{number(interval[0])} to {number(interval[1])}"


def number(value: float) -> str:
    """Four decimals, or enough digits to tell a small number from zero."""
    return f"{value:.4f}" if value == 0 or abs(value) >= 0.0001 else f"{value:.1e}"


def chance(p: float) -> str:
    """A p-value with its relation.

    >>> chance(0.0004), chance(0.02)
    ('<.001', '=.020')
    """
    return "<.001" if p < 0.001 else f"={p:.3f}".replace("=0.", "=.")


def overall_rows(measured: Measured, every: bool = True) -> list[NumberRow]:
    """Every metric of the whole table, or those shown by default and those asked for by tolerance."""
    return [
        number_row(name, found)
        for name, found in measured.items()
        if every or name in SHOWN or (name.startswith("score_within_") and name != "score_within_one")
    ]


def slice_rows(values: Mapping[str, Measured]) -> Iterator[tuple[str, list[NumberRow]]]:
    """Headline metrics of each slice; a slice without any has an empty list."""
    for value, measured in values.items():
        yield value, [number_row(name, measured[name]) for name in HEADLINES if name in measured]


def notes(measured: Measured, names: Collection[str]) -> list[str]:
    """What a reader must know of the numbers shown: calibration beside chance, and missing intervals."""
    reasons: dict[str, list[str]] = {}
    lines = []
    for name, found in measured.items():
        if name not in names:
            continue
        if found.no_interval and not found.null:
            reasons.setdefault(found.no_interval, []).append(name)
        if found.null and name == "ece":
            lines.append(_calibration(found))
    if any(measured[name].null for name in names):
        lines.append(
            "E0 is what a perfectly calibrated model would read on the same confidences, p the chance it "
            "reads this much; these numbers are biased upwards, so they have no interval"
        )
    return lines + [f"no interval for {', '.join(found)}: {why}" for why, found in reasons.items()]


def _calibration(found: Measurement) -> str:
    null = found.null
    assert null is not None
    if null.p > 0.05:
        return (
            f"ece {number(found.value)} is no sign of miscalibration: a perfectly calibrated model would "
            f"read about {number(null.expectation)} on {found.n} answers with these confidences, and more "
            f"than {number(null.q95)} one time in twenty"
        )
    return (
        f"ece {number(found.value)} is {number(null.excess)} above the {number(null.expectation)} a "
        f"perfectly calibrated model would read on {found.n} answers with these confidences "
        f"(p{chance(null.p)})"
    )


class Beside(msgspec.Struct, frozen=True):
    """What stands beside the measurements."""

    baselines: Baselines
    confidence: BakeOff
    mix: Mapping[str, Mapping[str, int]]
    steps: Steps

    def lines(self) -> list[str]:
        """All of it in words."""
        own = confidence_lines(self.confidence, self.mix)
        return baseline_lines(self.baselines) + own + step_lines(self.steps)


def baseline_lines(baselines: Baselines) -> list[str]:
    """Accuracy beside answers that never read the state, and in words where it is not above them."""
    panel = baselines.overall
    if panel is None:
        return []
    shown = ", ".join(f"{_words(name)} {number(found.accuracy)}" for name, found in panel.baselines.items())
    lines = [f"baselines of accuracy {number(panel.accuracy)} (n={panel.n}): {shown}"]
    for question, own in (("", panel), *baselines.questions.items()):
        of = f" on {one_line(question, 40)}" if question else ""
        for name, found in own.baselines.items():
            if found.difference < 0 or found.verdict == BELOW:
                lines.append(
                    f"accuracy {number(found.accuracy + found.difference)}{of} is below {_words(name)}, "
                    f"{number(found.accuracy)} (n={found.n}): difference {number(found.difference)}"
                    + (f", {span(found.interval)}" if found.interval else "")
                )
    return lines


def _words(name: str) -> str:
    return name.replace("_", " ")


def confidence_lines(found: BakeOff, mix: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Which confidence was used, and whether another would rank failures better."""
    used = next((one for one in found.overall if one.measure == USED), None)
    if used is None or used.auroc is None:
        return []
    totals: dict[str, int] = {}
    for counts in mix.values():
        for source, n in counts.items():
            totals[source] = totals.get(source, 0) + n
    sources = ", ".join(f"{name} {n}" for name, n in sorted(totals.items()))
    lines = [f"confidence used: {sources}; auroc {number(used.auroc.value)} (n={used.n})"]
    others = [one for one in found.overall if one.auroc and one.measure != USED]
    for one in sorted(others, key=lambda one: -(one.auroc.value if one.auroc else 0.0))[:1]:
        assert one.auroc is not None
        reach = one.auroc.difference_interval
        if one.auroc.difference and one.auroc.difference > 0 and reach:
            told = "better" if reach[0] > 0 else "no better for sure"
            lines.append(
                f"{_words(one.measure)} would rank failures with auroc {number(one.auroc.value)}: {told} "
                f"(difference {span(reach)})"
            )
    return lines


def step_lines(steps: Steps) -> list[str]:
    """A word where confidences were rounded so far that many tie."""
    if steps.decimals is None or steps.decimals > 2 or steps.n < FEW_TO_TELL:
        return []
    return [
        f"confidences have {steps.decimals} decimals: {steps.distinct} values among {steps.n}; answers that "
        "tie stand on one side of a cut together"
    ]


def server_lines(said: Mapping[str, Any]) -> list[str]:
    """What replies said besides their answers, where it bears on what the numbers are worth."""
    told = [f"{_words(name)} {n}" for name, n in said.items() if n and name.startswith(("rows_", "answers_"))]
    read, written = said["input_tokens"], said["output_tokens"]
    tokens = f"tokens read {read}, written {written}" if read or written else "tokens unknown"
    return [f"replies: {', '.join([tokens, *told])}"]


def count_lines(counts: Mapping[str, Any], measured: Measured) -> list[str]:
    """What became of the questions asked, in words."""
    lines = [
        f"{counts['rows']} rows, {counts['questions']} questions: {counts['scored']} scored, "
        f"{counts['errored']} errored, {counts['not_applicable']} not applicable"
    ]
    if counts.get("rows_not_asked"):
        lines.append(f"{counts['rows_not_asked']} rows were not asked: the gate had seen enough")
    if counts.get("money"):
        money = counts["money"]
        unknown = f", unknown for {money['rows_unknown']} more" if money["rows_unknown"] else ""
        lines.append(f"money: {money['total']:.6g} for {money['rows']} rows{unknown}")
    if counts.get("server"):
        lines += server_lines(counts["server"])
    if counts["by_reason"]:
        lines.append("reasons: " + ", ".join(f"{name} {n}" for name, n in counts["by_reason"].items()))
    for name in ("choice_accuracy", "noul_accuracy"):
        details = measured[name].details if name in measured else None
        if details:
            floor, errored = details["errors_as_wrong"], details["errored"]
            lines.append(
                f"{name} is over scored answers; with {errored} errored as wrong it is {number(floor)}"
            )
    if counts["ties_at_top"]:
        lines.append(f"{counts['ties_at_top']} answer(s) tie at the top; the option listed first is taken")
    if counts["soft_labels"]:
        lines.append(
            f"{counts['soft_labels']} label(s) are distributions; {counts['soft_labels_tied']} of them tie "
            "at the top and have no right answer"
        )
    if not counts["scored"]:
        lines.append("nothing was scored, so nothing was measured")
    return lines


def text_width(text: str) -> int:
    """Columns a terminal gives to `text`."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    marks = sum(unicodedata.combining(c) > 0 for c in text)
    return len(text) + wide - marks


def fitted(text: str, width: int) -> str:
    """`text` padded or cut to `width` columns."""
    if text_width(text) > width:
        while text_width(text) > width - 1:
            text = text[:-1]
        text += "…"
    return text + " " * (width - text_width(text))
