"""Two hosts of one world: each member is performed by one of them, and goes on when it dies (W-36).

The first tests pass their time on a virtual clock; the last one has real processes, and kills one.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnlock import InvalidValue
from turnlock.runtime import Runtime
from turnlock.runtime.journal.contract import Appended
from turnlock.runtime.journal.ledger import Note
from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.world import AgentSpec, Host, Stands, World

from ..runtime.virtual import LoopClock, run
from .playing import BRIEF, Process, ids, killed, play, said, says
from .test_waiting import until_it_waits

ROOT: Final = Path(__file__).parents[2]
PATIENCE: Final = 60.0
"""Seconds in which processes do what they must."""


@settings(max_examples=max(1, settings().max_examples // 5))
@given(
    slow=st.lists(st.sampled_from([0.0, 0.3, 2.0]), min_size=2, max_size=2),
    pauses=st.lists(st.sampled_from([0.0, 0.1, 1.0, 7.0]), min_size=1, max_size=4),
)
def test_w_36_two_hosts_answer_each_message_once(slow: list[float], pauses: list[float]) -> None:
    """Whoever owns a member performs it; the other leaves it, and both are idle at the end."""

    async def it() -> None:
        alice, bob = says("Yes.", slow=slow[0]), says("No.", slow=slow[1])
        played = await play({"alice": alice, "bob": bob})
        async with played.host() as one, played.host() as other:
            for number, pause in enumerate(pauses):
                await played.chat.say("human", f"word {number}", message_id=f"m{number}")
                await asyncio.sleep(pause)
            await one.idle("plan")
            await other.idle("plan")
        lines = Counter(await played.said())
        assert lines["alice: Yes."] == lines["bob: No."] == len(pauses)
        assert alice.told == bob.told == [f"human: word {it}" for it in range(len(pauses))]
        assert alice.most_at_once == bob.most_at_once == 1

    run(it())


def test_w_36_a_host_that_dies_is_followed_once_its_lease_is_over() -> None:
    """What its model was saying is asked again; the prompt is not heard again."""

    async def it() -> None:
        model = says("Yes.", slow=1.0)
        played = await play({"alice": model})
        process, before = Process(played.journal), asyncio.all_tasks()
        first = played.host(journal=process)
        await first.__aenter__()
        await played.chat.say("human", "@alice go", message_id="m1")
        await until_it_waits(first, stands=Stands.SPEAKING)
        tasks = asyncio.all_tasks() - before
        async with played.host() as second:
            await asyncio.sleep(0.5)
            assert len(model.asked) == 1, "its owner lives"
            await killed(process, tasks)
            started = asyncio.get_running_loop().time()
            await second.idle("plan")
            assert asyncio.get_running_loop().time() - started < 4 * BRIEF.ownership
        assert model.told == ["human: @alice go"] * 2
        assert await played.said() == ["human: @alice go", "alice: Yes."]
        assert await ids(played.journal, "demo/plan") == ["say/human/m1", "demo/plan/alice/said/2"]

    run(it())


class StandingStill(Process):
    """A process that stands still just after an answer was kept, until another has its run."""

    still = False

    async def renew(self, *, owner: str, now: float, lease: float) -> frozenset[str]:
        if self.still:
            await asyncio.sleep(10.0)
        return await super().renew(owner=owner, now=now, lease=lease)

    async def note(self, run_id: str, *, fence: int | None, notes: Sequence[Note]) -> Appended:
        done = await super().note(run_id, fence=fence, notes=notes)
        if notes[0].kind == "assistant":
            self.still = True
            await asyncio.sleep(5.0)
            now = LoopClock().now()
            await self.inner.own(run_id, owner="another", now=now, lease=100.0)
        return done


def test_w_36_who_has_lost_a_run_publishes_nothing_of_it() -> None:
    """A log fences nobody, so ownership is made sure of before each append."""

    async def it() -> None:
        played = await play({"alice": says("Yes.")})
        process, before = StandingStill(played.journal), asyncio.all_tasks()
        host = played.host(journal=process)
        await host.__aenter__()
        await played.chat.say("human", "@alice go", message_id="m1")
        await asyncio.sleep(60.0)
        assert await played.said() == ["human: @alice go"]
        await killed(process, asyncio.all_tasks() - before)
        await asyncio.sleep(100.0)
        async with played.host() as second:
            await second.idle("plan")
        assert await played.said() == ["human: @alice go", "alice: Yes."]

    run(it())


@contextmanager
def host(folder: Path, seconds: float) -> Generator[subprocess.Popen[str]]:
    """Begin a host, and kill it at the end if it has not ended."""
    command = [sys.executable, "-m", "tests.world.hosting_child", str(folder), str(seconds)]
    with (
        (folder / "stderr").open("a") as errors,
        subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "performing\n", (folder / "stderr").read_text()
            yield process
        finally:
            process.kill()


def test_w_36_two_processes_perform_one_world_and_one_is_killed(tmp_path: Path) -> None:
    """Each word is answered once by each member, in its order, whoever is killed when."""

    async def it() -> None:
        async with await SqliteJournal.open(tmp_path / "world.db") as journal:
            world = World(journal, "demo")
            await world.make()
            for agent in ("alice", "bob"):
                await world.put_agent(agent, AgentSpec(model=f"test:{agent}"))
            chat = await world.open_chat("plan")
            with ExitStack() as stack:
                first = stack.enter_context(host(tmp_path, 0.05))
                stack.enter_context(host(tmp_path, 0.05))
                for number in range(12):
                    await chat.say("human", f"word {number}", message_id=f"m{number}")
                    if number == 6:
                        first.kill()
                    await asyncio.sleep(0.05)
                give_up = time.monotonic() + PATIENCE
                while len(lines := await said(journal, chat.log)) < 36:
                    assert time.monotonic() < give_up, lines
                    await asyncio.sleep(0.05)
                await asyncio.sleep(0.2)  # nothing more comes
            lines = await said(journal, chat.log)
            for agent in ("alice", "bob"):
                heard = [it for it in lines if it.startswith(agent)]
                assert heard == [f"{agent}: heard: human: word {it}" for it in range(12)]

    asyncio.run(it())


def test_a_host_on_a_runtime_of_somebody_else_leaves_it_running() -> None:
    """Its members are let go with the host."""

    async def it() -> None:
        played = await play({"alice": says("Yes.")})
        brief = attrs.evolve(BRIEF, takes_over=False)
        async with Runtime(
            journal=played.journal, kind="world", settings=brief, clock=LoopClock()
        ) as runtime:
            for number in range(2):
                async with played.host(runtime=runtime) as host:
                    assert host.runtime is runtime
                    await played.chat.say("human", "go", message_id=f"m{number}")
                    await host.idle("plan")
                assert runtime.runs == ()
        assert (await played.said()).count("alice: Yes.") == 2
        with pytest.raises(InvalidValue, match="settings"):
            Host(played.journal, "demo", runtime=runtime, settings=BRIEF)

    run(it())
