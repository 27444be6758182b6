"""How a run is made."""

from __future__ import annotations

from typing import Any

import msgspec

from steelyard.core.requests import CallOptions
from steelyard.errors import InputError


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a run is made.

    `on_error` is ``fail`` (stop at the first errored row) or ``skip`` (record it and go on). The
    last four change no answer, so a run may be taken up with other values of them.
    """

    batch_size: int = 1
    sort_by_length: bool = False
    min_confidence: float | None = None
    model: str | None = None
    limit: int | None = None
    on_error: str = "fail"
    concurrency: int = 1
    timeout: float | None = None
    retry_errors: bool = False

    def call_options(self) -> CallOptions:
        """The part that travels with every call."""
        return CallOptions(self.batch_size, self.sort_by_length, self.min_confidence)

    def identity(self) -> dict[str, Any]:
        """The part that belongs to a run's identity."""
        return {
            "batch_size": self.batch_size,
            "sort_by_length": self.sort_by_length,
            "min_confidence": self.min_confidence,
            "model": self.model,
            "limit": self.limit,
        }

    def check(self) -> None:
        """Refuse options no run can have.

        Raises
        ------
        InputError
            Names the option and the range it must be in.
        """
        for name, low in (("batch_size", 1), ("concurrency", 1), ("limit", 1)):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < low):
                raise InputError(f"{name} must be a whole number of at least {low}, got {value!r}")
        confidence = self.min_confidence
        if confidence is not None and not (type(confidence) in (int, float) and 0 <= confidence <= 1):
            raise InputError(f"min_confidence must be a number from 0 to 1, got {confidence!r}")
        if self.timeout is not None and not 0 < self.timeout < float("inf"):
            raise InputError(f"timeout must be a positive number of seconds, got {self.timeout!r}")
        if self.on_error not in ("fail", "skip"):
            raise InputError(f'on_error must be "fail" or "skip", got {self.on_error!r}')
