"""``python -m benchmarks.gates [--runs N] [--write]``: how often does each kind of gate fail a build?

Pairs of engines whose truth is known go through the product's own gates many times over: engines that are
equal, that got worse, and that are exactly as bad as a limit allows. ``--write`` puts the tables into
docs/gates.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.pages import DOCS, put
from benchmarks.tables import choice_table
from steelyard.core.gates import Policy, Verdict
from steelyard.formats.policy import parse_policy
from steelyard.formats.report import RowKey
from steelyard.metrics.decisions import Decisions, Names
from steelyard.run.compare import Comparing
from steelyard.run.drift import Drift
from steelyard.run.gates import judge
from steelyard.run.side import Side
from steelyard.stats.evalues import BettingTest
from steelyard.stats.paired import mcnemar_exact

PAGE = DOCS / "gates.md"
Array = np.ndarray[Any, Any]
SIZES = (100, 300, 1000, 3000)
RATE, MOVED, SLICES = 0.8, 0.06, 12
Gate = Callable[[Side, Comparing], Verdict | bool]


def pair_of(rng: np.random.Generator, n: int, drop: float, moved: float, together: bool = True) -> Any:
    """Whether the baseline and the run are right on n cases; apart, they answer different cases."""
    base = rng.random(n) < RATE
    if not together:
        return base, rng.random(n) < RATE - drop
    # Of the answers that move, those lost were right and those gained were wrong.
    lost, won = (moved + drop) / 2 / RATE, (moved - drop) / 2 / (1 - RATE)
    flips = rng.random(n) < np.where(base, lost, won)
    return base, base ^ flips


def side(name: str, correct: Array, rng: np.random.Generator, confidence: Array | None = None) -> Side:
    """A run of one question, its cases in a dozen tags."""
    n = len(correct)
    sure = rng.uniform(0.5, 1.0, n) if confidence is None else confidence
    names = Names(["q"], [], [], [f"t{at:02}" for at in range(SLICES)], [str(at) for at in range(5)], [])
    tags = {"tag_row": np.arange(n), "tag": (np.arange(n) % SLICES).astype(np.int32), "names": names}
    table: Decisions = choice_table(sure, correct.astype(np.float64), np.arange(n), **tags)
    keys = [RowKey(at, None, None) for at in range(n)]
    overall = {"choice_accuracy": float(correct.mean())}
    return Side(name=name, document={"overall": overall}, table=table, keys=keys)


def policy(*rules: Any, **rest: Any) -> Policy:
    return parse_policy({"version": 2, "rules": list(rules)} | rest)


def tolerance(allowed: float, direction: str = "both") -> Gate:
    """The peer's gate: overall accuracy may drift so far."""

    def gate(ours: Side, comparing: Comparing) -> bool:
        drift: Drift = comparing.drift
        return not all(delta.ok for delta in drift.deltas({"choice_accuracy": allowed}, direction))  # type: ignore[arg-type]

    return gate


def by(rules: Policy) -> Gate:
    return lambda ours, comparing: judge(rules, ours, comparing)


def gates() -> dict[str, Gate]:
    """What is compared, by the words of the page."""
    drop = {"metric": "accuracy", "max_drop": 0.0, "when_inconclusive": "pass"}
    return {
        "no tolerance (exact)": tolerance(0.0),
        "`--tolerance choice_accuracy=0.02`": tolerance(0.02),
        "the same with `--direction worse`": tolerance(0.02, "worse"),
        "`--tolerance choice_accuracy=0.05`": tolerance(0.05),
        "`max_drop = 0`, interval, inconclusive passes": by(policy(drop)),
        "`margin = 0.02`, inconclusive passes": by(
            policy({"metric": "accuracy", "margin": 0.02, "when_inconclusive": "pass"})
        ),
        "`margin = 0.02`, inconclusive fails": by(policy({"metric": "accuracy", "margin": 0.02})),
        "`margin = 0.05`, inconclusive fails": by(policy({"metric": "accuracy", "margin": 0.05})),
        "12 slices, `max_drop = 0.05`, point": by(
            policy({"metric": "accuracy", "max_drop": 0.05, "slice": {"tag": "*"}, "evidence": "point"})
        ),
        "12 slices, `max_drop = 0`, interval, inconclusive passes": by(
            policy(drop | {"slice": {"tag": "*"}})
        ),
        'the same, `control = "family"`': by(policy(drop | {"slice": {"tag": "*"}}, control="family")),
        'the same, `control = "fdr"`': by(policy(drop | {"slice": {"tag": "*"}}, control="fdr")),
        "looking at exact p every 100 cases": peeking,
        "`--sequential`": sequential,
        "`--sequential --margin accuracy=0.02`, stopped failing": lambda ours, comparing: sequential(
            ours, comparing, 0.02
        ),
    }


def _moves(ours: Side, comparing: Comparing) -> Array:
    assert ours.table is not None
    assert comparing.theirs.table is not None
    found: Array = ours.table.correct - comparing.theirs.table.correct
    return found


def peeking(ours: Side, comparing: Comparing) -> bool:
    """What not to do: an exact test after every 100 cases, stopping at the first p of .05."""
    moves = _moves(ours, comparing)
    ends = range(100, len(moves) + 1, 100)
    return any(
        mcnemar_exact(int((moves[:end] > 0).sum()), int((moves[:end] < 0).sum())) <= 0.05
        and moves[:end].sum() < 0
        for end in ends
    )


def sequential(ours: Side, comparing: Comparing, margin: float = 0.0) -> bool:
    """Whether evidence of harm ever reaches 20."""
    test = BettingTest(-margin, above=False)
    for move in _moves(ours, comparing).tolist():
        test.add([move])
        if test.wealth >= 20.0:
            return True
    return False


def failing(runs: int, drop: float, chosen: dict[str, Gate], seed: int) -> dict[str, list[float]]:
    """Share of builds each gate fails, by number of cases."""
    found: dict[str, list[float]] = {name: [] for name in chosen}
    for n in SIZES:
        rng = np.random.default_rng([seed, n])
        count = dict.fromkeys(chosen, 0)
        for _ in range(runs):
            base, now = pair_of(rng, n, drop, max(MOVED, drop))
            ours, theirs = side("run", now, rng), side("baseline", base, rng)
            comparing = Comparing(ours, theirs)
            for name, gate in chosen.items():
                said = gate(ours, comparing)
                count[name] += said if isinstance(said, bool) else bool(said.failures)
        for name in chosen:
            found[name].append(count[name] / runs)
    return found


def apart(runs: int, seed: int) -> list[float]:
    """The tolerance gate where the two runs answered different cases."""
    found = []
    for n in SIZES:
        rng = np.random.default_rng([seed, n])
        moved = [
            np.diff([part.mean() for part in pair_of(rng, n, 0.0, 0.0, together=False)])[0]
            for _ in range(runs)
        ]
        found.append(float(np.mean(np.abs(moved) > 0.02 + 1e-9)))
    return found


def absolute(runs: int, seed: int) -> Iterator[tuple[str, list[float]]]:
    """Limits on one run: accuracy 0.8 against limits of 0.78 and 0.8, and the calibration error."""
    rules = {
        "`min = 0.78` where the truth is 0.80, point: fails": ({"min": 0.78, "evidence": "point"}, "fail"),
        "`min = 0.78` where the truth is 0.80, interval: fails": ({"min": 0.78}, "fail"),
        "`min = 0.78` where the truth is 0.80, interval: cannot tell": ({"min": 0.78}, "inconclusive"),
        "`min = 0.80` where the truth is 0.80, interval: passes": ({"min": RATE}, "pass"),
        "`min = 0.80` where the truth is 0.80, interval: fails": ({"min": RATE}, "fail"),
        "`max = 0.05` on ece of a calibrated engine, point: fails": (
            {"metric": "ece", "max": 0.05, "evidence": "point"},
            "fail",
        ),
        "`max = 0.05` on ece of a calibrated engine, interval: fails": (
            {"metric": "ece", "max": 0.05},
            "fail",
        ),
        "`max = 0.05` on ece of a calibrated engine, interval: cannot tell": (
            {"metric": "ece", "max": 0.05},
            "inconclusive",
        ),
        "`max = 0.05` on ece of an engine 0.10 overconfident, interval: passes": (
            {"metric": "ece", "max": 0.05},
            "pass",
        ),
        "`max = 0.05` on ece of an engine 0.10 overconfident, interval: fails": (
            {"metric": "ece", "max": 0.05},
            "fail",
        ),
    }
    for name, (rule, wanted) in rules.items():
        found = []
        for n in SIZES:
            rng = np.random.default_rng([seed, n])
            hits = 0
            for _ in range(runs):
                sure = 0.25 + 0.75 * rng.beta(5, 1.5, n)
                over = 0.1 if "overconfident" in name else 0.0
                right = rng.random(n) < (sure - over if "ece" in name else RATE)
                ours = side("run", right, rng, sure)
                (one,) = judge(policy({"metric": "accuracy"} | rule), ours).findings
                hits += one.outcome == wanted
            found.append(hits / runs)
        yield name, found


def tables(runs: int) -> Iterator[str]:
    """The page's tables as Markdown, a line at a time."""
    head = "| gate | " + " | ".join(f"{n} cases" for n in SIZES) + " |"
    rule = "|---" * (1 + len(SIZES)) + "|"
    chosen = gates()
    few = {name: gate for name, gate in chosen.items() if "equential" in name}
    many = {name: gate for name, gate in chosen.items() if name not in few}
    fewer = max(50, runs // 4)
    for drop, words in (
        (0.0, "Nothing changed: share of builds that fail"),
        (0.02, "Worse by 0.02, exactly the margin: share of builds that fail"),
        (0.03, "Worse by 0.03: share of builds that fail"),
    ):
        yield f"{words} ({runs} pairs of runs, {fewer} where gates look after every case)."
        yield ""
        yield head
        yield rule
        if not drop:
            yield _row("`--tolerance choice_accuracy=0.02`, runs on different cases", apart(runs, 3))
        for name, found in (failing(runs, drop, many, 1) | failing(fewer, drop, few, 2)).items():
            yield _row(name, found)
        yield ""
    yield f"One run held to a limit ({runs} runs)."
    yield ""
    yield head.replace("gate", "limit", 1)
    yield rule
    for name, found in absolute(runs, 4):
        yield _row(name, found)


def _row(name: str, found: list[float]) -> str:
    return f"| {name} | " + " | ".join(f"{share:.3f}" for share in found) + " |"


if __name__ == "__main__":
    put(__doc__, "benchmarks.gates", PAGE, tables)
