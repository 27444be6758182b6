"""Label audit: what in a labelled dataset is probably wrong, or not what it seems."""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from steelyard.core.findings import Balance, Conflict, Disagreement, NearDuplicate
from steelyard.formats.dataset import Dataset
from steelyard.formats.jsontext import dumps, one_line
from steelyard.metrics.confusable import Confusable, OptionUse, confusable_options, option_use
from steelyard.metrics.decisions import SCORED, Decisions
from steelyard.metrics.derived import column
from steelyard.run.saved import read_saved_run
from steelyard.stats.minhash import candidate_pairs, signatures, similarity

EXCERPT = 160
RARE = 5
MOST_PAIRS = 50_000


class Audit(msgspec.Struct, frozen=True):
    """Everything an audit found, the worst of each kind first."""

    dataset: str
    rows: int
    runs: int
    disagreements: list[Disagreement]
    conflicts: list[Conflict]
    near_duplicates: list[NearDuplicate]
    near_unchecked: int
    """Candidates left out, the least alike, where there were more than 50,000."""
    balance: list[Balance]
    options: list[OptionUse]
    confusable: list[Confusable]


def audit(
    dataset: Dataset,
    runs: Sequence[str | Path] = (),
    *,
    against: Dataset | None = None,
    near: float = 0.8,
    seed: int = 0,
) -> Audit:
    """Look for labels and rows that would mislead an evaluation.

    Parameters
    ----------
    dataset : Dataset
    runs : sequence of paths
        Run folders made on it; without any, only the data itself is looked at.
    against : Dataset, optional
        Another split: near-duplicates of its states are looked for, and none inside `dataset`.
    near : float
        Similarity, in (0, 1], from which on two states count as nearly the same.
    seed : int
        Of the hashing that finds them.

    Returns
    -------
    Audit

    Raises
    ------
    IncomparableError, ReportError
        A run is of other data, unfinished or damaged.
    """
    tables = [read_saved_run(folder, dataset).table(dataset) for folder in runs]
    states = [_text(dataset.read(row)[0].state) for row in range(len(dataset))]
    pairs, unchecked = _near(dataset, states, against, near, seed)
    uses = [option_use(table) for table in tables]
    return Audit(
        dataset.name,
        len(dataset),
        len(tables),
        _disagreements(dataset, states, tables),
        _conflicts(dataset, states),
        pairs,
        unchecked,
        _balance(dataset),
        [use for use in _pooled(uses) if not use.chosen],
        [pair for table in tables for pair in confusable_options(table)],
    )


def _text(state: Any) -> str:
    return state if isinstance(state, str) else dumps(state).decode()


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _disagreements(dataset: Dataset, states: list[str], tables: Sequence[Decisions]) -> list[Disagreement]:
    votes: dict[tuple[int, str], list[tuple[Any, float]]] = defaultdict(list)
    asked: Counter[tuple[int, str]] = Counter()
    for table in tables:
        gap, right = _doubt(table), np.where(table.kind == 1, table.level_correct, table.correct)
        for at in np.flatnonzero((table.status == SCORED) & ~np.isnan(right)).tolist():
            key = int(table.row[at]), table.names.qids[table.qid[at]]
            asked[key] += 1
            if not right[at]:
                votes[key].append((_answer(table, at), float(gap[at])))
    found = []
    for (row, question), given in votes.items():
        answer, runs = Counter(answer for answer, _ in given).most_common(1)[0]
        doubts = [doubt for other, doubt in given if other == answer]
        expected = dataset.read(row)[0].expected[question]
        found.append(
            Disagreement(
                dataset.place(row),
                row,
                question,
                one_line(states[row], EXCERPT),
                expected,
                answer,
                runs,
                asked[row, question],
                sum(doubts) / len(doubts),
            )
        )
    return sorted(found, key=lambda one: (-one.runs / one.of, -one.confidence, one.row, one.question))


def _answer(table: Decisions, at: int) -> Any:
    """What a run said: an option, the likeliest level, or yes or no."""
    if table.kind[at] == 0:
        return table.names.labels[table.pred_label[at]]
    return int(column(table, "likeliest")[at]) if table.kind[at] == 1 else bool(table.value[at] >= 0.5)


def _doubt(table: Decisions) -> Any:
    """Probability of the answer less that of the label; the confidence where there are none."""
    top = column(table, "top_probability")
    return np.where(np.isnan(top - table.p_gold), np.nan_to_num(table.confidence), top - table.p_gold)


def _conflicts(dataset: Dataset, states: list[str]) -> list[Conflict]:
    groups: dict[str, list[int]] = defaultdict(list)
    for row, state in enumerate(states):
        groups[_folded(state)].append(row)
    found = []
    for rows in groups.values():
        if len(rows) == 1:
            continue
        labels: dict[tuple[str, bytes], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for row in rows:
            line, questions = dataset.read(row)
            for question, label in line.expected.items():
                asked = question, dumps(questions.bodies[question])
                labels[asked][dumps(label).decode()].append(dataset.place(row))
        for (question, _), places in sorted(labels.items()):
            if len(places) > 1:
                found.append(
                    Conflict(question, one_line(states[rows[0]], EXCERPT), dict(sorted(places.items())))
                )
    return found


def _near(
    dataset: Dataset, states: list[str], against: Dataset | None, near: float, seed: int
) -> tuple[list[NearDuplicate], int]:
    """Pairs that count, and how many candidates were left unchecked."""
    texts = [_folded(state) for state in states]
    other = [] if against is None else [_folded(_text(case.state)) for case in against]
    everything = texts + other
    if not everything:
        return [], 0
    marks = signatures(everything, seed)
    pairs = candidate_pairs(marks)
    a, b = pairs.T
    inside = b < len(texts)
    groups = np.array(dataset.columns.group)
    apart = (a < len(texts)) & (inside == (against is None))
    if against is None:
        apart &= (groups[a] < 0) | (groups[a] != groups[b])
    pairs = pairs[apart]
    if len(pairs) > MOST_PAIRS:
        alike = (marks[pairs[:, 0]] == marks[pairs[:, 1]]).sum(axis=1)
        checked = pairs[np.sort(np.argsort(-alike, kind="stable")[:MOST_PAIRS])]
    else:
        checked = pairs
    second = dataset if against is None else against
    shift = 0 if against is None else len(texts)
    found = []
    for one, two in checked.tolist():
        alike_share = similarity(everything[one], everything[two])
        if alike_share >= near:
            ours, theirs = dataset.read(one)[0].expected, second.read(two - shift)[0].expected
            found.append(
                NearDuplicate(
                    dataset.place(one),
                    second.place(two - shift),
                    alike_share,
                    one_line(states[one], EXCERPT),
                    all(theirs[q] == label for q, label in ours.items() if q in theirs),
                )
            )
    found.sort(key=lambda pair: (pair.same_labels, -pair.similarity, pair.first, pair.second))
    return found, len(pairs) - len(checked)


def _balance(dataset: Dataset) -> list[Balance]:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for question, label in _labels(dataset):
        counts[question][label] += 1
    offered: dict[str, dict[str, None]] = defaultdict(dict)
    for asked in dataset.columns.question_sets:
        for question, body in asked.questions.items():
            offered[question].update(dict.fromkeys(body.options))
    found = []
    for question, labels in sorted(counts.items()):
        n, (majority, most) = sum(labels.values()), labels.most_common(1)[0]
        effective = n * n / sum(k * k for k in labels.values())
        rare = sorted(label for label, k in labels.items() if k < RARE)
        never = [option for option in offered[question] if option not in labels]
        found.append(Balance(question, n, len(labels), majority, most / n, effective, rare, never))
    return sorted(found, key=lambda one: (one.effective / one.labels, one.question))


def _labels(dataset: Dataset) -> Iterator[tuple[str, str]]:
    columns = dataset.columns
    shapes, names = list(columns.shapes), columns.label_names.list()
    for shape, label, gold in zip(columns.shape, columns.label, columns.gold, strict=True):
        question, kind, *_ = shapes[shape]
        yield (
            question,
            names[label] if label >= 0 else ("false", "true")[int(gold)] if kind == 2 else f"{gold:g}",
        )


def _pooled(uses: Sequence[list[OptionUse]]) -> list[OptionUse]:
    """Counts over all runs; `offered` and `labelled` are those of one run."""
    chosen: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], OptionUse] = {}
    for use in (use for found in uses for use in found):
        first.setdefault((use.question, use.option), use)
        chosen[use.question, use.option] += use.chosen
    return [msgspec.structs.replace(use, chosen=chosen[key]) for key, use in sorted(first.items())]
