"""Proper scores of whole distributions."""

from __future__ import annotations

import numpy as np

from steelyard.metrics.decisions import CLIP
from steelyard.metrics.registry import Measurement, View, mean_of, metric


@metric("brier_multiclass", better="lower")
def brier_multiclass(view: View) -> Measurement | None:
    """Brier score over all options of choice and yes/no answers; 0 to 2."""
    return mean_of(*view.defined("brier"), better="lower", definition="brier/multiclass/1", upper=2.0)


@metric("log_loss", better="lower")
def log_loss(view: View) -> Measurement | None:
    """Mean negative log probability of the right answer, in nats, clipped at 1e-15."""
    values, clusters = view.defined("log_loss")
    clipped = int(np.count_nonzero(values >= -np.log(CLIP)))
    details = {"clip": CLIP, "clipped": clipped}
    return mean_of(values, clusters, better="lower", definition="log_loss/clip-1e-15/1", details=details)
