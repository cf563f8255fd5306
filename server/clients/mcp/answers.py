"""What a call came to, as a client of MCP is told it."""

from __future__ import annotations

import json
from typing import Any, Final, cast

import mcp_types as types
from mcp.shared.exceptions import MCPError

from ....guards.mcp.refusals import IN_DOUBT
from ....models.calls import CallResult, Status
from ....models.safe_text import harmless
from ....models.values import canonical
from ....runtime.tools.errors import bounded
from ....views.call_view import CallView

RUN: Final = "turnlock/run"
TURN: Final = "turnlock/turn"
CALL: Final = "turnlock/call"
STATUS: Final = "turnlock/status"
"""What stands in the `_meta` of each result: which call of which run it is, and how it stands."""
WAITING: Final = "waits for approval"
"""What is said of a call that nobody has decided about (F-80)."""

_NAME: Final = 80


def ended(call: CallView, told: CallResult) -> types.CallToolResult:
    """Return how a call ended; `told` is its result as the tool gave it."""
    name = harmless(call.tool_name, limit=_NAME)
    match told.status:
        case Status.SUCCEEDED:
            return _succeeded(call, cast("Any", told.result))
        case Status.FAILED:
            return failed(told.error or f"{name} has failed", call)
        case Status.DENIED:
            why = f": {told.reason}" if told.reason else ""
            return failed(bounded(f"{name} was denied, and not executed{why}"), call)


def waiting(call: CallView) -> types.CallToolResult:
    """Return the answer to a call that waits on, in the consoles (F-80)."""
    name = harmless(call.tool_name, limit=_NAME)
    return failed(
        f"{name} {WAITING}, and nothing was executed yet: a person decides in the console (run"
        f" {harmless(call.run_id)}); do not call it again",
        call,
    )


def failed(text: str, call: CallView | None = None) -> types.CallToolResult:
    """Return a result that says what is wrong; of a call, or before there was one."""
    meta = None if call is None else _meta(call)
    content = [types.TextContent(type="text", text=text)]
    return types.CallToolResult(content=list(content), is_error=True, _meta=meta)


def in_doubt(call: CallView) -> MCPError:
    """Return the error for a call of which nobody knows whether it happened.

    No result of the tool: a result that says so goes to the model, which tries again.
    """
    name = harmless(call.tool_name, limit=_NAME)
    return MCPError(
        code=IN_DOUBT,
        message=f"{name} (run {harmless(call.run_id)}) was started, and nobody knows whether it"
        " happened; it is not run again: a person says in the console what became of it",
        data={**_meta(call), "attempt": call.attempt},
    )


def _succeeded(call: CallView, value: Any) -> types.CallToolResult:  # noqa: ANN401 - any JSON
    plain = json.loads(canonical(value))
    text = plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)],
        structured_content=plain if isinstance(plain, dict) else None,
        _meta=_meta(call),
    )


def _meta(call: CallView) -> dict[str, Any]:
    status = call.phase.value if call.outcome is None else call.outcome.status.value
    return {RUN: call.run_id, TURN: call.turn_id, CALL: call.invocation_id, STATUS: status}
