"""The kernel's turns of one thread, and their calls: what is known of them is told (S-21 … S-25).

The kernel's turn is opened at its first call. What cannot be added now, because that turn is being
interrupted or is full, is held, and added to the next one: that it ran is recorded all the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Final, Literal

from ...models.calls import Call
from ...models.deliveries import AddCall, Interrupt, OpenTurn, SealTurn
from ..rest import INTERRUPTED, NEVER
from .evidence import Ended, Instance, KernelTurn, Upstream
from .heard import Anomaly
from .items import Outcome
from .messages import Asked
from .telling import Telling

CALLS: Final = 10_000
"""Calls of one turn of the kernel, as `Limits` has it (K-56)."""
LEFT: Final = 64
"""Upstream turns whose held calls are remembered until the kernel's turn is over."""

BY_POLICY: Final = "declined by the runtime's own policy"
NOT_SHOWN: Final = "declined: what it would change was never shown"
CHANGED: Final = "declined: it was changed after it was shown"
SHARED: Final = "declined: two calls share its id, and the runtime would run the other one"
DECLINED: Final = "the runtime declined it, though it was allowed"
STOPPED: Final = "the runtime ended it before it was let start"
NEVER_LET: Final = "never started: the runtime ended the turn before it was let start"
UNKNOWN: Final = "outcome unknown: the runtime ended the turn without one"
WENT_ON: Final = "outcome unknown: the runtime went on without one"
REASON: Final = "the runtime interrupted the turn"


class Calls(Telling):
    """The kernel's turns, and the calls in them."""

    def __init__(
        self,
        *,
        run_id: str,
        settlement: Literal["response", "turn"],
        worker: str,
        calls_limit: int,
    ) -> None:
        """Begin before any."""
        super().__init__(run_id=run_id, worker=worker)
        self.now = Upstream("")
        """The upstream turn that goes on; "" where none does."""
        self.current: KernelTurn | None = None
        """The turn to which calls are added; it may not have been opened yet."""
        self.opened: KernelTurn | None = None
        """The one that was opened last."""
        self.by_id: dict[str, KernelTurn] = {}
        self.named: dict[tuple[str, str], Instance] = {}
        """Those that were added and whose end is no fact yet, by turn and name."""
        self._settlement: Final = settlement
        self._limit: Final = calls_limit
        self._left: deque[tuple[Upstream, Ended, list[Instance]]] = deque(maxlen=LEFT)
        """What was held when its upstream turn was over."""

    # executions

    def open(self, item_id: str, tool_name: str, arguments: Mapping[str, Any]) -> Instance:
        """Open an instance: something was announced, or is heard of (S-33)."""
        return self.now.instances.open(item_id, tool_name, arguments, self._turn())

    def ask(self, instance: Instance, asked: Asked) -> None:
        """Take it that something is asked for: it waits for an answer of ours."""
        self.await_answer(instance, asked)
        self.express(instance)

    def share(self, item_id: str) -> None:
        """Refuse what waits under an id that two calls have at once (S-37).

        Codex 0.169 keeps one place for both: an answer to one of them decides about the other, so
        that another command would run than the one that was shown.
        """
        if item_id in self.now.shared:
            return
        self.now.shared.add(item_id)
        self.odd(Anomaly.ONE_ID_TWO_CALLS_AT_ONCE, f"{item_id} is the id of two calls at once")
        for it in self.now.instances.live(item_id):
            if it.request is not None and it.observed:
                self.refuse(it, SHARED)
            elif it.permitted and not it.started:
                self.say_never_started(it, SHARED)

    def decline_unasked(self, it: Instance, why: str) -> None:
        """Tell that something was declined of which nobody was asked."""
        it.declined, it.why = True, why
        self.express(it)

    def express(self, it: Instance) -> None:
        """Tell the kernel what is known of an execution, and was not told."""
        if it.settled or it.is_announced_only:
            self._contradicted(it)
        elif it.added or self._add(it):
            self._express(it)

    def _express(self, it: Instance) -> None:
        if it.declined:
            self._declined(it)
        elif it.observed and (it.runs or it.outcome):
            if not it.claimed and not self._claim(it):
                return
            if it.outcome is not None:
                self.report(it, it.outcome)

    def _contradicted(self, it: Instance) -> None:
        ran = it.runs or (it.outcome is not None and it.outcome.shows_start)
        refused = it.denied or it.rejected
        if refused and it.observed and ran and not it.contradicted:
            it.contradicted = True
            self.odd(Anomaly.RAN_THOUGH_DENIED, f"{it.name} ran, and was denied")

    def _claim(self, it: Instance) -> bool:
        """Claim what runs; where nobody here let it, it was decided elsewhere (S-36)."""
        if it.gated and not it.approved:
            if not it.runs and it.outcome is not None and not it.outcome.shows_start:
                self.reject(it, STOPPED)
                return False
            self.decide_elsewhere(it, approved=True)
        it.claimed = True
        self.deliver(self.claiming(it))
        return True

    def _declined(self, it: Instance) -> None:
        if it.claimed:
            self.report(it, Outcome(error=DECLINED))
        elif not it.gated:
            self.reject(it, it.why or BY_POLICY)
        elif it.approved:
            self.reject(it, DECLINED)
        elif not it.decided:
            self.decide_elsewhere(it, approved=False)

    # turns

    def _turn(self) -> KernelTurn:
        """Return the turn to which a call is added, one that may have to be opened yet."""
        turn = self.current
        if turn is not None and turn.calls >= self._limit and turn.takes_calls:
            self.seal(turn)
        if turn is None or not turn.takes_calls:
            turn = self.current = KernelTurn(self.now)
        return turn

    def seal(self, turn: KernelTurn) -> None:
        """Tell that no more calls come."""
        turn.sealed = True
        self.deliver(SealTurn(run_id=self.run_id, turn_id=turn.turn_id))

    def _add(self, it: Instance) -> bool:
        """Add a call; False where it has to be held: the kernel's turn takes none for now."""
        turn = it.turn
        if not turn.takes_calls or turn.calls >= self._limit:
            turn = self._turn()
            it.moves_to(turn)
        if not turn.opened and not self._has_room(turn):
            return False
        self._tell_call(it, turn)
        return True

    def _tell_call(self, it: Instance, turn: KernelTurn) -> None:
        it.gated = it.observed and it.asked is not None and not (it.runs or it.outcome)
        call = Call(
            invocation_id=it.name,
            tool_name=it.tool_name,
            arguments=it.arguments,
            requires_approval=it.gated,
            observed=it.observed,
            provider_call_id=it.item_id,
        )
        if turn.opened:
            self.deliver(AddCall(run_id=self.run_id, turn_id=turn.turn_id, call=call))
        else:
            turn.opened, turn.turn_id = True, turn.upstream.next_id(self._settlement)
            self.opened = self.by_id[turn.turn_id] = turn
            self.deliver(
                OpenTurn(run_id=self.run_id, turn_id=turn.turn_id, calls=(call,), sealed=False)
            )
        turn.calls += 1
        turn.live[it.name] = turn.unknown[it.name] = it
        self.named[turn.turn_id, it.name] = it
        it.added = True

    def _has_room(self, turn: KernelTurn) -> bool:
        """Whether the kernel can have one more turn: the former is over, or is made so.

        Of a former upstream turn only calls of our own are open still: they gave way (S-46).
        """
        former = self.opened
        if former is None or former.is_over:
            return True
        if former.upstream is turn.upstream:
            return False
        for it in tuple(former.live.values()):
            if not it.started:
                self.say_never_started(it, NEVER_LET)
            self.lose_and_resolve(it, WENT_ON)
        self._tell_left()
        return True

    def release(self) -> None:
        """Add what was held, as far as it goes."""
        if self.opened is None or self.opened.is_over:
            self._tell_left()
        for it in tuple(self.now.instances):
            if it.is_held:
                self.express(it)

    # ends

    def close(self, turn: KernelTurn, ended: Ended) -> None:
        """Bring to its end what an upstream turn leaves open in a turn of the kernel (S-25)."""
        if ended.interrupted and not turn.interrupting:
            turn.interrupting = True
            self.deliver(Interrupt(run_id=self.run_id, turn_id=turn.turn_id, reason=REASON))
        for it in tuple(turn.live.values()):
            self._finish(it, ended)
        if not turn.interrupting and not turn.sealed:
            self.seal(turn)

    def _finish(self, it: Instance, ended: Ended) -> None:
        """Bring one call to its end; one of our own is reported by who runs it (S-28)."""
        interrupted, died = it.turn.interrupting, ended.status == "died"
        never = NEVER if died else NEVER_LET
        self.take_request(it)
        if not it.observed:
            if not it.started and not interrupted:
                self.say_never_started(it, never)
        elif not it.claimed:
            if interrupted:
                self.end(it)
            else:
                self.reject(it, never)
        elif ended.status == "completed" and it.process_id is not None:
            self.report(it, Outcome(result={"detached": True, "process_id": it.process_id}))
        else:
            if not it.started and it.permitted:
                self.say_never_started(it, never)
            if died and not interrupted:
                it.turn.doubted = True
                self.lose(it)
                self.end(it)
            else:
                self.lose_and_resolve(it, INTERRUPTED if interrupted else UNKNOWN)

    def leave(self, ended: Ended) -> None:
        """Remember what is held, though its upstream turn is over."""
        self.now.ended = ended
        held = [it for it in self.now.instances if it.is_held and it.ran]
        if held:
            self._left.append((self.now, ended, held))

    def leave_again(self, turn: KernelTurn) -> None:
        """Remember what a turn did not take, where its upstream turn was over meanwhile."""
        ended = turn.upstream.ended
        held = [it for it in turn.unknown.values() if it.ran]
        if ended is not None and held:
            self._left.append((turn.upstream, ended, held))
        turn.unknown.clear()

    def _tell_left(self) -> None:
        """Tell what was held when its upstream turn was over, in a turn of its own."""
        while self._left:
            upstream, ended, held = self._left.popleft()
            for first in range(0, len(held), self._limit):
                turn = KernelTurn(upstream)
                for it in held[first : first + self._limit]:
                    it.moves_to(turn)
                    self._tell_call(it, turn)
                    self._express(it)
                self.close(turn, ended)
