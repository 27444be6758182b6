"""Engines behind HTTP: one class for every wire, what differs being data."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

from steelyard.core.requests import Ability, CallOptions, Facts, Failure, Reply, Request
from steelyard.engines._base import Engine, number_setting
from steelyard.engines._over_limit import OverLimit
from steelyard.engines._secrets import read_secret
from steelyard.engines.presets import WAYS, Preset, changed
from steelyard.engines.wires import SystemOne, Wire, WireFault, finished, tokens_of
from steelyard.errors import InputError
from steelyard.formats.jsontext import dumps, one_line, quote

if TYPE_CHECKING:
    from steelyard.engines._http import Answered
    from steelyard.formats.dataset import Dataset

_PATIENCE = (
    "retries", "attempt_timeout", "backoff", "longest", "breaker", "requests_per_second", "tokens_per_second",
    "deadline", "max_cost", "max_requests",
)  # fmt: skip
_OURS = (
    "path", "auth", "key_env", "model", "unwrap", "confidence", "rounds", "price_input", "price_output",
    "probability_source", "most_questions", "most_options", "most_levels", "most_states",
)  # fmt: skip
"""Settings that take the place of what a preset says."""
BYTES_A_TOKEN = 3.0
"""For what is set aside before a call; text seldom has fewer."""


class HostedEngine(Engine):
    """An engine asked over HTTP."""

    needs = "an endpoint you name, and its key in the environment or a file"
    target_help = "URL"
    abilities = Ability.ASYNC | Ability.CONCURRENT | Ability.PIN_MODEL
    preset: ClassVar[Preset] = Preset()
    wire_class: ClassVar[type[Wire]] = SystemOne
    nickname: ClassVar[str] = ""
    """Target that stands for the place the preset names."""

    def __init__(self, target: str | None = None, **settings: Any) -> None:
        preset, url = self._preset(target, settings)
        self._patience = {name: settings.pop(name) for name in _PATIENCE if name in settings}
        self._check_patience()
        key_file = settings.pop("key_file", None)
        account = settings.pop("account", None)
        changes = {name: settings.pop(name) for name in _OURS if name in settings}
        cache = settings.pop("cache", None)
        way = settings.pop("over_limit", None)
        self._wire = preset = changed(preset, changes)
        if settings:
            known = ", ".join((*_OURS, *_PATIENCE, "over_limit", "key_file", "cache", "account"))
            raise InputError(
                f'engine "{self.name}" has no setting {quote(next(iter(settings)))}; it takes {known}'
            )
        if way not in (None, *WAYS):
            raise InputError(f"setting over_limit must be {' or '.join(WAYS)}, got {quote(way)}")
        if way is not None and not (preset.most_options or preset.most_questions):
            raise InputError("over_limit needs a limit: set most_options or most_questions, as none is known")
        self._over = None if way is None else OverLimit(way, preset.most_options, preset.most_questions)
        self._way = way
        self._base = _url(url or preset.base_url, account, self.name)
        self._secret = read_secret(preset.key_env, key_file)
        self._speaks = self.wire_class(preset.yes_no)
        self._cache_path = cache
        super().__init__(target if self.target_help else None)
        if preset.batch_path:
            self.abilities = self.abilities | Ability.BATCH
        if preset.min_confidence:
            self.abilities = self.abilities | Ability.MIN_CONFIDENCE

    def _preset(self, target: str | None, settings: dict[str, Any]) -> tuple[Preset, str | None]:
        """What the target means: for most engines the place of the server."""
        return self.preset, None if target == self.nickname else target

    def _check_patience(self) -> None:
        whole = ("retries", "breaker", "max_requests")
        for name, value in self._patience.items():
            low = 1 if name in ("breaker", "max_requests") else 0
            number_setting(name, value, low, 10**9, whole=name in whole)

    @property
    def settings(self) -> Mapping[str, Any]:
        """What moves answers; how patiently they are asked for does not, and keys never show."""
        preset = self._wire
        found: dict[str, Any] = {
            "url": self._base + preset.path,
            "model": preset.model,
            "confidence": preset.confidence,
            "rounds": preset.rounds,
            "probability_source": preset.probability_source,
        }
        if self._over is not None:
            found |= {"over_limit": self._way, "most_options": preset.most_options}
            found |= {"most_questions": preset.most_questions}
        return found

    def prepare(self, dataset: Dataset, options: CallOptions) -> None:
        if not self._secret and self._wire.auth != "none" and not _is_local(self._base):
            raise InputError(
                f'engine "{self.name}" needs a key: set {self._wire.key_env or "key_env"}, or name '
                "key_file=PATH"
            )
        for row in range(len(dataset)):
            self._check_limits(dataset, row)
        if options.batch_size > 1 and self._wire.most_states and options.batch_size > self._wire.most_states:
            raise InputError(
                f'engine "{self.name}" takes {self._wire.most_states} states a call, got {options.batch_size}'
            )

    def _check_limits(self, dataset: Dataset, row: int) -> None:
        preset = self._wire
        questions = dataset.questions_of(row).questions
        # Levels have an order that groups of them would lose.
        mend = f"set over_limit to {' or '.join(WAYS)} to ask in parts"
        if self._over is None and preset.most_questions and len(questions) > preset.most_questions:
            raise InputError(
                f"{dataset.place(row)}: {len(questions)} questions; {self.name} takes "
                f"{preset.most_questions}; {mend}"
            )
        for qid, question in questions.items():
            what, most, ask = "levels", preset.most_levels, "name another engine"
            if question.kind == "choice":
                what, most, ask = "options", None if self._over else preset.most_options, mend
            if question.kind != "noul" and most and len(question.options) > most:
                raise InputError(
                    f"{dataset.place(row)}: question {quote(qid)} has {len(question.options)} {what}; "
                    f"{self.name} takes {most}; {ask}"
                )

    async def open(self) -> None:
        from steelyard.engines._cache import Cache
        from steelyard.engines._http import Client, Patience
        from steelyard.engines._limits import Budget

        patience = Patience(**self._patience)
        self._client = Client(patience, self._secret)
        self._budget = Budget(patience.max_cost)
        self._cache = Cache(self._cache_path) if self._cache_path else None
        await self._client.open(self._headers())

    async def shut(self) -> None:
        await self._client.shut()
        if self._cache is not None:
            self._cache.close()

    async def answer_async(self, requests: Sequence[Request], options: CallOptions) -> Sequence[Reply]:
        if self._over is None or self._over.fits(requests[0].questions):
            return await self._answered(requests, options)

        async def call(request: Request) -> Reply:
            return (await self._answered([request], options))[0]

        return [await self._over.ask(request, call) for request in requests]

    async def _answered(self, requests: Sequence[Request], options: CallOptions) -> Sequence[Reply]:
        from steelyard.engines._http import Rejected, Unanswered

        model = requests[0].model or self._wire.model
        try:
            return await self._asked(requests, model, options)
        except Rejected as error:
            failure = Failure("rejected", one_line(error))
        except Unanswered as error:
            failure = Failure("server_failed", one_line(error))
        except WireFault as error:
            failure = Failure("invalid_answer", self._secret.hidden(one_line(error)))
        return [Reply(request.row, failure=failure) for request in requests]

    async def _asked(
        self, requests: Sequence[Request], model: str | None, options: CallOptions
    ) -> Sequence[Reply]:
        preset, many = self._wire, len(requests) > 1
        body = self._speaks.body(requests[0])
        if many:
            body = {"states": [request.state for request in requests], "questions": body["questions"]}
        if model is not None and preset.model_in in ("body", "both"):
            body = {"model": model} | body
        if options.min_confidence is not None:
            body["min_confidence"] = options.min_confidence
        path = preset.batch_path if many and preset.batch_path else preset.path
        answered = await self._send(self._base + path.replace("{model}", model or ""), dumps(body), model)
        reply = self._unwrapped(answered)
        parts: Any = [reply]
        if many:
            parts = reply.get("results") if isinstance(reply, dict) else None
            if not isinstance(parts, list) or len(parts) != len(requests):
                raise WireFault(f"{len(requests)} states were sent, and not as many results came back")
        return [self._reply(*pair, answered) for pair in zip(requests, parts, strict=True)]

    async def _send(self, url: str, body: bytes, model: str | None) -> Answered:
        key = self._cache.key(self.name, url, str(model), body) if self._cache is not None else ""
        if self._cache is not None and (kept := self._cache.get(key)) is not None:
            return kept
        tokens = len(body) / BYTES_A_TOKEN
        aside = (self._wire.price_input or 0.0) * tokens / 1e6
        self._budget.reserve(aside)
        cost: float | None = None
        try:
            answered = await self._client.post(url, body, self._model_header(model), tokens)
            cost = self._cost(*tokens_of(self._unwrapped(answered))) if aside else None
        finally:
            self._budget.settle(aside, cost)
        if self._cache is not None:
            self._cache.put(key, answered)
        return answered

    def _unwrapped(self, answered: Answered) -> Any:
        key, reply = self._wire.unwrap, answered.body
        if key is None:
            return reply
        return reply.get(key) if isinstance(reply, dict) else None

    def _model_header(self, model: str | None) -> dict[str, str] | None:
        if model is None or self._wire.model_in not in ("header", "both"):
            return None
        return {self._wire.model_header or "x-model": model}

    def _headers(self) -> dict[str, str]:
        preset, key = self._wire, self._secret.reveal()
        found = {"content-type": "application/json", "accept": "application/json", **preset.headers}
        if key and preset.auth == "bearer":
            found["authorization"] = f"Bearer {key}"
        elif key and preset.auth == "basic":
            found["authorization"] = f"Basic {base64.b64encode(key.encode()).decode()}"
        elif key and preset.auth == "x-api-key":
            found["x-api-key"] = key
        return found

    def _reply(self, request: Request, part: Any, answered: Answered) -> Reply:
        preset = self._wire
        answers = self._speaks.answers(request, part)
        answers, scaled = finished(request, answers, rounds=preset.rounds, top=preset.confidence == "top")
        facts = self._facts(part, answered, scaled)
        routing = part.get("routing")
        model = (routing.get("model") if isinstance(routing, dict) else None) or part.get("model")
        return Reply(
            request.row,
            answers,
            model if isinstance(model, str) and model else None,
            cost=0.0 if answered.kept else self._cost(facts.input_tokens, facts.output_tokens),
            facts=facts,
        )

    def _facts(self, part: Any, answered: Answered, scaled: int) -> Facts:
        read, written = tokens_of(part)
        headers, usage = answered.headers, part.get("usage")
        names = ("x-typesafe-request-id", "x-request-id", "cf-ai-req-id", "cf-ray")
        said = headers.get("x-inference-time-ms") or headers.get("server-timing", "").partition("dur=")[2]
        try:
            server_ms = float(said.split(",")[0].split(";")[0]) if said else None
        except ValueError:
            server_ms = None
        return Facts(
            input_tokens=read,
            output_tokens=written,
            request_id=next((one_line(headers[name], 120) for name in names if name in headers), None),
            server_ms=server_ms,
            attempts=answered.attempts,
            renormalised=scaled,
            truncated=isinstance(usage, dict) and bool(usage.get("truncated")),
        )

    def _cost(self, read: int | None, written: int | None) -> float | None:
        """Money by the tokens a reply names; None where it names none, or no price is known."""
        preset = self._wire
        if read is None or preset.price_input is None:
            return None
        if preset.price_output and written is None:
            return None
        return (read * preset.price_input + (written or 0) * (preset.price_output or 0.0)) / 1e6


def _url(text: str, account: Any, name: str) -> str:
    if "{account}" in text:
        if not account:
            raise InputError(f'engine "{name}" needs account=ID in its spec')
        text = text.replace("{account}", str(account))
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise InputError(
            f'engine "{name}" needs the URL of a server, as http://127.0.0.1:8000; got {quote(text)}'
        )
    if parts.username or parts.password:
        raise InputError(
            f'engine "{name}": leave keys out of the URL; set an environment variable or key_file=PATH'
        )
    return text.rstrip("/")


def _is_local(url: str) -> bool:
    return urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")
