"""Plays stories and mixes, by tasks, coroutines and threads, and judges what came of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator, Sequence
from functools import partial
from typing import Final

import attrs

from turnlock.engine.kernel import Kernel
from turnlock.models.errors import CorruptJournal
from turnlock.verification.errors import HarnessFailed
from turnlock.verification.findings import Finding
from turnlock.verification.subjects.subject import Script

from .event_loop import ControlledLoop
from .histories import History
from .hosts import Awaited, Host, InSteps
from .linearizability import Linearized, Model, linearized
from .schedules import Schedule
from .stories import RUN, Story
from .tasks import Point, run_tasks

TECHNIQUE: Final = "concurrency"


@attrs.frozen
class Played:
    """One execution: who was answered what, and the host as it stands afterwards."""

    history: History
    host: Host


def play_steps(receive: InSteps, story: Story, schedule: Schedule) -> Played:
    """Run the tasks of a story, each receive in steps, as a schedule says."""
    played = Played(History(), Host(RUN, story.before))
    run_tasks([_delivering(played, script, receive) for script in story.tasks], schedule)
    return played


def _delivering(played: Played, script: Script, receive: InSteps) -> Generator[Point, None, None]:
    for delivery in script:
        invoked = played.history.stamp()
        told = yield from receive(played.host, delivery)
        played.history.add(delivery, told, invoked)


def play_awaited(receive: Awaited, story: Story, schedule: Schedule) -> Played:
    """Run the tasks of a story as coroutines of an event loop, in the order of a schedule."""
    played = Played(History(), Host(RUN, story.before))
    ControlledLoop(schedule).run_all([_awaiting(played, script, receive) for script in story.tasks])
    return played


async def _awaiting(played: Played, script: Script, receive: Awaited) -> None:
    for delivery in script:
        await asyncio.sleep(0)  # it came from somewhere
        invoked = played.history.stamp()
        told = await receive(played.host, delivery)
        played.history.add(delivery, told, invoked)


def play_threads(host: Host, scripts: Sequence[Script]) -> Played:
    """Let as many threads as there are scripts deliver at the same time, to their ends."""
    played = Played(History(), host)
    begin = threading.Barrier(len(scripts))
    raised: list[BaseException] = []

    def deliver(script: Script) -> None:
        begin.wait()
        try:
            for delivery in script:
                invoked = played.history.stamp()
                played.history.add(delivery, host.receive(delivery), invoked)
        except BaseException as error:  # noqa: BLE001 - told by the thread that waits for this one
            raised.append(error)

    threads = [threading.Thread(target=partial(deliver, script)) for script in scripts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise HarnessFailed(f"a thread raised {raised[0]!r}") from raised[0]
    return played


def judged(played: Played, before: Script, model: Model) -> tuple[Linearized, Finding | None]:
    """Hold an execution against the specification, from the state that `before` led to.

    Its history must be linearizable, and its journal must recover to the state of its kernel (K-9).
    """
    found = linearized(model, played.history.operations)
    script = [*before, *(operation.delivery for operation in found.order)]
    if found.stuck is not None:
        message = (
            f"no order of the {len(played.history.operations)} concurrent deliveries explains their"
            f" receipts: after the {len(found.order)} that one does, {found.stuck.delivery['type']}"
            " is answered otherwise"
        )
        script.append(found.stuck.delivery)
        return found, _finding(script, message, found.expected, found.stuck.receipt)
    return found, _journal_finding(played.host, script)


def lock_finding(script: Script, by_lock: Model, found: Linearized) -> Finding | None:
    """Hold the order in which a lock was taken against the one that was found without it.

    Two orders that explain the same receipts lead to the same state: their facts are the same.
    """
    if by_lock.moment.state == found.model.moment.state:
        return None
    message = "the order in which the lock was taken does not explain the receipts"
    return _finding(script, message, by_lock.moment.state, found.model.moment.state)


def _journal_finding(host: Host, script: Script) -> Finding | None:
    try:
        recovered = Kernel.recover(host.kernel.run, host.journal)
    except CorruptJournal as error:
        return _finding(script, "the journal was appended out of order", "a recovery", str(error))
    if recovered.snapshot() != host.kernel.snapshot():
        message = "the journal recovers to another state than the kernel's"
        return _finding(script, message, host.kernel.sequence, recovered.sequence)
    return None


def _finding(script: Script, message: str, expected: object, got: object) -> Finding:
    return Finding(
        technique=TECHNIQUE,
        rule="K-9",
        message=message,
        run=RUN,
        script=tuple(script),
        expected=expected,
        got=got,
    )
