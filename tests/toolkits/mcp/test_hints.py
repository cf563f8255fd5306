"""Hints of servers, the table row by row, and who is believed (W-64)."""

from __future__ import annotations

import itertools

import pytest
from mcp_types import ToolAnnotations

from turnlock.runtime.tools.policy import InDoubt
from turnlock.toolkits.mcp.hints import TABLE, policy_of

CASES = [
    # trusted, read-only, destructive, idempotent: approval, repeated
    (True, True, None, None, False, True),
    (True, True, True, True, False, True),
    (True, None, False, None, False, False),
    (True, None, False, True, False, True),
    (True, None, None, True, True, True),
    (True, None, True, None, True, False),
    (True, None, None, None, True, False),
    (True, False, None, False, True, False),
    (False, True, None, None, True, False),
    (False, None, False, None, True, False),
    (False, None, False, True, True, False),
    (False, None, None, None, True, False),
]


@pytest.mark.parametrize(
    ("trusted", "read_only", "destructive", "idempotent", "asked", "repeated"), CASES
)
def test_w_64_a_hint_counts_as_its_row_says(
    *,
    trusted: bool,
    read_only: bool | None,
    destructive: bool | None,
    idempotent: bool | None,
    asked: bool,
    repeated: bool,
) -> None:
    """Hints of a trusted server free a tool, or let it be repeated; others change nothing."""
    hints = ToolAnnotations(
        read_only_hint=read_only, destructive_hint=destructive, idempotent_hint=idempotent
    )
    policy = policy_of(hints, trusted=trusted)
    assert policy.approval is asked
    assert policy.safe_to_repeat is repeated
    assert policy.in_doubt is (InDoubt.RETRY_IF_SAFE if repeated else None)
    assert policy.doubt_rule is (InDoubt.RETRY_IF_SAFE if repeated else InDoubt.ASK)


def test_w_64_no_hint_of_a_stranger_asks_for_less() -> None:
    """Whatever it says, each call is asked for, and none is repeated; nor is one without hints."""
    said = (None, True, False)
    for read_only, destructive, idempotent in itertools.product(said, said, said):
        hints = ToolAnnotations(
            read_only_hint=read_only, destructive_hint=destructive, idempotent_hint=idempotent
        )
        policy = policy_of(hints, trusted=False)
        assert (policy.approval, policy.safe_to_repeat) == (True, False)
    for trusted in (True, False):
        policy = policy_of(None, trusted=trusted)
        assert (policy.approval, policy.safe_to_repeat) == (True, False)


def test_w_64_each_row_of_the_table_is_reached() -> None:
    """No row is hidden by one above it."""
    reached = {
        policy_of(
            ToolAnnotations(read_only_hint=a, destructive_hint=b, idempotent_hint=c),
            trusted=trusted,
        )
        for trusted, a, b, c, _, _ in CASES
    }
    assert reached == {row.policy for row in TABLE}
