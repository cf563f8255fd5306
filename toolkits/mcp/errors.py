"""What can be wrong with an MCP server, or with a call of one of its tools."""

from __future__ import annotations

from ...models.errors import TurnlockError


class McpServerError(TurnlockError):
    """A server that cannot be used; the message names it, says why, and what to do."""

    def __init__(self, cause: str, last_words: str = "") -> None:
        """Keep the cause, which may be told to a model, apart from what the server wrote last."""
        super().__init__(cause + last_words)
        self.cause = cause


class McpToolError(TurnlockError):
    """What a server answered where it gave no result: the call has failed (W-65)."""
