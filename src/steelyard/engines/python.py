"""Any Python callable or object with `predict`, taken as an engine."""

from __future__ import annotations

import importlib
import inspect
import math
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.core.requests import Ability, CallOptions, Failure, Reply, Request
from steelyard.engines._base import Engine
from steelyard.errors import EngineError, InputError
from steelyard.formats.jsontext import loads, one_line, quote, type_name

_NAMES = {
    "batch": Ability.BATCH,
    "pin_model": Ability.PIN_MODEL,
    "min_confidence": Ability.MIN_CONFIDENCE,
    "sort_by_length": Ability.SORT_BY_LENGTH,
    "concurrent": Ability.CONCURRENT,
}


class PythonEngine(Engine):
    """``module:attr``: a callable ``f(state, questions)``, or an object with `predict` or `predict_batch`.

    A class, or any callable when settings are given, is called with the settings to make the
    object. Abilities are read once: from an `abilities` attribute (names among batch, pin_model,
    min_confidence, sort_by_length, concurrent) where there is one, else from the signatures.
    """

    name = "python"
    summary = "a callable or an object with predict(state, questions) or predict_batch"
    needs = "your own code"
    target_help = "MODULE:ATTR"

    def __init__(self, target: str | None = None, **settings: Any) -> None:
        super().__init__(target)
        self._settings = settings
        self._load(_import(target or "", settings))

    @classmethod
    def wrap(cls, runner: Any) -> PythonEngine:
        """Take a live object as an engine."""
        engine = cls.__new__(cls)
        engine.target = (
            f"{type(runner).__module__}:{getattr(runner, '__qualname__', type(runner).__qualname__)}"
        )
        engine._settings = {}
        engine._load(runner)
        return engine

    def _load(self, runner: Any) -> None:
        predict = getattr(runner, "predict", None) or (runner if callable(runner) else None)
        self._predict, self._batch = predict, getattr(runner, "predict_batch", None)
        if predict is None and self._batch is None:
            raise InputError(f"python:{self.target} is neither callable nor has predict or predict_batch")
        revision = getattr(runner, "revision", None)
        self.revision = None if revision is None else str(revision)
        self._form = _batch_form(self._batch)
        self._single_takes, self._batch_takes = _keywords(predict), _keywords(self._batch)
        declared = getattr(runner, "abilities", None)
        if declared is None or isinstance(declared, Ability):
            self.abilities = declared or self._asked()
        else:
            unknown = [name for name in declared if name not in _NAMES]
            if unknown:
                raise InputError(
                    f"python:{self.target} declares {quote(unknown[0])}; known: {', '.join(_NAMES)}"
                )
            self.abilities = Ability.NONE
            for name in declared:
                self.abilities |= _NAMES[name]

    def _asked(self) -> Ability:
        """Abilities as the signatures tell them."""
        abilities = Ability.BATCH if self._form else Ability.NONE
        for name, ability in (("model", Ability.PIN_MODEL), ("min_confidence", Ability.MIN_CONFIDENCE)):
            ways = [self._single_takes] if self._predict else []
            if self._form and (name != "model" or self._form == "states"):
                ways.append(self._batch_takes)
            if ways and all(name in takes for takes in ways):
                abilities |= ability
        return abilities | (Ability.SORT_BY_LENGTH if "sort_by_length" in self._batch_takes else Ability.NONE)

    @property
    def settings(self) -> Mapping[str, Any]:
        return self._settings

    def answer(self, requests: Sequence[Request], options: CallOptions) -> Sequence[Reply]:
        # Parsed anew for every call: the caller's code may change what it is handed.
        questions = loads(requests[0].questions.raw)
        if self._form and (len(requests) > 1 or self._predict is None):
            results = self._call_batch(requests, questions, options)
            if not isinstance(results, Sequence) or len(results) != len(requests):
                count = len(results) if isinstance(results, Sequence) else type_name(results)
                raise EngineError(f"{len(requests)} requests sent, {count} answers came back")
            return [_reply(request, result) for request, result in zip(requests, results, strict=True)]
        return [self._single(requests[0], questions, options)]

    def _single(self, request: Request, questions: Any, options: CallOptions) -> Reply:
        extra: dict[str, Any] = {}
        if request.model is not None and "model" in self._single_takes:
            extra["model"] = request.model
        if options.min_confidence is not None:
            extra["min_confidence"] = options.min_confidence
        assert self._predict is not None
        return _reply(request, self._predict(request.state, questions, **extra))

    def _call_batch(self, requests: Sequence[Request], questions: Any, options: CallOptions) -> Any:
        assert self._batch is not None
        extra: dict[str, Any] = (
            {"batch_size": options.batch_size} if "batch_size" in self._batch_takes else {}
        )
        if options.sort_by_length and "sort_by_length" in self._batch_takes:
            extra["sort_by_length"] = True
        if options.min_confidence is not None:
            extra["min_confidence"] = options.min_confidence
        if self._form == "requests":
            bodies = [{"state": r.state, "questions": questions, "model": r.model} for r in requests]
            return self._batch(bodies, **extra)
        if requests[0].model is not None and "model" in self._batch_takes:
            extra["model"] = requests[0].model
        return self._batch([r.state for r in requests], questions, **extra)


def _import(target: str, settings: Mapping[str, Any]) -> Any:
    module_name, _, attribute = target.partition(":")
    if not module_name or not attribute:
        raise InputError(f"python:{one_line(target)}: name both module and attribute, as python:MODULE:ATTR")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module_name)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise InputError(f"python:{one_line(target)}: {one_line(error)}") from None
    except Exception as error:
        raise EngineError(f"python:{one_line(target)} could not be imported: {_told(error)}") from error
    if inspect.isclass(found) or settings:
        try:
            return found(**settings)
        except Exception as error:
            raise EngineError(f"python:{one_line(target)} could not be made: {_told(error)}") from error
    return found


def _told(error: Exception) -> str:
    return one_line(f"{type(error).__name__}: {error}")


def _keywords(function: Any) -> frozenset[str]:
    """Names a callable takes by keyword, of those a run may send."""
    known = ("model", "min_confidence", "batch_size", "sort_by_length")
    if function is None:
        return frozenset()
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return frozenset()
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return frozenset(known)
    return frozenset(name for name in known if name in parameters)


def _batch_form(function: Any) -> str | None:
    """``requests`` when one list of requests is taken, ``states`` when states and questions are."""
    if function is None:
        return None
    try:
        parameters = [
            p for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD
        ]
    except (TypeError, ValueError):
        return "states"
    return "requests" if parameters and parameters[0].name == "requests" else "states"


def _reply(request: Request, result: Any) -> Reply:
    """A runner's result: ``{"answers": ..., "model": ..., "routing": ...}`` or the bare answers."""
    if not isinstance(result, dict):
        return Reply(
            request.row, failure=Failure("invalid_answer", f"result is {type_name(result)}, not an object")
        )
    return reply_from_body(request.row, result)


def reply_from_body(row: int, body: Mapping[str, Any]) -> Reply:
    """Reply from a result object; the route's model comes before the result's own name."""
    if "answers" not in body:
        bare = set(map(type, body.values())) == {dict}
        if not bare:
            return Reply(row, failure=Failure("missing_answer", "the result holds no answers"))
        return Reply(row, body)
    routing = body.get("routing")
    model = (routing.get("model") if isinstance(routing, dict) else None) or body.get("model")
    return Reply(
        row,
        body["answers"],
        model if isinstance(model, str) and model else None,
        cost=_cost(body.get("cost")),
    )


def _cost(value: Any) -> float | None:
    """Money a result says it took; what is no amount is not known, and never 0."""
    amount = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if amount and 0 <= value < math.inf else None
