"""Every exception steelyard raises on purpose.

    SteelyardError                 exit 2: something stopped us from measuring
      InputError (ValueError)      the caller's file, flag or argument
        DatasetError               a labelled dataset
        ReportError                a saved report or run folder
        PolicyError                a gate policy, a limit or a tolerance
        UnknownNameError           no engine, metric or slice of that name
      EngineError                  the engine's side
        MissingExtraError          an optional package is not installed
        InvalidAnswerError         a reply that breaks the contract
        EngineFailedError          a call that raised, or timed out
      IncomparableError            two artefacts are not the same measurement

A failed gate is never an exception: it is a verdict with exit code 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

MAX_SHOWN = 20


class SteelyardError(Exception):
    """Base of the tree; `str(error)` is one or more lines `place: fault; mend`."""


class InputError(SteelyardError, ValueError):
    """The caller's file, flag or argument is wrong."""

    @classmethod
    def from_faults(cls, faults: Sequence[str], total: int | None = None) -> InputError:
        """Join the faults of one file: the first 20 are shown, the rest counted.

        Parameters
        ----------
        faults : sequence of str
            One line each, in file order.
        total : int, optional
            How many there were, when `faults` holds only the first of them.
        """
        count = len(faults) if total is None else total
        lines = list(faults[:MAX_SHOWN])
        if count > len(lines):
            lines.append(f"... and {count - len(lines)} more fault(s)")
        return cls("\n".join(lines))


class DatasetError(InputError):
    """A labelled dataset cannot be used."""


class ReportError(InputError):
    """A saved report or run folder cannot be used."""


class PolicyError(InputError):
    """A gate policy, a limit or a tolerance cannot be used."""


class UnknownNameError(InputError):
    """A name that is not registered; the message offers the nearest ones."""

    @classmethod
    def among(cls, what: str, name: str, known: Iterable[str]) -> UnknownNameError:
        """Build the message for an unknown `name` of kind `what`."""
        names = sorted(known)
        near = get_close_matches(name, names, n=1)
        hint = f'; did you mean "{near[0]}"?' if near else ""
        return cls(f'no {what} named "{name}" ({", ".join(names)}){hint}')


class EngineError(SteelyardError):
    """The engine could not be set up or asked."""


class MissingExtraError(EngineError):
    """An engine needs a package that is not installed."""

    def __init__(self, engine: str, package: str, extra: str) -> None:
        super().__init__(f'engine "{engine}" needs {package}: pip install "steelyard[{extra}]"')


class InvalidAnswerError(EngineError):
    """A reply breaks the contract and the run was told to stop on errors."""


class EngineFailedError(EngineError):
    """A call raised or timed out and the run was told to stop on errors."""


class IncomparableError(SteelyardError):
    """What is on disk belongs to another measurement."""
