"""A face and all that it stands on, opened in order and closed in reverse (S-97)."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Protocol, runtime_checkable

import attrs

from ..adapters.contract import RuntimeAdapter
from ..adapters.own import OwnAdapter
from ..agent.loop import Agent
from ..agent.providers.client import MissingClient, MissingKey
from ..agent.setup import NamedModel
from ..models.errors import InvalidValue
from ..models.run import OWN
from ..models.safe_text import harmless
from ..runtime.journal.contract import Journal, open_journal
from ..runtime.log import logger
from ..runtime.runtime import Runtime
from ..runtime.scheduling import Tasks
from ..runtime.settings import Settings
from ..runtime.tools.toolbox import Toolbox
from ..world.host import Host
from .bounds import SessionSettings
from .cookies import Keys
from .credentials import read_token
from .face import Face, ServerSettings
from .guard import Guard
from .hub import Hub
from .listening import is_local
from .routing import Role
from .secret_files import check_secret, write_secret
from .sessions import Sessions
from .state_files import state_file
from .tokens import Token, Tokens, TokensFile
from .worlds_performed import check_worlds, performing_worlds

if TYPE_CHECKING:  # an extra's
    from .clients.mcp.serving import Serving

_log = logger(__name__)

LOCAL: Final = "local"
"""The name of the token that a server makes for whoever started it."""


@attrs.frozen(kw_only=True)
class Options:
    """What a server is to be; see `turnlock serve --help`."""

    db: str
    agents: Mapping[str, Agent]
    """Those that perform runs of our own kind; none: no such runs are performed here."""
    settings: ServerSettings
    listen: tuple[str, ...]
    """Where to listen: addresses, among names that it is known by."""
    tokens: Path | None = None
    keys: Path | None = None
    roots: tuple[str, ...] = ()
    on_pending: Literal["wait", "deny"] = "wait"
    doubts: Literal["ask", "fail"] = "ask"
    orphan_timeout: float | None = None
    adapters: tuple[RuntimeAdapter, ...] = ()
    """What performs runs of other kinds."""
    kind: str = OWN
    """Which of the kinds a run is that names none."""
    worlds: tuple[str, ...] = ()
    """Those whose members are performed here (W-36)."""
    host_file: str | None = None
    """What their hosts have: models, tools, MCP servers (W-15)."""
    mcp: Toolbox | None = None
    """The tools that clients of MCP are offered (F-80)."""

    def check(self) -> None:
        """Raise `InvalidValue` for a server that everybody could command (F-10).

        Beyond the loopback whoever asks has a token. One that performs nothing shows what others
        do, and people decide there.
        """
        kinds = [*([OWN] if self.agents else []), *(it.kind for it in self.adapters)]
        check_worlds(self.worlds, self.host_file)
        headless = self.on_pending == "deny" or self.doubts == "fail" or self.orphan_timeout
        if not kinds and not self.worlds and self.mcp is None and headless:
            raise InvalidValue(
                place="--headless, --on-pending deny or --orphan-timeout",
                cause="is about what this server performs, which is nothing",
                fix="leave it out, or give --agent, --runtime codex, --world or --mcp",
            )
        if kinds and self.kind not in kinds:
            raise InvalidValue(
                place="--kind-default",
                cause=f"{self.kind} is not performed here",
                fix=f"give {' or '.join(kinds)}",
            )
        if self.tokens is None and not is_local(self.listen):
            raise InvalidValue(
                place="--host",
                cause="lets other machines ask, and there are no tokens",
                fix="give --tokens FILE; turnlock token NAME ROLES makes a token",
            )


@attrs.frozen(kw_only=True)
class Open:
    """A face that is open, and what its owner is told."""

    face: Face
    made: Token | None
    """The token that was made, where no file of tokens was given."""
    token_file: Path | None
    """Where that stands."""
    file: TokensFile | None

    def way_in(self) -> str:
        """Return the part of the console's address that lets in once, for 10 minutes (F-13)."""
        return "" if self.made is None else f"#code={self.face.guard.codes.make(self.made)}"


@asynccontextmanager
async def opened(options: Options) -> AsyncGenerator[Open]:
    """Open it; at the end sessions are drained. Raises what is wrong with files and journal."""
    options.check()
    await check_models(options.agents)
    file = None if options.tokens is None else TokensFile(options.tokens)
    async with await open_journal(options.db) as journal:
        made, place = None, None
        if file is None:
            made, place = _made_token(options, journal)
        tokens = Tokens([made]) if made is not None else file.tokens if file else Tokens()
        settings = options.settings
        keys = _keys(options, journal)
        guard = Guard(
            tokens,
            keys=keys,
            hosts=settings.hosts,
            origins=settings.origins,
        )
        watching = Tasks(failed=lambda _, __: None)
        if file is not None:
            watching.spawn("look at the tokens", file.watch())
        try:
            async with (
                _performing(options, journal) as (runtime, hub, sessions),
                _performing_worlds(options, hub) as hosts,
                _offering(options, hub, keys) as mcp,
            ):
                face = Face(
                    journal=journal,
                    hub=hub,
                    sessions=sessions,
                    runtime=runtime,
                    tokens=tokens,
                    settings=settings,
                    guard=guard,
                    hosts=hosts,
                    mcp=mcp,
                )
                yield Open(face=face, made=made, token_file=place, file=file)
        finally:
            await watching.cancel()


async def check_models(agents: Mapping[str, Agent]) -> None:
    """Raise `InvalidValue` for an agent whose model can never be asked here: no library, say.

    Nothing is asked of its provider. A key may still come: that there is none is a warning.
    """
    for name, model in ((name, agent.model) for name, agent in agents.items()):
        if not isinstance(model, NamedModel):
            continue
        try:
            model.open()
        except MissingKey as error:
            _log.warning("agent %s, model %s: %s", name, model.name, error)
        except MissingClient as error:
            raise InvalidValue(
                place=f"agent {harmless(name)}, model {harmless(model.name)}",
                cause="cannot be asked",
                fix=harmless(str(error)),
            ) from error
        finally:
            await model.close()  # it is made anew when it is asked


@runtime_checkable
class _Closes(Protocol):
    """An adapter that holds something beside its sessions: models, say."""

    async def close(self) -> None:
        """Let it go."""
        ...


@asynccontextmanager
async def _performing(
    options: Options, journal: Journal
) -> AsyncGenerator[tuple[Runtime, Hub, Sessions]]:
    """Enter runtime, hub and sessions; leave sessions first: what they do last is still kept."""
    async with Runtime(journal=journal, settings=Settings(takes_over=False)) as runtime:
        adapters: list[RuntimeAdapter] = [*options.adapters]
        if options.agents:
            adapters.insert(0, OwnAdapter(runtime=runtime, agents=options.agents))
        try:
            async with Hub(journal=journal, runtime=runtime) as hub:
                sessions = Sessions(
                    journal=journal,
                    adapters=adapters,
                    default_kind=options.kind,
                    settings=SessionSettings(
                        drain=options.settings.drain,
                        orphan_timeout=options.orphan_timeout,
                        on_pending=options.on_pending,
                        doubts=options.doubts,
                        roots=options.roots,
                    ),
                    pass_on=hub.pass_on,
                    is_watched=hub.is_watched,
                )
                async with sessions:
                    for other in sessions.life.runtimes.values():
                        hub.attend(other)
                    yield runtime, hub, sessions
        finally:
            for adapter in adapters:
                if isinstance(adapter, _Closes):
                    await adapter.close()


@asynccontextmanager
async def _performing_worlds(options: Options, hub: Hub) -> AsyncGenerator[Mapping[str, Host]]:
    """Enter the hosts of the worlds that are performed here; whoever follows a run hears them."""
    async with performing_worlds(
        hub.journal,
        options.worlds,
        declared=check_worlds(options.worlds, options.host_file),
        headless=options.on_pending == "deny",
        drain=options.settings.drain,
        hear=hub.pass_on,
    ) as hosts:
        for host in hosts.values():
            hub.attend(host.runtime)
        yield hosts


@asynccontextmanager
async def _offering(options: Options, hub: Hub, keys: Keys) -> AsyncGenerator[Serving | None]:
    """Enter what offers tools to clients of MCP, where any are."""
    if options.mcp is None:
        yield None
        return
    from .clients.mcp.offer import Offer  # noqa: PLC0415 - an extra's
    from .clients.mcp.serving import Serving  # noqa: PLC0415 - as above

    offer = Offer(
        journal=hub.journal,
        tools=options.mcp,
        keys=keys,
        settings=Settings(drain=options.settings.drain),
        wait=options.settings.undecided,
        headless=options.on_pending == "deny",
        fails_doubts=options.doubts == "fail",
    )
    async with offer, Serving(offer) as serving:
        hub.attend(offer.runtime)
        yield serving


def _keys(options: Options, journal: Journal) -> Keys:
    path = options.keys or state_file(options.db, journal, "keys")
    return Keys.made() if path is None else Keys.of_file(path)


def _made_token(options: Options, journal: Journal) -> tuple[Token, Path | None]:
    """Return the one token of a server without a file of tokens, and where it is kept.

    It stays the same when the server starts anew, so that a console need not sign in again.
    """
    path = state_file(options.db, journal, "token")
    if path is None:
        secret = secrets.token_urlsafe(32)
    else:
        if not path.exists():
            write_secret(path, secrets.token_urlsafe(32))
        check_secret(path)
        secret = read_token(path) or ""
    return Token.of(LOCAL, Role, secret), path
