"""OpenAI Decisions and its mirrors."""

from __future__ import annotations

from typing import Any

from steelyard.engines.hosted import HostedEngine
from steelyard.engines.presets import OPENAI, Preset
from steelyard.engines.wires import OpenAIDecisions


class OpenAIDecisionsEngine(HostedEngine):
    """The list wire of OpenAI Decisions."""

    name = "openai_decisions"
    summary = "OpenAI Decisions and its mirrors: lists in, lists out, refusals counted as such."
    target_help = "URL, or openai"
    preset = OPENAI
    wire_class = OpenAIDecisions

    def _preset(self, target: str | None, settings: dict[str, Any]) -> tuple[Preset, str | None]:
        return self.preset, None if target == "openai" else target
