"""The deliveries: everything that can arrive at the kernel (kernel.md section 3).

A delivery that cannot be built raises `InvalidValue` here, in the caller's hands (K-8). One that
can be built is never an error afterwards: the kernel accepts it or refuses it with a reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, TypeAlias

from .calls import Call
from .choices import Match as Match  # noqa: PLC0414 - these three are of the deliveries
from .choices import Resolution as Resolution  # noqa: PLC0414 - as above
from .choices import Scope as Scope  # noqa: PLC0414 - as above
from .errors import InvalidValue
from .record import (
    Record,
    any_text,
    base,
    choice,
    field,
    flag,
    identifier,
    instance,
    instances,
    json_or_absent,
    optional,
    optional_json_object,
    record,
    seconds,
    whole,
)
from .values import ABSENT, Absent, Json


@base
class Delivery(Record):
    """Base of all deliveries. A `run_id` that is not the run's is refused (run_mismatch)."""

    type: ClassVar[str]
    run_id: str | None = field(default=None, validator=optional(identifier))


@record
class OpenTurn(Delivery):
    """A model response asked for these calls. `epoch` counts opened turns from 1 (K-21, K-55)."""

    type: ClassVar[str] = "open_turn"
    turn_id: str = field(validator=identifier)
    calls: tuple[Call, ...] = field(validator=instances(Call))
    sealed: bool = field(default=True, validator=flag)
    epoch: int | None = field(default=None, validator=optional(whole))


@record
class AddCall(Delivery):
    """One more call, while the model response is still streaming (K-22)."""

    type: ClassVar[str] = "add_call"
    turn_id: str = field(validator=identifier)
    call: Call = field(validator=instance(Call))


@record
class SealTurn(Delivery):
    """No more calls will come (K-22)."""

    type: ClassVar[str] = "seal_turn"
    turn_id: str = field(validator=identifier)


@record
class Decide(Delivery):
    """Somebody approves or denies an invocation (K-32, K-40 … K-42).

    `arguments` are edited ones. `expires_in` is in seconds. With scope once, `match` and
    `expires_in` mean nothing. `arguments_digest` echoes what TOOL_APPROVAL_REQUESTED showed.
    """

    type: ClassVar[str] = "decide"
    turn_id: str = field(validator=identifier)
    invocation_id: str = field(validator=identifier)
    approved: bool = field(validator=flag)
    reason: str | None = field(default=None, validator=optional(any_text))
    decided_by: str | None = field(default=None, validator=optional(any_text))
    scope: Scope = field(default=Scope.ONCE, converter=choice(Scope))
    match: Match = field(default=Match.EXACT, converter=choice(Match))
    expires_in: float | None = field(default=None, validator=optional(seconds))
    arguments_digest: str | None = field(default=None, validator=optional(any_text))
    arguments: Mapping[str, Json] | None = field(default=None, converter=optional_json_object)

    def __attrs_post_init__(self) -> None:
        """Refuse a scope on a deny: a deny is always once (K-42)."""
        if not self.approved and self.scope is not Scope.ONCE:
            raise InvalidValue(
                place="scope",
                cause=f"a deny cannot have the scope {self.scope}",
                fix="leave the scope out: a deny is always once",
            )


@record
class Claim(Delivery):
    """An executor asks for the right to start (K-33). `lease` is in seconds (K-34)."""

    type: ClassVar[str] = "claim"
    turn_id: str = field(validator=identifier)
    invocation_id: str = field(validator=identifier)
    attempt: int = field(validator=whole)
    worker: str | None = field(default=None, validator=optional(identifier))
    lease: float | None = field(default=None, validator=optional(seconds))


@record
class Renew(Delivery):
    """The executor is still alive: its lease runs anew, for `lease` seconds (K-34)."""

    type: ClassVar[str] = "renew"
    turn_id: str = field(validator=identifier)
    invocation_id: str = field(validator=identifier)
    lease: float = field(validator=seconds)
    attempt: int | None = field(default=None, validator=optional(whole))


@record
class Reject(Delivery):
    """It could not be started: no such tool, bad arguments, a preprocessor failed."""

    type: ClassVar[str] = "reject"
    invocation_id: str = field(validator=identifier)
    error: str = field(validator=identifier)
    turn_id: str | None = field(default=None, validator=optional(identifier))


@record
class Report(Delivery):
    """The outcome of an execution: a `result`, which may be null (K-36), or an `error`."""

    type: ClassVar[str] = "report"
    invocation_id: str = field(validator=identifier)
    result: Json | Absent = field(default=ABSENT, converter=json_or_absent)
    error: str | None = field(default=None, validator=optional(identifier))
    attempt: int | None = field(default=None, validator=optional(whole))
    turn_id: str | None = field(default=None, validator=optional(identifier))

    def __attrs_post_init__(self) -> None:
        """Demand one outcome, not two and not none."""
        if (self.result is ABSENT) is (self.error is None):
            raise InvalidValue(
                place="result",
                cause="a report needs a result or an error, and not both",
                fix="give result (null is one) for a success, error for a failure",
            )


@record
class Lose(Delivery):
    """The executor is gone, the outcome is unknown (K-35)."""

    type: ClassVar[str] = "lose"
    invocation_id: str = field(validator=identifier)
    attempt: int | None = field(default=None, validator=optional(whole))
    turn_id: str | None = field(default=None, validator=optional(identifier))


@record
class Resolve(Delivery):
    """Somebody decides what an unknown outcome was (K-35); `resolution` is `as` on the wire."""

    type: ClassVar[str] = "resolve"
    turn_id: str = field(validator=identifier)
    invocation_id: str = field(validator=identifier)
    attempt: int = field(validator=whole)
    resolution: Resolution = field(converter=choice(Resolution))
    result: Json | Absent = field(default=ABSENT, converter=json_or_absent)
    error: str | None = field(default=None, validator=optional(identifier))

    def __attrs_post_init__(self) -> None:
        """Demand the payload that the resolution names, and no other."""
        has_result, has_error = self.result is not ABSENT, self.error is not None
        if has_result is not (self.resolution is Resolution.RESULT) or has_error is not (
            self.resolution is Resolution.ERROR
        ):
            raise InvalidValue(
                place="resolution",
                cause=f"{self.resolution} does not fit the payload",
                fix="give result with as=result, error with as=error, neither with as=retry",
            )


@record
class Interrupt(Delivery):
    """Stop this turn, named explicitly and never widened; `grace` is in seconds (K-53)."""

    type: ClassVar[str] = "interrupt"
    turn_id: str = field(validator=identifier)
    reason: str | None = field(default=None, validator=optional(any_text))
    grace: float = field(default=10.0, validator=seconds)


@record
class Acknowledge(Delivery):
    """The host has taken the continuation of this turn (K-52)."""

    type: ClassVar[str] = "acknowledge"
    turn_id: str = field(validator=identifier)


@record
class Revoke(Delivery):
    """Let a grant cover nothing more (K-42)."""

    type: ClassVar[str] = "revoke"
    grant_id: str = field(validator=identifier)


@record
class Log(Delivery):
    """A line of diagnostics (TOOL_LOG): always accepted, never a fact, never state."""

    type: ClassVar[str] = "log"
    invocation_id: str = field(validator=identifier)
    text: str = field(validator=any_text)
    turn_id: str | None = field(default=None, validator=optional(identifier))


@record
class Tick(Delivery):
    """Time has passed (K-11)."""

    type: ClassVar[str] = "tick"


ForInvocation: TypeAlias = Decide | Claim | Renew | Reject | Report | Lose | Resolve
"""What names an invocation, and asks its table."""
ForTurn: TypeAlias = AddCall | SealTurn | Interrupt
"""What names a turn, and asks the table of turns."""

DELIVERIES: tuple[type[Delivery], ...] = (
    OpenTurn,
    AddCall,
    SealTurn,
    Decide,
    Claim,
    Renew,
    Reject,
    Report,
    Lose,
    Resolve,
    Interrupt,
    Acknowledge,
    Revoke,
    Log,
    Tick,
)
