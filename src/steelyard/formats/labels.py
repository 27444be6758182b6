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
