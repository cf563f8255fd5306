"""`python -m turnlock.guards.mcp`: the same as `turnlock guard mcp`."""

from __future__ import annotations

from .options import command

if __name__ == "__main__":
    command()
