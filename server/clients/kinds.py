"""The kinds of runs that clients of others begin, and no agent speaks in (K-61)."""

from __future__ import annotations

from typing import Final

MCP: Final = "mcp"
"""Calls of the tools that `/mcp` offers, each a run of its own."""
