"""A process of ours: how it starts, what names it for ever, how it ends (S-47 … S-49, S-54).

It leads a process group of its own. On Linux it has a parent-death signal, which is sent when the
*thread* that started it ends: so it is started by the thread of the event loop, without which
nobody speaks to it, and never by one of a pool. The signal is set by a small program that then
becomes the process, not between fork and exec: there only what is safe beside other threads may be
done. The group's number is kept from reuse by taking the exit code away last.
"""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import attrs

from ...models.errors import TurnlockError, shown
from ...models.safe_text import harmless
from ...runtime.log import logger
from ...runtime.processes import (
    FIRST_NAMESPACE,
    UNKNOWN,
    Process,
    boot,
    descendants,
    is_at_rest,
    lives,
    members,
    namespaces,
    nobody_has,
    signal_to,
    started_at,
)

_log = logger(__name__)

STARTING: Final = 30.0
"""Seconds in which a program is begun."""
TERM_PAUSE: Final = 3.0
"""Seconds between the TERM that asks its group to end, and the KILL that ends it (S-47)."""
KILL_PAUSE: Final = 2.0
"""Seconds that the system has to take away what was killed."""
LOOK: Final = 0.02
"""Seconds from one look to the next, at what nothing tells of."""
LOOKS: Final = 3
"""How often is looked for what it has started, when that starts more meanwhile."""
OURS: Final = "TURNLOCK_"
"""Begins the names of variables that no process of another's gets: tokens are among them."""

_KIND: Final = "codex"
_PARTS: Final = 4
_TOLD: Final = 1_000


class NotStarted(TurnlockError):
    """A process that could not be started; the message says why."""


@attrs.frozen(kw_only=True)
class ProcessName:
    """One process, and none before or after it that has its pid (S-50).

    As text ``codex/<host>/<pid>/<start time>``. The start time is counted since a boot, and a pid
    in a namespace: it names all three, ``<boot>:<namespaces>:<ticks>``.
    """

    host: str
    pid: int
    started: str

    def __str__(self) -> str:
        """Return it as it is kept."""
        return f"{_KIND}/{self.host}/{self.pid}/{self.started}"


@attrs.frozen(kw_only=True)
class Exited:
    """How a process ended."""

    status: int | None
    """Its exit status, or minus the signal that ended it; None where that was not found."""
    left: int = 0
    """How many that it had started could not be ended."""
    said: str = ""
    """The last it wrote to standard error, harmless to look at."""


def name_of(pid: int) -> ProcessName:
    """Return the name of a process that lives, or was not yet waited for."""
    began = ":".join((boot(), namespaces(), started_at(pid) or UNKNOWN))
    return ProcessName(host=this_host(), pid=pid, started=began)


def this_host() -> str:
    """Return the name of this machine, as names of processes have it."""
    return platform.node().replace("/", "_") or UNKNOWN


def read_name(text: str) -> ProcessName | None:
    """Return the process of a name that was kept; None for what is none."""
    parts = text.split("/")
    if len(parts) != _PARTS or parts[0] != _KIND or not parts[2].isdecimal():
        return None
    return ProcessName(host=parts[1], pid=int(parts[2]), started=parts[3])


def is_dead(name: ProcessName | str) -> bool:
    """Whether the process of a name has surely ended: nobody it could be performs anything (S-49).

    It is proved on its own machine alone, never guessed: no process has its pid, or one that
    started at another moment, or it has ended and was not yet waited for; and of its group nobody
    lives: a script that has started the program might be killed alone. A machine that was started
    anew has ended all of it, unless one of the two was in a container: another machine may
    be called the same there.
    """
    known = read_name(name) if isinstance(name, str) else name
    if known is None or known.host in {UNKNOWN, ""} or known.host != this_host():
        return False
    then, where, ticks = (*known.started.split(":"), "", "")[:3]
    now, here = boot(), namespaces()
    if {UNKNOWN, ""} & {then, where, now, here} or not ticks.isdecimal():
        return False
    if then != now:
        return all(it.partition(".")[0] == FIRST_NAMESPACE for it in (where, here))
    if where != here:
        return False
    began = started_at(known.pid)
    if began is not None and began != ticks:
        return True  # no pid is used again while a group is called so
    has_ended = nobody_has(known.pid) if began is None else is_at_rest(known.pid)
    return has_ended and not members(known.pid)


def environment(own: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a process: our own and what is given, but nothing of turnlock's."""
    return {name: it for name, it in {**own, **given}.items() if not name.startswith(OURS)}


class Child:
    """A process that we have started: it can be killed at once, or ended step by step."""

    def __init__(self, process: subprocess.Popen[bytes], *, what: str) -> None:
        """Watch a process that was just started by this thread; `what` is its program."""
        self.process: Final = process
        self.name: Final = name_of(process.pid)
        self.exited: Final = asyncio.Event()
        """Set when it itself has ended, whatever others hold its pipes."""
        self.status: int | None = None
        """How it ended; None while it lives, and where that was not found."""
        self._what = what
        self._heard: list[Callable[[], None]] = []
        self._started: dict[Process, None] = {}
        """What it was seen to have started."""
        self._killed = False
        self._reaped = False
        self._ending: asyncio.Task[Exited] | None = None
        self._loop = asyncio.get_running_loop()
        self._handle: int | None = None
        try:
            self._handle = os.pidfd_open(process.pid)
            self._loop.add_reader(self._handle, self._look)
        except (AttributeError, OSError):  # no system that tells: it is looked at
            self._look_again()

    @classmethod
    async def start(
        cls, command: Sequence[str], *, cwd: str | None, env: Mapping[str, str]
    ) -> Child:
        """Start a program, with these variables alone. Raises `NotStarted`."""
        program = _found(command, cwd, env)
        told, tells = os.pipe()
        try:
            whole = _launched(program, command, tells)
            process = subprocess.Popen(  # noqa: ASYNC220, S603 - returns when it runs; the owner's own
                whole,
                executable=None if whole is not command else program,
                cwd=cwd,
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
                pass_fds=(tells,) if whole is not command else (),
            )
        except (OSError, ValueError) as error:
            os.close(told)
            raise _not_started(program, str(error)) from error
        finally:
            os.close(tells)
        child = cls(process, what=program)
        why = "it was not begun in time"
        try:
            async with asyncio.timeout(STARTING):
                why = await _all_of(told)
        except TimeoutError:
            pass
        except BaseException:
            child.kill()
            child.close_pipes()
            raise
        finally:
            os.close(told)
        if why:
            await child.end(grace=0)
            child.close_pipes()
            raise _not_started(program, why)
        return child

    def when_exited(self, hear: Callable[[], None]) -> None:
        """Have this called once it itself has ended."""
        if self.exited.is_set():
            self._loop.call_soon(hear)
        else:
            self._heard.append(hear)

    def kill(self) -> None:
        """End it at once, with its group and what else it has started (S-49).

        It is stopped first, so that it starts nothing more while that is looked for.
        """
        self._killed = True
        self._signal(signal.SIGSTOP)
        for _ in range(LOOKS):
            new = self._remember()
            if not new:
                break
            for process in new:
                signal_to(process, signal.SIGSTOP)
        self._signal(signal.SIGKILL)
        for process in self._started:
            signal_to(process, signal.SIGKILL)
        if self.exited.is_set() and self._ending is None:
            self._reap()

    async def end(self, *, grace: float) -> Exited:
        """Close its input, wait, ask its group to end, kill it, and what it left (S-47).

        Asked again, it ends but once. Who stops waiting has it killed at once.
        """
        if self._ending is None:
            self._ending = asyncio.create_task(self._end(grace), name=f"end {self.name}")
        try:
            return await asyncio.shield(self._ending)
        except asyncio.CancelledError:
            self.kill()
            raise

    async def _end(self, grace: float) -> Exited:
        self._remember()
        if self.process.stdin is not None:
            self.process.stdin.close()
        if not await self._gone(grace) and not self._killed:
            self._remember()
            self._signal(signal.SIGTERM)
            await self._gone(TERM_PAUSE)
        self.kill()
        await self._gone(KILL_PAUSE)
        left = await self._cleared()
        if left or not self.exited.is_set():
            _log.error("%s: it, or what it has started, cannot be ended", self.name)
        if self.exited.is_set():
            self._reap()
        return Exited(status=self.status, left=left)

    def close_pipes(self) -> None:
        """Let go of its pipes, whoever else holds them."""
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def _signal(self, number: int) -> None:
        """Send a signal to its group, whose number is ours until its exit code is taken away."""
        if not self._reaped:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, number)

    def _remember(self) -> list[Process]:
        """Look for what it has started, while it can be found; return what was not known."""
        found = () if self._reaped else descendants(self.process.pid)
        new = [process for process in found if process not in self._started]
        self._started.update(dict.fromkeys(new))
        return new

    async def _gone(self, within: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self.exited.wait()
        return self.exited.is_set()

    async def _cleared(self) -> int:
        """Wait until nothing lives of what it has started; return how many do nevertheless."""
        until = self._loop.time() + KILL_PAUSE
        while left := self._left():
            if self._loop.time() > until:
                break
            await asyncio.sleep(LOOK)
        return left

    def _left(self) -> int:
        found = {process for process in self._started if lives(process)}
        if not self._reaped:
            found.update(members(self.process.pid))
        return len({process for process in found if process.pid != self.process.pid})

    def _look(self) -> None:
        """See whether it has ended; its exit code stays where it is, and so does its pid."""
        try:
            found = os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:  # the host has its children reaped
            self._reaped = True  # its pid may be another's, and so may the number of its group
            self._has_ended(None)
            return
        if found is not None:
            by_itself = found.si_code == os.CLD_EXITED
            self._has_ended(found.si_status if by_itself else -found.si_status)

    def _look_again(self) -> None:
        self._look()
        if not self.exited.is_set():
            self._loop.call_later(LOOK, self._look_again)

    def _has_ended(self, status: int | None) -> None:
        if self._handle is not None:
            self._loop.remove_reader(self._handle)
            os.close(self._handle)
            self._handle = None
        if self.exited.is_set():
            return
        self.status = status
        self.exited.set()
        for hear in self._heard:
            hear()
        if self._killed and self._ending is None:
            self._reap()

    def _reap(self) -> None:
        """Take its exit code away: from now on its pid may be another's."""
        self._signal(signal.SIGKILL)
        self._reaped = True
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(KILL_PAUSE)


_LAUNCH: Final = """
import ctypes, os, signal, sys
tells = int(sys.argv[2])
try:
    system = ctypes.CDLL(None, use_errno=True)
    if system.prctl(1, int(signal.SIGKILL), 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no parent-death signal")
    if os.getppid() != int(sys.argv[1]):
        os._exit(125)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.set_inheritable(tells, False)
    os.execv(sys.argv[3], sys.argv[4:])
except Exception as error:
    os.write(tells, str(error).encode()[:900])
    os._exit(127)
"""
"""Becomes the program, once it has asked to be killed when its parent ends; says why if it cannot.
Who has lost its parent already was never begun."""


def _launched(program: str, command: Sequence[str], tells: int) -> Sequence[str]:
    """Return what starts a program with a parent-death signal; the command itself elsewhere.

    In a frozen application no interpreter is at hand.
    """
    if sys.platform != "linux" or not sys.executable or getattr(sys, "frozen", False):
        return command
    interpreter = (sys.executable, "-I", "-S", "-c", _LAUNCH)
    return (*interpreter, str(os.getpid()), str(tells), program, *command)


def _found(command: Sequence[str], cwd: str | None, env: Mapping[str, str]) -> str:
    """Return the file of a program, by its name or its path; its directory is one."""
    if cwd is not None and not Path(cwd).is_dir():
        raise NotStarted(f"{harmless(cwd)} is no directory to start in; name one that exists")
    if not command or any("\0" in word for word in command):
        raise NotStarted(
            f"{shown(tuple(command))} is no command; name a program, and its arguments"
        )
    found = shutil.which(command[0], path=env.get("PATH", os.defpath))
    if found is None:
        raise _not_started(command[0], "there is no such program that may be run")
    return str(Path(found).absolute())


def _not_started(program: str, why: str) -> NotStarted:
    return NotStarted(
        f"{harmless(program)} cannot be started ({harmless(why, limit=_TOLD)}); install it, or name"
        " the one that is to be run"
    )


async def _all_of(pipe: int) -> str:
    """Return what is written to a pipe until all who could have closed it."""
    os.set_blocking(pipe, False)
    loop, told = asyncio.get_running_loop(), bytearray()
    while True:
        readable = asyncio.Event()
        loop.add_reader(pipe, readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(pipe)
        data = os.read(pipe, _TOLD)
        if not data:
            return told.decode(errors="replace")
        told += data
