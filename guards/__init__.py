"""Guards: turnlock under other people's agent frameworks, and in front of any MCP server.

A `Guard` lets one approval execute once, executes nothing that nobody approved, and leaves a killed
execution in doubt instead of running it again, for the tools that are wrapped. `docs/guards.md`
shows how; `docs/spec/guards.md` is the contract. No framework is imported here: each adapter is a
module of its own (`turnlock.guards.langgraph` …), with an extra of its own.

These names are public; every other name in here may change with any release.
"""

from typing import TYPE_CHECKING

from ..models.lazy import imported_when_asked

if TYPE_CHECKING:
    from ..models.calls import Call, Status
    from ..models.choices import Match, Resolution, Scope
    from ..runtime.tools.policy import Policy
    from .claimed import Claimed
    from .errors import (
        DecidedOtherwise,
        Differs,
        Forked,
        GuardRefused,
        InDoubt,
        NotApproved,
        NotRecorded,
        Stale,
        StillRunning,
    )
    from .guard import Guard
    from .values import (
        BEGINNING,
        Abandons,
        At,
        CallContext,
        Look,
        Outcome,
        PendingApproval,
    )

__all__ = [
    "BEGINNING", "Abandons", "At", "Call", "CallContext", "Claimed", "DecidedOtherwise", "Differs",
    "Forked", "Guard", "GuardRefused", "InDoubt", "Look", "Match", "NotApproved", "NotRecorded",
    "Outcome", "PendingApproval", "Policy", "Resolution", "Scope", "Stale", "Status",
    "StillRunning",
]  # fmt: skip

if not TYPE_CHECKING:  # checkers would take any name for one that this function knows
    __getattr__ = imported_when_asked(__name__, {
        ".models.calls": "Call Status",
        ".models.choices": "Match Resolution Scope",
        ".runtime.tools.policy": "Policy",
        "claimed": "Claimed",
        "errors":
            "DecidedOtherwise Differs Forked GuardRefused InDoubt NotApproved NotRecorded Stale"
            " StillRunning",
        "guard": "Guard",
        "values": "BEGINNING Abandons At CallContext Look Outcome PendingApproval",
    })  # fmt: skip


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
