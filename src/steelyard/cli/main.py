"""The command group and the one place where an exception becomes an exit code."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
from typing import Any

import click

from steelyard._version import __version__
from steelyard.errors import SteelyardError

COMMANDS = {
    "validate": "Check a labelled dataset; no engine is asked.",
    "run": "Score a labelled dataset on an engine.",
    "rescore": "Judge a run folder or a saved report again; no engine is asked.",
    "compare": "Hold a report against a baseline, or several runs against each other.",
    "baseline": "Keep the report that later runs are held against.",
    "audit": "Look for labels and rows that would mislead an evaluation.",
    "plan": "Say how many cases it takes to see what you want to see.",
    "metrics": "List the metrics, or say everything about some.",
    "engines": "List the engines and what each needs.",
    "doctor": "Check that an engine keeps its contract; no labels are needed.",
    "fake-server": "Serve every decision wire on this machine, with quirks, to try engines on.",
    "demo": "Score the embedded support messages and show what a report looks like.",
}


class LazyGroup(click.Group):
    """Commands whose module is imported when they are called, not when they are listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"steelyard.cli.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[Any, Any, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from steelyard.errors import UnknownNameError

            raise click.UsageError(str(UnknownNameError.among("command", args[0], COMMANDS)), ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80})
@click.version_option(__version__, prog_name="steelyard")
def cli() -> None:
    """Weigh typed-decision models: how good, how sure, how far to trust it.

    Exit codes: 0 done, 1 a measured quality failed, 2 nothing could be measured.
    """


class Terminated(KeyboardInterrupt):
    """SIGTERM, taken the way Ctrl-C is."""

    signal = 15


def _terminate(_number: int, _frame: object) -> None:
    raise Terminated


def main(argv: list[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    with contextlib.suppress(ValueError):
        signal.signal(signal.SIGTERM, _terminate)
    for stream in (sys.stdout, sys.stderr):
        # A code page that lacks a character shows its escape; it does not stop the run.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    code = _run(argv)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_stdout()
    sys.exit(code)


def _run(argv: list[str] | None) -> int:
    try:
        # Not `cli.main`: that one ends the process with 1 when a pipe is closed.
        arguments = sys.argv[1:] if argv is None else list(argv)
        with cli.make_context("steelyard", arguments) as context:
            result = cli.invoke(context)
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        error.show()
        return 2
    except SteelyardError as error:
        click.echo("\n".join(f"steelyard: {line}" for line in str(error).split("\n")), err=True)
        return 2
    except BrokenPipeError:
        _forget_stdout()
        return 0
    except (KeyboardInterrupt, click.Abort) as stop:
        click.echo("steelyard: stopped", err=True)
        return 128 + getattr(stop, "signal", 2)


def _forget_stdout() -> None:
    """Let the interpreter's last flush go nowhere: whoever read the output has left."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
