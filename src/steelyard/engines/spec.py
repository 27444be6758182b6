"""Engines by name: ``NAME[:TARGET][,key=value]``."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any

import msgspec

from steelyard.engines._base import ENGINES, Engine
from steelyard.errors import InputError, UnknownNameError
from steelyard.formats.jsontext import quote


class EngineSpec(msgspec.Struct, frozen=True):
    """A parsed spec: which engine, what it is pointed at, and its settings."""

    name: str
    target: str | None
    settings: dict[str, Any]


def parse_spec(text: str) -> EngineSpec:
    """Parse ``NAME[:TARGET][,key=value]``; values are JSON where they parse, else text.

    Raises
    ------
    InputError
        No name, or a setting that is not ``key=value``.

    Examples
    --------
    >>> parse_spec("scripted,accuracy=0.9,seed=3")
    EngineSpec(name='scripted', target=None, settings={'accuracy': 0.9, 'seed': 3})
    >>> parse_spec("replay:old/answers.jsonl").target
    'old/answers.jsonl'
    """
    head, *pairs = text.split(",")
    name, colon, target = head.partition(":")
    if not name.strip() or (colon and not target):
        raise InputError(f"engine {quote(text)}: write NAME[:TARGET][,key=value]")
    settings: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip().isidentifier():
            raise InputError(f"engine {quote(text)}: {quote(pair)} is not key=value")
        if key.strip() in settings:
            raise InputError(f"engine {quote(text)}: setting {quote(key.strip())} is given twice")
        settings[key.strip()] = _value(value)
    return EngineSpec(name.strip(), target or None, settings)


def _value(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=str)
    except ValueError:
        return text


def make_engine(
    text: str,
    named: Mapping[str, Mapping[str, Any]] | None = None,
    extra: Mapping[str, Any] | None = None,
) -> Engine:
    """Make the engine a spec describes.

    Parameters
    ----------
    text : str
        A spec, or the name of an entry of `named`.
    named : mapping, optional
        Engines of `steelyard.toml`: each a table with `spec` and settings of its own; settings in
        `text` win over them.
    extra : mapping, optional
        Settings that win over both.

    Raises
    ------
    UnknownNameError
        No engine of that name, here or among the installed entry points.
    InputError, EngineError
        The engine refuses its target or settings.
    """
    spec = parse_spec(text)
    if named and spec.name in named:
        entry = dict(named[spec.name])
        inner = entry.pop("spec", None)
        if not isinstance(inner, str):
            raise InputError(f'engine {quote(spec.name)} in steelyard.toml needs spec = "NAME[:TARGET]"')
        base = parse_spec(inner)
        settings = base.settings | entry | spec.settings
        spec = EngineSpec(base.name, spec.target or base.target, settings)
    return engine_class(spec.name)(spec.target, **(spec.settings | dict(extra or {})))


def engine_class(name: str) -> type[Engine]:
    """The class behind an engine name; entry points are asked only for names we do not ship."""
    if name in ENGINES:
        module, attribute = ENGINES[name]
        found: type[Engine] = getattr(importlib.import_module(module), attribute)
        return found
    for point in entry_points(group="steelyard.engines"):
        if point.name == name:
            loaded: type[Engine] = point.load()
            return loaded
    raise UnknownNameError.among("engine", name, ENGINES)
