"""Tokens: who may ask for what (F-10, F-11, F-13).

A file of lines ``NAME ROLES SHA256``: roles a comma list, the digest of the token in hex. Lines
that are empty or begin with ``#`` count for nothing. It is read anew when it has changed.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import stat
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, Self

import attrs

from ..models.errors import InvalidValue, shown
from ..runtime.log import logger
from ..world.people import NO_PERSON
from .routing import Role, Who

_log = logger(__name__)

EVERY: Final = 1.0
"""Seconds after which a file is looked at again."""
NAME: Final = 128
"""Characters of a name."""

_DIGEST: Final = re.compile(r"[0-9A-Fa-f]{64}", re.ASCII)
_SHORT: Final = 16


@attrs.frozen(kw_only=True)
class Token:
    """One token, known by its digest alone."""

    name: str
    roles: frozenset[Role]
    digest: bytes = attrs.field(repr=False)

    @classmethod
    def of(cls, name: str, roles: Iterable[Role], secret: str) -> Self:
        """Return the token that a secret is."""
        return cls(name=name, roles=frozenset(roles), digest=digest_of(secret))

    @property
    def mark(self) -> str:
        """What a cookie holds of it: a cookie ends where it differs."""
        return hashlib.sha256(b"turnlock cookie of " + self.digest).hexdigest()[:_SHORT]

    def who(self, *, until: float | None = None, session: str | None = None) -> Who:
        """Return who asks with it, or with a cookie of it."""
        return Who(name=self.name, roles=self.roles, mark=self.mark, until=until, session=session)

    def line(self) -> str:
        """Return its line of a file."""
        return f"{self.name} {','.join(sorted(self.roles))} {self.digest.hex()}"


def digest_of(secret: str) -> bytes:
    """Return what is kept of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def read_tokens(text: str, *, place: str) -> Mapping[str, Token]:
    """Return the tokens of a file by name. Raises `InvalidValue` with file and line."""
    found: dict[str, Token] = {}
    digests: set[bytes] = set()
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        at = f"{place} line {number}"
        token = _token(line, at)
        if token.name in found or token.digest in digests:
            raise InvalidValue(
                place=at,
                cause="has a name or a token that an earlier line has",
                fix="give each person a token of their own, once",
            )
        found[token.name] = token
        digests.add(token.digest)
    if not found:
        raise InvalidValue(
            place=place, cause="holds no token", fix="make one: turnlock token NAME ROLES"
        )
    return found


def _token(line: str, at: str) -> Token:
    fields = line.split()
    if len(fields) != 3 or not _DIGEST.fullmatch(fields[2]):  # noqa: PLR2004 - the three of a line
        raise InvalidValue(
            place=at,
            cause="is no token",
            fix="write NAME ROLES SHA256; turnlock token NAME ROLES prints such a line",
        )
    name, roles, digest = fields
    return Token(
        name=check_name(name, place=at), roles=roles_of(roles, at), digest=bytes.fromhex(digest)
    )


def check_name(name: str, *, place: str) -> str:
    """Return the name of a token. It stands in facts as who decided, so it has to be visible."""
    if len(name) > NAME or not name.isprintable() or not name or " " in name:
        raise InvalidValue(
            place=place,
            cause=f"{shown(name)} is no name of a token",
            fix=f"give 1 to {NAME} visible characters without a space",
        )
    return name


def check_new(name: str, *, place: str) -> str:
    """Return the name of a token that is made now: one that is nobody's in a world (W-10).

    Files that have such a name are read still; what it says in worlds is refused.
    """
    if name.casefold() in NO_PERSON:
        raise InvalidValue(
            place=place,
            cause=f"{shown(name)} is what facts have where nobody decided",
            fix="give the name of who holds the token",
        )
    return check_name(name, place=place)


def roles_of(text: str, place: str) -> frozenset[Role]:
    """Return the roles of a comma list."""
    try:
        return frozenset(map(Role, text.split(",")))
    except ValueError:
        raise InvalidValue(
            place=place,
            cause=f"{shown(text)} are no roles",
            fix=f"give some of {','.join(Role)}, with commas and no spaces",
        ) from None


class Tokens:
    """The tokens that count now, and the cookies of them that were ended by hand."""

    def __init__(
        self, tokens: Iterable[Token] = (), *, now: Callable[[], float] = time.time
    ) -> None:
        """Begin with these."""
        self.now: Final = now
        self._tokens: Mapping[str, Token] = {it.name: it for it in tokens}
        self._ended: dict[str, float] = {}
        self._watches: dict[object, tuple[Who, Callable[[], None]]] = {}

    def find(self, secret: str) -> Token | None:
        """Return the token that a secret is. All are compared, each in constant time."""
        digest = digest_of(secret)
        found = None
        for it in self._tokens.values():
            if hmac.compare_digest(it.digest, digest):
                found = it
        return found

    def named(self, name: str) -> Token | None:
        """Return the token of a name."""
        return self._tokens.get(name)

    def is_current(self, who: Who) -> bool:
        """Say whether the token is there still, unchanged, and the cookie not over (F-13)."""
        token = self._tokens.get(who.name)
        return (
            token is not None
            and token.mark == who.mark
            and token.roles == who.roles
            and (who.until is None or self.now() < who.until)
            and (who.session is None or who.session not in self._ended)
        )

    def watch(self, who: Who, ended: Callable[[], None]) -> Callable[[], None]:
        """Call `ended` once the token, or the cookie, behind a request has ended (F-13).

        It is called on the loop, at most once; what is returned ends the watch before.
        """
        key = object()
        timer: asyncio.Handle | None = None

        def stop() -> None:
            self._watches.pop(key, None)
            if timer is not None:
                timer.cancel()

        def told() -> None:
            stop()
            ended()

        loop = asyncio.get_running_loop()
        if not self.is_current(who):
            timer = loop.call_soon(told)
            return stop
        self._watches[key] = who, told
        if who.until is not None:
            timer = loop.call_later(max(0.0, who.until - self.now()), told)
        return stop

    async def ended(self, who: Who) -> None:
        """Return once the token, or the cookie, behind a request has ended (F-13)."""
        ended = asyncio.Event()
        stop = self.watch(who, ended.set)
        try:
            await ended.wait()
        finally:
            stop()

    def end(self, session: str, *, until: float) -> None:
        """End a cookie before its time."""
        now = self.now()
        self._ended = {it: at for it, at in self._ended.items() if now < at}
        self._ended[session] = until
        self._tell()

    def replace(self, tokens: Mapping[str, Token]) -> None:
        """Count with these from now on."""
        self._tokens = tokens
        self._tell()

    def _tell(self) -> None:
        for who, ended in tuple(self._watches.values()):
            if not self.is_current(who):
                ended()


class TokensFile:
    """A file of tokens, read anew when it changes; what cannot be read then changes nothing."""

    def __init__(self, path: Path) -> None:
        """Read it. Raises `InvalidValue`."""
        self._path: Final = path
        self._seen = self._looks()
        self.tokens: Final = Tokens()
        self.tokens.replace(self._read())

    def look(self) -> None:
        """Read it if it has changed."""
        looks = self._looks()
        if looks == self._seen:
            return
        self._seen = looks
        try:
            self.tokens.replace(self._read())
        except InvalidValue as error:
            _log.error("the tokens stay as they were: %s", error)
        else:
            _log.info("the tokens were read anew")

    async def watch(self) -> None:
        """Look at it, for ever."""
        while True:
            await asyncio.sleep(EVERY)
            self.look()

    def _looks(self) -> tuple[int, ...] | None:
        try:
            it = self._path.stat()
        except OSError:
            return None
        return it.st_ino, it.st_size, it.st_mtime_ns

    def _read(self) -> Mapping[str, Token]:
        place = str(self._path)
        try:
            mode = self._path.stat().st_mode
            text = self._path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            cause = getattr(error, "strerror", None) or "it is no UTF-8"
            raise InvalidValue(
                place=place, cause=f"cannot be read ({cause})", fix="give a file of tokens"
            ) from None
        if mode & stat.S_IWOTH:
            raise InvalidValue(
                place=place, cause="may be written by anybody", fix=f"chmod o-w {place}"
            )
        return read_tokens(text, place=place)
