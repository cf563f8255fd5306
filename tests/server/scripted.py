"""An adapter of another runtime with a script: what it says and when is the test's to choose.

Its `pipe` shows what its processes were told, in order. Tools are observed: the runtime starts them
by itself once it was let, or at once where they are free; a question to the user is owned (S-28).
`gates` hold a step until the test opens it, `failing` has it raise.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import attrs

from turnlock.adapters.contract import (
    Announced,
    Capabilities,
    CommandRefused,
    Ending,
    Manifest,
    ModelInfo,
    Question,
    SessionSpec,
    Sink,
    TurnSent,
    UserMessage,
)
from turnlock.adapters.correlation import Correlation
from turnlock.models.calls import Call
from turnlock.models.deliveries import (
    AddCall,
    Claim,
    Lose,
    OpenTurn,
    Report,
    Scope,
    SealTurn,
)
from turnlock.models.effects import Effect, Execute
from turnlock.models.fact import Fact
from turnlock.models.facts import CallAdded, TurnOpened
from turnlock.models.lifecycle_facts import (
    ToolApproved,
    ToolDenied,
    ToolExecutionFailed,
    ToolExecutionSucceeded,
)
from turnlock.models.record import changed
from turnlock.models.values import Json
from turnlock.models.verdicts import Verdict
from turnlock.runtime.journal.ledger import Domain, Note, Noted
from turnlock.server.children import child_id
from turnlock.views.call_view import CallView

KIND: Final = "scripted"
CAN: Final = Capabilities(
    steer=True,
    retry=False,
    edit_arguments=False,
    scopes=(Scope.ONCE, Scope.TURN, Scope.SESSION),
    execution="both",
    settlement="turn",
)
LEASE: Final = 3_600.0
Told: TypeAlias = tuple[str, ...]


@attrs.define
class ScriptedAdapter:
    """A runtime with threads that outlive its processes."""

    kind: str = KIND
    capabilities: Capabilities = CAN
    settings: frozenset[str] = frozenset({"model", "cwd"})
    options: frozenset[str] = frozenset({"colour"})
    keeps_messages: bool = False
    pipe: list[Told] = attrs.field(factory=list[Told])
    specs: list[SessionSpec] = attrs.field(factory=list[SessionSpec])
    """What sessions were begun as."""
    threads: dict[str, list[str]] = attrs.field(factory=dict[str, list[str]])
    """The ids of the messages that each thread holds, by its run."""
    gates: dict[str, asyncio.Event] = attrs.field(factory=dict[str, asyncio.Event])
    failing: dict[str, Exception] = attrs.field(factory=dict[str, Exception])
    sessions: dict[str, ScriptedSession] = attrs.field(factory=dict[str, "ScriptedSession"])
    """The latest of each run."""
    epochs: dict[str, int] = attrs.field(factory=lambda: defaultdict[str, int](int))
    offered: tuple[str, ...] = ("small", "large")
    asked_for_models: int = 0
    living: dict[str, str] = attrs.field(factory=dict[str, str])
    """Why the process of an epoch may live still, by its name."""
    ended: dict[str, Json] = attrs.field(factory=dict[str, Json])
    """What threads keep of items that have ended, by the ids of these."""
    asked_for_evidence: list[str] = attrs.field(factory=list[str])

    async def step(self, name: str, *told: str) -> None:
        """Do one step: held, failing, or told to the process."""
        if name in self.gates:
            await self.gates[name].wait()
        if name in self.failing:
            raise self.failing[name]
        self.pipe.append((name, *told))

    async def models(self, *, reload: bool = False) -> tuple[ModelInfo, ...]:
        """Return what it offers, and count who asks."""
        self.asked_for_models += 1
        if "models" in self.failing:
            raise self.failing["models"]
        return tuple(ModelInfo(name=it, default=it == "small") for it in self.offered)

    async def check(self, spec: SessionSpec) -> SessionSpec:
        """Refuse a model that it has not."""
        if spec.model is not None and spec.model not in self.offered:
            raise CommandRefused("model_unavailable_for_runtime", spec.model)
        return attrs.evolve(spec, model=spec.model or "small")

    async def may_live(self, epoch: Mapping[str, Json]) -> str | None:
        """Say why a process may live still."""
        return self.living.get(str(epoch.get("process")))

    def announced(
        self, manifest: Manifest, notes: Sequence[Noted], facts: Sequence[Fact]
    ) -> Announced | None:
        """Say what was announced in the latest turn, and never added."""
        told = [it.note for it in notes if it.note.kind == "announced"]
        turn_id = told[-1].body["turn"] if told else None
        added = [call for fact in facts for call in calls_in(fact)]
        known = {it.provider_call_id or it.invocation_id for it in added}
        items = [str(it.body["item"]) for it in told if it.body["turn"] == turn_id]
        calls = [observed(item) for item in items if item not in known]
        parts = [it for it in facts if isinstance(it, TurnOpened) and str(turn_id) in it.turn_id]
        part = f"{turn_id}#{len(parts) + 1}" if parts else str(turn_id)
        return Announced(turn_id=part, calls=tuple(calls)) if calls else None

    async def create(self, spec: SessionSpec, sink: Sink) -> ScriptedSession:
        """Start a process, and a thread in it."""
        self.specs.append(spec)
        await self.step("start", spec.run_id)
        self.threads[spec.run_id] = []
        return self._begun(spec, sink)

    async def restore(self, manifest: Manifest, sink: Sink) -> ScriptedSession:
        """Start another process, and resume the thread."""
        spec = manifest.spec
        if spec.run_id not in self.threads:
            raise CommandRefused("runtime_reference_invalid", "there is no such thread")
        self.specs.append(spec)
        await self.step("resume", spec.run_id)
        return self._begun(spec, sink)

    def _begun(self, spec: SessionSpec, sink: Sink) -> ScriptedSession:
        self.epochs[spec.run_id] += 1
        number = self.epochs[spec.run_id]
        made = ScriptedSession(adapter=self, spec=spec, sink=sink, number=number)
        self.sessions[spec.run_id] = made
        return made

    def told(self, *names: str) -> list[Told]:
        """Return what the processes were told of these."""
        return [it for it in self.pipe if it[0] in names]


def observed(item: str, **arguments: Json) -> Call:
    """A call that runs without having been asked for."""
    return Call(
        invocation_id=item,
        tool_name="command",
        arguments=arguments,
        requires_approval=False,
        observed=True,
        provider_call_id=item,
    )


def calls_in(fact: Fact) -> tuple[Call, ...]:
    """The calls that a fact brings."""
    if isinstance(fact, TurnOpened):
        return fact.calls
    return (fact.call,) if isinstance(fact, CallAdded) else ()


@attrs.define(eq=False)
class ScriptedSession:
    """One process, with one thread."""

    adapter: ScriptedAdapter
    spec: SessionSpec
    sink: Sink
    number: int
    thread: str | None = None
    turn: str | None = None
    """The turn that goes on upstream."""
    turns: int = 0
    opened: bool = False
    """Whether the kernel's turn of it was opened."""
    closed: asyncio.Event = attrs.field(factory=asyncio.Event)
    """Set while no turn goes on."""
    asking: set[str] = attrs.field(factory=set[str])
    """What waits for a decision of ours."""
    questions: set[str] = attrs.field(factory=set[str])
    reported: set[str] = attrs.field(factory=set[str])
    """What has an outcome."""
    answered: set[str] = attrs.field(factory=set[str])
    dead: bool = False
    children: dict[str, ScriptedSession] = attrs.field(factory=dict[str, "ScriptedSession"])
    """The threads that it has begun, by their runs."""

    def __attrs_post_init__(self) -> None:
        """Begin without a turn."""
        self.closed.set()

    @property
    def epoch(self) -> Mapping[str, Json]:
        """What its manifest says of the process."""
        return {
            "process": f"scripted/{self.number}",
            "thread_id": self.thread_id,
            "settlement": "turn",
        }

    @property
    def thread_id(self) -> str:
        """The id of its thread."""
        return self.thread or f"thread/{self.spec.run_id}"

    @property
    def at_work(self) -> bool:
        """Whether a turn goes on."""
        return any(it.turn is not None for it in (self, *self.children.values()))

    @property
    def worker(self) -> str:
        """Who claims what is observed."""
        return f"w/{self.spec.run_id}/{self.number}"

    async def settled(self) -> None:
        """Wait until no turn goes on."""
        await self.closed.wait()

    async def send_turn(self, message: UserMessage, *, message_id: str) -> TurnSent:
        """Take a message: it begins a turn, or steers the one that goes on."""
        run_id = self.spec.run_id
        steered = self.turn is not None
        await self.adapter.step("turn", run_id, message_id, message.text)
        self.adapter.threads[run_id].append(message_id)
        if not steered:
            self.turns += 1
            self.turn, self.opened = f"u{self.number}.{self.turns}", False
            self.closed.clear()
        await self.adapter.step("took", run_id, message_id)
        return TurnSent(turn_id=self.turn, steered=steered)

    async def was_sent(self, message_id: str) -> TurnSent | None:
        """Look the message up in the thread."""
        return TurnSent() if message_id in self.adapter.threads[self.spec.run_id] else None

    async def interrupt(self, turn_id: str) -> None:
        """Have the process stop the turn, which it then says."""
        await self.adapter.step("interrupt", turn_id)

    async def stop(self, *, reason: str | None, grace: float) -> bool:
        """Stop what goes on between turns of the kernel."""
        if self.turn is None:
            return False
        await self.adapter.step("interrupt", self.turn)
        await self.completes()
        return True

    async def perform(self, effect: Effect) -> None:
        """Ask the user, where an owned call says so: it is claimed, and waits for the answer."""
        if isinstance(effect, Execute):
            claim = Claim(
                run_id=self.spec.run_id,
                turn_id=effect.turn_id,
                invocation_id=effect.invocation_id,
                attempt=effect.attempt,
                worker=self.worker,
                lease=LEASE,
            )
            await self.sink.hear([], [claim])
            self.questions.add(effect.invocation_id)

    async def taken(self, turn_id: str) -> None:
        """Take results at once."""

    async def learn(self, facts: Sequence[Fact]) -> None:
        """Answer what was decided: an approval is claimed before it is written (S-21, S-42)."""
        for fact in facts:
            if fact.run_id in self.children:
                await self.children[fact.run_id].learn([fact])
            elif isinstance(fact, ToolApproved) and fact.invocation_id in self.asking:
                (verdict,) = await self._claims(fact.turn_id, fact.invocation_id)
                if verdict.reason is None:
                    await self._answer("accept", fact.invocation_id)
            elif isinstance(fact, ToolExecutionSucceeded | ToolExecutionFailed):
                self.reported.add(fact.invocation_id)
            elif isinstance(fact, ToolDenied) and fact.invocation_id in self.asking:
                await self._answer("decline", fact.invocation_id)

    async def _answer(self, answer: str, invocation_id: str) -> None:
        self.asking.discard(invocation_id)
        await self.adapter.step(answer, self.spec.run_id, invocation_id)
        self.answered.add(invocation_id)

    def asks(self, turn_id: str, invocation_id: str) -> bool:
        """Say which calls are questions."""
        return turn_id == self.turn and invocation_id in self.questions

    def unanswered(self) -> Sequence[Question]:
        """Say which wait."""
        turn_id = self.turn or "none"
        return [
            Question(run_id=self.spec.run_id, turn_id=turn_id, invocation_id=it)
            for it in sorted(self.questions - self.reported)
        ]

    async def evidence(self, doubts: Sequence[CallView]) -> Sequence[Report]:
        """Return how items ended that the thread keeps."""
        ended, asked = self.adapter.ended, [call.provider_call_id or "" for call in doubts]
        self.adapter.asked_for_evidence += asked
        return [
            Report(
                run_id=call.run_id,
                turn_id=call.turn_id,
                invocation_id=call.invocation_id,
                attempt=call.attempt,
                result=ended[item],
            )
            for call, item in zip(doubts, asked, strict=True)
            if item in ended
        ]

    def kill(self) -> None:
        """End the process at once."""
        if not self.dead:
            self.dead = True
            self.adapter.pipe.append(("kill", self.spec.run_id))

    async def terminate(self, *, why: str, grace: float) -> Ending:
        """End the process."""
        self.kill()
        return Ending(why=why, exit_status=0)

    async def leave(self) -> None:
        """Hold nothing."""

    # what the process says

    def begins(self, thread: str) -> ScriptedSession:
        """Say that another thread was begun, in which a turn goes on."""
        run_id = child_id(self.spec.run_id, thread)
        made = ScriptedSession(
            adapter=self.adapter,
            spec=attrs.evolve(self.spec, run_id=run_id),
            sink=self.sink.child(thread, settlement="turn"),
            number=self.number,
            thread=thread,
            turn=f"{thread}.{self.number}",
        )
        self.children[run_id] = made
        return made

    async def _claims(self, turn_id: str, invocation_id: str) -> tuple[Verdict, ...]:
        claim = Claim(
            run_id=self.spec.run_id,
            turn_id=turn_id,
            invocation_id=invocation_id,
            attempt=1,
            worker=self.worker,
            lease=LEASE,
        )
        return await self.sink.hear([], [claim])

    async def _adds(self, call: Call) -> tuple[Verdict, ...]:
        """Add a call to the kernel's turn of the one that goes on."""
        turn_id = self.turn or "none"
        note = self.note(Domain.ITEM, "item/started", {"item": call.invocation_id})
        if self.opened:
            added = AddCall(run_id=self.spec.run_id, turn_id=turn_id, call=call)
            return await self.sink.hear([note], [added])
        self.opened = True
        opens = OpenTurn(
            run_id=self.spec.run_id, turn_id=turn_id, calls=(call,), sealed=False, epoch=None
        )
        return await self.sink.hear([note], [opens])

    def note(self, domain: Domain, kind: str, body: Mapping[str, Json]) -> Note:
        """Return an observation, correlated as its own thread has it."""
        about = Correlation(thread_id=self.thread_id, turn_id=self.turn)
        return Note(domain=domain, kind=kind, body=body, at=1.0, correlation=about.body())

    async def announces(self, item: str) -> None:
        """Say that there is an item; it is no start (S-22)."""
        told = {"item": item, "turn": self.turn}
        await self.sink.hear([self.note(Domain.ITEM, "announced", told)], [])

    async def asks_for(self, item: str, **arguments: Json) -> tuple[Verdict, ...]:
        """Ask whether a command may run (S-23)."""
        self.asking.add(item)
        call = Call(
            invocation_id=item,
            tool_name="command",
            arguments=arguments,
            requires_approval=True,
            observed=True,
            provider_call_id=item,
        )
        return await self._adds(call)

    async def runs(self, item: str, **arguments: Json) -> tuple[Verdict, ...]:
        """Say that a command runs that nobody was asked about (S-21)."""
        added = await self._adds(observed(item, **arguments))
        return (*added, *await self._claims(self.turn or "none", item))

    async def runs_again(self, item: str, name: str) -> tuple[Verdict, ...]:
        """Say that a command runs whose id was used before: another instance (S-33)."""
        added = await self._adds(changed(observed(item), invocation_id=name))
        return (*added, *await self._claims(self.turn or "none", name))

    async def questions_user(self, item: str) -> tuple[Verdict, ...]:
        """Ask the user something: we execute that (S-28)."""
        call = Call(invocation_id=item, tool_name="ask", arguments={}, requires_approval=False)
        return await self._adds(call)

    async def ends(self, item: str, result: Json = "done") -> tuple[Verdict, ...]:
        """Say how an item ended."""
        report = Report(
            run_id=self.spec.run_id, turn_id=self.turn, invocation_id=item, result=result
        )
        note = self.note(Domain.ITEM, "item/completed", {"item": item})
        return await self.sink.hear([note], [report])

    async def lost(self, item: str) -> None:
        """Take it that nobody knows what became of an item."""
        lost = Lose(
            run_id=self.spec.run_id, turn_id=self.turn or "none", invocation_id=item, attempt=1
        )
        await self.sink.hear([], [lost])

    async def completes(self) -> None:
        """Say that the turn has ended."""
        turn, self.turn = self.turn, None
        if self.opened and turn is not None:
            self.opened = False
            await self.sink.hear([], [SealTurn(run_id=self.spec.run_id, turn_id=turn)])
        self.closed.set()

    async def dies(self, status: int = 9, words: str = "killed\x1b[0m") -> None:
        """End without having been told to."""
        self.dead = True
        await self.sink.ended(Ending(why="failed", exit_status=status, said=words))
