"""What can be wrong with an MCP server, or with a call of one of its tools."""

from __future__ import annotations

from ...models.errors import TurnlockError


class McpServerError(TurnlockError):
    """A server that cannot be used; the message names it, says why, and what to do."""


class McpToolError(TurnlockError):
    """What a server answered where it gave no result: the call has failed (W-65)."""
