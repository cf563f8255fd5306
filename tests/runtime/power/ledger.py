"""What a journal has acknowledged, and when: noted beside it, by somebody who has no part in it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import attrs

from turnlock import Fact, Run, TurnlockError
from turnlock.engine.snapshot import Snapshot
from turnlock.models.codec import to_json
from turnlock.models.deliveries import Delivery
from turnlock.models.facts import ExecutionRetried, ToolExecutionStarted
from turnlock.models.values import Json
from turnlock.runtime.journal.contract import Appended, Busy, Journal
from turnlock.runtime.journal.ledger import Note
from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.runtime.tools.calling import ToolContext

from ..faulty_journal import WrappedJournal
from .disk import Disk

Attempt: TypeAlias = tuple[str, str, int]
"""Turn, invocation and attempt of an execution that has begun."""


@attrs.define
class Promised:
    """What was acknowledged for one run up to some moment."""

    sequence: int = 0
    fence: int = 0
    snapshot: int = 0
    notes: dict[str, Json] = attrs.field(factory=dict[str, Json])
    posts: dict[int, bytes] = attrs.field(factory=dict[int, bytes])
    answers: dict[int, Mapping[str, Any]] = attrs.field(factory=dict[int, Mapping[str, Any]])
    begun: dict[Attempt, None] = attrs.field(factory=dict[Attempt, None])
    """Executions that have begun: their claims were acknowledged before."""


@attrs.frozen
class _Told:
    moment: int
    run_id: str
    what: str
    value: Any
    key: Any


class Ledger:
    """All that was acknowledged, and all that was asked for, in order."""

    def __init__(self, disk: Disk) -> None:
        self.disk: Final = disk
        self.asked: Final[dict[str, list[Fact]]] = defaultdict(list)
        """Facts that a journal was asked to keep: of each run in order, whatever became of them."""
        self.start = disk.now
        """The moment before which the power is not cut."""
        self._told: Final[list[_Told]] = []

    def tell(self, run_id: str, what: str, value: Any, key: Any = None) -> None:
        """Note what was acknowledged just now; `what` is a field of `Promised`."""
        self._told.append(_Told(self.disk.now, run_id, what, value, key))

    def begins(self, context: ToolContext) -> None:
        """Note that a tool runs."""
        attempt = (context.turn_id, context.invocation_id, context.attempt)
        self.tell(context.run_id, "begun", None, attempt)

    def promised(self, moment: int) -> Mapping[str, Promised]:
        """Return what was acknowledged before this moment, by run."""
        found: dict[str, Promised] = {}
        for told in self._told:
            if told.moment > moment:
                break
            promised = found.setdefault(told.run_id, Promised())
            held = getattr(promised, told.what)
            if isinstance(held, int):
                setattr(promised, told.what, max(held, told.value))
            else:
                held[told.key] = told.value
        return found


class NotedJournal(WrappedJournal):
    """A journal whose acknowledgements are noted in a ledger."""

    def __init__(self, inner: Journal, ledger: Ledger) -> None:
        super().__init__(inner)
        self._ledger = ledger
        self._runs: dict[int, str] = {}

    async def declare(self, run: Run) -> None:
        await super().declare(run)
        self._ledger.tell(run.run_id, "sequence", 0)

    async def own(
        self, run_id: str, *, owner: str, now: float, lease: float, gone: str | None = None
    ) -> int:
        fence = await super().own(run_id, owner=owner, now=now, lease=lease, gone=gone)
        self._ledger.tell(run_id, "fence", fence)
        return fence

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
        self._ledger.asked[run_id][after:] = facts
        answer = await super().append(
            run_id, fence=fence, after=after, facts=facts, busy=busy, **more
        )
        if answer is Appended.OK:
            self._ledger.tell(run_id, "sequence", facts[-1].sequence)
            self._tell_notes(run_id, more.get("notes", ()))
        return answer

    async def keep_snapshot(self, snapshot: Snapshot, *, fence: int | None) -> Appended:
        answer = await super().keep_snapshot(snapshot, fence=fence)
        if answer is Appended.OK:
            self._ledger.tell(snapshot.run.run_id, "snapshot", snapshot.sequence)
        return answer

    async def note(self, run_id: str, *, fence: int | None, notes: Sequence[Note]) -> Appended:
        answer = await super().note(run_id, fence=fence, notes=notes)
        if answer is Appended.OK:
            self._tell_notes(run_id, notes)
        return answer

    def _tell_notes(self, run_id: str, notes: Sequence[Note]) -> None:
        for note in notes:
            self._ledger.tell(run_id, "notes", note.body, note.id)

    async def post(self, run_id: str, delivery: Delivery) -> int:
        number = await super().post(run_id, delivery)
        self._runs[number] = run_id
        self._ledger.tell(run_id, "posts", to_json(delivery), number)
        return number

    async def answer(self, run_id: str, number: int, receipt: Mapping[str, Any]) -> None:
        await super().answer(run_id, number, receipt)
        run_id = self._runs.get(number, "story")
        self._ledger.tell(run_id, "answers", receipt, number)


async def broken(journal: SqliteJournal, ledger: Ledger, moment: int) -> list[str]:
    """Return what this journal has not kept of what was acknowledged, and what nobody gave it."""
    wrong: list[str] = []
    try:
        for found in await journal.check():
            kind = "rewound" if found.what == "rewound" else "damaged"
            wrong.append(f"{kind}: {found.run_id!r}, {found.what}: {found.cause}")
        there = {entry.run.run_id: entry for entry in await journal.runs()}
    except TurnlockError as error:
        return [f"damaged: {error}"]
    for run_id, promised in ledger.promised(moment).items():
        if run_id not in there:
            wrong.append(f"lost: run {run_id!r}")
            continue
        try:
            wrong += await _of_run(journal, run_id, promised, ledger.asked[run_id])
        except TurnlockError as error:
            wrong.append(f"damaged: {run_id!r}: {error}")
        if there[run_id].fence < promised.fence:
            wrong.append(f"lost: fence {promised.fence} of {run_id!r}: {there[run_id].fence}")
    return wrong


async def _of_run(
    journal: SqliteJournal, run_id: str, promised: Promised, asked: Sequence[Fact]
) -> list[str]:
    wrong: list[str] = []
    kept = [fact async for fact in journal.facts(run_id)]
    if len(kept) < promised.sequence:
        wrong.append(f"lost: {run_id!r} ends at {len(kept)}, and {promised.sequence} were kept")
    if kept != list(asked[: len(kept)]):
        wrong.append(f"invented: the facts of {run_id!r} are not those that it was given")
    claims = {
        (fact.turn_id, fact.invocation_id, fact.attempt)
        for fact in kept
        if isinstance(fact, ToolExecutionStarted | ExecutionRetried)
    }
    unrecorded = sorted(promised.begun.keys() - claims)
    wrong += [f"unrecorded: {run_id!r} {begun} began, nothing says so" for begun in unrecorded]
    snapshot = await journal.snapshot(run_id)
    if promised.snapshot > (0 if snapshot is None else snapshot.sequence):
        wrong.append(f"lost: the snapshot of {run_id!r} at {promised.snapshot}")
    notes = {it.note.id: it.note.body for it in await journal.notes(run_id)}
    wrong += [
        f"lost: note {name!r} of {run_id!r}"
        for name, value in promised.notes.items()
        if notes.get(name) != value
    ]
    waiting = {post.number: to_json(post.delivery) for post in await journal.posts([run_id])}
    for number, delivery in promised.posts.items():
        answer = await journal.answered(run_id, number)
        if number in promised.answers and answer != promised.answers[number]:
            wrong.append(f"lost: the answer to post {number}")
        elif answer is None and waiting.get(number) != delivery:
            wrong.append(f"lost: post {number}")
    return wrong


async def goes_on(journal: SqliteJournal, ledger: Ledger) -> list[str]:
    """Take each run and give it the facts that it was about to be given; return what is refused."""
    wrong: list[str] = []
    for entry in await journal.runs():
        run_id, kept = entry.run.run_id, entry.sequence
        owner = entry.owner
        fence = await journal.own(run_id, owner="heir", now=0.0, lease=1.0, gone=owner)
        facts = ledger.asked[run_id][kept:]
        if facts:
            said = await journal.append(run_id, fence=fence, after=kept, facts=facts, busy=True)
            if said is not Appended.OK:
                wrong.append(f"stuck: {run_id!r} cannot go on after {kept}: {said}")
    return wrong
