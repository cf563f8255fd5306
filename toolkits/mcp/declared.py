"""How a user declares an MCP server: a command or a URL, whether it is trusted, and policies."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Self, cast
from urllib.parse import urlsplit

import attrs

from ...models.errors import InvalidValue, shown
from ...models.record import optional
from ...runtime.tools.policy import Policy, positive

START_WITHIN: Final = 30.0
"""Seconds that a server has to start and to list its tools."""
CALL_WITHIN: Final = 120.0
"""Seconds of a call, those not counted in which a person or the model is asked; then its request is
cancelled, and it has failed."""

_URL: Final = re.compile(r"https?://", re.IGNORECASE)
_NAMED: Final = re.compile(r"([A-Za-z0-9_-]+)=(.*)", re.DOTALL)


def _words(value: object) -> tuple[str, ...]:
    """Read a command, a text as a shell would split it; no shell runs it."""
    told = shown(value)
    if isinstance(value, str):
        try:
            return tuple(shlex.split(value))
        except ValueError as error:
            raise InvalidValue(place="command", cause=f"{told}: {error}", fix="close it") from None
    if isinstance(value, list | tuple):
        words = tuple(cast("Iterable[object]", value))
        if all(isinstance(word, str) for word in words):
            return cast("tuple[str, ...]", words)
    raise InvalidValue(
        place="command", cause=f"{told} is no command", fix="give a text or a list of texts"
    )


def _directories(value: Iterable[str | Path]) -> tuple[Path, ...]:
    return tuple(Path(it).absolute() for it in value)


def _url(_: object, field: attrs.Attribute[str | None], value: str | None) -> None:
    if value is not None and (not _URL.match(value) or not urlsplit(value).hostname):
        raise InvalidValue(
            place=field.name,
            cause=f"{shown(value)} is no URL of a server",
            fix="give one that begins with http:// or https:// and names a host",
        )


def _policies(_: object, field: attrs.Attribute[Any], value: Mapping[str, object]) -> None:
    for name, policy in value.items():
        if not isinstance(policy, Policy):
            raise InvalidValue(
                place=f"{field.name}[{name}]",
                cause=f"{shown(policy)} is no policy",
                fix="give a Policy(…)",
            )


@attrs.frozen(kw_only=True)
class McpServer:
    """An MCP server: started as a program (stdio), or reached at a URL (streamable HTTP).

    Exactly one of `command` and `url` is given. Raises `InvalidValue`.
    """

    command: tuple[str, ...] = attrs.field(default=(), converter=_words)
    """The program and its arguments; a text is split as a shell would. No shell runs it."""
    env: Mapping[str, str] = attrs.field(factory=dict[str, str], repr=False)
    """Variables beyond those that every server gets: HOME, LOGNAME, PATH, SHELL, TERM, USER."""
    cwd: Path | None = attrs.field(default=None, converter=attrs.converters.optional(Path))
    """Where the program runs; None: where we do."""

    url: str | None = attrs.field(default=None, validator=_url)
    headers: Mapping[str, str] = attrs.field(factory=dict[str, str], repr=False)
    """Sent with every request: an Authorization, say."""

    trusted: bool = False
    """Whether its hints about its tools are believed where they ask for less (W-64)."""
    policies: Mapping[str, Policy] = attrs.field(factory=dict[str, Policy], validator=_policies)
    """Policies of tools, by the server's own names: they go before hints."""
    asks: bool = True
    """Whether it may ask questions, where somebody answers them (W-67). One that speaks a protocol
    before 2026-07-28 and may ask has one call at a time: False lets its calls run side by side."""
    legacy: bool = False
    """Whether to speak no newer protocol than 2025-11-25 with it: a tool that asks in the middle of
    its work (`ctx.elicit` of the Python SDK) can do so in none that is newer."""
    roots: tuple[Path, ...] = attrs.field(default=(), converter=_directories)
    """Directories that it is told of when it asks for roots; none: it may not ask (W-68)."""
    start_within: float = attrs.field(default=START_WITHIN, validator=positive)
    """Seconds that it has to start and to list its tools."""
    call_within: float | None = attrs.field(default=CALL_WITHIN, validator=optional(positive))
    """Seconds of a call whose tool has no timeout by a policy; None: no bound. Time in which it has
    somebody asked is not counted."""

    def __attrs_post_init__(self) -> None:
        """Refuse what cannot be meant."""
        if bool(self.command) == (self.url is not None):
            raise InvalidValue(
                place="command",
                cause="and url are both given" if self.command else "and url are both missing",
                fix="give command= for a program, or url= for a server that runs already",
            )

    @classmethod
    def of(cls, text: str) -> Self:
        """Read a URL, or a command line: ``python server.py``."""
        return cls(url=text) if _URL.match(text) else cls(command=_words(text))

    @classmethod
    def named(cls, text: str) -> tuple[str, Self]:
        """Read ``NAME=URL`` or ``NAME=COMMAND``; without a name, it is called as its script."""
        given = _NAMED.fullmatch(text)
        if given is not None and given[2].strip():
            return given[1], cls.of(given[2].strip())
        server = cls.of(text)
        if server.url is not None:
            found = urlsplit(server.url).hostname or ""
        else:
            words = [word for word in server.command if not word.startswith("-")]
            scripts = [word for word in words if Path(word).suffix in {".py", ".js", ".mjs", ".ts"}]
            found = Path((scripts or words or server.command)[0]).stem
        return re.sub(r"[^A-Za-z0-9_-]", "_", found) or "server", server
