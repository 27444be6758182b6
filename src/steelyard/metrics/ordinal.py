"""Questions whose answers are levels."""

from __future__ import annotations

import numpy as np

from steelyard.metrics.estimates import from_influence, mean_of, rate_of
from steelyard.metrics.registry import UNBOUNDED, Measurement, metric
from steelyard.metrics.view import View


@metric("score_mae", better="lower", definition="score_mae/expected-level/1", high=UNBOUNDED, shared=True)
def score_mae(view: View) -> Measurement | None:
    """Mean distance between the expected level and the label, in levels.

    Formula: mean of |E[level] - label|.
    Needs: score labels.
    Beware: not comparable between questions with different numbers of levels.
    Source: the peer's definition; interval cluster-robust.
    """
    error, clusters = view.defined("error")
    if not len(error):
        return None
    furthest = float(view.column("options").max(initial=1)) - 1.0
    return mean_of(view, error, clusters, high=furthest, exact=True)


@metric("score_bias", better="neither", definition="score_bias/1", low=-UNBOUNDED, high=UNBOUNDED)
def score_bias(view: View) -> Measurement | None:
    """Mean of expected level less label, in levels: above zero the answers run high.

    Formula: mean of E[level] - label.
    Needs: score labels.
    Beware: errors both ways cancel.
    Source: forecast bias, as Murphy 1988.
    """
    kept = view.where("error")
    if kept is None:
        return None
    bias = view.column("value")[kept] - view.column("gold")[kept]
    return mean_of(view, bias, view.clusters(kept), low=-np.inf)


def score_within(view: View, tolerance: float) -> Measurement | None:
    """Share of score answers whose expected level is within a tolerance of the label."""
    error, clusters = view.defined("error")
    return rate_of(view, (error <= tolerance).astype(np.float64), clusters)


@metric("score_within_one", better="higher", definition="score_within_one/argmax/1")
def score_within_one(view: View) -> Measurement | None:
    """Share of score answers whose likeliest level is at most one from the label.

    Formula: mean of 1[|likeliest level - label| <= 1].
    Needs: score labels on whole levels, and answers with probabilities.
    Beware: nearly always 1 on two or three levels.
    Source: adjacent agreement, as in essay scoring.
    """
    kept = view.where("level_correct")
    if kept is None:
        return None
    pred, gold = view.column("likeliest")[kept], view.column("gold")[kept]
    return rate_of(view, (np.abs(pred - gold) <= 1).astype(np.float64), view.clusters(kept))


@metric("score_accuracy", better="higher", definition="score_accuracy/argmax/1")
def score_accuracy(view: View) -> Measurement | None:
    """Share of score answers whose likeliest level is the label, the lowest level winning ties.

    Formula: mean of 1[likeliest level = label].
    Needs: score labels on whole levels, and answers with probabilities.
    Beware: blind to how far off a wrong level is.
    Source: interval by Wilson 1927 on the effective n.
    """
    return rate_of(view, *view.defined("level_correct"))


@metric("score_kappa", better="higher", definition="score_kappa/quadratic/1", low=-1.0)
def score_kappa(view: View) -> Measurement | None:
    """Agreement of likeliest level and label beyond chance, distances weighing by their square.

    Formula: 1 - mean (pred - label)^2 / mean over all pairs of (pred - label)^2.
    Needs: score labels on whole levels, and answers with probabilities; more than one level among
        them.
    Beware: depends on how labels are spread; pooled over questions, it rewards telling them apart.
    Source: Cohen 1968; interval by the influence of each answer.
    """
    kept = view.where("level_correct")
    if kept is None:
        return None
    pred, gold = view.column("likeliest")[kept], view.column("gold")[kept]
    # All pairs: E(p - g)^2 with p and g drawn apart is var p + var g + (mean p - mean g)^2.
    pair = float(pred.var() + gold.var() + (pred.mean() - gold.mean()) ** 2)
    if pair <= 0.0:
        return None
    own = (pred - gold) ** 2
    value = 1.0 - float(own.mean()) / pair
    means = pred.mean(), gold.mean()
    variances = pred.var(), gold.var()
    moved = (pred - means[1]) ** 2 + variances[1] + (gold - means[0]) ** 2 + variances[0] - 2.0 * pair
    influence = (1.0 - value) * moved / pair - (own - own.mean()) / pair
    return from_influence(view, value, influence, view.clusters(kept), low=-1.0, high=1.0)


@metric("rps", better="lower", definition="rps/normalised/1")
def rps(view: View) -> Measurement | None:
    """Ranked probability score of score answers, divided by levels less one; 0 to 1.

    Formula: mean of sum over k < K - 1 of (F_k - 1[label <= k])^2 / (K - 1).
    Needs: score labels on whole levels, and answers with probabilities.
    Beware: with two levels it is the Brier score (p - y)^2.
    Source: Epstein 1969; Murphy 1971.
    """
    return mean_of(view, *view.defined("rps"), high=1.0)
