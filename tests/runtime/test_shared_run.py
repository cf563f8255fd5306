"""A run that nobody owns, written by many: each judges, and appends where nobody was quicker."""

from __future__ import annotations

import asyncio
import multiprocessing
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from turnlock import (
    Acknowledge,
    Call,
    Claim,
    CorruptJournal,
    Decide,
    Delivery,
    Execute,
    Fact,
    FactType,
    Kernel,
    OpenTurn,
    Reason,
    Report,
    Run,
    Tick,
)
from turnlock.models.errors import InvalidValue
from turnlock.runtime import submitting as under_test
from turnlock.runtime import writer as writing
from turnlock.runtime.errors import JournalError, JournalOwned
from turnlock.runtime.journal.contract import PAGE, Journal
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.runtime.submitting import SharedRun
from turnlock.runtime.tools.policy import Policy

from .faulty_journal import Fault, FaultyJournal
from .test_ownership import dead_owner
from .virtual import LoopClock, run, settled

RUN = Run(run_id="r")
POLICIES = {"pay": Policy(approval=True), "read": Policy()}


def call(name: str, tool: str = "read") -> Call:
    return Call(invocation_id=name, tool_name=tool, arguments={}, requires_approval=False)


def opened(*calls: Call, turn_id: str = "t1") -> OpenTurn:
    return OpenTurn(turn_id=turn_id, calls=calls)


def claim(name: str, worker: str = "w") -> Claim:
    return Claim(turn_id="t1", invocation_id=name, attempt=1, worker=worker)


def report(name: str) -> Report:
    return Report(turn_id="t1", invocation_id=name, attempt=1, result=1)


async def shared(journal: Journal) -> SharedRun:
    await journal.declare(RUN)
    return await SharedRun.open(journal, "r", policies=POLICIES, clock=LoopClock())


async def types(journal: Journal) -> list[FactType]:
    return [fact.type async for fact in journal.facts("r")]


def test_several_deliveries_are_one_append() -> None:
    """Each has its verdict, by what those before it brought; the facts of all are kept together."""

    async def play() -> None:
        journal = FaultyJournal(MemoryJournal())
        writer = await shared(journal)

        verdicts = await writer.submit(
            opened(call("a"), call("b", "pay")), claim("a"), claim("b"), report("a")
        )

        assert [verdict.reason for verdict in verdicts] == [None, None, Reason.NOT_APPROVED, None]
        assert journal.calls["append"] == 1
        assert await types(journal) == [
            FactType.TURN_OPENED,
            FactType.TOOL_APPROVAL_REQUESTED,
            FactType.TOOL_EXECUTION_STARTED,
            FactType.TOOL_EXECUTION_SUCCEEDED,
        ]
        entry = await journal.entry("r")
        assert (entry.owner, entry.fence, entry.busy) == (None, 0, True)
        assert writer.kernel.sequence == 4

    run(play())


def test_all_of_it_is_kept_or_nothing_has_happened() -> None:
    """Where the journal fails the caller is told; delivered again it is accepted as at first."""

    async def play() -> None:
        journal = FaultyJournal(MemoryJournal())
        writer = await shared(journal)
        for fault in (Fault.FULL, Fault.LOST):
            journal.fail("append", fault)
            with pytest.raises(JournalError):
                await writer.submit(opened(call("a")), claim("a"))
            assert (writer.kernel.sequence, await types(journal)) == (0, [])

        verdicts = await writer.submit(opened(call("a")), claim("a"))
        assert [verdict.reason for verdict in verdicts] == [None, None]

    run(play())


def test_what_was_kept_though_nobody_said_so_is_found_out() -> None:
    """The answer of the append was lost: the next submit reads first, and is told the truth."""

    async def play() -> None:
        journal = FaultyJournal(MemoryJournal())
        writer = await shared(journal)
        journal.fail("append", Fault.UNACKNOWLEDGED)
        with pytest.raises(JournalError):
            await writer.submit(opened(call("a")))

        (again,) = await writer.submit(opened(call("a")))
        assert again.reason is Reason.TURN_OPEN

    run(play())


def test_who_was_overtaken_reads_what_is_new_and_judges_again() -> None:
    """Only the facts that it has not folded are read; it is judged in the run as it is now."""

    async def play() -> None:
        journal = MemoryJournal()
        ada = await shared(journal)
        await ada.submit(opened(call("a"), call("b")))
        watched = Reads(journal)
        bob = await shared(watched)
        await ada.submit(claim("a", "ada"))
        watched.read_after.clear()

        verdicts = await bob.submit(claim("a", "bob"), claim("b", "bob"))

        assert [verdict.reason for verdict in verdicts] == [Reason.ALREADY_STARTED, None]
        assert watched.read_after[0] == 1
        assert min(watched.read_after) == 1
        assert watched.calls["append"] == 2
        assert bob.kernel.snapshot() == Kernel.recover(RUN, await journal.read("r")).snapshot()

    run(play())


class Reads(FaultyJournal):
    """Notes from where facts are read, but for a look at one that is known."""

    def __init__(self, inner: Journal) -> None:
        super().__init__(inner)
        self.read_after: list[int] = []

    async def read(self, run_id: str, *, after: int = 0, limit: int = PAGE) -> tuple[Fact, ...]:
        if limit > 1:
            self.read_after.append(after)
        return await super().read(run_id, after=after, limit=limit)


def test_a_refusal_is_of_the_run_as_it_is() -> None:
    """No append says that something was missed: it is looked up before anybody is refused."""

    async def play() -> None:
        journal = MemoryJournal()
        ada, bob = await shared(journal), await shared(journal)
        await ada.submit(opened(call("b", "pay")))
        await bob.refresh()
        await ada.submit(Decide(turn_id="t1", invocation_id="b", approved=True))

        (verdict,) = await bob.submit(claim("b"))  # not approved, as far as it had read

        assert verdict.reason is None

    run(play())


def test_what_is_chosen_is_judged_in_the_state_that_it_was_chosen_for() -> None:
    """Two take the next call that nobody has; the second chooses again, and takes another."""

    async def play() -> None:
        journal = MemoryJournal()
        ada, bob = await shared(journal), await shared(journal)
        await ada.submit(opened(call("a"), call("b")))
        await bob.refresh()
        chosen: list[str] = []

        def free(kernel: Kernel) -> Iterable[Delivery]:
            owed = [it for it in kernel.pending_effects if isinstance(it, Execute)]
            chosen.append(owed[0].invocation_id)
            return [claim(owed[0].invocation_id)]

        await ada.submit_chosen(free)
        await bob.submit_chosen(free)

        assert chosen == ["a", "a", "b"]
        assert Counter(await types(journal))[FactType.TOOL_EXECUTION_STARTED] == 2

    run(play())


def test_a_living_owner_is_not_passed_over() -> None:
    """Whoever wants something of its run posts to it."""

    async def play() -> None:
        journal = MemoryJournal()
        writer = await shared(journal)
        await journal.own("r", owner="ada", now=LoopClock().now(), lease=60.0)
        with pytest.raises(JournalOwned, match="ada owns it"):
            await writer.submit(opened(call("a")))
        assert await types(journal) == []

    run(play())


@pytest.mark.parametrize("ended", ["dead", "over"])
def test_an_owner_that_is_gone_is_put_out(ended: str) -> None:
    """Its fencing token is old from then on; the run is nobody's."""

    async def play() -> None:
        journal = MemoryJournal()
        writer = await shared(journal)
        owner, lease = (dead_owner(), 60.0) if ended == "dead" else ("ada", -1.0)
        await journal.own("r", owner=owner, now=LoopClock().now(), lease=lease)

        (verdict,) = await writer.submit(opened(call("a")))

        entry = await journal.entry("r")
        assert (verdict.reason, entry.owner, entry.fence) == (None, None, 2)

    run(play())


def test_a_long_run_gets_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opens it next does not fold all of it."""
    monkeypatch.setattr(under_test, "SNAPSHOT_EVERY", 4)

    async def play() -> None:
        journal = MemoryJournal()
        writer = await shared(journal)
        await writer.submit(opened(call("a")))
        assert await journal.snapshot("r") is None
        await writer.submit(claim("a"), report("a"), Acknowledge(turn_id="t1"))
        snapshot = await journal.snapshot("r")
        assert snapshot == writer.kernel.snapshot()

    run(play())


def test_a_snapshot_that_cannot_be_kept_harms_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """The facts are kept, and so is said."""
    monkeypatch.setattr(under_test, "SNAPSHOT_EVERY", 1)
    monkeypatch.setattr(writing, "FACTS_A_CALL", 1)

    async def play() -> None:
        journal = FaultyJournal(MemoryJournal(), {("keep_snapshot", 1): Fault.FULL})
        (verdict,) = await (await shared(journal)).submit(opened(call("a")))
        assert (verdict.reason, journal.calls["keep_snapshot"]) == (None, 1)
        assert await types(journal) == [FactType.TURN_OPENED]

    run(play())


def test_tasks_of_one_process_submit_one_after_the_other() -> None:
    """Twenty at once: each is judged by what those before it brought, and none conflicts."""

    async def play() -> None:
        journal = FaultyJournal(MemoryJournal())
        writer = await shared(journal)
        names = [str(number) for number in range(20)]
        await writer.submit(opened(*map(call, names)))

        verdicts = await asyncio.gather(*(writer.submit(claim(name)) for name in names + names))

        reasons = Counter(verdict.reason for (verdict,) in verdicts)
        assert reasons == {None: 20, Reason.DUPLICATE: 20}
        assert journal.calls["append"] == 21

    run(play())


def test_one_that_is_cancelled_leaves_the_writer_whole() -> None:
    """Whether its facts were kept is not known to it: the next submit finds out."""

    async def play() -> None:
        journal = FaultyJournal(MemoryJournal(), {("append", 1): Fault.HELD})
        writer = await shared(journal)
        cut = asyncio.ensure_future(writer.submit(opened(call("a"))))
        await settled()
        cut.cancel()
        await asyncio.wait([cut])
        (again,) = await writer.submit(opened(call("a")))
        assert (cut.cancelled(), again.reason) == (True, Reason.TURN_OPEN)

    run(play())


def test_a_damaged_journal_is_told_and_leaves_the_writer_whole() -> None:
    """It knows what it knew; no write of it is kept on a journal that it cannot follow."""

    async def play() -> None:
        journal = MemoryJournal()
        writer = await shared(journal)
        await writer.submit(opened(call("a"), call("b")))
        elsewhere = Kernel(Run(run_id="r"))
        told = [
            fact
            for it in (opened(call("x")), claim("x"))
            for fact in elsewhere.receive(it, LoopClock().now()).facts
        ]
        await journal.append("r", fence=None, after=1, facts=told[1:], busy=True)

        for _ in range(2):
            with pytest.raises(CorruptJournal):
                await writer.submit(claim("a"))
        assert writer.kernel.sequence == 1

    run(play())


def test_calls_need_the_policies_of_their_tools() -> None:
    """And a tick needs none."""

    async def play() -> None:
        journal = MemoryJournal()
        await journal.declare(RUN)
        writer = await SharedRun.open(journal, "r", policies=None, clock=LoopClock())
        with pytest.raises(InvalidValue, match="give the tools' policies"):
            await writer.submit(opened(call("a")))
        (ticked,) = await writer.submit(Tick())
        assert ticked.reason is None

    run(play())


CALLS = 20
PROCESSES = 4


def claim_all(path: Path, worker: str) -> None:
    """A process that wants to execute each call, and reports those that it may."""

    async def play() -> None:
        async with await SqliteJournal.open(path, create=False) as journal:
            writer = await SharedRun.open(journal, "r", policies=POLICIES)
            for number in range(CALLS):
                (claimed,) = await writer.submit(claim(str(number), worker))
                if claimed.reason is None:
                    await writer.submit(report(str(number)))

    asyncio.run(play())


def test_processes_that_race_for_the_same_calls_execute_each_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four processes, twenty calls, one file: twenty claims, and one turn that is settled."""
    path = tmp_path / "journal.db"
    root = str(Path(__file__).resolve().parents[2])
    monkeypatch.setattr(sys, "path", [root, *sys.path])  # where they find this file

    async def begin() -> None:
        async with await SqliteJournal.open(path) as journal:
            writer = await shared(journal)
            await writer.submit(opened(*(call(str(number)) for number in range(CALLS))))

    async def ended() -> list[Fact]:
        async with await SqliteJournal.open(path) as journal:
            return [fact async for fact in journal.facts("r")]

    asyncio.run(begin())
    context = multiprocessing.get_context("spawn")
    racing = [
        context.Process(target=claim_all, args=(path, f"w{number}")) for number in range(PROCESSES)
    ]
    for process in racing:
        process.start()
    for process in racing:
        process.join(60)
        assert process.exitcode == 0
    facts = asyncio.run(ended())
    found = Counter(fact.type for fact in facts)
    assert found[FactType.TOOL_EXECUTION_STARTED] == CALLS
    assert found[FactType.TOOL_EXECUTION_SUCCEEDED] == CALLS
    assert found[FactType.TURN_SETTLED] == 1
    assert Kernel.recover(RUN, facts).sequence == len(facts)
