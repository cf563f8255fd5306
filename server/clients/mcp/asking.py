"""How a person is asked at the client, in both eras of MCP, and what travels with the question.

Up to 2025-11-25 the client is sent a request of its own; from 2026-07-28 on the call is answered
with the question, and sent again with the answer and a state, which the SDK seals (F-81).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Self

import attrs
import mcp_types as types
import msgspec

from ....guards.mcp.asking import QUESTION, Reply, message, reply_of
from ....models.values import Json
from ....views.call_view import CallView
from .offer import Place

FIELD: Final = "approved"
"""The yes or no of the form (F-80)."""
FORM: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        FIELD: {
            "type": "boolean",
            "title": "Approve",
            "description": "Yes: it is executed once, with exactly these arguments.",
        }
    },
    "required": [FIELD],
}


class _State(msgspec.Struct):
    run: str
    turn: str
    invocation: str
    digest: str


@attrs.frozen(kw_only=True)
class State:
    """Which call a question was about, and the digest of what was shown (F-81)."""

    place: Place
    digest: str

    @classmethod
    def read(cls, text: str | None) -> Self | None:
        """Return what came back, unsealed; None where nothing did, or what is none of ours."""
        if text is None:
            return None
        try:
            told = msgspec.json.decode(text, type=_State)
        except msgspec.DecodeError:
            return None
        place = Place(run_id=told.run, turn_id=told.turn, invocation_id=told.invocation)
        return cls(place=place, digest=told.digest)

    def written(self) -> str:
        """Return it as it is sealed."""
        it = self.place
        return msgspec.json.encode(
            _State(run=it.run_id, turn=it.turn_id, invocation=it.invocation_id, digest=self.digest)
        ).decode()


def question(call: CallView, arguments: Mapping[str, Json]) -> types.ElicitRequestFormParams:
    """Return the question about a call that waits; `arguments` are those that its tool gets."""
    return types.ElicitRequestFormParams(
        message=message(
            call.tool_name, arguments, run=call.run_id, digest=call.arguments_digest or ""
        ),
        requested_schema=dict(FORM),
    )


def input_required(call: CallView, arguments: Mapping[str, Json]) -> types.InputRequiredResult:
    """Return the result that asks, from 2026-07-28 on."""
    place = Place(run_id=call.run_id, turn_id=call.turn_id, invocation_id=call.invocation_id)
    asks = types.ElicitRequest(params=question(call, arguments))
    return types.InputRequiredResult(
        input_requests={QUESTION: asks},
        request_state=State(place=place, digest=call.arguments_digest or "").written(),
    )


def reply(answered: object) -> Reply | None:
    """Read an answer; None: it is none, and it must be asked again."""
    if isinstance(answered, types.ElicitResult):
        answered = answered.model_dump()
    return reply_of(answered, field=FIELD)
