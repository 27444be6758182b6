"""A labelled dataset: checked once, then read again and again without being held in memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import UNSET

from steelyard.core.cases import Case
from steelyard.core.questions import QuestionSet
from steelyard.core.requests import Request
from steelyard.errors import MAX_SHOWN, DatasetError
from steelyard.formats.jsontext import JsonFault, dumps, one_line
from steelyard.formats.questions import questions_sha256
from steelyard.formats.rows import QuestionCache, Row, decode_row
from steelyard.formats.scan import scan
from steelyard.formats.source import LineSource


class Dataset:
    """Ordered cases and the digest of the bytes they came from.

    Use `Dataset.from_jsonl` or `Dataset.from_rows`; both check everything and raise with every
    fault found. Iterating yields `Case` objects, read from the source as they are wanted.

    Examples
    --------
    >>> question = {"type": "noul", "instructions": "Is it urgent?"}
    >>> data = Dataset.from_rows([{"state": "help!", "questions": {"q": question}, "expected": {"q": True}}])
    >>> len(data), next(iter(data)).expected
    (1, {'q': True})
    """

    def __init__(self, source: LineSource) -> None:
        identities: set[str] = set()
        self.source = source
        self.columns, findings = scan(source, identities)
        if findings.n_faults:
            raise DatasetError.from_faults(findings.faults, findings.n_faults)
        self.warnings = findings.warnings
        self.n_warnings = findings.n_warnings
        self.questions_sha256 = questions_sha256(identities)
        self._cache: QuestionCache[None] = QuestionCache(lambda _questions, _kept: None)
        self._places: tuple[array[int], array[int]] | None = None
        self._sha256: str | None = None

    @classmethod
    def from_jsonl(cls, path: str | Path) -> Dataset:
        """Read and check a JSON Lines file; ``.gz`` and ``-`` (standard input) are understood.

        Raises
        ------
        DatasetError
            Unreadable, without rows, or with faults: all of them in one message.
        """
        return cls(LineSource.open(path))

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, Any]], name: str = "rows") -> Dataset:
        """Check rows given as mappings, the way a file of them would be.

        Raises
        ------
        DatasetError
            As `from_jsonl`; places count rows from 1.
        """
        lines = []
        for number, row in enumerate(rows, 1):
            try:
                lines.append(dumps(dict(row)))
            except (TypeError, ValueError, JsonFault) as error:
                raise DatasetError(f"{one_line(name)}:{number}: not JSON: {one_line(error)}") from None
        return cls(LineSource.from_bytes(b"\n".join(lines), one_line(name)))

    @property
    def name(self) -> str:
        """What messages call the source."""
        return self.source.name

    @property
    def sha256(self) -> str:
        """Digest of the bytes, unpacked, so that a gzip copy is the same dataset."""
        if self._sha256 is None:
            self._sha256 = self.source.sha256()
        return self._sha256

    def __len__(self) -> int:
        return len(self.columns)

    def __iter__(self) -> Iterator[Case]:
        return map(self.case, range(len(self)))

    def line_of(self, row: int) -> int:
        """Physical line of a row, from 1."""
        return self.columns.line_of(row)

    def place(self, row: int) -> str:
        """``file:line`` of a row, for messages."""
        return f"{self.name}:{self.line_of(row)}"

    def read(self, row: int) -> tuple[Row, QuestionSet]:
        """The decoded line of a row and its parsed questions."""
        offsets, sizes = self._located()
        decoded = decode_row(self.source.read_near(offsets[row], sizes[row]))
        code = self.columns.asked[row]
        if code >= 0:
            return decoded, self.columns.question_sets[code]
        return decoded, self._cache[bytes(decoded.questions)][0]

    def questions_of(self, row: int) -> QuestionSet:
        """The questions of a row, without reading it where they are shared by many."""
        code = self.columns.asked[row]
        return self.columns.question_sets[code] if code >= 0 else self.read(row)[1]

    def case(self, row: int) -> Case:
        """One case by its position."""
        read, questions = self.read(row)
        return Case(
            row,
            self.line_of(row),
            read.state,
            questions,
            read.expected,
            tuple(map(str, read.tags)) if read.tags else (),
            None if read.language is UNSET or read.language is None else str(read.language),
            read.model or None,
            None if read.id is UNSET else read.id,
            None if read.group is UNSET else read.group,
        )

    def request(self, row: int, model: str | None = None) -> Request:
        """What an engine is sent for a row; `model` overrides the row's own pin."""
        read, questions = self.read(row)
        return Request(
            row, read.state, questions, None if read.id is UNSET else read.id, model or read.model or None
        )

    def _located(self) -> tuple[array[int], array[int]]:
        """Byte offset and size of every row's text; found when first wanted."""
        if self._places is None:
            offsets, sizes = array("q"), array("q")
            blocks = self.columns.blocks
            for offset, size in zip(blocks[2::4], blocks[3::4], strict=True):
                for line in self.source.read_at(offset, size).split(b"\n"):
                    if line.strip():
                        offsets.append(offset)
                        sizes.append(len(line))
                    offset += len(line) + 1
            self._places = (offsets, sizes)
        return self._places


def shown_warnings(dataset: Dataset) -> list[str]:
    """The first warnings of a dataset, and a count of the rest."""
    shown = dataset.warnings[:MAX_SHOWN]
    rest = dataset.n_warnings - len(shown)
    return [*shown, f"... and {rest} more warning(s)"] if rest else shown
