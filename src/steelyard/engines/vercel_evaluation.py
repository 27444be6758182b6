"""The evaluation endpoint of the Vercel AI gateway."""

from __future__ import annotations

from steelyard.engines.hosted import HostedEngine
from steelyard.engines.presets import VERCEL
from steelyard.engines.wires import VercelEvaluation


class VercelEvaluationEngine(HostedEngine):
    """The evaluation endpoint of the Vercel AI gateway."""

    name = "vercel_evaluation"
    summary = "The evaluation endpoint of the Vercel AI gateway."
    target_help = "URL, or vercel"
    nickname = "vercel"
    preset = VERCEL
    wire_class = VercelEvaluation
