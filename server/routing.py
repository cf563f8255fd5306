"""Which endpoint a request is for: by its raw path, its method, and what it accepts (F-1, F-2)."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import unquote_to_bytes

import attrs

from .bodies import LIMIT
from .problems import Problem

if TYPE_CHECKING:  # an extra's; the face imports this module
    from starlette.requests import Request
    from starlette.responses import Response

    from .face import Face

JSON: Final = "application/json"


class Role(StrEnum):
    """What a token may ask for (F-11); each includes `look`, and none another."""

    LOOK = "look"
    DECIDE = "decide"
    RUN = "run"
    ADMIN = "admin"


@attrs.frozen(kw_only=True)
class Who:
    """Who asks: the name of the token, which is `decided_by` (F-12), and its roles."""

    name: str
    roles: frozenset[Role]
    mark: str = ""
    """Of the token's digest: another token of the same name is not this one."""
    until: float | None = None
    """When the cookie ends that was sent, Unix seconds; None for a token itself."""
    session: str | None = None
    """Which cookie it is."""

    def may(self, role: Role) -> bool:
        """Say whether the token has a role."""
        return role in self.roles or (role is Role.LOOK and bool(self.roles))

    def check(self, role: Role) -> None:
        """Raise `Problem` (`forbidden`) unless the token has a role."""
        if not self.may(role):
            raise Problem("forbidden", f"this needs a token with the role {role}")


@attrs.frozen(kw_only=True)
class Asked:
    """A request that an endpoint answers: allowed, and its body read."""

    ids: Mapping[str, str]
    """The segments of the path that are named, decoded, exact (F-2)."""
    query: Mapping[str, str]
    body: Any
    """An instance of the endpoint's `body`; None without."""
    who: Who
    http: Request

    def flag(self, name: str) -> bool:
        """Return a parameter of the query that is ``1`` or ``0``; left out it is false."""
        given = self.query.get(name, "0")
        if given not in {"0", "1"}:
            raise Problem("bad_request", "give 1 or 0", at=f"query.{name}")
        return given == "1"

    def number(self, name: str, default: int, *, most: int, least: int = 1) -> int:
        """Return a parameter of the query that is a whole number of these bounds."""
        given = self.query.get(name)
        if given is None:
            return default
        if not _DIGITS.fullmatch(given) or not least <= int(given) <= most:
            raise Problem(
                "bad_request", f"give a whole number from {least} to {most}", at=f"query.{name}"
            )
        return int(given)


Handler: TypeAlias = "Callable[[Face, Asked], Awaitable[Response]]"

_DIGITS: Final = re.compile(r"[0-9]{1,18}", re.ASCII)


@attrs.frozen(kw_only=True)
class Endpoint:
    """One method of one path. Endpoints of both alike are told apart by what they produce."""

    method: str
    path: str
    """As ``/v1/runs/{run}/decisions``."""
    handler: Handler
    role: Role | None
    """What it takes; None: it answers without a token (F-13)."""
    summary: str
    body: type[object] | None = None
    longest: int = LIMIT
    """Bytes that its body may have."""
    produces: tuple[str, ...] = (JSON,)
    """Media types of its 2xx answers; the first endpoint of a table answers ``*/*``."""
    query: Mapping[str, str] = attrs.field(factory=dict[str, str])
    """Its parameters, and what each means."""
    codes: tuple[str, ...] = ()
    """Problems that it may answer with, beside those that every one may."""
    statuses: tuple[int, ...] = (200,)
    """Its 2xx."""


@attrs.frozen(kw_only=True)
class Route:
    """What a request leads to."""

    endpoint: Endpoint
    ids: Mapping[str, str]


_ESCAPE: Final = re.compile(rb"%(?![0-9A-Fa-f]{2})")


class Router:
    """The endpoints, by their paths."""

    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        """Know them; raises `ValueError` where two cannot be told apart."""
        self.endpoints: Final = tuple(endpoints)
        self._paths: dict[tuple[str, ...], list[Endpoint]] = {}
        seen: set[tuple[str, str, str]] = set()
        for it in self.endpoints:
            for media in it.produces:
                if (it.method, it.path, media) in seen:
                    raise ValueError(f"two endpoints for {it.method} {it.path} as {media}")
                seen.add((it.method, it.path, media))
            self._paths.setdefault(tuple(it.path.split("/")[1:]), []).append(it)

    def route(self, method: str, raw_path: bytes, accept: str | None) -> Route:
        """Return where a request goes. Raises `Problem`: not_found, not_acceptable."""
        found = self._found(raw_path)
        if found is None:
            raise Problem("not_found", "there is no such endpoint")
        at, ids = found
        alike = [it for it in at if it.method == method]
        if not alike:
            raise MethodNotAllowed({it.method for it in at})
        return Route(endpoint=_negotiated(alike, accept), ids=ids)

    def methods(self, raw_path: bytes) -> frozenset[str]:
        """Return the methods of a path; none where there is no such endpoint."""
        found = self._found(raw_path)
        return frozenset() if found is None else frozenset(it.method for it in found[0])

    def _found(self, raw_path: bytes) -> tuple[Sequence[Endpoint], Mapping[str, str]] | None:
        segments = raw_path.split(b"/")[1:]
        for pattern, endpoints in self._paths.items():
            if len(pattern) != len(segments):
                continue
            pairs = list(zip(pattern, segments, strict=True))
            if all(name.startswith("{") or name.encode() == raw for name, raw in pairs):
                ids = {name[1:-1]: decoded(raw) for name, raw in pairs if name.startswith("{")}
                return endpoints, ids
        return None


class MethodNotAllowed(Problem):
    """A path that is there, and a method that is not."""

    def __init__(self, methods: Iterable[str]) -> None:
        """Say which are."""
        self.allow = ", ".join(sorted(methods))
        super().__init__("method_not_allowed", f"this path takes {self.allow}")

    def headers(self) -> dict[str, str]:
        """Return `Allow`."""
        return {"Allow": self.allow}


def decoded(segment: bytes) -> str:
    """Return the text of one percent-encoded segment, exact (F-2). Raises `Problem`."""
    if segment and not _ESCAPE.search(segment):
        try:
            return unquote_to_bytes(segment).decode()
        except UnicodeDecodeError:
            pass
    raise Problem("bad_request", "a segment of the path is no percent-encoded UTF-8 text")


def _negotiated(endpoints: Sequence[Endpoint], accept: str | None) -> Endpoint:
    """Return the endpoint that produces what is accepted most; the first of equals."""
    ranges = _ranges(accept)
    best = max(
        ((_quality(media, ranges), -place, it) for place, it in enumerate(endpoints)
         for media in it.produces),
        key=lambda found: found[:2],
    )  # fmt: skip
    if best[0] <= 0:
        offered = ", ".join(media for it in endpoints for media in it.produces)
        raise Problem("not_acceptable", f"this is offered as {offered}")
    return best[2]


def accepts(accept: str | None, media: str) -> bool:
    """Say whether a header ``Accept`` takes a media type."""
    return _quality(media, _ranges(accept)) > 0


def _ranges(accept: str | None) -> Mapping[str, float]:
    if accept is None or not accept.strip():
        return {"*/*": 1.0}
    found: dict[str, float] = {}
    for part in accept.split(","):
        media, *parameters = (it.strip().lower() for it in part.split(";"))
        quality = next((it[2:] for it in parameters if it.startswith("q=")), "1")
        try:
            found[media] = float(quality)
        except ValueError:
            found[media] = 0.0
    return found


def _quality(media: str, ranges: Mapping[str, float]) -> float:
    kind = media.partition("/")[0]
    for it in (media, f"{kind}/*", "*/*"):
        if it in ranges:
            return ranges[it]
    return 0.0
