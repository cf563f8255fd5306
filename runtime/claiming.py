"""Claims that are kept together with what asked for them: one wait for the disk, not two (K-9).

Where nothing happens outside between a call's opening, or its approval, and its claim, both are
judged one after the other and kept in one append. Before that, all that the attempt takes to start
is reserved: its slot, its thread, its arguments, prepared. Otherwise a claim could be durable of
what cannot begin, and a crash would leave a doubt about what never ran.

Nothing starts before it is known that the append is durable and the claim was accepted (K-33).
Where the journal does not say, the run is folded anew, and that shows whose the claim is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Self

import attrs

from ..models.deliveries import Claim, Renew
from ..models.effects import Execute
from ..models.verdicts import Accepted
from ..views.call_view import Waits
from ..views.live import call_of
from .reporting import Key, key_of
from .scheduling import Clock
from .slots import Slot
from .tools.calling import ToolContext
from .tools.sealing import Place
from .tools.threads import Lease
from .tools.tool import Tool

if TYPE_CHECKING:
    from .actor import Actor
    from .writer import Judged


@attrs.frozen(eq=False, kw_only=True)
class Reserved:
    """What an attempt starts with whose claim is kept together with what asked for it."""

    claim: Claim
    thread: Lease
    arguments: Mapping[str, Any]
    """As its tool takes them."""
    ours: asyncio.Future[bool]
    """Whether the claim was accepted, and is durable."""


@attrs.define(eq=False, kw_only=True)
class Attempt(Slot):
    """One attempt under way; `context` is None while it waits for a slot: nothing is to cancel."""

    actor: Actor
    effect: Execute
    declared: Tool | None
    """The tool as its run had it when this was asked for; None: there was none."""
    context: ToolContext | None = None
    reserved: Reserved | None = None
    """None: it prepares and claims once it has a slot."""
    runs: bool = False
    claimed: bool = False
    """Whether it may have been claimed: then what it comes to is this process's to tell."""
    why_unknown: str | None = None
    """Why nobody knows what it came to, once that is so."""
    task: asyncio.Task[None] | None = None

    @classmethod
    def of(cls, actor: Actor, effect: Execute, *, start: Callable[[Slot], None]) -> Self:
        """Return the attempt that this effect asks for, bounded as its tool declares."""
        tool = actor.tools.get(effect.tool_name)
        return cls(
            run_id=actor.run.run_id,
            tool=effect.tool_name,
            concurrency=None if tool is None else tool.policy.concurrency,
            sequential=tool is not None and tool.policy.sequential,
            threaded=tool is not None and tool.needs_thread,
            delegates=tool is not None and tool.delegates,
            start=start,
            actor=actor,
            effect=effect,
            declared=tool,
        )

    @property
    def key(self) -> Key:
        """What names it."""
        return key_of(self.effect)


def claim_of(actor: Actor, effect: Execute, tool: Tool, *, worker: str) -> Claim:
    """Return the claim of an attempt, for the lease that its tool declares."""
    return Claim(
        run_id=actor.run.run_id,
        turn_id=effect.turn_id,
        invocation_id=effect.invocation_id,
        attempt=effect.attempt,
        worker=worker,
        lease=tool.policy.lease,
    )


def renewal_of(actor: Actor, effect: Execute, tool: Tool) -> Renew:
    """Return the renewal of an attempt, for its whole lease."""
    return Renew(
        run_id=actor.run.run_id,
        turn_id=effect.turn_id,
        invocation_id=effect.invocation_id,
        attempt=effect.attempt,
        lease=tool.policy.lease,
    )


def place_of(actor: Actor, effect: Execute) -> Place:
    """Return where what an attempt takes and brings is sealed."""
    return Place(actor.run.run_id, effect.turn_id, effect.invocation_id)


def is_owed(actor: Actor, effect: Execute) -> bool:
    """Whether this attempt is ready to be claimed, for all that was judged."""
    turn = actor.kernel.turn
    if turn is None or not key_of(effect).startswith(f"{turn.scope}/"):
        return False
    call = turn.members.get(effect.invocation_id)
    return call is not None and call.owed == effect.attempt


def is_over(actor: Actor, effect: Execute) -> bool:
    """Whether nothing is to be done any more, for all that is known; the claim decides."""
    turn = actor.kernel.turn
    if turn is None or turn.turn_id != effect.turn_id:
        return True
    call = turn.members.get(effect.invocation_id)
    return call is None or call.terminal


def let_in(_: Slot) -> None:
    """Begin nothing: whoever reserves a slot begins what it is for."""


class Reservations:
    """The attempts whose claims are on their way to the disk with what asked for them, by run.

    There is no other batch of their run before these are settled: by `kept` where the append said
    OK, by `folded` where it did not, by `over` where nobody asks any more.
    """

    def __init__(self, *, worker: str, clock: Clock, dropped: Callable[[Attempt], None]) -> None:
        """Begin with none; `worker` claims here, `dropped` is told at once of what won't start."""
        self._worker: Final = worker
        self._clock: Final = clock
        self._dropped: Final = dropped
        self._of: dict[Actor, list[tuple[Attempt, Reserved]]] = {}

    def add(self, attempt: Attempt, reserved: Reserved) -> None:
        """Take what is claimed with the batch that is being judged."""
        attempt.reserved = reserved
        self._of.setdefault(attempt.actor, []).append((attempt, reserved))

    def kept(self, actor: Actor, judged: Iterable[Judged]) -> None:
        """Start what was accepted, now that it is durable."""
        if actor in self._of:
            accepted = {id(one.delivery) for one in judged if isinstance(one.verdict, Accepted)}
            self._settle(actor, lambda _, reserved: id(reserved.claim) in accepted)

    def folded(self, actor: Actor) -> None:
        """Start what was kept after all, as the journal has it."""
        self._settle(actor, lambda attempt, _: self._holds(actor, attempt.effect))

    def over(self, actor: Actor) -> None:
        """Start nothing: what became of the append is not asked here any more."""
        self._settle(actor, lambda _, __: False)

    def _settle(self, actor: Actor, is_ours: Callable[[Attempt, Reserved], bool]) -> None:
        for attempt, reserved in self._of.pop(actor, ()):
            ours = is_ours(attempt, reserved)
            if not ours:
                self._dropped(attempt)
            if not reserved.ours.done():  # else its task was cancelled
                reserved.ours.set_result(ours)

    def _holds(self, actor: Actor, effect: Execute) -> bool:
        """Whether this worker has started this very attempt, and its lease is not over."""
        call = call_of(actor.kernel, turn_id=effect.turn_id, invocation_id=effect.invocation_id)
        return (
            call is not None
            and call.waits is Waits.REPORT
            and f"{call.path}/{call.attempt}" == key_of(effect)
            and call.worker == self._worker
            and (call.deadline is None or self._clock.now() <= call.deadline)
        )
