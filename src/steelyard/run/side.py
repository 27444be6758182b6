"""One run as a comparison sees it: its document, its judged table, and who its rows are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from steelyard.core.requests import Failure, Reply
from steelyard.errors import ReportError, SteelyardError
from steelyard.formats.dataset import Dataset
from steelyard.formats.garbage import collector_paused
from steelyard.formats.jsontext import digest, one_line
from steelyard.formats.replies import encode_reply, parse_replies
from steelyard.formats.report import RowKey, align_cases, read_document, rows_of
from steelyard.metrics.decisions import Decisions
from steelyard.run.collector import Collector
from steelyard.run.drift import identity_of
from steelyard.run.judge import join
from steelyard.run.log import dataset_path
from steelyard.run.report import Report
from steelyard.run.saved import read_saved_run

REPORT_FILE = "report.json"


class Side(msgspec.Struct, kw_only=True):
    """One run as a comparison sees it.

    Attributes
    ----------
    name : str
    document : mapping
        The report, or a bare map of metrics; of a run just made it is without cases.
    table : Decisions or None
        `lacking` says why there is none.
    dataset : Dataset or None
        Where states can be read; None when it is not at hand.
    keys : list of RowKey
        Of each row of the table's dataset, where there is no dataset.
    live : bool
        Whether `table` is the run itself, not read back from a document.
    """

    name: str
    document: Mapping[str, Any]
    table: Decisions | None = None
    lacking: str | None = None
    dataset: Dataset | None = None
    keys: list[RowKey] | None = None
    live: bool = False

    @property
    def config(self) -> dict[str, Any]:
        """The document's config, with identity keys from its top level."""
        return identity_of(self.document)

    @property
    def named(self) -> bool:
        """Whether each row can say which one it is."""
        return self.keys is None or all(key.row is not None or key.id is not None for key in self.keys)

    def row_keys(self) -> list[RowKey]:
        """What each dataset row says of itself, states not digested."""
        if self.keys is None:
            assert self.dataset is not None
            self.keys = [RowKey(case.row, case.id, None) for case in self.dataset]
        return self.keys

    def digest_of(self, row: int) -> str | None:
        """Digest of a row's state, None when it is not known."""
        if self.dataset is not None:
            return digest(self.dataset.case(row).state)
        assert self.keys is not None
        return self.keys[row].state_sha256


def side_of(report: Report, name: str = "this run") -> Side:
    """A run just made, or judged again."""
    return Side(name=name, document=report.document(), table=report.table, dataset=report.dataset, live=True)


def read_side(path: str | Path, data: Dataset | None = None, near: Dataset | None = None) -> Side:
    """A run folder, a report file, or a file with a bare map of metrics.

    Parameters
    ----------
    path : path
    data : Dataset, optional
        The dataset of the run. Without one, `near` and the place the run names are looked at, and used
        when their bytes are the run's.
    near : Dataset, optional

    Raises
    ------
    ReportError
        Unreadable, or not an object; a folder that is no finished run.
    IncomparableError
        The folder's run was made on another dataset than `data`.
    """
    folder, name = Path(path), one_line(path)
    if not folder.is_dir():
        return document_side(read_document(path), name, data, near)
    if not (folder / REPORT_FILE).is_file():
        raise ReportError(f"{name}: holds no {REPORT_FILE}; finish the run, or rescore it, first")
    document = read_document(folder / REPORT_FILE, cases=False)
    dataset = data or _at_hand(dataset_path(folder), identity_of(document), near)
    if dataset is None:
        return document_side(read_document(folder / REPORT_FILE), name, None)
    table = read_saved_run(folder, dataset).table(dataset)
    return Side(name=name, document=document, table=table, dataset=dataset, live=True)


def document_side(
    document: Mapping[str, Any], name: str, data: Dataset | None = None, near: Dataset | None = None
) -> Side:
    """A report as a document: its cases, where it has some, are judged again."""
    side = Side(name=name, document=document)
    cases = document.get("cases")
    if not isinstance(cases, list) or not cases:
        side.lacking = f"{name} holds no cases"
        return side
    config = side.config
    dataset = data or _at_hand(config.get("dataset"), config, near)
    try:
        with collector_paused():
            _judge_cases(side, dataset, required=data is not None)
    except (SteelyardError, AttributeError, KeyError, TypeError, ValueError) as error:
        if data is not None:
            raise
        side.lacking = f"the cases of {name} cannot be judged: {one_line(error)}"
    return side


def _judge_cases(side: Side, dataset: Dataset | None, required: bool) -> None:
    document, name = side.document, side.name
    found = None if dataset is None else _aligned(dataset, document, name, required)
    if found is not None and dataset is not None:
        side.table, side.dataset = _judged(dataset, found), dataset
    else:
        rows, replies, side.keys = rows_of(document, name)
        side.table = _judged(Dataset.from_rows(rows, name), replies)


def _at_hand(path: Any, config: Mapping[str, Any], near: Dataset | None) -> Dataset | None:
    """The dataset a run was made on, when its bytes are near, or at the place the run names."""
    wanted = config.get("dataset_sha256")
    if near is not None and near.sha256 == wanted:
        return near
    if not isinstance(path, str) or path == "-" or not Path(path).is_file():
        return None
    try:
        found = Dataset.from_jsonl(path)
    except SteelyardError:
        return None
    return found if found.sha256 == wanted else None


def _aligned(dataset: Dataset, document: Mapping[str, Any], name: str, required: bool) -> list[Reply] | None:
    """A reply for every row of the run: those the report has none for failed. None where cases do not fit."""
    try:
        replies = align_cases(dataset, document, name)
    except ReportError:
        if required:
            raise
        return None
    counts = document.get("counts")
    rows = counts.get("rows") if isinstance(counts, dict) else None
    asked = rows if type(rows) is int and 0 < rows <= len(dataset) else len(dataset)
    lost = Failure("no_recorded_reply", "the report has no answer for this row")
    return [replies.get(row) or Reply(row, failure=lost) for row in range(asked)]


def _judged(dataset: Dataset, replies: Sequence[Reply]) -> Decisions:
    collector = Collector(dataset, len(replies))
    collector.take_all(parse_replies(b"\n".join(encode_reply(reply, None, 1) for reply in replies)))
    asked = collector.finish()
    return join(dataset.columns, asked.answers, asked.facts, asked.labels)
