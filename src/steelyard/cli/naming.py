"""Flags that say which engine is asked, and the settings that have flags of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import click

from steelyard.cli.options import Finite, bundled, engine_tables
from steelyard.engines.presets import WAYS

if TYPE_CHECKING:
    from steelyard.engines._base import Engine


class Naming(NamedTuple):
    """The engine a command line names."""

    spec: str | None
    onnx: str | None
    calibration: str | None
    device: str | None
    revision: tuple[str, ...]
    max_cost: float | None
    cache: str | None
    over_limit: str | None
    subfolder: str | None
    max_len: int | None
    head_max_len: int | None
    unclamped: bool | None

    def engine(self, asking: dict[str, Any]) -> Engine:
        """The engine; ``--onnx``, and ``laya`` by itself, take the model out of how rows are asked.

        Raises
        ------
        UsageError
            Flags that do not go together.
        InputError, EngineError
            The engine refuses them.
        """
        from steelyard.engines.spec import make_engine

        if self.onnx is not None and self.spec is not None:
            raise click.UsageError("--onnx names an engine of its own; leave --engine out")
        if self.calibration is not None and self.onnx is None:
            raise click.UsageError("--calibration goes with --onnx")
        extra: dict[str, Any] = {
            name: getattr(self, name) for name in _SETTINGS if getattr(self, name) is not None
        }
        if self.revision:
            extra["revision"] = "+".join(self.revision)
        spec, tables = self.spec, engine_tables()
        if self.onnx is not None:
            spec = f"onnx:{self.onnx}"
            # The graph is the one device there is; the peer passes over it too.
            extra.pop("device", None)
            extra["model"], asking["model"] = asking.get("model"), None
        elif spec == "laya" and spec not in tables:
            spec, asking["model"] = f"laya:{asking.get('model') or 'auto'}", None
        if spec is None:
            said = "no --engine named: using lexical, a floor that understands nothing"
            click.echo(f"steelyard: {said}", err=True)
        return make_engine(spec or "lexical", tables, extra)


_SETTINGS = (
    "calibration", "device", "max_cost", "cache", "over_limit",
    "subfolder", "max_len", "head_max_len", "unclamped",
)  # fmt: skip
_NAMING = (
    click.option(
        "-e",
        "--engine",
        "spec",
        metavar="SPEC",
        help="NAME[:TARGET][,key=value], or a name from steelyard.toml.",
    ),
    click.option("--onnx", metavar="FILE", help="Ask an exported Laya checkpoint; --model names its folder."),
    click.option("--calibration", metavar="FILE", help="With --onnx: temperatures and bins to apply."),
    click.option("--subfolder", metavar="NAME", help="Where in a hub's repository the checkpoint is."),
    click.option("--max-len", type=click.IntRange(8), metavar="N", help="Tokens Laya reads of a sequence."),
    click.option(
        "--head-max-len", type=click.IntRange(8), metavar="N", help="Tokens of it for the question."
    ),
    click.option(
        "--unclamped",
        is_flag=True,
        default=None,
        help="Apply a checkpoint's temperatures as it says them, not clamped to 0.5 to 5.",
    ),
    click.option("--device", metavar="NAME", help="Where a local model runs, as cpu or cuda."),
    click.option(
        "--revision",
        multiple=True,
        metavar="SHA|NAME=SHA",
        help="Commit of checkpoints from the hub, or of one that the router knows by name; repeatable.",
    ),
    click.option(
        "--max-cost",
        type=Finite(0, above=True),
        metavar="MONEY",
        help="Stop a hosted engine before it costs more; the same command with --out takes the run up.",
    ),
    click.option(
        "--cache",
        type=click.Path(file_okay=False),
        metavar="DIR",
        help="Keep replies of a hosted engine, and ask for none twice.",
    ),
    click.option(
        "--over-limit",
        type=click.Choice(WAYS),
        help="Ask a hosted engine in parts what is over its limits: options by rounds, or the likest.",
    ),
)
naming = bundled("naming", Naming, Naming._fields, _NAMING, ())
"""Flags of the commands that ask an engine, handed over as one `Naming`."""
