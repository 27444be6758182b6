"""A gate that looks after every case, and stops the run as soon as it knows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from steelyard.core.gates import Finding, Verdict
from steelyard.errors import IncomparableError, PolicyError
from steelyard.formats.answer_table import Answers
from steelyard.formats.dataset import Dataset
from steelyard.metrics.decisions import Floats, Ints
from steelyard.run.drift import conflicts
from steelyard.run.judge import Labelled, labelled
from steelyard.run.limits import forbidden
from steelyard.run.pairing import joined_rows
from steelyard.run.side import Side
from steelyard.stats.bootstrap import generator
from steelyard.stats.evalues import BettingTest

RULE = "sequential accuracy"


class Sequential:
    """Accuracy against a baseline, case by case, in an order drawn at random.

    It fails as soon as there is evidence, at level alpha over all looks together, that accuracy is worse
    than the baseline's by more than the margin; it passes as soon as there is as much evidence that it is
    not.

    Parameters
    ----------
    dataset : Dataset
    baseline : Side
        With judged answers whose rows can be told apart.
    margin : float
        In [0, 1).
    alpha : float
    seed : int
        Of the order.
    rows : int, optional
        How many rows the run asks, from the first.

    Raises
    ------
    PolicyError
        A margin out of range.
    IncomparableError
        The baseline is of another dataset, has no answers to pair with, or none that is right or wrong.
    """

    def __init__(
        self,
        dataset: Dataset,
        baseline: Side,
        *,
        margin: float = 0.0,
        alpha: float = 0.05,
        seed: int = 0,
        rows: int | None = None,
    ) -> None:
        if not 0.0 <= margin < 1.0:
            raise PolicyError(f"margin is {margin:g}; a sequential gate needs one of 0 or more, below 1")
        self.margin, self.alpha = margin, alpha
        found = {"dataset_sha256": dataset.sha256, "questions_sha256": dataset.questions_sha256}
        reasons = conflicts(found, baseline.config)
        if reasons:
            raise IncomparableError("baseline is not comparable: " + "; ".join(reasons))
        self._labels = labelled(dataset.columns, min(len(dataset), rows or len(dataset)))
        self._expected = _baseline_correct(dataset, baseline, self._labels)
        if np.isnan(self._expected).all():
            raise IncomparableError(f"{baseline.name} has no right or wrong answer to pair with")
        self._key = self._labels.row * 2**20 + self._labels.place
        self._case = self._labels.cluster
        cases = np.unique(self._case)
        self._order = generator(seed, RULE).permutation(cases)
        pairs = np.unique(np.stack((self._case, self._labels.row)), axis=1)
        self._rows_left = np.bincount(pairs[0])
        self._sums, self._counts = np.zeros(len(self._rows_left)), np.zeros(len(self._rows_left))
        self._seen = np.zeros(len(dataset), bool)
        self._next = 0
        self._worse = BettingTest(-margin, above=False)
        self._fine = BettingTest(-margin, above=True)
        self.decided: str | None = None
        self._answers, self._moved = 0, 0.0

    def order(self, rows: Sequence[int]) -> list[int]:
        """The rows, cases in the order drawn; rows without labels last."""
        place = np.full(len(self._seen), len(self._order), np.int64)
        rank = np.empty(len(self._rows_left), np.int64)
        rank[self._order] = np.arange(len(self._order))
        place[self._labels.row] = rank[self._case]
        return sorted(rows, key=lambda row: (int(place[row]), row))

    def enough(self, block: Answers) -> bool:
        """Take answers in, and bet on the cases that are complete, in order."""
        if self.decided is None:
            self._take(block)
            self._look()
        return self.decided is not None

    def _take(self, block: Answers) -> None:
        rows = np.unique(block.row)
        rows = rows[~self._seen[rows]]
        self._seen[rows] = True
        at = np.searchsorted(self._key, block.row * 2**20 + block.place)
        at = np.minimum(at, len(self._key) - 1)
        known = (self._key[at] == block.row * 2**20 + block.place) & (block.reason == 0)
        at, value, label = at[known], block.value[known], block.label[known]
        labels = self._labels
        sides = (value >= 0.5) == (labels.gold[at] == 1.0)
        correct = np.where(labels.kind[at] == 0, label == labels.gold_label[at], sides).astype(np.float64)
        moved = correct - self._expected[at]
        paired = ~np.isnan(moved)
        case, moved = self._case[at[paired]], moved[paired]
        self._sums += np.bincount(case, moved, len(self._sums))
        self._counts += np.bincount(case, minlength=len(self._sums))
        own = self._case_of(rows)
        self._rows_left -= np.bincount(own, minlength=len(self._rows_left))

    def _case_of(self, rows: Ints) -> Ints:
        """Case of each row that has labels."""
        at = np.searchsorted(self._labels.row, rows)
        at = np.minimum(at, len(self._labels.row) - 1)
        found: Ints = self._case[at[self._labels.row[at] == rows]]
        return found

    def _look(self) -> None:
        enough = math.log(1.0 / self.alpha)
        while self._next < len(self._order) and not self._rows_left[self._order[self._next]]:
            case = self._order[self._next]
            self._next += 1
            if not self._counts[case]:
                continue
            moved = float(self._sums[case] / self._counts[case])
            self._answers += int(self._counts[case])
            self._moved += moved
            self._worse.add([moved])
            self._fine.add([moved])
            if math.log(self._worse.wealth) >= enough:
                self.decided = "fail"
            elif math.log(self._fine.wealth) >= enough:
                self.decided = "pass"
            if self.decided:
                return

    def verdict(self, errored: bool) -> Verdict:
        """What was found, stopped early or not; a run with errored rows fails."""
        found = [self._finding()]
        if errored:
            found.append(forbidden("errors", "this run has errored rows"))
        return Verdict(tuple(found))

    def _finding(self) -> Finding:
        cases = self._worse.n
        mean = self._moved / cases if cases else None
        than = f"the baseline by more than {self.margin:g}" if self.margin else "the baseline"
        said = {
            "fail": f"is surely worse than {than}",
            "pass": "is surely better than the baseline"
            if not self.margin
            else f"is surely not worse than {than}",
        }.get(self.decided or "", f"cannot be told to be worse than {than}, nor not to be")
        outcome = self.decided or ("inconclusive" if cases else "missing")
        evidence = max(self._worse.wealth, self._fine.wealth)
        moved = "" if mean is None else f": mean difference {mean:+.4f} (n={self._answers}, {cases} cases)"
        return Finding(
            rule=RULE,
            metric="accuracy",
            outcome=outcome,  # type: ignore[arg-type]
            # Without a margin the gate only looks for harm, and found none.
            fails=outcome in ("fail", "missing") or (outcome == "inconclusive" and self.margin > 0),
            reason=f"accuracy {said}{moved}, evidence {evidence:.3g} of {1 / self.alpha:g}",
            kind="margin",
            limit=self.margin,
            difference=mean,
            n=self._answers,
            cases=cases,
        )


def _baseline_correct(dataset: Dataset, baseline: Side, labels: Labelled) -> Floats:
    """Whether the baseline had each labelled question right; NaN where that is not known."""
    table = baseline.table
    if table is None:
        raise IncomparableError(baseline.lacking or f"{baseline.name} holds no cases")
    if not baseline.named:
        raise IncomparableError(f"the cases of {baseline.name} do not say which row they are")
    ours = Side(name="this run", document={}, dataset=dataset)
    rows = joined_rows(ours, baseline, len(dataset))
    names = {name: code for code, name in enumerate(table.names.qids)}
    codes = np.array([names.get(name, -1) for name in labels.qid_names], np.int64)
    questions = zip(table.row.tolist(), table.qid.tolist(), strict=True)
    right = dict(zip(questions, table.correct.tolist(), strict=True))
    wanted = zip(rows[labels.row].tolist(), codes[labels.qid].tolist(), strict=True)
    return np.array([right.get(key, math.nan) for key in wanted], np.float64)
