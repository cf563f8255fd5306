"""What the system shows of processes: which one a pid is, whether it lives, what came of it.

A pid is used again, a pid with its moment of start is not, as long as the machine runs. All of it
is read from /proc; where there is none (anything but Linux), nothing is known and nothing proved.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import attrs

UNKNOWN: Final = "-"
"""Stands where nobody can tell."""
FIRST_NAMESPACE: Final = "4026531836"
"""The pid namespace that a machine starts with: who is in it is in no container."""

_PROC: Final = Path("/proc")
_ENDED: Final = frozenset("ZXx")
"""The states of a process that has ended, and was not yet waited for."""
_THREADS: Final = 17
_START: Final = 19


@attrs.frozen
class Process:
    """A process that lived when it was looked for, and no other one that gets its pid later."""

    pid: int
    started: str


def boot() -> str:
    """Return what tells this run of the kernel from any other; "-" where nobody can tell."""
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text("ascii").strip() or UNKNOWN
    except OSError:
        return UNKNOWN


def time_line() -> str | None:
    """Return what processes share that count alike: the boot and the time namespace, if known."""
    known = boot()
    if known == UNKNOWN:
        return None
    try:
        namespace = (_PROC / "self/ns/time").readlink().name
    except OSError:  # a kernel without them: there is but one
        namespace = ""
    return f"{known}/{namespace.partition('[')[2].rstrip(']')}"


def namespaces() -> str:
    """Return the numbers of our namespaces; unknown where /proc shows another one's processes."""
    try:
        if (_PROC / "self").readlink().name != str(os.getpid()):
            return UNKNOWN
        links = [(_PROC / "self/ns" / name).readlink().name for name in ("pid", "time")]
    except OSError:
        return UNKNOWN
    return ".".join(link.partition("[")[2].rstrip("]") for link in links)


def started_at(pid: int) -> str | None:
    """Return when a process started, in clock ticks since the boot; None where it is not shown."""
    stat = _stat(pid)
    return stat[_START] if stat else None


def has_ended(pid: int) -> bool:
    """Whether a process is shown as ended, or not at all."""
    stat = _stat(pid)
    return not stat or stat[0] in _ENDED


def is_at_rest(pid: int) -> bool:
    """Whether a process is shown as ended with all its threads, though not yet waited for."""
    stat = _stat(pid)
    return bool(stat) and stat[0] in _ENDED and int(stat[_THREADS]) <= 1


def nobody_has(pid: int) -> bool:
    """Ask the kernel itself: /proc may hide the processes of others."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def members(group: int) -> tuple[Process, ...]:
    """Return the processes of a group that live."""
    return tuple(process for process, _, its_group in _living() if its_group == group)


def descendants(pid: int) -> tuple[Process, ...]:
    """Return the living processes that a process has started, and those that these have.

    One whose parent has ended is not found: it is a child of nobody's that we know.
    """
    children: dict[int, list[Process]] = {}
    for process, parent, _ in _living():
        children.setdefault(parent, []).append(process)
    found: list[Process] = []
    at = [pid]
    while at:
        below = children.pop(at.pop(), [])
        found += below
        at += [child.pid for child in below]
    return tuple(found)


def lives(process: Process) -> bool:
    """Whether it is this process that has its pid, and has not ended."""
    return started_at(process.pid) == process.started and not has_ended(process.pid)


def signal_to(process: Process, number: int) -> bool:
    """Send a signal to this process, never to another that has got its pid; False: it is gone."""
    try:
        handle = os.pidfd_open(process.pid)
    except OSError:
        return False
    try:
        if not lives(process):
            return False
        with suppress(PermissionError):
            signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)
    return True


def _living() -> Iterator[tuple[Process, int, int]]:
    """Yield each process that lives, with its parent and its group."""
    for place in _PROC.glob("[0-9]*"):
        stat = _stat(int(place.name))
        if stat and stat[0] not in _ENDED:
            yield Process(int(place.name), stat[_START]), int(stat[1]), int(stat[2])


def _stat(pid: int) -> list[str]:
    """Return what the kernel shows of a process, from its state on; nothing where it is hidden."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text("utf-8", "replace")
    except OSError:
        return []
    return stat.rpartition(")")[2].split()  # the command's name before it may hold anything
