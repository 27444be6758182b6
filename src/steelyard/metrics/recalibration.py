"""Calibration looked at closely: dear to compute, so not on every slice."""

from __future__ import annotations

import math
from functools import partial

import msgspec
import numpy as np

from steelyard.metrics.calibration import BIASED
from steelyard.metrics.decisions import Floats
from steelyard.metrics.estimates import bare, from_influence
from steelyard.metrics.registry import UNBOUNDED, Measurement, metric
from steelyard.metrics.view import View
from steelyard.stats.bins import binned
from steelyard.stats.corp import Parts, corp, miscalibrations, murphy
from steelyard.stats.logistic import offset_fit, slope_fit
from steelyard.stats.nulls import Null, by_blocks, calibrated_hits, simulated_null
from steelyard.stats.smooth import fixed_points, grid_residuals, smooth_calibration_error
from steelyard.stats.sweep import sweep_errors

MOST_LEVELS = 1024
NULL_CELLS, MANY = 128, 2000
WIDE_BINS = 5
_PART = "a part of the score; its own interval would not be that of the score"


class _Levels:
    """Levels of equal confidence, and hits drawn as if calibrated; many are merged for the draws."""

    def __init__(self, view: View) -> None:
        ranked = view.ranked
        assert ranked is not None
        self.n, self.confidence, self.hits = ranked.sizes, ranked.level, ranked.level_hits
        if len(self.n) > MOST_LEVELS:
            at = (MOST_LEVELS * (ranked.accepted - 0.5 * self.n) / len(ranked)).astype(np.int64)
            merged = binned(at, self.n, self.confidence, self.hits, MOST_LEVELS)
            self.n, self.confidence, self.hits = merged.n, merged.confidence / merged.n, merged.hits
        self.accepted = np.cumsum(self.n)
        self.draws = calibrated_hits(self.n, self.confidence, seed=view.settings.seed)


def _levels(view: View) -> _Levels:
    return view.memo("levels", partial(_Levels, view))


def _null(view: View, value: float, draws: Floats) -> Null:
    """Null from draws of independent answers, widened for those that share a case.

    The mean grows with what hangs together inside narrow bins, the spread with that inside wide ones.
    """
    narrow, wide = view.memo("deffs", lambda: (view.bins_deff, view.residual_deff(WIDE_BINS)))
    mean = float(draws.mean())
    return simulated_null(mean * math.sqrt(narrow) + (draws - mean) * math.sqrt(wide), value)


@metric("ece_sweep", better="lower", definition="ece_sweep/equal-mass-monotone/1", deep=True)
def ece_sweep(view: View) -> Measurement | None:
    """Calibration error over as many equal-mass bins as keep accuracy rising with confidence.

    Formula: as ece_adaptive; the bins, at most 100, are in the details.
    Needs: confidence, and a right and a wrong.
    Beware: biased upwards, though less than ece; the null is simulated.
    Source: Roelofs et al. 2022 (arXiv 2012.08668).
    """
    ranked = view.ranked
    if ranked is None:
        return None
    error, bins = sweep_errors(ranked.accepted, ranked.level, ranked.level_hits[None, :])
    value, details = float(error[0]), {"bins": int(bins[0])}
    if not view.settings.intervals:
        return bare(value, len(ranked), ranked.cases, BIASED, details=details)
    found = _levels(view)
    draws = by_blocks(lambda hits: sweep_errors(found.accepted, found.confidence, hits)[0], found.draws)
    null = _null(view, value, draws)
    return bare(value, len(ranked), ranked.cases, BIASED, null=null, details=details)


@metric("smece", better="lower", definition="smece/reflected-gaussian/1", deep=True)
def smece(view: View) -> Measurement | None:
    """Smooth calibration error: residuals under a kernel whose width is the error itself.

    Formula: integral over t of |mean of (y - c) K(t, c)|, K a Gaussian reflected at 0 and 1.
    Needs: confidence, and a right and a wrong.
    Beware: continuous and without bins, yet still biased upwards; the null is simulated.
    Source: Blasiok and Nakkiran 2024 (arXiv 2309.12236).
    """
    ranked = view.ranked
    if ranked is None:
        return None
    residual = ranked.level_hits - ranked.sizes * ranked.level
    value = smooth_calibration_error(ranked.level, residual, len(ranked))
    if not view.settings.intervals:
        return bare(value, len(ranked), ranked.cases, BIASED)
    found = _levels(view)

    cells = NULL_CELLS if len(ranked) < MANY else 4 * NULL_CELLS
    ascending, n = found.confidence[::-1], found.n[::-1]

    def of(hits: Floats) -> Floats:
        residual = hits[:, ::-1] - n * ascending
        return fixed_points(grid_residuals(ascending, residual, cells) / len(ranked))

    null = _null(view, value, by_blocks(of, found.draws))
    return bare(value, len(ranked), ranked.cases, BIASED, null=null)


def _corp(view: View) -> Parts:
    ranked = view.ranked
    assert ranked is not None
    return corp(ranked.sizes[::-1], ranked.level[::-1], ranked.level_hits[::-1])[0]


@metric("corp_miscalibration", better="lower", definition="corp_miscalibration/brier/1", deep=True)
def corp_miscalibration(view: View) -> Measurement | None:
    """What recalibration could take off the Brier score of the top answer (MCB).

    Formula: brier - brier of the isotonic fit; brier = MCB - DSC + UNC exactly.
    Needs: confidence, and a right and a wrong.
    Beware: the fit follows chance, so a calibrated model reads above zero; the null is simulated.
    Source: Dimitriadis, Gneiting and Jordan 2021 (arXiv 2008.03033).
    """
    if view.ranked is None:
        return None
    value = view.memo("corp", partial(_corp, view)).miscalibration
    if not view.settings.intervals:
        return bare(value, len(view.ranked), view.ranked.cases, BIASED)
    found = _levels(view)
    n, confidence = found.n[::-1], found.confidence[::-1]
    draws = by_blocks(lambda hits: miscalibrations(n, confidence, hits[:, ::-1]), found.draws)
    # Merged levels leave the fit less to follow, in the draws and in the data alike.
    merged = float(miscalibrations(n, confidence, found.hits[None, ::-1])[0])
    null, lost = _null(view, merged, draws), value - merged
    null = msgspec.structs.replace(null, expectation=null.expectation + lost, q95=null.q95 + lost)
    return bare(value, len(view.ranked), view.ranked.cases, BIASED, null=null)


@metric("corp_discrimination", better="higher", definition="corp_discrimination/brier/1", deep=True)
def corp_discrimination(view: View) -> Measurement | None:
    """How far confidence tells right from wrong, on the scale of the Brier score (DSC).

    Formula: brier of the base rate - brier of the isotonic fit.
    Needs: confidence, and a right and a wrong.
    Beware: biased upwards on few answers, as the fit follows chance.
    Source: Dimitriadis, Gneiting and Jordan 2021 (arXiv 2008.03033).
    """
    return _part(view, "discrimination")


@metric("corp_uncertainty", better="neither", definition="corp_uncertainty/brier/1", deep=True)
def corp_uncertainty(view: View) -> Measurement | None:
    """Brier score of always stating the accuracy itself (UNC).

    Formula: a (1 - a) with accuracy a.
    Needs: confidence, and a right and a wrong.
    Beware: says nothing of the model's confidence.
    Source: Dimitriadis, Gneiting and Jordan 2021 (arXiv 2008.03033).
    """
    return _part(view, "uncertainty")


def _part(view: View, name: str) -> Measurement | None:
    if view.ranked is None:
        return None
    value = float(getattr(view.memo("corp", partial(_corp, view)), name))
    return bare(value, len(view.ranked), view.ranked.cases, _PART)


@metric("murphy_reliability", better="lower", definition="murphy/bins-debiased/1", low=-1.0, deep=True)
def murphy_reliability(view: View) -> Measurement | None:
    """Murphy's reliability over the bins of ece, its bias taken out; resolution is in the details.

    Formula: sum n_b/n (gap^2 - y (1 - y) / (n_b - 1)); brier = REL - RES + UNC + within-bin rest.
    Needs: confidence, and a right and a wrong.
    Beware: exact only with the within-bin rest; prefer the corp decomposition.
    Source: Murphy 1973; Stephenson et al. 2008; Ferro and Fricker 2012.
    """
    confidence, correct, clusters = view.paired()
    if not len(confidence):
        return None
    bins = view.settings.bins
    table = binned(view.bins, np.ones(len(confidence)), confidence, correct, bins)
    parts = murphy(table, float(((confidence - correct) ** 2).mean()))
    details = {
        "resolution": parts.discrimination,
        "uncertainty": parts.uncertainty,
        "within_bins": parts.within,
    }
    return bare(parts.miscalibration, len(confidence), len(clusters), _PART, details=details)


@metric("cox_slope", better="neither", definition="cox_slope/1", low=-UNBOUNDED, high=UNBOUNDED, deep=True)
def cox_slope(view: View) -> Measurement | None:
    """Slope of right on the logit of confidence: 1 is calibrated, below 1 is too extreme.

    Formula: b of logit P(right) = a + b logit c, by maximum likelihood.
    Needs: confidence, and a right and a wrong answer.
    Beware: confidences of 0 and 1 count as 1e-6 from there.
    Source: Cox 1958; interval by the cluster-robust sandwich.
    """
    return _cox(view, "slope")


@metric(
    "cox_intercept", better="neither", definition="cox_intercept/1", low=-UNBOUNDED, high=UNBOUNDED, deep=True
)
def cox_intercept(view: View) -> Measurement | None:
    """Calibration in the large on the logit scale: 0 is calibrated, below 0 is overconfident.

    Formula: a of logit P(right) = a + logit c, by maximum likelihood.
    Needs: confidence, and a right and a wrong answer.
    Beware: confidences of 0 and 1 count as 1e-6 from there.
    Source: Cox 1958; interval by the cluster-robust sandwich.
    """
    return _cox(view, "intercept")


def _cox(view: View, which: str) -> Measurement | None:
    confidence, correct, clusters = view.paired()
    if not len(correct) or correct.min() == correct.max():
        return None
    fit = (slope_fit if which == "slope" else offset_fit)(confidence, correct)
    if fit is None:
        return None
    return from_influence(view, fit.value, fit.influence, clusters, low=-math.inf)
