"""Label audit and planning."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from steelyard import Dataset, evaluate
from steelyard.stats.minhash import candidate_pairs, shingle_hashes, signatures, similarity
from steelyard.studies.audit import audit
from steelyard.studies.planning import Aims, plan, read_pilot
from tests.conftest import FLAG, TEAM, Ran, make_rows


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def row(state: str, **labels: Any) -> dict[str, Any]:
    questions = {"team": TEAM, "flag": FLAG}
    return {"state": state, "questions": {q: questions[q] for q in labels}, "expected": labels}


TEXT = "The invoice of last month was charged twice to my card, please send the money back soon."


def test_minhash_finds_what_is_nearly_the_same() -> None:
    rng = np.random.default_rng(1)
    words = [f"word{i}" for i in range(400)]
    texts = [" ".join(rng.choice(words, 25)) for _ in range(300)]
    texts += [text + " again" for text in texts[:50]]
    pairs = {tuple(pair) for pair in candidate_pairs(signatures(texts)).tolist()}
    assert sum((i, 300 + i) in pairs for i in range(50)) >= 48
    assert len(pairs) < 400
    assert similarity(texts[0], texts[300]) > 0.8
    assert similarity(texts[0], texts[1]) < 0.2
    assert np.array_equal(signatures(texts), signatures(texts))


def test_signatures_estimate_similarity() -> None:
    one, other = TEXT, TEXT.replace("twice", "three times")
    alike = np.mean(
        [
            np.mean(signatures([one, other], seed)[0] == signatures([one, other], seed)[1])
            for seed in range(40)
        ]
    )
    assert alike == pytest.approx(similarity(one, other), abs=0.04)


def test_shingles_of_short_texts() -> None:
    hashes, bounds = shingle_hashes(["", "ab", "abcdef"])
    assert bounds.tolist() == [0, 1, 2, 4]
    assert len(hashes) == 4
    assert similarity("ab", "ab") == 1.0
    assert similarity("ab", "cd") == 0.0


def test_many_copies_stay_in_proportion() -> None:
    pairs = candidate_pairs(signatures(["the same text"] * 500))
    assert len(pairs) == 499


def test_conflicts_and_near_duplicates() -> None:
    rows = [
        row(TEXT, team="billing", flag=True),
        row("  " + TEXT.upper(), team="support", flag=True),
        row(TEXT + " Thanks!", team="billing"),
        row("Something else entirely, about a login that fails.", team="support"),
    ]
    found = audit(Dataset.from_rows(rows))
    (conflict,) = found.conflicts
    assert conflict.question == "team"
    assert {label: len(places) for label, places in conflict.labels.items()} == {
        '"billing"': 1,
        '"support"': 1,
    }
    assert len(found.near_duplicates) == 3
    assert not found.near_duplicates[0].same_labels
    together = audit(Dataset.from_rows([r | {"group": 1} for r in rows]))
    assert together.near_duplicates == []
    split = audit(Dataset.from_rows(rows[:1]), against=Dataset.from_rows(rows[2:], "other"))
    assert [pair.second for pair in split.near_duplicates] == ["other: row 0"] or len(
        split.near_duplicates
    ) == 1


def test_balance() -> None:
    rows = [row(str(i), team="billing" if i else "support", flag=i % 2 == 0) for i in range(10)]
    found = {one.question: one for one in audit(Dataset.from_rows(rows)).balance}
    team = found["team"]
    assert (team.n, team.labels, team.majority, team.majority_share) == (10, 2, "billing", 0.9)
    assert team.effective == pytest.approx(100 / 82)
    assert team.rare == ["support"]
    assert team.never == ["sales"]
    assert found["flag"].effective == pytest.approx(2.0)


def test_an_audit_reads_runs(tmp_path: Path, steelyard: Callable[..., Ran]) -> None:
    data = write(tmp_path / "d.jsonl", make_rows(60))
    for seed in (1, 2):
        steelyard(
            "run", data, "-e", f"scripted,accuracy=0.9,seed={seed}", "--out", tmp_path / f"r{seed}", "--quiet"
        )
    # A label both runs contradict: plant one by moving every label of a row.
    found = audit(Dataset.from_jsonl(data), [tmp_path / "r1", tmp_path / "r2"])
    assert found.runs == 2
    ranks = [(one.runs / one.of, one.confidence) for one in found.disagreements]
    assert ranks == sorted(ranks, reverse=True)
    assert all(one.of == 2 and one.answer != one.expected for one in found.disagreements)
    ran = steelyard("audit", data, "--run", tmp_path / "r1", "--json", tmp_path / "a.json", "--limit", 2)
    assert ran.code == 0
    assert "labels the runs contradict" in ran.out
    assert all(len(line) <= 80 for line in ran.out.splitlines())
    assert json.loads((tmp_path / "a.json").read_text())["rows"] == 60


def test_an_audit_of_another_dataset_is_refused(tmp_path: Path, steelyard: Callable[..., Ran]) -> None:
    data = write(tmp_path / "d.jsonl", make_rows(6))
    steelyard("run", data, "-e", "scripted", "--out", tmp_path / "r", "--quiet")
    other = write(tmp_path / "e.jsonl", make_rows(7))
    ran = steelyard("audit", other, "--run", tmp_path / "r")
    assert ran.code == 2
    assert "Traceback" not in ran.err


def test_audit_output_is_inert(tmp_path: Path, steelyard: Callable[..., Ran]) -> None:
    hostile = "\x1b[31m<script>\u202e evil text that is long enough to be hashed"
    data = write(tmp_path / "d.jsonl", [row(hostile, team="billing"), row(hostile, team="support")])
    ran = steelyard("audit", data)
    assert ran.code == 0
    assert "equal states with different labels: 1" in ran.out
    assert all(line.isprintable() for line in ran.out.splitlines())


def test_plans_are_the_published_sizes() -> None:
    paired, apart = plan(Aims(drop=0.02))
    assert paired.cases == 1960
    assert "assumed" in paired.assuming
    assert plan(Aims(drop=0.02, rate=0.85))[1].cases == 5274
    assert plan(Aims(drop=0.02, deff=2.0))[0].cases == pytest.approx(3920, abs=2)
    assert apart.cases is not None
    assert plan(Aims(risk=0.05, true_risk=0.0))[0].cases == 59
    assert plan(Aims(risk=0.05, true_risk=0.0, coverage=0.5))[0].cases == 118
    assert plan(Aims(risk=0.05, true_risk=0.05))[0].cases is None
    assert plan(Aims(ece=0.05))[0].cases is None
    assert "0.0280" in plan(Aims(cases=1000))[0].aim
    assert "none" in plan(Aims(cases=2))[0].aim
    assert plan(Aims(drop=0.5))[0].cases is None


def test_a_plan_from_pilots(tmp_path: Path, steelyard: Callable[..., Ran]) -> None:
    data = write(tmp_path / "d.jsonl", make_rows(90))
    for seed in (1, 2):
        steelyard(
            "run", data, "-e", f"scripted,accuracy=0.8,seed={seed}", "--out", tmp_path / f"r{seed}", "--quiet"
        )
    out = tmp_path / "plan.json"
    ran = steelyard(
        "plan",
        "--drop",
        0.05,
        "--cases",
        90,
        "--risk",
        0.3,
        "--coverage",
        0.5,
        "--ece",
        0.03,
        "--pilot",
        tmp_path / "r1",
        "--pilot",
        tmp_path / "r2",
        "--json",
        out,
    )
    assert ran.code == 0
    assert "(measured)" in ran.out
    document = json.loads(out.read_text())
    pilot = document["pilot"]
    assert pilot["cases"] == 90
    assert pilot["answers_per_case"] == 2.0
    assert 0.1 < pilot["discordance"] < 0.6
    quiet = next(need for need in document["needs"] if "calibration" in need["aim"])
    assert quiet["cases"] == pytest.approx(90 * (pilot["ece_q95"] / 0.03) ** 2, abs=1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name an aim"),
        (["--drop", "0"], "--drop"),
        (["--drop", "nan"], "--drop"),
        (["--drop", "0.1", "--data", "x.jsonl"], "--data goes with --pilot"),
        (["--cases", "1"], "--cases"),
    ],
)
def test_bad_plans(arguments: list[str], said: str, steelyard: Callable[..., Ran]) -> None:
    ran = steelyard("plan", *arguments)
    assert ran.code == 2
    assert said in ran.err


def test_metrics_on_the_console(steelyard: Callable[..., Ran]) -> None:
    assert "choice_accuracy" in steelyard("metrics").out
    assert "source: Naeini" in steelyard("metrics", "ece").out
    assert "confidence_gap: neither way is better, -1 to 1" in steelyard("metrics", "confidence_gap").out
    ran = steelyard("metrics", "eec")
    assert ran.code == 2
    assert 'did you mean "ece"?' in ran.err
    assert steelyard("metrics", "--markdown").out.startswith("| name |")


def test_candidates_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steelyard.studies.audit.MOST_PAIRS", 5)
    rows = [row(TEXT + f" {i}", team="billing") for i in range(8)]
    found = audit(Dataset.from_rows(rows))
    assert len(found.near_duplicates) + found.near_unchecked >= 20
    assert len(found.near_duplicates) <= 5


def test_an_audit_of_rows_without_near_duplicates() -> None:
    found = audit(Dataset.from_rows([row("short", team="billing")]))
    assert (found.near_duplicates, found.near_unchecked) == ([], 0)


def test_levels_far_off_are_contradicted_too(tmp_path: Path) -> None:
    question = {"type": "score", "instructions": "?", "criteria": ["low", "mid", "high"]}
    rows = [{"state": str(i), "questions": {"q": question}, "expected": {"q": 0}} for i in range(3)]
    data = Dataset.from_jsonl(write(tmp_path / "d.jsonl", rows))

    def predict(state: str, asked: Any) -> Any:
        shares = {"0": 0.1, "1": 0.1, "2": 0.8} if state == "1" else {"0": 0.8, "1": 0.1, "2": 0.1}
        return {"q": {"score": 1.7 if state == "1" else 0.3, "probabilities": shares}}

    evaluate(predict, data, out=tmp_path / "run")
    (one,) = audit(data, [tmp_path / "run"]).disagreements
    assert (one.row, one.expected, one.answer, one.runs) == (1, 0, 2, 1)
    assert one.confidence == pytest.approx(0.7)


def test_pilots_of_unequal_length_and_without_a_difference(
    tmp_path: Path, steelyard: Callable[..., Ran]
) -> None:
    data = write(tmp_path / "d.jsonl", make_rows(40))
    run = ("run", data, "-e", "scripted,accuracy=0.8,seed=1", "--quiet", "--out")
    steelyard(*run, tmp_path / "whole")
    steelyard(*run, tmp_path / "part", "--limit", 25)
    pilots = ("--pilot", tmp_path / "whole", "--pilot", tmp_path / "part")
    ran = steelyard("plan", "--drop", 0.05, *pilots)
    assert ran.code == 0
    assert "no number of cases" in ran.out
    assert "discordance 0.0000 (measured)" in ran.out
    assert read_pilot([tmp_path / "whole", tmp_path / "part"], Dataset.from_jsonl(data)).cases == 25
