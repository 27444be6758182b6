"""Why a label is not one of its question's answers, and what was probably meant."""

from __future__ import annotations

import unicodedata
from difflib import get_close_matches
from typing import Any

from steelyard.core.questions import Question
from steelyard.formats.jsontext import one_line, quote, type_name
from steelyard.formats.questions import code_points


def explain_label(question: Question, label: Any) -> str:
    """One line saying why `label` cannot be scored on `question`; call it only when it cannot."""
    if type(label) is dict:
        return _explain_soft(question, label)
    if question.kind == "noul":
        return f"a noul label is true or false, not {type_name(label)} {quote(label)}"
    if question.kind == "score":
        if type(label) in (int, float):
            return f"level {quote(label)} is outside 0 to {len(question.options) - 1}"
        return f"a score label is a number, not {type_name(label)} {quote(label)}"
    if not isinstance(label, str):
        return f"a choice label is a string, not {type_name(label)} {quote(label)}"
    if not label.strip():
        return "the label is blank; leave the question out of expected when it has no label"
    shown = ", ".join(one_line(option, 40) for option in question.options[:8])
    more = f", ... {len(question.options)} in all" if len(question.options) > 8 else ""
    return f"{quote(label)} is not an option ({shown}{more}){near_miss(label, question.options)}"


def _explain_soft(question: Question, label: dict[str, Any]) -> str:
    for option in label:
        if option not in question.index:
            known = ", ".join(one_line(name, 40) for name in question.options[:8])
            return f"{quote(option)} is not an option ({known}){near_miss(option, question.options)}"
    for option, share in label.items():
        if type(share) not in (int, float) or not 0.0 <= share <= 1.0:
            return f"the share of {quote(option)} is a number from 0 to 1, not {quote(share)}"
    total = sum(label.values())
    return f"shares sum to {total:.6g}, not 1; divide each by their sum"


def near_miss(label: str, options: tuple[str, ...]) -> str:
    """Hint naming the option `label` nearly is, or nothing.

    >>> near_miss("Billing ", ("billing", "sales"))
    '; it differs from "billing" only by case or white space'
    """
    for option in options:
        if unicodedata.normalize("NFC", option) == unicodedata.normalize("NFC", label):
            return (
                f"; it differs from {quote(option)} only by Unicode normal form "
                f"({code_points(label, option)} against {code_points(option, label)})"
            )
    folded = _fold(label)
    for option in options:
        if _fold(option) == folded:
            return f"; it differs from {quote(option)} only by case or white space"
    near = get_close_matches(label, options, n=1)
    return f"; did you mean {quote(near[0])}?" if near else ""


def _fold(text: str) -> str:
    return "".join(unicodedata.normalize("NFKC", text).casefold().split())
