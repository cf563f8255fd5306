"""One machine for several lives: its clocks, which may go wrong, and who sees whether who lives."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from unittest import mock

import attrs

from turnlock.runtime import leases, ownership
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.scheduling import Clock

from ..virtual import LoopClock
from .life import Life, Step
from .world import World


@attrs.frozen(kw_only=True)
class ClockNemesis:
    """What happens to time at some moment."""

    ahead: float = 0.0
    """Seconds that the wall clock is set: whoever begins after that reads it."""
    asleep: float = 0.0
    """Seconds that the machine sleeps: its timers stand still, and the clock does not."""


class Machine:
    """Where lives are lived.

    `sees`: whether processes can look at each other; `agrees`: whether a clock that nobody sets is
    kept beside the journal, and all count by that.
    """

    def __init__(self, *, sees: bool = True, agrees: bool = True) -> None:
        self._sees = sees
        self._agrees = agrees
        self.slept = 0.0
        self._ahead = 0.0

    def clock(self, _number: int) -> Clock | None:
        """The clock of a process that begins now; None: it counts by the journal's."""
        return None if self._agrees else _ClockOf(self, ahead=self._ahead)

    def journal(self) -> MemoryJournal:
        """A journal on this machine."""
        return _JournalOf(_ClockOf(self, ahead=0.0)) if self._agrees else MemoryJournal()

    def suffers(self, nemesis: ClockNemesis, *, when: Step) -> None:
        """Have this happen when a life comes to this step."""

        def strikes() -> None:
            self._ahead += nemesis.ahead
            self.slept += nemesis.asleep

        when.then = strikes

    @contextmanager
    def seen(self, world: World, *lives: Life) -> Generator[None]:
        """Let processes see each other, by the names of owners."""
        known = {life.owner: life for life in lives}

        def is_alive(owner: str | None) -> bool:
            life = known.get(owner or "") if self._sees else None
            return life is not None and not life.dead and life.number not in world.over

        def is_dead(owner: str | None) -> bool:
            return self._sees and owner in known and not is_alive(owner)

        with (
            mock.patch.object(leases, "is_alive", is_alive),
            mock.patch.object(leases, "is_dead", is_dead),
            mock.patch.object(ownership, "is_dead", is_dead),
        ):
            yield


class _JournalOf(MemoryJournal):
    """A journal that has a clock."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    @property
    def clock(self) -> Clock:
        return self._clock


class _ClockOf(LoopClock):
    """The wall clock as a process found it, and how long the machine has run since, asleep too."""

    def __init__(self, machine: Machine, *, ahead: float) -> None:
        self._machine = machine
        self._ahead = ahead

    def now(self) -> float:
        return super().now() + self._ahead + self._machine.slept
