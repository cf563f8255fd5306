"""``turnlock guard mcp``: its options stand beside the proxy, which is a module of its own."""

from __future__ import annotations

from ..guards.mcp import command

__all__ = ["command"]
