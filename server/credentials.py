"""Where a server is, and by which token it is asked: the two are never one text (F-13)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ..models.errors import TurnlockError
from ..models.safe_text import harmless

TOKEN: Final = "TURNLOCK_TOKEN"  # noqa: S105 - the name of a variable
"""The variable that holds a token."""
TOKEN_FILE: Final = "TURNLOCK_TOKEN_FILE"  # noqa: S105 - likewise
"""The variable that names the file of a token, where `TOKEN` is not set."""
NOT_LET_IN: Final = (
    "the server does not know this token, or was given none: name its file by --token-file, or set"
    f" {TOKEN} or {TOKEN_FILE}"
)
"""What whoever asked is told of a token that the server does not take."""
_TOKEN_BYTES: Final = 4_096


def read_token(file: str | os.PathLike[str] | None = None) -> str | None:
    """Return the token to use: of this file, else of the environment; None where there is none.

    Raises `TurnlockError` for a file that cannot be read, or what can be no token.
    """
    named = None if file is None else os.fspath(file)
    text = None if named is not None else os.environ.get(TOKEN) or None
    where = TOKEN
    if text is None:
        named = named or os.environ.get(TOKEN_FILE) or None
        if named is None:
            return None
        where = f"the token file {named}"
        try:
            with Path(named).open("rb") as opened:
                text = opened.read(_TOKEN_BYTES + 1).decode("ascii", "replace")
        except OSError as error:
            raise TurnlockError(
                f"{where} cannot be read ({error.strerror}); name another"
            ) from None
    token = text.strip()
    if not token or len(token) > _TOKEN_BYTES or not token.isascii() or not token.isprintable():
        raise TurnlockError(f"{where} holds no token: one line of printable characters is one")
    return token


def checked_url(url: str) -> str:
    """Return the address of a server without its last slash. Raises `TurnlockError` for no such."""
    try:
        parts = urlsplit(url)
        fits = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fits = False
        parts = urlsplit("")
    if not fits or not url.isprintable() or " " in url:
        raise TurnlockError(
            f"{harmless(url, limit=80)!r} is no address of a server; give http://HOST:PORT"
        )
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise TurnlockError(
            "the address of a server has no user, no query and no fragment; a token is given by"
            f" --token-file, {TOKEN} or {TOKEN_FILE}: an address is kept and shown everywhere"
        )
    return url.rstrip("/")
