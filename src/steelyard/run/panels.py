"""What stands beside the measurements of a report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from steelyard.metrics.bakeoff import bake_off, confidence_steps
from steelyard.metrics.baselines import baseline_panels
from steelyard.metrics.curves import reliability_table, risk_coverage_curve
from steelyard.metrics.decisions import Decisions, Floats
from steelyard.metrics.view import Settings
from steelyard.run.mix import confidence_mix


class Panels:
    """Baselines, confidence measures, reliability and the risk-coverage curve of a table.

    Parameters
    ----------
    table : Decisions
    settings : Settings
    beside : mapping of str to array, optional
        Baselines that had to be asked: right or wrong, one value a row of the table.
    """

    def __init__(
        self, table: Decisions, settings: Settings, beside: Mapping[str, Floats] | None = None
    ) -> None:
        self.baselines = baseline_panels(table, beside)
        self.confidence = bake_off(table, settings.bins)
        self.reliability = reliability_table(table, settings.bins)
        self.curve = risk_coverage_curve(table)
        self.mix = confidence_mix(table)
        self.steps = confidence_steps(table)

    def document(self) -> dict[str, Any]:
        """The panels as plain JSON values."""
        return {
            "baselines": msgspec.to_builtins(self.baselines),
            "confidence": {
                "mix": self.mix,
                "steps": msgspec.to_builtins(self.steps),
                **msgspec.to_builtins(self.confidence),
            },
            "reliability": msgspec.to_builtins(self.reliability),
            "risk_coverage": msgspec.to_builtins(self.curve),
        }
