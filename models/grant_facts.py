"""The grant family (K-40 … K-42)."""

from __future__ import annotations

from typing import ClassVar

from .deliveries import Match, Scope
from .fact import FactType, GrantFact
from .record import choice, field, identifier, instant, optional, record


@record
class GrantIssued(GrantFact):
    """From now on, calls that it covers are approved at once.

    `arguments_digest` is that of the arguments approved, which counts with match exact.
    """

    type: ClassVar[FactType] = FactType.GRANT_ISSUED
    tool_name: str = field(validator=identifier)
    match: Match = field(converter=choice(Match))
    arguments_digest: str = field(validator=identifier)
    scope: Scope = field(converter=choice(Scope))
    expires_at: float | None = field(default=None, validator=optional(instant))


@record
class GrantRevoked(GrantFact):
    """Somebody took the grant back; approvals already given stay (K-42)."""

    type: ClassVar[FactType] = FactType.GRANT_REVOKED


@record
class GrantExpired(GrantFact):
    """The grant's time was over (K-42)."""

    type: ClassVar[FactType] = FactType.GRANT_EXPIRED
