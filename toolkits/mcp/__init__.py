"""MCP servers as tools: the official client, and what it takes to be sure of what was done.

`docs/mcp.md` says what it promises. These names are public. The package `mcp`, an extra, is
imported when servers are started.
"""

from .declared import McpServer
from .errors import McpServerError, McpToolError
from .questions import Accept, Cancel, Decline, Field, Question, Reply
from .sampling import Sample, SampleMessage
from .servers import McpServers

__all__ = [
    "Accept", "Cancel", "Decline", "Field", "McpServer", "McpServerError", "McpServers",
    "McpToolError", "Question", "Reply", "Sample", "SampleMessage",
]  # fmt: skip
