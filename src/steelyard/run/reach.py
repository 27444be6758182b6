"""How far a number is from a limit, in standard errors."""

from __future__ import annotations

import msgspec

from steelyard.core.comparison import Difference
from steelyard.metrics.registry import Measurement
from steelyard.stats.special import normal_cdf, normal_quantile

Z975 = normal_quantile(0.975)


class Reach(msgspec.Struct, frozen=True):
    """A number, and how far it is sure to either side.

    Attributes
    ----------
    value : float
    below, above : float or None
        Standard errors towards smaller and larger values; None where they are not known, `why` says so.
    """

    value: float
    below: float | None = None
    above: float | None = None
    why: str | None = None

    def bounds(self, alpha: float) -> tuple[float, float] | None:
        """One-sided bounds at level `alpha`, both ends."""
        if self.below is None or self.above is None:
            return None
        z = normal_quantile(1.0 - alpha)
        return self.value - z * self.below, self.value + z * self.above

    def chance_beyond(self, limit: float, *, above: bool) -> float | None:
        """One-sided p of the hypothesis that the truth is on the other side of `limit`.

        With `above` small values say that the truth lies above the limit, else below it.
        """
        side = self.below if above else self.above
        if side is None:
            return None
        distance = self.value - limit if above else limit - self.value
        if side == 0.0:
            return 0.5 if distance == 0.0 else float(distance < 0.0)
        return normal_cdf(-distance / side)


def reach_of(found: Measurement | Difference) -> Reach:
    """From a 95 % interval: each half is 1.96 standard errors of its side."""
    if found.interval is None:
        return Reach(found.value, why=found.no_interval or "it has no interval")
    low, high = found.interval
    return Reach(found.value, (found.value - low) / Z975, (high - found.value) / Z975)
