"""Calls on an event loop, for engines that wait for a network."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence

from steelyard.core.requests import CallOptions, Reply, Request
from steelyard.engines._base import Engine
from steelyard.errors import EngineFailedError
from steelyard.run.ask import Deliver, all_failed, joined, returned


def ask_on_a_loop(
    engine: Engine,
    calls: Iterator[Sequence[Request]],
    options: CallOptions,
    concurrency: int,
    timeout: float | None,
    deliver: Deliver,
) -> None:
    """Make the calls with so many of them in flight, and deliver replies as they come.

    Parameters
    ----------
    engine : Engine
        With the ability ASYNC.
    calls : iterator
        The requests of each call.
    options : CallOptions
    concurrency : int
    timeout : float or None
        Seconds a call may take, its retries included; then its rows have failed.
    deliver : callable

    Raises
    ------
    EngineFailedError
        The engine says that no further call can succeed.
    """
    asyncio.run(_Asking(engine, calls, options, timeout, deliver).all(concurrency))


class _Asking:
    def __init__(
        self,
        engine: Engine,
        calls: Iterator[Sequence[Request]],
        options: CallOptions,
        timeout: float | None,
        deliver: Deliver,
    ) -> None:
        self._engine, self._calls, self._options = engine, calls, options
        self._timeout, self._deliver = timeout, deliver
        self._fault: Exception | None = None

    async def all(self, concurrency: int) -> None:
        await self._engine.open()
        workers = [asyncio.create_task(self._work()) for _ in range(concurrency)]
        try:
            await asyncio.gather(*workers)
        finally:
            await self._engine.shut()
        if self._fault is not None:
            raise self._fault

    async def _work(self) -> None:
        # One worker a call in flight: each takes the next call when its own is done. After a fault none is
        # made, but those under way are waited for: they may have been paid for.
        for requests in self._calls:
            try:
                started = time.perf_counter()
                replies = await self._call(requests)
                ms = 1000.0 * (time.perf_counter() - started)
                self._deliver(requests, replies, returned(replies, ms))
            except Exception as fault:
                self._fault = self._fault or fault
            if self._fault is not None:
                return

    async def _call(self, requests: Sequence[Request]) -> Sequence[Reply]:
        try:
            asked = self._engine.answer_async(requests, self._options)
            if self._timeout is not None:
                asked = asyncio.wait_for(asked, self._timeout)
            return joined(requests, await asked)
        except TimeoutError:
            return all_failed(requests, "timeout", f"no answer in {self._timeout:g} s")
        except EngineFailedError:
            raise
        except Exception as error:
            text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            return all_failed(requests, "engine_failed", text)
