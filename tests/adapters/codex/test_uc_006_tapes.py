"""UC-006, UC-010, UC-011 on Codex runs: what was recorded, through session, kernel and journal."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Final

import attrs
import pytest

from turnlock.adapters.codex.adapter import CodexAdapter
from turnlock.adapters.codex.messages import Message, Notified
from turnlock.adapters.codex.settings import KIND, CodexSettings
from turnlock.adapters.codex.transcripts import Said
from turnlock.adapters.correlation import Correlation
from turnlock.engine.kernel import Kernel
from turnlock.models.effects import Execute
from turnlock.models.errors import UnknownRun
from turnlock.models.fact import Fact
from turnlock.models.lifecycle_facts import LifecycleFact
from turnlock.models.run import Run
from turnlock.runtime.journal.ledger import START, Domain, LedgerEntry
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.journal.pruning import turn_there
from turnlock.server.bounds import SessionSettings
from turnlock.server.hub import Hub
from turnlock.server.pages import page_of
from turnlock.server.shown import Sent
from turnlock.views.live import count_in_doubt

from ...runtime.crash.depth import DEEP
from ...runtime.virtual import run
from ...server.peers import serving, spec
from .recordings import NAMES
from .tapes import People, Tape, tape

ENDS: Final = frozenset({"TOOL_DENIED", "TOOL_EXECUTION_SUCCEEDED", "TOOL_EXECUTION_FAILED"})
LAX: Final = CodexSettings(sandbox="danger-full-access", approval_policy="never")
"""Recorded threads were begun under many settings."""
UNEXPLAINED: Final = "nobody knows why"
FAULTY: Final = ("05_parallel_mixed", "raw_parallel_mixed", "15_patch_approval")
"""Those of which messages are lost, doubled and damaged here; all of them are elsewhere."""


@attrs.define
class OneTape:
    """Starts the process of a tape."""

    played: Tape

    async def start(
        self, command: Sequence[str], *, cwd: str | None, env: Mapping[str, str] | None
    ) -> Tape:
        """Start it."""
        return self.played


@attrs.define
class Came:
    """What a tape came to."""

    journal: MemoryJournal
    facts: list[Fact]
    tape: Tape

    def calls(self) -> dict[str, list[str]]:
        """The lifecycle of each call."""
        found: dict[str, list[str]] = defaultdict(list)
        for fact in self.facts:
            if isinstance(fact, LifecycleFact):
                found[f"{fact.turn_id} {fact.invocation_id}"].append(fact.type)
        return dict(found)

    def check(self) -> None:
        """What holds of every run, whatever its process said (K-31, S-26, S-36)."""
        kernel = Kernel.recover(Run(run_id="r", kind=KIND), self.facts)
        doubts = count_in_doubt(kernel)
        assert [one for one in kernel.pending_effects if isinstance(one, Execute)] == []
        assert kernel.turn is None or doubts
        open_ended = 0
        for name, life in self.calls().items():
            assert len(set(life)) == len(life), (name, life)
            open_ended += not ENDS & set(life)
            assert len(ENDS & set(life)) <= 1, (name, life)
            assert not {"TOOL_DENIED", "TOOL_EXECUTION_STARTED"} <= set(life), (name, life)
        assert open_ended == doubts
        answered = [repr(number) for number, _ in self.tape.decisions()]
        assert len(set(answered)) == len(answered)


async def play(played: Tape, journal: MemoryJournal | None = None) -> Came:
    """Play a tape on a server, until its process has ended; return what it kept."""
    journal = journal or MemoryJournal()
    adapter = CodexAdapter(LAX, start=OneTape(played).start)
    bare = SessionSettings(preload=False)
    async with serving(journal, others=[adapter], settings=bare) as it:
        await it.sessions.create(spec(kind=KIND))
        await People(it.sessions, it.sessions.life.runtimes[KIND], played).play()
        async with asyncio.timeout(600):
            while it.sessions.is_active("r"):  # noqa: ASYNC110 - its process ends by itself
                await asyncio.sleep(0.1)
    return Came(journal, [fact async for fact in journal.facts("r")], played)


@pytest.mark.parametrize("name", NAMES)
def test_uc_006_and_011_what_was_recorded_comes_to_a_whole_run(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """No refusal that nobody can explain, each call with one end, each request answered once.

    S-63: each entry is correlated, and a page says the same as the whole ledger.
    """
    caplog.set_level(logging.INFO)

    async def play_and_look() -> None:
        came = await play(tape(name))
        came.check()
        await check_correlations(came)

    run(play_and_look())
    assert [it.message for it in caplog.records if UNEXPLAINED in it.message] == []
    assert [it.message for it in caplog.records if it.levelno >= logging.ERROR] == []


async def check_correlations(came: Came) -> None:
    """Each entry of another runtime says what it is about there: thread, turn, and its item."""
    page = await came.journal.ledger("r", limit=100_000)
    threads: set[str] = set()
    for entry in page.entries:
        if entry.correlation is None:
            assert entry.domain in {Domain.SESSION, Domain.ERROR, Domain.MESSAGE}, entry
            continue
        about = Correlation.of(json.loads(entry.correlation))
        threads.add(str(about.thread_id))
        if not entry.is_note:
            fact = json.loads(entry.content)
            assert about.turn_id == turn_there(fact["turn_id"])
            assert about.item_id is not None or "invocation_id" not in fact
    assert len(threads) == 1
    assert [it async for it in _paged(came.journal)] == [*page.entries]


async def _paged(journal: MemoryJournal) -> AsyncIterator[LedgerEntry]:
    after = START
    while True:
        page = await journal.ledger("r", limit=7, after=after)
        for entry in page.entries:
            yield entry
        if not page.entries:
            return
        after = page.entries[-1].cursor


@pytest.mark.parametrize("name", [*FAULTY, "07_interrupt_pending"])
def test_uc_011_what_is_shown_live_is_what_is_replayed_and_paged(name: str) -> None:
    """The same bytes: while it happens, replayed afterwards by another server, and on a page."""

    async def play_and_follow() -> None:
        journal = MemoryJournal()
        live: list[bytes] = []
        async with Hub(journal=journal) as hub:
            following = asyncio.create_task(follow(hub, live))
            await play(tape(name), journal)
            page = await page_of(journal, "r", after=START, limit=100_000)
            lines = [it.envelope for it in page.shown if isinstance(it, Sent)]
            assert len(lines) > len([fact async for fact in journal.facts("r")])
            await _until(lambda: len(live) >= len(lines))
            following.cancel()
        async with Hub(journal=journal) as hub:
            replayed: list[bytes] = []
            again = asyncio.create_task(follow(hub, replayed))
            await _until(lambda: len(replayed) >= len(lines))
            again.cancel()
        assert live == replayed == lines

    run(play_and_follow())


async def follow(hub: Hub, shown: list[bytes]) -> None:
    """Collect what a subscriber of the run is shown, from its beginning."""
    while True:
        subscription = hub.subscribe("r")
        try:
            async for batch in subscription:
                shown += [it.envelope for it in batch if isinstance(it, Sent)]
        except UnknownRun:  # not yet
            await asyncio.sleep(0.01)
        finally:
            subscription.close()


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - a stream, which tells nobody
            await asyncio.sleep(0.25)


def damaged(message: Message | None) -> Message | None:
    """Return a message of the same method that makes no sense."""
    if isinstance(message, Notified):
        return Notified(message.method, {"threadId": message.params.get("threadId"), "item": 7})
    return message


@pytest.mark.parametrize("name", FAULTY)
@pytest.mark.parametrize("fault", ["lost", "doubled", "damaged"])
def test_uc_006_a_message_lost_doubled_or_damaged_leaves_the_run_whole(
    name: str, fault: str
) -> None:
    """S-33a, S-13: through session and journal as in the normaliser alone."""
    steps = tape(name).steps
    places = [at for at, it in enumerate(steps) if isinstance(it, Said)]
    notified = [at for at in places if isinstance(_message(steps[at]), Notified)]
    for chosen in notified[:: max(1, len(notified) // (3 if DEEP else 1))]:

        def change(place: int, said: Said, chosen: int = chosen) -> list[Message | None]:
            if place != chosen:
                return [said.message]
            return {
                "lost": [],
                "doubled": [said.message, said.message],
                "damaged": [damaged(said.message)],
            }[fault]

        run(play(tape(name, change=change))).check()


def _message(step: object) -> Message | None:
    return step.message if isinstance(step, Said) else None
