"""The contract of journals, part of hosts: what runtimes on it may rely on (distributed.md 15).

A journal that breaks one of these keeps every promise that one caller sees, and harms the second.
"""

# Looks inside: to let a lease be over, and to stop the heart of a process.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from math import inf
from pathlib import Path
from random import Random

import attrs

from turnlock import Call, Run
from turnlock.models.fact import Fact
from turnlock.models.facts import TurnSealed
from turnlock.runtime.dispatcher import Continuation
from turnlock.runtime.errors import JournalError, JournalOwned
from turnlock.runtime.journal.contract import Appended, Journal
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.scheduling import Clock, SteadyClock
from turnlock.runtime.settings import Settings
from turnlock.runtime.tools.tool import tool
from turnlock.runtime.tools.toolbox import Toolbox

from .stage import LEASE, NOW, RUN, JournalStage, everything, facts, kept, owned

BRIEF = Settings(retry_first=0.02, retry_longest=0.02, takes_over=False)
MOMENT = 0.05
"""Seconds in which a late write, or a call too many, would surely come."""


class Ahead:
    """A clock that is a minute ahead."""

    def now(self) -> float:
        return SteadyClock().now() + 60.0


@attrs.define
class Hosts:
    """Processes on one journal, and an independent ledger of what they did."""

    journal: Journal
    paid: int = 0
    told: int = 0

    def process(self, *, takes: Callable[[], bool], clock: Clock | None = None) -> Runtime:
        """A process that pays, and whose host takes a continuation if it `takes` one."""

        async def on_continue(_: Continuation) -> None:
            self.told += 1
            if not takes():
                raise ConnectionError("the model does not answer")

        @tool
        async def pay() -> str:
            self.paid += 1
            return "paid"

        return Runtime(
            journal=self.journal,
            tools=Toolbox([pay]),
            on_continue=on_continue,
            settings=BRIEF,
            clock=clock,
        )

    async def until(self, happened: Callable[[], bool]) -> None:
        """Wait until something has happened here."""
        async with asyncio.timeout(60):
            while not happened():  # noqa: ASYNC110 - whatever it is
                await asyncio.sleep(0.01)


async def pays(runtime: Runtime, run_id: str = RUN.run_id) -> None:
    """Have it paid in a turn."""
    await runtime.open_run(Run(run_id=run_id))
    call = Call(invocation_id="a", tool_name="pay", arguments={}, requires_approval=False)
    await runtime.open_turn(run_id, [call], turn_id="t1")


@attrs.define
class Believer:
    """Who is wrong about the time and about who is dead, and writes under the token it got."""

    name: str
    journal: Journal
    random: Random
    written: dict[int, tuple[int, Fact]]
    """By sequence, of all hosts: under which token, and what, as the journal has acknowledged."""

    async def host(self, times: int = 8) -> None:
        """Take the run from whoever has it, as often, and write under what it was given."""
        for _ in range(times):
            entry = await self.journal.entry(RUN.run_id)
            with suppress(JournalOwned):
                fence = await self.journal.own(
                    RUN.run_id,
                    owner=self.name,
                    now=self._time(),
                    lease=self.random.choice([0.0, 1e9]),
                    gone=self.random.choice([None, entry.owner, entry.owner]),
                )
                await self._write(fence)

    async def _write(self, fence: int) -> None:
        """Write as often as it likes: that it is fenced is no reason for it to stop."""
        for _ in range(self.random.randint(2, 6)):
            after = (await self.journal.entry(RUN.run_id)).sequence
            told = TurnSealed(
                run_id=RUN.run_id,
                sequence=after + 1,
                commit=after + 1,
                at=NOW,
                turn_id=f"{self.name} {fence}",
            )
            answer = await self.journal.append(
                RUN.run_id, fence=fence, after=after, facts=[told], busy=True
            )
            if answer is Appended.OK:
                assert after + 1 not in self.written
                self.written[after + 1] = fence, told
            await self.journal.renew(owner=self.name, now=self._time(), lease=1.0)
            await asyncio.sleep(0)

    def _time(self) -> float:
        return self.random.uniform(-1e9, 1e9)


class Performed(JournalStage):
    """Runtimes, and what they may rely on."""

    def test_d_18_what_was_read_after_an_unknown_outcome_stays_so(self, tmp_path: Path) -> None:
        """Whether it failed without a word, or was cancelled: nothing arrives afterwards."""

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            await kept(journal, facts(1), fence)
            for cancelled in (False, True):
                after = len(await everything(journal))
                asked = asyncio.create_task(
                    journal.append(
                        RUN.run_id, fence=fence, after=after, facts=facts(2, after=after), busy=True
                    )
                )
                await asyncio.sleep(0)
                if cancelled:
                    asked.cancel()
                with suppress(JournalError, asyncio.CancelledError):
                    await asked
                read, entry = await everything(journal), await journal.entry(RUN.run_id)
                await asyncio.sleep(MOMENT)
                assert await everything(journal) == read
                assert await journal.entry(RUN.run_id) == entry
                await kept(journal, facts(1, after=len(read)), fence)

        self.play(tmp_path, story)

    def test_d_44_a_lease_counts_by_the_journals_time(self, tmp_path: Path) -> None:
        """Where it has a clock of its own: a host that is a minute ahead takes nothing by that.

        D-11: so `time` is one for all hosts.
        """

        async def story(journal: Journal) -> None:
            await journal.declare(RUN)
            await kept(journal, facts(1), None)
            await journal.own(RUN.run_id, owner="another-host", now=journal.time(), lease=LEASE)
            hosts = Hosts(journal)
            hasty = Ahead() if journal.clock is not None else None
            async with hosts.process(takes=lambda: True, clock=hasty) as runtime:
                assert await runtime.take_over() == ()
                assert (await journal.entry(RUN.run_id)).owner == "another-host"

        self.play(tmp_path, story)

    def test_d_45_the_fence_alone_keeps_it_whole(self, tmp_path: Path) -> None:
        """Whatever hosts believe of the time and of each other's death, one at a time writes.

        And what was acknowledged to anybody is what is kept.
        """

        async def story(journal: Journal) -> None:
            await journal.declare(RUN)
            written: dict[int, tuple[int, Fact]] = {}
            hosts = (Believer(name, journal, Random(name), written) for name in "abcd")
            await asyncio.gather(*(it.host() for it in hosts))
            assert await everything(journal) == [fact for _, (_, fact) in sorted(written.items())]
            tokens = [token for _, (token, _) in sorted(written.items())]
            assert tokens == sorted(tokens)
            assert len(set(tokens)) > 4  # it went from hand to hand

        self.play(tmp_path, story)

    def test_d_17_a_shorter_journal_is_not_folded(self, tmp_path: Path) -> None:
        """What was acknowledged is there when its owner goes on, and nothing is paid again."""

        async def story(journal: Journal) -> None:
            hosts = Hosts(journal)
            async with hosts.process(takes=lambda: True) as runtime:
                await pays(runtime)
                await hosts.until(lambda: hosts.told == 1)
                await pays(runtime, "run-2")
                await hosts.until(lambda: hosts.told == 2)
                for run_id in (RUN.run_id, "run-2"):
                    await runtime.open_turn(run_id, [], turn_id="t2", sealed=False)
                assert set(runtime.runs) == {RUN.run_id, "run-2"}
                assert (hosts.paid, hosts.told) == (2, 2)

        self.play(tmp_path, story)

    def test_d_19_a_callback_is_not_called_by_who_was_taken_over(self, tmp_path: Path) -> None:
        """It raised once and would be called again: but the run is another's by then."""

        async def story(journal: Journal) -> None:
            hosts = Hosts(journal)
            zombie = hosts.process(takes=lambda: False)
            async with zombie:
                await pays(zombie)
                await hosts.until(lambda: hosts.told >= 1)
                await zombie._watchers.cancel()
                actor = zombie._actors[RUN.run_id]
                await journal.own(
                    RUN.run_id, owner="heir", now=journal.time(), lease=LEASE, gone=zombie.owner
                )
                actor.owned_until = -inf  # it stood still for so long
                await asyncio.sleep(0)
                before = hosts.told
                await asyncio.sleep(MOMENT)
                assert hosts.told - before <= 1  # one that had begun
                before = hosts.told
                await asyncio.sleep(4 * MOMENT)
                assert hosts.told == before
                assert (await journal.entry(RUN.run_id)).owner == "heir"

        self.play(tmp_path, story)
