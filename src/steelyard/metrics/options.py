"""Every option's probability, not only that of the answer: dear, so not on every slice."""

from __future__ import annotations

from itertools import chain

import numpy as np
from numpy.typing import NDArray

from steelyard.metrics.calibration import BIASED
from steelyard.metrics.decisions import Floats, Ints
from steelyard.metrics.estimates import bare
from steelyard.metrics.registry import Measurement, metric
from steelyard.metrics.view import View
from steelyard.stats.bins import bin_index, binned
from steelyard.stats.clusters import Clusters
from steelyard.stats.grouping import ragged
from steelyard.stats.nulls import Null, half_normal_null

FEWEST = 50
"""Answers a label must have been offered in."""


def distributions(view: View, kept: NDArray[np.bool_]) -> tuple[Ints, Floats]:
    """Sizes and probabilities, end to end, of the rows of a mask that have a distribution."""
    size = view.column("size")[kept].astype(np.int64)
    flat: Floats = view.gathered.table.flat[ragged(view.column("offset")[kept], size)]
    return size, flat


@metric("ece_classwise", better="lower", definition="ece_classwise/{bins}-equal-width-min50/1", deep=True)
def ece_classwise(view: View) -> Measurement | None:
    """Mean calibration error of the probability of each option, whether it was chosen or not.

    Formula: mean over labels, each within its question, of ece of p(label) against it being right.
    Needs: choice answers with probabilities, on questions that rows share; 50 answers a label.
    Beware: dominated by options nobody chooses; biased upwards like ece; its null takes the options of
        an answer as independent.
    Source: Kull et al. 2019 (arXiv 1910.12656).
    """
    kept = (view.column("size") > 0) & (view.column("option_set") >= 0) & (view.column("p_gold") >= 0)
    if not kept.any():
        return None
    size, p = distributions(view, kept)
    right, code = _labels(view, kept, size)
    codes, label = np.unique(code, return_inverse=True)
    offered = np.bincount(label, minlength=len(codes))
    enough = offered >= FEWEST
    if not enough.any():
        return None
    chosen = enough[label]
    label, classes = (np.cumsum(enough) - 1)[label[chosen]], int(np.count_nonzero(enough))
    bins = view.settings.bins
    cell = label * bins + np.maximum(bin_index(p[chosen], bins), 0)
    sums = [
        np.bincount(cell, weights=column, minlength=classes * bins)
        for column in (p[chosen] - right[chosen], p[chosen] * (1.0 - p[chosen]))
    ]
    share = np.repeat(1.0 / (offered[enough] * classes), bins)
    value = float((np.abs(sums[0]) * share).sum())
    null = half_normal_null(np.sqrt(sums[1]) * share, value) if view.settings.intervals else None
    return bare(
        value,
        int(np.count_nonzero(kept)),
        len(view.clusters(kept)),
        BIASED,
        null=null,
        details={"classes": classes, "too_few": len(codes) - classes},
    )


def _labels(view: View, kept: NDArray[np.bool_], size: Ints) -> tuple[Floats, Ints]:
    """Whether each option is right, and a code of its question and label."""
    sets = view.gathered.table.names.option_sets
    lengths = np.array([len(found) for found in sets])
    labels = np.array(list(chain.from_iterable(sets)))
    asked = view.column("option_set")[kept]
    label = labels[ragged((np.cumsum(lengths) - lengths)[asked], size)]
    right = label == np.repeat(view.column("gold_label")[kept], size)
    qid = np.repeat(view.column("qid")[kept].astype(np.int64), size)
    return right.astype(np.float64), qid * (int(labels.max()) + 1) + label


@metric(
    "score_threshold_ece", better="lower", definition="score_threshold_ece/{bins}-equal-width/1", deep=True
)
def score_threshold_ece(view: View) -> Measurement | None:
    """Calibration error of score answers at their worst threshold: P(level <= k) against label <= k.

    Formula: max over questions and k of ece of F_k against 1[y <= k]; every one is in the details.
    Needs: score labels on whole levels, and answers with probabilities.
    Beware: the worst of several; its p is multiplied by their number, its null is that threshold's.
    Source: Held, Rufibach and Balabdaoui 2010; ece as Naeini et al. 2015.
    """
    kept = view.where("rps")
    if kept is None:
        return None
    size, flat = distributions(view, kept)
    qid, gold = view.column("qid")[kept], view.column("gold")[kept]
    starts, bins = np.cumsum(size) - size, view.settings.bins
    cluster = view.column("cluster")[kept]
    worst: tuple[float, Null, str, int, Ints] | None = None
    tried: dict[str, list[float]] = {}
    for code in np.unique(qid).tolist():
        name = view.gathered.table.names.qids[code]
        for levels in np.unique(size[qid == code]).tolist():
            rows = np.flatnonzero((qid == code) & (size == levels))
            below = np.clip(np.cumsum(flat[starts[rows][:, None] + np.arange(levels)], axis=1), 0.0, 1.0)
            for k in range(levels - 1):
                value, null = _threshold(below[:, k], gold[rows] <= k, bins)
                tried.setdefault(name, []).append(value)
                if worst is None or value > worst[0]:
                    worst = value, null, name, k, rows
    assert worst is not None
    value, null, name, k, rows = worst
    p = min(1.0, null.p * sum(map(len, tried.values())))
    corrected = Null(null.expectation, null.q95, p, null.excess, null.method)
    return bare(
        value,
        len(rows),
        len(Clusters(cluster[rows])),
        BIASED,
        null=corrected if view.settings.intervals else None,
        details={"question": name, "threshold": k, "every": tried},
    )


def _threshold(stated: Floats, outcome: Floats, bins: int) -> tuple[float, Null]:
    table = binned(bin_index(stated, bins), np.ones(len(stated)), stated, outcome.astype(np.float64), bins)
    value = table.error()
    return value, half_normal_null(np.sqrt(table.spread) / len(stated), value)
