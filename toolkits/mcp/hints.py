"""What a server's hints about a tool come to: a table, read row by row (W-64)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from ...runtime.tools.policy import InDoubt, Policy

if TYPE_CHECKING:
    from mcp_types import ToolAnnotations


@attrs.frozen(kw_only=True)
class Row:
    """Which hints it is for (None: whatever is hinted), and how such a tool is treated."""

    trusted: bool
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    policy: Policy


_FREE: Final = Policy()
_FREE_AND_REPEATED: Final = Policy(safe_to_repeat=True, in_doubt=InDoubt.RETRY_IF_SAFE)
_ASKED: Final = Policy(approval=True)
_ASKED_AND_REPEATED: Final = attrs.evolve(_FREE_AND_REPEATED, approval=True)

# The first row that fits counts. What is not hinted is what MCP says it is then: not read-only,
# destructive, not idempotent.
TABLE: Final = (
    Row(trusted=False, policy=_ASKED),
    Row(trusted=True, read_only=True, policy=_FREE_AND_REPEATED),
    Row(trusted=True, destructive=False, idempotent=True, policy=_FREE_AND_REPEATED),
    Row(trusted=True, destructive=False, policy=_FREE),
    Row(trusted=True, idempotent=True, policy=_ASKED_AND_REPEATED),
    Row(trusted=True, policy=_ASKED),
)


def policy_of(hints: ToolAnnotations | None, *, trusted: bool) -> Policy:
    """Return how a tool with these hints is treated, unless a policy by its name says otherwise."""
    said = (
        trusted,
        hints is not None and hints.read_only_hint is True,
        hints is None or hints.destructive_hint is not False,
        hints is not None and hints.idempotent_hint is True,
    )
    for row in TABLE:
        asked = (row.trusted, row.read_only, row.destructive, row.idempotent)
        if all(a is None or a is b for a, b in zip(asked, said, strict=True)):
            return row.policy
    raise AssertionError(said)
