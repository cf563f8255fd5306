"""The calls of a turn, and the results that go back to the model."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from .errors import InvalidValue
from .record import (
    Record,
    any_text,
    choice,
    field,
    flag,
    identifier,
    json_object,
    json_or_absent,
    optional,
    record,
    seconds,
)
from .values import ABSENT, Absent, Json, arguments_digest


@record
class Call(Record):
    """One tool call that a model response asked for (kernel.md section 3, open_turn).

    `invocation_id` is unique within its turn, and means nothing outside of it (K-20).
    `arguments` is a JSON object. `approval_timeout` is in seconds, and means nothing for a call
    that needs no approval. `provider_call_id` is the id as the provider sent it, kept as
    correlation; the kernel never looks at it (see `identify_calls`). An `observed` call is started
    by another runtime: no execute is ever owed for it, a claim records that it began (K-58).
    """

    invocation_id: str = field(validator=identifier)
    tool_name: str = field(validator=identifier)
    arguments: Mapping[str, Json] = field(converter=json_object)
    requires_approval: bool = field(validator=flag)
    observed: bool = field(default=False, validator=flag)
    approval_timeout: float | None = field(default=None, validator=optional(seconds))
    provider_call_id: str | None = field(default=None, validator=optional(any_text))
    arguments_digest: str | None = field(init=False, default=None, repr=False)
    """SHA-256 of the arguments (K-32) if approval is required; computed with the call, so that the
    owner of a run need not wait for it."""

    def __attrs_post_init__(self) -> None:
        """Compute the digest that a decision will be held against."""
        if self.requires_approval:
            object.__setattr__(self, "arguments_digest", arguments_digest(self.arguments))


class Status(StrEnum):
    """How an invocation ended, as the model is told (kernel.md section 9)."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    DENIED = "denied"


@record
class CallResult(Record):
    """One line of a continuation: what became of one call (kernel.md section 9).

    Exactly one of `result`, `error` and `reason` is given, as `status` says; a result may be null.
    """

    invocation_id: str = field(validator=identifier)
    tool_name: str = field(validator=identifier)
    status: Status = field(converter=choice(Status))
    result: Json | Absent = field(default=ABSENT, converter=json_or_absent)
    error: str | None = field(default=None, validator=optional(identifier))
    reason: str | None = field(default=None, validator=optional(identifier))
    provider_call_id: str | None = field(default=None, validator=optional(any_text))

    def __attrs_post_init__(self) -> None:
        """Hold the payload to the status."""
        given = (self.result is not ABSENT, self.error is not None, self.reason is not None)
        if given != tuple(self.status is status for status in Status):
            raise InvalidValue(
                place="status",
                cause=f"{self.status} does not fit the payload",
                fix="give a result to succeeded, an error to failed, a reason to denied",
            )
