"""Questions over a server's limits: narrowed by rounds or by likeness, and asked in several calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import msgspec
import numpy as np

from steelyard.core.questions import Question, QuestionSet
from steelyard.core.requests import Facts, Failure, Reply, Request
from steelyard.engines._limits import total
from steelyard.engines.lexical import ngram_vector
from steelyard.formats.jsontext import dumps, quote
from steelyard.formats.questions import parse_questions

Call = Callable[[Request], Awaitable[Reply]]
Body = dict[str, Any]


class OverLimit:
    """Asks what a server would refuse, keeping each call within its limits.

    A choice with too many options is narrowed first. A *tournament* asks about groups of options, as
    many as the limit allows, and then about the winners, until they fit. A *shortlist* keeps the options
    that share most letters with the state, best first. The answer is then about the finalists only:
    its distribution is dropped, as it says nothing of the others, and what was kept is written beside it.

    Parameters
    ----------
    way : str
        ``tournament`` or ``shortlist``.
    options, questions : int or None
        Limits of a call; at least 2 options.
    """

    def __init__(self, way: str, options: int | None, questions: int | None) -> None:
        self._way, self._options, self._questions = way, options, questions

    def fits(self, questions: QuestionSet) -> bool:
        """Whether a set may be asked as it is."""
        few = self._questions is None or len(questions.questions) <= self._questions
        return few and not any(map(self._wide, questions.questions.values()))

    def _wide(self, question: Question) -> bool:
        return (
            question.kind == "choice" and self._options is not None and len(question.options) > self._options
        )

    async def ask(self, request: Request, call: Call) -> Reply:
        """One reply from as many calls as it takes; the first that fails is the reply."""
        calls = _Calls(request, call, self._questions)
        wide = {qid: one for qid, one in request.questions.questions.items() if self._wide(one)}
        try:
            if self._way == "tournament":
                kept = await self._finalists(calls, wide)
            else:
                kept = {qid: self._likest(request, one) for qid, one in wide.items()}
            bodies: Body = dict(request.questions.bodies)
            for qid, one in wide.items():
                bodies[qid] = narrowed(bodies[qid], one, kept[qid]["labels"])
            answers = await calls.answers(bodies)
        except _FailedError as error:
            return calls.reply({}, error.failure)
        for qid in kept.keys() & answers.keys():
            found = {key: value for key, value in answers[qid].items() if key != "probabilities"}
            answers[qid] = found | {self._way: kept[qid]}
        return calls.reply(answers, None, len(kept))

    async def _finalists(self, calls: _Calls, wide: Mapping[str, Question]) -> dict[str, Body]:
        """Options left after as many rounds as it takes, in the order they were written."""
        most = self._options or 0
        left = {qid: list(one.options) for qid, one in wide.items()}
        rounds = dict.fromkeys(wide, 0)
        while large := [qid for qid, labels in left.items() if len(labels) > most]:
            groups = [(qid, group) for qid in large for group in split(left[qid], most)]
            bodies = {
                str(at): narrowed(calls.request.questions.bodies[qid], wide[qid], group)
                for at, (qid, group) in enumerate(groups)
                if len(group) > 1
            }
            answers = await calls.answers(bodies)
            for qid in large:
                left[qid] = []
                rounds[qid] += 1
            for at, (qid, group) in enumerate(groups):
                won = group[0] if len(group) == 1 else answers.get(str(at), {}).get("choice")
                if won not in group:
                    words = f"a round of the tournament of {quote(qid)} was answered {quote(won)}"
                    raise _FailedError(Failure("invalid_answer", words))
                left[qid].append(won)
        return {
            qid: {"labels": labels, "n": len(wide[qid].options), "rounds": rounds[qid]}
            for qid, labels in left.items()
        }

    def _likest(self, request: Request, question: Question) -> Body:
        """The options most like instructions and state, best first; ties keep their order."""
        said = [question.instructions, request.state]
        query = ngram_vector("\n".join(one if isinstance(one, str) else dumps(one).decode() for one in said))
        scores = np.array([ngram_vector(text) @ query for text in question.texts])
        best = np.argsort(-scores, kind="stable")[: self._options].tolist()
        return {
            "labels": [question.options[at] for at in best],
            "scores": [round(float(scores[at]), 6) for at in best],
            "k": self._options,
            "n": len(question.options),
        }


class _FailedError(Exception):
    """A call without an answer to go on with."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class _Calls:
    """The calls one row takes, one after the other: they count as one against the concurrency."""

    def __init__(self, request: Request, call: Call, questions: int | None) -> None:
        self.request = request
        self._call, self._questions = call, questions
        self._made: list[Reply] = []

    async def answers(self, bodies: Body) -> Body:
        """Answers to questions, no more of them a call than the limit allows."""
        found: Body = {}
        items = list(bodies.items())
        for part in split(items, self._questions or len(items)) if items else ():
            questions = parse_questions(dumps(dict(part)))
            reply = await self._call(msgspec.structs.replace(self.request, questions=questions))
            self._made.append(reply)
            if reply.failure is not None:
                raise _FailedError(reply.failure)
            found |= reply.answers
        return found

    def reply(self, answers: Body, failure: Failure | None, narrowed: int = 0) -> Reply:
        """One reply with the tokens and the money of all calls; what one does not tell is unknown of all."""
        said = [one.facts or Facts() for one in self._made]
        facts = Facts(
            input_tokens=total(one.input_tokens for one in said),
            output_tokens=total(one.output_tokens for one in said),
            request_id=said[-1].request_id if said else None,
            server_ms=total(one.server_ms for one in said),
            attempts=max((one.attempts for one in said), default=1),
            renormalised=sum(one.renormalised for one in said),
            truncated=any(one.truncated for one in said),
            narrowed=narrowed,
        )
        model = self._made[-1].model if self._made else None
        cost = total(one.cost for one in self._made)
        return Reply(self.request.row, answers if failure is None else None, model, failure, cost, facts)


def narrowed(body: Body, question: Question, labels: Iterable[str]) -> Body:
    """A choice with these options only, in this order; an order of its own is of other options and goes."""
    beside = dict(zip(question.options, question.descriptions, strict=True))
    kept = {key: value for key, value in body.items() if key != "option_order"}
    return kept | {"criteria": {label: beside[label] for label in labels}}


def split(items: list[Any], most: int) -> list[list[Any]]:
    """As few parts as hold at most `most` items each, their sizes at most 1 apart."""
    n, parts = len(items), -(-len(items) // most)
    return [items[at * n // parts : (at + 1) * n // parts] for at in range(parts)]
