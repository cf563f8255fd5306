"""Deliveries and effects in few plain words, short enough for an arrow.

Recorded values may be anything and of any length: each is made harmless and cut here. A delivery
that was told by a diagnostic alone has its type and its ids, and nothing else.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, cast

from ...lifecycle.phases import Phase
from ...models.deliveries import Scope
from ...models.effects import Cancel, Continue, Effect, Execute, Wake
from ...models.errors import shown
from ...models.facts import Fact, FactType
from ...models.safe_text import harmless
from ...turn.phases import TurnPhase
from .messages import NAME, Names

VALUE: Final = 60
"""Characters of a value from outside, as JSON."""
TOLD: Final = 280
"""Characters of an error or a reason: three lines of a note hold about so many."""
LISTED: Final = 6
"""Calls that an opening names; the others are counted."""

_SHORT: Final = 10**9
_encoded: Final = json.JSONEncoder(ensure_ascii=False).encode

PART: Final = " · "
"""Between the parts of what is told."""

Raw: TypeAlias = Mapping[str, Any]


def plain(text: object) -> str:
    """Return a name or a sentence from outside, harmless and not too long."""
    return harmless(str(text), limit=NAME)


def quoted(text: object) -> str:
    """Return an error or a reason in quotation marks, as long as there may be room for."""
    return f"“{harmless(str(text), limit=TOLD)}”"


def value_text(value: object, *, limit: int = VALUE) -> str:
    """Return a value as JSON, harmless and cut; what is no JSON is shown as Python shows it."""
    if type(value) is int and abs(value) < _SHORT:
        return str(value)  # most are attempts: the encoder would cost what all else does
    if isinstance(value, str):
        value = value[: limit + 1]
    try:
        return harmless(_encoded(value), limit=limit)
    except (TypeError, ValueError, RecursionError):
        return harmless(shown(value), limit=limit)


def seconds(value: object) -> str:
    """Say a span in seconds, as short as it can be told."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:.6g} s"
    return value_text(value)


def clock(at: float) -> str:
    """Return a time in seconds, in at most eleven characters."""
    if abs(at) < 1e6:  # noqa: PLR2004 - eleven days, to the millisecond
        return f"{at:.3f}"
    return f"{at:.0f}" if abs(at) < 1e9 else f"{at:.3e}"  # noqa: PLR2004 - thirty years


def joined(*parts: str) -> str:
    """Join what there is."""
    return PART.join(filter(None, parts))


def counted(number: int, what: str) -> str:
    """Say how many, in the plural where that is right."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def delivered(delivery: Raw, names: Names, *, active: str | None) -> str:
    """Tell a delivery; `active` is the open turn, which goes without saying.

    So does the recording's own run: a `run_id` in the delivery is that of another one.
    """
    words = _WORDS.get(str(delivery.get("type")))
    if words is None:
        return value_text(delivery)
    other_run = _given(delivery, "run_id", "for run {}")
    return joined(*words(delivery, names), _elsewhere(delivery, active), other_run)


def effected(effect: Effect, names: Names) -> str:
    """Tell what a host is asked to do."""
    if isinstance(effect, Execute):
        arguments = value_text(effect.arguments) if effect.arguments else ""
        call = names.call(effect.turn_id, effect.invocation_id)
        return joined(f"execute {call}", _attempt(effect.attempt), arguments)
    if isinstance(effect, Cancel):
        return joined(
            f"cancel {names.call(effect.turn_id, effect.invocation_id)}", _attempt(effect.attempt)
        )
    if isinstance(effect, Continue):
        counts = Counter(str(result.status) for result in effect.results)
        told = ", ".join(f"{number:,} {status}" for status, number in counts.items())
        return joined(f"continue turn {plain(effect.turn_id)}", told)
    return joined(str(effect.type), f"at {effect.at:.6g}" if isinstance(effect, Wake) else "")


def _elsewhere(delivery: Raw, active: str | None) -> str:
    """Name the turn where it is not the open one, and say that none was named."""
    turn_id = delivery.get("turn_id")
    kind = delivery.get("type")
    if turn_id == active or kind in _NAMES_ITS_TURN:
        return ""
    if turn_id is None:
        return "" if delivery.get("invocation_id") is None else "no turn named"
    return f"of turn {plain(turn_id)}"


_NAMES_ITS_TURN: Final = frozenset(
    {"open_turn", "add_call", "seal_turn", "interrupt", "acknowledge"}
)


def _attempt(number: object) -> str:
    return "" if number is None else f"attempt {value_text(number)}"


def _named(verb: str, fields: Raw, names: Names) -> str:
    return f"{verb} {names.call(fields.get('turn_id'), str(fields.get('invocation_id')))}"


def _turn(verb: str, fields: Raw) -> str:
    return f"{verb} turn {plain(fields.get('turn_id'))}"


def _given(fields: Raw, name: str, phrase: str) -> str:
    """Return the phrase with the field's value in it, if it is there."""
    value = fields.get(name)
    if value is None:
        return ""
    return phrase.format(plain(value) if isinstance(value, str) else value_text(value))


def _quoted(fields: Raw, name: str) -> str:
    return "" if fields.get(name) is None else quoted(fields[name])


def _opening(fields: Raw, names: Names) -> tuple[str, ...]:
    calls = cast("list[dict[str, Any]]", fields.get("calls") or [])
    listed = ", ".join(_call(call, names) for call in calls[:LISTED])
    more = f"and {len(calls) - LISTED:,} more" if len(calls) > LISTED else ""
    streaming = "more calls may come" if fields.get("sealed") is False else ""
    epoch = _given(fields, "epoch", "epoch {}")
    return _turn("open", fields), epoch, " ".join(filter(None, (listed, more))), streaming


def _call(call: dict[str, Any], names: Names) -> str:
    gate = " (to be approved)" if call.get("requires_approval") else ""
    return names.of_call(call) + gate


def _adding(fields: Raw, names: Names) -> tuple[str, ...]:
    call = fields.get("call")
    told = "a call" if call is None else _call(call, names)
    return (f"add {told}", f"to turn {plain(fields.get('turn_id'))}")


def _decision(fields: Raw, names: Names) -> tuple[str, ...]:
    approved = fields.get("approved")
    if approved is None:
        return (_named("decide about", fields, names),)
    by = _given(fields, "decided_by", "by {}")
    reason = _quoted(fields, "reason")
    if not approved:
        return (_named("deny", fields, names), by, reason)
    scope = fields.get("scope") or "once"
    reach = "" if scope == "once" else f"for the {plain(scope)}"
    if reach and fields.get("match") == "tool":
        reach += ", whatever the arguments"
    expires = _given(fields, "expires_in", "for {} s") if reach else ""
    edited = _given(fields, "arguments", "with arguments {}")
    return (_named("approve", fields, names), reach, expires, edited, by, reason)


def _claim(fields: Raw, names: Names) -> tuple[str, ...]:
    worker = "" if fields.get("worker") is None else f"by {names.worker(fields['worker'])}"
    lease = "" if fields.get("lease") is None else f"lease {seconds(fields['lease'])}"
    return (_named("claim", fields, names), _attempt(fields.get("attempt")), worker, lease)


def _renewal(fields: Raw, names: Names) -> tuple[str, ...]:
    lease = "" if fields.get("lease") is None else f"lease {seconds(fields['lease'])}"
    return (_named("renew", fields, names), _attempt(fields.get("attempt")), lease)


def outcome(fields: Raw) -> str:
    """Tell a result or an error; neither where neither was recorded."""
    if fields.get("error") is not None:
        return f"error {value_text(fields['error'], limit=TOLD)}"
    return f"result {value_text(fields['result'])}" if "result" in fields else ""


def _report(fields: Raw, names: Names) -> tuple[str, ...]:
    return (_named("report", fields, names), _attempt(fields.get("attempt")), outcome(fields))


def _resolution(fields: Raw, names: Names) -> tuple[str, ...]:
    told = "retry" if fields.get("as") == "retry" else outcome(fields)
    return (_named("resolve", fields, names), _attempt(fields.get("attempt")), told)


def _interrupt(fields: Raw, _: Names) -> tuple[str, ...]:
    grace = "" if fields.get("grace") is None else f"grace {seconds(fields['grace'])}"
    return (_turn("interrupt", fields), grace, _quoted(fields, "reason"))


_WORDS: Final[dict[str, Callable[[Raw, Names], tuple[str, ...]]]] = {
    "open_turn": _opening,
    "add_call": _adding,
    "seal_turn": lambda fields, _: (_turn("seal", fields),),
    "decide": _decision,
    "claim": _claim,
    "renew": _renewal,
    "reject": lambda fields, names: (_named("reject", fields, names), outcome(fields)),
    "report": _report,
    "lose": lambda fields, names: (
        _named("lose", fields, names),
        _attempt(fields.get("attempt")),
    ),
    "resolve": _resolution,
    "interrupt": _interrupt,
    "acknowledge": lambda fields, _: (_turn("take the continuation of", fields),),
    "revoke": lambda fields, _: (f"revoke {plain(fields.get('grant_id'))}",),
    "log": lambda fields, names: (
        _named("log", fields, names),
        _quoted(fields, "text"),
    ),
    "tick": lambda _, __: ("tick",),
    "recover": lambda _, __: ("crash, and recover from the journal",),
    "digest": lambda _, __: ("digest of the state",),
}


PHASE: Final[dict[FactType, str]] = {
    FactType.TOOL_APPROVAL_REQUESTED: Phase.REQUESTED,
    FactType.TOOL_APPROVED: Phase.APPROVED,
    FactType.TOOL_DENIED: Phase.DENIED,
    FactType.TOOL_EXECUTION_STARTED: Phase.STARTED,
    FactType.TOOL_EXECUTION_SUCCEEDED: Phase.SUCCEEDED,
    FactType.TOOL_EXECUTION_FAILED: Phase.FAILED,
    FactType.EXECUTION_IN_DOUBT: Phase.IN_DOUBT,
    FactType.RETRY_AUTHORISED: Phase.RETRY_AUTHORISED,
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
    return joined(*_FACT_WORDS[fact.type](fact, names))


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


def _call_of(fact: Any, names: Names) -> str:  # noqa: ANN401 - a fact with an invocation
    return names.call(fact.turn_id, fact.invocation_id)


def _span(until: float | None, fact: Fact, what: str) -> str:
    """Say how long from the fact on."""
    return "" if until is None else f"{what} {seconds(round(until - fact.at, 6))}"


def _executing(verb: str) -> Callable[[Any, Names], tuple[str, ...]]:
    def told(fact: Any, names: Names) -> tuple[str, ...]:  # noqa: ANN401 - as in _call
        worker = "" if fact.worker is None else f"by {names.worker(fact.worker)}"
        lease = _span(fact.lease_until, fact, "lease")
        return (f"{_call_of(fact, names)} {verb}", f"attempt {fact.attempt}", worker, lease)

    return told


def _approved(fact: Any, names: Names) -> tuple[str, ...]:  # noqa: ANN401 - as in _call
    how = f"by {plain(fact.grant_id)}" if fact.grant_id else ""
    if fact.decided_by is not None:
        how = f"by {plain(fact.decided_by)}"
    scope = "" if fact.scope is Scope.ONCE else f"for the {fact.scope}"
    return (f"{_call_of(fact, names)} approved", how, scope)


def _denied(fact: Any, names: Names) -> tuple[str, ...]:  # noqa: ANN401 - as in _call
    reason = fact.reason if fact.reason is not None else fact.error
    return (f"{_call_of(fact, names)} denied", quoted(reason))


def _opened(fact: Any, _: Names) -> tuple[str, ...]:  # noqa: ANN401 - a TurnOpened
    streaming = "" if fact.sealed else "open for more"
    calls = counted(len(fact.calls), "call")
    return (f"turn {plain(fact.turn_id)} opened", f"epoch {fact.epoch}", calls, streaming)


def _granted(fact: Any, _: Names) -> tuple[str, ...]:  # noqa: ANN401 - a GrantIssued
    covers = f"for {plain(fact.tool_name)}, match {fact.match}, scope {fact.scope}"
    return (f"{plain(fact.grant_id)} issued", covers, _span(fact.expires_at, fact, "for"))


_FACT_WORDS: Final[dict[FactType, Callable[[Any, Names], tuple[str, ...]]]] = {
    FactType.TOOL_APPROVAL_REQUESTED: lambda fact, names: (
        f"approve {_call_of(fact, names)}?",
        value_text(fact.arguments) if fact.arguments else "",
        _span(fact.deadline, fact, "within"),
    ),
    FactType.TOOL_APPROVED: _approved,
    FactType.TOOL_DENIED: _denied,
    FactType.TOOL_EXECUTION_STARTED: _executing("started"),
    FactType.TOOL_EXECUTION_SUCCEEDED: lambda fact, names: (
        f"{_call_of(fact, names)} succeeded",
        value_text(fact.result),
    ),
    FactType.TOOL_EXECUTION_FAILED: lambda fact, names: (
        f"{_call_of(fact, names)} failed",
        quoted(fact.error),
    ),
    FactType.EXECUTION_IN_DOUBT: lambda fact, names: (
        f"{_call_of(fact, names)} in doubt",
        f"attempt {fact.attempt}",
    ),
    FactType.RETRY_AUTHORISED: lambda fact, names: (
        f"{_call_of(fact, names)} may be retried",
        f"after attempt {fact.attempt}",
    ),
    FactType.EXECUTION_RETRIED: _executing("started again"),
    FactType.LEASE_RENEWED: lambda fact, names: (
        f"{_call_of(fact, names)} renewed",
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
