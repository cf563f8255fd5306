"""Attempts to come in: wrong tokens are counted, and a code is good for one use (F-13)."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final

import attrs

from .problems import Problem
from .tokens import Token, digest_of

WRONG: Final = 10
"""Wrong tokens of one address in a minute; then none of it is compared until the minute is over."""
MINUTE: Final = 60.0
ADDRESSES: Final = 4_096
"""Addresses that are remembered."""
CODE: Final = 600.0
"""Seconds for which a code is good."""
CODES: Final = 16
"""Codes that are good at once."""

_NETWORK: Final = 64


class Attempts:
    """Counts the wrong tokens of each address; of IPv6, of each /64."""

    def __init__(self, *, now: Callable[[], float]) -> None:
        """Count by this clock."""
        self._now: Final = now
        self._wrong: OrderedDict[str, deque[float]] = OrderedDict()

    def check(self, address: str) -> None:
        """Raise `Problem` (`too_many_attempts`) where an address was wrong too often."""
        times = self._wrong.get(_of(address))
        if times is None or len(times) < WRONG:
            return
        left = times[0] + MINUTE - self._now()
        if left > 0:
            raise Problem(
                "too_many_attempts",
                "too many wrong tokens came from this address; wait, and send the right one",
                extra={"retry_after": int(left) + 1},
            )

    def wrong(self, address: str) -> None:
        """Count one."""
        key = _of(address)
        self._wrong.setdefault(key, deque(maxlen=WRONG)).append(self._now())
        self._wrong.move_to_end(key)
        if len(self._wrong) > ADDRESSES:
            self._wrong.popitem(last=False)


def _of(address: str) -> str:
    try:
        it = ipaddress.ip_address(address)
    except ValueError:
        return address
    if it.version == 6:  # noqa: PLR2004 - IP's
        return str(ipaddress.ip_network((it.packed, _NETWORK), strict=False))
    return address


@attrs.frozen
class _Code:
    digest: bytes
    token: Token
    until: float


class Codes:
    """Codes for one use, each for a token."""

    def __init__(self, *, now: Callable[[], float]) -> None:
        """Count by this clock."""
        self._now: Final = now
        self._codes: list[_Code] = []

    def make(self, token: Token) -> str:
        """Return a code that stands for a token once, for `CODE` seconds."""
        code = secrets.token_urlsafe(24)
        made = _Code(digest_of(code), token, self._now() + CODE)
        self._codes = [*self._codes[1 - CODES :], made]
        return code

    def use(self, code: str) -> Token | None:
        """Return the token that a code stands for, once."""
        digest, now, found = digest_of(code), self._now(), None
        kept: list[_Code] = []
        for it in self._codes:
            if hmac.compare_digest(it.digest, digest):
                found = it.token if now < it.until else None
            elif now < it.until:
                kept.append(it)
        self._codes = kept
        return found
