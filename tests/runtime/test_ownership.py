"""Whose runs a runtime takes: nobody's, its own, those of the dead – and only what it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from turnlock import Call, OpenTurn, Run
from turnlock.engine.kernel import Kernel
from turnlock.runtime.errors import ForeignRun, JournalError
from turnlock.runtime.journal.contract import Journal, RunRead
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.owners import is_dead, new_owner
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.settings import Settings
from turnlock.runtime.tools.tool import tool
from turnlock.runtime.tools.toolbox import Toolbox

from .faulty_journal import WrappedJournal
from .virtual import LoopClock, run, settled

RUN = Run(run_id="r")
FAR = 1e10
CALL = Call(invocation_id="a", tool_name="act", arguments={}, requires_approval=False)


def runtime_on(journal: Journal, told: list[str], **settings: bool) -> Runtime:
    """A process whose one tool says that it ran."""

    async def on_continue(_: object) -> None:
        told.append("continued")

    @tool
    async def act() -> None:
        told.append("ran")

    return Runtime(
        journal=journal,
        tools=Toolbox([act]),
        on_continue=on_continue,
        clock=LoopClock(),
        settings=Settings(**settings),
    )


async def left_by(owner: str, run: Run = RUN) -> MemoryJournal:
    """A journal with a call that is ready, owned for long by somebody."""
    journal = MemoryJournal()
    await journal.declare(run)
    fence = await journal.own("r", owner=owner, now=0.0, lease=FAR)
    opened = Kernel(run).receive(OpenTurn(turn_id="t1", calls=(CALL,)), 0.0)
    await journal.append("r", fence=fence, after=0, facts=opened.facts, busy=True)
    return journal


def dead_owner() -> str:
    """The name of a process that had our pid before us."""
    parts = new_owner().split(":")
    parts[5] = "1"
    return ":".join(parts)


def test_a_dead_process_keeps_nobody_waiting() -> None:
    """Its lease would be over in years, and its run goes on at once: the process is proved gone."""
    assert is_dead(dead_owner())
    assert not is_dead(new_owner())

    async def play() -> None:
        told: list[str] = []
        journal = await left_by(dead_owner())
        async with runtime_on(journal, told) as runtime:
            await settled()
            assert runtime.runs == ("r",)

        assert told == ["ran", "continued"]

    run(play())


def test_only_what_is_named_is_taken_where_that_is_wished() -> None:
    """A host with the tools of one run leaves the others to theirs."""

    async def play() -> None:
        told: list[str] = []
        owner = dead_owner()
        journal = await left_by(owner)
        async with runtime_on(journal, told, takes_over=False) as runtime:
            await settled()
            assert runtime.runs == ()

        assert told == []
        assert (await journal.entry("r")).owner == owner

    run(play())


@pytest.mark.parametrize("kind", ["own", "guard"])
def test_a_run_of_another_kind_is_left_to_its_runtime(kind: str) -> None:
    """K-61: it is neither taken over nor opened, and nothing that it owes is performed.

    The control is a run of our own kind, left in the same way.
    """

    async def play() -> None:
        told: list[str] = []
        theirs = Run(run_id="r", kind=kind)
        journal = await left_by(dead_owner(), theirs)
        async with runtime_on(journal, told) as runtime:
            await settled()
            if kind == "own":
                assert (runtime.runs, told) == (("r",), ["ran", "continued"])
                return
            assert await runtime.take_over() == ()
            with pytest.raises(ForeignRun, match="'r' is of kind 'guard': another runtime"):
                await runtime.open_run(theirs)
            with pytest.raises(ForeignRun, match="'r' is of kind 'guard': another runtime"):
                await runtime.open_run(Run(run_id="r"))  # it is not the configuration that is wrong
            with pytest.raises(ForeignRun):
                await runtime.open_run(Run(run_id="new", kind=kind))
            assert [entry.run.run_id for entry in await journal.runs()] == ["r"]

        assert told == []
        assert (await journal.entry("r")).fence == 1

    run(play())


class NotAtOnce(WrappedJournal):
    """Of many runs nothing can be read."""

    async def read_runs(self, run_ids: Sequence[str]) -> Mapping[str, RunRead]:
        raise JournalError(f"{run_ids}: the server is away")


class NeverRead(WrappedJournal):
    """Whoever reads many runs waits for ever; `asked` is set then."""

    def __init__(self, inner: Journal) -> None:
        super().__init__(inner)
        self.asked = asyncio.Event()

    async def read_runs(self, run_ids: Sequence[str]) -> Mapping[str, RunRead]:
        self.asked.set()
        await asyncio.sleep(FAR)
        raise AssertionError(run_ids)


def test_d_13_what_cannot_be_read_at_once_is_read_by_itself() -> None:
    """The run is performed all the same."""

    async def play() -> None:
        told: list[str] = []
        async with runtime_on(NotAtOnce(await left_by(dead_owner())), told) as runtime:
            await settled()
            assert runtime.runs == ("r",)
        assert told == ["ran", "continued"]

    run(play())


def test_d_13_nobody_owns_what_was_taken_and_not_read() -> None:
    """Whoever is cancelled meanwhile lets go of all that he has taken."""

    async def play() -> None:
        inner = MemoryJournal()
        journal = NeverRead(inner)
        async with runtime_on(journal, []) as runtime:
            await inner.declare(RUN)
            opened = Kernel(RUN).receive(OpenTurn(turn_id="t1", calls=(CALL,)), 0.0)
            await inner.append("r", fence=None, after=0, facts=opened.facts, busy=True)
            taking = asyncio.create_task(runtime.take_over())
            await journal.asked.wait()
            assert (await inner.entry("r")).owner is not None
            taking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await taking
            assert (await inner.entry("r")).owner is None

    run(play())
