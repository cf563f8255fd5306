"""The face of a guard: calls from threads and loops, outcomes, decisions, doubt, and its end."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from turnlock.guards import (
    At,
    Call,
    CallContext,
    Claimed,
    DecidedOtherwise,
    Differs,
    Guard,
    InDoubt,
    NotApproved,
    NotRecorded,
    Outcome,
    Policy,
    Resolution,
    Stale,
    Status,
    StillRunning,
)
from turnlock.guards.calling import NeverBegan
from turnlock.lifecycle.phases import Phase
from turnlock.models.errors import InvalidValue
from turnlock.runtime.errors import Closed, JournalError
from turnlock.runtime.tools.errors import OutcomeUnknown

BOUND = 60.0
"""Seconds after which something hangs."""
HERE = At("r", "t", "c")
PAY: Mapping[str, Any] = {"amount": 5}


@pytest.fixture
def guard(tmp_path: Path) -> Iterator[Guard]:
    with Guard.open(tmp_path / "agent.db", policies={"gated": Policy(approval=True)}) as found:
        yield found


def call(name: str = "c", tool: str = "pay", arguments: Mapping[str, Any] = PAY) -> Call:
    return Call(invocation_id=name, tool_name=tool, arguments=arguments, requires_approval=False)


class Tool:
    """Counts how often it was run, and with what."""

    def __init__(self, value: Any = "paid", error: BaseException | None = None) -> None:
        self.value = value
        self.error = error
        self.ran: list[CallContext] = []

    def __call__(self, context: CallContext) -> Any:
        self.ran.append(context)
        if self.error is not None:
            raise self.error
        return self.value

    async def later(self, context: CallContext) -> Any:
        await asyncio.sleep(0)
        return self(context)


def both(guard: Guard, tool: Tool, at: At = HERE, **how: Any) -> Outcome[Any]:
    """Call it with a plain function; wherever the outcome is recorded, a coroutine gets it, too."""
    first = guard.call(at, "pay", PAY, tool, **how)
    again = asyncio.run(guard.acall(at, "pay", PAY, tool.later, **how))
    assert again.replayed
    assert (again.status, again.error) == (first.status, first.error)
    return first


def test_a_call_is_executed_once_and_then_replayed(guard: Guard) -> None:
    guard.open_turn("r", "t", [call()])
    guard.open_turn("r", "t", [call()])
    tool = Tool({"paid": [5, 1.5, None]})

    first = both(guard, tool)

    assert first == Outcome(status=Status.SUCCEEDED, value=tool.value, attempt=1)
    assert first.value is tool.value
    again = guard.call(HERE, "pay", PAY, tool)
    assert again == Outcome(status=Status.SUCCEEDED, value=tool.value, attempt=1, replayed=True)
    kept: Any = again.value
    kept["paid"].append("a plain list, which may be changed")
    [context] = tool.ran
    assert (context.at, context.tool, context.attempt) == (HERE, "pay", 1)
    assert context.arguments == PAY
    assert context.idempotency_key == "call/r/1/t/c"


def test_a_call_on_a_loop_is_executed_once(guard: Guard) -> None:
    """With a coroutine function, a plain one, and one that returns something to be awaited."""

    async def play() -> None:
        tool = Tool("done")
        await guard.aopen_turn("r", "t", [call("a"), call("b"), call("c")])
        fns: dict[str, Callable[[CallContext], Any]] = {
            "a": tool.later,
            "b": tool,
            "c": lambda context: asyncio.to_thread(tool, context),
        }
        for name, fn in fns.items():
            outcome = await guard.acall(At("r", "t", name), "pay", PAY, fn)
            assert (outcome.value, outcome.replayed) == ("done", False)
        for name, fn in fns.items():
            outcome = await guard.acall(At("r", None, name), "pay", PAY, fn)
            assert (outcome.value, outcome.replayed) == ("done", True)
        assert len(tool.ran) == 3

    asyncio.run(play())


def test_what_it_raises_is_recorded_and_is_an_outcome(guard: Guard) -> None:
    guard.open_turn("r", "t", [call()])
    tool = Tool(error=ValueError("no money"))

    first = both(guard, tool)

    assert (first.status, first.error) == (Status.FAILED, "ValueError: no money")
    assert (first.value, first.replayed, first.attempt) == (None, False, 1)
    assert len(tool.ran) == 1


class Suspended(Exception):
    """Control flow of a framework."""


@pytest.mark.parametrize(
    "error",
    [
        Suspended("ask"),
        OutcomeUnknown("connection lost"),
        KeyboardInterrupt(),
        SystemExit(3),
        Stale("what was asked inside of it", at=HERE, reason="late"),
        NotRecorded("inside of it", at=HERE),
        ExceptionGroup("tasks", [ValueError(), ExceptionGroup("more", [Suspended("ask")])]),
        ExceptionGroup("tasks", [Differs("inside of it", at=HERE)]),
    ],
    ids=lambda it: type(it).__name__,
)
def test_what_says_nothing_of_the_call_leaves_it_in_doubt(
    guard: Guard, error: BaseException
) -> None:
    """And comes out as it is; nobody runs it again until it is resolved."""
    guard.open_turn("r", "t", [call("a"), call("b")])
    tool = Tool(error=error)
    with pytest.raises(type(error)):
        guard.call(At("r", "t", "a"), "pay", PAY, tool, suspends=(Suspended,))

    async def raised() -> None:
        with pytest.raises(type(error)):
            await guard.acall(At("r", "t", "b"), "pay", PAY, tool, suspends=(Suspended,))

    asyncio.run(raised())
    for name in "ab":
        with pytest.raises(InDoubt) as doubt:
            guard.call(At("r", "t", name), "pay", PAY, tool)
        assert doubt.value.at == At("r", "t", name)
        guard.resolve(doubt.value.at, Resolution.RESULT, result="it was paid")
        assert guard.call(At("r", "t", name), "pay", PAY, tool).value == "it was paid"
    assert len(tool.ran) == 2


def test_what_never_began_is_run_by_the_next_who_asks(guard: Guard) -> None:
    guard.open_turn("r", "t", [call("a"), call("b")])
    tool = Tool(error=NeverBegan("the server asks first"))
    with pytest.raises(NeverBegan):
        guard.call(At("r", "t", "a"), "pay", PAY, tool)

    async def never() -> None:
        with pytest.raises(NeverBegan):
            await guard.acall(At("r", "t", "b"), "pay", PAY, tool.later)

    asyncio.run(never())
    tool.error = None
    for name in "ab":
        outcome = guard.call(At("r", "t", name), "pay", PAY, tool)
        assert (outcome.value, outcome.replayed, outcome.attempt) == ("paid", False, 2)


@dataclass
class Receipt:
    """What is no plain JSON."""

    amount: int


@pytest.mark.parametrize("value", [Receipt(5), {1, 2}, b"raw", {1: 2}, float("nan"), object()])
def test_a_value_that_is_no_json_is_not_recorded_and_never_run_again(
    guard: Guard, value: object
) -> None:
    guard.open_turn("r", "t", [call("a"), call("b")])
    tool = Tool(value)
    with pytest.raises(NotRecorded, match="encode=") as told:
        guard.call(At("r", "t", "a"), "pay", PAY, tool)
    assert told.value.at == At("r", "t", "a")

    async def not_recorded() -> None:
        with pytest.raises(NotRecorded, match="encode="):
            await guard.acall(At("r", "t", "b"), "pay", PAY, tool.later)

    asyncio.run(not_recorded())
    for name in "ab":
        with pytest.raises(InDoubt):
            guard.call(At("r", "t", name), "pay", PAY, tool)
    assert len(tool.ran) == 2


def test_encode_and_decode_keep_any_value(guard: Guard) -> None:
    guard.open_turn("r", "t", [call()])

    def encode(it: Receipt) -> dict[str, int]:
        return {"amount": it.amount}

    def decode(it: Any) -> Receipt:
        return Receipt(**it)

    def pay(_: CallContext) -> Receipt:
        return Receipt(5)

    first = guard.call(HERE, "pay", PAY, pay, encode=encode, decode=decode)
    again = guard.call(HERE, "pay", PAY, pay, encode=encode, decode=decode)
    assert (first.value, first.replayed) == (Receipt(5), False)
    assert (again.value, again.replayed) == (Receipt(5), True)


def test_an_encode_that_fails_leaves_the_call_in_doubt(guard: Guard) -> None:
    guard.open_turn("r", "t", [call()])
    tool = Tool()

    def encode(_: object) -> Any:
        raise LookupError("no such codec")

    with pytest.raises(NotRecorded, match="no such codec"):
        guard.call(HERE, "pay", PAY, tool, encode=encode)
    with pytest.raises(InDoubt):
        guard.call(HERE, "pay", PAY, tool)
    assert len(tool.ran) == 1


def test_something_to_be_awaited_is_refused_where_nobody_awaits_it(guard: Guard) -> None:
    """A coroutine has surely not begun: it runs where it can be."""
    guard.open_turn("r", "t", [call()])
    tool = Tool()
    with pytest.raises(InvalidValue, match="acall"):
        guard.call(HERE, "pay", PAY, tool.later)
    outcome = asyncio.run(guard.acall(HERE, "pay", PAY, tool.later))
    assert (outcome.value, len(tool.ran)) == ("paid", 1)


def test_nothing_runs_that_was_not_approved(guard: Guard) -> None:
    """What the tool declares counts, whoever opens the call; the edited arguments are what runs."""
    guard.open_turn("r", "t", [call(tool="gated")])
    tool = Tool()
    with pytest.raises(NotApproved) as asked:
        guard.call(HERE, "gated", PAY, tool)
    assert (asked.value.at, asked.value.arguments) == (HERE, PAY)
    [pending] = guard.waiting("r")
    assert (pending.at, pending.tool, pending.digest) == (HERE, "gated", asked.value.digest)
    with pytest.raises(Differs):
        guard.decide(HERE, approved=True, digest="0" * 64)

    guard.decide(HERE, approved=True, digest=pending.digest, by="ada", arguments={"amount": 4})
    guard.decide(HERE, approved=True, digest=pending.digest, by="ada", arguments={"amount": 4})
    with pytest.raises(DecidedOtherwise):
        guard.decide(HERE, approved=False, digest=pending.digest)
    assert guard.call(HERE, "gated", PAY, tool).value == "paid"
    assert [dict(it.arguments) for it in tool.ran] == [{"amount": 4}]
    assert guard.waiting("r") == ()


def test_a_denial_is_an_outcome(guard: Guard) -> None:
    async def play() -> None:
        await guard.aopen_turn("r", "t", [call(tool="gated")])
        [pending] = await guard.awaiting("r")
        await guard.adecide(HERE, approved=False, digest=pending.digest, reason="too much")
        tool = Tool()
        outcome = await guard.acall(HERE, "gated", PAY, tool.later)
        assert (outcome.status, outcome.reason) == (Status.DENIED, "too much")
        assert (await guard.alook(HERE)).phase is Phase.DENIED
        assert not tool.ran

    asyncio.run(play())


def test_a_decision_is_waited_for(guard: Guard) -> None:
    """Also where another process makes it: here another guard on the same file."""
    guard.open_turn("r", "t", [call(tool="gated")])
    assert guard.wait_decided(HERE, within=0.05).phase is Phase.REQUESTED
    assert guard.wait_decided(HERE, within=0.0).phase is Phase.REQUESTED

    async def play() -> None:
        waiting = asyncio.create_task(guard.await_decided(HERE, within=BOUND))
        await asyncio.sleep(0.02)
        [pending] = await guard.awaiting("r")
        await guard.adecide(HERE, approved=True, digest=pending.digest)
        assert (await waiting).phase is Phase.APPROVED
        given_up = asyncio.create_task(guard.await_decided(HERE, within=BOUND))
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up

    asyncio.run(asyncio.wait_for(play(), BOUND))


def test_what_was_never_opened_is_refused_with_what_to_add(guard: Guard) -> None:
    tool = Tool()
    with pytest.raises(Stale):
        guard.call(HERE, "pay", PAY, tool)
    with pytest.raises(Stale):
        guard.look(HERE)
    guard.open_turn("r", "t", [call()])
    with pytest.raises(Differs):
        guard.call(HERE, "pay", {"amount": 6}, tool)
    with pytest.raises(Differs):
        guard.open_turn("r", "t", [call("other")])
    assert not tool.ran


def test_a_timeout_of_the_policy_ends_a_call_in_doubt(tmp_path: Path) -> None:
    """A coroutine is cancelled; a plain function runs on in its thread, and nobody waits for it."""
    policies = {"pay": Policy(timeout=0.05)}
    ended = threading.Event()
    cancelled: list[str] = []

    def hang(_: CallContext) -> None:
        ended.wait(BOUND)

    async def later(_: CallContext) -> None:
        try:
            await asyncio.sleep(BOUND)
        except asyncio.CancelledError:
            cancelled.append("later")
            raise

    with Guard.open(tmp_path / "agent.db", policies=policies) as guard:
        guard.open_turn("r", "t", [call("a"), call("b"), call("c"), call("d")])
        with pytest.raises(InDoubt, match=r"timeout of 0\.05 s") as doubt:
            guard.call(At("r", "t", "a"), "pay", PAY, hang)
        assert (doubt.value.attempt, doubt.value.at) == (1, At("r", "t", "a"))
        with pytest.raises(InDoubt, match="timeout"):
            asyncio.run(guard.acall(At("r", "t", "b"), "pay", PAY, later))
        assert cancelled == ["later"]
        for name in "ab":
            with pytest.raises(InDoubt):
                guard.call(At("r", "t", name), "pay", PAY, hang)
        ended.set()

        def own(_: CallContext) -> None:
            raise TimeoutError("its own")

        for name, run in (("c", guard.call), ("d", _on_loop(guard))):
            outcome = run(At("r", "t", name), "pay", PAY, own)
            assert outcome.error == "TimeoutError: its own"


def _on_loop(guard: Guard) -> Callable[..., Outcome[Any]]:
    return lambda *given: asyncio.run(guard.acall(*given))


def test_a_claim_in_its_callers_hands(guard: Guard) -> None:
    """For hooks before and after a tool: claimed in the one, told in the other; told once."""
    names = "abcd"
    guard.open_turn("r", "t", [call(name) for name in names])
    claims: dict[str, Claimed] = {}
    for name in names:
        found = guard.claim(At("r", "t", name), "pay", PAY)
        assert isinstance(found, Claimed)
        claims[name] = found
    assert claims["a"].context.arguments == PAY
    assert (claims["a"].attempt, claims["a"].idempotency_key) == (1, "call/r/1/t/a")

    claims["a"].succeeded({"paid": 5})
    claims["b"].failed("no money")
    claims["c"].lost()
    claims["d"].never_began()

    assert guard.claim(At("r", "t", "a"), "pay", PAY) == Outcome(
        status=Status.SUCCEEDED, value={"paid": 5}, attempt=1, replayed=True
    )
    told = guard.claim(At("r", "t", "b"), "pay", PAY)
    assert isinstance(told, Outcome)
    assert told.error == "no money"
    with pytest.raises(InDoubt):
        guard.claim(At("r", "t", "c"), "pay", PAY)
    again = guard.claim(At("r", "t", "d"), "pay", PAY)
    assert isinstance(again, Claimed)
    assert again.attempt == 2
    asyncio.run(again.asucceeded(None))
    for claim in (*claims.values(), again):
        with pytest.raises(InvalidValue, match="told already"):
            claim.succeeded(1)


def test_a_claim_whose_value_is_no_json_is_lost(guard: Guard) -> None:
    guard.open_turn("r", "t", [call()])
    claim = guard.claim(HERE, "pay", PAY)
    assert isinstance(claim, Claimed)
    with pytest.raises(NotRecorded):
        claim.succeeded(Receipt(5))
    with pytest.raises(InDoubt):
        guard.claim(HERE, "pay", PAY)


@pytest.mark.parametrize("handed", [True, False])
def test_a_claim_that_is_dropped_is_let_go(
    guard: Guard, caplog: pytest.LogCaptureFixture, handed: bool
) -> None:
    """It is in doubt; one that nobody was given yet surely never began."""
    guard.open_turn("r", "t", [call()])
    claim = guard.claim(HERE, "pay", PAY)
    assert isinstance(claim, Claimed)
    setattr(claim, "_handed", handed)  # noqa: B010 - as if it had not been given away
    del claim

    give_up = time.monotonic() + BOUND
    while guard.look(HERE).phase is Phase.STARTED:
        assert time.monotonic() < give_up
        time.sleep(0.01)
    if handed:
        with pytest.raises(InDoubt):
            guard.claim(HERE, "pay", PAY)
        assert "without a recorded end" in caplog.text
    else:
        assert isinstance(guard.claim(HERE, "pay", PAY), Claimed)


def test_an_end_that_somebody_has_forestalled_is_stale_and_leaves_no_doubt(
    guard: Guard, caplog: pytest.LogCaptureFixture
) -> None:
    """The process slept beyond its lease, say, and a person said meanwhile what became of it."""
    guard.open_turn("r", "t", [call()])
    claim = guard.claim(HERE, "pay", PAY)
    assert isinstance(claim, Claimed)
    held = claim._held
    guard._background.run(lambda engine: engine.lost(held))
    guard.resolve(HERE, Resolution.RESULT, result="not paid")
    with pytest.raises(Stale) as refused:
        claim.succeeded("paid")
    assert refused.value.reason == "conflicting_duplicate"
    with pytest.raises(InvalidValue, match="told already"):
        claim.lost()
    del claim
    assert guard.call(HERE, "pay", PAY, Tool()).value == "not paid"
    assert "without a recorded end" not in caplog.text


def test_many_threads_and_loops_race_for_the_same_calls(guard: Guard) -> None:
    """Each is executed once; whoever comes second waits, and gets its outcome."""
    calls = [call(f"c{number}") for number in range(10)]
    guard.open_turn("r", "t", calls)
    ran: list[str] = []

    def act(context: CallContext) -> str:
        ran.append(context.at.call)
        time.sleep(0.01)
        return f"did {context.at.call}"

    def sync() -> list[str | None]:
        return [guard.call(At("r", "t", it.invocation_id), "pay", PAY, act).value for it in calls]

    async def twins() -> list[str | None]:
        outcomes = await asyncio.gather(
            *(
                guard.acall(
                    At("r", "t", it.invocation_id), "pay", PAY, lambda c: asyncio.to_thread(act, c)
                )
                for it in calls
            )
        )
        return [it.value for it in outcomes]

    with ThreadPoolExecutor(6) as pool:
        racing = [pool.submit(sync) for _ in range(3)]
        racing += [pool.submit(asyncio.run, twins()) for _ in range(3)]
        for it in racing:
            assert it.result(BOUND) == [f"did c{number}" for number in range(10)]
    assert sorted(ran) == [f"c{number}" for number in range(10)]


def test_a_call_that_another_runs_too_long_is_refused(tmp_path: Path) -> None:
    with (
        Guard.open(tmp_path / "agent.db") as one,
        Guard.open(tmp_path / "agent.db", wait=0.05) as other,
    ):
        one.open_turn("r", "t", [call()])
        claim = one.claim(HERE, "pay", PAY)
        assert isinstance(claim, Claimed)
        with pytest.raises(StillRunning) as refused:
            other.call(HERE, "pay", PAY, Tool())
        assert refused.value.at == HERE
        claim.succeeded("paid")
        assert other.call(HERE, "pay", PAY, Tool()).value == "paid"


def test_a_guard_is_a_context_manager_and_says_when_it_is_closed(tmp_path: Path) -> None:
    with Guard.open(tmp_path / "agent.db") as guard:
        guard.open_turn("r", "t", [call()])
    guard.close()
    with pytest.raises(Closed, match=r"agent\.db was closed; open another one"):
        guard.call(HERE, "pay", PAY, Tool())

    async def play() -> None:
        async with Guard.open(tmp_path / "agent.db") as twin:
            outcome = await twin.acall(HERE, "pay", PAY, Tool().later)
            assert outcome.value == "paid"
        with pytest.raises(Closed):
            await twin.alook(HERE)
        await twin.aclose()

    asyncio.run(play())


def test_a_close_while_a_tool_runs_leaves_it_in_doubt(tmp_path: Path) -> None:
    """Who runs it is told that its outcome was not recorded; nothing hangs."""
    guard = Guard.open(tmp_path / "agent.db")
    guard.open_turn("r", "t", [call()])
    runs, goes_on = threading.Event(), threading.Event()

    def act(_: CallContext) -> str:
        runs.set()
        assert goes_on.wait(BOUND)
        return "paid"

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(guard.call, HERE, "pay", PAY, act)
        assert runs.wait(BOUND)
        guard.close()
        goes_on.set()
        with pytest.raises(NotRecorded, match="ran, and what became of it") as told:
            running.result(BOUND)
        assert isinstance(told.value.__cause__, Closed)
    with (
        Guard.open(tmp_path / "agent.db") as other,
        pytest.raises(InDoubt),
    ):
        other.call(HERE, "pay", PAY, Tool())


def test_what_is_no_journal_is_told_when_it_is_opened(tmp_path: Path) -> None:
    (tmp_path / "agent.db").write_text("something else, and longer than a header " * 10)
    with pytest.raises(JournalError):
        Guard.open(tmp_path / "agent.db")
    with pytest.raises(JournalError, match="folder"):
        Guard.open(tmp_path / "nowhere" / "agent.db")
    with pytest.raises(InvalidValue):
        Guard.open(tmp_path / "other.db", lease=-1.0)
    assert not [it.name for it in threading.enumerate() if it.name.startswith("guard ")]


def test_a_journal_of_a_newer_version_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    """Whoever wrote it goes on with it: nothing is read wrongly, and nothing is written."""
    path = tmp_path / "agent.db"
    Guard.open(path).close()
    with closing(sqlite3.connect(path)) as journal:
        journal.execute("PRAGMA user_version = 999")
    before = path.read_bytes()
    with pytest.raises(JournalError, match=r"agent\.db.* newer"):
        Guard.open(path)
    assert path.read_bytes() == before


def test_a_journal_url_is_a_place_too(tmp_path: Path) -> None:
    with Guard.open(f"sqlite:{tmp_path / 'agent.db'}") as guard:
        guard.open_turn("r", "t", [call()])
    with Guard.open(tmp_path / "agent.db") as guard:
        assert guard.look(HERE).tool == "pay"
