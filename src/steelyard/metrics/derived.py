"""Columns worked out from the judged table when a metric first wants them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from steelyard.metrics.decisions import SCORED, Decisions, Floats, Ints
from steelyard.stats.bins import bin_index

MEASURES = ("stated", "top_probability", "margin", "concentration", "uniform_margin")
"""Confidence measures that can be had from an answer: its own, and four from its distribution."""
BIN = "bin:"
"""Prefix of a column of equal-width bins, as in ``bin:15:confidence``."""


def column(table: Decisions, name: str) -> Any:
    """A column of the table, or one of those derived from it; kept once it was worked out."""
    found = getattr(table, name, None)
    if found is not None:
        return found
    if name not in table.derived:
        if name.startswith(BIN):
            bins, of = name[len(BIN) :].split(":")
            small = np.int16 if int(bins) < 32_000 else np.int32
            table.derived[name] = bin_index(column(table, of), int(bins)).astype(small)
        else:
            table.derived.update(_MAKERS[name](table))
    return table.derived[name]


def defined(table: Decisions, name: str) -> bool | None:
    """Whether a float column has a value in every row (True), in none (False), or in some (None)."""
    key = f"defined:{name}"
    if key not in table.derived:
        missing = int(np.count_nonzero(np.isnan(column(table, name))))
        table.derived[key] = True if not missing else False if missing == len(table) else None
    found: bool | None = table.derived[key]
    return found


def has_kind(table: Decisions, kind: int) -> bool:
    """Whether any row asks a question of this type."""
    if "kinds" not in table.derived:
        table.derived["kinds"] = np.bincount(table.kind, minlength=3) > 0
    return bool(table.derived["kinds"][kind])


def _offset(table: Decisions) -> dict[str, Any]:
    """Where each row's distribution begins."""
    return {"offset": np.cumsum(table.size, dtype=np.int64) - table.size}


def _likeliest(table: Decisions) -> dict[str, Floats]:
    """Position of the first of the likeliest options; NaN without a distribution."""
    found = np.full(len(table), np.nan)
    sized = np.flatnonzero(table.size)
    if len(sized):
        sizes = table.size[sized].astype(np.int64)
        starts = np.cumsum(sizes) - sizes
        at_top = table.flat == np.repeat(np.maximum.reduceat(table.flat, starts), sizes)
        at = np.where(at_top, np.arange(len(table.flat)), len(table.flat))
        found[sized] = np.minimum.reduceat(at, starts) - starts
    return {"likeliest": found}


def _shape(table: Decisions) -> dict[str, Floats]:
    """What the distribution alone says of confidence; NaN without one.

    Margin is the top probability less the second; concentration ``1 - H / ln K``; uniform margin
    ``(top - 1/K) / (1 - 1/K)``. A yes/no answer is a distribution over two.
    """
    n = len(table)
    found = {name: np.full(n, np.nan) for name in MEASURES[1:]}
    sides = np.flatnonzero((table.kind == 2) & (table.size == 0) & ~np.isnan(table.value))
    yes = table.value[sides]
    _fill(found, sides, np.maximum(yes, 1.0 - yes), np.minimum(yes, 1.0 - yes), 2.0)
    found["concentration"][sides] = 1.0 + (_plogp(yes) + _plogp(1.0 - yes)) / np.log(2.0)
    sized = np.flatnonzero(table.size > 1)
    if len(sized):
        sizes = table.size[table.size > 0].astype(np.int64)
        starts = np.cumsum(sizes) - sizes
        flat, many = table.flat, sizes > 1
        top = np.maximum.reduceat(flat, starts)
        is_top = flat == np.repeat(top, sizes)
        below = np.maximum.reduceat(np.where(is_top, -1.0, flat), starts)
        second = np.where(np.add.reduceat(is_top.astype(np.int64), starts) > 1, top, below)
        _fill(found, sized, top[many], second[many], sizes[many].astype(np.float64))
        entropy = -np.add.reduceat(_plogp(flat), starts)[many]
        found["concentration"][sized] = 1.0 - entropy / np.log(sizes[many])
    np.clip(found["concentration"], 0.0, 1.0, out=found["concentration"])
    return found


def _fill(found: dict[str, Floats], at: Ints, top: Floats, second: Floats, options: Any) -> None:
    found["top_probability"][at] = top
    found["margin"][at] = top - second
    found["uniform_margin"][at] = np.maximum(0.0, (top - 1.0 / options) / (1.0 - 1.0 / options))


def _plogp(p: Floats) -> Floats:
    return p * np.log(np.where(p > 0, p, 1.0))


def _references(table: Decisions) -> dict[str, Floats]:
    """What forecasts that never read the state score on each choice and yes/no label.

    Class priors leave the label itself out: ``(count - 1) / (n - 1)``; their log loss adds one to
    each count, as a label seen once would otherwise cost infinitely much.
    """
    kept = np.flatnonzero((table.kind != 1) & (table.status == SCORED) & ~np.isnan(table.correct))
    options = table.options[kept].astype(np.float64)
    outcome = np.where(table.kind[kept] == 0, table.gold_label[kept], table.gold[kept]).astype(np.int64)
    qid = table.qid[kept].astype(np.int64)
    n, count, squares, majority = _counts(qid, outcome)
    others = np.where(n > 1, n - 1.0, np.nan)
    prior = (count - 1.0) / others
    found = {
        "uniform_hit": 1.0 / options,
        "uniform_brier": 1.0 - 1.0 / options,
        "uniform_log": np.log(options),
        "prior_hit": prior,
        "prior_brier": (squares - 2.0 * count + 1.0) / others**2 - 2.0 * prior + 1.0,
        "prior_log": np.log((others + options) / count),
        "majority_hit": majority,
        "majority_brier": 2.0 * (1.0 - majority),
        "first_option_hit": np.where(table.kind[kept] == 0, table.gold[kept] == 0, np.nan),
    }
    return {name: _spread_out(values, kept, len(table)) for name, values in found.items()}


def _counts(qid: Ints, outcome: Ints) -> tuple[Floats, Floats, Floats, Floats]:
    """Labels of each row's question, those equal to its own, sum of squares, and hits of the commonest."""
    span = int(outcome.max(initial=0)) + 1
    key = qid * span + outcome
    if int(key.max(initial=0)) > 4 * len(key) + 1000:
        values, key = np.unique(key, return_inverse=True)
        of = values // span
    else:
        of = np.arange(int(key.max(initial=-1)) + 1) // span
    counts = np.bincount(key, minlength=len(of)).astype(np.float64)
    squares: Any = np.bincount(of, weights=counts**2)
    total: Any = np.bincount(of, weights=counts)
    # Labels that share the top share the guess, whichever stands first.
    starts = np.flatnonzero(np.concatenate((np.ones(min(1, len(of)), bool), of[1:] != of[:-1])))
    sizes = np.diff(np.concatenate((starts, [len(of)])))
    top = counts == np.repeat(np.maximum.reduceat(counts, starts), sizes) if len(of) else counts > 0
    ties: Any = np.bincount(of, weights=top)
    majority = top / np.maximum(ties[of], 1.0)
    return total[qid], counts[key], squares[qid], majority[key]


def _ranked_references(table: Decisions) -> dict[str, Floats]:
    """Ranked probability score of the uniform and of the leave-one-out prior, on whole levels."""
    kept = np.flatnonzero(~np.isnan(table.rps))
    level, options, qid = table.gold[kept].astype(np.int64), table.options[kept], table.qid[kept]
    uniform, prior = np.full(len(kept), np.nan), np.full(len(kept), np.nan)
    for size in np.flatnonzero(np.bincount(options)).tolist():
        rows = np.flatnonzero(options == size)
        even = np.arange(1, size) / size
        step = np.arange(size)[:, None] <= np.arange(size - 1)
        uniform[rows] = ((even - step) ** 2).mean(axis=1)[level[rows]]
        for code in np.flatnonzero(np.bincount(qid[rows])).tolist():
            own = rows[qid[rows] == code]
            below = np.cumsum(np.bincount(level[own], minlength=size))[:-1]
            if len(own) > 1:
                left = (below - step) / (len(own) - 1.0)
                prior[own] = ((left - step) ** 2).mean(axis=1)[level[own]]
    return {
        "uniform_rps": _spread_out(uniform, kept, len(table)),
        "prior_rps": _spread_out(prior, kept, len(table)),
    }


def _soft(table: Decisions) -> dict[str, Floats]:
    soft = table.soft
    return {
        "soft_cross_entropy": _spread_out(soft.cross_entropy, soft.row, len(table)),
        "soft_divergence": _spread_out(soft.divergence, soft.row, len(table)),
        "soft_brier": _spread_out(soft.brier, soft.row, len(table)),
    }


def _spread_out(values: Floats, rows: Ints, n: int) -> Floats:
    found = np.full(n, np.nan)
    found[rows] = values
    return found


_MAKERS: dict[str, Callable[[Decisions], dict[str, Any]]] = {
    "offset": _offset,
    "likeliest": _likeliest,
    **dict.fromkeys(MEASURES[1:], _shape),
    **dict.fromkeys(
        (
            "uniform_hit",
            "uniform_brier",
            "uniform_log",
            "prior_hit",
            "prior_brier",
            "prior_log",
            "majority_hit",
            "majority_brier",
            "first_option_hit",
        ),
        _references,
    ),
    **dict.fromkeys(("uniform_rps", "prior_rps"), _ranked_references),
    **dict.fromkeys(("soft_cross_entropy", "soft_divergence", "soft_brier"), _soft),
}
