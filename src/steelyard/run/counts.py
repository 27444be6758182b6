"""What became of what was asked: counts, errors, money and tokens."""

from __future__ import annotations

from typing import Any

import numpy as np

from steelyard.core.requests import CONFIDENCE_SOURCES, NOT_ASKED_CODE, REASONS, ROW_REASONS
from steelyard.formats.answer_table import Answers
from steelyard.metrics.decisions import ERRORED, NOT_ASKED, SCORED, Decisions
from steelyard.run.collector import Asked
from steelyard.run.judge import RowFacts
from steelyard.stats.sums import exact_sum


def counts_of(table: Decisions, asked: Asked) -> dict[str, Any]:
    """What became of every question asked, and what servers said of it."""
    errored, scored = table.status == ERRORED, table.status == SCORED
    reasons = np.bincount(table.reason[errored], minlength=len(REASONS) + 1)
    sources = np.bincount(table.source[scored], minlength=len(CONFIDENCE_SOURCES))
    asked_for = int(np.count_nonzero(asked.answers.reason != NOT_ASKED_CODE))
    unlabelled = asked_for - int(np.count_nonzero(table.status != NOT_ASKED))
    by_reason = {name: int(reasons[1 + code]) for code, name in enumerate(REASONS) if reasons[1 + code]}
    if unlabelled:
        by_reason["unlabelled"] = unlabelled
    not_asked = int(np.count_nonzero(asked.facts.shared == 0))
    return {
        "rows": asked.facts.n_rows,
        **({"rows_not_asked": not_asked} if not_asked else {}),
        "questions": asked_for,
        "scored": int(np.count_nonzero(scored)),
        "errored": int(np.count_nonzero(errored)),
        "not_applicable": unlabelled,
        "by_reason": by_reason,
        "rows_errored": len(np.unique(table.row[errored])),
        **_money(asked.facts),
        **_said(asked.facts),
        "ties_at_top": int(np.count_nonzero(table.tied)),
        "soft_labels": len(table.soft.row),
        "soft_labels_tied": int(np.count_nonzero(table.soft.tied)),
        "confidence_sources": {
            name: int(sources[i]) for i, name in enumerate(CONFIDENCE_SOURCES) if sources[i]
        },
    }


def _money(facts: RowFacts) -> dict[str, Any]:
    """Money the rows asked took in all, as far as it is known; nothing when it is known of none."""
    asked = facts.cost[facts.shared > 0]
    known = asked[~np.isnan(asked)]
    if not len(known):
        return {}
    unknown = len(asked) - len(known)
    return {"money": {"total": exact_sum(known), "rows": len(known), "rows_unknown": unknown}}


def _said(facts: RowFacts) -> dict[str, Any]:
    """What servers said of their replies, added up; nothing where they said nothing."""
    said = facts.said.values()
    if not said:
        return {}
    tokens = [one.input_tokens for one in said if one.input_tokens is not None]
    commits = sorted({one.revision for one in said if one.revision is not None})
    written = [one.output_tokens for one in said if one.output_tokens is not None]
    return {
        "server": {
            "input_tokens": sum(tokens),
            "output_tokens": sum(written),
            "rows_without_usage": int(np.count_nonzero(facts.shared > 0)) - len(tokens),
            "rows_retried": sum(one.attempts > 1 for one in said),
            "rows_truncated": sum(one.truncated for one in said),
            "answers_renormalised": sum(one.renormalised for one in said),
            "answers_narrowed": sum(one.narrowed for one in said),
            **({"revisions": commits} if commits else {}),
        }
    }


def call_counts(facts: RowFacts) -> dict[str, int]:
    """Calls issued, failed ones among them, and how rows were spread over them."""
    shared = facts.shared
    return {
        "chunks": round(float((1.0 / shared[shared > 0]).sum())),
        "rows_grouped": int(np.count_nonzero(shared > 1)),
        "rows_alone": int(np.count_nonzero(shared == 1)),
        "max_chunk": int(shared.max()) if len(shared) else 0,
    }


def errored_of(table: Decisions, answers: Answers) -> list[dict[str, Any]]:
    """Rows whose call failed, and single questions without a usable answer, in dataset order."""
    entries: dict[tuple[int, int], dict[str, Any]] = {}
    for at in np.flatnonzero((answers.reason > 0) & (answers.reason != NOT_ASKED_CODE)).tolist():
        row, reason = int(answers.row[at]), int(answers.reason[at])
        if REASONS[reason - 1] in ROW_REASONS:
            message = answers.messages[row, int(answers.place[at])]
            entries.setdefault((row, -1), {"index": row, "error": f"{REASONS[reason - 1]}: {message}"})
    for at in np.flatnonzero(table.status == ERRORED).tolist():
        row, place, reason = int(table.row[at]), int(table.place[at]), int(table.reason[at])
        if REASONS[reason - 1] not in ROW_REASONS:
            text = f"{REASONS[reason - 1]}: {answers.messages[row, place]}"
            entries[row, place] = {"index": row, "question": table.names.qids[table.qid[at]], "error": text}
    return [entries[key] for key in sorted(entries)]
