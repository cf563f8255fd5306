"""What a proxy is told when it is started."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import attrs

from ...runtime.tools.policy import DEFAULT_LEASE, Policy

RUN: Final = "mcp"
WAIT: Final = 30.0
"""Seconds that a call waits for one that is being executed elsewhere, or for a decision there."""


@attrs.frozen(kw_only=True)
class Settings:
    """Which journal, which server, which tools need approval, and who decides."""

    db: str
    command: tuple[str, ...] = ()
    url: str | None = None
    headers: Mapping[str, str] = attrs.field(factory=dict[str, str], repr=False)
    gates: frozenset[str] = frozenset()
    gates_all: bool = False
    decide: Literal["elicitation", "journal"] = "elicitation"
    run: str = RUN
    lease: float = DEFAULT_LEASE
    wait: float = WAIT

    def policy(self, tool: str) -> Policy:
        """Return how a tool wants to be treated."""
        return Policy(approval=self.gates_all or tool in self.gates, lease=self.lease)
