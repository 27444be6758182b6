"""Requests and replies of each wire, as plain JSON values: no network, no clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steelyard.core.questions import Question
from steelyard.core.requests import Request
from steelyard.formats.jsontext import dumps, quote, type_name

NOT_ONE = 0.02
"""Sums further from 1 than this are never scaled."""
Body = dict[str, Any]


class WireFault(ValueError):
    """A reply that is not of its wire; the message names the place."""


class Wire:
    """How one family of servers is asked.

    Parameters
    ----------
    yes_no : str
        What the wire calls a yes/no question.
    """

    def __init__(self, yes_no: str = "noul") -> None:
        self.yes_no = yes_no

    def body(self, request: Request) -> Body:
        """What is sent, without the model."""
        raise NotImplementedError

    def answers(self, request: Request, reply: Any) -> Body:
        """Answers by question id, each as the peer has it: type, value, probabilities, confidence.

        Raises
        ------
        WireFault
            The reply is not of this wire.
        """
        raise NotImplementedError


class SystemOne(Wire):
    """A map of questions in, a map of answers out."""

    def body(self, request: Request) -> Body:
        questions = request.questions
        return {
            "state": request.state,
            "questions": {
                qid: self.question(question, questions.bodies[qid])
                for qid, question in questions.questions.items()
            },
        }

    def question(self, question: Question, body: Mapping[str, Any]) -> Body:
        """One question: criteria of a choice are always an object, in the order of its options."""
        found = dict(body)
        if question.kind == "choice" and not isinstance(found.get("criteria"), dict):
            found["criteria"] = dict.fromkeys(question.options)
        if question.kind == "noul":
            found["type"] = self.yes_no
        return found

    def answers(self, request: Request, reply: Any) -> Body:
        answers = _object(reply, "answers")
        return {
            qid: self.answer(request, qid, _is_object(body, f"answers.{qid}"))
            for qid, body in answers.items()
        }

    def answer(self, request: Request, qid: str, body: Body) -> Body:
        """One answer; another name of yes/no, and `probability` for its value, are understood."""
        question = request.questions.questions.get(qid)
        if question is None or question.kind != "noul" or body.get("type") not in (self.yes_no, None):
            return body
        found = body | {"type": "noul"}
        if "noul" not in found and "probability" in found:
            found["noul"] = found.pop("probability")
        return found


class OpenAIDecisions(Wire):
    """A list of questions in, a list of answers out, joined by place."""

    def body(self, request: Request) -> Body:
        state = request.state if isinstance(request.state, str) else dumps(request.state).decode()
        questions = request.questions
        return {
            "input": state,
            "questions": [
                self._question(qid, question, questions.bodies[qid])
                for qid, question in questions.questions.items()
            ],
        }

    def _question(self, qid: str, question: Question, body: Mapping[str, Any]) -> Body:
        said = body.get("instructions")
        instructions = said if isinstance(said, str) else dumps(said).decode()
        described = list(zip(question.options, question.descriptions, strict=True))
        if question.kind == "choice":
            choices = [_with("value", option, text) for option, text in described]
            return {"type": "choice", "name": qid, "instructions": instructions, "choices": choices}
        if question.kind == "score":
            levels = [{"label": _text(text)} for _, text in described]
            return {"type": "score", "name": qid, "instructions": instructions, "levels": levels}
        # The wire has no room for what yes and no mean, so it goes where it is read.
        sides = "; ".join(f"{side}: {_text(text)}" for side, text in described if text)
        return {
            "type": "predicate",
            "name": qid,
            "instructions": f"{instructions} ({sides})" if sides else instructions,
        }

    def answers(self, request: Request, reply: Any) -> Body:
        listed = reply.get("answers") if isinstance(reply, dict) else None
        questions = request.questions.questions
        if not isinstance(listed, list) or len(listed) != len(questions):
            count = len(listed) if isinstance(listed, list) else "no list of"
            raise WireFault(f"{count} answers to {len(questions)} questions")
        return {
            qid: self._answer(question, _is_object(body, f"answers[{place}]"))
            for place, ((qid, question), body) in enumerate(zip(questions.items(), listed, strict=True))
        }

    def _answer(self, question: Question, body: Body) -> Body:
        if body.get("type") == "refusal":
            return {"type": "refusal"}
        listed = body.get("probabilities")
        pairs = listed if isinstance(listed, list) else []
        found: Body = {"type": question.kind}
        if question.kind == "noul":
            return found | {"noul": body.get("probability")}
        found |= {"confidence": body.get("confidence")}
        spread = {
            _key(pair.get("value")): pair.get("probability") for pair in pairs if isinstance(pair, dict)
        }
        if spread:
            found["probabilities"] = spread
        if question.kind == "choice":
            return found | {"choice": _key(body.get("choice"))}
        return found | {"score": body.get("score")}


class VercelEvaluation(SystemOne):
    """System One with other names; confidences stand beside the answers."""

    def answers(self, request: Request, reply: Any) -> Body:
        found = super().answers(request, reply)
        beside: Any = reply.get("providerMetadata")
        for key in ("typesafe", "confidence"):
            beside = beside.get(key) if isinstance(beside, dict) else None
        for qid, stated in beside.items() if isinstance(beside, dict) else ():
            if qid in found:
                found[qid] = {"confidence": stated} | found[qid]
        return found


class Hunch(Wire):
    """Checks in, results out."""

    def body(self, request: Request) -> Body:
        questions = request.questions
        return {
            "context": request.state,
            "checks": {
                qid: self._check(question, questions.bodies[qid])
                for qid, question in questions.questions.items()
            },
        }

    def _check(self, question: Question, body: Mapping[str, Any]) -> Body:
        found: Body = {"question": body.get("instructions")}
        if question.kind == "choice":
            options = dict(zip(question.options, question.descriptions, strict=True))
            return {"kind": "pick", **found, "options": options}
        if question.kind == "score":
            return {"kind": "scale", **found, "levels": [_text(text) for text in question.descriptions]}
        no, yes = question.descriptions
        sides = {key: text for key, text in (("yes_if", yes), ("no_if", no)) if text}
        return {"kind": "yesno", **found, **sides}

    def answers(self, request: Request, reply: Any) -> Body:
        results = _object(reply, "results")
        questions = request.questions.questions
        return {
            qid: self._answer(questions[qid], _is_object(body, f"results.{qid}"))
            for qid, body in results.items()
            if qid in questions
        }

    def _answer(self, question: Question, body: Body) -> Body:
        found: Body = {"type": question.kind}
        if question.kind == "noul":
            return found | {"noul": body.get("p_yes")}
        found["confidence"] = body.get("confidence")
        probs = body.get("probs")
        if isinstance(probs, list):
            probs = dict(zip(question.options, probs, strict=False))
        if isinstance(probs, dict):
            found["probabilities"] = probs
        if question.kind == "choice":
            return found | {"choice": body.get("pick")}
        return found | {"score": body.get("value")}


def finished(request: Request, answers: Body, *, rounds: bool, top: bool) -> tuple[Body, int]:
    """Answers with rounded probabilities scaled to 1, and with the probability of the answer as confidence.

    Parameters
    ----------
    request : Request
    answers : dict
        As `Wire.answers` gives them.
    rounds : bool
        Whether the wire rounds: then sums within 0.02 of 1 are scaled; others are left to be refused.
    top : bool
        Set ``answer_confidence`` to the probability of the likeliest option.

    Returns
    -------
    (dict, int)
        The answers, and how many were scaled.
    """
    scaled = 0
    done: Body = {}
    for qid, body in answers.items():
        spread = body.get("probabilities")
        if isinstance(spread, dict) and spread and all(map(_is_share, spread.values())):
            total = sum(spread.values())
            # What rounding to four decimals can do is let be: every reader takes it.
            if rounds and len(spread) * 5e-5 < abs(total - 1.0) <= NOT_ONE + 1e-9:
                spread = {key: value / total for key, value in spread.items()}
                scaled += 1
            body = body | {"probabilities": spread}
            if top:
                body = body | {"answer_confidence": max(spread.values())}
        done[qid] = body
    return done, scaled


def tokens_of(reply: Any) -> tuple[int | None, int | None]:
    """Input and output tokens by any of their names; None where the reply does not say."""
    usage = (reply.get("usage") or reply.get("total_usage")) if isinstance(reply, dict) else None
    if not isinstance(usage, dict):
        return None, None

    def first(*names: str) -> int | None:
        found = (usage.get(name) for name in names)
        return next((value for value in found if type(value) is int and value >= 0), None)

    return (
        first("input_tokens", "inputTokens", "prompt_tokens"),
        first("output_tokens", "outputTokens", "completion_tokens"),
    )


def _is_share(value: Any) -> bool:
    return type(value) in (int, float) and 0.0 <= value <= 1.0


def _is_object(value: Any, place: str) -> Body:
    if not isinstance(value, dict):
        raise WireFault(f"{place} is {type_name(value)}, not an object")
    return value


def _object(reply: Any, key: str) -> Body:
    if not isinstance(reply, dict) or not isinstance(reply.get(key), dict):
        raise WireFault(f"the reply has no object {quote(key)}")
    found: Body = reply[key]
    return found


def _key(value: Any) -> Any:
    """A choice as options are keyed: ``true`` is not ``"true"`` on the wire, and is its text here."""
    return value if isinstance(value, str) or value is None else dumps(value).decode()


def _with(key: str, value: Any, description: Any) -> Body:
    return {key: value, "description": _text(description)} if description else {key: value}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else dumps(value).decode()
