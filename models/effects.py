"""The effects: what the kernel asks its host to do (kernel.md section 9). Never performed here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from .calls import CallResult
from .record import Record, base, count, field, identifier, instances, instant, json_object, record
from .values import Json


@base
class Effect(Record):
    """Base of all effects. `effect_id` is deterministic (K-7): performing one twice is visible."""

    type: ClassVar[str]
    effect_id: str = field(validator=identifier)


@record
class Execute(Effect):
    """Claim this attempt and run the tool; owed while it is ready and unclaimed.

    `idempotency_key` is the same for every attempt.
    """

    type: ClassVar[str] = "execute"
    turn_id: str = field(validator=identifier)
    invocation_id: str = field(validator=identifier)
    attempt: int = field(validator=count)
    tool_name: str = field(validator=identifier)
    arguments: Mapping[str, Json] = field(converter=json_object)
    idempotency_key: str = field(validator=identifier)


@record
class Cancel(Effect):
    """Stop this attempt if you can; owed while a cancel is asked and the attempt runs (K-53)."""

    type: ClassVar[str] = "cancel"
    turn_id: str = field(validator=identifier)
    invocation_id: str = field(validator=identifier)
    attempt: int = field(validator=count)


@record
class Continue(Effect):
    """Hand the results to the model, in expected order; owed until acknowledged (K-52)."""

    type: ClassVar[str] = "continue"
    turn_id: str = field(validator=identifier)
    results: tuple[CallResult, ...] = field(validator=instances(CallResult))


@record
class Wake(Effect):
    """Send a tick at `at`, Unix time: the first float at which the earliest deadline is over."""

    type: ClassVar[str] = "wake"
    at: float = field(validator=instant)


EFFECTS: tuple[type[Effect], ...] = (Execute, Cancel, Continue, Wake)
