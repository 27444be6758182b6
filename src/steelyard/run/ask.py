"""Calling the engine: one place for order, concurrency, timeouts and stopping."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from steelyard.core.requests import CallOptions, Failure, Reply, Request
from steelyard.engines._base import Engine
from steelyard.errors import EngineFailedError
from steelyard.formats.jsontext import one_line

MAX_ABANDONED = 256
"""Timed-out calls that may still be running when the run gives up."""

BUSY = 8
"""Calls in flight beyond which replies are gathered before they are taken."""

GATHER_SECONDS = 0.002

Result = tuple[Sequence[Request], Sequence[Reply], float] | BaseException | None
"""Requests, replies and milliseconds of a call; what a worker died of; None from one that is done."""

Deliver = Callable[[Sequence[Request], Sequence[Reply], float | None], None]
"""Takes the requests of a call, a reply for each, and the milliseconds it took if it returned."""


def answer_call(engine: Engine, requests: Sequence[Request], options: CallOptions) -> Sequence[Reply]:
    """Make one call and join what comes back to what was sent, by row.

    An exception, or replies that do not match the requests, fail every row of the call.
    """
    try:
        replies = engine.answer(requests, options)
    except Exception as error:
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return all_failed(requests, "engine_failed", text)
    return joined(requests, replies)


def joined(requests: Sequence[Request], replies: Sequence[Reply]) -> Sequence[Reply]:
    """What came back from a call, in the order of what was sent; replies for other rows fail it whole."""
    if len(replies) != len(requests):
        return all_failed(requests, "wrong_count", f"{len(requests)} sent, {len(replies)} came back")
    if len(requests) == 1 and replies[0].row == requests[0].row:
        return replies
    by_row = {reply.row: reply for reply in replies}
    if by_row.keys() != {request.row for request in requests}:
        return all_failed(requests, "wrong_count", "the replies are for other rows than were sent")
    return [by_row[request.row] for request in requests]


def all_failed(requests: Sequence[Request], reason: str, message: str) -> list[Reply]:
    """A failure for every row of a call."""
    failure = Failure(reason, one_line(message))
    return [Reply(request.row, failure=failure) for request in requests]


def ask_in_turn(
    engine: Engine, calls: Iterator[Sequence[Request]], options: CallOptions, deliver: Deliver
) -> None:
    """Make the calls one after another in this thread."""
    for requests in calls:
        started = time.perf_counter()
        replies = answer_call(engine, requests, options)
        ms = 1000.0 * (time.perf_counter() - started)
        deliver(requests, replies, returned(replies, ms))


def returned(replies: Sequence[Reply], ms: float) -> float | None:
    """The time of a call that came back; None when all of it failed."""
    return None if all(reply.failure is not None for reply in replies) else ms


class Pool:
    """Long-lived workers that pull calls from one iterator, and a watch over their deadlines.

    A call that outlives `timeout` is reported as failed and its worker left behind: Python cannot
    stop it, but nothing it returns later is used.
    """

    def __init__(
        self,
        engine: Engine,
        calls: Iterator[Sequence[Request]],
        options: CallOptions,
        concurrency: int,
        timeout: float | None,
    ) -> None:
        self._engine, self._calls, self._options = engine, calls, options
        self._concurrency, self._timeout = concurrency, timeout
        self._lock = threading.Lock()
        self._results: queue.SimpleQueue[Result] = queue.SimpleQueue()
        self._running: dict[int, tuple[Sequence[Request], float]] = {}
        self._next_call = 0
        self._stopped = False
        self._abandoned = 0

    def run(self, deliver: Deliver) -> None:
        """Deliver every call's replies in the calling thread, in order of completion.

        Raises
        ------
        EngineFailedError
            Too many calls timed out and are still running.
        """
        active = 0
        try:
            while active < self._concurrency:
                self._start_worker()
                active += 1
            while active:
                active -= self._take_some(deliver)
                for requests in self._overdue():
                    deliver(
                        requests, all_failed(requests, "timeout", f"no answer in {self._timeout:g} s"), None
                    )
                    self._start_worker()
        finally:
            self._stopped = True

    def _take_some(self, deliver: Deliver) -> int:
        """Deliver what has come in; how many workers said that they are done."""
        done = 0
        for result in self._arrived():
            if result is None:
                done += 1
                continue
            if isinstance(result, BaseException):
                raise result
            requests, replies, ms = result
            deliver(requests, replies, returned(replies, ms))
        return done

    def _arrived(self) -> Iterator[Result]:
        try:
            yield self._results.get(timeout=0.02 if self._timeout else None)
            if self._concurrency > BUSY:
                # Being woken for every reply costs more than the reply: let some more come in.
                time.sleep(GATHER_SECONDS)
            while True:
                yield self._results.get_nowait()
        except queue.Empty:
            return

    def _overdue(self) -> list[Sequence[Request]]:
        if self._timeout is None:
            return []
        now = time.perf_counter()
        with self._lock:
            late = [call for call, (_, started) in self._running.items() if now - started > self._timeout]
            overdue = [self._running.pop(call)[0] for call in late]
        self._abandoned += len(late)
        if self._abandoned > MAX_ABANDONED:
            raise EngineFailedError(
                f"{self._abandoned} calls did not return in {self._timeout:g} s; giving up"
            )
        return overdue

    def _start_worker(self) -> None:
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        try:
            while (job := self._take_job()) is not None:
                call, requests = job
                started = time.perf_counter()
                replies = answer_call(self._engine, requests, self._options)
                ms = 1000.0 * (time.perf_counter() - started)
                with self._lock:
                    in_time = self._running.pop(call, None) is not None
                if not in_time:
                    # Reported as timed out: another worker has taken this one's place.
                    return
                self._results.put((requests, replies, ms))
        except BaseException as error:
            self._results.put(error)
            return
        self._results.put(None)

    def _take_job(self) -> tuple[int, Sequence[Request]] | None:
        with self._lock:
            if self._stopped:
                return None
            requests = next(self._calls, None)
            if requests is None:
                return None
            call = self._next_call
            self._next_call += 1
            self._running[call] = (requests, time.perf_counter())
            return call, requests
