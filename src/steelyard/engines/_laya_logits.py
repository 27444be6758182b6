"""Raw option scores of a Laya agent: names the library does not promise are used here and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import EngineError

APART = 1e-3
"""Public answers are rounded to four decimals; further apart than this, the scores are not theirs."""


def raw_scores(
    agent: Any,
    states: Sequence[Any],
    questions: Mapping[str, Any],
    max_len: int | None = None,
    head_max_len: int | None = None,
) -> list[dict[str, NDArray[np.float64]]]:
    """Scores of the options of each question, before any temperature, in the caller's own order.

    Parameters
    ----------
    agent : laya Agent
    states : sequence
    questions : mapping
        Bodies by id.

    Returns
    -------
    list of dict
        One a state: question id to array, shape (options,).

    Raises
    ------
    EngineError
        The installed laya has not what this reads.
    """
    try:
        import torch
        from laya.common import collate_items

        internal = {qid: agent._to_internal(body) for qid, body in questions.items()}
        ids = list(questions)
        items = [agent._encode_state(state, ids, internal, max_len, head_max_len) for state in states]
        with torch.no_grad():
            scores, _ = agent._forward(collate_items(items, agent.tok.pad_token_id))
    except (ImportError, AttributeError, TypeError) as error:
        raise EngineError(f"the installed laya does not show its scores ({error}); leave exact out") from None
    found, row = [], 0
    for own in items:
        per_question = {}
        for qid, item in zip(ids, own, strict=True):
            slots = np.asarray(scores[row, : len(item["markers"])], np.float64)
            row += 1
            order = internal[qid].get("option_order")
            if order is not None:
                slots = slots[np.argsort(order)]
            per_question[qid] = slots
        found.append(per_question)
    return found


def softmax(scores: NDArray[Any], temperature: float) -> NDArray[Any]:
    """Probabilities at a temperature, in the precision of the scores."""
    shifted = scores / temperature
    weights = np.exp(shifted - shifted.max())
    found: NDArray[Any] = weights / weights.sum()
    return found
