"""Diagnostics: no sequence number, never state, never lifecycle authority (kernel.md section 4)."""

from __future__ import annotations

from typing import ClassVar

from .deliveries import Delivery, Log
from .reasons import Reason
from .record import Record, any_text, base, choice, field, identifier, instant, optional, record
from .verdicts import Refused, Verdict


@base
class Diagnostic(Record):
    """Base of both diagnostics; `at` is Unix time in seconds."""

    type: ClassVar[str]
    run_id: str = field(validator=identifier)
    at: float = field(validator=instant)
    turn_id: str | None = field(default=None, validator=optional(identifier))
    invocation_id: str | None = field(default=None, validator=optional(identifier))


@record
class ToolLog(Diagnostic):
    """What a tool wrote while it ran. No state is ever inferred from it (seed 001, E 2)."""

    type: ClassVar[str] = "TOOL_LOG"
    text: str = field(validator=any_text)


@record
class DeliveryRefused(Diagnostic):
    """A delivery of the kind `delivery` was refused."""

    type: ClassVar[str] = "DELIVERY_REFUSED"
    delivery: str = field(validator=identifier)
    reason: Reason = field(converter=choice(Reason))


DIAGNOSTICS: tuple[type[Diagnostic], ...] = (ToolLog, DeliveryRefused)


def diagnose(delivery: Delivery, verdict: Verdict, *, run_id: str, at: float) -> Diagnostic | None:
    """Return what a diagnostics channel should show of a receive: a refusal, a log, or nothing."""
    turn_id: str | None = getattr(delivery, "turn_id", None)
    invocation_id: str | None = getattr(delivery, "invocation_id", None)
    if isinstance(verdict, Refused):
        return DeliveryRefused(
            run_id=run_id,
            at=at,
            turn_id=turn_id,
            invocation_id=invocation_id,
            delivery=delivery.type,
            reason=verdict.reason,
        )
    if isinstance(delivery, Log):
        return ToolLog(
            run_id=run_id, at=at, turn_id=turn_id, invocation_id=invocation_id, text=delivery.text
        )
    return None
