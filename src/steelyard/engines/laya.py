"""Laya in process: an agent on one checkpoint, or the router over several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from steelyard.core.requests import Ability, CallOptions, Facts, Reply, Request
from steelyard.engines._base import Engine
from steelyard.engines._laya_prompt import lengths
from steelyard.engines.python import reply_from_body
from steelyard.errors import EngineError, InputError, MissingExtraError
from steelyard.formats.checkpoint import folder_sha256, is_checkpoint, no_commit, read_config, temperatures
from steelyard.formats.jsontext import one_line, quote

if TYPE_CHECKING:
    from steelyard.core.questions import Question
    from steelyard.formats.dataset import Dataset

ROUTED = (
    "auto",
    "english",
    "multilingual",
    "typed-decisions",
    "en",
    "default",
    "multi",
    "ml",
    "typed",
    "decisions",
)
"""Names of the router; everything else is a folder or a hub id."""


class LayaEngine(Engine):
    """A Laya checkpoint, or the router that picks one."""

    name = "laya"
    summary = "Laya in process: a folder, a hub id, or a name of its router; auto lets the router choose."
    needs = 'pip install "steelyard[laya]"'
    target_help = "FOLDER, HUB_ID or NAME"

    def __init__(
        self,
        target: str | None = None,
        *,
        device: str | None = None,
        revision: str | None = None,
        subfolder: str | None = None,
        max_len: int | None = None,
        head_max_len: int | None = None,
        exact: bool = False,
        unclamped: bool = False,
        **settings: Any,
    ) -> None:
        self._device, self._subfolder = device, subfolder
        self._lengths = lengths(max_len, head_max_len)
        self._exact, self._unclamped = bool(exact or unclamped), bool(unclamped)
        self._local = target is not None and is_checkpoint(target)
        self._config = read_config(target) if self._local and target is not None else None
        self._routes = target in ROUTED and not self._local
        self._agent: Any = None
        super().__init__(target, **settings)
        self._pins = pins_of(revision, routes=self._routes)
        if target is not None and not self._local and Path(target).is_dir():
            raise InputError(f"{one_line(target)}: is a folder, but not one with a checkpoint")
        if self._local:
            no_commit(revision)
        if self._exact and self._routes:
            raise InputError("exact and unclamped need one checkpoint: name its folder or hub id")
        # Before loading, which may rewrite a tokenizer's file.
        self.revision = f"sha256:{folder_sha256(target)}" if self._local and target is not None else revision
        self.abilities = Ability.BATCH | Ability.SORT_BY_LENGTH | Ability.MIN_CONFIDENCE
        self.abilities |= Ability.PIN_MODEL if self._routes else Ability.LOGITS

    @property
    def settings(self) -> Mapping[str, Any]:
        """What moves answers, with the temperatures a folder says and those that are applied."""
        found: dict[str, Any] = {"subfolder": self._subfolder, **self._lengths}
        found["probabilities"] = "exact" if self._exact else "rounded"
        found["unclamped"] = self._unclamped
        if self._config is not None:
            found["temperatures"] = msgspec.to_builtins(temperatures(self._config))
        return found

    def prepare(self, dataset: Dataset, options: CallOptions) -> None:
        if self._agent is not None:
            return
        laya = import_laya(self.name)
        pins = self._pins
        try:
            if self._routes:
                self._agent = laya.Router(device=self._device, preload=False, **pins)
            else:
                self._agent = laya.Agent(self.target, device=self._device, subfolder=self._subfolder, **pins)
        except Exception as error:
            raise EngineError(f"laya:{one_line(self.target)} cannot be loaded: {one_line(error)}") from error
        if self._routes and len(self._agent.revisions) < len(pins.get("revisions", ())):
            raise InputError("revision names one checkpoint by two of its names; name each once")
        resolved = getattr(self._agent, "revision", None)
        self.revision = self.revision or (str(resolved) if resolved else None)
        if self._exact:
            self._check_scores(dataset.request(0))

    def answer(self, requests: Sequence[Request], options: CallOptions) -> Sequence[Reply]:
        results = self._results(requests, options)
        # The router finds out while it loads which commit a checkpoint is of.
        commits = self._agent.loaded_revisions if self._routes else {}
        replies = [
            reply_of(request, result, commits) for request, result in zip(requests, results, strict=True)
        ]
        return self._sharpened(requests, replies) if self._exact else replies

    def _results(self, requests: Sequence[Request], options: CallOptions) -> Any:
        questions = dict(requests[0].questions.bodies)
        extra: dict[str, Any] = {name: value for name, value in self._lengths.items() if value is not None}
        if options.min_confidence is not None:
            extra["min_confidence"] = options.min_confidence
        if len(requests) == 1:
            model = {"model": self._model(requests[0])} if self._routes else {}
            return [self._agent.predict(requests[0].state, questions, **model, **extra)]
        if options.sort_by_length:
            extra["sort_by_length"] = True
        if self._routes:
            # The router takes lengths for each request, not for the call.
            own = {name: extra.pop(name) for name in self._lengths if name in extra}
            bodies = [
                {"state": request.state, "questions": questions, "model": self._model(request), **own}
                for request in requests
            ]
            return self._agent.predict_batch(bodies, batch_size=len(requests), **extra)
        states = [request.state for request in requests]
        return self._agent.predict_batch(states, questions, batch_size=len(requests), **extra)

    def _model(self, request: Request) -> str | None:
        return request.model or (None if self.target == "auto" else self.target)

    def _scores(self, requests: Sequence[Request]) -> Any:
        from steelyard.engines._laya_logits import raw_scores

        questions = dict(requests[0].questions.bodies)
        return raw_scores(self._agent, [request.state for request in requests], questions, **self._lengths)

    def _sharpened(self, requests: Sequence[Request], replies: Sequence[Reply]) -> list[Reply]:
        """Replies whose probabilities are worked out from the scores, not rounded."""
        found = []
        for request, reply, scores in zip(requests, replies, self._scores(requests), strict=True):
            questions = request.questions.questions
            answers = {
                qid: sharper(questions[qid], dict(body), self._shares(questions[qid], scores[qid]))
                for qid, body in reply.answers.items()
            }
            found.append(msgspec.structs.replace(reply, answers=answers))
        return found

    def _shares(self, question: Question, scores: Any) -> list[float]:
        from steelyard.engines._laya_logits import softmax

        applied = temperatures(self._config or self._agent.cfg)
        heat = applied.of(question.kind, len(question.options), clamped=not self._unclamped)
        found: list[float] = softmax(scores, heat).tolist()
        return found

    def _check_scores(self, request: Request) -> None:
        """Refuse scores that do not give the answers the library gives."""
        from steelyard.engines._laya_logits import APART, softmax

        result = self._results([request], CallOptions())[0]["answers"]
        applied = temperatures(self._config or self._agent.cfg)
        for qid, scores in self._scores([request])[0].items():
            question, body = request.questions.questions[qid], result[qid]
            public = body.get("probabilities") or {"false": 1.0 - body["noul"], "true": body["noul"]}
            own = softmax(scores, applied.of(question.kind, len(question.options)))
            apart = max(abs(own[at] - value) for at, value in enumerate(public.values()))
            if not apart <= APART:
                raise EngineError(
                    f"question {quote(qid)}: scores and answers of the installed laya are {apart:.4f} "
                    "apart; leave exact out"
                )

    def close(self) -> None:
        """The model is kept: a second run of the same engine need not load it again."""


def pins_of(text: str | None, *, routes: bool) -> dict[str, Any]:
    """Commits to load, as the library takes them, from ``SHA``, ``NAME=SHA`` or several joined by ``+``.

    Raises
    ------
    InputError
        Two commits for one checkpoint, a name without the router, or a part that is empty.
    """
    found: dict[str, Any] = {}
    for part in [] if text is None else str(text).split("+"):
        name, equals, commit = part.rpartition("=")
        if not commit.strip() or (equals and not name.strip()):
            raise InputError(f"revision must be a commit or NAME=COMMIT, got {quote(part)}")
        if equals and not routes:
            raise InputError(
                f"revision {quote(part)} pins a checkpoint of the router; name laya:auto or one of its "
                "checkpoints, or leave the name out"
            )
        place = found.setdefault("revisions", {}) if equals else found
        key = name.strip().lower() if equals else "revision"
        if place.setdefault(key, commit.strip()) != commit.strip():
            raise InputError(f"revision names two commits for {quote(name) if equals else 'one checkpoint'}")
    return found


def import_laya(engine: str) -> Any:
    """The library, or the word that it is missing.

    Raises
    ------
    MissingExtraError
        laya, or torch beside it, is not installed.
    """
    try:
        import laya
        import torch  # noqa: F401  # laya imports without it, and then cannot load
    except ImportError as error:
        raise MissingExtraError(engine, error.name or "laya", "laya") from None
    return laya


def reply_of(request: Request, result: Any, commits: Mapping[str, str | None]) -> Reply:
    """A result of the library with what it says of tokens, truncation and the checkpoint that answered."""
    reply = reply_from_body(request.row, result)
    usage = result.get("usage")
    commit = commits.get(reply.model or "")
    if not isinstance(usage, dict):
        return reply if commit is None else msgspec.structs.replace(reply, facts=Facts(revision=commit))
    facts = Facts(
        revision=commit,
        input_tokens=usage.get("input_tokens"),
        output_tokens=usage.get("output_tokens"),
        truncated=bool(usage.get("truncated")),
    )
    return msgspec.structs.replace(reply, facts=facts)


def sharper(question: Question, body: dict[str, Any], shares: list[float]) -> dict[str, Any]:
    """An answer with these probabilities in place of its rounded ones."""
    body["answer_confidence"] = max(shares)
    if question.kind == "noul":
        return body | {"noul": shares[1], "confidence": max(shares)}
    body["probabilities"] = dict(zip(question.options, shares, strict=True))
    if question.kind == "score":
        body["score"] = sum(level * share for level, share in enumerate(shares))
    else:
        body["choice"] = question.options[max(range(len(shares)), key=shares.__getitem__)]
    return body
