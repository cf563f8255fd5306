"""Hosts that share one kernel among many: as the documents ask, and in ways that are wrong.

What is documented (README): a kernel has one owner at a time; a host with many threads holds one
lock around `receive` and the append to the journal. To see what the lock is good for, a receive is
taken apart here, into reading the state, working on it and writing it back, with a point between
where another may go on: that is what a thread without the lock may meet.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Generator
from typing import TypeAlias

from turnlock.engine.kernel import Kernel, put_state, state_of
from turnlock.models.codec import read, read_delivery
from turnlock.models.facts import Fact
from turnlock.models.run import Run
from turnlock.models.verdicts import Verdict
from turnlock.verification.subjects.kernel import receipt_of
from turnlock.verification.subjects.subject import Raw, Script

from .tasks import Point

Steps: TypeAlias = Generator[Point, None, Raw]
"""A receive in steps; it returns the receipt."""
InSteps: TypeAlias = "Callable[[Host, Raw], Steps]"
Awaited: TypeAlias = "Callable[[Host, Raw], Awaitable[Raw]]"


class Host:
    """One kernel, and the journal that its facts are appended to."""

    def __init__(self, run: Raw, before: Script = ()) -> None:
        """Begin a run, and receive what came before anybody else was there."""
        self.kernel = Kernel(read(Run, run))
        self.journal: list[Fact] = []
        self.held = False
        """The lock of tasks that run in steps: whether one holds it."""
        self.lock = asyncio.Lock()
        """The lock of coroutines."""
        for delivery in before:
            self.receive(delivery)

    def receive(self, delivery: Raw) -> Raw:
        """Receive and append, without giving way."""
        verdict = verdict_of(self.kernel, delivery)
        self.journal += verdict.facts
        return receipt(verdict)


class LockedHost(Host):
    """The documented way for threads: one lock, around the receive and the append."""

    def __init__(self, run: Raw, before: Script = ()) -> None:
        """Begin with the lock free."""
        self._lock = threading.Lock()
        self.taken: list[Raw] = []
        """All deliveries, in the order in which the lock was taken for them."""
        super().__init__(run, before)

    def receive(self, delivery: Raw) -> Raw:
        """Receive and append, behind the lock."""
        with self._lock:
            self.taken.append(delivery)
            return super().receive(delivery)


def verdict_of(kernel: Kernel, delivery: Raw) -> Verdict:
    """Let a kernel judge a delivery of the wire."""
    fields = {name: value for name, value in delivery.items() if name != "now"}
    return kernel.receive(read_delivery(fields), delivery["now"])


def receipt(verdict: Verdict) -> Raw:
    """Return the receipt of a verdict."""
    return receipt_of(verdict.reason, verdict.facts, verdict.effects)


def unlocked(host: Host, delivery: Raw) -> Steps:
    """Receive without any lock: another may come between reading and writing."""
    yield None
    twin = Kernel(host.kernel.run)
    put_state(twin, state_of(host.kernel).clone())
    yield None
    verdict = verdict_of(twin, delivery)
    yield None
    host.kernel = twin
    yield None
    host.journal += verdict.facts
    return receipt(verdict)


def locked(host: Host, delivery: Raw) -> Steps:
    """Receive in the documented way: the lock is held until the facts are appended."""
    yield lambda: not host.held
    host.held = True
    told = yield from unlocked(host, delivery)
    host.held = False
    return told


def appended_late(host: Host, delivery: Raw) -> Steps:
    """Receive behind the lock, and append when it is free again."""
    yield lambda: not host.held
    host.held = True
    verdict = verdict_of(host.kernel, delivery)
    yield None
    host.held = False
    yield None
    host.journal += verdict.facts
    return receipt(verdict)


async def at_once(host: Host, delivery: Raw) -> Raw:
    """Receive and append in one event loop, awaiting nothing between: needs no lock."""
    return host.receive(delivery)


async def awaited_behind_lock(host: Host, delivery: Raw) -> Raw:
    """Receive in the documented way where the append is awaited: behind a lock."""
    async with host.lock:
        return await awaited(host, delivery)


async def awaited(host: Host, delivery: Raw) -> Raw:
    """Receive, and await the append without a lock: others may append before."""
    verdict = verdict_of(host.kernel, delivery)
    await asyncio.sleep(0)
    host.journal += verdict.facts
    return receipt(verdict)
