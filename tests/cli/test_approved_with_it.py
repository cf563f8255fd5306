"""What `approve` says beforehand: what a grant approves at once besides, what is no JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from turnlock.models.facts import ToolApproved

from .recordings import turnlock
from .test_decisions_bound import on_terminal
from .waiting import call, deliver, facts, opened

CALLS = (
    call("call_0", "sh", line="ls"),
    call("call_1", "sh", line="rm -r /"),
    call("call_2", "sh", line="ls"),
    call("call_3", "pay", line="ls"),
)
ANY = ("--scope", "session", "--any-arguments")
EXACT = ("--scope", "turn")


@pytest.mark.parametrize(
    ("options", "with_it"),
    [
        (ANY, ["call_1", "call_2"]),
        (EXACT, ["call_2"]),
        ((*EXACT, "--arguments", '{"line": "rm -r /"}'), ["call_1"]),
        ((), []),
    ],
)
def test_what_is_approved_with_it_is_shown(
    tmp_path: Path, options: tuple[str, ...], with_it: list[str]
) -> None:
    """Nobody approves what he was not shown (K-32), nor by a grant (K-40)."""
    db = str(tmp_path / "agent.db")
    deliver(db, opened("t1", *CALLS))

    asked = on_terminal("approve", "agent", "call_0", "--db", db, *options)
    asked.until("[y/N] ")
    shown = [
        it.invocation_id for it in CALLS if f"{it.invocation_id} wants to run" in str(asked.shown)
    ]
    assert shown == ["call_0", *with_it]
    assert (b"approved at once with what is asked about below" in asked.shown) is bool(with_it)
    assert asked.answers("y\n") == 0

    approved = [it.invocation_id for it in facts(db) if isinstance(it, ToolApproved)]
    assert approved == shown
    said = asked.shown.decode()
    assert all(f"approved {it}" in said for it in shown)


def test_what_is_no_json_is_told_with_its_option(tmp_path: Path) -> None:
    """One of two options that take JSON, and the cause."""
    db = str(tmp_path / "agent.db")
    deliver(db, opened("t1", *CALLS))
    answer = turnlock("approve", "agent", "call_0", "--db", db, "--arguments", '{"line":')
    assert answer.exit_code == 2
    assert "--arguments: line 1 column 9: is no JSON" in answer.output
