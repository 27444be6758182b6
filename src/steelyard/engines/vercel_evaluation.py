"""The evaluation endpoint of the Vercel AI gateway."""

from __future__ import annotations

from typing import Any

from steelyard.engines.hosted import HostedEngine
from steelyard.engines.presets import VERCEL, Preset
from steelyard.engines.wires import VercelEvaluation


class VercelEvaluationEngine(HostedEngine):
    """The evaluation endpoint of the Vercel AI gateway."""

    name = "vercel_evaluation"
    summary = "The evaluation endpoint of the Vercel AI gateway."
    target_help = "URL, or vercel"
    preset = VERCEL
    wire_class = VercelEvaluation

    def _preset(self, target: str | None, settings: dict[str, Any]) -> tuple[Preset, str | None]:
        return self.preset, None if target == "vercel" else target
