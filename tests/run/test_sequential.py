"""A gate that looks after every case and stops as soon as it knows."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from steelyard import (
    Dataset,
    IncomparableError,
    PolicyError,
    RunOptions,
    Sequential,
    compare,
    evaluate,
    rescore_run,
)
from steelyard.errors import ReportError
from steelyard.metrics.view import Settings
from steelyard.run.side import document_side, side_of
from steelyard.stats.evalues import BettingTest, losing_e_value
from tests.conftest import FLAG, LEVEL, TEAM, make_rows

QUESTIONS = {"team": TEAM, "level": LEVEL, "flag": FLAG}


def rows(n: int, groups: int = 0) -> list[dict[str, Any]]:
    found = make_rows(n, QUESTIONS)
    return [row | {"group": f"g{at % groups}"} for at, row in enumerate(found)] if groups else found


def data(n: int = 600, groups: int = 0) -> Dataset:
    return Dataset.from_rows(rows(n, groups), "data")


def engine(accuracy: float, seed: int = 1) -> str:
    return f"scripted,accuracy={accuracy},seed={seed}"


DATA = data()
BASE = evaluate(engine(0.85), DATA)


def watched(accuracy: float, dataset: Dataset = DATA, base: Any = BASE, **how: Any) -> tuple[Any, Sequential]:
    gate = {name: how.pop(name) for name in ("margin", "seed", "rows") if name in how}
    watch = Sequential(dataset, side_of(base), **gate)
    report = evaluate(engine(accuracy), dataset, watch=watch, **how)
    return report, watch


@pytest.mark.parametrize("how", [{}, {"batch_size": 8}, {"concurrency": 4}])
def test_a_bad_engine_is_stopped_early(how: dict[str, int]) -> None:
    # With calls in flight it takes an engine that takes time to be overtaken by the gate.
    latency = 0.002 if "concurrency" in how else 0.0
    watch = Sequential(DATA, side_of(BASE), margin=0.02)
    spec = f"{engine(0.5)},latency={latency}"
    report = evaluate(spec, DATA, options=RunOptions(**how), watch=watch)
    (found,) = watch.verdict(False).findings
    assert (found.outcome, found.fails) == ("fail", True)
    assert "surely worse than the baseline by more than 0.02" in found.reason
    left = report.counts["rows_not_asked"]
    assert left > 300
    assert report.counts["rows"] == 600
    assert report.counts["questions"] == report.counts["scored"] == 3 * (600 - left)
    assert report.counts["errored"] == report.counts["not_applicable"] == 0
    assert "errored" not in report.config
    assert len(list(report.cases())) == 3 * (600 - left)
    assert report.measurements.overall["choice_accuracy"].n == 600 - left
    assert report.config["timing"]["chunks"] <= 600 - left
    paired = compare(report, BASE).paired
    assert paired.joining.scored == 3 * (600 - left)


def test_a_good_engine_is_passed_early_and_an_equal_one_at_the_end() -> None:
    report, watch = watched(0.99, margin=0.1)
    assert watch.decided == "pass"
    assert report.counts["rows_not_asked"] > 0
    assert watch.verdict(True).exit_code == 1
    report, watch = watched(0.85, margin=0.002)
    (found,) = watch.verdict(False).findings
    assert (found.outcome, found.fails) == ("inconclusive", True)
    assert "rows_not_asked" not in report.counts
    assert (found.n, found.cases) == (1200, 600)
    report, watch = watched(0.85)
    (found,) = watch.verdict(False).findings
    assert (found.outcome, found.fails) == ("inconclusive", False)


def test_the_order_is_random_and_the_same_for_a_seed() -> None:
    one, two, other = (Sequential(DATA, side_of(BASE), seed=seed) for seed in (0, 0, 1))
    order = one.order(range(600))
    assert order == two.order(range(600))
    assert order != other.order(range(600))
    assert sorted(order) == list(range(600))
    assert order != sorted(order)
    # Rows left to ask after a stop keep their order.
    assert one.order(order[400:][::-1]) == order[400:]


def test_groups_are_asked_and_judged_together() -> None:
    dataset = data(600, groups=200)
    base = evaluate(engine(0.85), dataset)
    watch = Sequential(dataset, side_of(base))
    order = watch.order(range(600))
    groups = [row % 200 for row in order]
    assert all(len(set(groups[at : at + 3])) == 1 for at in range(0, 600, 3))
    _, watch = watched(0.4, dataset, base)
    (found,) = watch.verdict(False).findings
    assert found.outcome == "fail"
    assert found.n == 6 * found.cases


def test_a_stopped_run_can_be_taken_up_and_finished(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows(600)), encoding="utf-8")
    dataset = Dataset.from_jsonl(path)
    base = evaluate(engine(0.85), dataset)
    report, watch = watched(0.5, dataset, base, out=tmp_path / "run")
    stopped = report.counts["rows_not_asked"]
    with pytest.raises(ReportError, match=f"{stopped} of 600 rows have no reply yet"):
        rescore_run(tmp_path / "run", dataset, Settings())
    again, second = watched(0.5, dataset, base, out=tmp_path / "run")
    assert again.counts["rows_not_asked"] == stopped
    assert second.verdict(False) == watch.verdict(False)
    whole = evaluate(engine(0.5), dataset, out=tmp_path / "run")
    assert "rows_not_asked" not in whole.counts
    assert whole.overall["choice_accuracy"] == evaluate(engine(0.5), dataset).overall["choice_accuracy"]


def test_limit_and_unlabelled_rows() -> None:
    found = rows(60)
    found[3]["expected"] = {}
    found[4]["expected"] = {"level": 1}
    dataset = Dataset.from_rows(found, "data")
    base = evaluate(engine(0.9), dataset)
    report, watch = watched(0.9, dataset, base, options=RunOptions(limit=30), rows=30, margin=0.001)
    (finding,) = watch.verdict(False).findings
    assert finding.cases == 28
    assert report.counts["rows"] == 30


def test_errored_answers_do_not_bet() -> None:
    watch = Sequential(DATA, side_of(BASE), margin=0.5)
    report = evaluate(
        "scripted,accuracy=0.85,seed=1,fail_every=3",
        DATA,
        options=RunOptions(on_error="skip"),
        watch=watch,
    )
    (first, second) = watch.verdict(bool(report.config.get("errored"))).findings
    assert first.cases <= 400
    assert (second.rule, second.fails) == ("errors", True)


def test_what_a_sequential_gate_needs() -> None:
    with pytest.raises(PolicyError, match="margin is 1"):
        Sequential(DATA, side_of(BASE), margin=1.0)
    with pytest.raises(IncomparableError, match="dataset_sha256"):
        Sequential(data(10), side_of(BASE))
    with pytest.raises(IncomparableError, match="holds no cases"):
        Sequential(DATA, document_side(BASE.to_json(cases=False), "b"))
    bare = BASE.to_json()
    bare["cases"] = [{key: case[key] for key in ("qid", "expected", "answer")} for case in bare["cases"]]
    with pytest.raises(IncomparableError, match="do not say which row they are"):
        Sequential(DATA, document_side(bare, "b"))
    levels = Dataset.from_rows(make_rows(9, {"level": LEVEL}), "data")
    with pytest.raises(IncomparableError, match="no right or wrong answer"):
        Sequential(levels, side_of(evaluate(engine(0.5), levels)))


def test_a_baseline_from_a_file_pairs_by_row(tmp_path: Path) -> None:
    BASE.write_json(tmp_path / "base.json")
    document = json.loads((tmp_path / "base.json").read_text(encoding="utf-8"))
    live, saved = Sequential(DATA, side_of(BASE)), Sequential(DATA, document_side(document, "b"))
    assert np.array_equal(live._expected, saved._expected, equal_nan=True)


def test_nothing_seen_is_missing() -> None:
    (found,) = Sequential(DATA, side_of(BASE)).verdict(False).findings
    assert (found.outcome, found.fails) == ("missing", True)


def test_threads_end_when_the_gate_has_seen_enough() -> None:
    before = threading.active_count()
    watched(0.3, options=RunOptions(concurrency=8))
    assert threading.active_count() <= before + 8


@pytest.mark.parametrize("boundary", [0.0, -0.05, 0.3])
@pytest.mark.parametrize("above", [True, False])
def test_the_wealth_is_a_fair_game_at_the_boundary(boundary: float, above: bool) -> None:
    """By enumeration of every sequence of differences whose mean is the boundary."""
    steps = {-1.0: 0.3 - boundary / 2, 0.0: 0.4, 1.0: 0.3 + boundary / 2}
    length, total = 5, 0.0
    for code in range(3**length):
        moves = [list(steps)[code // 3**at % 3] for at in range(length)]
        test = BettingTest(boundary, above=above)
        test.add(moves)
        total += float(np.prod([steps[move] for move in moves])) * test.wealth
    assert total == pytest.approx(1.0)


def test_wealth_grows_as_fast_as_the_uniform_mixture() -> None:
    rng = np.random.default_rng(2)
    moves = np.where(rng.random(400) < 0.7, -1.0, 1.0)
    test = BettingTest(0.0, above=False)
    test.add(moves)
    known = losing_e_value(int((moves > 0).sum()), int((moves < 0).sum()))
    assert np.log(test.wealth) > 0.9 * np.log(known)


def test_false_alarms_over_all_looks_together() -> None:
    rng = np.random.default_rng(4)
    alarms = 0
    for _ in range(200):
        test = BettingTest(0.0, above=False)
        for move in np.where(rng.random(400) < 0.1, rng.choice([-1.0, 1.0], 400), 0.0):
            test.add([move])
            if test.wealth >= 20:
                alarms += 1
                break
    assert alarms <= 17
