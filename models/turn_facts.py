"""The turn family and the execution family (kernel.md section 4)."""

from __future__ import annotations

from typing import ClassVar

from .calls import Call
from .fact import FactType, TurnFact
from .record import (
    any_text,
    base,
    count,
    field,
    flag,
    identifier,
    instance,
    instances,
    instant,
    optional,
    record,
)


@record
class TurnOpened(TurnFact):
    """A turn began; `epoch` counts the opened turns of the run from 1 (K-21)."""

    type: ClassVar[FactType] = FactType.TURN_OPENED
    epoch: int = field(validator=count)
    sealed: bool = field(validator=flag)
    calls: tuple[Call, ...] = field(validator=instances(Call))


@record
class CallAdded(TurnFact):
    """An open turn has one call more (K-22)."""

    type: ClassVar[FactType] = FactType.CALL_ADDED
    call: Call = field(validator=instance(Call))


@record
class TurnSealed(TurnFact):
    """No more calls will come."""

    type: ClassVar[FactType] = FactType.TURN_SEALED


@record
class TurnSettled(TurnFact):
    """Sealed, and every expected invocation is terminal (K-50): its continuation is owed."""

    type: ClassVar[FactType] = FactType.TURN_SETTLED


@record
class TurnInterrupting(TurnFact):
    """The turn is being stopped; what runs may report until `grace_until`, Unix time (K-53)."""

    type: ClassVar[FactType] = FactType.TURN_INTERRUPTING
    grace_until: float = field(validator=instant)
    reason: str | None = field(default=None, validator=optional(any_text))


@record
class TurnInterrupted(TurnFact):
    """The turn is closed without a continuation (K-53)."""

    type: ClassVar[FactType] = FactType.TURN_INTERRUPTED


@record
class ContinuationTaken(TurnFact):
    """The host took the continuation of this turn (K-52)."""

    type: ClassVar[FactType] = FactType.CONTINUATION_TAKEN


@base
class ExecutionFact(TurnFact):
    """A fact about one attempt of a started invocation; none of them has lifecycle meaning."""

    invocation_id: str = field(validator=identifier)
    attempt: int = field(validator=count)


@record
class ExecutionInDoubt(ExecutionFact):
    """Its executor is gone: it was started, and nobody knows whether it happened (K-35)."""

    type: ClassVar[FactType] = FactType.EXECUTION_IN_DOUBT


@record
class RetryAuthorised(ExecutionFact):
    """Somebody allowed one more attempt after `attempt` (K-31): an execute effect is owed."""

    type: ClassVar[FactType] = FactType.RETRY_AUTHORISED


@record
class ExecutionRetried(ExecutionFact):
    """The claim of an authorised retry was accepted; `attempt` is the new one (K-31, K-33)."""

    type: ClassVar[FactType] = FactType.EXECUTION_RETRIED
    worker: str | None = field(default=None, validator=optional(identifier))
    lease_until: float | None = field(default=None, validator=optional(instant))


@record
class LeaseRenewed(ExecutionFact):
    """The executor is alive; its lease now runs until `lease_until`, Unix time (K-34)."""

    type: ClassVar[FactType] = FactType.LEASE_RENEWED
    lease_until: float = field(validator=instant)
