"""The command that starts a proxy: its options, its help and its exit status."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, Final

import click

from ...models.errors import TurnlockError
from ...models.safe_text import harmless, harmless_lines
from ...runtime.log import show_on
from .settings import LEASE, RUN, WAIT, Settings

_HELP: Final = """Guard the tools of an MCP server: this stands before it, and speaks MCP itself.

The server is a program, after --, or is at --url. All goes through as it comes, but each call of a
tool is a run of the journal, ONCE/PREFIX/KEY: it is claimed, sent once, and its outcome is kept. A
call whose end nobody knows, as the server or this process was killed, is in doubt, and is not run
again: turnlock runs, show and resolve say what became of it.

A client names a call in the _meta of its request, as turnlock/idempotency-key: asked for again, by
anybody, it is not executed again; the recorded outcome is the answer. Calls that have no name are
recorded, and each request is another call.

A tool of --gate is executed when a person agrees: at the client, which is asked by elicitation, or
by turnlock approve; whoever decides first. Where the client cannot ask, and with --decide journal,
it is turnlock approve alone.

\b
  turnlock guard mcp --db agent.db --gate pay -- python bank_server.py
  turnlock guard mcp --db agent.db --gate-all --url https://bank.example/mcp

\b
Exit status:
  0  the client has ended it
  1  the server has ended, or cannot be started
  2  wrong usage, or a journal that cannot be used
"""


@click.command("mcp", help=_HELP, short_help="Guard the tools of any MCP server.")
@click.option(
    "--db",
    required=True,
    envvar="TURNLOCK_DB",
    show_envvar=True,
    metavar="JOURNAL",
    help="The journal: a file, or sqlite:FILE; made where there is none.",
)
@click.option("--url", metavar="URL", help="The server, over streamable HTTP.")
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="NAME=VARIABLE",
    help="With --url: a header, whose value is that of an environment variable. May be repeated.",
)
@click.option(
    "--gate",
    "gates",
    multiple=True,
    metavar="TOOL",
    help="Tool whose calls a person must approve. May be repeated.",
)
@click.option("--gate-all", is_flag=True, help="A person must approve the calls of all tools.")
@click.option(
    "--decide",
    type=click.Choice(["elicitation", "journal"]),
    default="elicitation",
    show_default=True,
    help="Whether the client may ask its person, or decisions come from the journal alone.",
)
@click.option(
    "--run",
    default=RUN,
    show_default=True,
    metavar="PREFIX",
    help="What the runs are named by; give each server its own.",
)
@click.option(
    "--lease",
    type=click.FloatRange(min=0, min_open=True),
    default=LEASE,
    show_default=True,
    metavar="S",
    help="Seconds after which a call is in doubt whose proxy has fallen silent on another machine.",
)
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=WAIT,
    show_default=True,
    metavar="S",
    help="Seconds to wait for a call that is executed elsewhere, or for a decision in the journal.",
)
@click.argument("server", nargs=-1, type=click.UNPROCESSED)
def command(**told: Any) -> None:  # noqa: ANN401 - the options, by their names
    """Check what was given, stand before the server, and end as it ended."""
    settings = _settings(**told)
    show_on(sys.stderr)
    from ..guard import Guard  # noqa: PLC0415 - help needs no journal
    from .pipes import NoPipes  # noqa: PLC0415 - as above
    from .serving import serve  # noqa: PLC0415 - as above

    try:
        guard = Guard.open(settings.db, lease=settings.lease, wait=settings.wait)
    except TurnlockError as error:
        raise click.UsageError(harmless_lines(str(error))) from error
    with guard:
        try:
            over = serve(guard, settings)
        except NoPipes as error:
            raise click.UsageError(str(error)) from error
    if over is not None:
        click.echo(f"turnlock guard mcp: {harmless(over)}", err=True)
        sys.exit(1)


def _settings(  # noqa: PLR0913 - one parameter for each option
    *,
    db: str,
    url: str | None,
    headers: tuple[str, ...],
    gates: tuple[str, ...],
    gate_all: bool,
    decide: Any,  # noqa: ANN401 - one of its words
    run: str,
    lease: float,
    wait: float,
    server: tuple[str, ...],
) -> Settings:
    if bool(server) == (url is not None):
        raise click.UsageError("name one server: its command after --, or its --url")
    if headers and url is None:
        raise click.UsageError("--header is for a server at a --url")
    if not run:
        raise click.UsageError("--run: give a prefix that is not empty")
    return Settings(
        db=db,
        command=server,
        url=url,
        headers=_headers(headers),
        gates=frozenset(gates),
        gates_all=gate_all,
        decide=decide,
        run=run,
        lease=lease,
        wait=wait,
    )


def _headers(told: tuple[str, ...]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for it in told:
        name, _, variable = it.partition("=")
        if not name or variable not in os.environ:
            raise click.UsageError(
                f"--header {harmless(it)}: give NAME=VARIABLE, a variable of the environment that"
                " is set"
            )
        found[name] = os.environ[variable]
    return found
