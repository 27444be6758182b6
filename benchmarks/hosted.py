"""``python -m benchmarks.hosted``: how fast a hosted engine is asked, against the ideal and against httpx.

A fake server runs in a process of its own. The ideal rate is concurrency over latency; httpx, where it is
installed, makes the same requests in the shortest loop one would write.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from steelyard import Dataset, RunOptions, make_engine
from steelyard.run.log import RunLog
from steelyard.run.runner import Runner

QUESTION = {"type": "noul", "instructions": "Is it about money?"}
CONCURRENCY = 64


@contextlib.contextmanager
def served(*quirks: str) -> Iterator[str]:
    """The URL of a fake server that ends with the block."""
    flags = [part for quirk in quirks for part in ("--quirk", quirk)]
    line = [sys.executable, "-m", "steelyard", "fake-server", "--seconds", "300", *flags]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def ours(url: str, n: int) -> float:
    """Requests a second of a run."""
    rows = [
        {"state": f"message number {at}", "questions": {"q": QUESTION}, "expected": {"q": True}}
        for at in range(n)
    ]
    data, engine = Dataset.from_rows(rows, "data"), make_engine(f"systemone:{url}")
    runner = Runner(data, engine, RunOptions(concurrency=CONCURRENCY), RunLog(None), lambda *_: None)
    started = time.perf_counter()
    runner.run()
    return n / (time.perf_counter() - started)


async def theirs(httpx: Any, url: str, n: int) -> float:
    """Requests a second of the same loop with httpx."""
    numbers = iter(range(n))
    async with httpx.AsyncClient(limits=httpx.Limits(max_connections=None)) as client:

        async def work() -> None:
            for at in numbers:
                body = {"state": f"message number {at}", "questions": {"q": QUESTION}}
                (await client.post(f"{url}/v1/systemone", json=body)).json()

        started = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(CONCURRENCY)))
        return n / (time.perf_counter() - started)


def main() -> None:
    """Print the rates."""
    with served("latency_ms=20") as url:
        rate = max(ours(url, 10_000) for _ in range(2))
        ideal = CONCURRENCY / 0.020
        said = f"{rate:.0f}/s, {rate / ideal:.0%} of the ideal {ideal:.0f}/s"
        print(f"20 ms latency, {CONCURRENCY} in flight: {said}")
    with served() as url:
        rate = max(ours(url, 5_000) for _ in range(2))
        print(f"no latency, {CONCURRENCY} in flight: {rate:.0f}/s")
        try:
            import httpx
        except ImportError:
            print("httpx is not installed: no comparison")
            return
        other = max(asyncio.run(theirs(httpx, url, 2_000)) for _ in range(2))
        print(f"the same loop with httpx: {other:.0f}/s; ours is {rate / other:.1f} times as fast")


if __name__ == "__main__":
    main()
