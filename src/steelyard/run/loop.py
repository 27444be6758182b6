"""Calls on an event loop, for engines that wait for a network."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable, Iterator, Sequence

from steelyard.core.requests import CallOptions, Reply, Request
from steelyard.engines._base import Engine
from steelyard.errors import EngineFailedError
from steelyard.run.ask import Deliver, all_failed, joined, returned

GRACE_SECONDS = 10.0
KEEP_SECONDS = 0.02
"""Replies may be held so long before they are kept."""


def ask_on_a_loop(
    engine: Engine,
    calls: Iterator[Sequence[Request]],
    options: CallOptions,
    concurrency: int,
    timeout: float | None,
    deliver: Deliver,
    flush: Callable[[], None],
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
    flush : callable
        Keeps what was delivered; called now and then, as keeping many at once costs less.

    Raises
    ------
    EngineFailedError
        The engine says that no further call can succeed.
    """
    asking = _Asking(engine, calls, options, timeout, deliver)
    asyncio.run(asking.all(concurrency, flush))
    if asking.terminated:
        raise _Terminated


class _Terminated(KeyboardInterrupt):
    """SIGTERM came while calls were under way."""

    signal = 15


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
        self._stopping = self.terminated = False

    async def all(self, concurrency: int, flush: Callable[[], None]) -> None:
        await self._engine.open()
        workers = [asyncio.create_task(self._work()) for _ in range(concurrency)]
        keeping = asyncio.create_task(self._keep(flush))
        self._listen()
        try:
            await asyncio.wait(workers)
        except asyncio.CancelledError:
            # Ctrl-C: no further call, but those under way may have been paid for. A second one does not wait.
            self._stopping = True
            await asyncio.wait(workers, timeout=GRACE_SECONDS)
            raise
        finally:
            keeping.cancel()
            await self._engine.shut()
        if self._fault is not None:
            raise self._fault

    def _listen(self) -> None:
        """Take SIGTERM the way Ctrl-C is taken; only the main thread may."""

        def stop() -> None:
            self._stopping = self.terminated = True

        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)

    async def _keep(self, flush: Callable[[], None]) -> None:
        while self._fault is None:
            await asyncio.sleep(KEEP_SECONDS)
            try:
                flush()
            except Exception as fault:
                self._fault = self._fault or fault

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
            if self._fault is not None or self._stopping:
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
