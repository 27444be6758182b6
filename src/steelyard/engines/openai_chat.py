"""Any chat model with token probabilities as an engine: one letter, and how likely each was."""

from __future__ import annotations

import math
from collections.abc import Sequence
from string import ascii_uppercase
from typing import Any

from steelyard.core.questions import Question
from steelyard.core.requests import CallOptions, Facts, Reply, Request
from steelyard.engines._limits import total
from steelyard.engines.hosted import HostedEngine
from steelyard.engines.presets import Preset
from steelyard.engines.wires import WireFault, tokens_of
from steelyard.formats.jsontext import dumps

TOP = 20
"""Most alternatives a server shows for a token, and so most letters of one call."""
CHAT = Preset(
    base_url="https://api.openai.com",
    path="/v1/chat/completions",
    key_env="OPENAI_API_KEY",
    confidence="top",
    probability_source="logprob",
)
FORM = "Answer with one letter and nothing else."
Calls = list[Any]


class OpenAIChatEngine(HostedEngine):
    """Chat completions constrained to one letter; its alternatives are the distribution."""

    name = "openai_chat"
    summary = "Any OpenAI-compatible chat endpoint: one letter, judged by its log probabilities."
    target_help = "URL, or openai"
    nickname = "openai"
    preset = CHAT

    async def _asked(
        self, requests: Sequence[Request], model: str | None, options: CallOptions
    ) -> Sequence[Reply]:
        (request,) = requests
        answers: dict[str, Any] = {}
        made: Calls = []
        for qid, question in request.questions.questions.items():
            body = request.questions.bodies[qid]
            shares = await self._shares(request.state, question, body, model, made)
            answers[qid] = answer_of(question, shares)
        return [self._gathered(request, answers, made)]

    async def _shares(
        self, state: Any, question: Question, body: Any, model: str | None, made: Calls
    ) -> list[float]:
        """Probabilities of the options: by groups first where there are more than letters to tell apart."""
        texts = list(question.texts)
        if len(texts) <= TOP:
            return await self._letters(state, body, texts, model, made)
        size = math.ceil(len(texts) / math.ceil(len(texts) / TOP))
        groups = [texts[start : start + size] for start in range(0, len(texts), size)]
        of_groups = await self._letters(state, body, [" | ".join(group) for group in groups], model, made)
        found = []
        for share, group in zip(of_groups, groups, strict=True):
            found += [share * inner for inner in await self._letters(state, body, group, model, made)]
        return found

    async def _letters(
        self, state: Any, body: Any, texts: Sequence[str], model: str | None, made: Calls
    ) -> list[float]:
        if len(texts) == 1:
            return [1.0]
        url = self._base + self._wire.path
        answered = await self._send(url, dumps(prompt(state, body, texts, model)), model)
        made.append(answered)
        return letters_of(answered.body, len(texts))

    def _gathered(self, request: Request, answers: dict[str, Any], made: Calls) -> Reply:
        counts = [tokens_of(answered.body) for answered in made]
        facts = Facts(
            input_tokens=total(read for read, _ in counts),
            output_tokens=total(written for _, written in counts),
            attempts=max((answered.attempts for answered in made), default=1),
        )
        pairs = zip(made, counts, strict=True)
        cost = total(0.0 if answered.kept else self._cost(*pair) for answered, pair in pairs)
        model = next((answered.body.get("model") for answered in made), None)
        return Reply(
            request.row,
            answers,
            model if isinstance(model, str) else None,
            cost=cost,
            facts=facts,
        )


def prompt(state: Any, body: Any, texts: Sequence[str], model: str | None) -> dict[str, Any]:
    """A chat request whose only sensible answer is one of the letters."""
    said = body.get("instructions")
    instructions = said if isinstance(said, str) else dumps(said).decode()
    listed = "\n".join(f"{letter}. {text}" for letter, text in zip(ascii_uppercase, texts, strict=False))
    text = state if isinstance(state, str) else dumps(state).decode()
    found: dict[str, Any] = {} if model is None else {"model": model}
    return found | {
        "messages": [
            {"role": "system", "content": f"{instructions}\n\n{listed}\n\n{FORM}"},
            {"role": "user", "content": text},
        ],
        "max_tokens": 1,
        "temperature": 0,
        "logprobs": True,
        "top_logprobs": TOP,
    }


def letters_of(reply: Any, n: int) -> list[float]:
    """Probabilities of the first `n` letters among the alternatives of the first token.

    Raises
    ------
    WireFault
        The reply shows no alternatives, or none that is one of the letters.
    """
    try:
        shown = reply["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        pairs = [(str(one["token"]).strip(), float(one["logprob"])) for one in shown]
    except (KeyError, IndexError, TypeError, ValueError):
        raise WireFault("the reply shows no log probabilities; the server must support logprobs") from None
    found = dict.fromkeys(ascii_uppercase[:n], 0.0)
    for token, logprob in pairs:
        if token in found:
            found[token] += math.exp(min(0.0, logprob))
    total = sum(found.values())
    if not total > 0.0:
        raise WireFault(
            f"the answer is {pairs[0][0] if pairs else 'nothing'!r}, and no letter that was offered"
        )
    return [share / total for share in found.values()]


def answer_of(question: Question, shares: Sequence[float]) -> dict[str, Any]:
    """An answer from probabilities in the order of the options."""
    found: dict[str, Any] = {"type": question.kind}
    if question.kind == "noul":
        return found | {"noul": shares[1]}
    found |= {
        "probabilities": dict(zip(question.options, shares, strict=True)),
        "answer_confidence": max(shares),
    }
    if question.kind == "score":
        return found | {"score": sum(level * share for level, share in enumerate(shares))}
    return found | {"choice": question.options[max(range(len(shares)), key=shares.__getitem__)]}
