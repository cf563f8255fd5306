"""The one path from a delivery to its kept facts, whoever brings it and whoever owns the run.

What the tools declare about approval is added to the calls, the kernel judges, and the facts of all
that was judged together go to the journal in one append (`RunWriter`), with the notes that came
between (S-10). An `Actor` writes the run
that it owns; what processes write that perform nothing goes by `submitting`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import attrs

from ..engine.kernel import Kernel
from ..models.deliveries import Delivery
from ..models.errors import InvalidValue
from ..models.fact import Foldable
from ..models.facts import Fact, ToolExecutionFailed, TurnOpened
from ..models.lifecycle_facts import FailureCause
from ..models.run import OWN, Run
from ..models.sealed import shown_text
from ..models.verdicts import Verdict
from ..views.tally import Tally
from .acknowledged import Acknowledged
from .correlating import Correlate, Correlated, Correlating
from .declared import Declared
from .errors import Conflict, JournalError, JournalRewound, RunFenced
from .journal.contract import Appended, Journal, RunRead, Summary
from .journal.ledger import Note
from .log import logger
from .restoring import Restoring
from .running import Running
from .scheduling import Clock

_log = logger(__name__)


@attrs.frozen
class Judged:
    """One delivery, as it was judged at `at`, Unix time; `asked` unless it is the writer's own."""

    delivery: Delivery
    verdict: Verdict
    at: float
    asked: bool = True


@attrs.frozen(kw_only=True)
class Batch:
    """What was asked for together: what was judged, and the notes, each in its place."""

    judged: Sequence[Judged]
    notes: Sequence[Note] = ()

    @property
    def facts(self) -> list[Fact]:
        """All that happened, in order."""
        return [fact for one in self.judged for fact in one.verdict.facts]


class RunWriter:
    """A run as its writer has it: the fold of its journal, and the right to append to it."""

    def __init__(  # noqa: PLR0913 - what a writer is made of
        self,
        kernel: Kernel,
        *,
        journal: Journal,
        clock: Clock,
        declared: Callable[[], Declared],
        fence: int | None,
        correlate: Correlate | None = None,
        restoring: Restoring | None = None,
    ) -> None:
        """Take over a kernel that is the fold of the journal.

        `declared` says what the tools declare now; where that is not known, a delivery that brings
        calls is not judged. `fence` is what `Journal.own` returned, or
        None: then the run is written as long as nobody owns it. `correlate` says what each fact is
        about in another runtime (S-63); None: nothing, as in runs of our own. `restoring` keeps
        anew what an owner's journal may lose; None: it loses nothing while it is open.
        """
        self.run: Final = kernel.run
        self.fence = fence
        self.kernel = kernel
        """What is known of the run. Between two batches all of it is durable."""
        self.kept = kernel.sequence
        """The sequence of the last fact that is known to be durable."""
        self.stale = False
        """Whether the journal may hold other facts than the kernel: `catch_up` first."""
        self.missed: Sequence[Fact] = ()
        """Facts that were kept when nobody knew it, found by the last `catch_up` of an owner."""
        self._latest: Fact | None = None
        """The last fact that was kept or read here."""
        self.running: Final = Running(clock)
        """What runs in this process of it."""
        self._judging = kernel
        self._tally: Tally | None = None
        self._trouble: str | None = None
        """Why a call of the latest turn could not begin."""
        self._journal = journal
        self._clock = clock
        self._declared = declared
        self._correlated = None if correlate is None else Correlated(correlate, kernel)
        self._restoring = restoring
        self._mending = asyncio.Lock()
        self._mended = 0
        """How often was kept anew what was lost (D-62)."""
        self._asked: dict[str, Any] | None = None
        """What was given to the last append, as long as it is not known what became of it."""

    async def judge(
        self,
        asked: Iterable[Delivery | Note],
        *,
        unfit: Callable[[Delivery, InvalidValue], None],
    ) -> Batch:
        """Let the kernel judge deliveries, each by what those before it brought.

        A note among them stands after what was judged before it, and before all that comes (S-10).

        An owner judges on its one kernel: mostly all of it is kept. Who owns nothing judges on a
        copy, and drops it where another writer was quicker. Each that `Declared.apply` refuses goes
        to `unfit`, and was not judged. It may wait for code of the tools, under a bound.
        """
        self._judging = self.kernel.copy() if self.fence is None else self.kernel
        judged: list[Judged] = []
        notes: list[Note] = []
        try:
            for delivery in asked:
                if isinstance(delivery, Note):
                    notes.append(attrs.evolve(delivery, after=self._judging.sequence))
                    continue
                began = asyncio.get_running_loop().time()
                try:
                    declared = await self._declared().apply(delivery, self._judging)
                except InvalidValue as error:
                    unfit(delivery, error)
                    continue
                finally:
                    self.running.held_up(asyncio.get_running_loop().time() - began)
                now = self._clock.now()
                for renew, at in self.running.overtaken(self._judging, now):
                    verdict = self._judging.receive(renew, at)
                    judged.append(Judged(renew, verdict, at, asked=False))
                judged.append(Judged(delivery, self._judging.receive(declared, now), now))
        except BaseException:
            self.stale = True  # of what was judged nothing is kept
            raise
        return Batch(judged=judged, notes=notes)

    def judge_also(self, batch: Batch, deliveries: Iterable[Delivery]) -> Batch:
        """Judge what follows from a batch before it is kept, and return both: one append (K-9).

        Nobody asked for it: it is the writer's own. No time passes between, so nothing is over now
        that was not when the last of the batch was judged.
        """
        at = batch.judged[-1].at
        also = [Judged(it, self._judging.receive(it, at), at, asked=False) for it in deliveries]
        return attrs.evolve(batch, judged=[*batch.judged, *also])

    async def keep(self, batch: Batch) -> None:
        """Append the facts of what was judged, and the notes with them: all of it, or none.

        Raises `RunFenced` where the run is somebody else's, `Conflict` where the journal holds
        other facts than the kernel, and what the journal raises. Then `stale` says so, as it does
        after a cancellation: nobody knows. Raises `JournalRewound` as `catch_up` does.
        """
        facts = batch.facts
        if not facts:
            if batch.notes:
                await self.note(*batch.notes)
            return
        self.stale = True
        run_id = self.run.run_id
        summary = self._summary(facts)
        told: dict[str, Any] = {
            "facts": facts,
            "busy": summary,
            "notes": batch.notes,
            "correlations": None if self._correlated is None else self._correlated.lines(facts),
        }
        self._asked, times = told, self._mended
        try:
            appended = await self._journal.append(run_id, fence=self.fence, after=self.kept, **told)
        except JournalRewound:  # it was marked: perhaps nothing that matters here is lost
            if await self._mend(times):
                raise _kept_anew(run_id) from None
            raise
        self._asked = None
        if appended is Appended.FENCED:
            if await self.mend_lost(times):
                raise _kept_anew(run_id)
            held = (
                "it has an owner"
                if self.fence is None
                else f"the fencing token {self.fence} is old"
            )
            raise RunFenced(f"run {run_id!r} was taken over: {held}")
        if appended is Appended.CONFLICT:
            if self.fence is not None:  # nobody else may write: is it what was lost?
                await self.acknowledged.check(self._journal, mend=lambda: self._mend(times))
            raise Conflict(
                f"run {run_id!r}: the journal does not end with fact {self.kept}; deliver again"
            )
        self.kernel, self.kept, self.stale = self._judging, self._judging.sequence, False
        self._trouble = summary.trouble
        self._latest = facts[-1]
        if self._restoring is not None:
            self._restoring.told(run_id, **told)

    async def catch_up(self) -> bool:
        """Make the kernel the fold of the journal again; return whether there was more in it.

        Who owns nothing reads only the facts that are new. An owner, whose kernel may know what was
        never kept, folds all of it anew. Raises `JournalRewound` where the journal ends before what
        is known to be kept, or holds something else there.
        """
        before = self.kept
        run_id = self.run.run_id
        if self.fence is None:
            facts = [fact async for fact in self._journal.facts(run_id, after=before)]
            await self.acknowledged.check(self._journal)
            if facts:
                kernel = self.kernel.copy()  # damaged facts must not leave it half-way
                kernel.catch_up(facts)
                self.kernel = kernel
                self._latest = facts[-1]
        else:
            times = self._mended
            kernel = await fold_run(self.run, self._journal)
            await self.acknowledged.check(self._journal, mend=lambda: self._mend(times))
            if self._mended != times:
                kernel = await fold_run(self.run, self._journal)
            self.missed = [fact async for fact in self._journal.facts(run_id, after=before)]
            await self._hold_missed()
            self.kernel = kernel
            self._tally = None
        if self._correlated is not None:
            self._correlated.stand_at(self.kernel)
        self.kept = self.kernel.sequence
        self.stale = False
        return self.kept != before

    async def mend_lost(self, since: int | None = None) -> bool:
        """Keep anew what the journal has lost of an owner's run; say whether that was needed.

        Where it knows who has the run, and that is another, nothing is. Of `since` see `_mend`.
        """
        if self._restoring is None or self.fence is None:
            return False
        if since is not None and since != self._mended:
            return True
        entry = await self._journal.entry(self.run.run_id)
        if entry.rewound is None and entry.fence >= self.fence:
            return False
        return await self._mend(self._mended if since is None else since)

    async def _mend(self, since: int) -> bool:
        """Keep anew what is lost, and go on under another token; say whether all is there again.

        What was mended after it had been so often is mended.
        """
        if self._restoring is None or self.fence is None:
            return False
        async with self._mending:
            if self._mended == since:
                fence = await self._restoring.restore(self.run.run_id, fence=self.fence)
                if fence is None:
                    return False
                self.fence = fence
                self._mended += 1
                _log.warning("run %r: its journal had lost what is kept anew now", self.run.run_id)
        return True

    async def _hold_missed(self) -> None:
        """Hold what was kept without anybody saying so, as what was acknowledged."""
        asked, self._asked = self._asked, None
        if self._restoring is None or not self.missed:
            return
        if asked is not None and list(asked["facts"]) == list(self.missed):
            self._restoring.told(self.run.run_id, **asked)
        else:
            await self._restoring.begin(self.run.run_id)

    @property
    def acknowledged(self) -> Acknowledged:
        """The last fact that is known to be kept."""
        latest = self._latest if self._latest and self._latest.sequence == self.kept else None
        return Acknowledged(run_id=self.run.run_id, sequence=self.kept, fact=latest)

    def _summary(self, facts: Sequence[Fact]) -> Summary:
        """Return what a list of runs shows of this one after these facts, which were judged.

        An owner counts along on its one kernel. Who owns nothing has judged on a copy, which costs
        a look at each call already: so does this.
        """
        kernel = self._judging
        if self._tally is None or self.fence is None:
            self._tally = Tally(kernel, since=facts[0].at)
        else:
            self._tally.follow(kernel, facts)
        return Summary(
            busy=kernel.busy,
            status=self._tally.status(kernel, latest=facts[-1]),
            waiting=self._tally.waiting,
            doubts=self._tally.doubts,
            trouble=_trouble_after(facts, before=self._trouble),
            turn_id=None if kernel.turn is None else kernel.turn.turn_id,
            asked=self._tally.asked(kernel),
        )

    async def note(self, *notes: Note) -> None:
        """Keep notes after all facts, see `Journal.note`.

        Raises `RunFenced`, and `InvalidValue` where an id has other content: then none was kept.
        """
        run_id = self.run.run_id
        bare = [attrs.evolve(note, after=None) for note in notes]
        times = self._mended
        try:
            kept = await self._journal.note(run_id, fence=self.fence, notes=bare)
        except JournalRewound:
            if await self._mend(times):
                raise _kept_anew(run_id) from None
            raise
        except JournalError:
            if self._restoring is not None:  # they may be kept: then more is there than was told
                self._restoring.forget(run_id)
            raise
        if kept is Appended.FENCED and await self.mend_lost(times):
            raise _kept_anew(run_id)
        if kept is Appended.OK:
            if self._restoring is not None:
                self._restoring.told(run_id, notes=bare)
            return
        told = ", ".join(note.id or note.kind for note in notes[:NAMED])
        if kept is Appended.FENCED:
            raise RunFenced(f"run {run_id!r} was taken over: the note {told} was not kept")
        raise InvalidValue(
            place=told, cause="another note has this id", fix="give this one another id"
        )


def _kept_anew(run_id: str) -> Conflict:
    """Return the error for what was to be kept when it showed that the journal had lost its end."""
    return Conflict(
        f"run {run_id!r}: the journal had lost what is kept anew now; nothing of this was kept:"
        " deliver again"
    )


def _trouble_after(facts: Iterable[Fact], *, before: str | None) -> str | None:
    """Return why a call of the latest turn could not begin, by the last of these that says it."""
    for fact in facts:
        if isinstance(fact, TurnOpened):
            before = None
        elif isinstance(fact, ToolExecutionFailed) and fact.cause is FailureCause.REJECTED:
            before = f"{fact.tool_name}: {shown_text(fact.error)}"[:TROUBLE]
    return before


async def fold_run(run: Run, journal: Journal, *, read: RunRead | None = None) -> Kernel:
    """Return the kernel that the journal holds: its snapshot, and the facts after it (K-2, K-9).

    `read` is what an owner has read of it already. A commit is kept whole, so nothing is dropped.
    Raises `CorruptJournal` for what no run can have written.
    """
    snapshot = await journal.snapshot(run.run_id) if read is None else read.snapshot
    facts: list[Foldable] = [] if read is None else [*read.behind]
    last = facts[-1].sequence if facts else 0 if snapshot is None else snapshot.sequence
    while (read is None or last < read.entry.sequence) and (
        page := await journal.read_to_fold(run.run_id, after=last, limit=FOLDED)
    ):
        facts += page
        last = page[-1].sequence
    return Kernel.recover(run, facts, snapshot=snapshot)


async def correlate_of(
    run: Run, journal: Journal, correlating: Correlating | None
) -> Correlate | None:
    """Return how the facts of a run are correlated; None: it is our own, or nobody knows (S-63)."""
    if correlating is None or run.kind == OWN:
        return None
    return await correlating(run, journal)


FOLDED: Final = 4_000
"""Facts that are read at once to be folded: all are needed before any is looked at."""
NAMED: Final = 3
"""Notes that a refusal names."""
TROUBLE: Final = 500
"""Characters that are kept of why a call could not begin: its fact has all of them."""
FACTS_A_CALL: Final = 4
"""Facts for each call of the turn under way before a snapshot is worth its time."""


def facts_to_snapshot(kernel: Kernel, *, every: int) -> int:
    """Return the facts between two snapshots: more in a large turn, whose snapshot is slow."""
    turn = kernel.turn
    return max(every, FACTS_A_CALL * (0 if turn is None else len(turn.order)))
