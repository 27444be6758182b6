"""OpenAI Decisions and its mirrors."""

from __future__ import annotations

from steelyard.engines.hosted import HostedEngine
from steelyard.engines.presets import OPENAI
from steelyard.engines.wires import OpenAIDecisions


class OpenAIDecisionsEngine(HostedEngine):
    """The list wire of OpenAI Decisions."""

    name = "openai_decisions"
    summary = "OpenAI Decisions and its mirrors: lists in, lists out, refusals counted as such."
    target_help = "URL, or openai"
    nickname = "openai"
    preset = OPENAI
    wire_class = OpenAIDecisions
