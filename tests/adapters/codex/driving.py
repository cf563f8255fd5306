"""Plays a recorded transcript through the normaliser and a kernel, and says what broke.

It stands for a server that answers as the recorded client did: `accept` and its kin approve,
`cancel` interrupts. Facts are learnt `lag` messages late, as by a session.
"""

from __future__ import annotations

import gzip
import json
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from turnlock.adapters.codex.answers import ELICITATION, PERMISSIONS_APPROVAL
from turnlock.adapters.codex.heard import Heard, Odd, Permit, Reply
from turnlock.adapters.codex.messages import Asked, Notified, read
from turnlock.adapters.codex.normaliser import Normaliser, thread_of
from turnlock.adapters.codex.refusals import explained
from turnlock.adapters.rest import brought_to_rest, unknown
from turnlock.engine.kernel import Kernel
from turnlock.models.deliveries import Acknowledge, Claim, Decide, Delivery, Interrupt, Report
from turnlock.models.effects import Execute
from turnlock.models.fact import Fact
from turnlock.models.run import Limits, Run
from turnlock.models.verdicts import Refused
from turnlock.runtime.journal.ledger import Note
from turnlock.views.call_view import CallView, Waits
from turnlock.views.live import calls_of

DATA: Final = Path(__file__).parents[2] / "data" / "codex"
OURS: Final = "ours"


@attrs.frozen
class Line:
    """One line of a transcript."""

    direction: str
    message: Any
    raw: bytes


def scenarios() -> list[str]:
    """Return the names of the recorded scenarios."""
    return sorted(it.name.removesuffix(".jsonl.gz") for it in DATA.glob("*.jsonl.gz"))


def lines(name: str) -> list[Line]:
    """Return a recorded scenario."""
    text = gzip.decompress((DATA / f"{name}.jsonl.gz").read_bytes()).decode()
    return [
        Line(it["dir"], it["msg"], json.dumps(it["msg"]).encode())
        for it in map(json.loads, text.splitlines())
    ]


@attrs.define(eq=False)
class Refusal:
    """What the kernel refused, and why that was to be expected."""

    delivery: Delivery
    refused: Refused
    why: str | None


class Driven:
    """One thread: its run, its normaliser, and what waits."""

    def __init__(
        self,
        thread: str,
        *,
        settlement: Any,
        lag: int = 0,
        limit: int = 10_000,
        normaliser: type[Normaliser] = Normaliser,
    ) -> None:
        self.kind = normaliser
        self.kernel = Kernel(Run(run_id=thread, limits=Limits(calls=limit)))
        self.thread = thread
        self.limit = limit
        self.settlement = settlement
        self.normaliser = self.new()
        self.lag = lag
        self.now = 1.0
        self.facts: list[Fact] = []
        self.notes: list[Note] = []
        self.odd: list[Odd] = []
        self.taken: list[Notified | Asked] = []
        self.replies: list[Reply] = []
        self.refusals: list[Refusal] = []
        self.waiting: dict[int | str, Asked] = {}
        """Requests that no reply was given to."""
        self.to_learn: deque[tuple[int, Sequence[Fact]]] = deque()
        self.to_claim: deque[tuple[int, Permit]] = deque()
        self.steps = 0
        self.broken: list[str] = []

    def new(self) -> Normaliser:
        return self.kind(
            run_id=self.thread,
            thread_id=self.thread,
            settlement=self.settlement,
            worker="w1",
            calls_limit=self.limit,
        )

    # judging

    def judge(self, delivery: Delivery, *, ours: bool = False) -> bool:
        verdict = self.kernel.receive(delivery, self.now)
        self.facts += verdict.facts
        if verdict.facts:
            self.to_learn.append((self.steps, verdict.facts))
        if isinstance(verdict, Refused) and not ours:
            self.refusals.append(Refusal(delivery, verdict, explained(delivery, verdict)))
        for owed in self.kernel.pending_effects:
            if isinstance(owed, Execute):
                call = next(
                    c for c in calls_of(self.kernel) if c.invocation_id == owed.invocation_id
                )
                if call.observed:
                    self.broken.append(f"an execute is owed for {owed.invocation_id}")
        return verdict.accepted

    def hear(self, heard: Heard) -> None:
        for note in heard.observations:
            note.encoded(self.thread)
            self.notes.append(note)
        for delivery in heard.deliveries:
            self.judge(delivery)
        self.to_claim += ((self.steps, it) for it in heard.permits)
        self.claim(self.lag // 2)
        for reply in heard.replies:
            self.reply(reply)
        self.odd += heard.odd
        for turn in self.kernel.continuations:
            self.judge(Acknowledge(turn_id=turn.turn_id), ours=True)

    def claim(self, lag: int) -> None:
        """Have the claims judged that were handed out; their answers follow."""
        while self.to_claim and self.to_claim[0][0] + lag <= self.steps:
            _, permit = self.to_claim.popleft()
            if self.judge(permit.claim):
                self.reply(permit.reply)

    def reply(self, reply: Reply) -> None:
        if reply.request not in self.waiting:
            self.broken.append(f"{reply.request!r} was answered twice, or never asked")
        self.waiting.pop(reply.request, None)
        self.replies.append(reply)

    def step(self, heard: Heard | None = None) -> None:
        self.now += 0.01
        self.steps += 1
        if heard is not None:
            self.hear(heard)
        while self.to_learn and self.to_learn[0][0] + self.lag <= self.steps:
            _, facts = self.to_learn.popleft()
            self.hear(self.normaliser.learn(facts, at=self.now))
        self.claim(self.lag // 2)

    # what happens

    def take(self, message: Notified | Asked) -> None:
        self.taken.append(message)
        if isinstance(message, Asked) and message.id not in self.waiting:
            self.waiting[message.id] = message
        self.step(self.normaliser.take(message, at=self.now))

    def answers(self, request: int | str, result: Any) -> None:
        asked = self.waiting.get(request)
        turn = self.kernel.turn
        if asked is None or turn is None:
            return
        call = self.call_of(asked)
        if call is None:
            return
        ids: dict[str, Any] = {"turn_id": call.turn_id, "invocation_id": call.invocation_id}
        if not call.observed:
            self.judge(Claim(attempt=1, worker=OURS, **ids), ours=True)
            self.judge(Report(result=result, **ids), ours=True)
        elif asked.method == PERMISSIONS_APPROVAL:
            self.judge(Decide(approved=bool(result["permissions"]), **ids), ours=True)
        elif asked.method == ELICITATION:
            self.judge(Decide(approved=result["action"] == "accept", **ids), ours=True)
        elif result.get("decision") == "cancel":
            self.interrupt()
        else:
            decline = result.get("decision") in ("decline", "denied")
            self.judge(Decide(approved=not decline, **ids), ours=True)
        self.drain()

    def call_of(self, asked: Asked) -> CallView | None:
        """Find the call that a request is about: an elicitation names none."""
        open_ones = [it for it in calls_of(self.kernel) if it.gated or not it.observed]
        if asked.method == ELICITATION:
            return open_ones[0] if open_ones else None
        names = ("approvalId", "itemId", "callId")
        name = next(it for it in map(asked.params.get, names) if it)
        return next((it for it in open_ones if it.provider_call_id == name), None)

    def interrupt(self) -> None:
        turn = self.kernel.turn
        if turn is not None:
            self.judge(Interrupt(turn_id=turn.turn_id), ours=True)
        self.drain()

    def drain(self) -> None:
        while self.to_learn or self.to_claim:
            self.step()

    def process_ended(self) -> None:
        self.step(self.normaliser.process_ended(at=self.now))
        self.drain()
        for call in calls_of(self.kernel):
            if call.waits is Waits.REPORT and call.observed:
                self.broken.append(f"{call.invocation_id} is STARTED after the process ended")
        for delivery in tuple(brought_to_rest(self.kernel, worker="w2")):
            self.judge(delivery)
        for call in calls_of(self.kernel):
            if call.waits is not Waits.RESOLUTION:
                self.broken.append(f"{call.invocation_id} waits for {call.waits} at rest")
        self.to_learn.clear()
        self.to_claim.clear()

    def begins_anew(self) -> None:
        for call in tuple(calls_of(self.kernel)):
            self.judge(unknown(call, "outcome unknown: the runtime ended"), ours=True)
        self.waiting.clear()
        self.normaliser = self.new()


@attrs.define
class Playing:
    """Plays the lines of one transcript."""

    lag: int = 0
    settlement: Any = None
    limit: int = 10_000
    normaliser: type[Normaliser] = Normaliser
    threads: dict[str, Driven] = attrs.field(factory=dict[str, Driven])
    raw: bool = False
    driven: type[Driven] = Driven

    def line(self, line: Line) -> None:
        if line.direction == "meta":
            self.happens(line.message.get("event"))
        elif line.direction == "c2s":
            self.asks(line.message)
        elif line.direction == "s2c":
            self.says(read(line.raw))

    def happens(self, event: str | None) -> None:
        for driven in self.threads.values():
            if event == "stdout_eof":
                driven.process_ended()
            elif event == "spawn":
                driven.begins_anew()

    def asks(self, message: Any) -> None:
        params = message.get("params", {})
        if message.get("method") == "thread/start":
            self.raw = bool(params.get("experimentalRawEvents"))
        elif message.get("method") == "turn/interrupt":
            thread = self.threads.get(params["threadId"])
            if thread is not None and thread.normaliser.upstream_turn == params["turnId"]:
                thread.interrupt()
        elif "result" in message:
            for driven in self.threads.values():
                if message["id"] in driven.waiting:
                    driven.answers(message["id"], message["result"])

    def says(self, message: object) -> None:
        if not isinstance(message, Notified | Asked):
            return
        thread_id = thread_of(message)
        if thread_id is None:
            return
        if thread_id not in self.threads:
            self.threads[thread_id] = self.driven(
                thread_id,
                settlement=self.settlement or ("response" if self.raw else "turn"),
                lag=self.lag,
                limit=self.limit,
                normaliser=self.normaliser,
            )
        self.threads[thread_id].take(message)


def play(told: Iterable[Line], **how: Any) -> dict[str, Driven]:
    """Play a transcript, and return its threads."""
    playing = Playing(**how)
    for line in told:
        playing.line(line)
    for driven in playing.threads.values():
        driven.drain()
    return playing.threads
