"""How the place of a journal is told: whatever is printed or kept, never with a password (D-55)."""

from __future__ import annotations

import os
import re
from typing import Final
from urllib.parse import unquote_plus

__all__ = ["shown_place"]

HIDDEN: Final = "***"
"""What stands where a password was."""

_SERVER: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://", re.DOTALL)
_FILES: Final = ("sqlite:", "memory:")
"""Schemes whose places are no server's: nothing in them is a password."""
_SECRET: Final = re.compile(r"pass(?!file)|secret|token", re.IGNORECASE)


def shown_place(url: str | os.PathLike[str]) -> str:
    """Return a path or URL as it may be shown: of a URL the password is hidden.

    A password may hold whatever its owner forgot to escape, so more is hidden rather than less:
    all up to the last @ is taken for it.
    """
    text = os.fspath(url)
    scheme = _SERVER.match(text)
    if isinstance(url, os.PathLike) or scheme is None or text.lower().startswith(_FILES):
        return text
    start = scheme[0]
    access, at, rest = text[len(start) :].rpartition("@")
    user, colon, _ = access.partition(":")
    if colon:
        access = f"{user}:{HIDDEN}"
    place, question, options = rest.partition("?")
    return f"{start}{access}{at}{place}{question}{'&'.join(map(_option, options.split('&')))}"


def _option(text: str) -> str:
    """Return an option of a URL, its value hidden where its name says that it is a secret."""
    name, equals, _ = text.partition("=")
    return f"{name}{equals}{HIDDEN}" if equals and _SECRET.search(unquote_plus(name)) else text
