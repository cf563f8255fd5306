"""The upstream turns of one thread: when they begin, when their responses end, and their ends."""

from __future__ import annotations

from typing import Final, Literal

from .calls import Calls
from .evidence import Ended, Instance, Instances, KernelTurn, Upstream

OVER: Final = 10_000
"""Upstream turns that are remembered as over: what comes late of them begins none (S-33a)."""
KEPT: Final = 8
"""Upstream turns whose executions are remembered after they are over: some run on (S-24)."""
DIED: Final = Ended("died")
SUPERSEDED: Final = Ended("superseded")
"""Another turn has begun, and nothing was said of the end of this one (S-33a)."""


class Turns(Calls):
    """What is known of the upstream turns, and what the kernel is told of them."""

    def __init__(
        self,
        *,
        run_id: str,
        settlement: Literal["response", "turn"],
        worker: str,
        calls_limit: int,
    ) -> None:
        """Begin before any."""
        super().__init__(
            run_id=run_id, settlement=settlement, worker=worker, calls_limit=calls_limit
        )
        self._over: dict[str, None] = {}
        self._kept: dict[str, Instances] = {}
        self._former: Upstream | None = None
        """The one that gave way to the current one, and of whose end nothing was said."""

    @property
    def upstream(self) -> str | None:
        """The upstream turn that goes on."""
        return self.now.turn_id or None

    @property
    def open_turn(self) -> str | None:
        """The id of the kernel's open turn."""
        turn = self.opened
        return None if turn is None or turn.is_over else turn.turn_id

    def instance(self, turn_id: str, name: str) -> Instance | None:
        """Return a call of the kernel that has not ended."""
        return self.named.get((turn_id, name))

    def instances_of(self, upstream: str, item_id: str) -> list[Instance]:
        """Return those with this id, of an upstream turn that may be over."""
        if upstream == self.now.turn_id:
            return self.now.instances.of(item_id)
        kept = self._kept.get(upstream)
        return [] if kept is None else kept.of(item_id)

    def begin(self, upstream: str) -> bool:
        """Take it that an upstream turn goes on; False where it is over already (S-33a)."""
        if upstream == self.now.turn_id:
            return True
        former = self._former
        if upstream in self._over and (former is None or not self._goes_on(former, upstream)):
            return False
        if self.upstream is not None:
            self._end(SUPERSEDED)
        if former is not None and former.turn_id == upstream:
            self.now, former.ended = former, None
            del self._over[upstream], self._kept[upstream]
        else:
            self.now = Upstream(upstream)
        return True

    def _goes_on(self, former: Upstream, upstream: str) -> bool:
        """Whether the former turn is named again, and nothing goes on in the current one.

        A review begins an inner turn that nothing names afterwards; all is said of the outer one.
        """
        return former.turn_id == upstream and all(it.settled for it in self.now.instances)

    def complete(self, upstream: str, status: str) -> None:
        """Take it that an upstream turn is over."""
        if self._former is not None and self._former.turn_id == upstream:
            self._former = None
        if self.begin(upstream):
            self._end(Ended(status))

    def response_ended(self) -> None:
        """Take it that a model response has ended; see `seal_if_over`."""
        if self.current is not None:
            self.current.response_ended = True

    def seal_if_over(self) -> None:
        """Seal the turn of a response that has ended, once each of its calls has (S-31)."""
        turn = self.current
        if turn is None or self._settlement != "response" or not turn.response_ended:
            return
        if turn.members:
            return
        self.current = None
        if turn.opened and turn.takes_calls:
            self.seal(turn)

    def _end(self, ended: Ended) -> None:
        """Bring to its end what an upstream turn leaves open (S-23, S-25, S-26)."""
        self._may_have_run()
        told = -1
        while told != self.now.turns:
            told = self.now.turns
            if self.opened is not None and self.opened.takes_calls:
                self.release()
            turn = self.opened
            if turn is not None and not turn.is_over and self._ends_with(turn, ended):
                self.close(turn, ended)
            self.release()
        self.leave(ended)
        self._former = self.now if ended is SUPERSEDED else None
        self._forget()

    def _ends_with(self, turn: KernelTurn, ended: Ended) -> bool:
        """Whether a turn of the kernel ends now: a dead process leaves none."""
        return turn.upstream is self.now or ended is DIED

    def _may_have_run(self) -> None:
        """Take it that what was only announced may have run (S-23)."""
        for it in self.now.instances:
            if not it.settled and it.is_announced_only:
                it.runs = True

    def _forget(self) -> None:
        """Remember an upstream turn as one that is over."""
        upstream = self.upstream
        if upstream is None:
            return
        for it in self.now.instances:
            self.take_request(it)
        self._kept[upstream] = self.now.instances
        self._over[upstream] = None
        if len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]
        if len(self._over) > OVER:
            del self._over[next(iter(self._over))]
        self.now, self.current = Upstream(""), None

    def process_ended(self) -> None:
        """Bring to its end what a dead process leaves open; what ran is in doubt (S-26)."""
        self._end(DIED)
