"""Tokens: who may ask for what (F-10, F-11, F-13).

A file of lines ``NAME ROLES SHA256``: roles a comma list, the digest of the token in hex.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from typing import Self

import attrs

from .routing import Role, Who


@attrs.frozen(kw_only=True)
class Token:
    """One token, known by its digest alone."""

    who: Who
    digest: bytes = attrs.field(repr=False)

    @classmethod
    def of(cls, name: str, roles: Iterable[Role], secret: str) -> Self:
        """Return the token that a secret is."""
        digest = hashlib.sha256(secret.encode()).digest()
        return cls(who=Who(name=name, roles=frozenset(roles)), digest=digest)


class Tokens:
    """The tokens that count now."""

    def __init__(self, tokens: Iterable[Token] = ()) -> None:
        """Begin with these."""
        self._tokens = {it.who.name: it for it in tokens}

    def find(self, secret: str) -> Who | None:
        """Return whose token it is. All are compared, each in constant time."""
        digest = hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
        found = None
        for it in self._tokens.values():
            if hmac.compare_digest(it.digest, digest):
                found = it.who
        return found

    def named(self, name: str) -> Who | None:
        """Return who has the token of a name; None once it is gone."""
        token = self._tokens.get(name)
        return None if token is None else token.who
