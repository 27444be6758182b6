"""Flags that several commands share, and how their values are read."""

from __future__ import annotations

import functools
import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from steelyard.errors import InputError

if TYPE_CHECKING:
    from steelyard.metrics.view import Settings

SLICES = ("language", "model", "qid", "tag", "type", "option_count")


class Finite(click.ParamType):  # type: ignore[type-arg]
    """A finite number inside a range."""

    name = "number"

    def __init__(self, low: float = -math.inf, high: float = math.inf, *, above: bool = False) -> None:
        self.low, self.high, self.above = low, high, above

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if (
            not math.isfinite(number)
            or number < self.low
            or number > self.high
            or (self.above and number == self.low)
        ):
            self.fail(f"{value!r} is not {self._wanted()}", param, ctx)
        return number

    def _wanted(self) -> str:
        if self.high < math.inf:
            return f"a number from {self.low:g} to {self.high:g}"
        return f"a number {'above' if self.above else 'of at least'} {self.low:g}"


class Judging(NamedTuple):
    """How answers are judged, and where the report goes."""

    bins: int
    within: tuple[float, ...]
    slices: tuple[str, ...]
    json_path: str | None
    markdown_path: str | None
    no_cases: bool
    every: bool
    deep: tuple[str, ...]
    resamples: int
    seed: int

    def settings(self) -> Settings:
        """The part that moves numbers."""
        from steelyard.metrics.view import Settings

        return Settings(
            bins=self.bins,
            score_within=self.within,
            deep=self.deep,
            resamples=self.resamples,
            seed=self.seed,
        )


_JUDGING = (
    click.option(
        "--bins",
        type=click.IntRange(1, 10_000),
        default=15,
        show_default=True,
        help="Bins of the calibration error.",
    ),
    click.option(
        "--score-within",
        "within",
        type=Finite(0),
        multiple=True,
        metavar="TOL",
        help="Also measure how many scores are within TOL levels. Repeatable.",
    ),
    click.option(
        "--slice", "slices", type=click.Choice(SLICES), multiple=True, help="Show this slice. Repeatable."
    ),
    click.option(
        "--json",
        "json_path",
        type=click.Path(dir_okay=False),
        metavar="FILE",
        help="Write the report, a laya-evals-report/1 document.",
    ),
    click.option(
        "--markdown",
        "markdown_path",
        type=click.Path(dir_okay=False),
        metavar="FILE",
        help="Write the report as Markdown.",
    ),
    click.option("--no-cases", is_flag=True, help="Leave single answers out of the report file."),
    click.option("--all", "every", is_flag=True, help="Show every metric, not only the main ones."),
    click.option(
        "--deep",
        type=click.Choice(SLICES),
        multiple=True,
        help="Measure the dear metrics on these slices too. Repeatable.",
    ),
    click.option(
        "--resamples",
        type=click.IntRange(0, 1_000_000),
        default=0,
        metavar="N",
        help="Take overall intervals of ranked metrics from N resamples of the cases.",
    ),
    click.option(
        "--seed", type=click.IntRange(0), default=0, show_default=True, help="Of everything drawn at random."
    ),
)


def bundled(
    name: str,
    record: Callable[..., Any],
    fields: Sequence[str],
    options: Sequence[Any],
    outputs: Sequence[str],
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Flags of several commands, handed over as one record under `name`; its outputs are checked first."""

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(command)
        def gathered(**flags: Any) -> int:
            found = record(**{field: flags.pop(field) for field in fields})
            check_outputs([getattr(found, output) for output in outputs])
            return command(**{name: found}, **flags)

        result: Callable[..., int] = gathered
        for option in reversed(options):
            result = option(result)
        return result

    return decorate


judging = bundled("judging", Judging, Judging._fields, _JUDGING, ("json_path", "markdown_path"))
"""Flags of every command that ends in a report, handed over as one `Judging`."""


def engine_tables() -> dict[str, Mapping[str, Any]]:
    """Named engines of `steelyard.toml` in the working folder; none without the file.

    Raises
    ------
    InputError
        The file is not TOML, or an engine in it is not a table.
    """
    path = Path("steelyard.toml")
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"steelyard.toml: {error}") from None
    engines = document.get("engines", {})
    if not isinstance(engines, dict) or not all(isinstance(entry, dict) for entry in engines.values()):
        raise InputError(
            'steelyard.toml: [engines] holds tables, as [engines.mine] spec = "python:module:attr"'
        )
    return engines


def check_outputs(paths: Sequence[str | None]) -> None:
    """Refuse outputs that could not be written, before any work is done."""
    from steelyard.formats.files import check_writable

    for path in paths:
        if path is not None:
            check_writable(path)
