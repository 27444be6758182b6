"""How fast a server is asked, and for how much money."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Any

from steelyard.errors import EngineFailedError


def total(values: Iterable[Any]) -> Any:
    """Sum of what several calls tell, 0 without a call; None where one does not tell it."""
    found = list(values)
    return None if None in found else sum(found)


class Pace:
    """So many of something a second, evenly."""

    def __init__(self, rate: float | None) -> None:
        self._rate = rate
        self._free = 0.0

    async def wait(self, amount: float) -> None:
        """Wait for a turn that takes `amount`."""
        if self._rate is None or not amount:
            return
        now = time.monotonic()
        turn = max(now, self._free)
        self._free = turn + amount / self._rate
        if turn > now:
            await asyncio.sleep(turn - now)


class Budget:
    """Money a run may take, set aside before each call.

    Parameters
    ----------
    most : float or None
        No end without one.
    """

    def __init__(self, most: float | None) -> None:
        self._most = most
        self._spent = 0.0
        self._set_aside = 0.0

    def reserve(self, amount: float) -> None:
        """Set money aside for a call.

        Raises
        ------
        EngineFailedError
            There is not enough left.
        """
        if self._most is not None and self._spent + self._set_aside + amount > self._most * (1.0 + 1e-9):
            raise EngineFailedError(
                f"the budget of {self._most:g} does not allow a further call: {self._spent:.6g} is spent; "
                "raise max_cost, and the same command takes the run up"
            )
        self._set_aside += amount

    def settle(self, amount: float, cost: float | None) -> None:
        """Replace what was set aside by what it cost; where that is not known, what was set aside is gone."""
        self._set_aside -= amount
        self._spent += amount if cost is None else cost
