"""Right and wrong."""

from __future__ import annotations

import numpy as np

from steelyard.metrics.decisions import ERRORED, Floats, Ints
from steelyard.metrics.estimates import from_influence, rate_of, ratio_of
from steelyard.metrics.registry import UNBOUNDED, Measurement, metric
from steelyard.metrics.view import View


@metric("choice_accuracy", better="higher", definition="choice_accuracy/1", shared=True)
def choice_accuracy(view: View) -> Measurement | None:
    """Share of choice answers that name the expected option.

    Formula: right / scored; errored answers are out, and with them as wrong it stands in the details.
    Needs: choice labels.
    Beware: read it beside its baselines; a label that half the cases share is right half the time.
    Source: interval by Wilson 1927 on the effective n.
    """
    return _accuracy(view, 0)


@metric("noul_accuracy", better="higher", definition="noul_accuracy/1", shared=True)
def noul_accuracy(view: View) -> Measurement | None:
    """Share of yes/no answers on the right side, P(true) of 0.5 counting as yes.

    Formula: right / scored.
    Needs: noul labels.
    Beware: with few yes labels, always answering no does well; see the baselines.
    Source: interval by Wilson 1927 on the effective n.
    """
    return _accuracy(view, 2)


@metric("accuracy", better="higher", definition="accuracy/choice-and-noul/1")
def accuracy(view: View) -> Measurement | None:
    """Share of choice and yes/no answers that are right, taken together.

    Formula: right / scored.
    Needs: choice or noul labels.
    Beware: a mean over questions as they are mixed in the data; compare it on the same cases only.
    Source: interval by Wilson 1927 on the effective n.
    """
    return _accuracy(view, None)


def _accuracy(view: View, kind: int | None) -> Measurement | None:
    correct, clusters = view.defined("correct", kind)
    if not len(correct):
        return None
    own = view.column("kind") != 1 if kind is None else view.column("kind") == kind
    errored = int(np.count_nonzero(own & (view.column("status") == ERRORED)))
    details = None
    if errored:
        floor = float(np.count_nonzero(correct)) / (len(correct) + errored)
        details = {"errored": errored, "errors_as_wrong": floor}
    return rate_of(view, correct, clusters, details=details)


def _against(name: str, words: str) -> None:
    def compute(view: View) -> Measurement | None:
        kept = view.where("correct", f"{name}_hit")
        if kept is None:
            return None
        missed = 1.0 - view.column("correct")[kept]
        return ratio_of(view, missed, 1.0 - view.column(f"{name}_hit")[kept], view.clusters(kept))

    compute.__doc__ = f"""Share of the errors of {words} that the answers do away with.

    Formula: (accuracy - baseline) / (1 - baseline), over choice and yes/no answers.
    Needs: choice or noul labels; absent where the baseline makes no error.
    Beware: below 0 is worse than answers that never read the state; the baseline is of the whole data.
    Source: chance correction after Cohen 1960; interval by the influence of each answer.
    """
    named = f"accuracy_skill_{name}"
    metric(named, better="higher", definition=f"{named}/1", low=-UNBOUNDED)(compute)


for _name, _words in (
    ("majority", "always giving the question's commonest label"),
    ("uniform", "any option alike"),
    ("prior", "labels as often as they occur, the label itself left out"),
    ("first_option", "always giving the option listed first"),
):
    _against(_name, _words)


@metric("macro_f1", better="higher", definition="macro_f1/union-labels/1")
def macro_f1(view: View) -> Measurement | None:
    """Unweighted mean F1 over the labels that occur in gold or prediction of choice answers.

    Formula: mean over labels, each within its question, of 2 tp / (2 tp + fp + fn).
    Needs: choice labels.
    Beware: labels with one or two answers weigh as much as any other, and pull the interval's
        centre low.
    Source: Opitz and Burst 2019 (arXiv 1911.03347); interval by the influence of each answer.
    """
    return _f1(view, "gold_label", "pred_label")


@metric("macro_f1_positions", better="higher", definition="macro_f1/positions/1")
def macro_f1_positions(view: View) -> Measurement | None:
    """Macro F1 over option positions in place of labels, for comparison with published tables.

    Formula: as macro_f1, position i being one class over all questions.
    Needs: choice labels.
    Beware: means little where questions have different options.
    Source: as macro_f1.
    """
    return _f1(view, "gold", "pred")


def _f1(view: View, gold_name: str, pred_name: str) -> Measurement | None:
    kept = view.where("correct", kind=0)
    if kept is None:
        return None
    gold = view.column(gold_name)[kept].astype(np.int64)
    pred = view.column(pred_name)[kept].astype(np.int64)
    if gold_name == "gold_label":
        # A label means something only inside its question.
        qid = view.column("qid")[kept].astype(np.int64) * (1 + max(gold.max(), pred.max()))
        gold, pred = qid + gold, qid + pred
    scores, influence = f1_scores(gold, pred)
    details = {"classes": len(scores)}
    value, clusters = float(scores.mean()), view.clusters(kept)
    return from_influence(view, value, influence, clusters, high=1.0, details=details)


def f1_scores(gold: Ints, pred: Ints) -> tuple[Floats, Floats]:
    """F1 of every class that occurs in `gold` or `pred`.

    Parameters
    ----------
    gold, pred : int arrays, shape (n,)

    Returns
    -------
    (float array, float array)
        ``2 tp / (2 tp + fp + fn)`` in code order, and the influence of each answer on their mean;
        empty input gives empty arrays.
    """
    both = np.concatenate((gold, pred))
    if both.max(initial=0) > 4 * len(both) + 1000:
        both = np.unique(both, return_inverse=True)[1]
    truth, answer = both[: len(gold)], both[len(gold) :]
    seen = np.bincount(both).astype(np.float64)
    hits = np.bincount(truth[truth == answer], minlength=len(seen))
    there = seen > 0
    weight = 1.0 / np.maximum(seen, 1.0)
    scores = 2.0 * hits * weight
    classes = max(1, int(np.count_nonzero(there)))
    # An answer adds a hit, and one to the sizes of its label and of its prediction.
    moved = (2.0 * weight)[truth] * (truth == answer) - (scores * weight)[truth] - (scores * weight)[answer]
    return (2.0 * hits[there] / seen[there]), moved * (len(gold) / classes)
