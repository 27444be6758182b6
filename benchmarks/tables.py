"""Judged tables made from arrays: engines whose truth is known."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.metrics.decisions import Decisions, Names, Soft

Array = np.ndarray[Any, Any]


def choice_table(
    confidence: Array, correct: Array, case: Array, options: int = 5, **columns: Any
) -> Decisions:
    """A table of choice answers: one question, unless other columns are given.

    Parameters
    ----------
    confidence, correct : array, shape (n,)
    case : int array, shape (n,)
    options : int
    columns
        Columns to put in place of the plain ones, `names` among them.
    """
    n = len(confidence)
    nothing = np.full(n, np.nan)
    gold = columns.pop("gold", np.zeros(n))
    pred = columns.pop("pred", np.where(correct > 0, gold, (gold + 1) % options))
    p_gold = np.where(correct > 0, confidence, (1.0 - confidence) / (options - 1))
    rest = np.where(correct > 0, (1.0 - confidence) ** 2 / (options - 1), 0.0)
    wrong = confidence**2 + (1 - p_gold) ** 2 + (options - 2) * p_gold**2
    plain = {
        "row": case,
        "place": np.zeros(n, np.int64),
        "cluster": case,
        "qid": np.zeros(n, np.int32),
        "kind": np.zeros(n, np.int8),
        "options": np.full(n, options, np.int32),
        "language": np.full(n, -1, np.int32),
        "model": np.full(n, -1, np.int32),
        "status": np.zeros(n, np.int8),
        "reason": np.zeros(n, np.int8),
        "gold": gold.astype(np.float64),
        "gold_label": gold.astype(np.int32),
        "pred": pred.astype(np.int32),
        "pred_label": pred.astype(np.int32),
        "value": nothing,
        "confidence": confidence,
        "source": np.ones(n, np.int8),
        "stated": confidence,
        "p_gold": p_gold,
        "correct": correct,
        "error": nothing,
        "brier": np.where(correct > 0, (1.0 - confidence) ** 2 + rest, wrong),
        "log_loss": -np.log(np.maximum(p_gold, 1e-15)),
        "rps": nothing,
        "level_correct": nothing,
        "tied": np.zeros(n, bool),
        "size": np.zeros(n, np.int32),
        "flat": np.empty(0),
        "option_set": np.full(n, -1, np.int32),
        "soft": Soft(np.empty(0, np.int64), np.empty(0, bool), np.empty(0), np.empty(0), np.empty(0)),
        "tag_row": np.empty(0, np.int64),
        "tag": np.empty(0, np.int32),
        "names": Names(["q"], [], [], [], [str(i) for i in range(options)], []),
    }
    return Decisions(**(plain | columns))


def save_columns(path: Path, n: int, *, languages: int = 50, questions: int = 20, per_case: int = 4) -> Path:
    """Columns of n answers with four-decimal confidences: a language a case, two of six tags, questions."""
    rng = np.random.default_rng(0)
    case = np.arange(n) // per_case
    cases = int(case[-1]) + 1
    confidence = np.round(0.25 + 0.75 * rng.beta(5, 1.5, n), 4)
    np.savez(
        path,
        case=case,
        confidence=confidence,
        correct=(rng.random(n) < confidence).astype(np.float64),
        gold=rng.integers(0, 8, n).astype(np.float64),
        language=rng.integers(0, languages, cases).astype(np.int32)[case],
        qid=rng.integers(0, questions, n).astype(np.int32),
        tags=np.stack([rng.integers(0, 3, cases), 3 + rng.integers(0, 3, cases)], 1)[case],
    )
    return path


def sliced_table(columns: Mapping[str, Array]) -> Decisions:
    """The judged table of `save_columns`."""
    n, tags = len(columns["case"]), columns["tags"]
    return choice_table(
        columns["confidence"],
        columns["correct"],
        columns["case"],
        8,
        gold=columns["gold"],
        language=columns["language"],
        qid=columns["qid"],
        tag_row=np.repeat(np.arange(n), tags.shape[1]),
        tag=tags.ravel().astype(np.int32),
        names=Names(
            [f"q{i}" for i in range(1 + int(columns["qid"].max()))],
            [f"l{i}" for i in range(1 + int(columns["language"].max()))],
            [],
            [f"t{i}" for i in range(6)],
            [str(i) for i in range(8)],
            [],
        ),
    )
