"""A fact on its way out: server identity beside upstream correlation (seed 002, UC-006, UC-011)."""

from __future__ import annotations

from enum import StrEnum

import attrs

from .checks import count, identifier, instance, instant, optional
from .fact import Fact
from .ids import event_id
from .record import Record, record


class Completeness(StrEnum):
    """Whether upstream told every id that it has for such an event."""

    COMPLETE = "complete"
    PARTIAL = "partial"


@record
class Correlation(Record):
    """The ids that an upstream runtime uses for the same thing, each None where it has none."""

    thread_id: str | None = attrs.field(default=None, validator=optional(identifier))
    turn_id: str | None = attrs.field(default=None, validator=optional(identifier))
    item_id: str | None = attrs.field(default=None, validator=optional(identifier))
    approval_id: str | None = attrs.field(default=None, validator=optional(identifier))

    @property
    def completeness(self) -> Completeness:
        """COMPLETE with all four ids, PARTIAL with fewer."""
        ids = (self.thread_id, self.turn_id, self.item_id, self.approval_id)
        return Completeness.PARTIAL if None in ids else Completeness.COMPLETE


UNCORRELATED = Correlation()


@record
class Envelope(Record):
    """A fact with the identity that this server gives it, and what upstream calls it.

    The identity is deterministic and complete even where nothing upstream is known: `event_id` is
    ``event/run/sequence``, `occurred_at` the fact's Unix time in seconds.
    """

    event_id: str = attrs.field(validator=identifier)
    run_id: str = attrs.field(validator=identifier)
    sequence: int = attrs.field(validator=count)
    occurred_at: float = attrs.field(validator=instant)
    fact: Fact = attrs.field(validator=instance(Fact, below=True))
    correlation: Correlation = attrs.field(validator=instance(Correlation))


def envelop(fact: Fact, *, correlation: Correlation = UNCORRELATED) -> Envelope:
    """Put a fact into its envelope."""
    return Envelope(
        event_id=event_id(fact.run_id, fact.sequence),
        run_id=fact.run_id,
        sequence=fact.sequence,
        occurred_at=fact.at,
        fact=fact,
        correlation=correlation,
    )
