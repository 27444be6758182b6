"""``python -m benchmarks.coverage [--runs N] [--write]``: are the intervals and tests what they claim?

Engines whose truth is known are measured many times over. How often intervals hold the truth, how often
a test cries wolf and how often it sees a true change stand beside their nominal values; ``--write`` puts
the tables into docs/statistics.md.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.stats

from benchmarks.pages import DOCS, put
from benchmarks.tables import choice_table
from steelyard.metrics.bakeoff import bake_off
from steelyard.metrics.decisions import Decisions
from steelyard.metrics.measure import measure
from steelyard.metrics.view import Settings
from steelyard.stats.clusters import Clusters, cluster_spread, mean_interval
from steelyard.stats.evalues import losing_e_value
from steelyard.stats.multiplicity import benjamini_hochberg
from steelyard.stats.paired import mcnemar_exact, mcnemar_mid_p, sign_flip, tango_interval
from steelyard.stats.power import paired_cases
from steelyard.stats.ranking import (
    area_under_risk_coverage,
    augrc,
    auroc,
    best_aurc,
)

Array = np.ndarray[Any, Any]
PAGE = DOCS / "statistics.md"
OPTIONS = 5
SHARES = np.array([0.4, 0.25, 0.15, 0.12, 0.08])
TOGETHER = 0.5
"""Correlation, on the normal scale, of the answers of one case."""
INTERVALS = (
    "choice_accuracy",
    "macro_f1",
    "confidence_gap",
    "brier",
    "brier_multiclass",
    "log_loss",
    "brier_skill_uniform",
    "auroc_failure",
    "aurc",
    "e_aurc",
    "augrc",
    "selective_accuracy@50",
    "selective_accuracy@80",
    "ece_debiased_rms",
    "cox_slope",
    "cox_intercept",
)
TESTS = ("ece", "ece_adaptive", "ece_debiased_rms", "ecce_mad", "ecce_range", "spiegelhalter_z")
SIMULATED = ("ece_sweep", "smece", "corp_miscalibration")


def chance_of(confidence: Array, bend: float) -> Array:
    """True chance of being right; a bend of 1 is calibrated, above it overconfident."""
    return confidence**bend


def draw(rng: np.random.Generator, cases: int, per_case: int, bend: float) -> Decisions:
    """One data set: confidences, and answers right with their true chance, alike within a case."""
    n = cases * per_case
    case = np.repeat(np.arange(cases), per_case)
    confidence = 0.25 + 0.75 * rng.beta(5, 1.5, n)
    shared = rng.standard_normal(cases)[case] * math.sqrt(TOGETHER)
    own = shared + rng.standard_normal(n) * math.sqrt(1 - TOGETHER)
    correct = (scipy.stats.norm.cdf(own) < chance_of(confidence, bend)).astype(np.float64)
    gold = rng.choice(OPTIONS, n, p=SHARES).astype(np.float64)
    pred = np.where(correct > 0, gold, (gold + rng.integers(1, OPTIONS, n)) % OPTIONS)
    return choice_table(confidence, correct, case, OPTIONS, gold=gold, pred=pred)


def truths(bend: float, n: int) -> dict[str, float]:
    """True values of the metrics, from a fine grid of confidences in place of a sample."""
    grid = (np.arange(400_000) + 0.5) / 400_000
    confidence = (0.25 + 0.75 * scipy.stats.beta.ppf(grid, 5, 1.5))[::-1]
    chance = chance_of(confidence, bend)
    accepted, hits = np.arange(1.0, len(grid) + 1), np.cumsum(chance)
    rate = float(chance.mean())
    rest = (1.0 - confidence) / (OPTIONS - 1)
    right = (1 - confidence) ** 2 + (OPTIONS - 1) * rest**2
    wrong = confidence**2 + (1 - rest) ** 2 + (OPTIONS - 2) * rest**2
    brier = float((chance * right + (1 - chance) * wrong).mean())
    risk = area_under_risk_coverage(accepted, hits)
    errors = 1.0 - rate
    gap = chance - confidence
    found = {
        "choice_accuracy": rate,
        "confidence_gap": float((confidence - chance).mean()),
        "brier": float((chance * (1 - confidence) ** 2 + (1 - chance) * confidence**2).mean()),
        "brier_multiclass": brier,
        "log_loss": float(-(chance * np.log(confidence) + (1 - chance) * np.log(rest)).mean()),
        "brier_skill_uniform": 1 - brier / (1 - 1 / OPTIONS),
        "auroc_failure": auroc(accepted, hits) or 0.0,
        "aurc": risk,
        "e_aurc": risk - best_aurc(n, round(n * errors)),
        "augrc": augrc(accepted, hits),
        "selective_accuracy@50": float(chance[: len(grid) // 2].mean()),
        "selective_accuracy@80": float(chance[: 4 * len(grid) // 5].mean()),
        "ece_debiased_rms": math.sqrt(
            float((np.array([part.mean() for part in np.array_split(gap, 15)]) ** 2).mean())
        ),
        "cox_intercept": _cox(confidence, chance, free=False),
        "cox_slope": _cox(confidence, chance, free=True),
    }
    return found | {"macro_f1": _macro_f1(rate)}


def _cox(confidence: Array, chance: Array, *, free: bool) -> float:
    x = np.log(confidence / (1 - confidence))
    a, b = 0.0, 1.0
    for _ in range(60):
        p = 1 / (1 + np.exp(-(a + b * x)))
        w, rest = p * (1 - p), chance - p
        if free:
            s0, s1, s2 = w.mean(), (w * x).mean(), (w * x * x).mean()
            g0, g1, square = rest.mean(), (rest * x).mean(), s0 * s2 - s1 * s1
            a, b = a + (s2 * g0 - s1 * g1) / square, b + (s0 * g1 - s1 * g0) / square
        else:
            a += rest.mean() / w.mean()
    return float(b if free else a)


def _macro_f1(rate: float) -> float:
    """Right labels keep their share; wrong ones go evenly to the other options."""
    predicted = rate * SHARES + (1 - rate) * (1 - SHARES) / (OPTIONS - 1)
    return float((2 * rate * SHARES / (SHARES + predicted)).mean())


def interval_coverage(runs: int, seed: int = 0) -> dict[tuple[str, int, int], float]:
    """Share of runs whose interval holds the truth, by metric, cases and answers a case."""
    inside: dict[tuple[str, int, int], int] = defaultdict(int)
    for cases, per_case in ((100, 1), (100, 5), (400, 1), (400, 5)):
        rng = np.random.default_rng([seed, cases, per_case])
        truth = truths(1.4, cases * per_case)
        for _ in range(runs):
            found = measure(draw(rng, cases, per_case, 1.4), Settings(), (), INTERVALS).overall
            for name in INTERVALS:
                low, high = found[name].interval or (math.nan, math.nan)
                inside[name, cases, per_case] += low <= truth[name] <= high
    return {key: n / runs for key, n in inside.items()}


def alarm_rates(
    names: tuple[str, ...], runs: int, bend: float, seed: int = 1
) -> dict[tuple[str, int, int], float]:
    """Share of runs in which a calibration test rejects at 5 %, by metric, cases and answers a case."""
    alarms: dict[tuple[str, int, int], int] = defaultdict(int)
    for cases, per_case in ((100, 1), (100, 5), (400, 1), (400, 5)):
        rng = np.random.default_rng([seed, cases, per_case])
        for _ in range(runs):
            found = measure(draw(rng, cases, per_case, bend), Settings(), (), names).overall
            for name in names:
                one = found[name]
                p = one.null.p if one.null else (one.details or {})["p"]
                alarms[name, cases, per_case] += p <= 0.05
    return {key: n / runs for key, n in alarms.items()}


def paired_rates(runs: int, seed: int = 2) -> Iterator[tuple[str, str, float]]:
    """Size and power of the paired tests: what, its nominal value, and what was found."""
    rng = np.random.default_rng(seed)
    n = paired_cases(0.03, 0.1)
    for drop, nominal in ((0.0, "0.05"), (0.03, "0.80")):
        losses, gains, _ = rng.multinomial(n, [(0.1 + drop) / 2, (0.1 - drop) / 2, 0.9], runs).T.tolist()
        pairs = list(zip(gains, losses, strict=True))
        what = "false alarms" if not drop else "power to see a drop of 0.03"
        for name, test in (("McNemar mid-p", mcnemar_mid_p), ("McNemar exact", mcnemar_exact)):
            rejected = float(np.mean([test(*pair) <= 0.05 for pair in pairs]))
            yield f"{name}, {n} cases: {what}", nominal, rejected
        held = [low <= -drop <= high for low, high in (tango_interval(*pair, n) for pair in pairs)]
        yield f"Tango interval, true drop {drop:g}: coverage", "0.95", float(np.mean(held))
    yield from _clustered(runs, rng)
    what = "one-sided e-value, looked at after every case: false alarms"
    yield what, "at most 0.05", _peeking(min(runs, 400), rng)
    what = "Benjamini-Hochberg, 20 slices of 40 worse: false discoveries"
    yield what, "at most 0.05", _discoveries(runs, rng)


def _clustered(runs: int, rng: np.random.Generator) -> Iterator[tuple[str, str, float]]:
    """100 cases of 5 answers; what one engine gains over the other hangs together within a case."""
    naive, flipped, held = 0, 0, 0
    for _ in range(runs):
        leaning = rng.standard_normal((100, 1)) + 0.5 * rng.standard_normal((100, 5))
        delta = np.sign(leaning) * (rng.random((100, 5)) < 0.6)
        gains, losses = int((delta > 0).sum()), int((delta < 0).sum())
        naive += mcnemar_mid_p(gains, losses) <= 0.05
        flipped += sign_flip(delta.sum(axis=1), resamples=999) <= 0.05
        spread = cluster_spread(delta.ravel(), Clusters(np.repeat(np.arange(100), 5)))
        low, high = mean_interval(spread) or (0.0, 0.0)
        held += low <= 0.0 <= high
    yield "McNemar mid-p on 5 answers a case, as if independent: false alarms", "0.05", naive / runs
    yield "sign flips by case on the same: false alarms", "0.05", flipped / runs
    yield "cluster-robust interval of the difference: coverage", "0.95", held / runs


def _peeking(runs: int, rng: np.random.Generator) -> float:
    alarms = 0
    for _ in range(runs):
        gains = np.cumsum(rng.integers(2, size=200)).tolist()
        alarms += any(losing_e_value(g, m - g) >= 20 for m, g in enumerate(gains, 1))
    return alarms / runs


def _discoveries(runs: int, rng: np.random.Generator) -> float:
    shares = []
    for _ in range(runs):
        z = rng.standard_normal(40) + np.repeat([0.0, 3.0], 20)
        q = benjamini_hochberg(2 * scipy.stats.norm.sf(np.abs(z)))
        shares.append(np.count_nonzero(q[:20] <= 0.05) / max(1, np.count_nonzero(q <= 0.05)))
    return float(np.mean(shares))


def bake_off_coverage(runs: int, seed: int = 3) -> Iterator[tuple[str, str, float]]:
    """Coverage of the paired differences of the bake-off: an honest confidence against a noisy one."""
    inside: dict[tuple[str, int], int] = defaultdict(int)
    truth = _differences(_noisy(np.random.default_rng(seed), 400_000, 1))
    for per_case in (1, 5):
        rng = np.random.default_rng([seed, per_case])
        for _ in range(runs):
            for name, (_, interval) in _differences(_noisy(rng, 100, per_case)).items():
                low, high = interval or (math.nan, math.nan)
                inside[name, per_case] += low <= truth[name][0] <= high
    for (name, per_case), n in inside.items():
        yield f"difference of {name}, 100 cases of {per_case}: coverage", "0.95", n / runs


def _noisy(rng: np.random.Generator, cases: int, per_case: int) -> Decisions:
    table = draw(rng, cases, per_case, 1.4)
    noise = rng.normal(0, 0.1, len(table.confidence))
    table.stated = np.clip(table.confidence + noise, 0.0, 1.0)
    return table


def _differences(table: Decisions) -> dict[str, tuple[float, Any]]:
    stated = next(one for one in bake_off(table).overall if one.measure == "stated")
    scores = {"auroc": stated.auroc, "aurc": stated.aurc, "ece": stated.ece}
    return {
        name: (score.difference or 0.0, score.difference_interval) for name, score in scores.items() if score
    }


def tables(runs: int) -> Iterator[str]:
    """The Markdown between the markers of docs/statistics.md."""
    many = 4 * runs
    error = 100 * math.sqrt(0.05 * 0.95 / many)
    yield f"Coverage of 95 % intervals over {many:,} data sets of an overconfident engine whose answers to"
    yield f"one case correlate by {TOGETHER:g} on the normal scale (standard error about {error:.1f} points):"
    yield ""
    yield from _grid("metric", interval_coverage(many))
    few = max(100, runs // 2)
    for bend, words in (
        (1.0, "an engine that is calibrated: false alarms, nominally 0.05"),
        (1.4, "an engine whose accuracy is the 1.4th power of its confidence: power"),
    ):
        yield ""
        yield f"Share of calibration tests that reject at 5 %, of {words}"
        yield f"({few} data sets where the null is simulated):"
        yield ""
        yield from _grid("test", alarm_rates(TESTS, runs, bend) | alarm_rates(SIMULATED, few, bend))
    yield ""
    yield "| comparison of two engines | nominal | found |"
    yield "|---|---|---|"
    for what, nominal, found in (*paired_rates(runs), *bake_off_coverage(runs)):
        yield f"| {what} | {nominal} | {found:.3f} |"


def _grid(head: str, found: dict[tuple[str, int, int], float]) -> Iterator[str]:
    columns = sorted({key[1:] for key in found})
    yield f"| {head} | " + " | ".join(f"{cases} cases x {per}" for cases, per in columns) + " |"
    yield "|---" * (1 + len(columns)) + "|"
    for name in dict.fromkeys(key[0] for key in found):
        yield f"| `{name}` | " + " | ".join(f"{found[name, *column]:.3f}" for column in columns) + " |"


if __name__ == "__main__":
    put(__doc__, "benchmarks.coverage", PAGE, tables)
