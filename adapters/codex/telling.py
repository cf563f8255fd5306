"""What is said of one thread: deliveries about its calls, and the answers to its requests (S-2).

The kernel judges each of them (S-4); nothing here knows what it will say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ...agent.transients import Transient
from ...models.deliveries import Claim, Decide, Delivery, Lose, Reject, Report, Resolution, Resolve
from . import answers
from .evidence import Instance
from .heard import Anomaly, Odd, Permit, Reply
from .items import Outcome
from .messages import Asked, RequestId

REQUESTS: Final = 4_096
"""Requests and messages that are remembered, so that one that is said twice counts once."""
BY_RUNTIME: Final = "runtime"
"""Who decided what nobody here was waited for (S-36)."""
ELSEWHERE: Final = "decided elsewhere: nobody here was waited for"


class Said:
    """What follows from one message, while it is put together."""

    __slots__ = (
        *("deliveries", "messages", "odd", "permits", "replies", "transients", "undeliverable"),
    )

    def __init__(self) -> None:
        """Begin with nothing."""
        self.messages: list[tuple[str, str, str]] = []
        """What was said by the model: its upstream turn, item and text."""
        self.undeliverable: list[tuple[str, str, Mapping[str, str]]] = []
        """Outcomes that nobody waits for: their upstream turn, item, and call."""
        self.deliveries: list[Delivery] = []
        self.permits: list[Permit] = []
        self.replies: list[Reply] = []
        self.transients: list[Transient] = []
        self.odd: list[Odd] = []


class Telling:
    """Says what follows from a message; it is taken with `take_said`."""

    def __init__(self, *, run_id: str, worker: str) -> None:
        """Begin with nothing said."""
        self.said = Said()
        self.run_id: Final = run_id
        self.worker: Final = worker
        self._requests: dict[RequestId, Instance] = {}
        self._seen: dict[RequestId | tuple[str, str], None] = {}
        self._gone: dict[RequestId, None] = {}
        """Requests of which the end was heard, and nothing else."""

    def take_said(self) -> Said:
        """Return what was said since, and begin anew."""
        said, self.said = self.said, Said()
        return said

    def deliver(self, *deliveries: Delivery) -> None:
        """Tell the kernel."""
        self.said.deliveries += deliveries

    def odd(self, anomaly: Anomaly, detail: str) -> None:
        """Tell an anomaly (S-38)."""
        self.said.odd.append(Odd(anomaly=anomaly, detail=detail))

    def is_new(self, request: RequestId | tuple[str, str]) -> bool:
        """Whether a request, or a message, was not said before."""
        if request in self._seen:
            return False
        self._seen[request] = None
        if len(self._seen) > REQUESTS:
            del self._seen[next(iter(self._seen))]
        return True

    # about a call

    def claiming(self, it: Instance) -> Claim:
        """Return the claim that it began; it counts as long as its process lives (S-21, K-57)."""
        return Claim(
            run_id=self.run_id,
            turn_id=it.turn.turn_id,
            invocation_id=it.name,
            attempt=1,
            worker=self.worker,
        )

    def decide_elsewhere(self, it: Instance, *, approved: bool) -> None:
        """Tell that somebody else has decided (S-36)."""
        self.take_request(it)
        self.odd(Anomaly.DECIDED_ELSEWHERE, f"{it.name} was decided without us")
        it.approved, it.decided = approved, True
        self.deliver(
            Decide(
                run_id=self.run_id,
                turn_id=it.turn.turn_id,
                invocation_id=it.name,
                approved=approved,
                reason=ELSEWHERE,
                decided_by=BY_RUNTIME,
            )
        )

    def report(self, it: Instance, outcome: Outcome) -> None:
        """Tell how it ended."""
        told: dict[str, Any] = (
            {"result": outcome.result} if outcome.error is None else {"error": outcome.error}
        )
        self.deliver(
            Report(
                run_id=self.run_id,
                turn_id=it.turn.turn_id,
                invocation_id=it.name,
                attempt=1,
                **told,
            )
        )
        self.end(it)

    def reject(self, it: Instance, error: str) -> None:
        """Tell that it was never started, and end it."""
        self.take_request(it)
        it.rejected = True
        self.say_never_started(it, error)
        self.end(it)

    def say_never_started(self, it: Instance, error: str) -> None:
        """Tell that it was never started; it may have been, just now, by whom we let."""
        self.deliver(
            Reject(run_id=self.run_id, turn_id=it.turn.turn_id, invocation_id=it.name, error=error)
        )

    def lose(self, it: Instance) -> None:
        """Tell that nobody knows what became of it."""
        self.deliver(
            Lose(run_id=self.run_id, turn_id=it.turn.turn_id, invocation_id=it.name, attempt=1)
        )

    def lose_and_resolve(self, it: Instance, error: str) -> None:
        """Tell that nobody will ever know (S-25)."""
        self.take_request(it)
        self.lose(it)
        self.deliver(
            Resolve(
                run_id=self.run_id,
                turn_id=it.turn.turn_id,
                invocation_id=it.name,
                attempt=1,
                resolution=Resolution.ERROR,
                error=error,
            )
        )
        self.end(it)

    def end(self, it: Instance) -> None:
        """Take it that it has ended, as far as is known here."""
        if not it.settled:
            it.settled = True
            it.home.end(it)
            it.turn.members.pop(it.name, None)
            it.turn.live.pop(it.name, None)

    # requests

    def await_answer(self, it: Instance, asked: Asked) -> None:
        """Take it that a request about it waits for an answer of ours."""
        it.asked = asked.method
        if asked.id not in self._gone:
            it.request = asked
            self._requests[asked.id] = it

    def take_request(self, it: Instance) -> Asked | None:
        """Take the request that waits, which nobody answers any more but who takes it."""
        asked, it.request = it.request, None
        if asked is not None:
            self._requests.pop(asked.id, None)
        return asked

    def resolved(self, request: RequestId) -> None:
        """Take it that a request waits no more; unanswered by us, it was decided elsewhere."""
        instance = self._requests.pop(request, None)
        if instance is not None:
            instance.request = None
        elif request not in self._seen:  # it was overtaken by its end
            self._gone[request] = None
            if len(self._gone) > REQUESTS:
                del self._gone[next(iter(self._gone))]

    def refuse(self, instance: Instance, why: str) -> None:
        """Refuse what waits for a decision, as what would run is not what was shown (S-37)."""
        asked = self.take_request(instance)
        if asked is not None:
            self.said.replies.append(answers.decline(asked))
        self.reject(instance, why)
