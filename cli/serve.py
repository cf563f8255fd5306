"""``turnlock serve``: runs behind HTTP, and a console that decides about their calls."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import click

from ..models.errors import InvalidValue, TurnlockError
from ..models.run import OWN
from ..models.safe_text import harmless, harmless_lines
from ..runtime.errors import NoJournal
from ..runtime.journal.places import shown_place
from ..runtime.log import show_on
from ..runtime.tools.toolbox import Toolbox
from .codex_options import CODEX, CodexOptions, codex_options, runtime_option
from .databases import db_option
from .durations import duration

if TYPE_CHECKING:  # what loads the server is imported where it is used
    from ..adapters.contract import RuntimeAdapter
    from ..agent.loop import Agent
    from ..server.opening import Open, Options

PORT: Final = 8420

_HELP: Final = """Serve runs over HTTP, with a console in the browser.

The agents are the Agent(…) objects at the top level of a Python file, by their variables; each run
is another conversation of one of them. With --runtime codex a run may also be a thread of Codex,
which runs its commands by itself, below a --root, once they are approved or where its policy lets
them; a run that names no folder works in the first --root.

Worlds of the journal are shown, and people speak and decide in their chats, by any server. Members
answer where some host performs them: this server with --world, or turnlock world run.

With --mcp the tools of a Python file are offered to clients of MCP at /mcp; each call is a run,
which waits, is decided about and is recorded as any other.

Guarded runs are shown, too, and people decide about their calls: the processes of their frameworks
go on with them. So a server may perform nothing at all: turnlock serve --db agent.db.

All that happens is in the journal before anybody is shown it. It prints the console's address, with
a code that lets in once, within 10 minutes; SIGHUP prints another one.

Who may ask for what is said by tokens. Without --tokens there is one, which may do everything, in a
file beside the journal that its owner alone may read (JOURNAL.token; of a URL it is in
~/.local/state/turnlock): --token-file of the other commands. Other machines are let in with
--tokens alone: a file with a line for each person, NAME ROLES SHA256, as turnlock token prints it.
It is read anew when it changes.

TLS ends in front of it: give the name that the proxy is asked for as --host.

Ctrl-C or SIGTERM end it: streams first, then connections, then what runs has --drain to end. The
second one ends it at once; what ran then is in doubt. The same command goes on.

\b
Exit status:
  0  it was told to end
  1  the journal failed
  2  wrong usage, a file that cannot be used, or a port that is taken
"""


@click.command("serve", help=_HELP, short_help="Serve runs over HTTP, with a console.")
@db_option
@click.option(
    "--agent",
    "agents",
    multiple=True,
    metavar="FILE[:NAME]",
    help="Python file with agents, or one of them. May be repeated; the first is the default.",
)
@runtime_option(
    several=True, told="Another runtime that performs runs, beside the agents or instead of them."
)
@codex_options
@click.option(
    "--codex-model",
    metavar="NAME",
    help="The model of Codex runs that name none.  [default: as Codex is configured]",
)
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="Address to listen on, or name that requests may be for. May be repeated.  [default:"
    " 127.0.0.1, localhost]",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=PORT,
    show_default=True,
    metavar="N",
    help="Port to listen on; 0 for any that is free.",
)
@click.option(
    "--tokens",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Who may ask for what: lines NAME ROLES SHA256.",
)
@click.option(
    "--keys",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Keys that seal cookies, made where there are none.  [default: JOURNAL.keys; of a"
    " URL a file in ~/.local/state/turnlock]",
)
@click.option(
    "--origin",
    "origins",
    multiple=True,
    metavar="ORIGIN",
    help="Other origin whose pages may ask, by tokens, such as https://desk.example. May be"
    " repeated.",
)
@click.option(
    "--root",
    "roots",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, resolve_path=True),
    metavar="FOLDER",
    help="Folder below which the cwd of a run may be. May be repeated.",
)
@click.option(
    "--world",
    "worlds",
    multiple=True,
    metavar="NAME",
    help="World whose members are performed here. May be repeated.",
)
@click.option(
    "--host-file",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="What members of worlds have here: models, tools and MCP servers, as TOML.",
)
@click.option(
    "--mcp",
    "tools",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Python file with tools that clients of MCP are offered, at /mcp.",
)
@click.option(
    "--headless",
    is_flag=True,
    help="Nobody is there: deny what needs approval, fail what is in doubt.",
)
@click.option(
    "--on-pending",
    type=click.Choice(["wait", "deny"]),
    help="What becomes of a call that needs approval.  [default: wait; deny with --headless]",
)
@click.option(
    "--orphan-timeout",
    callback=duration,
    metavar="DURATION",
    help="Interrupt a run in which something is pending, and that nobody has looked at or commanded"
    " for so long.",
)
@click.option(
    "--drain",
    callback=duration,
    default="10s",
    show_default=True,
    metavar="DURATION",
    help="For how long what runs may end when the server does.",
)
@click.option(
    "--kind-default",
    type=click.Choice([OWN, CODEX]),
    help="Which runtime performs a run that names none.  [default: own, where there are agents]",
)
def command(  # noqa: PLR0913 - one parameter for each option
    *,
    db: str,
    agents: tuple[str, ...],
    runtimes: tuple[str, ...],
    executable: str | None,
    sandbox: str | None,
    approval_policy: str | None,
    codex_model: str | None,
    hosts: tuple[str, ...],
    port: int,
    tokens: Path | None,
    keys: Path | None,
    origins: tuple[str, ...],
    roots: tuple[str, ...],
    worlds: tuple[str, ...],
    host_file: str | None,
    tools: Path | None,
    headless: bool,
    on_pending: Literal["wait", "deny"] | None,
    orphan_timeout: float | None,
    drain: float,
    kind_default: str | None,
) -> None:
    """Check what was given, serve, and end as it ended."""
    try:
        from ..server.face import ServerSettings  # noqa: PLC0415 - the server's libraries load here
        from ..server.opening import Options  # noqa: PLC0415 - as above
    except ImportError as error:
        raise click.UsageError(
            f"{harmless(str(error))}: the server has libraries of its own; pip install"
            " 'turnlock[server]'"
        ) from error
    codex = CodexOptions(
        executable=executable,
        sandbox=sandbox,
        approval_policy=approval_policy,
        model=codex_model,
    )
    named = hosts or ("127.0.0.1", "localhost", "::1")
    settings = ServerSettings(
        hosts=_with_loopback(named), port=port, origins=tuple(map(_origin, origins)), drain=drain
    )
    try:
        options = Options(
            db=db,
            agents=_agents(agents),
            settings=settings,
            listen=hosts or ("127.0.0.1",),
            tokens=tokens,
            keys=keys,
            roots=roots,
            on_pending=on_pending or ("deny" if headless else "wait"),
            doubts="fail" if headless else "ask",
            orphan_timeout=orphan_timeout,
            adapters=_adapters(runtimes, codex, roots),
            kind=kind_default or (OWN if agents else CODEX),
            worlds=tuple(dict.fromkeys(worlds)),
            host_file=host_file,
            mcp=_offered(tools),
        )
        options.check()
    except InvalidValue as error:
        raise click.UsageError(harmless_lines(str(error))) from error
    show_on(sys.stderr)
    sys.exit(asyncio.run(_serve(options)))


def _adapters(
    runtimes: tuple[str, ...], codex: CodexOptions, roots: tuple[str, ...]
) -> tuple[RuntimeAdapter, ...]:
    """Return what performs runs of the other kinds that were asked for."""
    if CODEX not in runtimes:
        codex.check_unused()
        return ()
    if not roots:
        raise click.UsageError("--runtime codex needs --root FOLDER, below which its commands work")
    from ..adapters.codex.adapter import CodexAdapter  # noqa: PLC0415 - asked for by name

    return (CodexAdapter(codex.settings(cwd=roots[0])),)


def _agents(places: tuple[str, ...]) -> Mapping[str, Agent]:
    """Return the agents of all files; two of one name are wrong usage."""
    from ..adapters.agents_file import load_agents  # noqa: PLC0415 - as in command

    found: dict[str, Agent] = {}
    for place in places:
        for name, agent in load_agents(place).items():
            if found.setdefault(name, agent) is not agent:
                raise InvalidValue(
                    place="--agent",
                    cause=f"two agents are called {name}",
                    fix="rename one, or name those that are meant: FILE:NAME",
                )
    return found


def _offered(tools: Path | None) -> Toolbox | None:
    """Return the tools that clients of MCP are offered."""
    if tools is None:
        return None
    if find_spec("mcp") is None:
        raise click.UsageError("--mcp has a library of its own; pip install 'turnlock[server,mcp]'")
    return Toolbox.from_file(tools)


def _with_loopback(hosts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of a server: of one that listens on this machine's loopback, all of it."""
    from ..server.listening import addresses, is_local  # noqa: PLC0415 - as in command

    if is_local(addresses(hosts)):
        return tuple(dict.fromkeys((*hosts, "127.0.0.1", "localhost", "::1")))
    return hosts


def _origin(text: str) -> str:
    from urllib.parse import urlsplit  # noqa: PLC0415 - asked for seldom

    try:
        found = urlsplit(text)
        fits = found.scheme in {"http", "https"} and text == f"{found.scheme}://{found.netloc}"
        fits = fits and bool(found.hostname) and "@" not in found.netloc
    except ValueError:
        fits = False
    if not fits:
        raise click.UsageError(
            f"--origin: {harmless(text, limit=80)!r} is no origin; give it as a browser does,"
            " SCHEME://HOST or SCHEME://HOST:PORT"
        )
    return text


async def _serve(options: Options) -> int:
    from ..server.app import App  # noqa: PLC0415 - as in command
    from ..server.listening import listen  # noqa: PLC0415 - as in command
    from ..server.opening import opened  # noqa: PLC0415 - as in command
    from ..server.serve import serve, signals  # noqa: PLC0415 - as in command

    stopping, again = asyncio.Event(), asyncio.Event()
    try:
        with ExitStack() as stack:
            stack.enter_context(signals(stopping, again))
            sockets = listen(options.listen, options.settings.port)
            for each in sockets:
                stack.callback(each.close)
            async with opened(options) as it:
                port = int(sockets[0].getsockname()[1])
                telling = asyncio.create_task(_tell(it, options, port, again))
                try:
                    await serve(App(it.face), sockets, until=stopping, started=again.set)
                finally:
                    telling.cancel()
                    await asyncio.wait({telling})
                    click.echo(
                        f"turnlock: ending; what runs has {options.settings.drain:g} s", err=True
                    )
    except (InvalidValue, NoJournal) as error:
        raise click.UsageError(harmless_lines(str(error))) from error
    except TurnlockError as error:
        raise click.ClickException(harmless_lines(str(error))) from error
    return 0


async def _tell(it: Open, options: Options, port: int, again: asyncio.Event) -> None:
    """Say where the console is once it can be reached, and again when somebody asks (SIGHUP)."""
    from ..server.listening import address_of, addresses  # noqa: PLC0415 - as in command

    while True:
        await again.wait()
        again.clear()
        if it.file is not None:
            it.file.look()
        first, *_ = addresses(options.listen)
        name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(first, first)  # noqa: S104 - not bound to
        address = f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"
        worlds = (f"world {name}" for name in options.worlds)
        others = (other.kind for other in options.adapters)
        offers = ["tools for MCP"] if options.mcp is not None else []
        performs = ", ".join([*options.agents, *others, *worlds, *offers])
        how = f"with {performs}" if performs else "and performs nothing: people look and decide"
        click.echo(f"turnlock serves {harmless(shown_place(options.db))} {how}")
        way_in = it.way_in()
        once = "  (lets in once, within 10 minutes)" if way_in else "  (sign in with a token)"
        click.echo(f"  console  {address}/console/{way_in}{once}")
        for other in options.listen:
            if address_of(other) is None:
                click.echo(
                    f"           https://{harmless(other)}/console/  (where TLS ends in front)"
                )
        if options.mcp is not None:
            click.echo(f"  MCP      {address}/mcp")
        if it.token_file is not None:
            click.echo(f"  others   --url {address} --token-file {harmless(str(it.token_file))}")
