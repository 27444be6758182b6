"""Options nobody chose, and options an engine cannot tell apart."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from steelyard.metrics.decisions import SCORED, Decisions, Floats, Ints
from steelyard.metrics.derived import column
from steelyard.metrics.estimates import area_interval, reach_of
from steelyard.stats.clusters import Clusters, influence_variance
from steelyard.stats.ranking import auroc, auroc_influence, ranked_levels, spread_over

FEWEST = 5
MOST_OPTIONS = 200


class OptionUse(msgspec.Struct, frozen=True):
    """How often an option of a question was offered, is the label, and was chosen."""

    question: str
    option: str
    offered: int
    labelled: int
    chosen: int


class Confusable(msgspec.Struct, frozen=True):
    """Two options of a question, and whether the engine tells their cases apart.

    Attributes
    ----------
    auroc : float
        Chance that a case labelled `first` gets more of its probability on `first` against `second`
        than one labelled `second`; 0.5 is no idea.
    interval : (float, float) or None
        None at 0 and 1, where no case can move it, and with fewer than two cases.
    n_first, n_second : int
        Cases of either label.
    swapped : int
        Of those, answered with the other of the two.
    """

    question: str
    first: str
    second: str
    auroc: float
    interval: tuple[float, float] | None
    n_first: int
    n_second: int
    swapped: int


def option_use(table: Decisions) -> list[OptionUse]:
    """Counts of every option of the choice questions that rows share, by question and option."""
    found = []
    for code, question in enumerate(table.names.qids):
        asked = np.flatnonzero((table.qid == code) & (table.kind == 0) & (table.option_set >= 0))
        offered = np.zeros(len(table.names.labels), np.int64)
        sets, counts = np.unique(table.option_set[asked], return_counts=True)
        for at, n in zip(sets.tolist(), counts.tolist(), strict=True):
            offered[list(table.names.option_sets[at])] += n
        labelled = _counts(table.gold_label[asked], len(offered))
        chosen = _counts(table.pred_label[asked], len(offered))
        found += [
            OptionUse(question, table.names.labels[at], int(offered[at]), int(labelled[at]), int(chosen[at]))
            for at in np.flatnonzero(offered).tolist()
        ]
    return found


def _counts(codes: NDArray[np.int32], size: int) -> NDArray[np.integer[Any]]:
    return np.bincount(codes[codes >= 0], minlength=size)


def confusable_options(table: Decisions) -> list[Confusable]:
    """Pairs of options with at least five cases each, the least told apart first.

    Only questions with up to 200 options that all their rows share are looked at.
    """
    found: list[Confusable] = []
    scored = (table.status == SCORED) & (table.kind == 0) & (table.size > 1)
    for code in np.unique(table.option_set[scored & (table.option_set >= 0)]).tolist():
        rows = np.flatnonzero(scored & (table.option_set == code))
        labels = table.names.option_sets[code]
        if len(labels) <= MOST_OPTIONS:
            matrix = table.flat[column(table, "offset")[rows][:, None] + np.arange(len(labels))]
            found += _pairs(table, rows, labels, matrix)
    return sorted(found, key=lambda pair: (pair.auroc, pair.question, pair.first, pair.second))


def _pairs(table: Decisions, rows: Ints, labels: tuple[int, ...], matrix: Floats) -> list[Confusable]:
    gold, pred = table.gold[rows].astype(np.int64), table.pred[rows]
    names, found = table.names, []
    enough = np.flatnonzero(np.bincount(gold, minlength=len(labels)) >= FEWEST).tolist()
    question = names.qids[table.qid[rows[0]]]
    for at, a in enumerate(enough):
        for b in enough[at + 1 :]:
            own = np.flatnonzero((gold == a) | (gold == b))
            first = (gold[own] == a).astype(np.float64)
            share = np.log(np.maximum(matrix[own, a], 1e-9)) - np.log(np.maximum(matrix[own, b], 1e-9))
            area, interval = _area(share, first, Clusters(table.cluster[rows[own]]))
            swapped = int(np.count_nonzero(pred[own] == np.where(first > 0, b, a)))
            n = int(first.sum())
            left, right = names.labels[labels[a]], names.labels[labels[b]]
            found.append(Confusable(question, left, right, area, interval, n, len(own) - n, swapped))
    return found


def _area(share: Floats, first: Floats, clusters: Clusters) -> tuple[float, tuple[float, float] | None]:
    order = np.argsort(-share, kind="stable")
    accepted, hits = ranked_levels(share[order], first[order])
    area = auroc(accepted, hits)
    assert area is not None
    if len(clusters) < 2:
        return area, None
    influence = np.empty(len(order))
    influence[order] = spread_over(*auroc_influence(accepted, hits, area), accepted, first[order])
    half = reach_of(influence_variance(influence, clusters), len(clusters), len(order))
    return area, area_interval(area, half)
