"""Facts in few plain words, and the phase that each of them leads to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ...lifecycle.phases import Phase
from ...models.deliveries import Scope
from ...models.facts import Fact, FactType
from ...turn.phases import TurnPhase
from .names import Names
from .words import counted, joined, plain, quoted, seconds, value_text

PHASE: Final[dict[FactType, str]] = {
    FactType.TOOL_APPROVAL_REQUESTED: Phase.REQUESTED,
    FactType.TOOL_APPROVED: Phase.APPROVED,
    FactType.TOOL_DENIED: Phase.DENIED,
    FactType.TOOL_EXECUTION_STARTED: Phase.STARTED,
    FactType.TOOL_EXECUTION_SUCCEEDED: Phase.SUCCEEDED,
    FactType.TOOL_EXECUTION_FAILED: Phase.FAILED,
    FactType.EXECUTION_IN_DOUBT: Phase.IN_DOUBT,
    FactType.RETRY_AUTHORISED: Phase.IN_DOUBT,
    FactType.EXECUTION_RETRIED: Phase.STARTED,
    FactType.LEASE_RENEWED: Phase.STARTED,
    FactType.TURN_OPENED: TurnPhase.OPEN,
    FactType.CALL_ADDED: TurnPhase.OPEN,
    FactType.TURN_SEALED: TurnPhase.SEALED,
    FactType.TURN_SETTLED: TurnPhase.SETTLED,
    FactType.TURN_INTERRUPTING: TurnPhase.INTERRUPTING,
    FactType.TURN_INTERRUPTED: TurnPhase.INTERRUPTED,
}
"""The phase of the invocation or the turn after a fact; the others leave all phases alone."""


def phase_of(fact: Fact) -> str:
    """Return the phase that colours a fact; empty for one that has none."""
    if fact.type is FactType.TURN_OPENED:
        return TurnPhase.SEALED if getattr(fact, "sealed", False) else TurnPhase.OPEN
    return PHASE.get(fact.type, "")


def happened(fact: Fact, names: Names) -> str:
    """Tell a fact."""
    return joined(*_WORDS[fact.type](fact, names))


def about(fact: Fact) -> str:
    """Return in full what a fact is about."""
    call = getattr(fact, "call", None)
    return ids_in_full(
        getattr(fact, "turn_id", None),
        getattr(fact, "invocation_id", None) if call is None else call.invocation_id,
        f"fact {fact.sequence} {fact.type}",
    )


def ids_in_full(turn_id: object, invocation_id: object, more: str = "") -> str:
    """Name a turn and an invocation in full, as far as they are there."""
    parts = (("turn", turn_id), ("invocation", invocation_id))
    told = [f"{what} {value}" for what, value in parts if value is not None]
    return ", ".join([*filter(None, (more,)), *told])


def _call(fact: Any, names: Names) -> str:  # noqa: ANN401 - a fact with an invocation
    return names.call(fact.turn_id, fact.invocation_id)


def _span(until: float | None, fact: Fact, what: str) -> str:
    """Say how long from the fact on."""
    return "" if until is None else f"{what} {seconds(round(until - fact.at, 6))}"


def _executing(verb: str) -> Callable[[Any, Names], tuple[str, ...]]:
    def told(fact: Any, names: Names) -> tuple[str, ...]:  # noqa: ANN401 - as in _call
        worker = "" if fact.worker is None else f"by {names.worker(fact.worker)}"
        lease = _span(fact.lease_until, fact, "lease")
        return (f"{_call(fact, names)} {verb}", f"attempt {fact.attempt}", worker, lease)

    return told


def _approved(fact: Any, names: Names) -> tuple[str, ...]:  # noqa: ANN401 - as in _call
    how = f"by {plain(fact.grant_id)}" if fact.grant_id else ""
    if fact.decided_by is not None:
        how = f"by {plain(fact.decided_by)}"
    scope = "" if fact.scope is Scope.ONCE else f"for the {fact.scope}"
    return (f"{_call(fact, names)} approved", how, scope)


def _denied(fact: Any, names: Names) -> tuple[str, ...]:  # noqa: ANN401 - as in _call
    reason = fact.reason if fact.reason is not None else fact.error
    return (f"{_call(fact, names)} denied", quoted(reason))


def _opened(fact: Any, _: Names) -> tuple[str, ...]:  # noqa: ANN401 - a TurnOpened
    streaming = "" if fact.sealed else "open for more"
    calls = counted(len(fact.calls), "call")
    return (f"turn {plain(fact.turn_id)} opened", f"epoch {fact.epoch}", calls, streaming)


def _granted(fact: Any, _: Names) -> tuple[str, ...]:  # noqa: ANN401 - a GrantIssued
    covers = f"for {plain(fact.tool_name)}, match {fact.match}, scope {fact.scope}"
    return (f"{plain(fact.grant_id)} issued", covers, _span(fact.expires_at, fact, "for"))


_WORDS: Final[dict[FactType, Callable[[Any, Names], tuple[str, ...]]]] = {
    FactType.TOOL_APPROVAL_REQUESTED: lambda fact, names: (
        f"approve {_call(fact, names)}?",
        value_text(fact.arguments) if fact.arguments else "",
        _span(fact.deadline, fact, "within"),
    ),
    FactType.TOOL_APPROVED: _approved,
    FactType.TOOL_DENIED: _denied,
    FactType.TOOL_EXECUTION_STARTED: _executing("started"),
    FactType.TOOL_EXECUTION_SUCCEEDED: lambda fact, names: (
        f"{_call(fact, names)} succeeded",
        value_text(fact.result),
    ),
    FactType.TOOL_EXECUTION_FAILED: lambda fact, names: (
        f"{_call(fact, names)} failed",
        quoted(fact.error),
    ),
    FactType.EXECUTION_IN_DOUBT: lambda fact, names: (
        f"{_call(fact, names)} in doubt",
        f"attempt {fact.attempt}",
    ),
    FactType.RETRY_AUTHORISED: lambda fact, names: (
        f"{_call(fact, names)} may be retried",
        f"after attempt {fact.attempt}",
    ),
    FactType.EXECUTION_RETRIED: _executing("started again"),
    FactType.LEASE_RENEWED: lambda fact, names: (
        f"{_call(fact, names)} renewed",
        _span(fact.lease_until, fact, "lease"),
    ),
    FactType.TURN_OPENED: _opened,
    FactType.CALL_ADDED: lambda fact, names: (
        f"{names.call(fact.turn_id, fact.call.invocation_id)} added",
    ),
    FactType.TURN_SEALED: lambda fact, _: (f"turn {plain(fact.turn_id)} sealed",),
    FactType.TURN_SETTLED: lambda fact, _: (f"turn {plain(fact.turn_id)} settled",),
    FactType.TURN_INTERRUPTING: lambda fact, _: (
        f"turn {plain(fact.turn_id)} interrupting",
        _span(fact.grace_until, fact, "grace"),
        quoted(fact.reason) if fact.reason else "",
    ),
    FactType.TURN_INTERRUPTED: lambda fact, _: (f"turn {plain(fact.turn_id)} interrupted",),
    FactType.CONTINUATION_TAKEN: lambda fact, _: (
        f"continuation of turn {plain(fact.turn_id)} taken",
    ),
    FactType.GRANT_ISSUED: _granted,
    FactType.GRANT_REVOKED: lambda fact, _: (f"{plain(fact.grant_id)} revoked",),
    FactType.GRANT_EXPIRED: lambda fact, _: (f"{plain(fact.grant_id)} expired",),
}
