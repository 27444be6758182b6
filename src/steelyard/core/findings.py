"""What an audit finds in a labelled dataset."""

from __future__ import annotations

from typing import Any

import msgspec


class Disagreement(msgspec.Struct, frozen=True):
    """A label that runs contradict.

    Attributes
    ----------
    place : str
        File and line.
    row : int
    question : str
    state : str
        Its beginning.
    expected, answer : object
        The label, and what most of the runs that contradict it say.
    runs, of : int
        Runs that give this answer, and runs that scored the question.
    confidence : float
        Mean over those runs of the probability of the answer less that of the label.
    """

    place: str
    row: int
    question: str
    state: str
    expected: Any
    answer: Any
    runs: int
    of: int
    confidence: float


class Conflict(msgspec.Struct, frozen=True):
    """One state with different labels for one question; states are equal but for case and spaces."""

    question: str
    state: str
    labels: dict[str, list[str]]
    """Each label, and the places that give it."""


class NearDuplicate(msgspec.Struct, frozen=True):
    """Two rows that count as independent though their states are nearly the same."""

    first: str
    second: str
    similarity: float
    state: str
    same_labels: bool


class Balance(msgspec.Struct, frozen=True):
    """Labels of a question: how many, how uneven.

    `effective` is ``1 / sum of squared shares``: as many labels, all equally common, would be this
    uneven.
    """

    question: str
    n: int
    labels: int
    majority: str
    majority_share: float
    effective: float
    rare: list[str]
    """Labels with fewer than five cases."""
    never: list[str]
    """Options no case has for its label."""
