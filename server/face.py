"""What the endpoints stand on: the journal, the hub, the sessions, and how the server is set."""

from __future__ import annotations

from typing import Any, TypeAlias

import attrs

from ..runtime.journal.contract import Journal
from ..runtime.runtime import Runtime
from .tokens import Tokens

Hub: TypeAlias = Any
"""Until server/hub.py is there: see it for what it does."""
Sessions: TypeAlias = Any
"""As `Hub`, until server/sessions.py is there."""


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
    ready: float = 5.0
    """How old the journal's last answer may be for `/readyz` (F-35)."""


@attrs.frozen(kw_only=True)
class Face:
    """One face: all that its endpoints use."""

    journal: Journal
    hub: Hub
    sessions: Sessions
    runtime: Runtime | None
    tokens: Tokens
    settings: ServerSettings = attrs.field(factory=ServerSettings)
