"""Where a server keeps its keys and its own token: beside the journal, or in the user's folder.

A journal in a file has them beside it. One behind a URL has no place of that kind, so they are in
the folder for state of whoever runs the server, `$XDG_STATE_HOME/turnlock` or
`~/.local/state/turnlock`, under a name made of the URL, which never has the password (D-55).
Servers of several hosts before one journal share a file that is named: --keys FILE.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Final

from ..models.errors import InvalidValue
from ..runtime.journal.contract import Journal
from ..runtime.journal.places import shown_place

_STATE: Final = "XDG_STATE_HOME"
_DIGITS: Final = 16
_STRANGE: Final = re.compile(r"[^A-Za-z0-9.-]+")
_NAMED: Final = 60
"""Characters of the URL that a name shows; the digest tells it apart."""


def state_file(db: str, journal: Journal, what: str) -> Path | None:
    """Return the file of a journal that was opened as `db`; None for a journal in memory.

    Raises `InvalidValue` where the folder cannot be made.
    """
    path: Path | None = getattr(journal, "path", None)
    if path is not None:
        return path.with_name(f"{path.name}.{what}")
    place = shown_place(db)
    if place.lower().startswith("memory:"):
        return None
    folder = _folder()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidValue(
            place=str(folder),
            cause=f"cannot be made ({error.strerror})",
            fix=f"let {_STATE} name a folder that can be written to, or give --keys and --tokens",
        ) from None
    digest = hashlib.sha256(place.encode(errors="surrogateescape")).hexdigest()[:_DIGITS]
    named = _STRANGE.sub("-", place.partition("://")[2].partition("?")[0]).strip("-.")[:_NAMED]
    return folder / f"{named}.{digest}.{what}"


def _folder() -> Path:
    named = Path(os.environ.get(_STATE, ""))
    base = named if named.is_absolute() else Path.home() / ".local" / "state"
    return base / "turnlock"
