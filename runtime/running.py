"""What runs in this process of one run, and what is said for it when time has passed at once."""

from __future__ import annotations

import asyncio

from ..engine.kernel import Kernel
from ..models.deliveries import Renew
from ..models.record import changed
from .scheduling import Clock


class Running:
    """The executions of a run that its own writer performs.

    When the clock has gone on and the loop's own has not, the machine slept, or the clock was set.
    An execution was not silent then, and is in no doubt (K-34, K-35): it is renewed before the time
    that has passed is judged. What was silent while the loop's time passed is not: its process was
    awake, and stood still.
    """

    def __init__(self, clock: Clock) -> None:
        """Begin with none."""
        self._clock = clock
        self._renewals: dict[str, Renew] = {}
        self._seen = (0.0, 0.0)
        """The clock, and the loop's own, when something was judged last while anything ran."""

    def begins(self, effect_id: str, renew: Renew) -> None:
        """Know that an execution runs in this process; `renew` is a renewal for its whole lease."""
        if not self._renewals:
            self._seen = self._clock.now(), asyncio.get_running_loop().time()
        self._renewals[effect_id] = renew

    def held_up(self, seconds: float) -> None:
        """Learn that nothing was judged for so long, though something waited: no renewal was.

        That is no silence of what runs here, so it counts as time that has passed at once.
        """
        then, loop_then = self._seen
        self._seen = then, loop_then + seconds

    def is_told(self, effect_id: str) -> None:
        """Forget an execution: it has ended, and what it came to was judged, or never began."""
        self._renewals.pop(effect_id, None)

    def overtaken(self, kernel: Kernel, now: float) -> list[tuple[Renew, float]]:
        """Return the renewals of what would be over at `now` only because time passed at once.

        Each comes with its time: the last at which no deadline was over. Its lease reaches as far
        as one that is given now.
        """
        if not self._renewals:
            return []
        (then, loop_then), loop_now = self._seen, asyncio.get_running_loop().time()
        self._seen = now, loop_now
        awake = then + (loop_now - loop_then)
        at, turn = kernel.earliest_deadline, kernel.turn
        if at is None or now <= at or turn is None:
            return []
        calls = [
            (turn.members.get(renew.invocation_id), renew) for renew in self._renewals.values()
        ]
        return [
            (changed(renew, lease=renew.lease + now - at), at)
            for call, renew in calls
            if call is not None and call.deadline is not None and awake <= call.deadline < now
        ]
