"""Right and wrong."""

from __future__ import annotations

import numpy as np

from steelyard.metrics.decisions import ERRORED, Floats, Ints
from steelyard.metrics.registry import Measurement, View, metric, plain_value, rate_of

_NO_F1 = "a ratio of counts over classes has no interval of this kind yet"


@metric("choice_accuracy", better="higher", shared=True)
def choice_accuracy(view: View) -> Measurement | None:
    """Share of choice answers that name the expected option."""
    return _accuracy(view, 0, "choice_accuracy/1")


@metric("noul_accuracy", better="higher", shared=True)
def noul_accuracy(view: View) -> Measurement | None:
    """Share of yes/no answers on the right side, P(true) of 0.5 counting as yes."""
    return _accuracy(view, 2, "noul_accuracy/1")


def _accuracy(view: View, kind: int, definition: str) -> Measurement | None:
    correct, clusters = view.defined("correct", kind)
    errored = int(np.count_nonzero((view.column("kind") == kind) & (view.column("status") == ERRORED)))
    details = None
    if errored and len(correct):
        floor = float(np.count_nonzero(correct)) / (len(correct) + errored)
        details = {"errored": errored, "errors_as_wrong": floor}
    return rate_of(correct, clusters, better="higher", definition=definition, details=details)


@metric("macro_f1", better="higher")
def macro_f1(view: View) -> Measurement | None:
    """Unweighted mean F1 over the labels that occur in gold or prediction of choice answers."""
    kept = (view.column("kind") == 0) & ~np.isnan(view.column("correct"))
    return _f1(view, kept, "gold_label", "pred_label", "macro_f1/union-labels/1")


@metric("macro_f1_positions", better="higher")
def macro_f1_positions(view: View) -> Measurement | None:
    """Macro F1 over option positions in place of labels, for comparison with published tables."""
    kept = (view.column("kind") == 0) & ~np.isnan(view.column("correct"))
    return _f1(view, kept, "gold", "pred", "macro_f1/positions/1")


def _f1(view: View, kept: Floats, gold_name: str, pred_name: str, definition: str) -> Measurement | None:
    if not kept.any():
        return None
    gold = view.column(gold_name)[kept].astype(np.int64)
    pred = view.column(pred_name)[kept].astype(np.int64)
    if gold_name == "gold_label":
        # A label means something only inside its question.
        qid = view.column("qid")[kept].astype(np.int64) * (1 + max(gold.max(), pred.max()))
        gold, pred = qid + gold, qid + pred
    scores = f1_scores(gold, pred)
    details = {"classes": len(scores)}
    value = float(scores.mean())
    clusters = view.column("cluster")[kept]
    return plain_value(value, clusters, _NO_F1, better="higher", definition=definition, details=details)


def f1_scores(gold: Ints, pred: Ints) -> Floats:
    """F1 of every class that occurs in `gold` or `pred`.

    Parameters
    ----------
    gold, pred : int arrays, shape (n,)

    Returns
    -------
    float array, one entry a class in code order
        ``2 tp / (2 tp + fp + fn)``; empty input gives an empty array.
    """
    both = np.concatenate((gold, pred))
    if both.max(initial=0) > 4 * len(both) + 1000:
        both = np.unique(both, return_inverse=True)[1]
    truth, answer = both[: len(gold)], both[len(gold) :]
    seen = np.bincount(both)
    hits = np.bincount(truth[truth == answer], minlength=len(seen))
    scores: Floats = 2.0 * hits[seen > 0] / seen[seen > 0]
    return scores
