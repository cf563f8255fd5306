"""What every fact has, and the closed list of their names (kernel.md section 4)."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, Protocol

import attrs

from .inputs import Input
from .record import Record, base, choice, count, field, identifier, instant, optional


class FactType(StrEnum):
    """The name of each fact. The first six are the lifecycle family, and no other is."""

    TOOL_APPROVAL_REQUESTED = "TOOL_APPROVAL_REQUESTED"
    TOOL_APPROVED = "TOOL_APPROVED"
    TOOL_DENIED = "TOOL_DENIED"
    TOOL_EXECUTION_STARTED = "TOOL_EXECUTION_STARTED"
    TOOL_EXECUTION_SUCCEEDED = "TOOL_EXECUTION_SUCCEEDED"
    TOOL_EXECUTION_FAILED = "TOOL_EXECUTION_FAILED"
    TURN_OPENED = "TURN_OPENED"
    CALL_ADDED = "CALL_ADDED"
    TURN_SEALED = "TURN_SEALED"
    TURN_SETTLED = "TURN_SETTLED"
    TURN_INTERRUPTING = "TURN_INTERRUPTING"
    TURN_INTERRUPTED = "TURN_INTERRUPTED"
    CONTINUATION_TAKEN = "CONTINUATION_TAKEN"
    EXECUTION_IN_DOUBT = "EXECUTION_IN_DOUBT"
    RETRY_AUTHORISED = "RETRY_AUTHORISED"
    EXECUTION_RETRIED = "EXECUTION_RETRIED"
    LEASE_RENEWED = "LEASE_RENEWED"
    GRANT_ISSUED = "GRANT_ISSUED"
    GRANT_REVOKED = "GRANT_REVOKED"
    GRANT_EXPIRED = "GRANT_EXPIRED"


@base
class Fact(Record):
    """Something that has happened in a run.

    `sequence` counts the facts of the run from 1, without gaps. `at` is the Unix time in seconds of
    the receive that brought it forth. `commit` is the sequence of the last fact of that receive:
    the facts of one receive are one commit, and recovery drops an incomplete last one (K-9).
    `input` is what brought it about (K-59); None in a journal that an older version wrote.
    """

    type: ClassVar[FactType]
    run_id: str = field(validator=identifier)
    sequence: int = field(validator=count)
    commit: int = field(validator=count)
    at: float = field(validator=instant)
    input: Input | None = field(default=None, converter=attrs.converters.optional(choice(Input)))


class Foldable(Protocol):
    """What the fold asks of any fact; of each type it reads some fields more, under their names.

    A `Fact` is one, and so is what a journal's reader makes of a line for the fold alone.
    """

    type: ClassVar[FactType]

    @property
    def run_id(self) -> str: ...  # noqa: D102 - as Fact
    @property
    def sequence(self) -> int: ...  # noqa: D102
    @property
    def commit(self) -> int: ...  # noqa: D102
    @property
    def at(self) -> float: ...  # noqa: D102


@base
class TurnFact(Fact):
    """A fact of one turn."""

    turn_id: str = field(validator=identifier)


@base
class GrantFact(Fact):
    """A fact of one grant; `turn_id` is None where it happened outside of a turn."""

    grant_id: str = field(validator=identifier)
    turn_id: str | None = field(validator=optional(identifier))
