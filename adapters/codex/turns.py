"""What the kernel is told of one thread: its turns and their calls (S-20 … S-29, S-31, S-32).

The kernel's turn of an upstream turn is opened at its first call. What cannot be added now, because
the kernel's turn is being interrupted or is full, is held, and added to the next one: that it ran
is recorded all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from ...models.calls import Call
from ...models.deliveries import AddCall, Interrupt, OpenTurn, SealTurn
from ..rest import INTERRUPTED, NEVER
from .evidence import Instance, Instances, KernelTurn
from .heard import Anomaly
from .items import Outcome
from .messages import Asked
from .telling import Telling

CALLS: Final = 10_000
"""Calls of one turn of the kernel, as `Limits` has it (K-56)."""
OVER: Final = 10_000
"""Upstream turns that are remembered as over: what comes late of them begins none (S-33a)."""
KEPT: Final = 8
"""Upstream turns whose executions are remembered after they are over: some run on (S-24)."""

BY_POLICY: Final = "declined by the runtime's own policy"
DECLINED: Final = "the runtime declined it, though it was allowed"
STOPPED: Final = "the runtime ended it before it was let start"
NEVER_LET: Final = "never started: the runtime ended the turn before it was let start"
UNKNOWN: Final = "outcome unknown: the runtime ended the turn without one"
WENT_ON: Final = "outcome unknown: the runtime went on without one"
REASON: Final = "the runtime interrupted the turn"


class Turns(Telling):
    """The upstream turns of a thread, and the kernel's."""

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
        self.upstream: str | None = None
        self.instances = Instances()
        self.has_raw = False
        """Whether the upstream turn is told in a raw stream, too."""
        self.unshown: set[str] = set()
        """Patches of the upstream turn that were asked for, and could not be shown (S-37)."""
        self._settlement: Final = settlement
        self._limit: Final = calls_limit
        self.current: KernelTurn | None = None
        """The one to which calls are added; it may not have been opened yet."""
        self._opened: KernelTurn | None = None
        """The one that was opened last."""
        self._count = 0
        """Turns of the kernel that the upstream turn has had."""
        self.by_id: dict[str, KernelTurn] = {}
        self.named: dict[tuple[str, str], Instance] = {}
        """Those that were added and whose end is no fact yet, by turn and name."""
        self._over: dict[str, None] = {}
        self._kept: dict[str, Instances] = {}

    # upstream turns

    @property
    def open_turn(self) -> str | None:
        """The id of the kernel's open turn."""
        turn = self._opened
        return None if turn is None or turn.closed or turn.is_over else turn.turn_id

    def instance(self, turn_id: str, name: str) -> Instance | None:
        """Return a call of the kernel that has not ended."""
        return self.named.get((turn_id, name))

    def begin(self, upstream: str) -> bool:
        """Take it that an upstream turn goes on; False where it is over already (S-33a)."""
        if upstream == self.upstream:
            return True
        if upstream in self._over:
            return False
        if self.upstream is not None:
            self._end(status="superseded")
        self.upstream = upstream
        self.instances = Instances()
        self.has_raw = False
        self.unshown = set()
        self.current = None
        self._count = 0
        return True

    def complete(self, upstream: str, status: str) -> None:
        """Take it that an upstream turn is over."""
        if self.begin(upstream):
            self._end(status=status)

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
            self._seal(turn)

    def instances_of(self, upstream: str, item_id: str) -> list[Instance]:
        """Return those with this id, of an upstream turn that may be over."""
        if upstream == self.upstream:
            return self.instances.of(item_id)
        kept = self._kept.get(upstream)
        return [] if kept is None else kept.of(item_id)

    # executions

    def open(self, item_id: str, tool_name: str, arguments: Mapping[str, Any]) -> Instance:
        """Open an instance: something was announced, or is heard of (S-33)."""
        return self.instances.open(item_id, tool_name, arguments, self._turn())

    def ask(self, instance: Instance, asked: Asked) -> None:
        """Take it that something is asked for: it waits for an answer of ours."""
        self.await_answer(instance, asked)
        self.express(instance)

    def express(self, it: Instance) -> None:
        """Tell the kernel what is known of an execution, and was not told."""
        if it.settled or it.is_announced_only:
            self._contradicted(it)
            return
        if not it.added and not self._add(it):
            return
        if it.declined:
            self._declined(it)
            return
        if not it.observed or not (it.runs or it.outcome):
            return
        if not it.claimed and not self._claim(it):
            return
        if it.outcome is not None:
            self.report(it, it.outcome)

    def _contradicted(self, it: Instance) -> None:
        ran = it.runs or (it.outcome is not None and it.outcome.shows_start)
        if it.denied and it.observed and ran and not it.declined and self.is_new(_ran(it)):
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
            self.reject(it, BY_POLICY)
        elif it.approved:
            self.reject(it, DECLINED)
        else:
            self.decide_elsewhere(it, approved=False)
            self.end(it)

    # turns of the kernel

    def _turn(self) -> KernelTurn:
        """Return the turn to which a call is added, one that may have to be opened yet."""
        turn = self.current
        if turn is not None and turn.calls >= self._limit and turn.takes_calls:
            self._seal(turn)
        if turn is None or not turn.takes_calls:
            turn = self.current = KernelTurn(upstream=self.upstream or "")
        return turn

    def _seal(self, turn: KernelTurn) -> None:
        turn.sealed = True
        self.deliver(SealTurn(run_id=self.run_id, turn_id=turn.turn_id))

    def _add(self, it: Instance) -> bool:
        """Add a call; False where it has to be held: the kernel's turn takes none for now."""
        turn = it.turn
        if not turn.takes_calls or turn.calls >= self._limit:
            turn = self._turn()
            it.turn.members.pop(it.name, None)
            it.turn, turn.members[it.name] = turn, it
        if not turn.opened and not self._has_room(turn):
            return False
        gated = it.observed and it.asked is not None and not it.runs and it.outcome is None
        call = Call(
            invocation_id=it.name,
            tool_name=it.tool_name,
            arguments=it.arguments,
            requires_approval=gated,
            observed=it.observed,
            provider_call_id=it.item_id,
        )
        if turn.opened:
            self.deliver(AddCall(run_id=self.run_id, turn_id=turn.turn_id, call=call))
        else:
            self._open(turn, call)
        turn.calls += 1
        turn.live[it.name] = turn.unknown[it.name] = it
        self.named[turn.turn_id, it.name] = it
        it.added, it.gated = True, gated
        return True

    def _open(self, turn: KernelTurn, call: Call) -> None:
        self._count += 1
        stem = turn.upstream.replace("#", "%23")
        plain = self._settlement == "turn" and self._count == 1
        turn.turn_id = stem if plain else f"{stem}#{self._count}"
        turn.opened = True
        self._opened = self.by_id[turn.turn_id] = turn
        self.deliver(
            OpenTurn(run_id=self.run_id, turn_id=turn.turn_id, calls=(call,), sealed=False)
        )

    def _has_room(self, turn: KernelTurn) -> bool:
        """Whether the kernel can have one more turn: the former is over, or is made so."""
        former = self._opened
        if former is None or former.closed or former.is_over:
            return True
        if former.upstream == turn.upstream:
            return False
        for it in tuple(former.live.values()):
            if it.started:
                self.lose_and_resolve(it, WENT_ON)
            else:
                self.reject(it, NEVER_LET)
        return True

    def release(self) -> None:
        """Add what was held, as far as it goes."""
        for it in tuple(self.instances):
            if not (it.added or it.settled or it.is_announced_only):
                self.express(it)

    # ends

    def _end(self, *, status: str) -> None:
        """Bring to its end what an upstream turn leaves open (S-23, S-25)."""
        interrupted = status == "interrupted"
        for it in tuple(self.instances):
            if not it.settled and it.is_announced_only:
                it.runs = True
        while True:
            turn = self._opened
            before = self._count
            if turn is not None and turn.upstream == self.upstream and not turn.is_over:
                if not turn.interrupting and not turn.sealed:
                    self._release_into(turn)
                self._close(turn, status=status, interrupted=interrupted or turn.interrupting)
            self.release()
            if self._count == before:
                break
        self._forget()

    def _release_into(self, turn: KernelTurn) -> None:
        for it in tuple(self.instances):
            if not (it.added or it.settled or it.is_announced_only) and turn.calls < self._limit:
                self.express(it)

    def _close(self, turn: KernelTurn, *, status: str, interrupted: bool) -> None:
        if interrupted and not turn.interrupting and not turn.sealed:
            turn.interrupting = True
            self.deliver(Interrupt(run_id=self.run_id, turn_id=turn.turn_id, reason=REASON))
        for it in tuple(turn.live.values()):
            self._finish(it, status=status, interrupted=interrupted)
        if not turn.interrupting and not turn.sealed:
            self._seal(turn)

    def _finish(self, it: Instance, *, status: str, interrupted: bool) -> None:
        """Bring one call to its end."""
        if not it.observed:
            if not it.started and not interrupted:
                self.reject(it, NEVER_LET)
            self.take_request(it)
            return
        if not it.claimed:
            if interrupted:
                self.take_request(it)
                self.end(it)
            else:
                self.reject(it, NEVER_LET)
            return
        if status == "completed" and it.process_id is not None:
            self.report(it, Outcome(result={"detached": True, "process_id": it.process_id}))
            return
        self.lose_and_resolve(it, INTERRUPTED if interrupted else UNKNOWN)

    def _forget(self) -> None:
        upstream = self.upstream
        if upstream is None:
            return
        for it in self.instances:
            self.take_request(it)
        self._kept[upstream] = self.instances
        self._over[upstream] = None
        if len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]
        if len(self._over) > OVER:
            del self._over[next(iter(self._over))]
        self.upstream, self.current, self.instances = None, None, Instances()

    def process_ended(self) -> None:
        """Bring to its end what a dead process leaves open; what ran is in doubt (S-26)."""
        for it in tuple(self.instances):
            if not it.settled and it.is_announced_only:
                it.runs = True
        turn = self._opened
        if turn is not None and not turn.is_over and turn.interrupting:
            for it in tuple(turn.live.values()):
                if it.claimed and it.observed:
                    self.lose_and_resolve(it, INTERRUPTED)
                elif it.observed:
                    self.end(it)
        self.release()
        turn = self._opened
        if turn is not None and not turn.is_over and not turn.interrupting:
            for it in tuple(turn.live.values()):
                self._dies(it)
            if not turn.sealed:
                self._seal(turn)
        self._forget()

    def _dies(self, it: Instance) -> None:
        self.take_request(it)
        if it.claimed and it.observed:
            self.lose(it)
            self.end(it)
        elif not it.started:
            self.reject(it, NEVER)


def _ran(it: Instance) -> tuple[str, str]:
    return f"ran though denied {it.turn.turn_id}", it.name
