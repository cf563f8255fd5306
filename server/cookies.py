"""The cookie of the console: sealed, so that nobody can make one, and the keys that seal (F-13)."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from ..models.errors import InvalidValue
from .routing import Who
from .secret_files import check_secret, write_secret
from .tokens import Tokens

COOKIE: Final = "turnlock"
LASTS: Final = 12 * 3_600.0
"""Seconds of a cookie."""
LONGEST: Final = 1_024
"""Characters of a cookie that is looked at."""

_NONCE: Final = 12
_KEY: Final = 32
_ABOUT: Final = b"turnlock cookie 1"


class Keys:
    """Keys of one face: the first seals, each opens."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        """Know them."""
        self._keys: Final = tuple(keys)

    @classmethod
    def made(cls) -> Keys:
        """Return a new key, which is kept nowhere."""
        return cls([secrets.token_bytes(_KEY)])

    @classmethod
    def of_file(cls, path: Path) -> Keys:
        """Return the keys of a file, lines of 64 hex digits; one that is missing is made (0600).

        Raises `InvalidValue` for a file that others may read, or that holds no key.
        """
        if not path.exists():
            write_secret(path, secrets.token_hex(_KEY))
        check_secret(path)
        place = str(path)
        try:
            keys = [bytes.fromhex(line) for line in path.read_text(encoding="ascii").split()]
        except OSError as error:
            raise InvalidValue(
                place=place, cause=f"cannot be read ({error.strerror})", fix="give a file of keys"
            ) from None
        except ValueError:
            keys = []
        if not keys or any(len(key) != _KEY for key in keys):
            raise InvalidValue(
                place=place,
                cause="holds no keys, lines of 64 hex digits",
                fix="remove it: a new one is made, and everybody signs in again",
            )
        return cls(keys)

    def derived(self, about: bytes) -> tuple[bytes, ...]:
        """Return keys for one purpose, which tell nothing of those for another."""
        return tuple(
            HKDF(algorithm=hashes.SHA256(), length=_KEY, salt=None, info=about).derive(key)
            for key in self._keys
        )


class Cookies:
    """Seals and opens cookies."""

    def __init__(self, keys: Keys, tokens: Tokens) -> None:
        """Seal with these keys, for these tokens."""
        self._sealing: Final = [AESGCM(key) for key in keys.derived(_ABOUT)]
        self._tokens: Final = tokens

    def seal(self, who: Who) -> tuple[str, Who]:
        """Return a cookie for who asks, and who that is from now on."""
        now = self._tokens.now()
        until = now + LASTS if who.until is None else min(now + LASTS, who.until)
        session = secrets.token_urlsafe(16)
        told = {"name": who.name, "mark": who.mark, "until": until, "session": session}
        nonce = secrets.token_bytes(_NONCE)
        sealed = nonce + self._sealing[0].encrypt(nonce, json.dumps(told).encode(), _ABOUT)
        found = Who(name=who.name, roles=who.roles, mark=who.mark, until=until, session=session)
        return base64.urlsafe_b64encode(sealed).decode().rstrip("="), found

    def open(self, cookie: str) -> Who | None:
        """Return whose cookie it is; None for a forged one, and one that has ended."""
        told = self._opened(cookie)
        if told is None:
            return None
        token = self._tokens.named(told["name"])
        if token is None or token.mark != told["mark"]:
            return None
        who = token.who(until=told["until"], session=told["session"])
        return who if self._tokens.is_current(who) else None

    def _opened(self, cookie: str) -> dict[str, Any] | None:
        if len(cookie) > LONGEST:
            return None
        try:
            raw = base64.b64decode(cookie + "=" * (-len(cookie) % 4), altchars=b"-_", validate=True)
        except ValueError:
            return None
        for it in self._sealing:
            with suppress(InvalidTag, ValueError):
                told: dict[str, Any] = json.loads(it.decrypt(raw[:_NONCE], raw[_NONCE:], _ABOUT))
                return told
        return None
