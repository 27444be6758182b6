"""Generated data: rows of several question types, and answers to them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

LANGUAGES = ("en", "de", "fr", "es", "zh", "sw", "hi", "ar")


def _words(rng: random.Random) -> list[str]:
    letters = "abcdefghijklmnopqrstuvwxyz"
    return ["".join(rng.choices(letters, k=rng.randint(2, 9))) for _ in range(3000)]


def mixed_rows(path: Path, n: int, seed: int = 1) -> Path:
    """`n` rows of one question: 30 % choice with 4 to 77 shared options, 15 % with 20 of their own."""
    if path.exists():
        return path
    rng = random.Random(seed)
    words = _words(rng)
    shared: dict[int, dict[str, Any]] = {
        k: {f"label_{k}_{i}": " ".join(rng.choices(words, k=3)) for i in range(k)} for k in (4, 8, 20)
    }
    shared[77] = {f"label_{i}": None for i in range(77)}
    with path.open("w", encoding="utf-8") as stream:
        for _ in range(n):
            stream.write(json.dumps(_mixed_row(rng, words, shared)) + "\n")
    return path


def _mixed_row(rng: random.Random, words: list[str], shared: dict[int, dict[str, Any]]) -> dict[str, Any]:
    draw = rng.random()
    label: Any
    if draw < 0.30:
        criteria = shared[rng.choice((4, 8, 20, 77))]
        qid, body = "route", {"type": "choice", "instructions": "Which team?", "criteria": criteria}
        label = rng.choice(list(criteria))
    elif draw < 0.45:
        names = rng.sample(words, 20)
        criteria = {name: f"about {name}" for name in names}
        qid, body = "intent", {"type": "choice", "instructions": "What is asked?", "criteria": criteria}
        label = rng.choice(names)
    elif draw < 0.70:
        levels = ["not urgent", "soon", "today", "now", "work is blocked"]
        qid, body = "urgency", {"type": "score", "instructions": "How urgent?", "criteria": levels}
        label = rng.randint(0, 4)
    else:
        qid, body = "refund", {"type": "noul", "instructions": "Refund?"}
        label = rng.random() < 0.5
    return {
        "state": " ".join(rng.choices(words, k=rng.randint(15, 60))),
        "questions": {qid: body},
        "expected": {qid: label},
        "language": rng.choice(LANGUAGES),
        "tags": [rng.choice(words)[:2], "t"],
    }


QUESTIONS = {
    "route": {
        "type": "choice",
        "instructions": "Which team?",
        "criteria": ["billing", "technical", "account", "sales"],
    },
    "urgency": {"type": "score", "instructions": "How urgent?", "criteria": ["a", "b", "c", "d", "e"]},
    "refund": {"type": "noul", "instructions": "Refund?"},
}


def three_question_rows(path: Path, n: int, seed: int = 2) -> tuple[Path, Path]:
    """`n` rows of three questions, and a recorded answer to each."""
    answers = path.with_suffix(".answers.jsonl")
    if path.exists() and answers.exists():
        return path, answers
    rng = random.Random(seed)
    teams = QUESTIONS["route"]["criteria"]
    with path.open("w", encoding="utf-8") as rows, answers.open("w", encoding="utf-8") as replies:
        for i in range(n):
            expected = {
                "route": rng.choice(teams),
                "urgency": rng.randint(0, 4),
                "refund": rng.random() < 0.5,
            }
            row = {"state": f"message {i}", "questions": QUESTIONS, "expected": expected}
            row |= {"language": rng.choice(LANGUAGES), "tags": [rng.choice("abcdef"), rng.choice("ghi")]}
            rows.write(json.dumps(row) + "\n")
            replies.write(json.dumps({"answers": _answers(rng)}) + "\n")
    return path, answers


def _answers(rng: random.Random) -> dict[str, Any]:
    teams, levels, yes = _vector(rng, 4), _vector(rng, 5), round(rng.random(), 4)
    names = QUESTIONS["route"]["criteria"]
    return {
        "route": {
            "type": "choice",
            "choice": names[teams.index(max(teams))],
            "probabilities": dict(zip(names, teams, strict=True)),
            "confidence": 0.5,
            "answer_confidence": max(teams),
        },
        "urgency": {
            "type": "score",
            "score": round(sum(i * p for i, p in enumerate(levels)), 4),
            "probabilities": {str(i): p for i, p in enumerate(levels)},
            "confidence": 0.4,
            "answer_confidence": max(levels),
        },
        "refund": {
            "type": "noul",
            "noul": yes,
            "confidence": max(yes, 1 - yes),
            "answer_confidence": max(yes, 1 - yes),
        },
    }


def _vector(rng: random.Random, size: int) -> list[float]:
    weights = [rng.random() for _ in range(size)]
    return [round(weight / sum(weights), 4) for weight in weights]
