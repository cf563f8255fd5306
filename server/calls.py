"""A call as clients see it (F-31): its id for ever (F-32), who decided, and what may be said of it.

`allowed` is read from the enforced table, less what the kind of the run cannot do: a client offers
that, and nothing else.
"""

from __future__ import annotations

import re
from typing import Any, Final

from ..adapters.contract import Capabilities
from ..models.calls import Status
from ..models.deliveries import Scope
from ..models.inputs import Input
from ..models.lifecycle_facts import DenialCause
from ..models.values import ABSENT
from ..views.call_view import CallView, DecisionView, OutcomeView

GRANT: Final = "grant"
"""The cause of an approval that a grant gave, in nobody's presence (K-41)."""

_CALL_ID: Final = re.compile(r"(?P<epoch>[1-9][0-9]{0,18})\.(?P<name>.*)", re.ASCII | re.DOTALL)
_ESCAPES: Final = {".": "%2E", "%": "%25"}
_ESCAPED: Final = re.compile("[.%]")
_KEPT: Final = re.compile(r"(?:[^.%]|%2E|%25)*", re.DOTALL)
_ESCAPE: Final = re.compile("%2E|%25")


def call_id(epoch: int, invocation_id: str) -> str:
    """Return what names a call in its run for ever, whatever a provider calls its calls (F-32)."""
    return f"{epoch}.{_ESCAPED.sub(lambda it: _ESCAPES[it[0]], invocation_id)}"


def read_call_id(text: str) -> tuple[int, str] | None:
    """Return the epoch and the invocation that a `call_id` names; None for any other text."""
    found = _CALL_ID.fullmatch(text)
    if found is None or not _KEPT.fullmatch(found["name"]):
        return None
    name = _ESCAPE.sub(lambda it: "." if it[0] == _ESCAPES["."] else "%", found["name"])
    return int(found["epoch"]), name


def call_json(call: CallView, capabilities: Capabilities) -> dict[str, Any]:
    """Return CALL of F-31. What is sealed stays the envelope that the journal has."""
    told: dict[str, Any] = {
        "call_id": call_id(call.epoch, call.invocation_id),
        "turn_id": call.turn_id,
        "invocation_id": call.invocation_id,
        "tool_name": call.tool_name,
        "arguments": call.arguments,
        "phase": call.phase.value,
        "waits": call.waits.value,
        "arguments_digest": call.arguments_digest,
        "deadline": call.deadline,
        "attempt": call.attempt or None,
        "decision": decision_json(call),
        "outcome": None if call.outcome is None else _outcome_json(call.outcome),
    }
    present = {name: value for name, value in told.items() if value is not None}
    return {**present, "allowed": allowed(call, capabilities)}


def allowed(call: CallView, capabilities: Capabilities) -> list[str]:
    """Return what a person may say of a call now, by the names of its inputs.

    An interrupt is of its turn, and always allowed (S-12).
    """
    can = {
        Input.APPROVE: capabilities.approve,
        Input.DENY: capabilities.deny,
        Input.RESOLVE_RETRY: capabilities.resolve and capabilities.retry,
        Input.RESOLVE_RESULT: capabilities.resolve,
        Input.RESOLVE_ERROR: capabilities.resolve,
    }
    return [it.value for it in call.allowed if can.get(it, False)]


def decision_json(call: CallView) -> dict[str, Any] | None:
    """Return who decided about a call, what, when, and by which fact; None where nobody has.

    A deadline or an interrupt that denied it while it waited has decided, too: `cause` says which.
    """
    decision = call.decision
    if decision is not None:
        return _decision_json(decision)
    outcome = call.outcome
    if outcome is None or outcome.status is not Status.DENIED:
        return None
    told = {
        "approved": False,
        "reason": outcome.reason,
        "scope": Scope.ONCE.value,
        "cause": str(outcome.cause),
        "at": outcome.at,
        "sequence": outcome.sequence,
    }
    return {name: value for name, value in told.items() if value is not None}


def _decision_json(decision: DecisionView) -> dict[str, Any]:
    granted = decision.grant_id is not None
    told = {
        "approved": decision.approved,
        "by": decision.by,
        "reason": decision.reason,
        "scope": decision.scope.value,
        "match": None if decision.match is None else decision.match.value,
        "grant_id": decision.grant_id,
        "cause": GRANT if granted else DenialCause.DECISION.value,
        "arguments": decision.arguments,
        "at": decision.at,
        "sequence": decision.sequence,
    }
    return {name: value for name, value in told.items() if value is not None}


def _outcome_json(outcome: OutcomeView) -> dict[str, Any]:
    told: dict[str, Any] = {"status": outcome.status.value}
    if outcome.result is not ABSENT:
        told["result"] = outcome.result  # null is one (K-36)
    rest = {
        "error": outcome.error,
        "reason": outcome.reason,
        "cause": None if outcome.cause is None else outcome.cause.value,
        "at": outcome.at,
        "sequence": outcome.sequence,
    }
    return {**told, **{name: value for name, value in rest.items() if value is not None}}


def capabilities_json(capabilities: Capabilities) -> dict[str, Any]:
    """Return what runs of a kind can do (S-11)."""
    told = {name: getattr(capabilities, name) for name in _CAPABILITIES}
    return {**told, "scopes": [it.value for it in capabilities.scopes]}


_CAPABILITIES: Final = tuple(name for name in Capabilities.__annotations__ if name != "scopes")
