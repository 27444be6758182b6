"""Questions whose answers are levels."""

from __future__ import annotations

import numpy as np

from steelyard.metrics.registry import Measurement, View, mean_of, metric, rate_of


@metric("score_mae", better="lower", shared=True)
def score_mae(view: View) -> Measurement | None:
    """Mean distance between the expected level and the label, in levels."""
    furthest = float(view.column("options").max(initial=1)) - 1.0
    return mean_of(
        *view.defined("error"),
        better="lower",
        definition="score_mae/expected-level/1",
        upper=furthest,
        exact=True,
    )


def score_within(view: View, tolerance: float) -> Measurement | None:
    """Share of score answers whose expected level is within a tolerance of the label."""
    error, clusters = view.defined("error")
    hits = (error <= tolerance).astype(np.float64)
    return rate_of(hits, clusters, better="higher", definition=f"score_within/{tolerance:g}/1")


@metric("score_accuracy", better="higher")
def score_accuracy(view: View) -> Measurement | None:
    """Share of score answers whose likeliest level is the label, the lowest level winning ties."""
    return rate_of(*view.defined("level_correct"), better="higher", definition="score_accuracy/argmax/1")


@metric("rps", better="lower")
def rps(view: View) -> Measurement | None:
    """Ranked probability score of score answers, divided by levels less one; 0 to 1."""
    return mean_of(*view.defined("rps"), better="lower", definition="rps/normalised/1", upper=1.0)
