"""MCP: a proxy before any server, that makes each call of a tool a guarded run of its own.

`turnlock guard mcp` and `python -m turnlock.guards.mcp` are this. The client speaks MCP with its
standard input and output; the server is a program that is started here, or is at a URL.
"""

from __future__ import annotations

from .options import command

__all__ = ["command"]
