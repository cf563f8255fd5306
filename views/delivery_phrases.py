"""Deliveries in words, in the short form or the long one (`wording`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from ..models.calls import Call
from ..models.deliveries import Delivery
from ..models.record import fields_of
from ..models.values import ABSENT
from .wording import SHORT, Part, Parts, Raw, Wording, seconds


def delivered(
    delivery: Delivery | Raw, wording: Wording = SHORT, *, active: str | None = ""
) -> str:
    """Tell a delivery; one that has no words is shown as JSON.

    With `active`, the open turn, a delivery for another turn or for none says so: for where the
    wording does not name turns itself. A `run_id` in the delivery is that of another run.
    """
    fields = _raw(delivery) if isinstance(delivery, Delivery) else delivery
    words = _DELIVERIES.get(str(fields.get("type")))
    if words is None:
        return wording.value(delivery)
    elsewhere = "" if active == "" else _elsewhere(fields, active, wording)
    other_run = _given(fields, "run_id", "for run {}", wording)
    return wording.joined([*words(fields, wording), elsewhere, other_run])


def _raw(delivery: Delivery) -> Raw:
    """Return a delivery's fields as the wire names them."""
    fields: dict[str, Any] = {"type": delivery.type}
    for field in fields_of(type(delivery)):
        value = getattr(delivery, field.name)
        if value is not None and value is not ABSENT:
            fields["as" if field.name == "resolution" else field.name] = value
    if "calls" in fields:
        fields["calls"] = [_raw_call(call) for call in fields["calls"]]
    if "call" in fields:
        fields["call"] = _raw_call(fields["call"])
    return fields


def _raw_call(call: Call) -> Raw:
    return {field.name: getattr(call, field.name) for field in fields_of(Call)}


def _elsewhere(delivery: Raw, active: str | None, wording: Wording) -> str:
    """Name the turn where it is not the open one, and say that none was named."""
    turn_id = delivery.get("turn_id")
    if wording.long or turn_id == active or delivery.get("type") in _NAMES_ITS_TURN:
        return ""
    if turn_id is None:
        return "" if delivery.get("invocation_id") is None else "no turn named"
    return f"of turn {wording.plain(turn_id)}"


_NAMES_ITS_TURN: Final = frozenset(
    {"open_turn", "add_call", "seal_turn", "interrupt", "acknowledge"}
)


def _given(fields: Raw, name: str, phrase: str, wording: Wording) -> str:
    """Return the phrase with the field's value in it, if it is there."""
    value = fields.get(name)
    if value is None:
        return ""
    return phrase.format(wording.plain(value) if isinstance(value, str) else wording.value(value))


def _named(verb: str, fields: Raw, wording: Wording) -> str:
    return f"{verb} {wording.call(fields.get('turn_id'), str(fields.get('invocation_id')))}"


def _turn(verb: str, fields: Raw, wording: Wording) -> str:
    return f"{verb} turn {wording.plain(fields.get('turn_id'))}"


def _attempt(fields: Raw, wording: Wording) -> str:
    return _given(fields, "attempt", "attempt {}", wording)


def _lasting(fields: Raw, name: str) -> str:
    return "" if fields.get(name) is None else f"{name} {seconds(fields[name])}"


def _why(fields: Raw, wording: Wording) -> str:
    return "" if fields.get("reason") is None else wording.quoted(fields["reason"])


def outcome(fields: Raw, wording: Wording = SHORT) -> str:
    """Tell a result or an error; neither where neither was recorded."""
    if fields.get("error") is not None:
        return f"error {wording.error(fields['error'])}"
    return f"result {wording.value(fields['result'])}" if "result" in fields else ""


def _explained(text: str) -> Part:
    return Part(text, joint=": ", only_long=True)


def _opening(fields: Raw, wording: Wording) -> Parts:
    calls = wording.listed(cast("list[Raw]", fields.get("calls") or []))
    epoch = _given(fields, "epoch", "epoch {}", wording)
    streaming = "more calls may come" if fields.get("sealed") is False else ""
    return (_turn("open", fields, wording), epoch, Part(calls, joint="; "), streaming)


def _adding(fields: Raw, wording: Wording) -> Parts:
    call = fields.get("call")
    told = "a call" if call is None else wording.listed([call])
    return (f"add {told}", f"to turn {wording.plain(fields.get('turn_id'))}")


def _decision(fields: Raw, wording: Wording) -> Parts:
    approved = fields.get("approved")
    if approved is None:
        return (_named("decide about", fields, wording),)
    by = _given(fields, "decided_by", "by {}", wording)
    reason = _why(fields, wording)
    if not approved:
        return (_named("deny", fields, wording), by, reason)
    scope = fields.get("scope") or "once"
    reach = "" if scope == "once" else f"for the {wording.plain(scope)}"
    if reach and fields.get("match") == "tool":
        reach += ", whatever the arguments"
    expires = _given(fields, "expires_in", "for {} s", wording) if reach else ""
    edited = _given(fields, "arguments", "with arguments {}", wording)
    digest = _given(fields, "arguments_digest", "of what has the digest {}", wording)
    shown = Part(digest, only_long=True)
    approve = _named("approve", fields, wording)
    return (approve, Part(reach, joint=" "), expires, edited, shown, by, reason)


def _claim(fields: Raw, wording: Wording) -> Parts:
    by = "worker" if wording.long else "by"
    worker = "" if fields.get("worker") is None else f"{by} {wording.worker(fields['worker'])}"
    claim = _named("claim", fields, wording)
    return (claim, _attempt(fields, wording), worker, _lasting(fields, "lease"))


def _report(fields: Raw, wording: Wording) -> Parts:
    told = Part(outcome(fields, wording), joint=": ")
    return (_named("report", fields, wording), _attempt(fields, wording), told)


def _resolution(fields: Raw, wording: Wording) -> Parts:
    told = "retry" if fields.get("as") == "retry" else outcome(fields, wording)
    resolve = _named("resolve", fields, wording)
    return (resolve, _attempt(fields, wording), Part(told, joint=": "))


def _interrupt(fields: Raw, wording: Wording) -> Parts:
    return (
        _turn("interrupt", fields, wording),
        _lasting(fields, "grace"),
        _why(fields, wording),
    )


_DELIVERIES: Final[dict[str, Callable[[Raw, Wording], Parts]]] = {
    "open_turn": _opening,
    "add_call": _adding,
    "seal_turn": lambda fields, wording: (
        _turn("seal", fields, wording),
        _explained("no more calls will come"),
    ),
    "decide": _decision,
    "claim": _claim,
    "renew": lambda fields, wording: (
        _named("renew", fields, wording),
        _attempt(fields, wording),
        _lasting(fields, "lease"),
    ),
    "reject": lambda fields, wording: (
        _named("reject", fields, wording),
        _explained("it could not be started"),
        outcome(fields, wording),
    ),
    "report": _report,
    "lose": lambda fields, wording: (
        _named("lose", fields, wording),
        _attempt(fields, wording),
        _explained("its executor is gone"),
    ),
    "resolve": _resolution,
    "interrupt": _interrupt,
    "acknowledge": lambda fields, wording: (_turn("take the continuation of", fields, wording),),
    "revoke": lambda fields, wording: (f"revoke {wording.plain(fields.get('grant_id'))}",),
    "log": lambda fields, wording: (
        _named("log", fields, wording),
        wording.quoted(fields["text"]) if fields.get("text") is not None else "",
    ),
    "tick": lambda _, wording: ("time passes" if wording.long else "tick",),
    "recover": lambda _, __: ("crash, and recover from the journal",),
    "digest": lambda _, __: ("digest of the state",),
}

DELIVERED: Final = frozenset(_DELIVERIES)
"""The types of all that has words: the deliveries, and what harnesses send besides."""
