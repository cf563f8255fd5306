"""Plays recorded transcripts through the normaliser and the kernel: each thread of one is a run.

What the recorded client told its process stands for what people decided: what it answered to a
request is a decision or a result, ``turn/interrupt`` an interrupt, and a message that is sent while
calls are in doubt says that they are to count as failed. What we answer is ours, not the client's,
and goes nowhere but under the eyes of the witness.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from ...engine.kernel import Kernel
from ...models.calls import Call
from ...models.deliveries import Acknowledge, AddCall, Claim, Delivery, Interrupt, OpenTurn
from ...models.effects import Continue, Effect, Execute
from ...models.facts import Fact
from ...models.ids import escape
from ...models.lifecycle_facts import DenialCause
from ...models.run import Run
from ...models.verdicts import Accepted, Refused
from ...runtime.journal.ledger import Note
from ...views.live import call_of, calls_of
from ..contract import Announced
from ..rest import brought_to_rest, unknown
from .demands import Broken, Witness, turn_named, upstream
from .heard import NOTHING, Heard, Reply
from .messages import Answered, Asked, Notified, object_of
from .normaliser import Normaliser, thread_of
from .people import decided, delivered, reported, why_refused
from .played import Breach, Kept, Makes, Normalises, PlayedRun, Refusal, Request
from .refusals import explained
from .restoring import evidence_in, listed_in
from .transcripts import Ended, Settlement, Step, Told, Transcript

KIND: Final = "codex"
NORMALISER: Final = "normaliser"
CLIENT: Final = "client"
EVIDENCE: Final = "evidence"
OURS: Final = "server"
"""Who performs owned calls, and claims what nobody did."""
UNKNOWN: Final = "outcome unknown: the runtime ended"
TURNS: Final = 2
"""Turns that are brought to rest: the one that is open, and one for what does not fit into it."""
ROUNDS: Final = 100
"""How often one message may lead from facts to deliveries and on to facts."""


Announces: TypeAlias = Callable[[Sequence[Fact]], Announced | None]
"""What says which calls were only announced, and are none of these facts (S-23)."""


def _nothing(_: Sequence[Fact]) -> None:
    """Say that nothing was announced."""


class Play:
    """One transcript, played step by step."""

    def __init__(
        self,
        name: str,
        settlements: Mapping[tuple[int, str], Settlement],
        *,
        makes: Makes = Normaliser,
        late: int = 0,
    ) -> None:
        """Begin with no run; the first one is called `name`.

        Facts are learnt `late` messages after they were kept, as a server that is busy has it.
        """
        self.name: Final = name
        self.runs: dict[str, PlayedRun] = {}
        """By thread."""
        self.breaches: list[Breach] = []
        self.unheard = 0
        """Messages that are of no thread."""
        self.broken_off: list[int] = []
        """Where a line was no message, and its process taken for ended (S-13)."""
        self._settlements = settlements
        self._makes = makes
        self._late = late
        self._unlearnt: deque[tuple[int, PlayedRun, tuple[Fact, ...]]] = deque()
        self._requests: dict[tuple[int, str], list[Request]] = {}
        """By process and id, as JSON has it (S-34): those of one run at most, unless ids are used
        again."""
        self._reading: dict[tuple[int, str], PlayedRun] = {}
        """What the client asked of threads that it reads, or resumes."""
        self._dead: set[int] = set()
        self._process = 0
        self._seq = 0
        self._said = 0

    # steps

    def take(self, step: Step) -> None:
        """Play one step; what is of a process that has ended is passed over."""
        if step.process in self._dead:
            return
        self._seq, self._process = step.seq, step.process
        if isinstance(step, Ended):
            self._end(step.at)
        elif isinstance(step, Told):
            self._told(step.message, step.at)
        elif step.message is None:
            self.broken_off.append(step.seq)  # nobody knows what else was lost (S-13)
            self._end(step.at)
        elif isinstance(step.message, Answered):
            self._find_evidence(step.message, step.at)
        else:
            self._hear(step.message, step.at)

    def _hear(self, message: Notified | Asked, at: float) -> None:
        self._said += 1
        while self._unlearnt and self._unlearnt[0][0] <= self._said:
            _, run, facts = self._unlearnt.popleft()
            self._learn(run, facts, at)
        thread = thread_of(message)
        if thread is None:
            self.unheard += 1
            return
        run = self._run(thread)
        run.witness.said(message, self._process)
        try:
            heard = self._normaliser(run).take(message, at=at)
        except Exception as error:  # noqa: BLE001 - whatever it raises would end the run
            self._broken(run, Broken("S-13", f"{message.method} raised {error!r}"))
            return
        if isinstance(message, Asked):
            self._note_request(run, message, heard)
        self._perform(run, heard, at)
        if message.method == "turn/completed":
            self._check_over(run)

    def _end(self, at: float) -> None:
        """End the process: what it left is brought to rest (S-26)."""
        self._dead.add(self._process)
        while self._unlearnt:
            _, run, facts = self._unlearnt.popleft()
            self._learn(run, facts, at)
        for run in self.runs.values():
            normaliser = run.normaliser
            run.witness.process_ended()
            if normaliser is not None:
                try:
                    heard = normaliser.process_ended(at=at)
                except Exception as error:  # noqa: BLE001 - as above
                    self._broken(run, Broken("S-13", f"the end of the process raised {error!r}"))
                    heard = NOTHING
                if heard.permits or heard.replies:
                    self._broken(run, Broken("S-26", "a process that has ended is answered"))
                self._perform(run, heard, at)
                self._all_broken(run, run.witness.rest(run.kernel, alive=True))
            run.normaliser = None
            self.rest(run, at)

    def resume(
        self,
        run: Run,
        thread: str,
        facts: Sequence[Fact],
        *,
        witness: Witness | None = None,
        announced: Announces = _nothing,
    ) -> PlayedRun:
        """Go on with a run as a server left it that died: with what was kept, and at rest.

        `witness` saw what was said until then, `announced` is asked what of that is no fact.
        """
        found = PlayedRun(run, thread, Kernel.recover(run, facts), witness or Witness())
        self.runs[thread] = found
        found.kept.append(Kept((), tuple(facts)))
        found.witness.process_ended()
        deque(found.witness.learnt(facts), maxlen=0)  # they were looked at when they were new
        self.rest(found, facts[-1].at if facts else 0.0, announced=announced)
        return found

    def rest(self, run: PlayedRun, at: float, *, announced: Announces = _nothing) -> None:
        """Bring a run to rest, as the next server does, and look at what is left (S-52)."""
        for owed in run.kernel.continuations:
            self._judged(run, (Acknowledge(turn_id=owed.turn_id),), at)
        for _ in range(TURNS):  # what does not fit into a turn is asked for once that is closed
            left = announced(tuple(run.facts))
            for delivery in brought_to_rest(run.kernel, worker=OURS, announced=left):
                self._judged(run, (delivery,), at)
        self._all_broken(run, run.witness.rest(run.kernel, alive=False))

    # runs

    def _run(self, thread: str) -> PlayedRun:
        found = self.runs.get(thread)
        if found is None:
            run_id = f"{self.name}/{escape(thread)}" if self.runs else self.name
            run = Run(run_id=run_id, kind=KIND)
            found = self.runs[thread] = PlayedRun(run, thread, Kernel(run))
        return found

    def _normaliser(self, run: PlayedRun) -> Normalises:
        if run.normaliser is None:
            run.settlement = self._settlement(run.thread_id)
            run.normaliser = self._makes(
                run_id=run.run.run_id,
                thread_id=run.thread_id,
                settlement=run.settlement,
                worker=f"{KIND}/{self._process}",
            )
        return run.normaliser

    def _settlement(self, thread: str) -> Settlement:
        """Say how turns of a thread are settled; one of a sub-agent is as its parent's (S-56)."""
        known = self._settlements
        parent = next((it for it in known if it[0] == self._process), None)
        return known.get((self._process, thread), known[parent] if parent else "turn")

    def _note_request(self, run: PlayedRun, asked: Asked, heard: Heard) -> None:
        """Note which call a request is about: the one that it adds, or a live one of its item."""
        turn, turn_id, invocation_id = turn_named(asked), None, None
        for delivery in heard.deliveries:
            if isinstance(delivery, OpenTurn | AddCall):
                for call in _calls(delivery):
                    if call.requires_approval or not call.observed:  # others are of other items
                        turn_id, invocation_id = delivery.turn_id, call.invocation_id
        item = asked.params.get("approvalId") or asked.params.get("itemId")
        for live in calls_of(run.kernel) if invocation_id is None else ():
            is_item = item in (live.provider_call_id, live.invocation_id)
            may_be = is_item and (live.gated or not live.observed)
            if may_be and turn in {None, upstream(live.turn_id)}:
                turn_id, invocation_id = live.turn_id, live.invocation_id
        request = Request(run, asked, turn_id, invocation_id)
        known = self._requests.setdefault((self._process, repr(asked.id)), [])
        if not any(it.run is run for it in known):
            known.append(request)

    # what is heard: kept, judged, permitted, answered, in this order

    def _perform(self, run: PlayedRun, heard: Heard, at: float) -> None:
        for _ in range(ROUNDS):
            run.odd += heard.odd
            run.transients += len(heard.transients)
            run.witness.thought_odd(heard.odd)
            facts = list(self._judged(run, heard.deliveries, at, notes=heard.observations))
            for permit in heard.permits:
                before = len(run.refusals)
                facts += self._judged(run, (permit.claim,), at)
                if len(run.refusals) == before:
                    self._write(run, permit.reply)
            for reply in heard.replies:
                self._write(run, reply)
            if not facts or run.normaliser is None:
                return
            if self._late:
                self._unlearnt.append((self._said + self._late, run, tuple(facts)))
                return
            heard = self._learnt(run, facts, at)
        self._broken(run, Broken("S-2", f"facts lead to deliveries for more than {ROUNDS} rounds"))

    def _learn(self, run: PlayedRun, facts: Sequence[Fact], at: float) -> None:
        if run.normaliser is not None:
            self._perform(run, self._learnt(run, facts, at), at)

    def _learnt(self, run: PlayedRun, facts: Sequence[Fact], at: float) -> Heard:
        if run.normaliser is None:
            return NOTHING
        try:
            return run.normaliser.learn(tuple(facts), at=at)
        except Exception as error:  # noqa: BLE001 - as above
            self._broken(run, Broken("S-13", f"learning {facts[0].type} … raised {error!r}"))
            return NOTHING

    def _judged(
        self,
        run: PlayedRun,
        deliveries: Iterable[Delivery],
        at: float,
        *,
        notes: tuple[Note, ...] = (),
        by: str = NORMALISER,
    ) -> tuple[Fact, ...]:
        """Have deliveries judged, and what they owe done; return the facts."""
        facts: list[Fact] = []
        waiting = deque(deliveries)
        while waiting:
            delivery = waiting.popleft()
            verdict = run.kernel.receive(delivery, at)
            facts += verdict.facts
            self._all_broken(run, run.witness.learnt(verdict.facts))
            self._all_broken(run, run.witness.owed(verdict.effects))
            waiting.extendleft(reversed([*self._done(verdict.effects)]))
            turn_id = getattr(delivery, "turn_id", None)
            if isinstance(verdict, Accepted):
                if isinstance(turn_id, str) and by == NORMALISER:
                    run.turns[upstream(turn_id)] = turn_id
            else:
                self._refuse(run, by, delivery, verdict)
        if facts or notes:
            run.kept.append(Kept(notes, tuple(facts)))
        return tuple(facts)

    def _done(self, effects: Iterable[Effect]) -> Iterator[Delivery]:
        """Yield what a server does of effects: continuations are taken, owned calls claimed."""
        for effect in effects:
            if isinstance(effect, Continue):
                yield Acknowledge(turn_id=effect.turn_id)
            elif isinstance(effect, Execute):
                yield Claim(
                    turn_id=effect.turn_id,
                    invocation_id=effect.invocation_id,
                    attempt=effect.attempt,
                    worker=OURS,
                )

    def _asked(self, name: object) -> Request | None:
        """Return the request that a client answers; of a dead process where no other is known."""
        for process in range(self._process, -1, -1):
            known = self._requests.get((process, repr(name)), [])
            waiting = [it for it in known if not it.run.witness.is_answered(process, it.asked)]
            if known:
                return (waiting or known)[0]
        return None

    def _write(self, run: PlayedRun, reply: Reply) -> None:
        known = self._requests.get((self._process, repr(reply.request)), [])
        request = next((it for it in known if it.run is run), None)
        asked = None if request is None else request.asked
        life = None if request is None else request.life
        run.answers.append(reply)
        self._all_broken(run, run.witness.replied(self._process, asked, life, reply))

    def _refuse(self, run: PlayedRun, by: str, delivery: Delivery, verdict: Refused) -> None:
        by_client = by == CLIENT
        why = why_refused(delivery, verdict) if by_client else explained(delivery, verdict)
        run.refusals.append(Refusal(self._seq, by, delivery, verdict, why))

    # what the client did

    def _told(self, message: Mapping[str, Any], at: float) -> None:
        method, params = message.get("method"), object_of(message.get("params"))
        if method is None:
            self._answered(message, at)
            return
        run = self.runs.get(str(params.get("threadId")))
        if run is None:
            return
        if method in {"thread/read", "thread/resume"}:
            self._reading[self._process, repr(message.get("id"))] = run
        elif method == "turn/interrupt":
            self._interrupt(run, str(params.get("turnId")), at)
        elif method == "turn/start":
            doubts = [it for it in calls_of(run.kernel) if it.in_doubt]
            self._client(run, [unknown(it, UNKNOWN) for it in doubts], at)

    def _client(
        self, run: PlayedRun, deliveries: Iterable[Delivery], at: float, *, by: str = CLIENT
    ) -> None:
        facts = self._judged(run, deliveries, at, by=by)
        if not facts:
            return
        if self._late:
            self._unlearnt.append((self._said + self._late, run, facts))
        else:
            self._learn(run, facts, at)

    def _interrupt(self, run: PlayedRun, turn: str, at: float) -> None:
        """Interrupt the kernel's turn of an upstream turn; there is none before its first call."""
        normaliser = run.normaliser
        if normaliser is not None and normaliser.upstream_turn == turn:
            turn_id = normaliser.kernel_turn
        else:
            turn_id = run.turns.get(turn, turn)
        if turn_id is not None:
            self._client(run, [Interrupt(turn_id=turn_id, reason="interrupted by the client")], at)

    def _answered(self, message: Mapping[str, Any], at: float) -> None:
        """Take an answer for what somebody decided, or for the result of an owned call."""
        request = self._asked(message.get("id"))
        if request is None or request.turn_id is None or request.invocation_id is None:
            return  # nobody was asked
        run, life = request.run, request.life
        if life is None:
            return  # its turn takes no calls: nobody was asked
        named = {"turn_id": request.turn_id, "invocation_id": request.invocation_id}
        if not life.call.requires_approval and not life.call.observed:
            self._client(run, [reported(message, **named)], at)
            return
        call = call_of(run.kernel, **named)
        digest = None if call is None else call.arguments_digest
        decision = decided(request.asked.method, message)
        refused = len(run.refusals)
        self._client(run, [delivered(decision, digest=digest, **named)], at)
        if len(run.refusals) == refused:
            self._check_answered(request)

    def _find_evidence(self, answered: Answered, at: float) -> None:
        """Settle doubts by what the runtime has kept of a thread: ends, of ids used once (S-27)."""
        run = self._reading.pop((self._process, repr(answered.id)), None)
        if run is None:
            return
        uses = Counter(it.call.provider_call_id for it in run.witness.lives.values())
        doubts = [
            call
            for call in calls_of(run.kernel)
            if call.in_doubt and call.observed and uses[call.provider_call_id] == 1
        ]
        reports = evidence_in(listed_in(object_of(answered.result)), doubts)
        self._client(run, reports, at, by=EVIDENCE)

    # what must hold

    def _check_answered(self, request: Request) -> None:
        life = request.life
        stopped = life is not None and life.denied is DenialCause.INTERRUPT
        if self._late or life is None or stopped or not (life.approved or life.denied):
            return
        if not request.run.witness.is_answered(self._process, request.asked):
            what = f"{life.named} is decided, and request {request.asked.id!r} is not answered"
            if request in self._requests.get((self._process, repr(request.asked.id)), []):
                self._broken(request.run, Broken("S-42", what))

    def _check_over(self, run: PlayedRun) -> None:
        """Look for a turn that outlives the upstream one without owned calls that go on."""
        turn, normaliser = run.kernel.turn, run.normaliser
        if turn is None or normaliser is None or normaliser.upstream_turn is not None:
            return
        left = [it for it in calls_of(run.kernel) if it.observed and not it.in_doubt]
        if left or not turn.unfinished():
            self._broken(run, Broken("S-25", f"turn {turn.turn_id} outlives its upstream turn"))

    def _all_broken(self, run: PlayedRun, broken: Iterable[Broken]) -> None:
        for it in broken:
            self._broken(run, it)

    def _broken(self, run: PlayedRun, broken: Broken) -> None:
        self.breaches.append(Breach(self._seq, run.run.run_id, broken))


def play(name: str, transcript: Transcript) -> Play:
    """Play a whole transcript."""
    played = Play(name, transcript.settlements)
    for step in transcript.steps:
        played.take(step)
    return played


def _calls(delivery: OpenTurn | AddCall) -> Sequence[Call]:
    return delivery.calls if isinstance(delivery, OpenTurn) else (delivery.call,)
