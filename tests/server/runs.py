"""Runs for the tests of the face: calls that wait, in doubt or decided, whoever performs them."""

from __future__ import annotations

from typing import Any, Final

import httpx

from turnlock import Call, Delivery, OpenTurn, Run
from turnlock.models.values import Json, arguments_digest
from turnlock.models.verdicts import Verdict
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.submitting import SharedRun
from turnlock.runtime.tools.policy import Policy

RUN: Final = Run(run_id="r")
POLICIES: Final[dict[str, Policy]] = {}
"""Nobody's: a call says itself whether it is gated."""


def gated(name: str = "a", tool: str = "pay", **fields: Any) -> Call:
    """A call that waits for a person."""
    return Call(
        invocation_id=name,
        tool_name=tool,
        arguments=fields.pop("arguments", {"amount": 12}),
        requires_approval=True,
        **fields,
    )


def free(name: str, tool: str = "read") -> Call:
    """A call that does not."""
    return Call(invocation_id=name, tool_name=tool, arguments={}, requires_approval=False)


def opened_turn(*calls: Call, turn_id: str = "t") -> OpenTurn:
    """A turn with these calls."""
    return OpenTurn(turn_id=turn_id, calls=calls or (gated(),))


async def shared(
    journal: Journal, *deliveries: Delivery, run: Run = RUN
) -> tuple[SharedRun, tuple[Verdict, ...]]:
    """A run that nobody owns, after these deliveries."""
    await journal.declare(run)
    writer = await SharedRun.open(journal, run.run_id, policies=POLICIES)
    return writer, await writer.submit(*deliveries)


def approval(call: Call | None = None, turn_id: str = "t", **fields: Json) -> dict[str, Any]:
    """The body of an approval of a call as it was shown."""
    shown = call or gated()
    return {
        "turn_id": turn_id,
        "invocation_id": shown.invocation_id,
        "approved": True,
        "arguments_digest": arguments_digest(shown.arguments),
        **fields,
    }


def denial(call: Call | None = None, turn_id: str = "t", **fields: Json) -> dict[str, Any]:
    """The body of a denial."""
    shown = call or gated()
    return {
        "turn_id": turn_id,
        "invocation_id": shown.invocation_id,
        "approved": False,
        **fields,
    }


def told(answer: httpx.Response) -> tuple[int, Any]:
    """The status of an answer, and its reason or whether it was accepted."""
    body = answer.json()
    return answer.status_code, body.get("reason", body.get("accepted"))
