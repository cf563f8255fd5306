"""What a URL of a journal in PostgreSQL says (D-55): ours is taken off, the rest is the driver's.

`postgresql://user@h1,h2/db?schema=turnlock&lanes=1&listen=on`. A password may stand in it, and is
shown nowhere: what is shown is made of the parts that are known to be none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit

import attrs

from ....models.errors import shown
from ...errors import NoJournal
from .tables import SCHEMA, Tables

T = TypeVar("T")

ANSWER: Final = 10.0
"""Seconds for which an answer is waited for, unless told otherwise."""
POLL: Final = 0.25
"""Seconds between two looks where no notice comes (D-51)."""
MOST_LANES: Final = 16
"""Lanes for facts, each with a connection."""

_HOST: Final = re.compile(r"(?P<host>\[[0-9a-fA-F:.%]+\]|[^\s:@/\[\]]*)(:[0-9]{1,5})?")
_TLS_FILES: Final = frozenset({"sslrootcert", "sslcert", "sslkey", "sslcrl"})


@attrs.frozen(kw_only=True)
class Place:
    """Where a journal is kept, and how it is spoken to."""

    dsn: str = attrs.field(repr=False)
    """What the driver is given. It may hold a password."""
    shown: str
    """Host, database and schema, for messages."""
    tables: Tables
    lanes: int = 1
    """Connections that append (D-33)."""
    listen: bool = True
    """Whether notices are listened to (D-52)."""
    prepared: bool = True
    """Whether statements are kept prepared in a session."""
    poll: float = POLL
    answer_within: float = ANSWER
    """Seconds for which an answer is waited for; then the connection is dropped (D-36)."""
    unsafe: bool = False
    """Whether a server may be used that does not wait for its disk (D-36)."""
    tls_files: bool = False
    """Whether the URL names files for TLS, which the driver opens before it connects."""
    tls_first: bool = False
    """Whether TLS is begun without a question (`sslnegotiation=direct`)."""
    standby: bool = False
    """Whether any of several servers will do: to read only."""
    on_busy: str | None = None
    """What is done in the transaction of an append that opens a turn; no URL says it (D-72)."""


def place_of(url: str, *, read_only: bool = False) -> Place:
    """Return what a URL says. Raises `NoJournal` for one that cannot be read, showing no secret."""
    try:
        parts = urlsplit(url)
        given = dict(
            parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        )
    except ValueError:
        raise _unreadable("it is no URL") from None
    hosts, database = _hosts(parts, given), _database(parts, given)
    ours = {name: given.pop(name) for name in _OPTIONS if name in given}
    told = {name: read(name, ours[name]) for name, read in _OPTIONS.items() if name in ours}
    tables = Tables.of(told.pop("schema", SCHEMA))
    if "," in hosts and not read_only:
        given.setdefault("target_session_attrs", "read-write")
    elif "," in hosts:
        given.setdefault("target_session_attrs", "prefer-standby")
    scheme = parts.scheme.lower()
    dsn = parts._replace(scheme=scheme, query=urlencode(given), fragment="").geturl()
    name = f"postgresql://{hosts or 'localhost'}/{database}?schema={tables.schema}"
    return Place(
        dsn=dsn,
        shown=name,
        tables=tables,
        tls_files=not _TLS_FILES.isdisjoint(given),
        tls_first=given.get("sslnegotiation", os.environ.get("PGSSLNEGOTIATION")) == "direct",
        standby=read_only,
        **told,
    )


def _hosts(parts: SplitResult, given: Mapping[str, str]) -> str:
    auth, _, hosts = parts.netloc.rpartition("@")
    if "@" in auth:
        raise _unreadable("its user or its password holds a bare @")
    hosts = unquote(hosts) or given.get("host", "")
    if not hosts.startswith("/") and not all(map(_HOST.fullmatch, hosts.split(","))):
        raise _unreadable("its host is none, or its port")
    return hosts


def _database(parts: SplitResult, given: Mapping[str, str]) -> str:
    path = parts.path.removeprefix("/")
    if "/" in path or "@" in path or parts.fragment:
        raise _unreadable("what stands where the database is named holds a bare /, @ or #")
    return unquote(path) or given.get("database") or given.get("dbname") or ""


def _unreadable(cause: str) -> NoJournal:
    return NoJournal(
        f"journal postgresql: {cause}; give postgresql://USER@HOST/DATABASE?schema=NAME, and write"
        " what is special in a user, a password or a database as %40, %2F, %23 or %3A"
    )


def _wrong(name: str, text: str, fix: str) -> NoJournal:
    return NoJournal(f"journal postgresql: {name}={shown(text)} in its URL: give {fix}")


def _text(_: str, text: str) -> str:
    return text


def _flag(name: str, text: str) -> bool:
    if text not in {"on", "off"}:
        raise _wrong(name, text, "on or off")
    return text == "on"


def _number(kind: Callable[[str], T], least: float, most: float) -> Callable[[str, str], T]:
    def read(name: str, text: str) -> T:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not least <= float(value) <= most:  # type: ignore[arg-type]
            raise _wrong(name, text, f"a number from {least:g} to {most:g}")
        return value

    return read


_OPTIONS: Final[Mapping[str, Callable[[str, str], Any]]] = {
    "schema": _text,
    "lanes": _number(int, 1, MOST_LANES),
    "listen": _flag,
    "prepared": _flag,
    "poll": _number(float, 0.01, 60.0),
    "unsafe": _flag,
}
"""What in a URL's query is ours, and how it is read."""
