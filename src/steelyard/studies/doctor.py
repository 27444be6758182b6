"""Does an engine keep its contract? A minute of questions without labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec
import numpy as np

from steelyard.core.requests import Ability
from steelyard.engines._base import Engine
from steelyard.errors import EngineError, InputError
from steelyard.formats.dataset import Dataset
from steelyard.run.collector import Asked
from steelyard.run.log import RunLog
from steelyard.run.options import RunOptions
from steelyard.run.runner import Runner

SAME = 1e-4
"""Probabilities rounded to four decimals may differ by so much and be the same."""
LENGTHS = (500, 2_000, 8_000, 32_000)
STATES = (
    "I was charged twice this month and want the second amount back.",
    "The app closes by itself whenever I open the calendar.",
    "Please change the e-mail address of my account.",
    "Everything works, thank you.",
)
CHOICE = {
    "type": "choice",
    "instructions": "Which team should handle this message?",
    "criteria": {"billing": "invoices and payments", "technical": "errors", "account": "login and profile"},
}
SCORE = {
    "type": "score",
    "instructions": "How urgent is this message?",
    "criteria": ["not urgent", "soon", "now"],
}
NOUL = {"type": "noul", "instructions": "Does the customer ask for money back?"}
CANARY = "The customer demands a full refund of 912 euros at once."
FILLER = "The delivery was on time and the box was in good order. "
NOBODY = "no-such-model-7f3a"


class Check(msgspec.Struct, frozen=True):
    """One check: ``pass``, ``warn``, ``fail`` or ``skip``, what was seen, and the numbers."""

    name: str
    outcome: Literal["pass", "warn", "fail", "skip"]
    text: str
    numbers: dict[str, Any] = {}


def doctor(engine: Engine) -> list[Check]:
    """Check an engine.

    Parameters
    ----------
    engine : Engine
        Asked about a hundred short questions, and up to 26 long ones.

    Returns
    -------
    list of Check

    Raises
    ------
    InputError, EngineError
        It cannot be asked at all.
    """
    patient = _Patient(engine)
    return [check for examine in _CHECKS for check in examine(patient)]


class _Patient:
    """An engine, and short ways to ask it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._repeats: np.ndarray[Any, Any] | None = None

    def ask(
        self,
        states: Sequence[str],
        questions: Mapping[str, Any],
        labels: Mapping[str, Any],
        *,
        batch_size: int = 1,
        model: str | None = None,
    ) -> Asked:
        """Everything one run observes; rows that fail are recorded."""
        rows = [{"state": state, "questions": dict(questions), "expected": dict(labels)} for state in states]
        data = Dataset.from_rows(rows, "doctor")
        options = RunOptions(on_error="skip", batch_size=batch_size, model=model, concurrency=4)
        log = RunLog(None)
        try:
            return Runner(data, self.engine, options, log, lambda *_: None).run()
        finally:
            log.close()

    def yes(self, states: Sequence[str]) -> np.ndarray[Any, Any]:
        """P(yes) of the yes/no question on each state; NaN where it was not answered."""
        asked = self.ask(states, {"q": NOUL}, {"q": True}).answers
        found = np.full(len(states), np.nan)
        fine = asked.reason == 0
        found[asked.row[fine]] = asked.value[fine]
        return found

    def spread(self) -> np.ndarray[Any, Any]:
        """How far three repeats of each question differ; NaN where one was not answered."""
        if self._repeats is None:
            self._repeats = np.ptp(np.stack([self.yes(STATES) for _ in range(3)]), axis=0)
        return self._repeats

    def noise(self) -> float:
        """How far repeats of a question may differ."""
        spread = self.spread()
        return SAME + (0.0 if np.isnan(spread).all() else 1.5 * float(np.nanmax(spread)))


def _types(patient: _Patient) -> Iterator[Check]:
    for name, body, label in (("choice", CHOICE, "billing"), ("score", SCORE, 1), ("noul", NOUL, True)):
        asked = patient.ask(STATES, {"q": body}, {"q": label}).answers
        bad = np.flatnonzero(asked.reason)
        if len(bad):
            message = asked.messages[int(asked.row[bad[0]]), int(asked.place[bad[0]])]
            yield Check(f"{name} questions", "fail", f"{len(bad)} of {len(STATES)} not answered: {message}")
            continue
        distributions = int(np.count_nonzero(asked.size))
        said = f"{len(STATES)} answered, {distributions} with probabilities"
        fine = name == "noul" or distributions
        yield Check(f"{name} questions", "pass" if fine else "warn", said)


def _order(patient: _Patient) -> Iterator[Check]:
    criteria = dict(reversed(CHOICE["criteria"].items()))  # type: ignore[attr-defined]
    first, second = (
        patient.ask(STATES, {"q": body}, {"q": "billing"})
        for body in (CHOICE, CHOICE | {"criteria": criteria})
    )
    if first.answers.reason.any() or second.answers.reason.any():
        yield Check("option order", "skip", "not all were answered")
        return
    same = [first.labels[one] == second.labels[two] for one, two in _labels(first, second)]
    said = f"{sum(same)} of {len(same)} answers keep their label when the options are reversed"
    yield Check("option order", "pass" if all(same) else "warn", said, {"same": sum(same), "of": len(same)})


def _labels(first: Asked, second: Asked) -> list[tuple[int, int]]:
    return list(zip(first.answers.label.tolist(), second.answers.label.tolist(), strict=True))


def _noise(patient: _Patient) -> Iterator[Check]:
    spread = patient.spread()
    if np.isnan(spread).any():
        yield Check("repeat noise", "skip", "not all were answered")
        return
    most = float(spread.max())
    said = f"P(yes) of a repeated question differs by at most {most:.4f}"
    yield Check("repeat noise", "pass" if most <= SAME else "warn", said, {"most": most})


def _batches(patient: _Patient) -> Iterator[Check]:
    if Ability.BATCH not in patient.engine.abilities:
        yield Check("batches", "skip", "the engine declares no batches")
        return
    one, four = (
        patient.ask(STATES, {"q": NOUL}, {"q": True}, batch_size=size).answers for size in (1, len(STATES))
    )
    if one.reason.any() or four.reason.any():
        text = next(iter(four.messages.values()), "not all were answered")
        yield Check("batches", "fail", text)
        return
    most, noise = float(np.abs(one.value - four.value).max()), patient.noise()
    said = f"P(yes) alone and in a batch of {len(STATES)} differs by at most {most:.4f}"
    yield Check("batches", "pass" if most <= noise else "fail", said, {"most": most})


def _model(patient: _Patient) -> Iterator[Check]:
    if Ability.PIN_MODEL not in patient.engine.abilities:
        yield Check("unknown model", "skip", "the engine takes no model name")
        return
    try:
        asked = patient.ask(STATES[:1], {"q": NOUL}, {"q": True}, model=NOBODY)
    except (EngineError, InputError) as error:
        yield Check("unknown model", "pass", f"refused: {error}")
        return
    if asked.answers.reason.any():
        yield Check("unknown model", "pass", f"refused: {next(iter(asked.answers.messages.values()))}")
        return
    by = ", ".join(asked.facts.models) or "a model it does not name"
    yield Check("unknown model", "warn", f"rerouted without a word: answered by {by}", {"answered_by": by})


def _usage(patient: _Patient) -> Iterator[Check]:
    if Ability.ASYNC not in patient.engine.abilities:
        yield Check("usage", "skip", "the engine is not hosted")
        return
    said = patient.ask(STATES, {"q": NOUL}, {"q": True}).facts.said
    known = sum(facts.input_tokens is not None for facts in said.values())
    text = f"{known} of {len(STATES)} replies say their tokens"
    yield Check("usage", "pass" if known == len(STATES) else "warn", text, {"known": known})


def _length(patient: _Patient) -> Iterator[Check]:
    """Longest state of which start, middle and end are all read, or that is refused in the open."""
    safe, told = 0, "no length was read whole"
    for length in LENGTHS:
        filler = FILLER * (length // len(FILLER))
        half = len(FILLER) * (len(filler) // len(FILLER) // 2)
        states = [f"{CANARY} {filler}", f"{filler[:half]}{CANARY} {filler[half:]}", f"{filler}{CANARY}"]
        found = patient.yes([filler, *states])
        if np.isnan(found).any():
            told = f"{length} characters are refused, not cut"
            break
        moved = np.abs(found[1:] - found[0]) > patient.noise()
        if not moved.any():
            told = f"beyond {safe} characters one sentence changes nothing wherever it stands: cannot tell"
            yield Check("long states", "warn", told, {"safe_characters": safe})
            return
        if not moved.all():
            lost = [place for place, read in zip(("start", "middle", "end"), moved, strict=True) if not read]
            said = f"of {length} characters the {' and '.join(lost)} changes nothing: read whole up to {safe}"
            yield Check("long states", "fail", said, {"safe_characters": safe})
            return
        safe, told = length, f"start, middle and end of {length} characters are read"
    yield Check("long states", "pass", told, {"safe_characters": safe})


_CHECKS: tuple[Callable[[_Patient], Iterator[Check]], ...] = (
    _types,
    _order,
    _noise,
    _batches,
    _model,
    _usage,
    _length,
)
