"""Answers of a fake server: made up, but the same for the same question about the same state."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.fake.quirks import Quirks, share
from steelyard.formats.jsontext import dumps

Body = dict[str, Any]


class Refused(Exception):
    """A request the server will not answer; status and text."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


def spread_over(options: Sequence[str], state: str, qid: str, quirks: Quirks, turn: int) -> dict[str, float]:
    """Probabilities of options, in their order, rounded as the quirks say."""
    nudge = quirks.noise * (share(quirks.seed, state, qid, "noise", turn) - 0.5) if quirks.noise else 0.0
    weights = [
        math.exp(6.0 * share(quirks.seed, state, qid, option) + (nudge if at == 0 else 0.0))
        for at, option in enumerate(options)
    ]
    total = sum(weights)
    scale = 1.5 if quirks.wrong_answers else 1.0
    found = {
        option: round(scale * weight / total, quirks.decimals)
        for option, weight in zip(options, weights, strict=True)
    }
    return dict(sorted(found.items())) if quirks.sorted_keys else found


def read_state(state: Any, quirks: Quirks) -> tuple[str, bool]:
    """The part of a state that is read, as text, and whether that is less than all."""
    if state is None:
        raise Refused(400, "'state' is required")
    text = state if isinstance(state, str) else dumps(state).decode()
    cut = bool(quirks.reads) and len(text) > quirks.reads
    return (text[: quirks.reads] if cut else text), cut


def system_one(questions: Any, state: str, quirks: Quirks, turn: int) -> Body:
    """Answers to a map of questions."""
    if not isinstance(questions, Mapping) or not questions:
        raise Refused(400, "request body must be an object with a 'questions' field")
    return {qid: _answer(qid, body, state, quirks, turn) for qid, body in questions.items()}


def _answer(qid: str, body: Any, state: str, quirks: Quirks, turn: int) -> Body:
    kind = body.get("type") if isinstance(body, Mapping) else None
    if kind == "choice":
        criteria = body.get("criteria")
        options = list(criteria) if isinstance(criteria, (Mapping, list)) else []
        if not options:
            raise Refused(422, f"question '{qid}': a choice question needs at least one criterion")
        spread = spread_over([str(option) for option in options], state, qid, quirks, turn)
        best = max(spread, key=lambda option: spread[option])
        n, top = len(spread), max(spread.values())
        said = 1.0 if n == 1 else (top - 1 / n) / (1 - 1 / n)
        found: Body = {
            "type": "choice",
            "choice": best,
            "confidence": round(said, 4),
            "probabilities": spread,
        }
        return found if quirks.strict else found | {"answer_confidence": top}
    if kind == "score":
        levels = body.get("criteria") or []
        spread = spread_over([str(at) for at in range(len(levels))], state, qid, quirks, turn)
        value = sum(int(level) * p for level, p in spread.items())
        legend = {str(at): str(text) for at, text in enumerate(levels)}
        top = max(spread.values(), default=0.0)
        found = {"type": "score", "score": round(min(value, len(levels) - 1.0), 4), "legend": legend}
        found |= {"probabilities": spread, "confidence": top}
        return found if quirks.strict else found | {"answer_confidence": top}
    if kind in ("noul", "boolean"):
        yes = spread_over(("false", "true"), state, qid, quirks, turn)["true"]
        if kind == "boolean":
            return {"type": "boolean", "probability": yes}
        return {"type": "noul", "noul": yes}
    raise Refused(422, f"question '{qid}': unknown type '{kind}'; use one of ['choice', 'noul', 'score']")


def decisions(questions: Any, state: str, quirks: Quirks, turn: int) -> list[Body]:
    """Answers to a list of questions, refusals among them."""
    if not isinstance(questions, list) or not questions:
        raise Refused(400, "questions must be a list")
    return [_listed(at, body, state, quirks, turn) for at, body in enumerate(questions)]


def _listed(at: int, body: Any, state: str, quirks: Quirks, turn: int) -> Body:
    kind, name = body.get("type"), body.get("name")
    every = quirks.refuse_every
    if every and int(share(quirks.seed, state, name, "refuse") * every) == 0:
        return {"type": "refusal", "name": name}
    found: Body = {"type": kind, "name": name}
    if kind == "predicate":
        return found | {
            "probability": spread_over(("false", "true"), state, str(name or at), quirks, turn)["true"]
        }
    key = "choices" if kind == "choice" else "levels"
    values = [one.get("value", place) for place, one in enumerate(body.get(key) or [])]
    spread = spread_over([str(value) for value in values], state, str(name or at), quirks, turn)
    pairs = [{"value": value, "probability": spread[str(value)]} for value in values]
    best = max(pairs, key=lambda pair: pair["probability"])
    found |= {"confidence": best["probability"], "probabilities": pairs}
    if kind == "choice":
        return found | {"choice": best["value"]}
    return found | {"score": round(sum(int(pair["value"]) * pair["probability"] for pair in pairs), 4)}


def chatted(body: Any, quirks: Quirks, turn: int) -> Body:
    """A chat completion of one letter, with its alternatives."""
    messages = body.get("messages") or [{}, {}]
    listed = [line for line in str(messages[0].get("content")).split("\n") if line[1:3] == ". "]
    texts = [line[3:] for line in listed]
    state, _ = read_state(messages[-1].get("content"), quirks)
    spread = spread_over(texts, state, str(messages[0].get("content")).split("\n")[0], quirks, turn)
    letters = zip((line[0] for line in listed), spread.values(), strict=False)
    pairs = sorted(((math.log(max(share, 1e-9)), letter) for letter, share in letters), reverse=True)
    shown = [{"token": letter, "logprob": logprob} for logprob, letter in pairs]
    if quirks.wrong_answers:
        shown = [{"token": "Sure", "logprob": -0.01}]
    content = [{"token": shown[0]["token"], "logprob": shown[0]["logprob"], "top_logprobs": shown}]
    message = {"role": "assistant", "content": shown[0]["token"]}
    return {"choices": [{"index": 0, "message": message, "logprobs": {"content": content}}]}


def judged(checks: Any, state: str, quirks: Quirks, turn: int) -> Body:
    """Results of Hunch's checks."""
    results: Body = {}
    for qid, check in (checks or {}).items():
        kind = check.get("kind")
        if kind == "yesno":
            results[qid] = {"p_yes": spread_over(("false", "true"), state, qid, quirks, turn)["true"]}
        elif kind == "pick":
            spread = spread_over(list(check.get("options") or ()), state, qid, quirks, turn)
            top = max(spread, key=lambda option: spread[option])
            results[qid] = {"pick": top, "probs": spread, "confidence": 0.5}
        else:
            names = [str(at) for at in range(len(check.get("levels") or ()))]
            spread = spread_over(names, state, qid, quirks, turn)
            value = sum(int(level) * p for level, p in spread.items())
            results[qid] = {"value": round(value, 4), "probs": list(spread.values()), "confidence": 0.5}
    return results
