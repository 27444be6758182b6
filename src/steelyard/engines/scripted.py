"""A fake engine with dials, for tests, docs and rehearsing a pipeline."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.core.questions import Question
from steelyard.core.requests import Ability, CallOptions, Failure, Reply, Request
from steelyard.engines._base import Engine, number_setting
from steelyard.errors import InputError
from steelyard.formats.jsontext import quote

if TYPE_CHECKING:
    from steelyard.formats.dataset import Dataset


class ScriptedEngine(Engine):
    """Knows the labels and answers as well, or as badly, as its dials say.

    Answers depend on `seed` and the row alone, never on batching, order or earlier calls.

    Parameters
    ----------
    accuracy : float
        Chance that the top option is the label, 0 to 1.
    sharpness : float
        How far the true chance of being right spreads around `accuracy`; 0 gives every answer the
        same confidence.
    over_confidence : float
        Multiplies the log odds of the stated confidence; 1 is honest.
    slot_bias : float
        Chance that the first option is answered whatever is right.
    latency : float
        Seconds each call waits.
    fail_every : int
        Every n-th row fails; 0 for never.
    fail_pattern : str
        Rows whose state matches this regular expression fail.
    bad_every : int
        Every n-th row gets probabilities that do not add up; 0 for never.
    seed : int
    """

    name = "scripted"
    summary = "fake with dials: accuracy, sharpness, over_confidence, slot_bias, latency, failures"
    abilities = Ability.BATCH | Ability.CONCURRENT | Ability.PIN_MODEL | Ability.MIN_CONFIDENCE
    revision = "1"

    def __init__(
        self,
        target: str | None = None,
        *,
        accuracy: float = 0.8,
        sharpness: float = 0.5,
        over_confidence: float = 1.0,
        slot_bias: float = 0.0,
        latency: float = 0.0,
        fail_every: int = 0,
        fail_pattern: str = "",
        bad_every: int = 0,
        seed: int = 0,
        **settings: Any,
    ) -> None:
        self._settings = {
            "accuracy": number_setting("accuracy", accuracy, 0, 1),
            "sharpness": number_setting("sharpness", sharpness, 0, 1),
            "over_confidence": number_setting("over_confidence", over_confidence, 0, 100),
            "slot_bias": number_setting("slot_bias", slot_bias, 0, 1),
            "latency": number_setting("latency", latency, 0, 600),
            "fail_every": number_setting("fail_every", fail_every, 0, 10**9, whole=True),
            "fail_pattern": str(fail_pattern),
            "bad_every": number_setting("bad_every", bad_every, 0, 10**9, whole=True),
            "seed": number_setting("seed", seed, 0, 2**63, whole=True),
        }
        super().__init__(target, **settings)
        try:
            self._pattern = re.compile(str(fail_pattern)) if fail_pattern else None
        except re.error as error:
            raise InputError(f"setting fail_pattern {quote(fail_pattern)}: {error}") from None
        self._dataset: Dataset | None = None

    @property
    def settings(self) -> Mapping[str, Any]:
        return self._settings

    def prepare(self, dataset: Dataset, options: CallOptions) -> None:
        # The labels are all it knows; read ahead of the calls, which may overlap.
        self._expected = [case.expected for case in dataset]

    def answer(self, requests: Sequence[Request], options: CallOptions) -> Sequence[Reply]:
        if self._settings["latency"]:
            time.sleep(self._settings["latency"])
        return [self._reply(request, options) for request in requests]

    def _reply(self, request: Request, options: CallOptions) -> Reply:
        row, every = request.row, self._settings["fail_every"]
        if every and (row + 1) % every == 0:
            return Reply(row, failure=Failure("engine_failed", "scripted failure"))
        if self._pattern and self._pattern.search(str(request.state)):
            return Reply(row, failure=Failure("engine_failed", "scripted failure: pattern"))
        rng = np.random.Generator(np.random.PCG64((self._settings["seed"], row)))
        expected = self._expected[row]
        answers = {
            qid: self._answer(rng, question, expected.get(qid))
            for qid, question in request.questions.questions.items()
        }
        every = self._settings["bad_every"]
        if every and (row + 1) % every == 0:
            for answer in answers.values():
                answer["probabilities"] = dict.fromkeys(
                    answer.get("probabilities", {"true": 0, "false": 0}), 0.9
                )
        if options.min_confidence is not None:
            for answer in answers.values():
                below = answer["answer_confidence"] < options.min_confidence
                answer["abstention"] = "abstained" if below else "passed"
                answer |= {"low_confidence": True} if below else {}
        return Reply(row, answers, request.model or "scripted")

    def _answer(self, rng: np.random.Generator, question: Question, label: Any) -> dict[str, Any]:
        size = len(question.options)
        gold = question.gold(label) if label is not None else None
        place = int(rng.integers(size)) if gold is None else round(gold)
        dials = self._settings
        spread = dials["sharpness"] * min(dials["accuracy"], 1.0 - dials["accuracy"])
        chance = dials["accuracy"] + spread * float(rng.uniform(-1.0, 1.0))
        right = rng.uniform() < chance
        top = place if right or size == 1 else (place + 1 + int(rng.integers(size - 1))) % size
        if rng.uniform() < dials["slot_bias"]:
            top = 0
        odds = max(chance, 1e-6) / max(1.0 - chance, 1e-6)
        stated = odds ** dials["over_confidence"]
        # The top option must stay on top, so confidence is never below an even share.
        peak = round(max(stated / (1.0 + stated), 1.0 / size + 0.01 if size > 1 else 1.0), 4)
        return _body(question, top, min(peak, 1.0))


def _body(question: Question, top: int, peak: float) -> dict[str, Any]:
    size = len(question.options)
    if question.kind == "noul":
        p = peak if top == 1 else round(1.0 - peak, 4)
        return {"type": "noul", "noul": p, "answer_confidence": max(p, 1.0 - p)}
    rest = (1.0 - peak) / (size - 1) if size > 1 else 0.0
    vector = [rest] * size
    vector[top] = peak if size > 1 else 1.0
    body: dict[str, Any] = {"type": question.kind}
    if question.kind == "choice":
        body["choice"] = question.options[top]
    else:
        body["score"] = min(size - 1.0, sum(i * x for i, x in enumerate(vector)))
    return body | {
        "probabilities": dict(zip(question.options, vector, strict=True)),
        "answer_confidence": vector[top],
    }
