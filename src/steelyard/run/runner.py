"""A run: plan, ask, check and keep, until every row has its reply."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from steelyard.core.questions import QuestionSet
from steelyard.core.requests import REASONS, Ability, CallOptions, Reply, Request
from steelyard.engines._base import Engine
from steelyard.errors import EngineFailedError, InvalidAnswerError
from steelyard.formats.answer_table import Answers
from steelyard.formats.dataset import Dataset
from steelyard.formats.replies import encode_reply, parse_replies
from steelyard.run.ask import Pool, ask_in_turn
from steelyard.run.collector import FLUSH_ROWS, Asked, Collector
from steelyard.run.log import RunLog
from steelyard.run.loop import ask_on_a_loop
from steelyard.run.options import RunOptions
from steelyard.run.plan import plan_calls, preflight

WATCHED_CALLS = 16
FLUSH_SECONDS = 0.005

Progress = Callable[[int, int, int], None]
"""Told rows done, rows in all, and rows with an error, now and then."""


class Watch(Protocol):
    """Someone who says in which order rows are asked, and when enough were."""

    def order(self, rows: Sequence[int]) -> list[int]:
        """The rows in the order they are to be asked."""
        ...

    def enough(self, block: Answers) -> bool:
        """Take answers in; whether no more are wanted."""
        ...


class Interrupted(Exception):
    """The run was told to stop; `done` of `total` rows are kept."""

    def __init__(self, done: int, total: int, signal: int) -> None:
        super().__init__(f"{done} of {total} rows done")
        self.done, self.total, self.signal = done, total, signal


class Runner:
    """One run of an engine over a dataset, kept in a log."""

    def __init__(
        self,
        dataset: Dataset,
        engine: Engine,
        options: RunOptions,
        log: RunLog,
        progress: Progress,
        watch: Watch | None = None,
    ) -> None:
        self.dataset, self.engine, self.options, self.log = dataset, engine, options, log
        self._watch = watch
        self._settled = self._kept_by_others = False
        self.total = len(dataset) if options.limit is None else min(options.limit, len(dataset))
        self.collector = Collector(dataset, self.total)
        self._progress = progress
        self._lines: list[bytes] = []
        self._asked: list[QuestionSet] = []
        self._flushed = time.perf_counter()

    def identity(self) -> dict[str, Any]:
        """What a run folder must agree on before it is taken up again."""
        return {
            "dataset": {"sha256": self.dataset.sha256, "rows": len(self.dataset)},
            "questions_sha256": self.dataset.questions_sha256,
            "engine": engine_identity(self.engine),
            "settings": self.options.identity(),
        }

    def run(self) -> Asked:
        """Take up the log, ask what is missing, and return everything observed.

        Raises
        ------
        InputError, IncomparableError, ReportError
            Before the first call.
        InvalidAnswerError, EngineFailedError
            A row errored and the run was to stop on errors.
        Interrupted
            The run was told to stop.
        """
        options = self.options.call_options()
        preflight(self.engine, self.dataset, options, self.options.model)
        self.log.open(self.identity(), self.dataset.name)
        self.collector.take_all(self.log.read(), retry_errors=self.options.retry_errors)
        missing = np.flatnonzero(~self.collector.done).tolist()
        if missing and not self._enough(self.collector.so_far()):
            self._ask(missing, options)
        left = np.flatnonzero(~self.collector.done).tolist()
        if left:
            self.collector.leave_out(left)
        return self.collector.finish()

    def _enough(self, block: Answers) -> bool:
        return self._watch is not None and self._watch.enough(block)

    def _ask(self, missing: list[int], options: CallOptions) -> None:
        try:
            self.engine.prepare(self.dataset, options)
            calls = self._requests(missing, options)
            concurrent = Ability.CONCURRENT in self.engine.abilities and self.options.concurrency > 1
            if Ability.ASYNC in self.engine.abilities:
                workers, timeout = self.options.concurrency, self.options.timeout
                self._kept_by_others = True
                ask_on_a_loop(self.engine, calls, options, workers, timeout, self._deliver, self._flush)
            elif concurrent or self.options.timeout:
                workers = self.options.concurrency if concurrent else 1
                Pool(self.engine, calls, options, workers, self.options.timeout).run(self._deliver)
            else:
                ask_in_turn(self.engine, calls, options, self._deliver)
            self._flush()
        except EngineFailedError:
            # What came in before is kept: it may have been paid for.
            self._flush(stopping=True)
            raise
        except KeyboardInterrupt as stop:
            self._flush(stopping=True)
            raise Interrupted(
                int(self.collector.done.sum()), self.total, getattr(stop, "signal", 2)
            ) from None
        finally:
            self.engine.close()

    def _requests(self, rows: list[int], options: CallOptions) -> Iterator[Sequence[Request]]:
        model, step = self.options.model, len(rows)
        if self._watch is not None:
            # Batches of one stretch of the order only, so that answers come in about that order.
            rows, step = self._watch.order(rows), WATCHED_CALLS * options.batch_size
        for start in range(0, len(rows), step):
            for call in plan_calls(self.engine, self.dataset, rows[start : start + step], options, model):
                if self._settled:
                    return
                yield [self.dataset.request(row, model) for row in call]

    def _deliver(self, requests: Sequence[Request], replies: Sequence[Reply], ms: float | None) -> None:
        shared = len(requests)
        for request, reply in zip(requests, replies, strict=True):
            self._lines.append(encode_reply(reply, ms, shared))
            self._asked.append(request.questions)
        late = not self._kept_by_others and time.perf_counter() - self._flushed > FLUSH_SECONDS
        if late or self._watch is not None or len(self._lines) >= FLUSH_ROWS:
            self._flush()

    def _flush(self, *, stopping: bool = False) -> None:
        """Check what came in by reading it back from its log lines, and keep what may be kept."""
        lines, asked = self._lines, self._asked
        self._lines, self._asked = [], []
        self._flushed = time.perf_counter()
        if not lines:
            return
        replies = parse_replies(b"\n".join(lines))
        block = self.collector.take(asked, replies)
        fault = None if self.options.on_error == "skip" or not block.messages else self._first_fault(block)
        if fault is not None:
            bad = set(block.row[block.reason > 0].tolist())
            lines = [line for line, reply in zip(lines, replies, strict=True) if reply.row not in bad]
        self.log.append(lines)
        if fault is not None and not stopping:
            raise fault
        self._progress(int(np.count_nonzero(self.collector.done)), self.total, self.collector.errored)
        # Calls under way are still taken in: they were made, and may have been paid for.
        self._settled = self._settled or self._enough(block)

    def _first_fault(self, block: Answers) -> Exception | None:
        for at in np.flatnonzero(block.reason):
            row, place = int(block.row[at]), int(block.place[at])
            case = self.dataset.case(row)
            qid = list(case.questions.questions)[place]
            reason = REASONS[block.reason[at] - 1]
            if reason == "missing_answer" and qid not in case.expected:
                continue
            message = block.messages[row, place]
            kind = InvalidAnswerError if reason.startswith("invalid") else EngineFailedError
            hint = "--on-error skip records such rows and goes on"
            return kind(f"{self.dataset.place(row)}: row {row}, question {qid}: {message}; {hint}")
        return None


def engine_identity(engine: Engine) -> dict[str, Any]:
    """What tells one engine from another in reports and run folders."""
    return {
        "name": engine.name,
        "target": engine.target,
        "revision": engine.revision,
        "settings": dict(engine.settings),
        "abilities": [str(ability.name).lower() for ability in Ability if ability in engine.abilities],
    }
