"""The answers of a slice in order of falling confidence."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from steelyard.metrics.decisions import Floats, Ints
from steelyard.stats.clusters import Clusters, Spread, spread_from
from steelyard.stats.ranking import level_sizes, ranked_levels


class Ranked:
    """The answers of a slice that have confidence and correctness, most confident first.

    Parameters
    ----------
    confidence, correct : array, shape (n,)
        n >= 1, confidence falling.
    order : int array, shape (n,)
        Where each stands among them in dataset order.
    clusters : Clusters
        Of the answers in dataset order.

    Attributes
    ----------
    accepted, hits : array, shape (levels,)
        Running counts at the end of each level of equal confidence.
    """

    def __init__(self, confidence: Floats, correct: Floats, order: Ints, clusters: Clusters) -> None:
        self.confidence, self.correct, self.cases = confidence, correct, len(clusters)
        self._order, self._clusters = order, clusters
        self.accepted, self.hits = ranked_levels(confidence, correct)

    def __len__(self) -> int:
        return len(self.confidence)

    @property
    def alone(self) -> bool:
        """Whether every answer is a case of its own."""
        return self.cases == len(self.confidence)

    def in_data_order(self, values: Floats) -> Floats:
        """A value per ranked answer, as answers stand in the dataset."""
        found = np.empty(len(values))
        found[self._order] = values
        return found

    @cached_property
    def codes(self) -> Ints:
        """Case of each answer, from 0 to `cases` - 1."""
        return self._clusters.compact[self._order]

    @cached_property
    def sizes(self) -> Floats:
        """Answers of each level."""
        return level_sizes(self.accepted)

    @cached_property
    def level(self) -> Floats:
        """Confidence of each level."""
        return self.confidence[self.accepted.astype(np.int64) - 1]

    @cached_property
    def level_hits(self) -> Floats:
        """Right answers of each level."""
        return level_sizes(self.hits)

    def case_sums(self, values: Floats) -> Floats:
        """Sum over each case of a value per ranked answer, shape (cases,)."""
        if self.alone:
            return values
        found: Any = np.bincount(self.codes, values, self.cases)
        return np.asarray(found, np.float64)

    def spread_of_first(self, accepted: int) -> Spread:
        """Spread of the accuracy of the most confident answers, `accepted` of them."""
        correct = self.correct[:accepted]
        rate = float(np.count_nonzero(correct)) / accepted
        square = accepted * rate * (1.0 - rate)
        if self.alone:
            groups, sums = accepted, None
        else:
            inside = np.bincount(self.codes[:accepted], minlength=self.cases)
            groups = int(np.count_nonzero(inside))
            sums = np.bincount(self.codes[:accepted], correct, self.cases) - rate * inside
        if groups < 2:
            return Spread(rate, accepted, groups, 0.0, 1.0)
        return spread_from(rate, square, accepted, sums, groups)
