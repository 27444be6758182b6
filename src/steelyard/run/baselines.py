"""A reviewed report becomes the baseline of the runs to come."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from steelyard.core.comparison import Delta
from steelyard.errors import InputError, ReportError
from steelyard.formats.files import check_writable
from steelyard.formats.jsontext import one_line
from steelyard.formats.report import read_document, read_report
from steelyard.run.drift import IDENTITY, Drift, identity_of, metric_map
from steelyard.run.side import REPORT_FILE


class Update(msgspec.Struct, frozen=True):
    """A baseline about to be written.

    Attributes
    ----------
    data : bytes
        The report as it is.
    deltas : list of Delta
        How far each metric of the old baseline moves; empty for a first one.
    appear : list of str
        Metrics the old one does not have.
    identity : dict
        Key to old and new value, where they differ.
    """

    data: bytes
    deltas: list[Delta]
    appear: list[str]
    identity: dict[str, tuple[Any, Any]]


def plan_update(report: str | Path, target: str | Path) -> Update:
    """Check that a report may become a baseline, and say what would move.

    Parameters
    ----------
    report : path
        A report file or a run folder.
    target : path
        Where the baseline is, or is to be.

    Raises
    ------
    InputError
        The target is the report itself, or cannot be written.
    ReportError
        The report has errored rows, or measured nothing; or the old baseline cannot be read.
    """
    source = Path(report)
    source = source / REPORT_FILE if source.is_dir() else source
    name = one_line(report)
    check_writable(target)
    if Path(target).exists() and os.path.samefile(source, target):
        raise InputError(f"{name}: is the baseline itself; name another file with --to")
    document = read_report(source)
    _refuse_unfit(document, name)
    old = read_document(target) if Path(target).exists() else None
    data = source.read_bytes()
    if old is None:
        return Update(data, [], sorted(document["overall"]), {})
    drift = Drift(document, old, names=(name, one_line(target)))
    here, there = identity_of(document), identity_of(old)
    return Update(
        data,
        [delta for delta in drift.deltas({}) if not delta.ok],
        sorted(document["overall"].keys() - drift.baseline.keys()),
        {key: (there.get(key), here.get(key)) for key in IDENTITY if there.get(key) != here.get(key)},
    )


def _refuse_unfit(document: Mapping[str, Any], name: str) -> None:
    errored = document["config"].get("errored")
    if errored:
        raise ReportError(f"{name}: {len(errored)} errored row(s); a baseline needs a run without errors")
    counts = document.get("counts")
    if isinstance(counts, dict) and counts.get("rows_not_asked"):
        raise ReportError(f"{name}: {counts['rows_not_asked']} row(s) were not asked; finish the run first")
    if not metric_map(document, name, baseline=True):
        raise ReportError(f"{name}: measured nothing")
