"""Which journals there are, and how a URL names one: `--db` of every command goes through here.

To add one: a module of its own beside this one, with an `open_place`; one entry in `BACKENDS`; and
its fixture in tests/runtime/journal/backends.py, so that the whole contract is held against it.
"""

from __future__ import annotations

import os
import re
from importlib import import_module
from typing import Final, Protocol, cast

import attrs

from ..errors import JournalError
from .contract import Journal


class OpenPlace(Protocol):
    """What the module of a journal has under the name `open_place`."""

    async def __call__(self, place: str, *, create: bool) -> Journal:
        """Open the journal at a place, the URL without its scheme and colon.

        Make it where there is none, if `create`. Raises `JournalError`.
        """
        ...


@attrs.frozen(kw_only=True)
class Backend:
    """One kind of journal."""

    module: str
    """The module beside this one; it is imported when such a journal is opened, not before."""
    forms: str
    """What its URLs look like, for messages."""


BACKENDS: Final = {
    "sqlite": Backend(module="sqlite", forms="a path, sqlite:PATH or sqlite:///ABSOLUTE/PATH"),
    "memory": Backend(module="memory", forms="memory:"),
}
"""By the scheme of their URLs."""

_SCHEME: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):(?P<place>.*)", re.DOTALL)
"""Of two letters at least: `C:\\agent.db` is a path."""
_PLANNED: Final = frozenset({"postgresql", "postgres"})


async def open_journal(url: str | os.PathLike[str], *, create: bool = True) -> Journal:
    """Open the journal that a URL or a bare path names; a bare path is a SQLite file.

    `sqlite:PATH`, `sqlite:///ABSOLUTE/PATH` and `memory:` are known; a path is taken as it stands,
    without escapes. Where there is none it is made, unless `create` is False. Raises `JournalError`
    for a scheme that is not known, and for whatever is no journal.
    """
    text = os.fspath(url)
    named = _SCHEME.fullmatch(text) if isinstance(url, str) else None
    scheme, place = (named["scheme"].lower(), named["place"]) if named else ("sqlite", text)
    backend = BACKENDS.get(scheme)
    if backend is None:
        known = "; ".join(it.forms for it in BACKENDS.values())
        why = (
            f"turnlock keeps no journal in {scheme} yet"
            if scheme in _PLANNED
            else f"no journal is called {scheme!r}"
        )
        raise JournalError(
            f"journal {text}: {why}; give {known} (a file with a colon in its name: ./{text})"
        )
    module = import_module(f".{backend.module}", __package__)
    return await cast("OpenPlace", module.open_place)(place, create=create)
