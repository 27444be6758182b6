"""A run: plan, ask, check and keep, until every row has its reply."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Protocol

import msgspec
import numpy as np

from steelyard.core.questions import QuestionSet
from steelyard.core.requests import REASONS, Ability, CallOptions, Failure, Reply, Request
from steelyard.engines._base import Engine
from steelyard.errors import EngineFailedError, InvalidAnswerError, ReportError
from steelyard.formats.answer_table import Answers
from steelyard.formats.answers import AnswerReader
from steelyard.formats.columns import Names
from steelyard.formats.dataset import Dataset
from steelyard.formats.garbage import collector_paused
from steelyard.formats.replies import ParsedReply, encode_reply, parse_replies
from steelyard.run.ask import Pool, ask_in_turn
from steelyard.run.judge import RowFacts
from steelyard.run.log import RunLog
from steelyard.run.options import RunOptions
from steelyard.run.plan import plan_calls, preflight

FLUSH_ROWS = 1024
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


class Asked(msgspec.Struct):
    """Everything a run observed, ready to be joined with the dataset."""

    answers: Answers
    facts: RowFacts
    labels: list[str]


class Interrupted(Exception):
    """The run was told to stop; `done` of `total` rows are kept."""

    def __init__(self, done: int, total: int, signal: int) -> None:
        super().__init__(f"{done} of {total} rows done")
        self.done, self.total, self.signal = done, total, signal


class Collector:
    """Takes replies in any order, checks them by the block, and keeps what was found."""

    def __init__(self, dataset: Dataset, n_rows: int) -> None:
        self.dataset = dataset
        self.n_rows = n_rows
        self.reader = AnswerReader(dataset.columns.label_names.list())
        self._blocks: list[Answers] = []
        self._models = Names()
        self._pinned = dataset.columns.models.list()
        self.done = np.zeros(n_rows, bool)
        self.errored = 0
        self._ms, self._shared = np.full(n_rows, np.nan), np.ones(n_rows)
        self._cost = np.full(n_rows, np.nan)
        self._model = np.full(n_rows, -1, np.int32)

    def take(self, asked: Iterable[QuestionSet], replies: Sequence[ParsedReply]) -> Answers:
        """Check replies to these questions, and keep what was found."""
        pins = self.dataset.columns.model
        rows = np.array([reply.row for reply in replies], np.int64)
        self.done[rows] = True
        self._ms[rows] = np.array([reply.ms for reply in replies], np.float64)
        self._shared[rows] = [reply.shared for reply in replies]
        self._cost[rows] = np.array([reply.cost for reply in replies], np.float64)
        self._model[rows] = [
            self._models[reply.model if (pin := pins[reply.row]) < 0 else self._pinned[pin]]
            for reply in replies
        ]
        block = self.reader.take(
            [(reply.row, questions, reply.answers) for questions, reply in zip(asked, replies, strict=True)]
        )
        self._blocks.append(block)
        self.errored += len(set(block.row[block.reason > 0].tolist()))
        return block

    def take_all(self, replies: Iterable[ParsedReply], *, retry_errors: bool = False) -> None:
        """Take logged replies, passing over rows that are not asked for.

        With `retry_errors` errored rows count as not done: what is added for them later replaces them.
        """
        with collector_paused():
            wanted = (reply for reply in replies if 0 <= reply.row < self.n_rows)
            while block := list(islice(wanted, FLUSH_ROWS)):
                self.take([self.dataset.questions_of(reply.row) for reply in block], block)
        if retry_errors:
            latest = Answers.join(self._blocks)
            self._blocks = [latest]
            self.done[latest.row[latest.reason > 0]] = False
            self.errored = 0

    def leave_out(self, rows: Sequence[int]) -> None:
        """Let rows count as not asked."""
        gone = Failure("not_asked", "the gate had seen enough")
        replies = [ParsedReply(row, gone, None, None, 0) for row in rows]
        self.take([self.dataset.questions_of(row) for row in rows], replies)

    def require_all(self, name: str) -> None:
        """Refuse to judge a run that is not finished.

        Raises
        ------
        ReportError
            Some rows have no reply yet.
        """
        if not self.done.all():
            missing = int(np.count_nonzero(~self.done))
            raise ReportError(
                f"{name}: {missing} of {self.n_rows} rows have no reply yet; finish the run first"
            )

    def so_far(self) -> Answers:
        """All answers taken, sorted."""
        return Answers.join(self._blocks)

    def finish(self) -> Asked:
        """All answers, sorted, with the facts of their rows."""
        models = self._models.list()
        facts = RowFacts(self.n_rows, self._ms, self._shared, self._model, models, self._cost)
        return Asked(Answers.join(self._blocks), facts, list(self.reader.labels))


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
        self._settled = False
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
            if concurrent or self.options.timeout:
                workers = self.options.concurrency if concurrent else 1
                Pool(self.engine, calls, options, workers, self.options.timeout).run(self._deliver)
            else:
                ask_in_turn(self.engine, calls, options, self._deliver)
            self._flush()
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
        watched = self._watch is not None
        if watched or len(self._lines) >= FLUSH_ROWS or time.perf_counter() - self._flushed > FLUSH_SECONDS:
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
