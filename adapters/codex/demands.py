"""What must hold of a run of Codex, looked at beside the kernel and the normaliser.

A `Witness` is told what was said, what became a fact and what was answered, in that order, and
says what cannot be right. It keeps a book of its own of what the messages show, and asks nobody
what they made of them: a normaliser that takes an announcement for a start is found out (S-22).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from ...engine.kernel import Kernel
from ...models.calls import Call
from ...models.effects import Continue, Effect, Execute
from ...models.facts import (
    CallAdded,
    Fact,
    LifecycleFact,
    ToolApproved,
    ToolDenied,
    ToolExecutionFailed,
    ToolExecutionStarted,
    ToolExecutionSucceeded,
    TurnOpened,
)
from ...models.lifecycle_facts import DenialCause, FailureCause
from ...views.call_view import Waits
from ...views.live import calls_of
from .answers import (
    COMMAND_APPROVAL,
    ELICITATION,
    OLD_COMMAND_APPROVAL,
    OLD_PATCH_APPROVAL,
    PATCH_APPROVAL,
    PERMISSIONS_APPROVAL,
    TOOL_CALL,
    USER_INPUT,
)
from .heard import Anomaly, Odd, Reply
from .messages import Asked, Notified, object_of

_RUNS: Final = frozenset({"commandExecution", "fileChange", "mcpToolCall"})
"""Items whose announcement is no start, but for a command with a process id (S-22)."""
_AGENTS: Final = frozenset({"collabAgentToolCall", "dynamicToolCall", "subAgentActivity"})
"""Items that are executions, too, and begin as soon as they are announced."""
_RAW: Final = frozenset({"function_call", "custom_tool_call", "local_shell_call"})
"""What the model asks for, in the raw stream. Of these and of the items above there is a call when
their process has ended, at the latest (S-23)."""
_OWNED: Final = {TOOL_CALL: "callId", USER_INPUT: "itemId"}
"""What is asked of us: it has not begun before we begin it (S-28)."""
_SHOWS: Final = frozenset(
    {
        "item/commandExecution/outputDelta",
        "item/commandExecution/terminalInteraction",
        "item/fileChange/outputDelta",
        "item/mcpToolCall/progress",
    }
)
"""What is only said of something that runs."""
_SAID: Final = {"accept": True, "decline": False}
_SAID_OF_OLD: Final = {"approved": True, "denied": False}
_DECISIONS: Final[Mapping[str, Mapping[str, bool]]] = {
    COMMAND_APPROVAL: _SAID,
    PATCH_APPROVAL: _SAID,
    OLD_COMMAND_APPROVAL: _SAID_OF_OLD,
    OLD_PATCH_APPROVAL: _SAID_OF_OLD,
}
"""What is said to a request for approval, and whether it lets something start (S-35)."""


@attrs.frozen
class Broken:
    """A demand that is not met, and the rule that it stands in."""

    rule: str
    what: str


@attrs.define
class Life:
    """One invocation, as its facts tell it."""

    turn_id: str
    call: Call
    approved: bool = False
    started: bool = False
    denied: DenialCause | None = None
    ended: bool = False

    @property
    def named(self) -> str:
        """What it is called where something is wrong with it."""
        return f"{self.call.invocation_id} of turn {self.turn_id}"


class Witness:
    """Watches one run, over all its processes."""

    def __init__(self) -> None:
        """Have seen nothing."""
        self.lives: dict[tuple[str, str], Life] = {}
        """By turn and invocation, in the order in which they were added."""
        self._by_item: dict[tuple[str, str], list[Life]] = {}
        self._shown: set[tuple[str, str]] = set()
        """What may run, by upstream turn and item, as far as messages show."""
        self._items: set[tuple[str, str]] = set()
        """All executions that were ever announced or asked about, or have ended."""
        self._ran: dict[tuple[str, str], None] = {}
        """What did run, since it was looked at last."""
        self._turn: str | None = None
        """The upstream turn that goes on; what was announced in another may have run (S-23)."""
        self._over: set[str] = set()
        """Upstream turns that have ended, as far as messages say."""
        self._former: str | None = None
        """The one that gave way to the current one, where its end was not said."""
        self._resolved: set[tuple[int, str]] = set()
        self._told_of: dict[tuple[str, str], None] = {}
        """Executions of which something was told, since it was looked at last."""
        self._answered: set[tuple[int, str]] = set()
        self._continued: set[str] = set()
        self._excused: set[Anomaly] = set()

    # what is said, and what it shows

    def said(self, message: Notified | Asked, process: int) -> None:
        """Note what a message shows, before anybody made anything of it."""
        params = message.params
        if message.method == "serverRequest/resolved":
            self._resolved.add((process, repr(params.get("requestId"))))
        turn = turn_named(message)
        if turn is not None:
            self._go_on(turn, ends=message.method == "turn/completed")
        if isinstance(message, Asked) and turn is not None:
            self._items.add((turn, str(params.get("itemId"))))
        if message.method in _SHOWS:
            self._show(turn, params.get("itemId"), ran=True)
        elif message.method in _OWNED:
            self._told_of.pop((turn or "", str(params.get(_OWNED[message.method]))), None)
        else:
            self._said_of(message.method, turn, object_of(params.get("item")))

    def _said_of(self, method: str, turn: str | None, item: Mapping[str, Any]) -> None:
        """Note what is said of an item as a whole."""
        kind, status = str(item.get("type")), item.get("status")
        if kind in _AGENTS:
            self._items.add((turn or "", str(item.get("id"))))
        if method == "item/started":
            self._tell_of(turn, item.get("id"), is_call=kind in _RUNS)
            if kind not in _RUNS or item.get("processId") is not None:
                self._show(turn, item.get("id"))
        elif method == "item/completed":
            self._tell_of(turn, item.get("id"), is_call=kind in _RUNS)
            if status != "declined":
                ran = status == "completed" or item.get("exitCode") is not None
                self._show(turn, item.get("id"), ran=ran)
        elif method == "rawResponseItem/completed":
            self._tell_of(turn, item.get("call_id"), is_call=kind in _RAW)
            if kind.endswith("_output"):
                self._show(turn, item.get("call_id"))

    def _go_on(self, turn: str, *, ends: bool) -> None:
        """Note which upstream turn goes on: a message may begin one, and end another (S-33a).

        The one before goes on where it is named again, and nothing was told of the current one.
        """
        idle = not any(it == self._turn for it, _ in self._items)
        if turn != self._turn and (turn not in self._over or (turn == self._former and idle)):
            former = self._turn
            self._end_turn()
            self._turn, self._former = turn, former
            self._over.discard(turn)
        if ends and turn == self._turn:
            self._end_turn()
        if ends and turn == self._former:
            self._former = None

    def _end_turn(self) -> None:
        if self._turn is not None:
            self._over.add(self._turn)
        self._turn = None

    def _tell_of(self, turn: str | None, name: object, *, is_call: bool) -> None:
        """Note that there is an execution, or was announced, in the turn that goes on."""
        if is_call and isinstance(name, str) and name:
            self._items.add((turn or "", name))
            if turn is not None and turn == self._turn:
                self._told_of.setdefault((turn, name))

    def _show(self, turn: str | None, item: object, *, ran: bool = False) -> None:
        if turn is not None and isinstance(item, str):
            self._shown.add((turn, item))
            if ran and (turn, item) in self._items:  # of what is not known nobody can tell
                self._ran.setdefault((turn, item))

    def process_ended(self) -> None:
        """Note that nothing of the process goes on."""
        self._end_turn()

    def thought_odd(self, odd: Iterable[Odd]) -> None:
        """Note what was told as an anomaly: it excuses what it names."""
        self._excused.update(it.anomaly for it in odd)

    # what became a fact

    def learnt(self, facts: Sequence[Fact]) -> Iterator[Broken]:
        """Fold facts, and say which of them cannot be."""
        for fact in facts:
            if isinstance(fact, TurnOpened):
                for call in fact.calls:
                    self._add(fact.turn_id, call)
            elif isinstance(fact, CallAdded):
                self._add(fact.turn_id, fact.call)
            elif isinstance(fact, LifecycleFact):
                yield from self._lived(self.lives[fact.turn_id, fact.invocation_id], fact)

    def _add(self, turn_id: str, call: Call) -> None:
        life = self.lives[turn_id, call.invocation_id] = Life(turn_id, call)
        item = call.provider_call_id or call.invocation_id
        self._by_item.setdefault((upstream(turn_id), item), []).append(life)

    def _lived(self, life: Life, fact: LifecycleFact) -> Iterator[Broken]:
        if isinstance(fact, ToolApproved):
            life.approved = True
        elif isinstance(fact, ToolExecutionStarted):
            life.started = True
            if life.call.observed and not life.approved and not self._may_run(life):
                yield Broken(
                    "S-22", f"{life.named} counts as started, and nothing shows that it is"
                )
        elif isinstance(fact, ToolDenied):
            life.denied, life.ended = fact.cause, True
        elif isinstance(fact, ToolExecutionSucceeded | ToolExecutionFailed):
            life.ended = True
            rejected = isinstance(fact, ToolExecutionFailed) and fact.cause is FailureCause.REJECTED
            if life.call.observed and not life.started and not rejected:
                yield Broken("S-21", f"{life.named} has an outcome, and was never started")

    def _may_run(self, life: Life) -> bool:
        turn = upstream(life.turn_id)
        item = life.call.provider_call_id or life.call.invocation_id
        return turn != self._turn or (turn, item) in self._shown

    # what is owed, and what is answered

    def owed(self, effects: Iterable[Effect]) -> Iterator[Broken]:
        """Look at what the kernel asks for."""
        for effect in effects:
            if isinstance(effect, Execute):
                life = self.lives[effect.turn_id, effect.invocation_id]
                if life.call.observed:
                    yield Broken("S-20", f"an execute is owed for {life.named}")
            elif isinstance(effect, Continue):
                if effect.effect_id in self._continued:
                    yield Broken("K-52", f"turn {effect.turn_id} is continued twice")
                self._continued.add(effect.effect_id)

    def replied(
        self, process: int, asked: Asked | None, about: Life | None, reply: Reply
    ) -> Iterator[Broken]:
        """Look at an answer as it is written: each request is answered once, with what holds."""
        name = f"request {reply.request!r}"
        if asked is None:
            yield Broken("S-36", f"{name} is answered, and was never made")
            return
        key = (process, repr(reply.request))
        if key in self._answered:
            yield Broken("S-36", f"{name} is answered twice")
        self._answered.add(key)
        if reply.error is None:
            yield from _unfit(name, asked, about, reply)
        elif about is not None:
            yield Broken("S-36", f"{name} is refused as unknown, and {about.named} is of it")

    def is_answered(self, process: int, asked: Asked) -> bool:
        """Say whether we answered a request, or the runtime said that somebody did."""
        return (process, repr(asked.id)) in self._answered | self._resolved

    def rest(self, kernel: Kernel, *, alive: bool) -> Iterator[Broken]:
        """Look at what a process left that has ended; `alive`: ours, which performs owned calls."""
        for key in self._told_of if Anomaly.PAYLOAD_INVALID not in self._excused else ():
            if key not in self._by_item:
                yield Broken("S-23", f"{key[1]} of turn {key[0]} may have run, and is no call")
        self._told_of.clear()
        for key in self._ran if Anomaly.RAN_THOUGH_DENIED not in self._excused else ():
            lives = self._by_item.get(key, ())
            if lives and all(it.denied for it in lives):
                yield Broken("S-36", f"{lives[-1].named} is denied, and it ran, and nobody is told")
        self._ran.clear()
        for call in calls_of(kernel):
            if call.observed or not alive:
                name = f"{call.invocation_id} of turn {call.turn_id}"
                if call.waits is not Waits.RESOLUTION:
                    yield Broken("S-26", f"{name} waits for {call.waits} of a process that ended")
        for effect in kernel.pending_effects:
            if isinstance(effect, Execute) and not alive:
                yield Broken("S-20", f"an execute is owed for {effect.invocation_id} at rest")


def _unfit(name: str, asked: Asked, about: Life | None, reply: Reply) -> Iterator[Broken]:
    """Look whether an answer is one that we give, and what it says is so."""
    lets = lets_start(asked, reply.result)
    if asked.method == PERMISSIONS_APPROVAL and not asked.params.get("permissions"):
        return  # nothing is asked for: allowed or not, the answer is the same
    if lets is None:
        if asked.method in _DECISIONS:
            yield Broken("S-35", f"{name} is answered neither accept nor decline")
        elif about is not None and not about.ended:
            yield Broken("S-28", f"{name} is answered, and {about.named} has no outcome")
    elif lets and (about is None or not about.started):
        which = "a call that nobody knows" if about is None else about.named
        yield Broken("S-21", f"{name} lets {which} start, and it was not claimed")
    elif lets and about is not None and about.denied:
        yield Broken("S-42", f"{name} lets {about.named} start, and it is denied")
    elif not lets and about is not None and about.started:
        yield Broken("S-42", f"{name} declines {about.named}, and it is started")


def turn_named(message: Notified | Asked) -> str | None:
    """Return the upstream turn that a message is about."""
    turn = message.params.get("turnId")
    if turn is None:
        turn = object_of(message.params.get("turn")).get("id")
    return turn if isinstance(turn, str) else None


def upstream(turn_id: str) -> str:
    """Return the upstream turn that a turn of the kernel is of (S-31)."""
    return turn_id.partition("#")[0]


def lets_start(asked: Asked, result: Mapping[str, Any]) -> bool | None:
    """Say whether an answer lets something start, or forbids it; None: it is neither."""
    if asked.method in _DECISIONS:
        return _DECISIONS[asked.method].get(str(result.get("decision")))
    if asked.method == PERMISSIONS_APPROVAL:
        return bool(result.get("permissions"))
    if asked.method == ELICITATION and "action" in result:
        return result.get("action") == "accept"
    return None
