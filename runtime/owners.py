"""Who owns runs: a name for each runtime, and whether the process behind a name lives.

The name of an owner is never used twice. The worker of the owner's claims stands for it (`workers`;
in facts of older versions it is the name itself), so that they can be told from those of any other
(K-34, K-35). What a dead runtime ran is lost; executors of other makes keep their claims until the
lease is over.

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

import os
import platform
import secrets
from pathlib import Path
from typing import Final

from ..models.workers import OLDER

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


def time_line() -> str | None:
    """Return what processes share that count alike: the boot and the time namespace, if known."""
    known = boot()
    if known == _UNKNOWN:
        return None
    try:
        namespace = (_PROC / "self/ns/time").readlink().name
    except OSError:  # a kernel without them: there is but one
        namespace = ""
    return f"{known}/{namespace.partition('[')[2].rstrip(']')}"


def short_name(owner: str) -> str:
    """Return an owner as people want it: host and process of a runtime, another's whole name."""
    if not was_ours(owner):
        return owner
    return ":".join(owner.removeprefix(OWNER_PREFIX).split(":")[:2])


_PROC: Final = Path("/proc")
_UNKNOWN: Final = "-"
_PARTS: Final = 6
_ENDED: Final = frozenset("ZXx")
"""The states of a process that has ended, and was not yet waited for."""


def this_process() -> str:
    """Return a new owner's name for this process, another one at each call.

    ``host:pid:boot:namespaces:start:nonce``; a person needs the first two.
    """
    host = platform.node().replace(":", "_") or _UNKNOWN
    pid = os.getpid()
    start = _start(pid) or _UNKNOWN
    return ":".join((host, str(pid), boot(), _namespaces(), start, secrets.token_hex(4)))


def is_gone(owner: str) -> bool:
    """Say whether the process of this name has surely ended; False also where nobody can tell."""
    process = _seen_from_here(owner)
    if process is None:
        return False
    pid, began = process
    start = _start(pid)
    return _nobody_has(pid) if start is None else start != began


def _lives(owner: str) -> bool:
    process = _seen_from_here(owner)
    if process is None:
        return False
    pid, began = process
    return _start(pid) == began and _state(pid) not in _ENDED


def _seen_from_here(owner: str) -> tuple[int, str] | None:
    """Return the pid and the moment of start of an owner that we could see; None for others."""
    parts = owner.split(":")
    if len(parts) != _PARTS or _UNKNOWN in parts[1:] or not parts[1].isdecimal():
        return None
    if [boot(), _namespaces()] != parts[2:4]:
        return None
    return int(parts[1]), parts[4]


def boot() -> str:
    """Return what tells this run of the kernel from any other; "-" where nobody can tell."""
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text("ascii").strip() or _UNKNOWN
    except OSError:
        return _UNKNOWN


def _namespaces() -> str:
    """Return the numbers of our namespaces; unknown where /proc shows another one's processes."""
    try:
        if (_PROC / "self").readlink().name != str(os.getpid()):
            return _UNKNOWN
        links = [(_PROC / "self/ns" / name).readlink().name for name in ("pid", "time")]
    except OSError:
        return _UNKNOWN
    return ".".join(link.partition("[")[2].rstrip("]") for link in links)


def _start(pid: int) -> str | None:
    """Return when a process started, in clock ticks since the boot; None where it is not shown."""
    stat = _stat(pid)
    return stat[19] if stat else None


def _state(pid: int) -> str:
    """Return the letter of a process's state; that of an ended one where it is not shown."""
    stat = _stat(pid)
    return stat[0] if stat else "X"


def _stat(pid: int) -> list[str]:
    """Return what the kernel shows of a process, from its state on; nothing where it is hidden."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text("utf-8", "replace")
    except OSError:
        return []
    return stat.rpartition(")")[2].split()  # the command's name before it may hold anything


def _nobody_has(pid: int) -> bool:
    """Ask the kernel itself: /proc may hide the processes of others."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False
