"""A guard in a process that forks: the child has its own, the parent goes on with its claims."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from turnlock.guards import At, Call, CallContext, Claimed, Guard, InDoubt, StillRunning
from turnlock.lifecycle.phases import Phase
from turnlock.models.errors import InvalidValue

from .forking import forked

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="fork is POSIX")

BOUND = 60.0


def calls(*names: str) -> list[Call]:
    return [
        Call(invocation_id=name, tool_name="pay", arguments={}, requires_approval=False)
        for name in names
    ]


def pay(context: CallContext) -> str:
    return f"{context.at.call} paid in {os.getpid()}"


def test_both_go_on_and_each_call_is_executed_once(tmp_path: Path) -> None:
    """As a server does that opens its guard when it is imported, and forks its workers then."""
    with Guard.open(tmp_path / "agent.db") as guard:
        guard.open_turn("r", "t", calls("a", "b", "c"))
        first = guard.call(At("r", "t", "a"), "pay", {}, pay)

        def child() -> list[str | None]:
            told = [guard.call(At("r", "t", name), "pay", {}, pay).value for name in "ab"]
            told.append(asyncio.run(guard.acall(At("r", "t", "c"), "pay", {}, pay)).value)
            guard.close()
            return told

        said = forked(child)
        assert said[0] == first.value
        for name, value in zip("bc", said[1:], strict=True):
            assert f"{name} paid in " in value
            assert str(os.getpid()) not in value
            outcome = guard.call(At("r", "t", name), "pay", {}, pay)
            assert (outcome.value, outcome.replayed) == (value, True)
        assert forked(lambda: guard.call(At("r", "t", "b"), "pay", {}, pay).value) == said[1]


def test_a_claim_of_the_parent_stays_the_parents(tmp_path: Path) -> None:
    """The child can neither tell its end nor, by dropping it, lose it; nor run the call."""
    with Guard.open(tmp_path / "agent.db", wait=0.05) as guard:
        guard.open_turn("r", "t", calls("a"))
        held = [guard.claim(At("r", "t", "a"), "pay", {})]

        def child() -> list[str]:
            told: list[str] = []
            claim = held[0]
            assert isinstance(claim, Claimed)
            with pytest.raises(InvalidValue, match="fork"):
                claim.succeeded("by the child")
            del claim
            held.clear()
            with pytest.raises(StillRunning):
                guard.call(At("r", "t", "a"), "pay", {}, pay)
            told.append(str(guard.look(At("r", "t", "a")).phase))
            guard.close()
            return told

        assert forked(child) == [str(Phase.STARTED)]
        claim = held[0]
        assert isinstance(claim, Claimed)
        claim.succeeded("by the parent")
        assert guard.call(At("r", "t", "a"), "pay", {}, pay).value == "by the parent"


def test_a_child_that_dies_in_the_tool_leaves_it_in_doubt(tmp_path: Path) -> None:
    """Its claim is not taken for one of the parent, whose guard it had."""
    with Guard.open(tmp_path / "agent.db") as guard:
        guard.open_turn("r", "t", calls("a"))

        def die(_: CallContext) -> str:
            os._exit(7)

        with pytest.raises(EOFError):  # it has said nothing
            forked(lambda: guard.call(At("r", "t", "a"), "pay", {}, die))
        with pytest.raises(InDoubt):
            guard.call(At("r", "t", "a"), "pay", {}, pay)


def test_a_fork_while_others_call_hangs_nobody(tmp_path: Path) -> None:
    """Whatever lock they hold, and wherever their call is."""
    with Guard.open(tmp_path / "agent.db") as guard:
        guard.open_turn("r", "t", calls(*(f"c{n}" for n in range(200))))
        wrong: list[BaseException] = []

        def call(numbers: range) -> None:
            try:
                for number in numbers:
                    guard.call(At("r", "t", f"c{number}"), "pay", {}, pay)
            except BaseException as error:  # noqa: BLE001 - told below
                wrong.append(error)

        threads = [threading.Thread(target=call, args=(range(n, 200, 3),)) for n in range(3)]
        for thread in threads:
            thread.start()

        def child() -> int:
            found = {guard.call(At("r", "t", f"c{n}"), "pay", {}, pay).value for n in range(20)}
            guard.close()
            return len(found)

        for _ in range(3):
            assert forked(child) == 20
        for thread in threads:
            thread.join(BOUND)
            assert not thread.is_alive()
        assert not wrong


SCRIPT = """
import sys, threading
from turnlock.guards import At, Call, Guard

guard = Guard.open(sys.argv[1])
fields = {"tool_name": "pay", "arguments": {}, "requires_approval": False}
guard.open_turn("r", "t", [Call(invocation_id=name, **fields) for name in "ab"])
claim = guard.claim(At("r", "t", "a"), "pay", {})
begun = threading.Event()

def hang(_):
    begun.set()
    threading.Event().wait()

given = (At("r", "t", "b"), "pay", {}, hang)
threading.Thread(target=guard.call, args=given, daemon=True).start()
begun.wait()
print("claimed", flush=True)
"""


def test_an_interpreter_that_exits_with_claims_open_does_not_hang(tmp_path: Path) -> None:
    """They are in doubt at once: nobody waits for a lease."""
    ended = subprocess.run(
        [sys.executable, "-X", "dev", "-c", SCRIPT, str(tmp_path / "agent.db")],
        check=False,
        capture_output=True,
        text=True,
        timeout=BOUND,
    )
    assert (ended.stdout, ended.returncode) == ("claimed\n", 0)
    assert "Traceback" not in ended.stderr, ended.stderr
    with Guard.open(tmp_path / "agent.db") as guard:
        for name in "ab":
            with pytest.raises(InDoubt):
                guard.call(At("r", "t", name), "pay", {}, pay)
