"""Which answers of two runs are about the same thing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from steelyard.core.comparison import Joining
from steelyard.errors import IncomparableError
from steelyard.formats.report import RowKey
from steelyard.metrics.decisions import SCORED, Decisions, Ints
from steelyard.metrics.paired import Pairing
from steelyard.run.side import Side


def pair(ours: Side, theirs: Side) -> tuple[Pairing, Joining]:
    """Join the answers of two runs by id, else by row, and by question.

    Runs whose cases name neither are joined in order, as long as nothing is missing from either.
    States and labels must agree; what does not join is counted.

    Returns
    -------
    (Pairing, Joining)
        The pairing holds the answers both scored.

    Raises
    ------
    IncomparableError
        A side has no judged answers, or its rows cannot be told apart.
    """
    for side in (ours, theirs):
        if side.table is None:
            raise IncomparableError(side.lacking or f"{side.name} holds no cases")
    assert ours.table is not None
    assert theirs.table is not None
    by_name = ours.named and theirs.named
    if by_name:
        rows = joined_rows(ours, theirs, int(ours.table.row.max(initial=-1)) + 1)
        at, other = _by_question(ours.table, theirs.table, rows)
    else:
        at, other = _in_order(ours, theirs)
    same, states = _same_label(ours.table, theirs.table, at, other), _same_state(ours, theirs, at, other)
    kept = same & states
    found = Pairing(ours.table, theirs.table, at[kept], other[kept])
    scored = found.scored()
    here, there = ours.table.status[found.at] == SCORED, theirs.table.status[found.other] == SCORED
    joining = Joining(
        joined=len(found),
        scored=len(scored),
        cases=len(np.unique(ours.table.cluster[scored.at])),
        candidate_errored=int(np.count_nonzero(~here & there)),
        baseline_errored=int(np.count_nonzero(here & ~there)),
        only_candidate=len(ours.table) - len(at),
        only_baseline=len(theirs.table) - len(at),
        other_state=int(np.count_nonzero(~states)),
        other_label=int(np.count_nonzero(states & ~same)),
        by_order=not by_name,
    )
    return scored, joining


def joined_rows(ours: Side, theirs: Side, n: int) -> Ints:
    """For each of our first n dataset rows the row of theirs, -1 where there is none."""
    if (
        ours.dataset is not None
        and theirs.dataset is not None
        and ours.dataset.sha256 == theirs.dataset.sha256
    ):
        return np.arange(n)
    where = _index(theirs.row_keys(), theirs.name)
    found = [where.get(_key(key), -1) for key in ours.row_keys()[:n]]
    return np.array(found, np.int64)


def _key(key: RowKey) -> tuple[str, object]:
    """An id of text or number, else the row; ``1`` and ``"1"`` are two ids."""
    return ("row", key.row) if key.id is None else (type(key.id).__name__, key.id)


def _index(keys: Sequence[RowKey], name: str) -> dict[tuple[str, object], int]:
    found = {_key(key): at for at, key in enumerate(keys)}
    if len(found) < len(keys):
        raise IncomparableError(f"{name} has rows of the same id, so its cases cannot be told apart")
    return found


def _by_question(ours: Decisions, theirs: Decisions, rows: Ints) -> tuple[Ints, Ints]:
    """Table rows of both that answer one question of one joined row, in our order."""
    names = {name: code for code, name in enumerate(ours.names.qids)}
    codes = np.array([names.get(name, -1) for name in theirs.names.qids], np.int64)
    width = len(names)
    mine = rows[ours.row]
    mine = np.where(mine >= 0, mine * width + ours.qid, -1)
    code = codes[theirs.qid] if len(codes) else np.empty(0, np.int64)
    yours = np.where(code >= 0, theirs.row * width + code, -2)
    order = np.argsort(yours, kind="stable")
    place = np.searchsorted(yours[order], mine)
    place = np.minimum(place, max(0, len(order) - 1))
    if not len(order):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    hit = (yours[order[place]] == mine) & (mine >= 0)
    return np.flatnonzero(hit), order[place[hit]]


def _in_order(ours: Side, theirs: Side) -> tuple[Ints, Ints]:
    """All answers, one beside the other: only safe where neither side left any out."""
    assert ours.table is not None
    assert theirs.table is not None
    for side in (ours, theirs):
        if side.config.get("errored"):
            raise IncomparableError(
                f"{side.name} has errored rows and its cases do not say which row they are; name the dataset "
                "with --data"
            )
    if len(ours.table) != len(theirs.table):
        raise IncomparableError(
            f"{ours.name} has {len(ours.table)} cases, {theirs.name} {len(theirs.table)}, and they do not "
            "say which row they are; name the dataset with --data"
        )
    at = np.arange(len(ours.table))
    same = _questions(ours.table) == _questions(theirs.table)
    return at[same], at[same]


def _questions(table: Decisions) -> NDArray[np.object_]:
    """Question id of every answer."""
    found: NDArray[np.object_] = np.array([*table.names.qids, None], object)[table.qid]
    return found


def _same_label(ours: Decisions, theirs: Decisions, at: Ints, other: Ints) -> NDArray[np.bool_]:
    """Whether question type and label agree; choices by the label's text, not its position."""
    kind = ours.kind[at]
    same = kind == theirs.kind[other]
    theirs_code = {label: code for code, label in enumerate(theirs.names.labels)}
    codes = np.array([*(theirs_code.get(label, -2) for label in ours.names.labels), -1], np.int64)
    label = codes[ours.gold_label[at]] == theirs.gold_label[other]
    found: NDArray[np.bool_] = same & np.where(kind == 0, label, ours.gold[at] == theirs.gold[other])
    return found


def _same_state(ours: Side, theirs: Side, at: Ints, other: Ints) -> NDArray[np.bool_]:
    """Whether the states agree, as far as both are known."""
    same = np.ones(len(at), bool)
    digests = (ours.config.get("dataset_sha256"), theirs.config.get("dataset_sha256"))
    if not len(at) or (digests[0] is not None and digests[0] == digests[1]):
        return same
    assert ours.table is not None
    assert theirs.table is not None
    mine, yours = ours.table.row[at], theirs.table.row[other]
    known: dict[tuple[int, int], bool] = {}
    for place, key in enumerate(zip(mine.tolist(), yours.tolist(), strict=True)):
        if key not in known:
            here, there = ours.digest_of(key[0]), theirs.digest_of(key[1])
            known[key] = here is None or there is None or here == there
        same[place] = known[key]
    return same
