"""What a member writes, and in which order; and who writes nothing at all (W-1, W-6, W-7, W-31)."""

from __future__ import annotations

import ast
import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import turnlock
from turnlock.models.values import Json
from turnlock.runtime import Toolbox, tool
from turnlock.runtime.journal.contract import Appended, Entered, Journal
from turnlock.runtime.journal.ledger import Domain, Note
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.world import Host

from ..runtime.faulty_journal import WrappedJournal
from ..runtime.virtual import run
from .playing import calls, play, says

ROOT: Final = Path(turnlock.__file__).parent


class Watched(WrappedJournal):
    """A journal that remembers what was written, in the order in which it was kept."""

    def __init__(self, inner: Journal) -> None:
        super().__init__(inner)
        self.written: list[str] = []

    async def note(self, run_id: str, *, fence: int | None, notes: Sequence[Note]) -> Appended:
        done = await super().note(run_id, fence=fence, notes=notes)
        self.written += [f"{it.kind} {it.id}" for it in notes]
        return done

    async def append_entry(self, log: str, entry_id: str, body: Json, *, at: float) -> Entered:
        entered = await super().append_entry(log, entry_id, body, at=at)
        self.written.append(f"entry {entry_id}")
        return entered


def test_w_32_an_answer_stands_in_the_log_before_anything_that_follows_from_it() -> None:
    """W-6: heard → answer kept → published → next heard; also of what waited all the while."""

    async def it() -> None:
        played = await play({"alice": says("Yes.", "", "", "", "No.", slow=1.0)})
        journal = Watched(played.journal)
        async with played.host(journal=journal) as host:
            for number in range(3):
                await played.chat.say("human", "@alice go", message_id=f"m{number}")
            await host.idle("plan")
        assert [it for it in journal.written if "title" not in it] == [
            "user said/1",
            "assistant said/2",
            "entry demo/plan/alice/said/2",
            "user said/3",
            "assistant said/4",
            "assistant said/5",
            "assistant said/6",
            "entry demo/plan/alice/notice/6",
            "user said/7",
            "assistant said/8",
            "entry demo/plan/alice/said/8",
        ]

    run(it())


def test_w_31_two_processes_cannot_hear_different_things_at_one_place() -> None:
    """A note never changes; an older fencing token writes none."""

    async def it() -> None:
        played = await play({"alice": says("Yes.")})
        async with played.host() as host:
            await played.chat.say("human", "@alice go", message_id="m1")
            await host.idle("plan")
        journal, run_id = played.journal, "demo/plan/alice"
        old = await journal.own(run_id, owner="one", now=2e9, lease=1.0)
        new = await journal.own(run_id, owner="other", now=3e9, lease=1.0)
        body = {"id": "said/1", "text": "human: something else"}
        note = Note(domain=Domain.MESSAGE, kind="user", body=body, at=0.0, id="said/1")
        assert await journal.note(run_id, fence=new, notes=[note]) is Appended.CONFLICT
        assert await journal.note(run_id, fence=old, notes=[note]) is Appended.FENCED

    run(it())


def test_w_44_all_calls_of_an_answer_are_treated_at_the_same_time() -> None:
    """Each waits for the other: they end only if both run."""

    async def it() -> None:
        here = [asyncio.Event(), asyncio.Event()]

        @tool
        async def left() -> str:
            here[0].set()
            await here[1].wait()
            return "left"

        @tool
        async def right() -> str:
            here[1].set()
            await here[0].wait()
            return "right"

        model = says(calls("left", "right", "left"), "Both.")
        played = await play({"alice": (model, {"tools": ("left", "right")})})
        async with played.host(toolboxes=Toolbox([left, right])) as host:
            await played.chat.say("human", "@alice go", message_id="m1")
            await host.idle("plan")
        assert model.results == ["left", "right", "left"]

    run(it())


def test_w_1_another_process_says_the_same_of_all_that_happened() -> None:
    """Logs, notes and facts are all there is: a host that has just begun stands where they say."""

    async def it() -> None:
        played = await play({"alice": says("@bob go"), "bob": says("@alice go")})
        async with played.host() as host:
            await played.chat.say("human", "@alice go", message_id="m1")
            await host.idle("plan")
            before = await host.standing("plan")
        assert await Host(played.journal, "demo").standing("plan") == before
        async with played.host() as host:
            await host.idle("plan")
            assert await host.standing("plan") == before
        kept = vars(MemoryJournal())
        tables = [it for it in kept if re.search("world|chat|member|cursor", it)]
        assert tables == [], "no table of state"

    run(it())


def test_w_7_a_provider_only_talks_to_its_endpoint() -> None:
    """It imports nothing that keeps, runs or publishes."""
    forbidden = re.compile(r"journal|runtime\.runtime|ledger|world|executions|publishing")
    for file in sorted((ROOT / "agent" / "providers").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [it.name for it in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or "", *(it.name for it in node.names)]
            assert not [it for it in names if forbidden.search(it)], file.name
