"""Proper scores of whole distributions, and skill against forecasts that never read the state."""

from __future__ import annotations

import numpy as np

from steelyard.metrics.estimates import mean_of, ratio_of
from steelyard.metrics.losses import CLIP
from steelyard.metrics.registry import UNBOUNDED, Measurement, metric
from steelyard.metrics.view import View


@metric("brier_multiclass", better="lower", definition="brier/multiclass/1", high=2.0)
def brier_multiclass(view: View) -> Measurement | None:
    """Brier score over all options of choice and yes/no answers; 0 to 2.

    Formula: mean of sum over options (p - 1[right])^2; a noul answer has two options.
    Needs: answers with probabilities.
    Beware: halve it to compare with the two-class convention (p - y)^2.
    Source: Brier 1950; Gneiting and Raftery 2007.
    """
    return mean_of(view, *view.defined("brier"), high=2.0)


@metric("log_loss", better="lower", definition="log_loss/clip-1e-15/1", high=UNBOUNDED)
def log_loss(view: View) -> Measurement | None:
    """Mean negative log probability of the right answer, in nats, clipped at 1e-15.

    Formula: mean of -ln max(p_right, 1e-15).
    Needs: answers with probabilities.
    Beware: one rounded zero costs 34.5; the clipped are counted in the details.
    Source: Good 1952; Gneiting and Raftery 2007.
    """
    values, clusters = view.defined("log_loss")
    clipped = int(np.count_nonzero(values >= -np.log(CLIP)))
    details = {"clip": CLIP, "clipped": clipped, "infinite_without_clip": clipped > 0}
    return mean_of(view, values, clusters, details=details)


def _skill(view: View, loss: str, reference: str) -> Measurement | None:
    kept = view.where(loss, reference)
    if kept is None:
        return None
    return ratio_of(view, view.column(loss)[kept], view.column(reference)[kept], view.clusters(kept))


def _register(score: str, loss: str, reference: str, words: str, beware: str) -> None:
    name = f"{score}_skill_{reference}"

    def compute(view: View) -> Measurement | None:
        return _skill(view, loss, f"{reference}_{score}")

    compute.__doc__ = f"""Share of the {score} score of {words} that the answers do away with.

    Formula: 1 - mean {loss} / mean {loss} of that forecast; 1 is perfect, 0 no better, below 0 worse.
    Needs: answers with probabilities.
    Beware: {beware}
    Source: Murphy 1973; Gneiting and Raftery 2007.
    """
    metric(name, better="higher", definition=f"{name}/1", low=-UNBOUNDED)(compute)


_UNIFORM = ("uniform", "an even forecast over the options", "an even forecast is easily beaten.")
_PRIOR = (
    "prior",
    "the question's class prior",
    "the prior of a label leaves the label itself out; questions with few labels have a poor prior.",
)
_MAJORITY = (
    "majority",
    "always being sure of the question's commonest label",
    "being sure is a poor forecast, so this skill flatters.",
)
for _reference in (_UNIFORM, _PRIOR, _MAJORITY):
    _register("brier", "brier", *_reference)
for _reference in (_UNIFORM, _PRIOR):
    _register("log", "log_loss", *_reference)
for _reference in (_UNIFORM, _PRIOR):
    _register("rps", "rps", *_reference)


def _soft(name: str, summary: str, formula: str, high: float) -> None:
    def compute(view: View) -> Measurement | None:
        return mean_of(view, *view.defined(name), high=high)

    compute.__doc__ = f"""{summary}

    Formula: {formula}
    Needs: labels that are distributions over the options, and answers with probabilities.
    Beware: only over answers with such labels.
    Source: Kullback and Leibler 1951; Gneiting and Raftery 2007.
    """
    metric(name, better="lower", definition=f"{name}/1", high=high)(compute)


_soft(
    "soft_divergence",
    "Mean divergence of the answer from a label that is a distribution, in nats.",
    "mean of sum g ln(g / max(p, 1e-15)); 0 when they agree.",
    UNBOUNDED,
)
_soft(
    "soft_cross_entropy",
    "Mean cross-entropy of the answer against a label that is a distribution, in nats.",
    "mean of -sum g ln max(p, 1e-15); its least value is the entropy of the labels.",
    UNBOUNDED,
)
_soft(
    "soft_brier",
    "Mean squared distance of the answer from a label that is a distribution; 0 to 2.",
    "mean of sum (p - g)^2.",
    2.0,
)
