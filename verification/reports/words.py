"""Deliveries and receipts of the wire in plain words, and who sends what."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, cast

from ..findings import Raw
from ..rulebook import is_receipt

SENDERS: Final = ("host", "person", "executor", "clock")
"""Who speaks to a kernel, in the order in which they stand in a diagram."""

_SENDER: Final = {
    "decide": "person",
    "revoke": "person",
    "resolve": "person",
    "claim": "executor",
    "renew": "executor",
    "report": "executor",
    "tick": "clock",
}


def sender(delivery: Raw) -> str:
    """Return who sends such a delivery."""
    return _SENDER.get(str(delivery.get("type")), "host")


def is_delivery(step: Raw) -> bool:
    """Whether a step is a delivery of the wire: histories and logs hold other things, too."""
    kind = step.get("type")
    return kind in _WORDS and ("now" in step or kind == "recover")


def told(delivery: Raw) -> str:
    """Tell one delivery in a sentence without its time; one that has no words is shown as JSON."""
    words = _WORDS.get(str(delivery.get("type")))
    return compact(delivery) if words is None else words(delivery)


def answered(receipt: object) -> str:
    """Tell a receipt: the verdict, the facts, the effects; what is no receipt is shown as JSON."""
    if not is_receipt(receipt):
        return "no receipt" if receipt is None else compact(receipt)
    fields = cast("Raw", receipt)
    verdict = "accepted" if fields["accepted"] else f"refused: {fields.get('reason')}"
    facts = [_part(fact) for fact in fields["facts"]]
    effects = [f"→ {_part(effect)}" for effect in fields["effects"]]
    return " · ".join([verdict, *facts, *effects])


def compact(value: object) -> str:
    """Return JSON text; what is no JSON is shown as Python shows it."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        return repr(value)


def printable(text: str) -> str:
    r"""Escape what steers terminals or may not stand in XML: control characters, surrogates.

    Names come from the system under test, and may be hostile. Line ends and tabs stay.
    """
    return "".join(
        character
        if character.isprintable() or character in "\n\t "
        else character.encode("unicode_escape", "surrogatepass").decode("ascii")
        for character in text
    )


def _part(fields: Raw) -> str:
    """Name a fact or an effect by its type and what it is about."""
    kind = fields.get("type")
    if kind == "wake":
        return f"wake at {seconds(fields.get('at'))}"
    about = fields.get("invocation_id") or fields.get("grant_id") or fields.get("turn_id")
    return f"{kind} {about}" if about else str(kind)


def seconds(value: object) -> str:
    """Say a time or a span in seconds, as short as it can be told."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:.6g} s"
    return compact(value)


def _where(fields: Raw) -> str:
    """Say which invocation is meant, and that no turn was named where none was."""
    turn = fields.get("turn_id")
    place = "no turn named" if turn is None else f"turn {turn}"
    return f"{fields.get('invocation_id')} ({place})"


def _call(call: Raw) -> str:
    gate = ""
    if call.get("requires_approval"):
        timeout = call.get("approval_timeout")
        within = "" if timeout is None else f" within {seconds(timeout)}"
        gate = f", to be approved{within}"
    return f"{call.get('invocation_id')}: {call.get('tool_name')}({_arguments(call)}){gate}"


def _arguments(call: Raw) -> str:
    arguments = call.get("arguments")
    return compact(arguments) if arguments else ""


def _with(fields: Raw, **phrases: str) -> str:
    """Join the phrases whose field is there; `{}` in a phrase is the field's value."""
    there = {name: fields[name] for name in phrases if fields.get(name) is not None}
    return "".join(f", {phrases[name].format(_plain(value))}" for name, value in there.items())


def _plain(value: Any) -> str:  # noqa: ANN401 - any JSON
    if isinstance(value, float):
        return f"{value:.6g}"
    return value if isinstance(value, str) else compact(value)


def _opening(fields: Raw) -> str:
    calls = "; ".join(_call(call) for call in fields.get("calls", [])) or "no call"
    still = " more calls may come;" if fields.get("sealed") is False else ""
    return f"open turn {fields.get('turn_id')}{_with(fields, epoch='epoch {}')};{still} {calls}"


def _decision(fields: Raw) -> str:
    if not fields.get("approved"):
        return f"deny {_where(fields)}{_with(fields, reason='because {}', decided_by='by {}')}"
    scope = fields.get("scope") or "once"
    reach = "" if scope == "once" else f" for the {scope}"
    if reach and fields.get("match") == "tool":
        reach += ", whatever the arguments"
    more = _with(
        fields,
        expires_in="for {} s",
        arguments="with other arguments {}",
        arguments_digest="of what has the digest {}",
        decided_by="by {}",
    )
    return f"approve {_where(fields)}{reach}{more}"


def _claim(fields: Raw) -> str:
    more = _with(fields, attempt="attempt {}", worker="worker {}", lease="lease {} s")
    return f"claim {_where(fields)}{more}"


def _outcome(fields: Raw) -> str:
    if fields.get("error") is not None:
        return f"error {compact(fields['error'])}"
    return f"result {compact(fields.get('result'))}"


def _resolution(fields: Raw) -> str:
    as_ = fields.get("as")
    what = "to be retried" if as_ == "retry" else _outcome(fields)
    return f"resolve {_where(fields)}{_with(fields, attempt='attempt {}')}: {what}"


_WORDS: Final[dict[str, Callable[[Raw], str]]] = {
    "open_turn": _opening,
    "add_call": lambda fields: f"add to turn {fields.get('turn_id')}: {_call(fields['call'])}",
    "seal_turn": lambda fields: f"seal turn {fields.get('turn_id')}: no more calls will come",
    "decide": _decision,
    "claim": _claim,
    "renew": lambda fields: (
        f"renew {_where(fields)}{_with(fields, attempt='attempt {}', lease='lease {} s')}"
    ),
    "reject": lambda fields: (
        f"reject {_where(fields)}: it could not be started, {_outcome(fields)}"
    ),
    "report": lambda fields: (
        f"report {_where(fields)}{_with(fields, attempt='attempt {}')}: {_outcome(fields)}"
    ),
    "lose": lambda fields: (
        f"lose {_where(fields)}{_with(fields, attempt='attempt {}')}: its executor is gone"
    ),
    "resolve": _resolution,
    "interrupt": lambda fields: (
        f"interrupt turn {fields.get('turn_id')}{_with(fields, grace='grace {} s', reason='{}')}"
    ),
    "acknowledge": lambda fields: f"take the continuation of turn {fields.get('turn_id')}",
    "revoke": lambda fields: f"revoke {fields.get('grant_id')}",
    "log": lambda fields: f"log about {_where(fields)}",
    "tick": lambda _: "time passes",
    "recover": lambda _: "crash: the state is rebuilt from the journal",
}
