"""What may not stand in an agent's spec, told by its name: keys, and where they are sent (W-15).

A spec stands in a log that others read, and may come from elsewhere. A key in it would be told to
all of them; an address in it would have the host send its own key there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from ..models.errors import InvalidValue
from ..models.values import Json

_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", re.ASCII)
_SECRET: Final = frozenset(
    {
        "apikey",
        "auth",
        "authorization",
        "bearer",
        "cookie",
        "credential",
        "credentials",
        "passphrase",
        "passwd",
        "password",
        "secret",
        "secrets",
        "authtoken",
        "accesstoken",
        "privatekey",
        "secretkey",
        "accesskey",
    }
)
"""Words that name a secret wherever they stand."""
_KEYS: Final = frozenset(
    {
        "access",
        "account",
        "api",
        "auth",
        "encryption",
        "private",
        "secret",
        "signing",
        "subscription",
    }
)
"""Words that make a secret of the `key` after them; the key of a cache is none."""
_ADDRESS: Final = frozenset(
    {
        "baseurl",
        "endpoint",
        "endpoints",
        "header",
        "headers",
        "proxies",
        "proxy",
        "uri",
        "url",
        "urls",
        "trusted",
    }
)
"""Words that name where something is sent, or with what."""
_PLACES: Final = frozenset({("api", "base"), ("api", "host"), ("base", "path")})
_VALUE: Final = re.compile(
    r"(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}|AIza[A-Za-z0-9_-]{30,}|(?:ghp|gho|github_pat)_[A-Za-z0-9_]{16,}"
    r"|xox[abp]-[A-Za-z0-9-]{10,}|AKIA[A-Z0-9]{16}|Bearer\s+\S+",
    re.ASCII,
)
"""What keys of known providers look like."""
_FIX: Final = "put it into the host's own file, where each provider has its key and its address"


def check_options(value: Json, *, place: str) -> None:
    """Raise `InvalidValue` where a name says a secret or an address, or a text looks like a key."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            _check_name(name, place=f"{place}.{name}")
            check_options(item, place=f"{place}.{name}")
    elif isinstance(value, str):
        if _VALUE.match(value):
            raise InvalidValue(place=place, cause="looks like a key", fix=_FIX)
    elif isinstance(value, Sequence):
        for index, item in enumerate(value):
            check_options(item, place=f"{place}[{index}]")


def _check_name(name: str, *, place: str) -> None:
    words = [word.lower() for word in _WORDS.findall(name)]
    pairs = [*pairwise(words)]
    keys = any(after == "key" and before in _KEYS for before, after in pairs)
    last = words[-1:]
    if keys or last == ["token"] or words == ["key"] or not _SECRET.isdisjoint(words):
        raise InvalidValue(place=place, cause="names a secret, and a spec holds none", fix=_FIX)
    if not _ADDRESS.isdisjoint(words) or not _PLACES.isdisjoint(pairs):
        raise InvalidValue(
            place=place, cause="names where a model is asked, which is the host's to say", fix=_FIX
        )
