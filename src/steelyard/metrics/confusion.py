"""Which labels are taken for which."""

from __future__ import annotations

import numpy as np

from steelyard.metrics.decisions import Decisions
from steelyard.stats.grouping import distinct


def confusion(table: Decisions) -> dict[str, dict[str, dict[str, int]]]:
    """Counts of gold against answer for choice and yes/no questions, by question id."""
    kept = np.flatnonzero(~np.isnan(table.correct))
    noul = table.kind[kept] == 2
    said_yes = table.value[kept] >= 0.5
    gold = np.where(noul, table.gold[kept] - 2, table.gold_label[kept]).astype(np.int64)
    pred = np.where(noul, said_yes - 2.0, table.pred_label[kept]).astype(np.int64)
    width = 2 + len(table.names.labels)
    keys, counts = distinct((table.qid[kept] * width + gold + 2) * width + pred + 2)
    columns = (keys // width**2, keys // width % width - 2, keys % width - 2, counts)
    found: dict[str, dict[str, dict[str, int]]] = {}
    for qid, truth, answer, n in np.stack(columns).T.tolist():
        names = found.setdefault(table.names.qids[qid], {})
        names.setdefault(_side(table, truth), {})[_side(table, answer)] = n
    return found


def _side(table: Decisions, code: int) -> str:
    return table.names.labels[code] if code >= 0 else ("true" if code == -1 else "false")
