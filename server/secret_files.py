"""Files that their owner alone may read: keys, and the token that a server makes (F-13)."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from ..models.errors import InvalidValue


def write_secret(path: Path, secret: str) -> None:
    """Write a file that is whole from its first moment; of two processes the first one counts.

    Raises `InvalidValue` where it cannot be written.
    """
    passing = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        handle = os.open(passing, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(f"{secret}\n")
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(passing, path)
    except OSError as error:
        raise InvalidValue(
            place=str(path),
            cause=f"cannot be written ({error.strerror})",
            fix="name a file in a folder that can be written to",
        ) from None
    finally:
        with suppress(OSError):
            passing.unlink(missing_ok=True)


def check_secret(path: Path) -> None:
    """Raise `InvalidValue` for a file that cannot be looked at, or that others may read."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise InvalidValue(
            place=str(path), cause=f"cannot be read ({error.strerror})", fix="name another file"
        ) from None
    if stat.S_ISDIR(mode):
        raise InvalidValue(place=str(path), cause="is a folder", fix="name a file in it")
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise InvalidValue(place=str(path), cause="may be read by others", fix=f"chmod 600 {path}")
