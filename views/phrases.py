"""Facts, effects and answers in words, in the short form or the long one (`wording`).

`happened` tells a fact, `asked` an effect, `answered` a receipt, `delivered` (`delivery_phrases`) a
delivery. `phase_of` says which phase colours a fact, `meanings` what reasons and phases mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

from ..lifecycle.phases import Phase
from ..lifecycle.table import INVOCATION
from ..models.deliveries import Scope
from ..models.effects import Cancel, Continue, Effect, Execute, Wake
from ..models.facts import Fact, FactType, TurnOpened
from ..turn.phases import TurnPhase
from ..turn.table import TURN
from .wording import SHORT, Parts, Raw, Wording, counted, seconds

PHASE_OF: Final[Mapping[FactType, str]] = {
    FactType.TOOL_APPROVAL_REQUESTED: Phase.REQUESTED,
    **{row.fact: row.target for row in INVOCATION.rows if row.fact is not None},
    FactType.TURN_OPENED: TurnPhase.OPEN,
    **{row.fact: row.target for row in TURN.rows if row.fact is not None},
}
"""The phase of the invocation or the turn after a fact; the other facts leave all phases alone."""


def phase_of(fact: Fact) -> str:
    """Return the phase that colours a fact: the one that it leads to; empty for one without."""
    if isinstance(fact, TurnOpened) and fact.sealed:
        return TurnPhase.SEALED
    return PHASE_OF.get(fact.type, "")


def happened(fact: Fact, wording: Wording = SHORT) -> str:
    """Tell a fact."""
    return wording.joined(_FACTS[fact.type](fact, wording))


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


def asked(effect: Effect, wording: Wording = SHORT) -> str:
    """Tell what a host is asked to do."""
    if isinstance(effect, Execute | Cancel):
        call = wording.call(effect.turn_id, effect.invocation_id)
        given = effect.arguments if isinstance(effect, Execute) else None
        arguments = wording.value(given) if given else ""
        return wording.joined((f"{effect.type} {call}", f"attempt {effect.attempt}", arguments))
    if isinstance(effect, Continue):
        counts = Counter(str(result.status) for result in effect.results)
        told = ", ".join(f"{number:,} {status}" for status, number in counts.items())
        return wording.joined((f"continue turn {wording.plain(effect.turn_id)}", told))
    return wording.joined((effect.type, f"at {effect.at:.6g}" if isinstance(effect, Wake) else ""))


def answered(receipt: Raw, wording: Wording = SHORT) -> str:
    """Tell a receipt of the wire: the verdict, the facts, the effects but wakes."""
    verdict = (
        "accepted" if receipt["accepted"] else f"refused: {wording.plain(receipt.get('reason'))}"
    )
    parts = [*receipt["facts"], *receipt["effects"]]
    told = [named(part, wording) for part in parts if part.get("type") != "wake"]
    return wording.joined([verdict, *told])


def named(part: Raw, wording: Wording = SHORT) -> str:
    """Name a fact or an effect of the wire by its type and what it is about."""
    about_ = part.get("invocation_id") or part.get("grant_id") or part.get("turn_id")
    kind = wording.plain(part.get("type"))
    return f"{kind} {wording.plain(about_)}" if about_ else kind


def _call(fact: Any, wording: Wording) -> str:  # noqa: ANN401 - a fact with an invocation
    return wording.call(fact.turn_id, fact.invocation_id)


def _span(until: float | None, fact: Fact, what: str) -> str:
    """Say how long from the fact on."""
    return "" if until is None else f"{what} {seconds(round(until - fact.at, 6))}"


def _executing(verb: str) -> Callable[[Any, Wording], Parts]:
    def told(fact: Any, wording: Wording) -> Parts:  # noqa: ANN401 - as in _call
        worker = "" if fact.worker is None else f"by {wording.worker(fact.worker)}"
        lease = _span(fact.lease_until, fact, "lease")
        return (f"{_call(fact, wording)} {verb}", f"attempt {fact.attempt}", worker, lease)

    return told


def _approved(fact: Any, wording: Wording) -> Parts:  # noqa: ANN401 - as in _call
    how = f"by {wording.plain(fact.grant_id)}" if fact.grant_id else ""
    if fact.decided_by is not None:
        how = f"by {wording.plain(fact.decided_by)}"
    scope = "" if fact.scope is Scope.ONCE else f"for the {fact.scope}"
    return (f"{_call(fact, wording)} approved", how, scope)


def _denied(fact: Any, wording: Wording) -> Parts:  # noqa: ANN401 - as in _call
    reason = fact.reason if fact.reason is not None else fact.error
    return (f"{_call(fact, wording)} denied", wording.quoted(reason))


def _opened(fact: Any, wording: Wording) -> Parts:  # noqa: ANN401 - a TurnOpened
    streaming = "" if fact.sealed else "open for more"
    calls = counted(len(fact.calls), "call")
    turn = f"turn {wording.plain(fact.turn_id)} opened"
    return (turn, f"epoch {fact.epoch}", calls, streaming)


def _granted(fact: Any, wording: Wording) -> Parts:  # noqa: ANN401 - a GrantIssued
    covers = f"for {wording.plain(fact.tool_name)}, match {fact.match}, scope {fact.scope}"
    return (f"{wording.plain(fact.grant_id)} issued", covers, _span(fact.expires_at, fact, "for"))


def _of_turn(verb: str, what: str = "turn") -> Callable[[Any, Wording], Parts]:
    return lambda fact, wording: (f"{what} {wording.plain(fact.turn_id)} {verb}",)


def _of_grant(verb: str) -> Callable[[Any, Wording], Parts]:
    return lambda fact, wording: (f"{wording.plain(fact.grant_id)} {verb}",)


_FACTS: Final[dict[FactType, Callable[[Any, Wording], Parts]]] = {
    FactType.TOOL_APPROVAL_REQUESTED: lambda fact, wording: (
        f"approve {_call(fact, wording)}?",
        wording.value(fact.arguments) if fact.arguments else "",
        _span(fact.deadline, fact, "within"),
    ),
    FactType.TOOL_APPROVED: _approved,
    FactType.TOOL_DENIED: _denied,
    FactType.TOOL_EXECUTION_STARTED: _executing("started"),
    FactType.TOOL_EXECUTION_SUCCEEDED: lambda fact, wording: (
        f"{_call(fact, wording)} succeeded",
        wording.value(fact.result),
    ),
    FactType.TOOL_EXECUTION_FAILED: lambda fact, wording: (
        f"{_call(fact, wording)} failed",
        wording.quoted(fact.error),
    ),
    FactType.EXECUTION_IN_DOUBT: lambda fact, wording: (
        f"{_call(fact, wording)} in doubt",
        f"attempt {fact.attempt}",
    ),
    FactType.RETRY_AUTHORISED: lambda fact, wording: (
        f"{_call(fact, wording)} may be retried",
        f"after attempt {fact.attempt}",
    ),
    FactType.EXECUTION_RETRIED: _executing("started again"),
    FactType.LEASE_RENEWED: lambda fact, wording: (
        f"{_call(fact, wording)} renewed",
        _span(fact.lease_until, fact, "lease"),
    ),
    FactType.TURN_OPENED: _opened,
    FactType.CALL_ADDED: lambda fact, wording: (
        f"{wording.call(fact.turn_id, fact.call.invocation_id)} added",
    ),
    FactType.TURN_SEALED: _of_turn("sealed"),
    FactType.TURN_SETTLED: _of_turn("settled"),
    FactType.TURN_INTERRUPTING: lambda fact, wording: (
        f"turn {wording.plain(fact.turn_id)} interrupting",
        _span(fact.grace_until, fact, "grace"),
        wording.quoted(fact.reason) if fact.reason else "",
    ),
    FactType.TURN_INTERRUPTED: _of_turn("interrupted"),
    FactType.CONTINUATION_TAKEN: _of_turn("taken", "continuation of turn"),
    FactType.GRANT_ISSUED: _granted,
    FactType.GRANT_REVOKED: _of_grant("revoked"),
    FactType.GRANT_EXPIRED: _of_grant("expired"),
}
