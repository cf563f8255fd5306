"""Forks at the journal: cut off anywhere, at a commit that goes on, and of what is sealed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import pytest

from turnlock import (
    Acknowledge,
    Call,
    Claim,
    Decide,
    Fact,
    Interrupt,
    Kernel,
    OpenTurn,
    Report,
    Run,
    Scope,
    Tick,
    TurnInterrupted,
)
from turnlock.agent import Conversation, ConversationBroken
from turnlock.agent.messages import Answer, Prompt, ToolCall, as_note
from turnlock.models.values import Json
from turnlock.runtime import (
    Appended,
    Journal,
    JournalError,
    MemoryJournal,
    Overloaded,
    SealBroken,
    forking,
)
from turnlock.runtime.forking import Forked, NotForked, fork_run
from turnlock.runtime.journal.contract import Busy
from turnlock.runtime.journal.ledger import Cursor, Domain, Note, Noted
from turnlock.verification.traces.log import check
from turnlock.wire.log_lines import log_lines

from .faulty_journal import WrappedJournal
from .kept_notes import message, thread_note

T = TypeVar("T")
RUN = Run(run_id="a/b")
"""Its id is written otherwise in the ids of its grants (K-7)."""
PAY = Call(invocation_id="c", tool_name="pay", arguments={}, requires_approval=True)


def opened(turn_id: str, *calls: Call) -> OpenTurn:
    return OpenTurn(turn_id=turn_id, calls=calls)


def history(kernel: Kernel) -> list[Fact]:
    """A turn whose call was approved for the session, and one whose call is covered by that."""
    facts: list[Fact] = []
    for turn in ("t1", "t2"):
        facts += kernel.receive(opened(turn, PAY), 1.0).facts
        if turn == "t1":
            decision = Decide(turn_id=turn, invocation_id="c", approved=True, scope=Scope.SESSION)
            facts += kernel.receive(decision, 2.0).facts
        for delivery in (
            Claim(turn_id=turn, invocation_id="c", attempt=1),
            Report(turn_id=turn, invocation_id="c", attempt=1, result="paid"),
            Acknowledge(turn_id=turn),
        ):
            facts += kernel.receive(delivery, 3.0).facts
    return facts


ASKED = Answer(calls=(ToolCall(call_id="c", tool_name="pay", arguments={}),))
NOTES = [
    Noted(cursor=Cursor(place, part), note=as_note(said, name=name, at=1.0))
    for place, part, name, said in (
        (0, 1, "said/1", Prompt(text="pay")),
        (0, 2, "said/2", ASKED),
        (7, 1, "said/3", ASKED),
    )
]
"""Where an agent has them: the second turn begins after fact 7."""


async def kept(facts: Sequence[Fact], journal: Journal | None = None) -> Journal:
    journal = journal or MemoryJournal()
    await journal.declare(RUN)
    if facts:
        done = await journal.append(RUN.run_id, fence=None, after=0, facts=facts, busy=True)
        assert done is Appended.OK
    return journal


class Breaking(WrappedJournal):
    """Keeps so many things more, then nothing: its process was killed."""

    def __init__(self, inner: Journal, left: int) -> None:
        super().__init__(inner)
        self.left = left

    async def _last(self, work: Callable[[], Awaitable[T]]) -> T:
        if not self.left:
            raise JournalError("killed")
        self.left -= 1
        return await work()

    async def declare(self, run: Run) -> None:
        await self._last(lambda: self.inner.declare(run))

    async def append(
        self,
        run_id: str,
        *,
        fence: int | None,
        after: int,
        facts: Sequence[Fact],
        busy: Busy,
        **more: Any,
    ) -> Appended:
        return await self._last(
            lambda: self.inner.append(
                run_id, fence=fence, after=after, facts=facts, busy=busy, **more
            )
        )

    async def note(self, run_id: str, *, fence: int | None, notes: Sequence[Note]) -> Appended:
        return await self._last(lambda: self.inner.note(run_id, fence=fence, notes=notes))


async def forked(journal: Journal) -> Forked:
    return await fork_run(journal, RUN.run_id, turn_id="t2", into="n/1", notes=NOTES)


def test_cut_off_anywhere_it_is_no_conversation_and_the_same_again_finishes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After each write: half a fork is refused by an agent, and finished it is like any other."""
    monkeypatch.setattr(forking, "BATCH", 3)

    async def story(left: int) -> tuple[bool, list[Fact]]:
        inner = await kept(history(Kernel(RUN)))
        try:
            await forked(Breaking(inner, left))
            broke = False
        except JournalError:
            broke = True
            if left:  # before, there is no such run
                conversation = Conversation("n/1")
                if left > 1:
                    with pytest.raises(ConversationBroken, match="half a fork"):
                        conversation.load([it.note for it in await inner.notes("n/1")])
                else:
                    conversation.load([it.note for it in await inner.notes("n/1")])
                    assert (conversation.said, await inner.read("n/1")) == ([], ())
        again = await forked(inner)
        assert (again.facts, again.notes, again.before) == (13, 3, not broke)
        facts = [fact async for fact in inner.facts("n/1")]
        assert check(log_lines((await inner.entry("n/1")).run, facts)).broken is None
        assert not Kernel.recover(Run(run_id="n/1"), facts).grants
        notes = await inner.notes("n/1")
        said = [it for it in notes if it.note.domain is Domain.MESSAGE]
        assert [it.note for it in said] == [it.note for it in NOTES]
        assert [it.cursor.sequence for it in said] == [it.cursor.sequence for it in NOTES]
        assert [notes[0].note.id, notes[-1].note.id] == [forking.FORKED, forking.WHOLE]
        return broke, facts

    left = 0
    stories: list[tuple[bool, list[Fact]]] = []
    while not stories or stories[-1][0]:
        stories.append(asyncio.run(story(left)))
        left += 1
    assert left > 8

    def timeless(facts: Sequence[Fact]) -> list[tuple[object, ...]]:
        return [(it.type, it.sequence, it.commit) for it in facts]

    assert all(timeless(facts) == timeless(stories[-1][1]) for _, facts in stories)


def test_a_commit_that_goes_on_behind_the_turn_ends_with_it() -> None:
    """K-11: one receive may end a turn by its grace, and open the next."""
    kernel = Kernel(RUN)
    free = Call(invocation_id="c", tool_name="look", arguments={}, requires_approval=False)
    facts = [
        fact
        for delivery, now in (
            (opened("t1", free), 1.0),
            (Claim(turn_id="t1", invocation_id="c", attempt=1), 2.0),
            (Interrupt(turn_id="t1", grace=1.0), 3.0),
            (opened("t2", free), 9.0),
        )
        for fact in kernel.receive(delivery, now).facts
    ]
    (closing,) = [fact for fact in facts if isinstance(fact, TurnInterrupted)]
    assert closing.commit > closing.sequence

    async def story() -> None:
        journal = await kept(facts)
        await fork_run(journal, RUN.run_id, turn_id="t1", into="n", notes=[])
        found = [fact async for fact in journal.facts("n")]
        assert found[-1].commit == found[-1].sequence == closing.sequence
        assert check(log_lines(Run(run_id="n"), found)).broken is None
        assert not (await journal.entry("n")).busy

    asyncio.run(story())


def test_what_is_sealed_is_refused() -> None:
    """An envelope opens in its own run alone; a model that would get it would get nothing."""
    envelope: dict[str, Json] = {"sealed": "aGVsbG8="}
    sealed = Call(invocation_id="c", tool_name="pay", arguments=envelope, requires_approval=False)

    async def story(facts: Sequence[Fact], notes: Sequence[Noted]) -> None:
        journal = await kept(facts)
        with pytest.raises(SealBroken, match="open in this run alone"):
            await fork_run(journal, RUN.run_id, turn_id="t1", into="n", notes=notes)
        assert [it.run.run_id for it in await journal.runs()] == [RUN.run_id]

    kernel = Kernel(RUN)
    facts = list(kernel.receive(opened("t1", sealed), 1.0).facts)
    facts += kernel.receive(Interrupt(turn_id="t1"), 2.0).facts
    asyncio.run(story(facts, []))
    secret = message("said/1", "assistant", **envelope)
    asyncio.run(story(history(Kernel(RUN)), [Noted(cursor=Cursor(0, 1), note=secret)]))


def test_another_run_is_not_written_to() -> None:
    """Of facts, of notes, or of another fork."""

    async def story() -> None:
        journal = await kept(history(Kernel(RUN)))
        for run_id in ("facts", "notes", "fork"):
            await journal.declare(Run(run_id=run_id))
        await journal.note("notes", fence=None, notes=[thread_note("x")])
        other = [thread_note(forking.FORKED, run="other")]
        await journal.note("fork", fence=None, notes=other)
        kernel = Kernel(Run(run_id="facts"))
        facts = kernel.receive(opened("t1", PAY), 1.0).facts
        await journal.append("facts", fence=None, after=0, facts=facts, busy=True)
        for run_id in ("facts", "notes", "fork"):
            with pytest.raises(NotForked, match="it is there already, and another one"):
                await fork_run(journal, RUN.run_id, turn_id="t1", into=run_id, notes=NOTES)
            assert len(await journal.read(run_id)) == (len(facts) if run_id == "facts" else 0)

    asyncio.run(story())


def test_memory_is_a_fold_of_the_new_facts() -> None:
    """K-2: a late report in the new run is late there, as it was in the old one."""

    async def story() -> None:
        journal = await kept(history(Kernel(RUN)))
        await fork_run(journal, RUN.run_id, turn_id="t1", into="n", notes=[])
        facts = [fact async for fact in journal.facts("n")]
        kernel = Kernel.recover(Run(run_id="n"), facts)
        kernel.receive(Tick(), facts[-1].at)
        assert kernel.epoch == 1
        assert [it.turn_id for it in kernel.continuations] == ["t1"]

    asyncio.run(story())


def test_what_was_kept_in_many_appends_is_kept_in_as_many_as_it_takes() -> None:
    """Each append has a bound, which a batch may be beyond; a commit cannot be halved."""

    class Narrow(WrappedJournal):
        """Takes so many facts at once."""

        most = 2

        async def append(
            self,
            run_id: str,
            *,
            fence: int | None,
            after: int,
            facts: Sequence[Fact],
            busy: Busy,
            **more: Any,
        ) -> Appended:
            if len(facts) > self.most:
                raise Overloaded("too much")
            return await self.inner.append(
                run_id, fence=fence, after=after, facts=facts, busy=busy, **more
            )

    async def it() -> None:
        kernel = Kernel(RUN)
        facts = tuple(history(kernel))
        journal = Narrow(MemoryJournal())
        await journal.declare(RUN)
        await forking.keep_history(journal, kernel, facts, [])
        assert [fact async for fact in journal.facts(RUN.run_id)] == list(facts)
        journal.most = 1
        other = Run(run_id="other")
        await journal.declare(other)
        renamed = tuple(forking.renamed_facts(facts, "other"))
        with pytest.raises(Overloaded):
            await forking.keep_history(journal, Kernel.recover(other, renamed), renamed, [])

    asyncio.run(it())
