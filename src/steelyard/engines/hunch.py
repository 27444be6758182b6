"""Hunch: chat models behind one constrained token."""

from __future__ import annotations

from steelyard.engines.hosted import HostedEngine
from steelyard.engines.presets import HUNCH
from steelyard.engines.wires import Hunch


class HunchEngine(HostedEngine):
    """Hunch: any chat model behind one constrained token."""

    name = "hunch"
    summary = "Hunch: a chat model judged by the probabilities of one constrained token."
    preset = HUNCH
    wire_class = Hunch
