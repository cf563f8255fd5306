"""Deliveries from processes that perform nothing: they are judged here, or by the run's owner.

`submit` has one delivery judged, whoever owns the run; `SharedRun` is for many processes that write
one run which nobody owns: each appends where the run still ends as it has read it. No tool is run
here: what a delivery brings is left to whoever opens the run next.
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
from ..models.verdicts import Accepted, Verdict
from .correlating import Correlating
from .declared import Declared
from .errors import Conflict, JournalError, JournalOwned, RunFenced
from .journal.contract import PROBLEM, Journal, RunEntry, rewound
from .leases import is_owned, put_out, time_of_takers
from .scheduling import Clock, SteadyClock, retried
from .tools.errors import BadArguments
from .tools.policy import Policy
from .tools.toolbox import Toolbox
from .writer import Judged, RunWriter, correlate_of, facts_to_snapshot, fold_run

POLL: Final = 0.05
"""Seconds between two looks for an answer, where the journal hears of none …"""
POLL_HEARD: Final = 0.25
"""… and where it does: its hints may be lost (D-51)."""
SNAPSHOT_EVERY: Final = 2_000
"""Facts after which the writers of a shared run keep a snapshot, for whoever opens it next."""


class Unanswered(TurnlockError):
    """A delivery was posted, and its run's owner has not answered yet; it is not lost."""

    def __init__(self, message: str, *, number: int) -> None:
        """Keep the number of the post, by which its answer is found."""
        super().__init__(message)
        self.number = number


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
        self,
        writer: RunWriter,
        *,
        journal: Journal,
        clock: Clock,
        snapped: int = 0,
        snapshot_every: int | None = None,
    ) -> None:
        """Take over what `open` has folded; `snapped` is the sequence of the journal's snapshot.

        It is the journal's and not what was folded here: of writers that come, bring a few facts
        and go, none would ever have brought enough.
        """
        self._writer = writer
        self._journal = journal
        self._clock = clock
        self._snapped = snapped
        self._snapshot_every = snapshot_every
        self._submitting = asyncio.Lock()

    @classmethod
    async def open(  # noqa: PLR0913 - what a writer needs
        cls,
        journal: Journal,
        run_id: str,
        *,
        policies: Mapping[str, Policy] | None,
        tools: Toolbox | None = None,
        clock: Clock | None = None,
        correlating: Correlating | None = None,
        snapshot_every: int | None = None,
    ) -> Self:
        """Fold a run that the journal knows.

        `policies` are what the tools declare, by their names (`Toolbox.policies`): the approval
        that they ask for is added to the calls that are submitted. None where that is not known;
        then no calls can be. By `tools`, where they are given, edited arguments are checked.
        `correlating` finds what facts of a run of another kind are about there (S-63).
        `snapshot_every` are facts, see `SNAPSHOT_EVERY`. Raises `UnknownRun`, and what the journal
        raises.
        """
        clock = clock or journal.clock or SteadyClock()
        entry = await _entry_to_write(journal, run_id)
        kernel = await fold_run(entry.run, journal)
        declared = Declared.of(policies, tools)
        writer = RunWriter(
            kernel,
            journal=journal,
            clock=clock,
            declared=lambda: declared,
            fence=None,
            correlate=await correlate_of(entry.run, journal, correlating),
        )
        return cls(
            writer,
            journal=journal,
            clock=clock,
            snapped=entry.snapped,
            snapshot_every=snapshot_every,
        )

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
            every = self._snapshot_every or SNAPSHOT_EVERY
            due = facts_to_snapshot(self.kernel, every=every)
            if self._writer.kept - self._snapped >= due:
                self._snapped = self._writer.kept
                with suppress(JournalError):  # it only saves time, and the facts are kept
                    await self._journal.keep_snapshot(self._writer.kernel.snapshot(), fence=None)
            return tuple(one.verdict for one in judged)

    async def _attempt(self, choose: Callable[[Kernel], Iterable[Delivery]]) -> Sequence[Judged]:
        """Judge and keep once. Without facts no append has said that nothing was missed: look."""
        writer = self._writer
        if writer.stale:
            await writer.catch_up()
        while True:
            batch = await writer.judge(choose(writer.kernel), unfit=_refuse)
            if batch.facts:
                break
            if not await writer.catch_up():
                return batch.judged
        try:
            await writer.keep(batch)
        except RunFenced as error:
            now = time_of_takers(self._journal, self._clock)
            await put_out(self._journal, writer.run.run_id, now=now)
            raise _Freed(str(error)) from error
        return batch.judged


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
    correlating: Correlating | None = None,
) -> Submitted:
    """Have a delivery judged, by the run's owner if there is one; wait `within` seconds for that.

    It may be given as a function that chooses it from the run as it is: the journal is read once.
    `policies`, `tools` and `correlating` are as in `SharedRun.open`; an owner knows that itself.
    Raises `UnknownRun`, `Unanswered`, `InvalidValue` for calls that are judged here without
    policies, `BadArguments` for edited arguments that the tool does not take, whoever finds that,
    and what the journal raises. What a tool keeps sealed is sealed before it is posted.
    """
    entry = await _entry_to_write(journal, run_id)
    choose = _Choice(delivery)

    async def opened() -> SharedRun:
        return await SharedRun.open(
            journal, run_id, policies=policies, tools=tools, clock=clock, correlating=correlating
        )

    if not is_owned(entry, now=time_of_takers(journal, clock)):
        shared = await opened()
        with suppress(JournalOwned):  # somebody was quicker: that is its owner now
            return await _judged_here(shared, choose)
    elif not isinstance(delivery, Delivery):
        choose((await opened()).kernel)
    posted = choose.chosen
    if tools is not None or isinstance(posted, Decide | Resolve):
        kernel = await fold_run(entry.run, journal)
        posted = await Declared.of(policies, tools).apply(posted, kernel)
    number = await journal.post(run_id, posted)
    give_up = time.monotonic() + within
    while True:
        free = not is_owned(await journal.entry(run_id), now=time_of_takers(journal, clock))
        receipt = await journal.answered(run_id, number)  # it may be the last thing it did
        if receipt is not None:
            break
        if free:  # its owner has let go of it before it saw the post
            with suppress(JournalOwned):
                return await _answered_here(await opened(), posted, journal, number)
        left = give_up - time.monotonic()
        if left <= 0:
            raise Unanswered(
                f"run {run_id!r}: its owner {entry.owner or 'somebody'} has not answered post"
                f" {number} in {within:g} s; it is kept, and answered once that process goes on",
                number=number,
            )
        pause = POLL_HEARD if journal.hears else POLL
        await journal.heard(min(pause, left), answer=number)
    return Submitted(
        delivery=posted, receipt=judged_by_owner(receipt, run_id, number), by_owner=True
    )


async def _judged_here(shared: SharedRun, choose: _Choice) -> Submitted:
    (verdict,) = await shared.submit_chosen(choose)
    return Submitted(delivery=choose.chosen, receipt=receipt_of(verdict), by_owner=False)


async def _answered_here(
    shared: SharedRun, posted: Delivery, journal: Journal, number: int
) -> Submitted:
    """Judge a post that has no owner to answer it.

    Who takes the run at this moment may judge it once more: then it is a duplicate there.
    """
    run_id = shared.kernel.run.run_id
    try:
        submitted = await _judged_here(shared, _Choice(posted))
    except InvalidValue as error:
        raise Unanswered(
            f"run {run_id!r}: its owner has let go of it before it answered post {number}, which"
            f" cannot be judged here: {error}; it is kept, and answered by who has the run next",
            number=number,
        ) from error
    with suppress(JournalError):  # its facts are kept
        await journal.answer(run_id, number, submitted.receipt)
    return submitted


def judged_by_owner(receipt: Mapping[str, Any], run_id: str, number: int) -> dict[str, Any]:
    """Return the answer to a post. Raises what its owner found wrong with the delivery."""
    if PROBLEM in receipt:
        raise JournalError(
            f"run {run_id!r}: its owner could not read post {number} ({receipt[PROBLEM]}): nothing"
            " has happened; deliver it again, with the turnlock that the owner has"
        )
    if UNFIT in receipt:
        raise BadArguments(**receipt[UNFIT])
    return dict(receipt)


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
        if isinstance(delivery, Delivery):
            self.chosen = delivery

    def __call__(self, kernel: Kernel) -> tuple[Delivery]:
        if not isinstance(self._delivery, Delivery):
            self.chosen = self._delivery(kernel)
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
