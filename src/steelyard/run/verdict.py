"""A difference in words: better, worse, equivalent, or not enough data, and how much would be."""

from __future__ import annotations

import math

from steelyard.core.comparison import Difference, Judgement
from steelyard.metrics.paired import POWER
from steelyard.stats.power import paired_cases
from steelyard.stats.special import normal_quantile

MARGIN = 0.02
"""Within it two runs count as equivalent, unless a margin is named."""
_MOST = 10**9


def judgement(found: Difference, margin: float = MARGIN) -> Judgement:
    """What a difference says.

    Parameters
    ----------
    found : Difference
    margin : float
        In the metric's own unit, above 0: a change within it does not matter.

    Returns
    -------
    Judgement
        ``better`` or ``worse`` when the 95 % interval leaves out 0, ``equivalent`` when it lies within
        the margin, else ``unclear`` with the cases it would take. A metric that is neither better
        higher nor lower has ``moved`` in place of the first two.
    """
    if found.interval is None:
        if found.value == 0.0 and found.p == 1.0:
            return Judgement(found.metric, "equivalent", "no answer differs", margin)
        return Judgement(found.metric, "unclear", found.no_interval or "no interval", margin)
    low, high = found.interval
    inside = -margin <= low and high <= margin
    if low > 0.0 or high < 0.0:
        word = "moved"
        if found.better != "neither":
            word = "better" if (low > 0.0) == (found.better == "higher") else "worse"
        text = f"{word}, though by less than the margin of {margin:g}" if inside else word
        return Judgement(found.metric, word, text, margin)
    if inside:
        return Judgement(found.metric, "equivalent", f"equivalent within {margin:g}", margin)
    cases = cases_needed(found, margin)
    text = f"not enough data to tell a change of {margin:g} from none"
    if cases is not None:
        text += f"; about {cases} cases would do ({found.cases} here)"
    return Judgement(found.metric, "unclear", text, margin, cases)


def cases_needed(found: Difference, margin: float) -> int | None:
    """Cases that show a change of `margin` with 80 % power, as far as these answers can tell."""
    per_case = found.n / found.cases
    if found.gains is not None and found.losses is not None:
        moved = (found.gains + found.losses) / found.n
        if moved >= margin:
            cases = math.ceil(paired_cases(margin, moved, deff=found.deff) / per_case)
        else:
            # Too few answers differ for a change that large: what is missing is proof that so few do.
            cases = math.ceil(normal_quantile(0.975) ** 2 * (1.0 - margin) / margin)
        return max(cases, found.cases + 1) if cases < _MOST else None
    if not found.se:
        return None
    wanted = math.ceil(found.cases * (POWER * found.se / margin) ** 2)
    return max(wanted, found.cases + 1) if wanted < _MOST else None
