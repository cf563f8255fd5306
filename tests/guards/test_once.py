"""Calls without a turn, and continuations: each once, in a run of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from turnlock.guards import (
    At,
    Call,
    CallContext,
    Claimed,
    Differs,
    Guard,
    InDoubt,
    NotApproved,
    Outcome,
    Policy,
    Resolution,
    Status,
    StillRunning,
)
from turnlock.guards.once import KEPT, LONGEST, continuation_at, once_at
from turnlock.runtime.journal.sqlite import SqliteJournal

BOUND = 60.0


@pytest.fixture
def guard(tmp_path: Path) -> Iterator[Guard]:
    with Guard.open(tmp_path / "agent.db", policies={"gated": Policy(approval=True)}) as found:
        yield found


def test_what_has_no_turn_runs_once(guard: Guard, tmp_path: Path) -> None:
    """And nothing is owed in its run afterwards: it is not busy, and may be forgotten."""
    ran: list[CallContext] = []

    def act(context: CallContext) -> str:
        ran.append(context)
        return "paid"

    at = At("stripe/webhooks", None, "evt_1")
    first = guard.once(at, "pay", {"amount": 5}, act)
    again = asyncio.run(guard.aonce(at, "pay", {"amount": 5}, act))
    assert (first.value, first.replayed) == ("paid", False)
    assert (again.value, again.replayed) == ("paid", True)
    with pytest.raises(Differs):
        guard.once(at, "pay", {"amount": 6}, act)
    assert [it.at for it in ran] == [At("once/stripe%2Fwebhooks/evt_1", "once", "evt_1")]
    guard.close()

    async def busy() -> bool:
        async with await SqliteJournal.open(tmp_path / "agent.db") as journal:
            return bool((await journal.entry("once/stripe%2Fwebhooks/evt_1")).busy)

    assert not asyncio.run(busy())


@pytest.mark.parametrize("given", [None, Policy(approval=True)])
def test_a_gated_one_waits_for_its_decision(guard: Guard, given: Policy | None) -> None:
    """By what its tool declares, or what is given for this one; decided with the refusal's `at`."""
    tool = "gated" if given is None else "pay"
    at = At("cron", None, "2030-01-01")

    def act(context: CallContext) -> dict[str, int]:
        return {"paid": context.arguments["amount"]}  # type: ignore[dict-item] # it is a number

    with pytest.raises(NotApproved) as asked:
        guard.once(at, tool, {"amount": 5}, act, policy=given)
    [pending] = guard.waiting(asked.value.at.run)
    assert (pending.at, pending.digest) == (asked.value.at, asked.value.digest)
    guard.decide(pending.at, approved=True, digest=pending.digest, arguments={"amount": 4})
    assert guard.once(at, tool, {"amount": 5}, act, policy=given).value == {"paid": 4}


def test_one_in_doubt_is_resolved_by_the_at_of_its_refusal(guard: Guard) -> None:
    at = At("cron", None, "c")

    def crash(_: CallContext) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        guard.once(at, "pay", {}, crash)
    with pytest.raises(InDoubt) as doubt:
        guard.once(at, "pay", {}, crash)
    guard.resolve(doubt.value.at, Resolution.RESULT, result="it was paid")
    assert guard.once(at, "pay", {}, crash).value == "it was paid"


def test_a_policy_for_this_one_says_what_becomes_of_a_doubt(guard: Guard) -> None:
    """A model that was asked is asked again: nobody has to resolve that."""
    at = At("r", "t", "model")
    asked: list[int] = []

    def model(context: CallContext) -> str:
        asked.append(context.attempt)
        if len(asked) == 1:
            raise ConnectionError("gone")
        return "hello"

    safe = Policy(safe_to_repeat=True)
    with pytest.raises(ConnectionError):
        guard.once(at, "model", {}, model, suspends=(Exception,), policy=safe)
    outcome = guard.once(at, "model", {}, model, suspends=(Exception,), policy=safe)
    assert (outcome.value, asked) == ("hello", [1, 2])


def test_a_failure_and_a_value_of_ones_own_are_kept(guard: Guard) -> None:
    def fail(_: CallContext) -> str:
        raise ValueError("no")

    for _ in range(2):
        outcome = guard.once(At("r", None, "a"), "pay", {}, fail)
        assert (outcome.status, outcome.error) == (Status.FAILED, "ValueError: no")

    async def act(_: CallContext) -> bytes:
        await asyncio.sleep(0)
        return b"raw"

    for _ in range(2):
        kept = asyncio.run(
            guard.aonce(
                At("r", None, "b"),
                "pay",
                {},
                act,
                encode=bytes.hex,
                decode=lambda it: bytes.fromhex(str(it)),
            )
        )
        assert kept.value == b"raw"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (At("a/b", None, "c"), At("a", "b", "c")),
        (At("a", None, "b/c"), At("a", "b", "c")),
        (At("a%2Fb", None, "c"), At("a/b", None, "c")),
        (At("x" * 300, None, "c"), At("x" * 300, None, "d")),
        (At("x" * 300 + "/y", None, "c"), At("x" * 300, "y", "c")),
    ],
)
def test_different_calls_have_different_runs(one: At, other: At) -> None:
    """However they are written, and however long they are; the id that is made is bounded."""
    assert once_at(one).run != once_at(other).run
    for at in (one, other):
        assert once_at(at) == once_at(at)
        assert len(once_at(at).run) <= max(LONGEST, KEPT + 65)
    assert once_at(At("a", None, "b")).run != continuation_at("a", "b").run


def test_a_long_id_works(guard: Guard) -> None:
    at = At("r" * 5_000, "t" * 5_000, "c" * 5_000)
    assert guard.once(at, "pay", {}, lambda _: 1).value == 1
    assert guard.once(at, "pay", {}, lambda _: 1).replayed


def opened(guard: Guard) -> None:
    call = Call(invocation_id="c", tool_name="pay", arguments={}, requires_approval=False)
    guard.open_turn("r", "t", [call])
    guard.call(At("r", "t", "c"), "pay", {}, lambda _: "paid")


def test_one_of_two_hosts_has_the_continuation(guard: Guard) -> None:
    """The other waits for what the model answered; whoever comes later gets that, too."""
    opened(guard)
    first = guard.continuation("r", "t")
    assert isinstance(first, Claimed)
    with ThreadPoolExecutor(2) as pool:
        others = [
            pool.submit(guard.continuation, "r", "t"),
            pool.submit(lambda: asyncio.run(guard.acontinuation("r", "t"))),
        ]
        first.succeeded({"text": "it is paid"})
        for it in others:
            told = it.result(BOUND)
            assert isinstance(told, Outcome)
            assert told.value == {"text": "it is paid"}
    assert isinstance(guard.continuation("r", "t2"), Claimed)


def test_a_host_that_dies_leaves_the_continuation_in_doubt(tmp_path: Path) -> None:
    """Nobody asks the model a second time unasked; one that never asked gives it back."""
    with Guard.open(tmp_path / "agent.db", wait=0.05) as guard:
        opened(guard)
        first = guard.continuation("r", "t")
        assert isinstance(first, Claimed)
        with pytest.raises(StillRunning):
            guard.continuation("r", "t")
        first.never_began()
        second = guard.continuation("r", "t")
        assert isinstance(second, Claimed)
        second.lost()
        with pytest.raises(InDoubt) as doubt:
            guard.continuation("r", "t")
        guard.resolve(doubt.value.at, Resolution.RETRY)
        assert isinstance(guard.continuation("r", "t"), Claimed)


def test_many_race_for_one_webhook(guard: Guard) -> None:
    ran: list[int] = []
    together = threading.Barrier(8)

    def act(_: CallContext) -> int:
        ran.append(1)
        return len(ran)

    def deliver() -> int | None:
        together.wait(BOUND)
        return guard.once(At("hook", None, "e"), "pay", {}, act).value

    with ThreadPoolExecutor(8) as pool:
        racing = [pool.submit(deliver) for _ in range(8)]
        assert [it.result(BOUND) for it in racing] == [1] * 8
    assert ran == [1]
