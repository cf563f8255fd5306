"""Who owns runs and claims calls: a name for each runtime, and whether the process behind it lives.

The name of an owner is never used twice. A claim names its worker by an opaque id (F-6), which
stands for the owner: who takes a run over has to know whether that was a runtime, which is gone or
fenced by then (K-34, K-35), so the journal keeps the owner's name before the first claim is made.
In facts of older versions the worker is that name itself. What a dead runtime ran is lost;
executors of other makes keep their claims until the lease is over.

A lease keeps two processes from performing one run. After a crash nobody wants to wait for it; but
to take a run from a living process would put its running tools in doubt (the fence keeps the
journal whole either way). So a lease is cut short only on proof, never on a guess:

- The name holds the kernel's boot, the pid and time namespaces, the pid and the moment the process
  started. Only within the same boot and namespaces do we look at the pid at all: another
  container's pid 7 is not ours, and after a restart of the machine nothing is known of the other.
- Gone is a pid that no process has, or whose process started at another moment: pids are used
  again, a pid with its moment of start is not. A process that we may not look at is not gone, nor
  is one that has ended and was not yet waited for.
- Alive is a pid whose process started at that moment and has not ended. It may be stopped, or hang.
- Where there is no /proc of our own (anything but Linux), nothing is proved: wait for the lease.
"""

from __future__ import annotations

import asyncio
import os
import platform
import secrets
from typing import TYPE_CHECKING, Final

from ..models.workers import OLDER, OPAQUE
from .processes import UNKNOWN, boot, has_ended, namespaces, nobody_has, started_at

if TYPE_CHECKING:  # it is below: its clocks and its guard ask who lives
    from .journal.contract import Journal

OWNER_PREFIX: Final = OLDER
"""Begins the name of every owner."""


def new_owner() -> str:
    """Return a name for an owner in this process that no other has."""
    return f"{OWNER_PREFIX}{this_process()}"


def was_ours(worker: str | None) -> bool:
    """Whether this is what a worker of a runtime stands for, this one or one before."""
    return worker is not None and worker.startswith(OWNER_PREFIX)


def is_dead(owner: str | None) -> bool:
    """Whether this is a runtime whose process has surely ended: nobody waits for its lease."""
    return owner is not None and was_ours(owner) and is_gone(owner.removeprefix(OWNER_PREFIX))


def is_alive(owner: str | None) -> bool:
    """Whether this is a runtime whose process surely lives: it may have its run still."""
    return owner is not None and was_ours(owner) and _lives(owner.removeprefix(OWNER_PREFIX))


def is_ours(owner: str | None) -> bool:
    """Whether this is a runtime of this very process, as far as that can be told."""
    if owner is None or not was_ours(owner):
        return False
    pid = os.getpid()
    return _seen_from_here(owner.removeprefix(OWNER_PREFIX)) == (pid, started_at(pid))


def short_name(owner: str) -> str:
    """Return an owner as people want it: host and process of a runtime, another's whole name."""
    if not was_ours(owner):
        return owner
    return ":".join(owner.removeprefix(OWNER_PREFIX).split(":")[:2])


_PARTS: Final = 6


def this_process() -> str:
    """Return a new owner's name for this process, another one at each call.

    ``host:pid:boot:namespaces:start:nonce``; a person needs the first two.
    """
    host = platform.node().replace(":", "_") or UNKNOWN
    pid = os.getpid()
    start = started_at(pid) or UNKNOWN
    return ":".join((host, str(pid), boot(), namespaces(), start, secrets.token_hex(4)))


def is_gone(owner: str) -> bool:
    """Say whether the process of this name has surely ended; False also where nobody can tell."""
    process = _seen_from_here(owner)
    if process is None:
        return False
    pid, began = process
    start = started_at(pid)
    return nobody_has(pid) if start is None else start != began


def _lives(owner: str) -> bool:
    process = _seen_from_here(owner)
    if process is None:
        return False
    pid, began = process
    return started_at(pid) == began and not has_ended(pid)


def _seen_from_here(owner: str) -> tuple[int, str] | None:
    """Return the pid and the moment of start of an owner that we could see; None for others."""
    parts = owner.split(":")
    if len(parts) != _PARTS or UNKNOWN in parts[1:] or not parts[1].isdecimal():
        return None
    if [boot(), namespaces()] != parts[2:4]:
        return None
    return int(parts[1]), parts[4]


class Worker:
    """The worker of the claims of one runtime."""

    def __init__(self, *, journal: Journal, meaning: str) -> None:
        """Choose an id; `meaning` is what it stands for: the name of the owner."""
        self.name: Final = f"{OPAQUE}{secrets.token_hex(7)}"
        self._meaning = meaning
        self._journal = journal
        self.is_known = False
        """Whether the journal keeps what it stands for: no claim is made before."""
        self._telling = asyncio.Lock()

    async def make_known(self) -> None:
        """Have the journal keep what it stands for, unless it does. Raises `JournalError`."""
        if self.is_known:
            return
        async with self._telling:
            if not self.is_known:
                await self._journal.put_worker(self.name, self._meaning)
                self.is_known = True


async def meaning_of(worker: str | None, journal: Journal) -> str | None:
    """Return what a worker stands for: of one of ours the name of its process; None: not known."""
    if worker is None or was_ours(worker):
        return worker
    return await journal.worker(worker)
