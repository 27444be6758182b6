"""``steelyard fake-server``."""

from __future__ import annotations

import click

from steelyard.cli.options import Finite


@click.command("fake-server")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="0 takes a free one.")
@click.option(
    "--quirk", "quirks", multiple=True, metavar="NAME[=VALUE]", help="What it does wrong. Repeatable."
)
@click.option(
    "--seconds",
    type=Finite(0, 86_400, above=True),
    default=3600.0,
    show_default=True,
    help="It ends by itself after this long.",
)
@click.option("--list", "listed", is_flag=True, help="List the quirks.")
def command(port: int, quirks: tuple[str, ...], seconds: float, listed: bool) -> int:
    """Serve every decision wire on this machine, with quirks, to try engines on.

    Answers are made up, and the same for the same question about the same state.
    """
    import asyncio

    from steelyard.fake.quirks import Quirks, parse_quirks

    if listed:
        for line in (Quirks.__doc__ or "").split("----------\n")[1].splitlines():
            click.echo(line.removeprefix("    "))
        return 0
    found = parse_quirks(list(quirks))
    from steelyard.fake.server import FakeServer

    async def serve() -> None:
        server = FakeServer(found)
        serving = asyncio.create_task(server.serve(port, seconds))
        while not server.url and not serving.done():
            await asyncio.sleep(0.01)
        if server.url:
            click.echo(server.url)
        await serving

    try:
        asyncio.run(serve())
    except OSError as error:
        from steelyard.errors import InputError

        raise InputError(f"port {port} cannot be taken: {error.strerror or error}") from None
    except KeyboardInterrupt:
        return 0
    return 0
