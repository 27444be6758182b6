"""Columns of a labelled dataset, filled block by block without numpy."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator

from msgspec import UNSET

from steelyard.core.questions import KINDS, Question, QuestionSet


class Names(dict[object, int]):
    """Text to small integer, in order of first sight; null and absent are -1."""

    def __init__(self) -> None:
        super().__init__({None: -1, UNSET: -1})

    def __missing__(self, name: object) -> int:
        code = self[name] = len(self) - 2
        return code

    def list(self) -> list[str]:
        """The names by code."""
        return [str(name) for name in list(self)[2:]]


def repeats(hashes: array[int]) -> Iterator[list[int]]:
    """Positions of equal values, in groups of two or more, each in order.

    Works through the values by residue, so that only a part of them is ever held as objects.
    """
    parts = 1 + len(hashes) // 200_000
    for part in range(parts):
        values = [value for value in hashes if value % parts == part]
        if len(set(values)) == len(values):
            continue
        counts = Counter(values)
        groups: dict[int, list[int]] = {}
        for position, value in enumerate(hashes):
            if value % parts == part and counts[value] > 1:
                groups.setdefault(value, []).append(position)
        yield from groups.values()


class CaseColumns:
    """One entry a row, and one entry a labelled question.

    Rows: `n_labels`, `n_tags`, codes of `language`, `model` and `group` (-1 for none), and `asked`
    (position in `question_sets`, -1 where the row's own text must tell). Labels:
    `shape` (code of question id, type, option count and place in the row's question set), `label`
    (code of a choice label, else -1), and `gold` (option position, level, or 0/1). `tags` is flat.
    Labels that are distributions over the options stand in `soft_at` (which
    label), `soft_size` (options) and `soft_mass` (flat); their `gold` is the likeliest option or the
    expected level.
    `blocks` says where rows stand in the file: first row, its line (1-based), byte offset and size
    of a run of lines that hold one row each.
    """

    def __init__(self) -> None:
        self.blocks = array("q")
        self.n_labels, self.n_tags, self.asked = array("i"), array("i"), array("i")
        self.question_sets: list[QuestionSet] = []
        self.language, self.model, self.group = array("i"), array("i"), array("i")
        self.shape, self.label, self.gold = array("i"), array("i"), array("d")
        self.tags = array("i")
        self.soft_at, self.soft_size, self.soft_mass = array("q"), array("i"), array("d")
        self.languages, self.models, self.groups = Names(), Names(), Names()
        self.tag_names, self.label_names = Names(), Names()
        self.shapes: dict[tuple[str, int, int, int], int] = {}

    def __len__(self) -> int:
        return len(self.n_labels)

    def block_of(self, row: int) -> tuple[int, int, int, int]:
        """First row, line, offset and size of the block that holds `row`."""
        at = 4 * (bisect_right(self.blocks[::4], row) - 1)
        first, line, offset, size = self.blocks[at : at + 4]
        return first, line, offset, size

    def line_of(self, row: int) -> int:
        """Physical line number of a row, 1-based."""
        first, line, _, _ = self.block_of(row)
        return line + row - first

    def shape_code(self, question: Question, place: int) -> int:
        """Code of a question's id, type, option count and place in its set."""
        key = (question.qid, question.code, len(question.options), place)
        return self.shapes.setdefault(key, len(self.shapes))

    def summary(self) -> dict[str, object]:
        """Counts a person wants before a run: questions, languages, types, majority shares."""
        shapes = list(self.shapes)
        counts: dict[str, Counter[tuple[int, float]]] = {qid: Counter() for qid, *_ in shapes}
        options: dict[str, set[int]] = {qid: set() for qid, *_ in shapes}
        kinds: dict[str, set[str]] = {qid: set() for qid, *_ in shapes}
        types: Counter[str] = Counter()
        pairs = Counter(zip(self.shape, self.label, self.gold, strict=True))
        for (shape, label, gold), n in pairs.items():
            qid, kind, size, _ = shapes[shape]
            counts[qid][label, gold if label < 0 else 0.0] += n
            types[KINDS[kind]] += n
            kinds[qid].add(KINDS[kind])
            options[qid].add(size)
        names = self.languages.list()
        languages = Counter(self.language)
        return {
            "rows": len(self),
            "labels": len(self.gold),
            "soft_labels": len(self.soft_at),
            "types": {kind: types[kind] for kind in KINDS if types[kind]},
            "languages": {names[code]: languages[code] for code in sorted(languages) if code >= 0},
            "rows_without_language": languages[-1],
            "questions": {
                qid: {
                    "types": sorted(kinds[qid]),
                    "labels": (n := sum(found.values())),
                    "options": sorted(options[qid]),
                    "distinct_labels": len(found),
                    "majority_share": max(found.values()) / n if n else None,
                }
                for qid, found in sorted(counts.items())
            },
        }
