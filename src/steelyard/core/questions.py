"""Questions: what is asked of a state, and what a label for it may be."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec

KINDS = ("choice", "score", "noul")
SIDES = ("false", "true")
_NAN = float("nan")
SOFT_ROUNDING = 0.01
"""How far from 1 the sum of a label that is a distribution may be."""
Label = str | bool | int | float


def scalar_text(value: object) -> str:
    """Text of a scalar option label as JSON keys spell it (``1`` -> "1", ``True`` -> "true")."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def described(name: str, description: Any) -> str:
    """``name``, or ``name: description`` when there is one."""
    if description is None or description == "":
        return name
    text = description if isinstance(description, str) else json.dumps(description, ensure_ascii=False)
    return f"{name}: {text}"


class Question(msgspec.Struct, eq=False):
    """One typed question; treat it as frozen.

    Attributes
    ----------
    qid : str
        Its id inside the case.
    instructions : object
        The prompt; part of the question's identity.
    options : tuple of str
        Keys of a probability map in the question's own order: labels, level indices or sides.
    descriptions : sequence
        What the author wrote beside each option, null where nothing.
    names : tuple of str
        For a noul question the words for false and true.
    """

    qid: str
    instructions: Any
    options: tuple[str, ...]
    descriptions: Sequence[Any]
    names: tuple[str, ...] = ()
    _index: dict[str, int] | None = None

    kind: ClassVar[str]
    code: ClassVar[int]
    label_type: ClassVar[type]
    """Commonest type of a label; `gold` knows the others."""

    @property
    def index(self) -> dict[str, int]:
        """Option key to its position; built when first wanted, as many questions are seen once."""
        if self._index is None:
            self._index = {option: i for i, option in enumerate(self.options)}
        return self._index

    @property
    def texts(self) -> tuple[str, ...]:
        """What each option says, as a model would read it."""
        return tuple(map(described, self.options, self.descriptions))

    @property
    def limit(self) -> float:
        """Largest value a score or noul answer may take; NaN for a choice."""
        return len(self.options) - 1.0 if self.code else _NAN

    def label_index(self) -> dict[Any, int]:
        """Labels of `label_type` to their gold value."""
        return self.index

    def gold(self, label: object) -> float | None:
        """Position (choice), level (score) or 0/1 (noul) of a label; None when it is not one.

        Of a distribution over the options: the likeliest, the first where several are; for a score
        the expected level.
        """
        if type(label) is dict:
            mass = self.soft(label)
            return None if mass is None else self._centre(mass)
        return self._hard(label)

    def _hard(self, label: object) -> float | None:
        raise NotImplementedError

    def _centre(self, mass: Sequence[float]) -> float:
        return float(max(range(len(mass)), key=mass.__getitem__))

    def soft(self, label: Mapping[str, Any]) -> list[float] | None:
        """Mass a label that is a distribution gives each option; None when it is not one.

        Options it does not name have none. Sums within 0.01 of 1 are scaled to 1.
        """
        values = list(label.values())
        if not all(type(value) in (int, float) and 0.0 <= value <= 1.0 for value in values):
            return None
        total = float(sum(values))
        if abs(total - 1.0) > SOFT_ROUNDING + 1e-9 or not label.keys() <= self.index.keys():
            return None
        return [float(label.get(option, 0.0)) / total for option in self.options]


class ChoiceQuestion(Question, eq=False):
    """Pick one of the options."""

    kind = "choice"
    code = 0
    label_type = str

    def _hard(self, label: object) -> float | None:
        return self.index.get(label) if type(label) is str else None


class ScoreQuestion(Question, eq=False):
    """Place the state on ordered levels, index 0 first."""

    kind = "score"
    code = 1
    label_type = int

    def label_index(self) -> dict[Any, int]:
        return {level: level for level in range(len(self.options))}

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(
            described(f"level {key}", text) for key, text in zip(self.options, self.descriptions, strict=True)
        )

    def _hard(self, label: object) -> float | None:
        if type(label) is int or type(label) is float:
            return label if 0 <= label <= len(self.options) - 1 else None
        return None

    def _centre(self, mass: Sequence[float]) -> float:
        return sum(level * share for level, share in enumerate(mass))


class NoulQuestion(Question, eq=False):
    """Yes or no."""

    kind = "noul"
    code = 2
    label_type = bool

    def label_index(self) -> dict[Any, int]:
        return {False: 0, True: 1}

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(map(described, self.names, self.descriptions))

    def _hard(self, label: object) -> float | None:
        return 1.0 if label is True else 0.0 if label is False else None


class QuestionSet(msgspec.Struct, frozen=True, eq=False):
    """All questions of a case, in the order they were written.

    Attributes
    ----------
    questions : mapping of str to Question
        By id, in the dataset's order.
    bodies : mapping
        The authored bodies: what an engine is sent.
    n_keys : int
        How many object keys the authored JSON holds, at every depth.
    raw : bytes
        The authored JSON text.
    limits : tuple of float
        `limit` of each question.
    """

    questions: dict[str, Question]
    bodies: Mapping[str, Any]
    n_keys: int
    raw: bytes
    limits: tuple[float, ...]


def option_bucket(kind: str, n_options: int) -> str:
    """Name of the option-count bucket, such as ``choice:3-5``.

    >>> option_bucket("choice", 2), option_bucket("choice", 5), option_bucket("score", 11)
    ('choice:2', 'choice:3-5', 'score:11+')
    """
    for limit, name in ((2, "2"), (5, "3-5"), (10, "6-10")):
        if n_options <= limit:
            return f"{kind}:{name}"
    return f"{kind}:11+"
