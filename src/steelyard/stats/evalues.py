"""Evidence that may be looked at after every case."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from steelyard.stats.special import beta_cdf

_BETS = np.geomspace(0.03, 0.7, 12)
"""Shares of what is safe to bet, small ones for small differences."""


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


class BettingTest:
    """Bets that the mean of differences in [-1, 1] lies beyond a boundary.

    Parameters
    ----------
    boundary : float
        In (-1, 1).
    above : bool
        Bet that the mean is above the boundary, else below.

    Attributes
    ----------
    n : int
        Differences seen.

    Notes
    -----
    The wealth is a mixture of constant bets, each a product of ``1 + bet (x - boundary)``; as long as each
    difference has, given those before it, no mean beyond the boundary, it is a supermartingale from 1 on,
    and reaches 1 / alpha with probability at most alpha over all times together. Source: Ville 1939;
    Waudby-Smith and Ramdas 2024 (arXiv 2010.09686).

    Examples
    --------
    >>> test = BettingTest(0.0, above=False)
    >>> test.add([-1.0] * 12)
    >>> test.wealth > 20
    True
    """

    def __init__(self, boundary: float, *, above: bool) -> None:
        self._sign = 1.0 if above else -1.0
        self._boundary = boundary
        # The worst difference may cost a bet all but a tenth of its stake.
        worst = 1.0 + self._sign * boundary
        self._bets = _BETS / worst
        self._logs = np.zeros(len(_BETS))
        self.n = 0

    def add(self, differences: Iterable[float]) -> None:
        """Take more differences in, in an order that does not depend on them."""
        for one in differences:
            self._logs += np.log1p(self._bets * self._sign * (one - self._boundary))
            self.n += 1

    @property
    def wealth(self) -> float:
        """Evidence so far: reject when it reaches 1 / alpha."""
        top = float(self._logs.max())
        return math.exp(min(700.0, top)) * float(np.exp(self._logs - top).mean())
