"""What a call of a server's tool came to: its result as JSON, a failure, or a doubt (W-65).

Nothing of a result is dropped in silence but its `_meta`, which MCP has for programs, not models.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

from ...runtime.tools.errors import ERROR_TEXT, OutcomeUnknown, bounded
from .errors import McpToolError
from .http import NOT_SENT, REFUSED, UNANSWERED

if TYPE_CHECKING:
    from mcp import MCPError
    from mcp_types import CallToolResult, ContentBlock

CLOSED: Final = -32_000
"""The client's code for a closed connection; servers use it for errors of their own as well."""
NOT_RUN: Final = {
    NOT_SENT: "nothing was sent",
    REFUSED: "nothing was run",
    -32_600: "it did not take the request",
    -32_601: "it has no such tool any more",
    -32_602: "it did not take the arguments",
    -32_020: "it did not take the headers",
    -32_021: "it wants of a client what is not offered here",
    -32_042: "it wants a page opened in a browser first, which is not offered here",
}
"""Error codes after which nothing has happened, and what they say."""
NOBODY_KNOWS: Final = {
    UNANSWERED: "no answer of the server itself came",
    CLOSED: "the connection was closed",
    -32_001: "no answer came in time",
    -32_700: "its answer could not be read",
}
"""Error codes after which nobody knows whether it happened, and what they say."""
_UNREAD: Final = ("server answered a request with 202", "Unexpected content type")
"""How the client says of a request (with the code of one that was not taken) that an answer came
which it could not read."""


def result_of(result: CallToolResult) -> object:
    """Return a result for the model. Raises `McpToolError` for one that says it is an error.

    One text alone is that text. Structured content beside nothing but itself as text, which MCP
    recommends, is said once; so is a value that is structured content as ``{"result": value}``, as
    servers make it of what is no object. Anything else is an object with both.
    """
    if result.is_error:
        raise McpToolError(_error_text(result))
    structured = result.structured_content
    texts = [block.text for block in result.content if block.type == "text"]
    if len(texts) == len(result.content):
        if structured is None and len(texts) == 1:
            return texts[0]
        if structured is not None:
            for value in (structured, _wrapped(structured)):
                if all(_says(text, value) for text in texts):
                    return value
    said: dict[str, Any] = {"content": [_as_json(block) for block in result.content]}
    return said if structured is None else {**said, "structuredContent": structured}


def failure_of(
    error: MCPError, *, lives: bool, why: str, begun: bool
) -> McpToolError | OutcomeUnknown:
    """Return what an error comes to that came in place of a result.

    `lives`: whether the server can be heard still, so that it sent the error itself; else `why`
    says what became of it. `begun`: whether it had begun, and asked a question in between.
    """
    code, text = error.code, bounded(error.message, limit=ERROR_TEXT // 2)
    if text.startswith(_UNREAD):
        return OutcomeUnknown(f"{NOBODY_KNOWS[-32_700]} ({text})")
    if code == NOT_SENT and begun:
        return OutcomeUnknown(f"it had begun, and then {text}")
    if code in NOBODY_KNOWS and not (lives and code == CLOSED):
        return OutcomeUnknown(f"{NOBODY_KNOWS[code]} ({why or text})")
    if code in NOT_RUN:
        return McpToolError(f"{NOT_RUN[code]}: {text}")
    return McpToolError(f"the server answered with the error {code}: {text}")


def _as_json(block: ContentBlock) -> object:
    return block.model_dump(mode="json", by_alias=True, exclude_none=True)


def _wrapped(structured: Any) -> object:  # noqa: ANN401 - any JSON
    """Return what stands in ``{"result": value}``; anything else as it is."""
    wraps = isinstance(structured, dict) and list(cast("Any", structured)) == ["result"]
    return cast("object", structured["result"] if wraps else structured)


def _says(text: str, value: object) -> bool:
    """Whether a text is nothing but this value, in whatever JSON or as it stands."""
    if text == value:
        return True
    try:
        said: object = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return said == value


def _error_text(result: CallToolResult) -> str:
    texts = [
        block.text if block.type == "text" else json.dumps(_as_json(block))
        for block in result.content
    ]
    if not texts and result.structured_content is not None:
        texts = [json.dumps(result.structured_content)]
    return bounded("\n".join(texts)) or "it failed, and did not say why"
