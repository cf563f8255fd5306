"""What the commands of single runs need to know of those that others perform: guards, and worlds.

Nobody owns or performs a guarded run: the process of somebody's framework asks its guard about each
call, and the guard writes; what is decided here it finds in the journal. So no command performs
such a run or forks it, and what is said of it says who goes on.

A member's run is performed by hosts of its world alone (W-3), and its id is the member's: a run
that was removed is refused for ever, so it is removed only once the member has another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import click

from ..guards.values import KIND as GUARD
from ..models.deliveries import Acknowledge
from ..models.effects import Continue
from ..models.reasons import Reason
from ..models.run import Run
from ..models.safe_text import harmless
from ..views.meanings import refused
from .places import Place
from .world_naming import person_in

if TYPE_CHECKING:  # it would load the runtime
    from ..engine.kernel import Kernel
    from ..runtime.journal.contract import Journal, RunEntry

GOES_ON: Final = "its own process goes on by itself"
"""What becomes of a guarded run that was decided about."""
_NAME: Final = 200


def is_guarded(run: Run) -> bool:
    """Whether the process of another framework goes on with a run, by its guard."""
    return run.kind == GUARD


def refuse_guarded(run: Run) -> None:
    """Refuse to perform or fork a guarded run: its own process does, in its framework."""
    if is_guarded(run):
        raise click.UsageError(
            f"run {harmless(run.run_id)!r} is guarded: {GOES_ON}, in its framework; turnlock show,"
            " approve, deny and resolve are for people, and another conversation needs a run of"
            " its own"
        )


async def close_answered(journal: Journal, entry: RunEntry) -> RunEntry:
    """Close what a guarded run has open, where that is only the results of a turn for its model.

    Who would say that they were taken is the next answer of its model, which may never come. It is
    done for a run that is about to be removed.
    """
    from ..runtime.submitting import SharedRun  # noqa: PLC0415 - the runtime loads here

    if not is_guarded(entry.run) or not entry.busy or entry.rewound or entry.problem:
        return entry
    shared = await SharedRun.open(journal, entry.run.run_id, policies={})
    await shared.submit_chosen(_taken)
    return await journal.entry(entry.run.run_id)


def _taken(kernel: Kernel) -> list[Acknowledge]:
    """Return what says that results were taken, where nothing else is under way."""
    if kernel.turn is not None:
        return []
    owed = (it for it in kernel.pending_effects if isinstance(it, Continue))
    return [Acknowledge(turn_id=it.turn_id) for it in owed]


def refuse_member(run: Run) -> None:
    """Refuse to perform or fork a member's run: its world has other ways."""
    from ..world.names import KIND, member_of  # noqa: PLC0415 - the runtime loads here

    member = member_of(run.run_id)
    if run.kind == KIND and member is not None:
        raise click.UsageError(
            f"run {harmless(run.run_id)!r} is that of a member of world {member.world}: turnlock"
            f" world say {member.world} {member.chat} speaks to it, turnlock world run"
            f" {member.world} performs it"
        )


async def refuse_below_worlds(journal: Journal, run_id: str) -> None:
    """Refuse an id for a new run that is below the name of a world: it is for members (W-3)."""
    from ..world.publishing import worlds  # noqa: PLC0415 - as above

    first, slash, _ = run_id.partition("/")
    if slash and any(it.name == first for it in await worlds(journal)):
        raise click.UsageError(
            f"run {harmless(run_id, limit=_NAME)!r} would stand among the members of world"
            f" {harmless(first)}; give it another id"
        )


async def members_in(journal: Journal) -> frozenset[str]:
    """Return the ids of the runs of all who are members of a chat now."""
    from ..world.publishing import worlds  # noqa: PLC0415 - as above

    found: set[str] = set()
    for world in await worlds(journal):
        known = await world.configuration()
        found.update(member.run_id for member in known.all_members())
    return frozenset(found)


def interrupted_member(
    place: Place, run_id: str, *, wait: float, reason: str | None, grace: float
) -> bool:
    """Stop what a member does, its model that speaks as well; False: it is no member's run.

    Where it does nothing that is wrong usage, as for a run without an open turn.
    """
    if place.db is None or "/" not in run_id:
        return False
    from ..world.deciding import Judgement  # noqa: PLC0415 - as above
    from ..world.names import member_of  # noqa: PLC0415 - as above
    from ..world.publishing import World  # noqa: PLC0415 - as above
    from .databases import with_journal  # noqa: PLC0415 - as above

    member = member_of(run_id)
    if member is None:
        return False

    async def work(journal: Journal) -> Judgement | None:
        world = World(journal, member.world)
        if not await world.exists():
            return None
        known = await world.configuration()
        if not known.is_present(member):
            return None
        by = person_in(known)
        return await world.chat(member.chat).interrupt(
            member.agent, reason=reason, by=by, grace=grace, within=wait
        )

    judged = with_journal(place.db, work)
    if judged is None:
        return False
    if judged.reason is Reason.NO_ACTIVE_TURN:
        raise click.UsageError(
            f"{run_id} does nothing now; turnlock world show {member.world} tells what it does"
        )
    if judged.reason is not None:
        told = refused(judged.reason, long=True)
        raise click.ClickException(f"{told} ({run_id}); turnlock explain {judged.reason}")
    click.echo(f"interrupted {run_id}")
    return True


def refuse_over(place: Place, run_id: str) -> None:
    """Refuse to have a call begin in the run of a member that is none any more (section 12).

    A server looks at that itself.
    """
    if place.db is None or "/" not in run_id:
        return
    from ..world.over import is_over  # noqa: PLC0415 - as above
    from .databases import with_journal  # noqa: PLC0415 - as above

    if with_journal(place.db, lambda journal: is_over(journal, run_id), read_only=True):
        told = refused(Reason.NO_ACTIVE_TURN, long=True)
        raise click.ClickException(
            f"{harmless(run_id)} is no member any more: its memory was cleared, its agent is gone,"
            f" or its chat is closed ({told})"
        )


def refuse_members(run_ids: Iterable[str], members: frozenset[str]) -> None:
    """Refuse to remove the runs of members: they could never go on."""
    from ..world.names import member_of  # noqa: PLC0415 - as above

    for run_id in run_ids:
        member = member_of(run_id)
        if run_id in members and member is not None:
            clear = f"turnlock world clear {member.world} {member.chat} {member.agent}"
            raise click.UsageError(
                f"run {harmless(run_id)!r} is that of a member: {clear} has it go on as another"
                " run, then this one may be removed"
            )


async def without_members(journal: Journal, named: Sequence[str] | None) -> Sequence[str] | None:
    """Return what may be removed of what is named; None: of all, where there are no members."""
    members = await members_in(journal)
    if named is not None:
        refuse_members(named, members)
        return named
    if not members:
        return None
    every = [entry.run.run_id async for entry in journal.run_entries()]
    return [run_id for run_id in every if run_id not in members]
