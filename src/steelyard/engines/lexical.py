"""The embedded floor: hashed character n-grams of the state against each option."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.core.questions import Question
from steelyard.core.requests import Ability, CallOptions, Reply, Request
from steelyard.engines._base import Engine, number_setting
from steelyard.formats.jsontext import dumps

_BUCKETS = 1 << 12
_MEMO = 4096


class LexicalEngine(Engine):
    """Scores options by the letters they share with the state.

    It understands nothing, so it is a floor: a model that does no better has learned no more than
    spelling. Deterministic, needs only numpy.

    Parameters
    ----------
    sharpness : float
        Multiplies the cosine before the softmax; 0 answers uniformly.
    """

    name = "lexical"
    summary = "embedded floor: shared character n-grams, no model"
    abilities = Ability.BATCH
    revision = "1"

    def __init__(self, target: str | None = None, *, sharpness: float = 12.0, **settings: Any) -> None:
        self._sharpness = number_setting("sharpness", sharpness, 0, 1000)
        super().__init__(target, **settings)
        self._vectors: dict[str, NDArray[np.float64]] = {}
        self._options: dict[int, tuple[Question, NDArray[np.float64]]] = {}

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"sharpness": self._sharpness}

    def answer(self, requests: Sequence[Request], options: CallOptions) -> Sequence[Reply]:
        replies = []
        for request in requests:
            state = request.state if isinstance(request.state, str) else dumps(request.state).decode()
            vector = ngram_vector(state)
            answers = {
                qid: answer_from_scores(question, self._sharpness * (self._matrix(question) @ vector))
                for qid, question in request.questions.questions.items()
            }
            replies.append(Reply(request.row, answers, "lexical"))
        return replies

    def _matrix(self, question: Question) -> NDArray[np.float64]:
        known = self._options.get(id(question))
        if known is None or known[0] is not question:
            if len(self._options) >= _MEMO:
                self._options.clear()
            known = (question, np.stack([self._vector(text) for text in question.texts]))
            self._options[id(question)] = known
        return known[1]

    def _vector(self, text: str) -> NDArray[np.float64]:
        if text not in self._vectors:
            if len(self._vectors) >= _MEMO:
                self._vectors.clear()
            self._vectors[text] = ngram_vector(text)
        return self._vectors[text]


def answer_from_scores(question: Question, scores: NDArray[np.float64]) -> dict[str, Any]:
    """Answer body whose probabilities are the softmax of one score an option."""
    weights = np.exp(scores - scores.max())
    p = np.round(weights / weights.sum(), 6).tolist()
    if question.kind == "noul":
        return {"type": "noul", "noul": p[1], "answer_confidence": max(p[1], 1.0 - p[1])}
    body: dict[str, Any] = {"type": question.kind}
    if question.kind == "choice":
        body["choice"] = question.options[p.index(max(p))]
    else:
        body["score"] = round(min(len(p) - 1.0, sum(i * x for i, x in enumerate(p))), 6)
    return body | {"probabilities": dict(zip(question.options, p, strict=True)), "answer_confidence": max(p)}


def ngram_vector(text: str) -> NDArray[np.float64]:
    """Unit vector of hashed character 2- to 4-grams inside words, case folded.

    Empty text gives the zero vector.
    """
    counts = np.zeros(_BUCKETS)
    words = "".join(c if c.isalnum() else " " for c in text.casefold()).split()
    grams = [
        f" {word} "[i : i + n].encode("utf-8", "surrogatepass")
        for word in words
        for n in (2, 3, 4)
        for i in range(len(word) + 3 - n)
    ]
    if grams:
        counts += np.bincount([zlib.crc32(gram) % _BUCKETS for gram in grams], minlength=_BUCKETS)
    counts = np.sqrt(counts)
    length = float(np.sqrt(counts @ counts))
    return counts / length if length else counts
