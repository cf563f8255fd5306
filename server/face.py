"""What the endpoints stand on: the journal, the hub, the sessions, and how the server is set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from ..runtime.journal.contract import Journal
from ..runtime.looking import Looking
from ..runtime.runtime import Runtime
from .guard import Guard
from .health import Readiness
from .hub import Hub
from .pictures import Drawings
from .problems import Problem
from .sessions import Sessions
from .tokens import Tokens
from .worlds_known import Worlds
from .worlds_standing import Asked

if TYPE_CHECKING:  # most servers perform no world
    from ..world.host import Host
    from .clients.mcp.serving import Serving


@attrs.frozen(kw_only=True)
class ServerSettings:
    """How a server is set; times are seconds."""

    hosts: tuple[str, ...] = ("127.0.0.1", "localhost", "::1")
    """Names that a request may be for (F-14)."""
    port: int = 8420
    origins: tuple[str, ...] = ()
    """Foreign origins whose pages may ask (F-14)."""
    drain: float = 10.0
    """In which sessions end when the server does (S-97)."""
    body: float = 30.0
    """In which the body of a request has to be there."""
    answer: float = 10.0
    """In which the owner of a run in another process answers, or it is 202 (F-26)."""
    undecided: float = 30.0
    """For which a call of `/mcp` waits that nobody can be asked about at its client (F-80)."""
    ready: float = 5.0
    """How old the journal's last answer may be for `/readyz`, and how long one may take (F-35)."""


@attrs.define
class Standing:
    """What changes while a server runs."""

    is_stopping: bool = False
    """Whether it ends: nothing more is commanded (S-97)."""
    refused: Counter[str] = attrs.field(factory=Counter[str])
    """What was answered with a problem, by its code (F-35)."""

    def check_goes_on(self) -> None:
        """Raise `Problem` where it ends."""
        if self.is_stopping:
            raise Problem("shutting_down", "this server ends; nothing new is begun")


def _guard(face: Face) -> Guard:
    return Guard(face.tokens, hosts=face.settings.hosts, origins=face.settings.origins)


def _readiness(face: Face) -> Readiness:
    return Readiness(face.journal, within=face.settings.ready)


def _looking(face: Face) -> Looking:
    return Looking(face.journal)


def _worlds(face: Face) -> Worlds:
    return Worlds(face.journal)


def _asked(face: Face) -> Asked:
    return Asked(face.journal)


@attrs.frozen(kw_only=True)
class Face:
    """One face: all that its endpoints use."""

    journal: Journal
    hub: Hub
    sessions: Sessions | None
    """None: runs are shown and decided on, and none is begun or prompted."""
    runtime: Runtime | None
    tokens: Tokens
    settings: ServerSettings = attrs.field(factory=ServerSettings)
    hosts: Mapping[str, Host] = attrs.field(factory=dict[str, "Host"])
    """Those that perform members here, by their worlds."""
    mcp: Serving | None = None
    """What offers tools to clients of MCP (F-80)."""
    worlds: Worlds = attrs.field(default=attrs.Factory(_worlds, takes_self=True))
    asked: Asked = attrs.field(default=attrs.Factory(_asked, takes_self=True))
    """What tools ask people in chats."""
    guard: Guard = attrs.field(default=attrs.Factory(_guard, takes_self=True))
    readiness: Readiness = attrs.field(default=attrs.Factory(_readiness, takes_self=True))
    standing: Standing = attrs.field(factory=Standing)
    looking: Looking = attrs.field(default=attrs.Factory(_looking, takes_self=True))
    """Where runs stand, one for all who ask."""
    drawings: Drawings = attrs.field(factory=Drawings)
    """Pictures of runs, two drawn at once."""
