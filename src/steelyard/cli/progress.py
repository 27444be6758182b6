"""Progress on standard error: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Protocol

LINE_SECONDS = 10.0


class Shown(Protocol):
    """A progress display that is a callable and a context."""

    def __call__(self, done: int, total: int, errored: int) -> None: ...
    def __enter__(self) -> Shown: ...
    def __exit__(self, *exception: Any) -> None: ...


class Silence:
    """No progress at all."""

    def __call__(self, done: int, total: int, errored: int) -> None:
        pass

    def __enter__(self) -> Silence:
        return self

    def __exit__(self, *exception: object) -> None:
        pass


class Lines(Silence):
    """A line every ten seconds, with rate and time left."""

    def __init__(self) -> None:
        self._started = self._last = time.monotonic()
        self._first: int | None = None

    def __call__(self, done: int, total: int, errored: int) -> None:
        now = time.monotonic()
        if self._first is None:
            self._first = done
        if now - self._last < LINE_SECONDS:
            return
        self._last = now
        rate = (done - self._first) / (now - self._started)
        left = f"{(total - done) / rate:.0f} s left" if rate > 0 else "time left unknown"
        failures = f", {errored} errored" if errored else ""
        print(
            f"steelyard: {done} of {total} rows, {rate:.1f} rows/s, {left}{failures}",
            file=sys.stderr,
            flush=True,
        )


class Bar:
    """A bar on the terminal, drawn by rich."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._bar = Progress(
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[errors]}"),
            console=Console(stderr=True),
            transient=True,
        )
        self._task: Any = None
        self._started = time.monotonic()
        self._first = 0

    def __call__(self, done: int, total: int, errored: int) -> None:
        if self._task is None:
            self._task = self._bar.add_task("", total=total, rate="", errors="")
            self._first = done
        elapsed = time.monotonic() - self._started
        rate = f"{(done - self._first) / elapsed:.1f} rows/s" if elapsed > 0.5 else ""
        self._bar.update(
            self._task, completed=done, rate=rate, errors=f"{errored} errored" if errored else ""
        )

    def __enter__(self) -> Bar:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()


def progress(quiet: bool) -> Shown:
    """The display this standard error deserves."""
    if quiet:
        return Silence()
    return Bar() if sys.stderr.isatty() else Lines()
