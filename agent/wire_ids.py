"""The ids and names under which a conversation's calls and results go to a provider (W-56).

Invocation ids are unique in their turn only, and some providers refuse the ``~`` in them; a
provider's own ids may be missing, come again, or be refused by another provider.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain, count
from typing import Final

from .messages import Answer, Message, Prompt

TAKEN_BY_ALL: Final = re.compile(r"[A-Za-z0-9_-]{1,40}")
"""What every provider takes for an id."""


_REFUSED: Final = re.compile(r"^[^A-Za-z_]|[^A-Za-z0-9_-]")
_NAME_LENGTH: Final = 64


def wire_name(tool_name: str) -> str:
    """Return the name of a call as every provider takes it: a model may have made up any."""
    return _REFUSED.sub("_", tool_name)[:_NAME_LENGTH]


def wire_ids(messages: Iterable[Message]) -> tuple[tuple[str, ...], ...]:
    """Return for each message the ids of its calls or of its results, in their order.

    The provider's own id, if every provider takes it and no call before has it; else
    ``call_TURN_PLACE``, both from 1. Ids depend on the messages before alone, so they stay as the
    conversation grows. Results follow the answer that asked for them; raises LookupError for one
    that nobody asked for.
    """
    used: set[str] = set()
    turn = 0
    asked: dict[str, str] = {}
    """The wire ids of the latest calls, by their invocations."""

    def new(call_id: str | None, place: int) -> str:
        made = f"call_{turn}_{place}"
        own = (call_id,) if call_id is not None and TAKEN_BY_ALL.fullmatch(call_id) else ()
        ids = chain(own, (made,), (f"{made}_{number}" for number in count(2)))
        fresh = next(it for it in ids if it not in used)
        used.add(fresh)
        return fresh

    ids: list[tuple[str, ...]] = []
    for message in messages:
        if isinstance(message, Prompt):
            ids.append(())
        elif isinstance(message, Answer):
            turn += bool(message.calls)
            calls = message.identified()
            asked = {
                call.invocation_id: new(call.provider_call_id, place)
                for place, call in enumerate(calls, start=1)
            }
            ids.append(tuple(asked.values()))
        else:
            ids.append(tuple(asked[result.invocation_id] for result in message.results))
    return tuple(ids)
