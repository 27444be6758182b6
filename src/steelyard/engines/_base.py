"""What an engine is, and the table of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from steelyard.core.requests import Ability, CallOptions, Reply, Request
from steelyard.errors import InputError
from steelyard.formats.jsontext import quote

if TYPE_CHECKING:
    from steelyard.formats.dataset import Dataset


class Engine:
    """Answers requests.

    A subclass declares its abilities and implements `answer`. Settings arrive as keyword arguments
    of its constructor and are kept, resolved, in `settings`: they are part of a run's identity.
    """

    name: ClassVar[str] = ""
    summary: ClassVar[str] = ""
    needs: ClassVar[str] = "nothing"
    target_help: ClassVar[str] = ""
    """What stands after the colon of a spec; empty when nothing may."""

    abilities: Ability = Ability.NONE
    revision: str | None = None

    def __init__(self, target: str | None = None, **settings: Any) -> None:
        if target and not self.target_help:
            raise InputError(f'engine "{self.name}" takes no target, got {quote(target)}')
        if self.target_help and not target:
            raise InputError(f'engine "{self.name}" needs a target: {self.name}:{self.target_help}')
        if settings:
            known = f"it takes {', '.join(self.settings)}" if self.settings else "it takes none"
            raise InputError(f'engine "{self.name}" has no setting {quote(next(iter(settings)))}; {known}')
        self.target = target

    @property
    def settings(self) -> Mapping[str, Any]:
        """Resolved settings, in a fixed order."""
        return {}

    def prepare(self, dataset: Dataset, options: CallOptions) -> None:
        """Refuse before the first call what could only fail later; load what loading needs.

        Raises
        ------
        InputError, EngineError
        """

    def answer(self, requests: Sequence[Request], options: CallOptions) -> Sequence[Reply]:
        """Answer a call: one request, or up to `batch_size` with equal questions for BATCH engines.

        Whatever it raises fails the whole call.
        """
        raise NotImplementedError

    async def open(self) -> None:
        """Take what calls on the running event loop need; ASYNC engines only."""

    async def answer_async(self, requests: Sequence[Request], options: CallOptions) -> Sequence[Reply]:
        """As `answer`, on an event loop; ASYNC engines implement this one.

        Raises
        ------
        EngineFailedError
            No further call can succeed: the run stops.
        """
        raise NotImplementedError

    async def shut(self) -> None:
        """Let go of what `open` took."""

    def close(self) -> None:
        """Let go of whatever `prepare` took."""


ENGINES: dict[str, tuple[str, str]] = {
    "hunch": ("steelyard.engines.hunch", "HunchEngine"),
    "laya": ("steelyard.engines.laya", "LayaEngine"),
    "lexical": ("steelyard.engines.lexical", "LexicalEngine"),
    "onnx": ("steelyard.engines.onnx", "OnnxEngine"),
    "openai_chat": ("steelyard.engines.openai_chat", "OpenAIChatEngine"),
    "openai_decisions": ("steelyard.engines.openai_decisions", "OpenAIDecisionsEngine"),
    "python": ("steelyard.engines.python", "PythonEngine"),
    "replay": ("steelyard.engines.replay", "ReplayEngine"),
    "scripted": ("steelyard.engines.scripted", "ScriptedEngine"),
    "systemone": ("steelyard.engines.systemone", "SystemOneEngine"),
    "use": ("steelyard.engines.use", "UseEngine"),
    "vercel_evaluation": ("steelyard.engines.vercel_evaluation", "VercelEvaluationEngine"),
}
"""Engines that ship with the package: where each class is, imported when it is named."""


def number_setting(name: str, value: Any, low: float, high: float, *, whole: bool = False) -> Any:
    """A numeric engine setting inside its range.

    Raises
    ------
    InputError
        Another type, or outside.
    """
    good = type(value) is int or (type(value) is float and not whole)
    if not good or not low <= value <= high:
        kind = "a whole number" if whole else "a number"
        raise InputError(f"setting {name} must be {kind} from {low:g} to {high:g}, got {quote(value)}")
    return value
