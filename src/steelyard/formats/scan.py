"""One pass over a dataset: every row checked, every label placed, all faults collected.

Rows are read by the block. A block in which everything is plain is absorbed column by column; any
other is read again line by line, so that each fault gets its place and each odd row its due.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from itertools import chain
from operator import getitem, xor
from typing import Any

import msgspec
from msgspec import UNSET
from msgspec.structs import astuple

from steelyard.core.questions import Question, QuestionSet
from steelyard.errors import MAX_SHOWN
from steelyard.formats.columns import CaseColumns, repeats
from steelyard.formats.garbage import collector_paused
from steelyard.formats.jsontext import dumps, quote
from steelyard.formats.questions import identity_text
from steelyard.formats.rows import (
    QuestionCache,
    Row,
    RowFault,
    decode_row,
    decode_rows,
    explain_row,
    has_repeated_key,
    plain_row,
)
from steelyard.formats.source import BOM, LineSource

MAX_WARNINGS = 20
MAX_SETS = 4096
BLOCK_BYTES = 1 << 17
_HASH = ord("#")
_PLAIN_TAGS = frozenset({list, type(None), msgspec.UnsetType})
_ABSENT = {None, UNSET}
_PLAIN_NAME = frozenset({str, type(None), msgspec.UnsetType})
Made = tuple[int, int, "Plan"]
Plan = dict[str, tuple[Callable[[Any], float], type, int, Question]]


class _NotPlain(Exception):
    """This block wants the slow way."""


class Findings(msgspec.Struct):
    """What a scan found: the first faults and warnings with their places, and how many in all."""

    faults: list[str] = []
    n_faults: int = 0
    warnings: list[str] = []
    n_warnings: int = 0

    def fault(self, place: str, text: str) -> None:
        """Count each line of `text` as a fault at `place`; keep the first few."""
        for line in text.split("\n"):
            self.n_faults += 1
            if len(self.faults) < MAX_SHOWN:
                self.faults.append(f"{place}: {line}")

    def warn(self, text: str) -> None:
        self.n_warnings += 1
        if len(self.warnings) < MAX_WARNINGS:
            self.warnings.append(text)


def scan(source: LineSource, identities: set[str] | None = None) -> tuple[CaseColumns, Findings]:
    """Check a whole dataset.

    Parameters
    ----------
    source : LineSource
        JSON Lines as FORMATS.md section 1 has it, plus optional `id` and `group`.
    identities : set of str, optional
        Filled with the identity text of every question asked.

    Returns
    -------
    (CaseColumns, Findings)
        Columns hold only rows without fault. A source without rows has one fault.
    """
    scanner = _Scanner(source, identities)
    number, offset = 1, 0
    with collector_paused():
        for block in source.blocks(BLOCK_BYTES):
            number += scanner.read_block(block, number, offset)
            offset += len(block)
    scanner.finish()
    return scanner.columns, scanner.findings


class _Scanner:
    def __init__(self, source: LineSource, identities: set[str] | None) -> None:
        self.source = source
        self.identities = identities
        self.columns, self.findings = CaseColumns(), Findings()
        self.states, self.ids, self.id_rows = array("q"), array("q"), array("q")
        self.cache: QuestionCache[Made] = QuestionCache(self._plan)

    def _plan(self, questions: QuestionSet, kept: bool) -> Made:
        """Key count, position among the sets remembered for good (-1 for none), and where labels go."""
        plan: Plan = {}
        code, sets = -1, self.columns.question_sets
        if kept and len(sets) < MAX_SETS:
            code = len(sets)
            sets.append(questions)
        for place, (qid, question) in enumerate(questions.questions.items()):
            # Both raise on a label they do not know; an index pays only when used again.
            find = question.label_index().__getitem__ if kept or question.code else question.options.index
            if self.identities is not None:
                self.identities.add(identity_text(qid, questions.bodies[qid]))
            plan[qid] = (find, question.label_type, self.columns.shape_code(question, place), question)
        return questions.n_keys, code, plan

    def read_block(self, block: bytes, number: int, offset: int) -> int:
        """Take one block, its first line being `number` at byte `offset`; return its line count."""
        n_lines = len(block.split(b"\n")) - block.endswith(b"\n")
        try:
            rows = decode_rows(block)
            if len(rows) != n_lines:
                raise _NotPlain
            self._absorb(rows, block, (number, offset, len(block)))
        except (msgspec.MsgspecError, RecursionError, RowFault, _NotPlain):
            self._read_lines(block, number, offset)
        return n_lines

    def _read_lines(self, block: bytes, number: int, offset: int) -> None:
        for at, line in enumerate(block.split(b"\n"), number):
            text = line.strip()
            if at == 1 and text.startswith(BOM):
                text = text[len(BOM) :].strip()
            if text and text[0] != _HASH:
                try:
                    self._read_line(text, (at, offset + line.find(text), len(text)))
                except RowFault as fault:
                    self.findings.fault(f"{self.source.name}:{at}", str(fault))
            offset += len(line) + 1

    def _read_line(self, text: bytes, place: tuple[int, int, int]) -> None:
        row = decode_row(text)
        if has_repeated_key(text):
            explain_row(text)
        row = plain_row(row, self.cache[bytes(row.questions)][0])
        self._absorb([row], None, place)

    def _absorb(self, rows: list[Row], block: bytes | None, place: tuple[int, int, int]) -> None:
        """Add plain rows to the columns, or raise before anything was added."""
        columns, n = self.columns, len(rows)
        states, questions, expected, tags, *names, ids, groups = zip(*map(astuple, rows), strict=True)
        raws = list(map(bytes, questions))
        _, made = zip(*map(self.cache.__getitem__, raws), strict=True)
        n_keys, codes, plans = zip(*made, strict=True)
        if block is not None:
            absent = sum([column.count(UNSET) for column in (tags, ids, groups, *names)])
            keys = 8 * n - absent + sum(map(len, expected)) + sum(n_keys)
            _check_keys(block, keys, states, expected)
            _check_plain(tags, (ids, groups, *names))
        flat = list(chain.from_iterable([t for t in tags if t]))
        if not set(map(type, flat)) <= {str}:
            raise _NotPlain
        shapes, labels, golds = self._place_labels(expected, plans)
        self._note_hashes(states, raws, ids)
        columns.blocks.extend((len(columns), *place))
        columns.asked.fromlist(list(codes))
        columns.n_labels.fromlist(list(map(len, expected)))
        columns.n_tags.fromlist([len(t) if t else 0 for t in tags])
        columns.tags.fromlist(list(map(columns.tag_names.__getitem__, flat)))
        for column, names_seen, values in (
            (columns.language, columns.languages, names[0]),
            (columns.model, columns.models, names[1]),
            (columns.group, columns.groups, groups),
        ):
            column.fromlist(
                [-1] * n if values.count(UNSET) == n else list(map(names_seen.__getitem__, values))
            )
        columns.shape.fromlist(shapes)
        columns.label.fromlist(labels)
        columns.gold.fromlist(golds)  # type: ignore[arg-type]

    def _place_labels(
        self, expected: tuple[dict[str, Any], ...], plans: Sequence[Plan]
    ) -> tuple[list[int], list[int], list[float | None]]:
        if set(map(len, expected)) != {1}:
            plans = [plan for plan, labels in zip(plans, expected, strict=True) for _ in labels]
            if not plans:
                return [], [], []
        values = list(chain.from_iterable(map(dict.values, expected)))
        types = list(map(type, values))
        try:
            found = map(getitem, plans, chain.from_iterable(expected))
            finders, kinds, shapes, asked = zip(*found, strict=True)
            golds: list[float | None]
            if types == list(kinds):
                golds = [find(label) for find, label in zip(finders, values, strict=True)]
            else:
                golds = [question.gold(label) for question, label in zip(asked, values, strict=True)]
        except (KeyError, ValueError):
            raise _NotPlain from None
        if None in golds:
            raise _NotPlain
        code = self.columns.label_names
        codes = [code[label] if kind is str else -1 for label, kind in zip(values, types, strict=True)]
        if dict in types:
            self._place_soft(values, asked, golds, codes)
        return list(shapes), codes, golds

    def _place_soft(
        self, values: list[Any], asked: Sequence[Question], golds: Sequence[Any], codes: list[int]
    ) -> None:
        """Keep labels that are distributions, and give choice ones the code of their likeliest option."""
        columns, first = self.columns, len(self.columns.gold)
        for at, (value, question, gold) in enumerate(zip(values, asked, golds, strict=True)):
            if type(value) is dict:
                mass = question.soft(value) or []
                columns.soft_at.append(first + at)
                columns.soft_size.append(len(mass))
                columns.soft_mass.fromlist(mass)
                if question.code == 0:
                    codes[at] = columns.label_names[question.options[int(gold)]]

    def _note_hashes(self, states: Sequence[Any], raws: list[bytes], ids: Sequence[Any]) -> None:
        if not set(map(type, states)) <= {str}:
            states = [state if type(state) is str else dumps(state) for state in states]
        first = len(self.states)
        self.states.fromlist(list(map(xor, map(hash, states), map(hash, raws))))
        if ids.count(UNSET) < len(ids):
            for row, value in enumerate(ids, first):
                if value is not UNSET and value is not None:
                    self.ids.append(hash((type(value), value)))
                    self.id_rows.append(row)

    def _row(self, row: int) -> Row:
        first, _, offset, size = self.columns.block_of(row)
        return decode_row(self.source.read_at(offset, size).split(b"\n")[row - first].strip())

    def finish(self) -> None:
        """Report what only the whole file shows: no rows, repeated ids, conflicting labels."""
        name, line, findings = self.source.name, self.columns.line_of, self.findings
        if not len(self.columns) and not findings.n_faults:
            findings.fault(name, "holds no rows; write one JSON object a line")
        for first, *others in sorted([self.id_rows[i] for i in group] for group in repeats(self.ids)):
            for row in others:
                value = quote(self._row(row).id)
                findings.fault(
                    f"{name}:{line(row)}", f"id {value} was used on line {line(first)}; ids are unique"
                )
        for first, *others in sorted(repeats(self.states)):
            kept = self._row(first)
            for row in others:
                other = self._row(row)
                if other.state != kept.state or bytes(other.questions) != bytes(kept.questions):
                    continue
                labels = other.expected
                clash = [q for q in labels if q in kept.expected and kept.expected[q] != labels[q]]
                if clash:
                    findings.warn(
                        f"{name}:{line(row)}: repeats line {line(first)} with another label for "
                        f"{', '.join(map(quote, clash))}; one of them is wrong"
                    )


def _soft_keys(expected: Sequence[dict[str, Any]]) -> int:
    return sum([len(v) for labels in expected for v in labels.values() if type(v) is dict])


def _check_plain(tags: Sequence[Any], names: tuple[Sequence[Any], ...]) -> None:
    """Leave the fast way unless tags are lists and names are text that is not blank."""
    if not set(map(type, tags)) <= _PLAIN_TAGS:
        raise _NotPlain
    for column in names:
        if column.count(UNSET) == len(column):
            continue
        if not set(map(type, column)) <= _PLAIN_NAME or not all(map(str.strip, set(column) - _ABSENT)):
            raise _NotPlain


def _check_keys(block: bytes, keys: int, states: Sequence[Any], expected: Sequence[dict[str, Any]]) -> None:
    """Leave the fast way unless no key can be repeated.

    Every key has a colon, so as many colons as decoded keys means none was repeated; colons inside
    text states are set aside first.
    """
    spare = block.count(b":") - keys
    if spare:
        spare -= _soft_keys(expected)
    if spare and (b"\\u003" in block or spare != sum([s.count(":") for s in states if type(s) is str])):
        raise _NotPlain
