"""The lifecycle family: exactly six facts (seed 001 section 4; kernel.md section 4).

No other fact has lifecycle meaning, and no older name for one exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar

import attrs

from .deliveries import Match, Scope
from .errors import InvalidValue
from .fact import FactType, TurnFact
from .record import (
    any_text,
    base,
    choice,
    count,
    field,
    identifier,
    instant,
    json_object,
    json_value,
    optional,
    optional_json_object,
    record,
)
from .values import Json


class DenialCause(StrEnum):
    """What denied an invocation: a decision, its deadline, or the turn's interrupt."""

    DECISION = "decision"
    EXPIRY = "expiry"
    INTERRUPT = "interrupt"


class FailureCause(StrEnum):
    """Who says that an invocation failed."""

    REJECTED = "rejected"
    REPORTED = "reported"
    RESOLVED = "resolved"
    INTERRUPTED = "interrupted"


@base
class LifecycleFact(TurnFact):
    """What the six have in common; `agent_id` and `agent_name` where the run has them."""

    invocation_id: str = field(validator=identifier)
    tool_name: str = field(validator=identifier)
    agent_id: str | None = field(default=None, validator=optional(identifier))
    agent_name: str | None = field(default=None, validator=optional(any_text))


@record
class ToolApprovalRequested(LifecycleFact):
    """Somebody is asked; a decision echoes `arguments_digest` (K-32). `deadline` is Unix time."""

    type: ClassVar[FactType] = FactType.TOOL_APPROVAL_REQUESTED
    arguments: Mapping[str, Json] = field(converter=json_object)
    arguments_digest: str = field(validator=identifier)
    deadline: float | None = field(default=None, validator=optional(instant))


@record
class ToolApproved(LifecycleFact):
    """Approved by a decision, or by the grant that `grant_id` names (K-41).

    `arguments` are the edited ones, where the decision brought some (K-32). `match` is given where
    the scope makes it count.
    """

    type: ClassVar[FactType] = FactType.TOOL_APPROVED
    scope: Scope = field(converter=choice(Scope))
    match: Match | None = field(default=None, converter=attrs.converters.optional(choice(Match)))
    grant_id: str | None = field(default=None, validator=optional(identifier))
    arguments: Mapping[str, Json] | None = field(default=None, converter=optional_json_object)
    reason: str | None = field(default=None, validator=optional(any_text))
    decided_by: str | None = field(default=None, validator=optional(any_text))


@record
class ToolDenied(LifecycleFact):
    """Denied before it started: carries a reason or an error (seed 001 section 4)."""

    type: ClassVar[FactType] = FactType.TOOL_DENIED
    cause: DenialCause = field(converter=choice(DenialCause))
    reason: str | None = field(default=None, validator=optional(identifier))
    error: str | None = field(default=None, validator=optional(identifier))
    decided_by: str | None = field(default=None, validator=optional(any_text))

    def __attrs_post_init__(self) -> None:
        """Demand a reason or an error."""
        if self.reason is None and self.error is None:
            raise InvalidValue(
                place="reason", cause="a denial says why", fix="give a reason or an error"
            )


@record
class ToolExecutionStarted(LifecycleFact):
    """The first claim was accepted (K-33). `lease_until` is Unix time."""

    type: ClassVar[FactType] = FactType.TOOL_EXECUTION_STARTED
    attempt: int = field(validator=count)
    arguments: Mapping[str, Json] | None = field(default=None, converter=optional_json_object)
    worker: str | None = field(default=None, validator=optional(identifier))
    lease_until: float | None = field(default=None, validator=optional(instant))


@record
class ToolExecutionSucceeded(LifecycleFact):
    """The outcome is a result; null, 0, "", false and [] are results (K-36)."""

    type: ClassVar[FactType] = FactType.TOOL_EXECUTION_SUCCEEDED
    result: Json = field(converter=json_value)


@record
class ToolExecutionFailed(LifecycleFact):
    """The outcome is an error, whatever its text (K-36)."""

    type: ClassVar[FactType] = FactType.TOOL_EXECUTION_FAILED
    error: str = field(validator=identifier)
    cause: FailureCause = field(converter=choice(FailureCause))
