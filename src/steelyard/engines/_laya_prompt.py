"""What a Laya encoder reads for a question about a state: token ids, and where its options begin."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from steelyard.core.questions import Question, described
from steelyard.engines._base import number_setting
from steelyard.errors import InputError, MissingExtraError
from steelyard.formats.jsontext import JsonFault, dumps, one_line, strict_loads

MOST_OPTION_TOKENS = 48
MOST_HEADS = 4096
"""Questions whose tokens are kept."""
LEAST_HEAD_TOKENS = 8
"""Instructions keep so many tokens, however many options there are."""
ROOM = 16
"""Where options leave less of the head than this, each is cut."""
USUAL = {"max_len": 512, "head_max_len": 192}
"""Lengths of a checkpoint that says none."""
UNSAID = {"false": "no, the statement does not hold", "true": "yes, the statement holds"}
"""What the sides of a yes/no question say where the author says nothing."""


def lengths(max_len: int | None, head_max_len: int | None) -> dict[str, int | None]:
    """The two lengths as settings name them.

    Raises
    ------
    InputError
        Not a whole number from 8 on.
    """
    named = {"max_len": max_len, "head_max_len": head_max_len}
    for name, value in named.items():
        if value is not None:
            number_setting(name, value, 8, 1_000_000, whole=True)
    return named


class Encoded(msgspec.Struct, frozen=True):
    """One question about one state: ids, the position of each option's marker, and what the state lost."""

    ids: list[int]
    markers: list[int]
    state_tokens: int
    dropped: int


class Prompt:
    """Renders questions and states for one checkpoint.

    Parameters
    ----------
    folder : path
        With `tokenizer/tokenizer.json` and `tokenizer/tokenizer_config.json`.
    max_len, head_max_len : int
        Tokens of a sequence, and of its question.

    Raises
    ------
    InputError
        The tokenizer cannot be read.
    MissingExtraError
        The package tokenizers is not installed.
    """

    def __init__(self, folder: str | Path, max_len: int, head_max_len: int) -> None:
        try:
            from tokenizers import Tokenizer
        except ImportError:
            raise MissingExtraError("onnx", "tokenizers", "onnx") from None
        place = Path(folder) / "tokenizer"
        try:
            config = strict_loads((place / "tokenizer_config.json").read_bytes())
            self._tokenizer = Tokenizer.from_file(str(place / "tokenizer.json"))
        except (OSError, JsonFault, ValueError) as error:
            raise InputError(f"{one_line(place)}: the tokenizer cannot be read: {one_line(error)}") from None
        except Exception as error:  # tokenizers raises bare exceptions of its own
            raise InputError(f"{one_line(place)}: the tokenizer cannot be read: {one_line(error)}") from None
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._mask_text = _token(config, "mask_token")
        names = ("cls_token", "sep_token", "mask_token", "pad_token")
        ids = [self._tokenizer.token_to_id(_token(config, name)) for name in names]
        if None in ids:
            raise InputError(f"{one_line(place)}: the tokenizer lacks {names[ids.index(None)]}")
        self._cls, self._sep, self._mask, self.pad = ids
        self._max_len, self._head_max_len = max_len, head_max_len
        self._heads: dict[bytes, tuple[list[int], list[int]]] = {}

    def state_ids(self, state: Any) -> list[int]:
        """Tokens of a state; what is no text is written as JSON."""
        return self._ids(state if isinstance(state, str) else json.dumps(state, ensure_ascii=False))

    def encoded(self, question: Question, body: Any, state: Any, ids: list[int]) -> Encoded:
        """Question and state as one sequence; a list keeps its end when it is too long, text its beginning.

        Raises
        ------
        InputError
            The options do not fit.
        """
        key = dumps(body)
        known = self._heads.get(key)
        if known is None:
            if len(self._heads) >= MOST_HEADS:
                self._heads.clear()
            known = self._heads[key] = self._head(question, body)
        head, markers = known
        room = max(0, self._max_len - len(head) - 1)
        kept = ids[max(0, len(ids) - room) :] if isinstance(state, list) else ids[:room]
        sequence = [*head, *kept, self._sep][: self._max_len]
        if markers[-1] >= self._max_len:
            raise InputError(
                f"question {question.qid}: its {len(markers)} options do not fit into {self._max_len} tokens"
            )
        return Encoded(sequence, markers, len(ids), len(ids) - len(kept))

    def _head(self, question: Question, body: Any) -> tuple[list[int], list[int]]:
        said = body["instructions"]
        text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
        instructions = self._ids(f"{question.kind} question: {text}")
        options = [
            [self._mask, *self._ids(f" {option}")[:MOST_OPTION_TOKENS]]
            for option in option_texts(question, body)
        ]
        order = body.get("option_order")
        options = [options[at] for at in order] if order is not None else options
        left = self._head_max_len - sum(map(len, options))
        if left < ROOM:
            each = max(4, (self._head_max_len - ROOM) // len(options))
            options = [option[:each] for option in options]
            left = self._head_max_len - sum(map(len, options))
        ids = [self._cls, *instructions[: max(LEAST_HEAD_TOKENS, left)], self._sep]
        markers = []
        for option in options:
            markers.append(len(ids))
            ids += option
        return [*ids, self._sep], markers

    def _ids(self, text: str) -> list[int]:
        found: list[int] = self._tokenizer.encode(
            text.replace(self._mask_text, " "), add_special_tokens=False
        ).ids
        return found


def option_texts(question: Question, body: Any) -> list[str]:
    """What the encoder reads for each option, in the question's own order."""
    if question.kind != "noul":
        return list(question.texts)
    words = body.get("labels") or {side: side for side in question.options}
    return [
        described(words[side].strip(), UNSAID[side] if text in (None, "") else text)
        for side, text in zip(question.options, question.descriptions, strict=True)
    ]


def _token(config: Any, name: str) -> str:
    found = config.get(name) if isinstance(config, dict) else None
    if isinstance(found, dict):
        found = found.get("content")
    return found if isinstance(found, str) else ""
