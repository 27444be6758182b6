"""Jev, Laya serve and every other server of the System One wire."""

from __future__ import annotations

from typing import Any

from steelyard.engines.hosted import HostedEngine
from steelyard.engines.presets import SYSTEM_ONE, Preset
from steelyard.errors import UnknownNameError


class SystemOneEngine(HostedEngine):
    """Jev, and everything that speaks its wire."""

    name = "systemone"
    summary = "Jev and all who speak its wire: a preset by name, or the URL of a server."
    target_help = "PRESET or URL"

    def _preset(self, target: str | None, settings: dict[str, Any]) -> tuple[Preset, str | None]:
        name = settings.pop("preset", None)
        url = settings.pop("base_url", None)
        if target and "://" in target:
            target, url = None, target
        name = name or target or "custom"
        if name not in SYSTEM_ONE:
            raise UnknownNameError.among("preset", str(name), SYSTEM_ONE)
        return SYSTEM_ONE[name], url
