"""Which rows share a call, and in what order calls are made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from steelyard.core.requests import Ability, CallOptions
from steelyard.engines._base import Engine
from steelyard.errors import InputError
from steelyard.formats.dataset import Dataset
from steelyard.formats.jsontext import dumps, quote
from steelyard.formats.questions import batch_signature
from steelyard.run.options import RunOptions


def preflight(engine: Engine, dataset: Dataset, options: CallOptions, model: str | None) -> None:
    """Refuse, before the first call, what the engine has not declared it can do.

    Raises
    ------
    InputError
        A pinned model or a confidence threshold the engine would have to ignore.
    """
    if options.min_confidence is not None and Ability.MIN_CONFIDENCE not in engine.abilities:
        raise InputError(f'engine "{engine.name}" takes no min_confidence; leave --min-confidence out')
    if Ability.PIN_MODEL in engine.abilities:
        return
    if model is not None:
        raise InputError(f'engine "{engine.name}" takes no model, got {quote(model)}; leave --model out')
    pinned = next((row for row, code in enumerate(dataset.columns.model) if code >= 0), None)
    if pinned is not None:
        name = dataset.columns.models.list()[dataset.columns.model[pinned]]
        raise InputError(
            f'{dataset.place(pinned)}: pins model {quote(name)}, which engine "{engine.name}" cannot honour'
        )


def idle_options(engine: Engine, options: RunOptions) -> list[str]:
    """What was asked for and will have no effect on this engine, a line each."""
    idle = []
    if options.batch_size > 1 and Ability.BATCH not in engine.abilities:
        idle.append(f'engine "{engine.name}" does not batch: every call holds one row')
    elif options.sort_by_length and options.batch_size == 1:
        idle.append("--sort-by-length needs a --batch-size above 1 to have something to sort")
    if options.concurrency > 1 and Ability.CONCURRENT not in engine.abilities:
        idle.append(f'engine "{engine.name}" declares no overlapping calls: they are made one after another')
    return idle


def plan_calls(
    engine: Engine, dataset: Dataset, rows: Iterable[int], options: CallOptions, model: str | None
) -> Iterator[Sequence[int]]:
    """Rows of each call, in the order the calls are made.

    Rows of equal questions and model share calls wherever they stand in the dataset; groups keep
    the order of their first row. Engines that do not batch get a call a row, in dataset order.
    """
    if options.batch_size == 1 or Ability.BATCH not in engine.abilities:
        for row in rows:
            yield (row,)
        return
    columns = dataset.columns
    signatures = [batch_signature(questions) for questions in columns.question_sets]
    groups: dict[tuple[bytes, int], list[tuple[int, int]]] = {}
    for row in rows:
        code = columns.asked[row]
        signature = signatures[code] if code >= 0 else batch_signature(dataset.questions_of(row))
        length = _length(dataset.read(row)[0].state) if options.sort_by_length else 0
        pin = columns.model[row] if model is None else -1
        groups.setdefault((signature, pin), []).append((length, row))
    for members in groups.values():
        members.sort()
        for start in range(0, len(members), options.batch_size):
            yield [row for _, row in members[start : start + options.batch_size]]


def _length(state: object) -> int:
    return len(state) if isinstance(state, str) else len(dumps(state))
