"""Columns of checked answers, and the checks that take whole columns at once."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from steelyard.core.requests import REASONS
from steelyard.stats.grouping import ragged

ROUNDING = 5e-5
"""Half a unit in the fourth decimal: what each of k rounded probabilities may be off by."""


class Answers(msgspec.Struct):
    """Columns of answers, one entry a question asked, in the order they were taken.

    `row` and `place` say which question. `reason` is 0, or one more than the position in REASONS.
    `pred` is the position of the chosen option (-1 when the type has none), `value` the expected
    level or P(true), `confidence` and `source` the confidence column and where it came from,
    `stated` the engine's own `confidence` field. `size` counts probabilities, `probabilities` is
    flat. `messages` explains failures by (row, place).
    """

    row: NDArray[np.int64]
    place: NDArray[np.int32]
    reason: NDArray[np.int8]
    pred: NDArray[np.int32]
    value: NDArray[np.float64]
    confidence: NDArray[np.float64]
    source: NDArray[np.int8]
    stated: NDArray[np.float64]
    size: NDArray[np.int32]
    probabilities: NDArray[np.float64]
    label: NDArray[np.int32]
    messages: dict[tuple[int, int], str]

    def fail(self, at: int, reason: str, message: str) -> None:
        """Make entry `at` an errored one."""
        self.reason[at] = 1 + REASONS.index(reason)
        self.messages[int(self.row[at]), int(self.place[at])] = message

    @classmethod
    def empty(cls) -> Answers:
        """No answers at all."""
        floats, whole, small = np.empty(0), np.empty(0, np.int32), np.empty(0, np.int8)
        return cls(
            np.empty(0, np.int64),
            whole,
            small,
            whole,
            floats,
            floats,
            small,
            floats,
            whole,
            floats,
            whole,
            {},
        )

    @classmethod
    def join(cls, blocks: Sequence[Answers]) -> Answers:
        """One table from many, sorted by row and place; of two answers to one question the later counts."""
        if not blocks:
            return cls.empty()
        columns = {
            name: np.concatenate([getattr(block, name) for block in blocks])
            for name in cls.__struct_fields__[:-1]
        }
        messages = {key: text for block in blocks for key, text in block.messages.items()}
        row, place = columns["row"], columns["place"]
        step = (row[1:] - row[:-1]).astype(np.int64) * (1 << 20) + (place[1:] - place[:-1])
        if np.all(step > 0):
            return cls(**columns, messages=messages)
        order = np.lexsort((place, row))
        last = np.concatenate(
            (np.any([np.diff(row[order]) != 0, np.diff(place[order]) != 0], axis=0), [True])
        )
        order = order[last]
        starts = np.cumsum(columns["size"]) - columns["size"]
        columns["probabilities"] = columns["probabilities"][ragged(starts[order], columns["size"][order])]
        for name in cls.__struct_fields__[:-1]:
            if name != "probabilities":
                columns[name] = columns[name][order]
        return cls(**columns, messages=messages)


def check_ranges(answers: Answers, limit: NDArray[np.float64]) -> None:
    """Error answers whose numbers are out of range or whose probabilities do not add up."""
    fine = answers.reason == 0
    value, confidence, stated = answers.value, answers.confidence, answers.stated
    _mark(answers, fine & (answers.source > 0) & ~((confidence >= 0) & (confidence <= 1)), "confidence")
    _mark(answers, fine & ((stated < 0) | (stated > 1)), "stated")
    _mark(answers, fine & ~np.isnan(limit) & ~((value >= 0) & (value <= limit)), "value")
    sized = np.flatnonzero(answers.size)
    if not len(sized):
        return
    starts = (np.cumsum(answers.size) - answers.size)[sized]
    sums = np.add.reduceat(answers.probabilities, starts)
    low = np.minimum.reduceat(answers.probabilities, starts)
    high = np.maximum.reduceat(answers.probabilities, starts)
    off = ~(np.abs(sums - 1.0) <= answers.size[sized] * ROUNDING + 1e-12)
    for at in np.flatnonzero(off | ~(low >= 0) | ~(high <= 1)):
        if not low[at] >= 0 or not high[at] <= 1:
            worst = low[at] if not low[at] >= 0 else high[at]
            text = f"probabilities hold {worst:.6g}, outside 0 to 1"
        else:
            text = f"probabilities sum to {sums[at]:.6g}, not 1"
        answers.fail(int(sized[at]), "invalid_distribution", text)


def _mark(answers: Answers, bad: NDArray[np.bool_], field: str) -> None:
    for at in np.flatnonzero(bad):
        number = getattr(answers, field)[at]
        answers.fail(int(at), "invalid_answer", f"{field} {number:.6g} is out of range")
