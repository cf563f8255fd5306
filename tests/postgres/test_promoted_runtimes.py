"""What becomes of runs that are performed while an asynchronous standby is promoted (D-61, D-62).

Two real servers, a runtime, and an independent ledger of what its tools did.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

import attrs
import pytest

from turnlock import Call, FactType, Run
from turnlock.models.errors import TurnlockError
from turnlock.runtime.dispatcher import Continuation
from turnlock.runtime.errors import JournalError, JournalRewound
from turnlock.runtime.journal.postgres.journal import PostgresJournal
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.settings import Settings
from turnlock.runtime.tools.tool import tool
from turnlock.runtime.tools.toolbox import Toolbox

from ..runtime.test_runtime import crash
from .cluster import Cluster
from .stories import opened, sooner_or_later
from .test_standbys import fail_over, lag, pair

RUN = Run(run_id="r")
BRIEF = Settings(retry_first=0.02, retry_longest=0.1)
Story: TypeAlias = Callable[[Cluster, Cluster, str], Coroutine[Any, Any, None]]


@attrs.define
class Host:
    """A process on a journal, and what outlives it: whom it paid, and what its model was told."""

    paid: list[str] = attrs.field(factory=list[str])
    told: list[str] = attrs.field(factory=list[str])

    def process(self, journal: PostgresJournal) -> Runtime:
        """A tool that is run at once, and one that a person is asked about first."""

        async def on_continue(continuation: Continuation) -> None:
            self.told.append(continuation.turn_id)

        @tool
        async def pay(to: str) -> str:
            self.paid.append(to)
            return "paid"

        return Runtime(
            journal=journal, tools=Toolbox([pay]), on_continue=on_continue, settings=BRIEF
        )


def payment(to: str, *, asks: bool = False) -> Call:
    return Call(invocation_id=to, tool_name="pay", arguments={"to": to}, requires_approval=asks)


async def facts_of(journal: PostgresJournal) -> list[Any]:
    return [fact async for fact in journal.facts(RUN.run_id)]


async def paid_behind_the_standby(
    runtime: Runtime, host: Host, primary: Cluster, standby: Cluster
) -> None:
    """Have Ada's payment wait for a person, which the standby has; have it approved and paid."""
    await runtime.open_run(RUN)
    await runtime.open_turn("r", [payment("Ada", asks=True)], turn_id="t1")
    await lag(primary, standby)
    await runtime.approve("r", turn_id="t1", invocation_id="Ada")

    async def told() -> bool:
        return host.told == ["t1"]

    await sooner_or_later(told)
    assert host.paid == ["Ada"]


def play(story: Story) -> None:
    with pair() as (primary, standby, url):
        asyncio.run(story(primary, standby, url))


def test_d_62_a_living_owner_keeps_its_tail_anew_on_the_new_primary() -> None:
    """What was paid is in the journal again, as it was; nobody is paid twice, and it goes on."""
    host = Host()

    async def story(primary: Cluster, standby: Cluster, url: str) -> None:
        async with opened(url, listen="off") as journal, host.process(journal) as runtime:
            await paid_behind_the_standby(runtime, host, primary, standby)
            before = await facts_of(journal)
            await asyncio.to_thread(fail_over, primary, standby)
            refused: list[TurnlockError] = []

            async def goes_on() -> bool:
                try:
                    await runtime.open_turn("r", [payment("Bob")], turn_id="t2")
                except JournalError as error:
                    refused.append(error)
                return "t2" in host.told

            await sooner_or_later(goes_on)
            assert not [it for it in refused if isinstance(it, JournalRewound)]
            facts = await facts_of(journal)
            assert facts[: len(before)] == before
            assert len(facts) > len(before)
            assert (await journal.entry("r")).rewound is None
            assert await journal.check() == ()

    play(story)
    assert (host.paid, host.told) == (["Ada", "Bob"], ["t1", "t2"])


def test_d_62_an_owner_that_let_its_end_go_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """It cannot keep anew what it does not hold: `JournalRewound`, and nobody is paid again."""
    monkeypatch.setattr(PostgresJournal, "rewinds", False)
    host = Host()

    async def story(primary: Cluster, standby: Cluster, url: str) -> None:
        async with opened(url, listen="off") as journal, host.process(journal) as runtime:
            await paid_behind_the_standby(runtime, host, primary, standby)
            await asyncio.to_thread(fail_over, primary, standby)

            async def is_said() -> bool:
                try:
                    await runtime.open_turn("r", [payment("Bob")], turn_id="t2")
                except JournalRewound:
                    return True
                except JournalError:
                    return False
                raise AssertionError("it was kept behind a tail that is lost")

            await sooner_or_later(is_said)
            assert runtime.runs == ()
            assert (await journal.entry("r")).rewound is not None
        async with opened(url, listen="off") as journal, host.process(journal) as runtime:
            with pytest.raises(JournalRewound):  # nor does another host
                await runtime.open_run(RUN)

    play(story)
    assert (host.paid, host.told) == (["Ada"], ["t1"])


def test_d_61_where_its_owner_is_lost_too_the_journal_knows_of_no_payment(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """No fence can know: a person is asked again, and who approves it has Ada paid twice.

    No run bears a mark: an operator sees the warning, and a run with something under way. Held as
    what docs/postgres.md says is lost, and not as what is good.
    """
    caplog.set_level(logging.WARNING)
    host = Host()

    async def story(primary: Cluster, standby: Cluster, url: str) -> None:
        async with opened(url, listen="off") as journal, host.process(journal) as runtime:
            await paid_behind_the_standby(runtime, host, primary, standby)
            await crash(runtime)
        await asyncio.to_thread(fail_over, primary, standby)
        async with opened(url, listen="off") as journal:
            entry = await journal.entry("r")
            assert (entry.rewound, entry.busy, entry.waiting) == (None, True, 1)
            assert await journal.release_all(owner=entry.owner or "") == {"r"}  # a pod is deleted
            async with host.process(journal) as runtime:
                await runtime.open_run(RUN)
                types = [it.type for it in await facts_of(journal)]
                assert FactType.TOOL_EXECUTION_STARTED not in types
                await runtime.approve("r", turn_id="t1", invocation_id="Ada")

                async def again() -> bool:
                    return host.told == ["t1", "t1"]

                await sooner_or_later(again)

    play(story)
    assert "another one has taken over" in caplog.text
    assert host.paid == ["Ada", "Ada"]
