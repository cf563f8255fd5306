"""All that a guard does, in one loop: its face, for threads and the loops of others, stands on it.

Each method is a few visits of one run (`visits`), and what it calls for is a pure function each:
`opening`, `claiming`, `deciding`, `looking`. What is left here takes time: to wait for a call that
another runs, to find out who has died, and to renew the leases of what is held.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Self, TypeVar, cast

from ..engine.kernel import Kernel
from ..models.calls import Call
from ..models.deliveries import Claim, Match, Report, Resolution, Scope
from ..models.errors import TurnlockError, UnknownRun
from ..models.ids import idempotency_key
from ..models.values import ABSENT, Absent, Json
from ..runtime.declared import Declared
from ..runtime.errors import Closed
from ..runtime.journal.contract import Journal, open_journal
from ..runtime.log import logger
from ..runtime.owners import Worker, new_owner
from ..runtime.scheduling import Clock, SteadyClock
from ..runtime.tools.policy import Policy
from ..views.call_view import CallView
from .claiming import Claimed, Claiming, is_running, outcome_of, refused_by_run, unknown
from .deciding import Deciding, Resolving
from .doubting import Losing
from .errors import GuardRefused, Stale
from .holding import Held, Holding
from .looking import Looking, pending
from .obstacles import Obstacles, Workers
from .once import ONCE
from .opening import Opening
from .past import Past
from .renewing import Renewals
from .reporting import Reporting
from .settings import Settings, check_policy
from .values import Abandons, At, Look, Outcome, PendingApproval
from .visits import Chooses, Step, Visit, Visits

__all__ = ["Engine", "Held"]

_log = logger(__name__)
T = TypeVar("T")

FIRST_LOOK: Final = 0.02
"""Seconds after which a call that another runs is looked at again, first."""
LONGEST_LOOK: Final = 0.5
"""Seconds between two looks at a call that another runs: doubled each time."""
TRIES: Final = 3
"""Times that something is chosen for a run whose kernel has refused what was chosen before."""
CLOSING: Final = 5.0
"""Seconds in which what is held is said to be lost, when an engine closes."""


class Engine:
    """The guard of the runs of one journal; all of it runs in the loop that opened it."""

    def __init__(self, journal: Journal, settings: Settings, *, clock: Clock | None = None) -> None:
        """Hold nothing; the journal is closed with it."""
        self._journal = journal
        self._lease = settings.lease
        self._wait = settings.wait
        self._policies = dict(settings.policies)
        self._visits = Visits(
            journal,
            policies=self._policies,
            limits=settings.limits,
            clock=clock or journal.clock or SteadyClock(),
            patience=settings.patience,
        )
        self._worker = Worker(journal=journal, meaning=new_owner())
        self._workers = Workers(journal)
        self._holding = Holding()
        self._renewals = Renewals(self._holding, self._visits, self._worker.name)
        self._obstacles = Obstacles(
            self._visits,
            self._workers,
            self._holding,
            own=self._worker.name,
            policies=self._policies,
        )
        self._works: set[asyncio.Task[Any]] = set()
        self._closed = False

    @classmethod
    async def open(cls, place: str | os.PathLike[str], settings: Settings) -> Self:
        """Open the journal that a path or a URL names; it is made where there is none."""
        return cls(await open_journal(place), settings)

    async def open_turn(
        self,
        run: str,
        turn: str,
        calls: Sequence[Call],
        *,
        after: str | None,
        abandons: Abandons,
    ) -> None:
        """Open a turn with the calls of one answer of the model; done before, it changes nothing.

        Raises `Differs` for other calls than it was opened with, `Forked` where another answer
        came, and what keeps the turn before from being closed: `StillRunning`, `InDoubt`, with
        `Abandons.NOTHING` also `NotApproved`.
        """
        opening = Opening(run=run, turn=turn, calls=calls, after=after, abandons=abandons)
        await self._brought_about(At(run, turn, ""), opening, declare=True)

    async def open_alone(self, at: At, call: Call, *, policy: Policy | None) -> None:
        """Open the one turn of a run of one call, see `open_turn`.

        `policy` stands over that of the tool, this one time: what either says of approval holds.
        """
        if policy is not None:
            check_policy(policy, place="policy")
            call = await Declared.of({call.tool_name: policy}, None).gated(call)
        await self.open_turn(at.run, ONCE, (call,), after=None, abandons=Abandons.NOTHING)

    async def claim(
        self,
        at: At,
        tool: str,
        arguments: Mapping[str, Json],
        *,
        policy: Policy | None = None,
    ) -> Outcome[Json] | Held:
        """Claim a call: whoever holds it runs it. What has ended is replayed instead.

        What another runs is waited for. `policy` stands over that of the tool, this one time; what
        it says of approval comes too late. Cancelled, it leaves nothing claimed. Raises
        `NotApproved`, `StillRunning`, `InDoubt`, `Differs` and `Stale`.
        """
        self._check_open()
        policy = policy or self._policies.get(tool)
        claiming = Claiming(
            at=at,
            tool=tool,
            arguments=arguments,
            worker=self._worker.name,
            policy=policy,
            lease=self._lease if policy is None else policy.lease,
        )
        await self._worker.make_known()
        loop = asyncio.get_running_loop()
        until, pause = loop.time() + self._wait, FIRST_LOOK
        while True:
            found = await self._claimed(claiming)
            if isinstance(found, GuardRefused):
                raise found
            if not isinstance(found, CallView):
                return found
            if await self._obstacles.mended(found, again=True, policy=policy):
                continue
            runs = is_running(found) or self._holding.runs(found)
            if not runs or loop.time() + pause > until:
                raise await self._obstacles.refusal(found)
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_LOOK)

    async def succeeded(self, held: Held, result: Json, *, acknowledge: bool = False) -> None:
        """Record what it returned, which is plain JSON.

        With `acknowledge` the results of its turn are taken, too, if it is the last of them: so
        that a run of one call ends. Raises `Stale` where somebody has said meanwhile that something
        else became of it.
        """
        await self._told(held, _report(held, result=result), acknowledge=acknowledge)

    async def failed(self, held: Held, error: str, *, acknowledge: bool = False) -> None:
        """Record that it has failed, and how. Raises as `succeeded` does."""
        report = _report(held, error=error or "it failed, and did not say how")
        await self._told(held, report, acknowledge=acknowledge)

    async def lost(self, held: Held) -> None:
        """Let go of it: nobody knows whether it happened."""
        await self._let_go(held, Losing(held.at, held.attempt))

    async def never_began(self, held: Held) -> None:
        """Let go of it: it surely never began, and whoever comes next may run it."""
        try:
            await self._let_go(held, Losing(held.at, held.attempt, began=False))
        except BaseException:
            self._holding.ends(held.key, unknown=True)  # said when it is met again
            raise

    async def decide(  # noqa: PLR0913 - what a decision says
        self,
        at: At,
        *,
        approved: bool,
        digest: str,
        by: str | None = None,
        reason: str | None = None,
        arguments: Mapping[str, Json] | None = None,
        scope: Scope = Scope.ONCE,
        match: Match = Match.EXACT,
    ) -> None:
        """Approve or deny a call; the same decision again changes nothing.

        Raises `Differs` for another digest than was shown, `DecidedOtherwise` where another
        decision was there first, and `Stale` for a call that is over or unknown.
        """
        deciding = Deciding(
            at=at,
            approved=approved,
            digest=digest,
            by=by,
            reason=reason,
            arguments=arguments,
            scope=scope,
            match=match,
        )
        await self._brought_about(at, deciding)

    async def resolve(
        self,
        at: At,
        resolution: Resolution,
        *,
        result: Json | Absent = ABSENT,
        error: str | None = None,
    ) -> None:
        """Say what became of a call in doubt; said again, it changes nothing.

        Raises `StillRunning` for one that a living process runs, `DecidedOtherwise` for one that
        has ended otherwise, and `Stale`.
        """
        resolving = Resolving(at=at, resolution=resolution, result=result, error=error)
        await self._brought_about(at, resolving)

    async def waiting(self, run: str) -> tuple[PendingApproval, ...]:
        """Return the calls of a run that wait for a decision, in expected order."""
        try:
            return await self._about(At(run, None, ""), pending)
        except Stale:
            return ()

    async def look(self, at: At) -> Look:
        """Return where a call stands. Raises `Stale` where there is none."""
        found = await self._about(at, Looking(at))
        if isinstance(found, Stale):
            raise found
        call = found.call
        return Look(
            at=found.at,
            tool=call.tool_name,
            phase=call.phase,
            digest=call.arguments_digest,
            outcome=outcome_of(call) if call.ended else None,
            worker=await self._workers.name(found.worker),
            since=call.since,
            attempt=call.attempt,
        )

    async def close(self) -> None:
        """Lose what is held, and close the journal. Closing twice is harmless."""
        if self._closed:
            return
        self._closed = True
        self._renewals.stop()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSING):
                if self._works:
                    await asyncio.wait(self._works)
                for held in self._holding:
                    with suppress(TurnlockError):
                        await self._let_go(held, Losing(held.at, held.attempt))
        await self._journal.close()

    async def _claimed(self, claiming: Claiming) -> Claimed | Held:
        """Claim once. Cancelled, nothing is left claimed."""
        work = self._surely(self._claim(claiming))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            given_back = self._surely(self._unwanted(work))
            while not given_back.done():  # however often it is cancelled: patience bounds it
                with suppress(asyncio.CancelledError):
                    await asyncio.wait({given_back})
            raise

    async def _claim(self, claiming: Claiming) -> Claimed | Held:
        begun: set[Any] = set()

        def choose(kernel: Kernel, past: Past) -> Step[Claimed]:
            step = claiming(kernel, past)
            for claim in step.deliveries:
                begun.add(self._holding.begins(cast("Claim", claim)))
            return step

        unknown_ = True
        try:
            call = await self._about(claiming.at, choose)
            unknown_ = False
            if not isinstance(call, CallView) or not call.owed:
                return call
            held = Held(
                at=At(call.run_id, call.turn_id, call.invocation_id),
                tool=call.tool_name,
                arguments=call.arguments or {},
                attempt=call.owed,
                idempotency_key=idempotency_key(call.path),
                policy=claiming.policy,
                lease=claiming.lease,
                renewed=asyncio.get_running_loop().time(),
            )
            self._holding.takes(held)
            self._renewals.go_on(held)
            return held
        finally:
            for key in begun:
                self._holding.ends(key, unknown=unknown_)

    async def _unwanted(self, work: asyncio.Task[Claimed | Held]) -> None:
        """Give back what was claimed for somebody who was cancelled."""
        held = await work
        if isinstance(held, Held):
            await self.never_began(held)

    async def _told(self, held: Held, report: Report, *, acknowledge: bool) -> None:
        """Have an outcome recorded, whether or not the caller waits for it: it ran."""
        reporting = Reporting(at=held.at, report=report, acknowledge=acknowledge)
        visit = await asyncio.shield(self._surely(self._let_go(held, reporting)))
        reason = visit.reasons[0] if visit.reasons else None
        refused = visit.answer if reason is None else reporting.refused(reason)
        if refused is not None:
            raise refused

    async def _let_go(self, held: Held, choose: Chooses[T]) -> Visit[T]:
        """Say the last word about a claim; whatever comes of that, it is not renewed any more."""
        try:
            return await self._visits.visit(held.at.run, choose)
        finally:
            self._holding.lets_go(held)

    async def _brought_about(
        self, at: At, choose: Chooses[CallView | GuardRefused | None], *, declare: bool = False
    ) -> None:
        """Visit its run until that holds which is chosen there; raise what is in the way of it."""
        while (found := await self._about(at, choose, declare=declare)) is not None:
            if isinstance(found, GuardRefused):
                raise found
            if not await self._obstacles.mended(found, again=False):
                raise await self._obstacles.refusal(found)

    async def _visit(self, run: str, choose: Chooses[T], *, declare: bool = False) -> Visit[T]:
        self._check_open()
        return await self._visits.visit(run, choose, declare=declare)

    async def _about(self, at: At, choose: Chooses[T], *, declare: bool = False) -> T:
        """Visit the run of a call, and return what was said there.

        What is chosen fits the run as it is, so the kernel refuses it only where time has passed
        since: then it is chosen again. Raises `Stale` where there is no such run, or no end of it.
        """
        refused = 0
        while True:
            try:
                visit = await self._visit(at.run, choose, declare=declare)
            except UnknownRun as error:
                raise unknown(at) from error
            if visit.reason is None:
                return visit.answer
            refused += 1
            if refused == TRIES:
                raise refused_by_run(at, visit.reason)

    def _check_open(self) -> None:
        if self._closed:
            raise Closed("this guard was closed; open another")

    def _surely(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Have something done to its end, whoever waits for it."""
        task = asyncio.get_running_loop().create_task(work)
        self._works.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._works.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waits for it gets it


def _report(held: Held, *, result: Json | Absent = ABSENT, error: str | None = None) -> Report:
    return Report(
        run_id=held.at.run,
        turn_id=held.at.turn,
        invocation_id=held.at.call,
        attempt=held.attempt,
        result=result,
        error=error,
    )
