"""Evidence that may be looked at after every case."""

from __future__ import annotations

import math

from steelyard.stats.special import beta_cdf


def two_sided_e_value(gains: int, losses: int) -> float:
    """Evidence that gains and losses are not equally likely; 1 when nothing differs.

    Returns
    -------
    float
        Above 0. Reject at level alpha whenever it reaches 1 / alpha: that happens with probability at
        most alpha over all times together, when they are equally likely. ``2^m B(gains + 1, losses + 1)``
        is the betting wealth under a uniform mixture. Source: Robbins 1970; Ville 1939.
    """
    return math.exp(_log_mixture(gains, losses))


def losing_e_value(gains: int, losses: int) -> float:
    """Evidence that losses are likelier than gains: the mixture over that half alone."""
    half = beta_cdf(0.5, gains + 1.0, losses + 1.0)
    return 2.0 * half * math.exp(_log_mixture(gains, losses)) if half > 0 else 0.0


def _log_mixture(gains: int, losses: int) -> float:
    m = gains + losses
    return m * math.log(2.0) + math.lgamma(gains + 1) + math.lgamma(losses + 1) - math.lgamma(m + 2)
