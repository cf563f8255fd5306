"""The one path from a delivery to its kept facts, whoever brings it and whoever owns the run.

What the tools declare about approval is added to the calls, the kernel judges, and the facts of all
that was judged together go to the journal in one append (`RunWriter`). An `Actor` writes the run
that it owns. For processes that perform nothing, `submit` has one delivery judged, whoever owns the
run, and `SharedRun` is for many of them that write one run which nobody owns: each appends where
the run still ends as it has read it. No tool is run here: what a delivery brings is left to whoever
opens the run next.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import repeat
from typing import Any, Final, Self

import attrs

from ..engine.kernel import Kernel
from ..models.codec import write
from ..models.deliveries import Decide, Delivery, Resolve
from ..models.errors import InvalidValue, TurnlockError
from ..models.facts import Fact, ToolExecutionFailed, TurnOpened
from ..models.lifecycle_facts import FailureCause
from ..models.run import Run
from ..models.sealed import shown_text
from ..models.values import Json
from ..models.verdicts import Accepted, Verdict
from ..views.tally import Tally
from .acknowledged import Acknowledged
from .declared import Declared
from .errors import Conflict, JournalError, JournalOwned, RunFenced
from .journal.contract import PROBLEM, Appended, Journal, RunEntry, Summary, rewound
from .leases import clock_of_leases, is_owned, put_out
from .running import Running
from .scheduling import Clock, SteadyClock, retried
from .tools.errors import BadArguments
from .tools.policy import Policy
from .tools.toolbox import Toolbox


@attrs.frozen
class Judged:
    """One delivery, as it was judged at `at`, Unix time; `asked` unless it is the writer's own."""

    delivery: Delivery
    verdict: Verdict
    at: float
    asked: bool = True


class RunWriter:
    """A run as its writer has it: the fold of its journal, and the right to append to it."""

    def __init__(
        self,
        kernel: Kernel,
        *,
        journal: Journal,
        clock: Clock,
        declared: Callable[[], Declared],
        fence: int | None,
    ) -> None:
        """Take over a kernel that is the fold of the journal.

        `declared` says what the tools declare now; where that is not known, a delivery that brings
        calls is not judged. `fence` is what `Journal.own` returned, or
        None: then the run is written as long as nobody owns it.
        """
        self.run: Final = kernel.run
        self.fence: Final = fence
        self.kernel = kernel
        """What is known of the run. Between two batches all of it is durable."""
        self.kept = kernel.sequence
        """The sequence of the last fact that is known to be durable."""
        self.stale = False
        """Whether the journal may hold other facts than the kernel: `catch_up` first."""
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

    async def judge(
        self, deliveries: Iterable[Delivery], *, unfit: Callable[[Delivery, InvalidValue], None]
    ) -> list[Judged]:
        """Let the kernel judge deliveries, each by what those before it brought.

        An owner judges on its one kernel: mostly all of it is kept. Who owns nothing judges on a
        copy, and drops it where another writer was quicker. Each that `Declared.apply` refuses goes
        to `unfit`, and was not judged. It may wait for code of the tools, under a bound.
        """
        self._judging = self.kernel.copy() if self.fence is None else self.kernel
        judged: list[Judged] = []
        try:
            for delivery in deliveries:
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
        return judged

    async def keep(self, judged: Sequence[Judged]) -> None:
        """Append the facts of what was judged: all of them, or none.

        Raises `RunFenced` where the run is somebody else's, `Conflict` where the journal holds
        other facts than the kernel, and what the journal raises. Then `stale` says so, as it does
        after a cancellation: nobody knows. Raises `JournalRewound` as `catch_up` does.
        """
        facts = [fact for one in judged for fact in one.verdict.facts]
        if not facts:
            return
        self.stale = True
        run_id = self.run.run_id
        summary = self._summary(facts)
        appended = await self._journal.append(
            run_id,
            fence=self.fence,
            after=self.kept,
            facts=facts,
            busy=summary,
        )
        if appended is Appended.FENCED:
            held = (
                "it has an owner"
                if self.fence is None
                else f"the fencing token {self.fence} is old"
            )
            raise RunFenced(f"run {run_id!r} was taken over: {held}")
        if appended is Appended.CONFLICT:
            if self.fence is not None:  # nobody else may write: is it what was lost?
                await self.acknowledged.check(self._journal)
            raise Conflict(
                f"run {run_id!r}: the journal does not end with fact {self.kept}; deliver again"
            )
        self.kernel, self.kept, self.stale = self._judging, self._judging.sequence, False
        self._trouble = summary.trouble
        self._latest = facts[-1]

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
            kernel = await fold_run(self.run, self._journal)
            await self.acknowledged.check(self._journal)
            self.kernel = kernel
            self._tally = None
        self.kept = self.kernel.sequence
        self.stale = False
        return self.kept != before

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
            self._tally = Tally(kernel)
        else:
            self._tally.follow(kernel, facts)
        return Summary(
            busy=kernel.busy,
            status=self._tally.status(kernel, latest=facts[-1]),
            waiting=self._tally.waiting,
            doubts=self._tally.doubts,
            trouble=_trouble_after(facts, before=self._trouble),
        )

    async def note(self, name: str, value: Json) -> None:
        """Keep a note beside the facts, see `Journal.note`.

        Raises `RunFenced`, and `InvalidValue` where the name has another value.
        """
        run_id = self.run.run_id
        kept = await self._journal.note(run_id, fence=self.fence, name=name, value=value)
        if kept is Appended.FENCED:
            raise RunFenced(f"run {run_id!r} was taken over: the note {name!r} was not kept")
        if kept is Appended.CONFLICT:
            raise InvalidValue(
                place=name, cause="another note has this name", fix="give this one another name"
            )


def _trouble_after(facts: Iterable[Fact], *, before: str | None) -> str | None:
    """Return why a call of the latest turn could not begin, by the last of these that says it."""
    for fact in facts:
        if isinstance(fact, TurnOpened):
            before = None
        elif isinstance(fact, ToolExecutionFailed) and fact.cause is FailureCause.REJECTED:
            before = f"{fact.tool_name}: {shown_text(fact.error)}"[:TROUBLE]
    return before


async def fold_run(run: Run, journal: Journal) -> Kernel:
    """Return the kernel that the journal holds: its snapshot, and the facts after it (K-2, K-9).

    A commit is kept whole, so nothing is dropped. Raises `CorruptJournal` for what no run can have
    written.
    """
    snapshot = await journal.snapshot(run.run_id)
    after = 0 if snapshot is None else snapshot.sequence
    facts = [fact async for fact in journal.facts(run.run_id, after=after)]
    return Kernel.recover(run, facts, snapshot=snapshot)


TROUBLE: Final = 500
"""Characters that are kept of why a call could not begin: its fact has all of them."""
POLL: Final = 0.05
"""Seconds between two looks for an answer."""
SNAPSHOT_EVERY: Final = 2_000
"""Facts after which the writers of a shared run keep a snapshot, for whoever opens it next."""
FACTS_A_CALL: Final = 4
"""Facts for each call of the turn under way before a snapshot is worth its time."""


def facts_to_snapshot(kernel: Kernel, *, every: int) -> int:
    """Return the facts between two snapshots: more in a large turn, whose snapshot is slow."""
    turn = kernel.turn
    return max(every, FACTS_A_CALL * (0 if turn is None else len(turn.order)))


class Unanswered(TurnlockError):
    """A delivery was posted, and its run's owner has not answered yet; it is not lost."""


@attrs.frozen(kw_only=True)
class Submitted:
    """The receipt of `delivery`, as the wire writes it without effects, and who gave it."""

    delivery: Delivery
    receipt: dict[str, Any]
    by_owner: bool
    """Whether a living owner gave it."""


class SharedRun:
    """A run that nobody owns, as one of its writers has it.

    Its kernel is kept from one `submit` to the next: where others have written meanwhile only their
    facts are read and folded. Tasks that submit at once go one after the other; other processes
    need no care.
    """

    def __init__(
        self, writer: RunWriter, *, journal: Journal, clock: Clock, snapped: int = 0
    ) -> None:
        """Take over what `open` has folded; `snapped` is the sequence of the journal's snapshot.

        It is the journal's and not what was folded here: of writers that come, bring a few facts
        and go, none would ever have brought enough.
        """
        self._writer = writer
        self._journal = journal
        self._clock = clock
        self._snapped = snapped
        self._submitting = asyncio.Lock()

    @classmethod
    async def open(
        cls,
        journal: Journal,
        run_id: str,
        *,
        policies: Mapping[str, Policy] | None,
        tools: Toolbox | None = None,
        clock: Clock | None = None,
    ) -> Self:
        """Fold a run that the journal knows.

        `policies` are what the tools declare, by their names (`Toolbox.policies`): the approval
        that they ask for is added to the calls that are submitted. None where that is not known;
        then no calls can be. By `tools`, where they are given, edited arguments are checked. Raises
        `UnknownRun`, and what the journal raises.
        """
        clock = clock or journal.clock or SteadyClock()
        entry = await _entry_to_write(journal, run_id)
        kernel = await fold_run(entry.run, journal)
        declared = Declared.of(policies, tools)
        writer = RunWriter(
            kernel, journal=journal, clock=clock, declared=lambda: declared, fence=None
        )
        return cls(writer, journal=journal, clock=clock, snapped=entry.snapped)

    @property
    def kernel(self) -> Kernel:
        """The run as it was when it was last read or written here; only to look at."""
        return self._writer.kernel

    async def refresh(self) -> bool:
        """Read and fold what others have written meanwhile; return whether that was anything."""
        async with self._submitting:
            return await self._writer.catch_up()

    async def submit(self, *deliveries: Delivery) -> tuple[Verdict, ...]:
        """Have deliveries judged, in this order; the facts of all of them are one append.

        Raises `JournalOwned` where a process owns the run: post to it, as `submit` does. Raises
        `InvalidValue` for calls of which is not known what their tools declare, and `BadArguments`
        for edited arguments that the tool does not take.
        """
        return await self.submit_chosen(lambda _: deliveries)

    async def submit_chosen(
        self, choose: Callable[[Kernel], Iterable[Delivery]]
    ) -> tuple[Verdict, ...]:
        """Have those deliveries judged that the run, as it is now, calls for.

        What is chosen is judged in the state that it was chosen for: where another writer was
        quicker, the new facts are read, and it is chosen again. Raises as `submit` does.
        """
        async with self._submitting:
            judged = await retried(
                lambda: self._attempt(choose), pauses=repeat(0.0), on=(Conflict, _Freed)
            )
            due = facts_to_snapshot(self.kernel, every=SNAPSHOT_EVERY)
            if self._writer.kept - self._snapped >= due:
                self._snapped = self._writer.kept
                with suppress(JournalError):  # it only saves time, and the facts are kept
                    await self._journal.keep_snapshot(self._writer.kernel.snapshot(), fence=None)
            return tuple(one.verdict for one in judged)

    async def _attempt(self, choose: Callable[[Kernel], Iterable[Delivery]]) -> list[Judged]:
        """Judge and keep once. Without facts no append has said that nothing was missed: look."""
        writer = self._writer
        if writer.stale:
            await writer.catch_up()
        while True:
            judged = await writer.judge(choose(writer.kernel), unfit=_refuse)
            if any(one.verdict.facts for one in judged):
                break
            if not await writer.catch_up():
                return judged
        try:
            await writer.keep(judged)
        except RunFenced as error:
            now = clock_of_leases(self._journal, self._clock).now()
            await put_out(self._journal, writer.run.run_id, now=now)
            raise _Freed(str(error)) from error
        return judged


def _refuse(_: Delivery, error: InvalidValue) -> None:
    raise error


class _Freed(TurnlockError):
    """A run had an owner that is gone: it can be written now."""


async def submit(  # noqa: PLR0913 - what a writer needs, and how long to wait
    journal: Journal,
    run_id: str,
    delivery: Delivery | Callable[[Kernel], Delivery],
    *,
    within: float,
    policies: Mapping[str, Policy] | None = None,
    tools: Toolbox | None = None,
    clock: Clock | None = None,
) -> Submitted:
    """Have a delivery judged, by the run's owner if there is one; wait `within` seconds for that.

    It may be given as a function that chooses it from the run as it is: the journal is read once.
    `policies` and `tools` are what the tools declare, as in `SharedRun.open`; an owner knows that
    itself. Raises `UnknownRun`, `Unanswered`, `InvalidValue` for calls that are judged here without
    policies, `BadArguments` for edited arguments that the tool does not take, whoever finds that,
    and what the journal raises. What a tool keeps sealed is sealed before it is posted.
    """
    entry = await _entry_to_write(journal, run_id)
    owned = is_owned(entry, now=clock_of_leases(journal, clock).now())
    if not owned or not isinstance(delivery, Delivery):
        shared = await SharedRun.open(journal, run_id, policies=policies, tools=tools, clock=clock)
        choose = _Choice(delivery)
        try:
            if not owned:
                (verdict,) = await shared.submit_chosen(choose)
                return Submitted(
                    delivery=choose.chosen, receipt=receipt_of(verdict), by_owner=False
                )
            choose(shared.kernel)
        except JournalOwned:
            pass  # somebody was quicker: that is its owner now
        delivery = choose.chosen
    if tools is not None or isinstance(delivery, Decide | Resolve):
        kernel = await fold_run(entry.run, journal)
        delivery = await Declared.of(policies, tools).apply(delivery, kernel)
    number = await journal.post(run_id, delivery)
    give_up = time.monotonic() + within
    while (receipt := await journal.answered(number)) is None:
        if time.monotonic() >= give_up:
            raise Unanswered(
                f"run {run_id!r}: its owner {entry.owner or 'somebody'} has not answered post"
                f" {number} in {within:g} s; it is kept, and answered once that process goes on"
            )
        await asyncio.sleep(POLL)
    if PROBLEM in receipt:
        raise JournalError(
            f"run {run_id!r}: its owner could not read post {number} ({receipt[PROBLEM]}): nothing"
            " has happened; deliver it again, with the turnlock that the owner has"
        )
    if UNFIT in receipt:
        raise BadArguments(**receipt[UNFIT])
    return Submitted(delivery=delivery, receipt=dict(receipt), by_owner=True)


async def _entry_to_write(journal: Journal, run_id: str) -> RunEntry:
    """Return a run's entry. Raises `JournalRewound` for one that nobody may write."""
    entry = await journal.entry(run_id)
    if entry.rewound is not None:
        raise rewound(run_id, why=entry.rewound)
    return entry


class _Choice:
    """Chooses one delivery, and remembers what was chosen last."""

    def __init__(self, delivery: Delivery | Callable[[Kernel], Delivery]) -> None:
        self._delivery = delivery
        self.chosen: Delivery

    def __call__(self, kernel: Kernel) -> tuple[Delivery]:
        given = self._delivery
        self.chosen = given if isinstance(given, Delivery) else given(kernel)
        return (self.chosen,)


UNFIT: Final = "unfit"
"""The field of a receipt that says what is wrong with a delivery that was not judged."""


def receipt_of_unfit(error: InvalidValue) -> dict[str, Any]:
    """Return the receipt of a delivery that was not judged: place, cause and fix."""
    wrong = {"place": error.place, "cause": error.cause, "fix": error.fix}
    return {"accepted": False, UNFIT: wrong, "facts": []}


def receipt_of(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as the wire writes it, without the effects: those are the owner's."""
    written: dict[str, Any] = {"accepted": isinstance(verdict, Accepted)}
    if verdict.reason is not None:
        written["reason"] = str(verdict.reason)
    return {**written, "facts": [write(fact) for fact in verdict.facts]}
