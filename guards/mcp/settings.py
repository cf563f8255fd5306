"""What a proxy is told when it is started."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal

import attrs

if TYPE_CHECKING:
    from ...runtime.tools.policy import Policy

RUN: Final = "mcp"
LEASE: Final = 30.0
"""Seconds after which a call is in doubt whose proxy has fallen silent (K-34)."""
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
    lease: float = LEASE
    wait: float = WAIT

    def policy(self, tool: str) -> Policy:
        """Return how a tool wants to be treated."""
        from ...runtime.tools.policy import Policy  # noqa: PLC0415 - see `guards.guard`

        return Policy(approval=self.gates_all or tool in self.gates, lease=self.lease)
