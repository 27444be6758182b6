"""A Laya export on ONNX Runtime: no torch, no laya."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from steelyard.core.questions import KINDS, Question, option_bucket
from steelyard.core.requests import Ability, CallOptions, Facts, Reply, Request
from steelyard.engines._base import Engine
from steelyard.engines._laya_logits import softmax
from steelyard.engines._laya_prompt import USUAL, Encoded, Prompt, lengths
from steelyard.errors import EngineError, InputError, MissingExtraError
from steelyard.formats.checkpoint import (
    CONFIG,
    is_checkpoint,
    no_commit,
    read_config,
    read_object,
    temperatures,
)
from steelyard.formats.jsontext import one_line

if TYPE_CHECKING:
    from steelyard.formats.dataset import Dataset

DIGITS = 4
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
Shares = NDArray[Any]


class OnnxEngine(Engine):
    """An exported checkpoint; its folder gives configuration and tokenizer."""

    name = "onnx"
    summary = "A Laya export on ONNX Runtime, without torch: model=FOLDER or HUB_ID names its checkpoint."
    needs = 'pip install "steelyard[onnx]"'
    target_help = "FILE"
    abilities = Ability.BATCH | Ability.MIN_CONFIDENCE | Ability.LOGITS

    def __init__(
        self,
        target: str | None = None,
        *,
        model: str | None = None,
        calibration: str | None = None,
        revision: str | None = None,
        subfolder: str | None = None,
        max_len: int | None = None,
        head_max_len: int | None = None,
        exact: bool = False,
        unclamped: bool = False,
        **settings: Any,
    ) -> None:
        super().__init__(target, **settings)
        self._model, self._exact, self._unclamped = model, bool(exact or unclamped), bool(unclamped)
        self._folder, self._commit = checkpoint_of(model, revision, subfolder)
        self._config = read_config(self._folder)
        self._lengths: dict[str, Any] = {
            name: self._config.get(name, USUAL[name]) if value is None else value
            for name, value in lengths(max_len, head_max_len).items()
        }
        self._binning: Mapping[str, Any] = {}
        self._calibration = calibration
        if calibration is not None:
            found = _calibration(calibration)
            self._config = self._config | found
            self._binning = found.get("binning_map") or {}
        self._temperatures = temperatures(self._config)
        try:
            with Path(str(target)).open("rb") as stream:
                self.revision = f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}"
        except OSError as error:
            raise InputError(f"{one_line(target)}: cannot be read: {error.strerror or error}") from None
        self._session: Any = None

    @property
    def settings(self) -> Mapping[str, Any]:
        return {
            "model": self._model,
            "model_revision": self._commit,
            "calibration": self._calibration,
            **self._lengths,
            "probabilities": "exact" if self._exact else "rounded",
            "unclamped": self._unclamped,
            "temperatures": msgspec.to_builtins(self._temperatures),
        }

    def prepare(self, dataset: Dataset, options: CallOptions) -> None:
        if self._session is not None:
            return
        try:
            import onnxruntime
        except ImportError:
            raise MissingExtraError(self.name, "onnxruntime", "onnx") from None
        self._prompt = Prompt(self._folder, **self._lengths)
        try:
            self._session = onnxruntime.InferenceSession(str(self.target), providers=["CPUExecutionProvider"])
        except Exception as error:
            raise EngineError(f"{one_line(self.target)}: is no export: {one_line(error)}") from error

    def answer(self, requests: Sequence[Request], options: CallOptions) -> Sequence[Reply]:
        encoded: list[list[Encoded]] = []
        for request in requests:
            ids = self._prompt.state_ids(request.state)
            bodies = request.questions.bodies
            encoded.append(
                [
                    self._prompt.encoded(question, bodies[qid], request.state, ids)
                    for qid, question in request.questions.questions.items()
                ]
            )
        kinds = [question.code for request in requests for question in request.questions.questions.values()]
        scores = self._scores([one for own in encoded for one in own], kinds) if kinds else []
        replies, at = [], 0
        for request, own in zip(requests, encoded, strict=True):
            answers = {}
            for qid, question in request.questions.questions.items():
                order = request.questions.bodies[qid].get("option_order")
                slots = scores[at]
                at += 1
                answers[qid] = self._answer(question, slots if order is None else slots[np.argsort(order)])
            replies.append(self._reply(request, own, answers, options.min_confidence))
        return replies

    def _scores(self, items: Sequence[Encoded], kinds: Sequence[int]) -> list[Shares]:
        """Raw scores of the options of each sequence, in slot order."""
        n, longest = len(items), max(len(one.ids) for one in items)
        # The exported head compares two options, so there are always two columns.
        width = max(2, *(len(one.markers) for one in items)) if items else 2
        ids = np.full((n, longest), self._prompt.pad, np.int64)
        seen, places = np.zeros((n, longest), np.int64), np.zeros((n, width), np.int64)
        there = np.zeros((n, width), bool)
        for row, one in enumerate(items):
            ids[row, : len(one.ids)], seen[row, : len(one.ids)] = one.ids, 1
            places[row, : len(one.markers)], there[row, : len(one.markers)] = one.markers, True
        feeds = {
            "input_ids": ids,
            "attention_mask": seen,
            "marker_pos": places,
            "marker_mask": there,
            "qtype": np.array(kinds, np.int64),
        }
        (found,) = self._session.run(["logits"], feeds)
        # Rounded answers are worked out as the library does it, in single precision: the last digit is its.
        kind = np.float64 if self._exact else np.float32
        return [np.asarray(found[row, : len(one.markers)], kind) for row, one in enumerate(items)]

    def _answer(self, question: Question, scores: Shares) -> dict[str, Any]:
        heat = self._temperatures.of(question.kind, len(scores), clamped=not self._unclamped)
        shares = softmax(scores, heat)
        found: dict[str, Any] = {"type": KINDS[question.code]}
        top = self._binned(question.kind, len(shares), float(shares.max()))
        if question.kind == "noul":
            yes = self._shown(float(shares[1]))
            return found | {
                "noul": yes,
                "confidence": self._shown(float(shares.max())),
                "answer_confidence": top,
            }
        found |= {"confidence": self._shown(concentration(shares)), "answer_confidence": top}
        found["probabilities"] = {
            option: self._shown(share)
            for option, share in zip(question.options, shares.tolist(), strict=True)
        }
        if question.kind == "choice":
            return found | {"choice": question.options[int(shares.argmax())]}
        return found | {"score": self._shown(float((np.arange(len(shares)) * shares).sum()))}

    def _binned(self, kind: str, options: int, top: float) -> float:
        """Confidence through the calibration's bins, where it has some for this many options."""
        bins = self._binning.get(option_bucket(kind, options))
        values = bins.get("values") if isinstance(bins, dict) else None
        if isinstance(values, list) and values:
            top = float(values[min(len(values) - 1, max(0, math.floor(top * len(values))))])
        return self._shown(top)

    def _shown(self, value: float) -> float:
        return value if self._exact else round(value, DIGITS)

    def _reply(
        self, request: Request, own: Sequence[Encoded], answers: dict[str, Any], least: float | None
    ) -> Reply:
        for body in answers.values() if least is not None else ():
            below = body["answer_confidence"] < (least or 0.0)
            body |= {"abstention": "abstained" if below else "passed", "abstention_threshold": least}
            if below:
                body["low_confidence"] = True
        facts = Facts(
            input_tokens=sum(len(one.ids) for one in own),
            output_tokens=0,
            truncated=any(one.dropped for one in own),
        )
        return Reply(request.row, answers, "laya-onnx", facts=facts)


def concentration(shares: Shares) -> float:
    """1 less the entropy of a distribution over that of the uniform one; 1 with a single option.

    >>> round(concentration(np.array([0.5, 0.5])), 6), concentration(np.array([1.0]))
    (0.0, 1.0)
    """
    if len(shares) < 2:
        return 1.0
    kept = shares[shares > 0.0]
    entropy = -float((kept * np.log(kept)).sum())
    return min(1.0, max(0.0, 1.0 - entropy / math.log(len(shares))))


def checkpoint_of(model: str | None, revision: str | None, subfolder: str | None) -> tuple[Path, str | None]:
    """Folder of the checkpoint an export came from, and its commit when it is the hub's.

    Raises
    ------
    InputError
        None is named, the folder holds none, or a revision is asked of a folder.
    MissingExtraError, EngineError
        As `downloaded`.
    """
    if model is not None and _HUB_ID.fullmatch(model) and not Path(model).exists():
        return downloaded(model, revision, subfolder)
    folder = Path(model or "") / (subfolder or "")
    if model is None or not is_checkpoint(folder):
        raise InputError(
            'engine "onnx" needs model=FOLDER or HUB_ID, the checkpoint the export came from: its '
            "configuration and tokenizer are read there"
        )
    no_commit(revision)
    return folder, None


def downloaded(model: str, revision: str | None, subfolder: str | None) -> tuple[Path, str]:
    """Configuration and tokenizer of a checkpoint on the hub, or in its cache: their folder and the commit.

    Raises
    ------
    MissingExtraError
        The package huggingface_hub is not installed.
    EngineError
        No such checkpoint, or the hub cannot be reached and the cache has none.
    """
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise MissingExtraError("onnx", "huggingface_hub", "onnx") from None
    inside = f"{subfolder}/" if subfolder else ""
    try:
        found = snapshot_download(
            model, revision=revision, allow_patterns=[inside + CONFIG, f"{inside}tokenizer/*"]
        )
    except Exception as error:
        raise EngineError(
            f"{one_line(model)} is no folder, and cannot be had from the hub: {one_line(error)}"
        ) from error
    return Path(found) / inside, Path(found).name


def _calibration(path: str) -> dict[str, Any]:
    found = read_object(Path(path), "a calibration")
    if not isinstance(found.get("temperature"), list):
        raise InputError(f"{one_line(path)}: a calibration is an object with a list of temperatures")
    known = ("temperature", "temperature_by_options", "binning_map")
    return {name: found[name] for name in known if name in found}
