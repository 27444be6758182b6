"""Replies taken in, checked by the block, and kept until they are all there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

import msgspec
import numpy as np

from steelyard.core.questions import QuestionSet
from steelyard.core.requests import Facts, Failure
from steelyard.errors import ReportError
from steelyard.formats.answer_table import Answers
from steelyard.formats.answers import AnswerReader
from steelyard.formats.columns import Names
from steelyard.formats.dataset import Dataset
from steelyard.formats.garbage import collector_paused
from steelyard.formats.replies import ParsedReply
from steelyard.run.judge import RowFacts

FLUSH_ROWS = 1024


class Asked(msgspec.Struct):
    """Everything a run observed, ready to be joined with the dataset."""

    answers: Answers
    facts: RowFacts
    labels: list[str]


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
        self._said: dict[int, Facts] = {}
        self._model = np.full(n_rows, -1, np.int32)

    def take(self, asked: Iterable[QuestionSet], replies: Sequence[ParsedReply]) -> Answers:
        """Check replies to these questions, and keep what was found."""
        pins = self.dataset.columns.model
        rows = np.array([reply.row for reply in replies], np.int64)
        self.done[rows] = True
        self._ms[rows] = np.array([reply.ms for reply in replies], np.float64)
        self._shared[rows] = [reply.shared for reply in replies]
        self._cost[rows] = np.array([reply.cost for reply in replies], np.float64)
        self._said |= {reply.row: reply.facts for reply in replies if reply.facts is not None}
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
        facts = RowFacts(self.n_rows, self._ms, self._shared, self._model, models, self._cost, self._said)
        return Asked(Answers.join(self._blocks), facts, list(self.reader.labels))
