"""One run's configuration: who it is, and how much of it is remembered (K-6)."""

from __future__ import annotations

from typing import Final

from .record import Record, any_text, count, field, identifier, instance, optional, record, seconds

OWN: Final = "own"
"""The kind of a run that turnlock's own runtime performs (K-61)."""


@record
class Limits(Record):
    """The bounds of a run, with the defaults of K-54 and K-56.

    They belong to the configuration: recovery must be given the same.
    """

    remembered: int = field(default=1_024, validator=count)
    """Entries of the recent-settled memory (K-54)."""
    remember_for: float = field(default=300.0, validator=seconds)
    """Seconds after which an entry of that memory is gone (K-54)."""
    calls: int = field(default=10_000, validator=count)
    """Calls of one turn (K-56)."""
    grants: int = field(default=1_000, validator=count)
    """Grants in force at once (K-56)."""
    continuations: int = field(default=1_000, validator=count)
    """Continuations owed at once (K-56)."""


@record
class Run(Record):
    """One agent's conversation: the unit of ownership and of sequence numbers (section 1)."""

    run_id: str = field(validator=identifier)
    agent_id: str | None = field(default=None, validator=optional(identifier))
    agent_name: str | None = field(default=None, validator=optional(any_text))
    kind: str = field(default=OWN, validator=identifier)
    """Which runtime performs it (K-61); the kernel does nothing with it."""
    limits: Limits = field(factory=Limits, validator=instance(Limits))
