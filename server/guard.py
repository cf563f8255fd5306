"""Who is let in: names and origins before anything else, then tokens and cookies (F-10 … F-16)."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import attrs

from .attempts import Attempts, Codes
from .cookies import COOKIE, Cookies, Keys
from .problems import Problem
from .routing import Who
from .tokens import Token, Tokens

CONSOLE: Final = b"turnlock-console"
"""The header that a request with a cookie carries where it changes something (F-15)."""
HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
"""Of every answer (F-16)."""
PREFLIGHT: Final = {
    "Access-Control-Allow-Methods": "GET, HEAD, POST, PUT, DELETE",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, Last-Event-ID, A2A-Version,"
    " Mcp-Method, Mcp-Name, Mcp-Protocol-Version, Mcp-Session-Id",
    "Access-Control-Max-Age": "600",
}
_SAFE: Final = frozenset({"GET", "HEAD"})
_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_WILDCARDS: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - nothing is bound to here


@attrs.frozen
class _Place:
    """A name and a port; the port is None where it was left out."""

    name: str
    port: int | None

    @classmethod
    def read(cls, text: str) -> _Place | None:
        """Return what the header ``Host`` says; None for what is no host."""
        name, port = text.lower(), None
        if name.startswith("["):
            name, bracket, rest = name[1:].partition("]")
            try:
                name = f"[{ipaddress.IPv6Address(name)}]" if bracket and "%" not in name else ""
            except ValueError:
                return None
        else:
            name, colon, rest = name.partition(":")
            rest = colon + rest
        if rest:
            digits = rest[1:]
            if rest[0] != ":" or not (digits.isascii() and digits.isdigit()) or len(digits) > 5:  # noqa: PLR2004 - of a port
                return None
            port = int(digits)
        return cls(name, port) if name else None

    def is_address(self) -> bool:
        """Say whether the name is an IP address, which nobody can rebind."""
        try:
            ipaddress.ip_address(self.name.strip("[]"))
        except ValueError:
            return False
        return True


class Names:
    """The names that requests may be for, and the origins whose pages may ask (F-14)."""

    def __init__(self, hosts: Iterable[str], origins: Iterable[str] = ()) -> None:
        """Know them: names, IPv6 addresses with or without brackets; origins as browsers write."""
        given = [it.lower() for it in hosts]
        self._any_address: Final = not _WILDCARDS.isdisjoint(given)
        self._hosts: Final = frozenset(f"[{it}]" if ":" in it else it for it in map(_plain, given))
        self._origins: Final = frozenset(it.lower().rstrip("/") for it in origins)

    def check(self, headers: Iterable[tuple[bytes, bytes]]) -> str | None:
        """Return the foreign origin that may ask, if it is one. Raises `Problem` (F-14)."""
        pairs = list(headers)
        place = self._host(pairs)
        told = [value for name, value in pairs if name == b"origin"]
        if not told:
            return None
        origin = told[0].decode("latin-1").lower()
        if len(told) == 1 and origin in self._origins:
            return told[0].decode("latin-1")
        if len(told) > 1 or not _is_own(origin, place):
            raise Problem("wrong_origin", "a page of another origin asked; name it with --origin")
        return None

    def _host(self, headers: Iterable[tuple[bytes, bytes]]) -> _Place:
        told = [value for name, value in headers if name == b"host"]
        place = _Place.read(told[0].decode("latin-1")) if len(told) == 1 else None
        if place is None or not (
            place.name in self._hosts or (self._any_address and place.is_address())
        ):
            raise Problem("wrong_host", "this server has another name; give it with --host")
        return place


def _plain(host: str) -> str:
    """Return an address as it is compared, without brackets."""
    try:
        return str(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        return host


def _is_own(origin: str, host: _Place) -> bool:
    try:
        found = urlsplit(origin)
    except ValueError:
        return False
    place = _Place.read(found.netloc)
    if place is None or found.scheme not in _PORTS or origin != f"{found.scheme}://{found.netloc}":
        return False
    default = _PORTS[found.scheme]
    return place.name == host.name and (place.port or default) == (host.port or default)


class Guard:
    """Decides who is let in."""

    def __init__(
        self,
        tokens: Tokens,
        *,
        keys: Keys | None = None,
        hosts: Iterable[str],
        origins: Iterable[str] = (),
    ) -> None:
        """Let in by these tokens; without keys cookies end with the process."""
        self.tokens: Final = tokens
        self.cookies: Final = Cookies(keys or Keys.made(), tokens)
        self.codes: Final = Codes(now=tokens.now)
        self._attempts: Final = Attempts(now=tokens.now)
        self._names: Final = Names(hosts, origins)

    def check_names(self, scope: Mapping[str, Any]) -> dict[str, str]:
        """Return the headers of an answer. Raises `Problem` before anything else (F-14)."""
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        origin = self._names.check(headers)
        site = _header(headers, b"sec-fetch-site")
        if site in {b"cross-site", b"same-site"} and _cookies(headers):
            raise Problem("wrong_origin", "another site sent a cookie along")
        if origin is None:
            return HEADERS
        return {
            **HEADERS,
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Expose-Headers": "Location, Mcp-Session-Id, Retry-After",
            "Vary": "Origin",
        }

    def admit(self, scope: Mapping[str, Any]) -> Who:
        """Return who asks. Raises `Problem`: unauthenticated, too_many_attempts, forbidden."""
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        given = _header(headers, b"authorization")
        if given is not None:
            kind, _, secret = given.decode("latin-1").partition(" ")
            if kind.lower() != "bearer":
                raise _unauthenticated("send Authorization: Bearer TOKEN")
            return self.by_token(secret.strip(), scope).who()
        cookies = _cookies(headers)
        if not cookies:
            raise _unauthenticated("send a token: Authorization: Bearer TOKEN")
        who = self.cookies.open(cookies[0]) if len(cookies) == 1 else None
        if who is None:
            raise _unauthenticated("the cookie has ended; sign in again")
        if scope["type"] == "websocket":
            if _header(headers, b"origin") is None:
                raise Problem("wrong_origin", "a handshake with a cookie says its origin")
        elif scope["method"] not in _SAFE and _header(headers, CONSOLE) != b"1":
            raise Problem("forbidden", "a change by cookie carries the header Turnlock-Console: 1")
        return who

    def by_token(self, secret: str, scope: Mapping[str, Any]) -> Token:
        """Return the token that was sent. Raises `Problem`."""
        return self._counted(self.tokens.find, secret, scope)

    def by_code(self, code: str, scope: Mapping[str, Any]) -> Token:
        """Return the token that a code for one use stands for. Raises `Problem`."""
        return self._counted(self.codes.use, code, scope)

    def _counted(self, find: Any, secret: str, scope: Mapping[str, Any]) -> Token:  # noqa: ANN401 - one of two
        client = scope.get("client")
        address = str(client[0]) if client else ""
        self._attempts.check(address)
        token: Token | None = find(secret)
        if token is None:
            self._attempts.wrong(address)
            raise _unauthenticated("this token is not known here, or not any more")
        return token

    def cookie(self, value: str, scope: Mapping[str, Any], *, lasts: int) -> str:
        """Return the header that sets the cookie; with `lasts` 0 it goes.

        It is for TLS alone, but where the browser asks a loopback name (F-13).
        """
        place = _Place.read((_header(scope["headers"], b"host") or b"").decode("latin-1"))
        secure = "" if place is not None and is_loopback(place.name) else "; Secure"
        return f"{COOKIE}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={lasts}{secure}"


def is_loopback(host: str) -> bool:
    """Say whether a name or an address leads to this machine alone."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _unauthenticated(detail: str) -> Problem:
    return Problem("unauthenticated", detail)


def _header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> bytes | None:
    """Return a header's value; one that stands twice is another value than any that counts."""
    told = [value for it, value in headers if it == name]
    return b", ".join(told) if told else None


def _cookies(headers: Iterable[tuple[bytes, bytes]]) -> list[str]:
    """Return the values of our cookie; more than one where another server tossed one in."""
    parts = [
        part.strip().partition("=")
        for name, value in headers
        if name == b"cookie"
        for part in value.decode("latin-1").split(";")
    ]
    return [value for name, _, value in parts if name == COOKIE]
