"""Section 14 of the server's rules, row by row: what stands after a crash, and what the next start
makes of it. Each step is cut before or after it was kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, TypeAlias

import attrs
import pytest

from turnlock.adapters.contract import CommandRefused, SessionSpec, Sink
from turnlock.adapters.correlation import Correlation
from turnlock.adapters.rest import INTERRUPTED, NEVER
from turnlock.models.deliveries import Decide
from turnlock.models.effects import Execute
from turnlock.models.errors import TurnlockError
from turnlock.models.fact import Fact
from turnlock.models.facts import ToolExecutionFailed, ToolExecutionStarted
from turnlock.models.run import Run
from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.ledger import START, Domain, Note
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.writer import fold_run
from turnlock.server.hub import Hub
from turnlock.server.restoring import UNANSWERED
from turnlock.server.shown import Sent
from turnlock.views.live import calls_of

from ..runtime.faulty_journal import WrappedJournal
from ..runtime.virtual import run
from .peers import Dead, MortalJournal, Served, messages, serve, serving, spec, steps
from .scripted import KIND, ScriptedAdapter, ScriptedSession


class DiesAt(MortalJournal):
    """A journal whose process is killed by the write of a fact or a note of this name."""

    def __init__(self, inner: Journal, name: str, *, kept: bool) -> None:
        super().__init__(inner, writes=1_000_000, kept=kept)
        self.name = name

    def _look(self, facts: Any, notes: Any) -> None:
        if self.name in [*(str(it.type) for it in facts), *(it.kind for it in notes)]:
            self.left = 1

    async def read(self, run_id: str, **more: Any) -> Any:
        """Read nothing once it is dead: whoever was killed learns nothing more."""
        if self.died.is_set():
            raise Dead("killed before")
        return await super().read(run_id, **more)

    async def append(self, run_id: str, **more: Any) -> Any:
        self._look(more["facts"], more.get("notes", ()))
        return await super().append(run_id, **more)

    async def note(self, run_id: str, **more: Any) -> Any:
        self._look((), more["notes"])
        return await super().note(run_id, **more)


@attrs.define
class Crashed:
    """What is left of a server that was killed, and who comes after it."""

    journal: MemoryJournal
    scripted: ScriptedAdapter
    before: list[Fact]

    @asynccontextmanager
    async def restored(self) -> AsyncGenerator[Served]:
        """Begin another server, and the run's session; hold what is so after each crash."""
        async with serving(self.journal, others=[self.scripted]) as it:
            assert it.sessions.state_of("r") == "inactive"
            await it.sessions.restore("r")
            kernel = await self.kernel()
            assert not [one for one in kernel.pending_effects if isinstance(one, Execute)]
            assert it.pending() == ()
            assert (await self.facts())[: len(self.before)] == self.before
            yield it

    async def kernel(self) -> Any:
        return await fold_run(Run(run_id="r", kind=KIND), self.journal)

    async def facts(self) -> list[Fact]:
        return [fact async for fact in self.journal.facts("r")]

    async def types(self) -> list[str]:
        return [str(fact.type) for fact in await self.facts()]

    async def failed(self) -> dict[str, str]:
        found = [it for it in await self.facts() if isinstance(it, ToolExecutionFailed)]
        return {it.invocation_id: it.error for it in found}

    async def doubts(self) -> list[str]:
        return [it.invocation_id for it in calls_of(await self.kernel()) if it.in_doubt]


Story: TypeAlias = Callable[[Served, ScriptedSession], Any]


async def crashed(story: Story, name: str, *, kept: bool) -> Crashed:
    """Play a story until the write of `name`, which is kept or is not."""
    journal, scripted = MemoryJournal(), ScriptedAdapter()
    mortal = DiesAt(journal, name, kept=kept)
    killed = await serve(mortal, others=[scripted])
    with suppress(TurnlockError):
        await killed.sessions.create(spec(kind=KIND), prompt="go", message_id="m")
        await killed.until(lambda: bool(scripted.told("took")) or killed.dead)
        await story(killed, scripted.sessions["r"])
        async with asyncio.timeout(100):
            await mortal.died.wait()
    assert mortal.died.is_set()
    before = [fact async for fact in journal.facts("r")]
    await killed.kill()
    return Crashed(journal, scripted, before)


async def nothing(it: Served, session: ScriptedSession) -> None:
    """Have a turn that goes on, and that is all."""


async def agreed(it: Served, session: ScriptedSession) -> None:
    """A command is asked for, agreed to, runs, and ends."""
    await session.asks_for("c1", rm=1)
    await it.approve()
    await it.until(lambda: bool(session.answered) or it.dead)
    await session.ends("c1")
    await session.completes()


async def refused(it: Served, session: ScriptedSession) -> None:
    """A command is asked for, and denied."""
    await session.asks_for("c1", rm=1)
    (call,) = it.pending()
    runtime = it.sessions.runtime_of("r")
    assert runtime is not None
    await runtime.deny("r", turn_id=call.turn_id, invocation_id="c1", reason="no")


async def announced(it: Served, session: ScriptedSession) -> None:
    """A command is announced, and nothing more is heard of it."""
    await session.announces("c1")


async def stopped(it: Served, session: ScriptedSession) -> None:
    """A turn is interrupted in which one command runs, and another waits."""
    await session.runs("c1")
    await session.asks_for("c2", rm=1)
    runtime = it.sessions.runtime_of("r")
    assert runtime is not None
    await runtime.interrupt("r", turn_id="u1.1", grace=1_000.0)


async def asked_user(it: Served, session: ScriptedSession) -> None:
    """The user is asked a question."""
    await session.questions_user("q")
    await it.until(lambda: bool(session.questions) or it.dead)


def test_s_80_a_prompt_that_was_not_kept_is_repeated_by_the_client() -> None:
    """Prompt received, not kept: nothing stands; said again it is said once."""

    async def play() -> None:
        it = await crashed(nothing, "waiting", kept=False)
        assert await messages(it.journal) == []
        async with it.restored() as served:
            await served.sessions.prompt("r", "go", message_id="m")
            await served.until(lambda: bool(it.scripted.told("took")))
            assert it.scripted.told("turn") == [("turn", "r", "m", "go")]

    run(play())


@pytest.mark.parametrize("name", ["user", "sent"])
def test_s_81_a_prompt_that_was_kept_is_looked_up_and_never_sent_again(name: str) -> None:
    """Prompt kept, perhaps sent: found in the thread, `sent`; otherwise `outcome_unknown`."""

    async def play() -> None:
        it = await crashed(nothing, name, kept=name == "user")
        assert await messages(it.journal, "r", "sent", "outcome_unknown") == []
        sent = it.scripted.told("turn")
        assert bool(sent) is (name == "sent")
        async with it.restored() as served:
            await served.idle()
            (told,) = await messages(it.journal, "r", "sent", "outcome_unknown")
            assert told.note.kind == ("sent" if sent else "outcome_unknown")
            assert it.scripted.told("turn") == sent

    run(play())


class TellsItsThread(ScriptedAdapter):
    """Says, as it begins, which thread it begins: another one each time."""

    async def create(self, spec: SessionSpec, sink: Sink) -> ScriptedSession:
        made = await super().create(spec, sink)
        made.thread = f"thread-{made.number}"
        about = Correlation(thread_id=made.thread).body()
        note = Note(domain=Domain.THREAD, kind="thread/started", body={}, at=1.0, correlation=about)
        await sink.hear([note], [])
        return made


def test_s_51_a_thread_that_was_begun_and_not_kept_is_abandoned_and_named() -> None:
    """`session` kept, thread perhaps started: inactive; restore starts another one."""

    async def play() -> None:
        journal, scripted = MemoryJournal(), TellsItsThread()
        killed = await serve(DiesAt(journal, "epoch", kept=False), others=[scripted])
        with pytest.raises(JournalError):
            await killed.sessions.create(spec(kind=KIND))
        await killed.kill()
        assert await steps(journal) == ["session"]
        async with serving(journal, others=[scripted]) as it:
            assert it.sessions.state_of("r") == "inactive"
            await it.sessions.restore("r")
            assert scripted.told("start", "resume") == [("start", "r")] * 2
            (named,) = [
                noted.note.body["thread_id"]
                for noted in await journal.notes("r", domain=Domain.THREAD)
                if noted.note.kind == "thread_abandoned"
            ]
            assert named == "thread-1"
            assert scripted.sessions["r"].epoch["thread_id"] == "thread-2"

    run(play())


def test_s_23_of_a_message_that_was_read_and_not_kept_nothing_stands() -> None:
    """It is gone with its process."""

    async def play() -> None:
        it = await crashed(announced, "announced", kept=False)
        async with it.restored():
            assert await it.facts() == []
            assert await it.journal.notes("r", domain=Domain.ITEM) == ()

    run(play())


def test_s_23_an_observation_that_was_kept_alone_is_added_claimed_and_lost() -> None:
    """Announced, and its deliveries not judged: it may have run."""

    async def play() -> None:
        it = await crashed(announced, "announced", kept=True)
        async with it.restored():
            assert await it.doubts() == ["c1"]
            assert (await it.types())[:3] == [
                "TURN_OPENED", "TOOL_EXECUTION_STARTED", "EXECUTION_IN_DOUBT"
            ]  # fmt: skip

    run(play())


@pytest.mark.parametrize(
    ("name", "kept", "doubted"),
    [
        ("TURN_OPENED", True, False),
        ("TOOL_APPROVED", False, False),
        ("TOOL_APPROVED", True, False),
        ("TOOL_EXECUTION_STARTED", False, False),
        ("TOOL_EXECUTION_STARTED", True, True),
        ("TOOL_EXECUTION_SUCCEEDED", False, True),
    ],
)
def test_s_21_approved_is_never_started_and_claimed_is_in_doubt(
    name: str, kept: bool, doubted: bool
) -> None:
    """Nothing was written before the claim was kept; after it, it may have been."""

    async def play() -> None:
        it = await crashed(agreed, name, kept=kept)
        accepted = it.scripted.told("accept")
        assert bool(accepted) is (name == "TOOL_EXECUTION_SUCCEEDED")
        async with it.restored():
            assert await it.doubts() == (["c1"] if doubted else [])
            assert await it.failed() == ({} if doubted else {"c1": NEVER})
            started = [one for one in await it.facts() if isinstance(one, ToolExecutionStarted)]
            assert bool(started) is doubted
            assert it.scripted.told("accept") == accepted

    run(play())


def test_s_27_an_end_that_was_read_and_not_kept_is_in_doubt_until_evidence_settles_it() -> None:
    """What the runtime has kept of its thread is a true late report."""

    async def play() -> None:
        it = await crashed(agreed, "TOOL_EXECUTION_SUCCEEDED", kept=False)
        it.scripted.ended["c1"] = "it ran"
        async with it.restored():
            assert await it.doubts() == []
            assert "TOOL_EXECUTION_SUCCEEDED" in await it.types()

    run(play())


def test_s_42_a_denial_that_was_kept_stands() -> None:
    """The process died with its question: nothing is written, and nothing ran."""

    async def play() -> None:
        it = await crashed(refused, "TOOL_DENIED", kept=True)
        async with it.restored():
            types = await it.types()
            assert "TOOL_DENIED" in types
            assert "TOOL_EXECUTION_STARTED" not in types
            assert (await it.doubts(), await it.failed()) == ([], {})
            assert it.scripted.told("accept", "decline") == []

    run(play())


@pytest.mark.parametrize("name", ["TURN_SEALED", "CONTINUATION_TAKEN"])
def test_s_29_a_continuation_that_was_not_acknowledged_is(name: str) -> None:
    """The turn has settled: it is owed, and acknowledged once."""

    async def play() -> None:
        it = await crashed(agreed, name, kept=name == "TURN_SEALED")
        assert (await it.types()).count("CONTINUATION_TAKEN") == 0
        async with it.restored() as served:
            await served.idle()
            await asyncio.sleep(1)
            assert (await it.types()).count("CONTINUATION_TAKEN") == 1
            assert not (await it.kernel()).pending_effects

    run(play())


def test_s_70_facts_that_were_kept_and_not_streamed_are_read_from_the_journal() -> None:
    """Whoever subscribes after the crash is shown each, once."""

    async def play() -> None:
        it = await crashed(agreed, "TOOL_EXECUTION_STARTED", kept=True)
        async with Hub(journal=it.journal) as hub:
            found: list[str] = []
            async with aclosing(hub.subscribe("r", after=START, follow=False)) as subscription:
                async for batch in subscription:
                    found += [str(one.cursor) for one in batch if isinstance(one, Sent)]
        page = await it.journal.ledger("r")
        assert found == [str(entry.cursor) for entry in page.entries]
        assert str(len(it.before)) in found

    run(play())


def test_s_45_an_interrupt_that_was_kept_is_brought_to_its_end() -> None:
    """INTERRUPTING, and `turn/interrupt` not written: lost, resolved, INTERRUPTED."""

    async def play() -> None:
        it = await crashed(stopped, "TURN_INTERRUPTING", kept=True)
        assert it.scripted.told("interrupt") == []
        async with it.restored():
            types = await it.types()
            assert types[-3:] == ["EXECUTION_IN_DOUBT", "TOOL_EXECUTION_FAILED", "TURN_INTERRUPTED"]
            assert await it.failed() == {"c1": INTERRUPTED}
            assert (await it.doubts(), it.scripted.told("accept")) == ([], [])

    run(play())


def test_s_28_a_question_dies_with_the_process_that_asked_it() -> None:
    """We are its executor, and report that nobody has answered: no doubt of it."""

    async def play() -> None:
        journal, scripted = MemoryJournal(), ScriptedAdapter()
        async with serving(journal, others=[scripted]) as it:
            await it.sessions.create(spec(kind=KIND), prompt="go", message_id="m")
            await it.until(lambda: bool(scripted.told("took")))
            session = scripted.sessions["r"]
            await asked_user(it, session)
            await session.dies()
            await it.until(lambda: not it.sessions.is_active("r"))
            facts = [fact async for fact in journal.facts("r")]
            failed = [fact for fact in facts if isinstance(fact, ToolExecutionFailed)]
            assert [(one.invocation_id, one.error) for one in failed] == [("q", UNANSWERED)]
            with pytest.raises(CommandRefused) as raised:
                await it.sessions.answer("r", turn_id="u1.1", invocation_id="q", result={})
            assert raised.value.code == "run_inactive"

    run(play())


def test_s_28_what_was_ours_to_execute_is_in_doubt_when_the_server_dies() -> None:
    """As any call of the own runtime."""

    async def play() -> None:
        it = await crashed(asked_user, "TOOL_EXECUTION_STARTED", kept=True)
        async with it.restored():
            assert await it.doubts() == ["q"]

    run(play())


def test_f_26_what_was_posted_to_an_owner_that_died_is_judged_by_the_next() -> None:
    """The call is rejected by then: it is late, and the post is answered."""

    async def play() -> None:
        it = await crashed(agreed, "TURN_OPENED", kept=True)
        kernel = await it.kernel()
        (call,) = calls_of(kernel)
        decision = Decide(
            run_id="r",
            turn_id=call.turn_id,
            invocation_id="c1",
            approved=True,
            arguments_digest=call.arguments_digest,
        )
        number = await it.journal.post("r", decision)
        async with it.restored():
            await asyncio.sleep(5)
            answer = await it.journal.answered("r", number)
            assert answer is not None
            assert answer["accepted"] is False
            assert await it.failed() == {"c1": NEVER}
            assert it.scripted.told("accept") == []

    run(play())


def test_s_83_a_prompt_in_line_is_asked_in_its_turn() -> None:
    """It was kept as `waiting`; it is said after what stands before it, once."""

    async def play() -> None:
        async def two_prompts(it: Served, session: ScriptedSession) -> None:
            await it.sessions.prompt("r", "second", message_id="n")
            await session.announces("end")

        it = await crashed(two_prompts, "announced", kept=False)
        async with it.restored() as served:
            await served.until(lambda: len(it.scripted.told("took")) == 2)
            assert [told[2] for told in it.scripted.told("turn")] == ["m", "n"]

    run(play())


class FailsAt(WrappedJournal):
    """A journal that fails to keep a fact of this name, as long as it is told to."""

    def __init__(self, inner: Journal, name: str) -> None:
        super().__init__(inner)
        self.name: str | None = name
        self.tried = 0

    async def append(self, run_id: str, **more: Any) -> Any:
        if self.name in [str(it.type) for it in more["facts"]]:
            self.tried += 1
            raise JournalError("the disk is full")
        return await self.inner.append(run_id, **more)


def test_s_21_nothing_is_answered_as_long_as_the_journal_fails() -> None:
    """The claim is not kept: `accept` is not written; after all of it nothing has run."""

    async def play() -> None:
        scripted = ScriptedAdapter()
        failing = FailsAt(MemoryJournal(), "TOOL_EXECUTION_STARTED")
        async with serving(failing, others=[scripted]) as it:
            await it.sessions.create(spec(kind=KIND), prompt="go", message_id="m")
            await it.until(lambda: bool(scripted.told("took")))
            await scripted.sessions["r"].asks_for("c1", rm=1)
            await it.approve()
            await it.until(lambda: not it.sessions.is_active("r"))
            assert failing.tried > 0
            assert scripted.told("accept") == []
            failing.name = None
            await it.sessions.restore("r")
            failed = [f async for f in failing.facts("r") if isinstance(f, ToolExecutionFailed)]
            assert [fact.error for fact in failed] == [NEVER]

    run(play())
