"""A fleet, played: hosts that come and go, die and stand still, and what is left in the end."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
import time
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Final

import attrs

from turnlock.runtime.journal.contract import Journal, open_journal

from . import host
from .judge import Case, Recorded, Violation, violations
from .ledger import Began, Event, Heard, Killed, Ledger, Left, Stopped, WentOn, events_of
from .people import People
from .play import Play

ROOT: Final = Path(__file__).resolve().parents[3]
STARTS: Final = 60.0
"""Seconds that a host has to begin on a busy machine."""
AHEAD: Final = (30.0, 0.0, 0.0, -30.0)
"""By how much the clocks of hosts differ, one after the other, in seconds."""


class Nemesis(StrEnum):
    """What happens to a host."""

    KILL = "kill"
    """kill -9; another one comes."""
    STOP = "stop"
    """SIGSTOP for longer than its leases, then SIGCONT."""
    LEAVE = "leave"
    """SIGTERM, as a deployment does; another one comes."""


@attrs.frozen(kw_only=True)
class Fleet:
    """What is to be played."""

    play: Play
    seed: str
    seconds: float
    """For which hosts are disturbed."""
    nemeses: Sequence[Nemesis] = tuple(Nemesis)
    spared: int = 0
    """Hosts to which nothing happens, at any time: so that somebody takes over."""
    within: float = 60.0
    """Seconds after that in which all must be done."""


@attrs.frozen(kw_only=True)
class Played:
    """What a fleet has left behind."""

    violations: Sequence[Violation]
    hosts: int
    happened: dict[str, int]
    """How often hosts were killed, and so on."""
    executions: int
    handed_over: int
    again: int
    """Continuations that were handed over more than once, for reasons that count."""
    facts: int
    decided: int
    resolved: int
    asked_owners: int
    done: float
    """Seconds after which all was done."""

    def named(self, name: str) -> int:
        return sum(it.name == name for it in self.violations)

    def __str__(self) -> str:
        happened = ", ".join(f"{count} {what}" for what, count in self.happened.items())
        return (
            f"{len(self.violations)} violations; {self.hosts} hosts: {happened}; {self.facts}"
            f" facts, {self.executions} executions, {self.handed_over} hand-overs ({self.again}"
            f" again by right), {self.decided} approvals and {self.resolved} doubts decided from"
            f" outside ({self.asked_owners} posts answered by owners), in {self.done:.1f} s"
        )


class _Hosts:
    """The processes."""

    def __init__(self, fleet: Fleet, ledger: Ledger, errors: Path, patience: float) -> None:
        self.fleet = fleet
        self.ledger = ledger
        self.errors = errors
        self.patience = patience
        """Seconds beyond a lease for which whoever takes over waits."""
        self.draw = random.Random(fleet.seed)
        self.begun: list[asyncio.subprocess.Process] = []
        self.living: dict[str, asyncio.subprocess.Process] = {}
        """Those that can be disturbed: they are up, and do not stand still."""
        self.count = 0
        self._later: set[asyncio.Task[None]] = set()

    async def join(self) -> None:
        number, self.count = self.count, self.count + 1
        ahead = AHEAD[number % len(AHEAD)]
        given = (self.fleet.play.written(), str(number), str(ahead))
        with self.errors.open("a") as errors:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-W", "error", "-m", host.__name__, *given),
                cwd=ROOT,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
            )
        self.begun.append(process)
        if process.stdout is None:
            raise AssertionError
        async with asyncio.timeout(STARTS):
            if (await process.stdout.readline()).strip() != host.UP.encode():
                raise AssertionError(self.errors.read_text())
        self.living[f"host-{number}"] = process

    async def disturb(self) -> None:
        """Choose a host and what happens to it, again and again, for the time that there is."""
        lease = self.fleet.play.lease
        until = time.monotonic() + self.fleet.seconds
        try:
            while time.monotonic() < until and self.fleet.nemeses:
                await asyncio.sleep(self.draw.uniform(0.3, 1.2) * lease)
                if len(self.living) > self.fleet.spared:
                    name = self.draw.choice(sorted(self.living))
                    await self.happen(self.draw.choice(self.fleet.nemeses), name)
            await asyncio.sleep(max(0.0, until - time.monotonic()))
        finally:
            await asyncio.gather(*self._later)

    async def happen(self, nemesis: Nemesis, name: str) -> None:
        process = self.living.pop(name)
        lease = self.fleet.play.lease
        since = time.monotonic()
        if nemesis is Nemesis.KILL:
            process.kill()
            await process.wait()
            self.ledger.note(Killed, by=name, since=since)
            self._then(self.draw.uniform(0.0, lease), self.join())
        elif nemesis is Nemesis.LEAVE:
            process.send_signal(signal.SIGTERM)
            self._then(self.draw.uniform(0.0, lease), self.join())
            self._then(0.0, _ended(process))
        else:
            process.send_signal(signal.SIGSTOP)
            while _state(process.pid) != "T":  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.001)
            self.ledger.note(Stopped, by=name, since=since)
            still = self.draw.uniform(1.6, 2.6) * lease + self.patience
            self._then(still, self.go_on(name, process))

    async def go_on(self, name: str, process: asyncio.subprocess.Process) -> None:
        process.send_signal(signal.SIGCONT)
        self.ledger.note(WentOn, by=name)
        self.living[name] = process

    async def end(self) -> None:
        """Ask all to leave."""
        for process in self.living.values():
            process.send_signal(signal.SIGTERM)
        for process in self.living.values():
            await _ended(process)
        self.living.clear()

    def kill(self) -> None:
        """Leave none, whatever happened."""
        for task in self._later:
            task.cancel()
        for process in self.begun:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()

    def _then(self, seconds: float, what: Awaitable[None]) -> None:
        async def later() -> None:
            await asyncio.sleep(seconds)
            await what

        task = asyncio.ensure_future(later())
        self._later.add(task)
        task.add_done_callback(self._later.discard)


async def _ended(process: asyncio.subprocess.Process) -> None:
    async with asyncio.timeout(STARTS):
        await process.wait()


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


async def played(fleet: Fleet) -> Played:
    """Play a fleet, and judge what it has left behind."""
    play = fleet.play
    ledger = play.ledger_of("people")
    began = time.monotonic()
    async with await open_journal(play.url) as journal:
        people = People(play, ledger, journal)
        hosts = _Hosts(fleet, ledger, ledger.path.with_suffix(".errors"), journal.patience)
        async with asyncio.TaskGroup() as group:
            answering = group.create_task(people.answer())
            try:
                await _stories(fleet, people, hosts)
                done = time.monotonic() - began
                await hosts.end()
            finally:
                hosts.kill()
                answering.cancel()
        kept = await recorded(journal)
    events = list(events_of(ledger.path))
    case = Case(events=events, journal=kept, turns=dict.fromkeys(play.ids, play.turns))
    return _told(case, people, hosts=hosts.count, done=done)


async def _stories(fleet: Fleet, people: People, hosts: _Hosts) -> None:
    play = fleet.play
    await asyncio.gather(*(hosts.join() for _ in range(play.hosts)))
    ours = shares(play)
    async with asyncio.TaskGroup() as group:
        others = [run_id for run_id in play.ids if run_id not in ours]
        group.create_task(people.open_runs(others, seconds=0.8 * fleet.seconds))
        group.create_task(hosts.disturb())
    for run_id in ours:  # whoever was to open it may have died before
        await people.open(run_id)
    await people.done(within=fleet.within)


def shares(play: Play) -> Sequence[str]:
    """Return what the hosts open themselves."""
    return [run_id for number in range(play.hosts) for run_id in play.share(number)]


async def recorded(journal: Journal) -> dict[str, Recorded]:
    """Read all that the journal has, from the first fact on."""
    entries = [entry async for entry in journal.run_entries()]
    return {
        entry.run.run_id: Recorded(
            run=entry.run, facts=[fact async for fact in journal.facts(entry.run.run_id)]
        )
        for entry in entries
    }


def _told(case: Case, people: People, *, hosts: int, done: float) -> Played:
    heard = [event.effect for event in case.all(Heard)]
    raised = sum(type(event).__name__ == "Raised" for event in case.events)
    what: dict[str, type[Event]] = {
        "killed": Killed,
        "stopped": Stopped,
        "left": Left,
    }
    return Played(
        violations=violations(case),
        hosts=hosts,
        happened={name: len(list(case.all(kind))) for name, kind in what.items()},
        executions=len(list(case.all(Began))),
        handed_over=len(heard),
        again=len(heard) - len(set(heard)) - raised,
        facts=sum(len(it.facts) for it in case.journal.values()),
        decided=people.decided,
        resolved=people.resolved,
        asked_owners=people.asked_owners,
        done=done,
    )
