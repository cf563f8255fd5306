"""Unique invocation ids from what a provider sent (K-20, K-21).

Providers reuse ids across turns, send none, or send one id many times in one response. The kernel
wants ids that are unique within their turn; the provider wants its own ids back. So each call gets
an id of ours and keeps the provider's as correlation.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from .calls import Call
from .record import (
    Record,
    any_text,
    field,
    flag,
    identifier,
    json_object,
    optional,
    record,
    seconds,
)
from .values import Json


@record
class ProviderCall(Record):
    """One tool call as a provider sent it; `call_id` None or empty where it sent none."""

    call_id: str | None = field(default=None, validator=optional(any_text))
    tool_name: str = field(validator=identifier)
    arguments: Mapping[str, Json] = field(converter=json_object)
    requires_approval: bool = field(validator=flag)
    approval_timeout: float | None = field(default=None, validator=optional(seconds))


def identify_calls(
    calls: Iterable[ProviderCall], *, used: Container[str] = (), grow: bool = False
) -> tuple[Call, ...]:
    """Return the calls of one response with ids that are unique among them and not in `used`.

    A provider's id is kept where it can be; a missing one becomes ``call~1`` (its place in the
    response), a repeated or used one gets the suffix ``~2``, ``~3`` … The outcome depends on the
    arguments alone, so a response that is delivered twice gets the same ids twice. Give `used` the
    ids of the run's earlier turns if senders of results may not know their turn (K-20).

    With `grow` each id depends on the calls before it alone, so that more calls change none (W-57):
    for a response that still streams. A made-up id may then take one that a provider sends later.
    """
    pending = list(calls)
    later = () if grow else pending
    kept = {call.call_id for call in later if call.call_id}  # no made-up id may take these
    taken: set[str] = set()
    numbers: dict[str, int] = {}  # the last one given to each provider's id
    identified: list[Call] = []
    for place, call in enumerate(pending, start=1):
        stem = call.call_id or f"call~{place}"
        number = numbers.get(call.call_id or "", 1)
        candidate = stem if number == 1 else f"{stem}~{number}"
        while (
            candidate in taken
            or candidate in used
            or (candidate in kept and candidate != call.call_id)
        ):
            number += 1
            candidate = f"{stem}~{number}"
        if call.call_id:
            numbers[call.call_id] = number
        taken.add(candidate)
        identified.append(
            Call(
                invocation_id=candidate,
                tool_name=call.tool_name,
                arguments=call.arguments,
                requires_approval=call.requires_approval,
                approval_timeout=call.approval_timeout,
                provider_call_id=call.call_id,
            )
        )
    return tuple(identified)
