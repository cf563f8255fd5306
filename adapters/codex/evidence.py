"""Instances: which execution a message is about, and what is known of it (S-33, S-34).

An item's id is the model's call id and is not unique. What happens to an execution is known as
evidence: it was announced, asked for, shown to run, and ended. What the kernel is told follows from
the evidence and from what it was told before, never from the order in which messages came.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from .items import Item, Outcome, RawCall, valid
from .messages import Asked

ENDED_KEPT: Final = 4_096
"""Executions of an upstream turn that have ended and are remembered: what comes again of an older
one is taken for a new one."""
BY_ARGUMENTS: Final = frozenset({"commandExecution", "mcpToolCall"})
"""Items of which another command, or other parameters, make another execution (S-33)."""


@attrs.define(eq=False)
class KernelTurn:
    """One turn of the kernel: of one model response, or of one upstream turn (S-31, S-32)."""

    upstream: Upstream
    turn_id: str = ""
    """Given when it is opened."""
    opened: bool = False
    """Whether its opening was delivered."""
    calls: int = 0
    members: dict[str, Instance] = attrs.field(factory=dict[str, "Instance"])
    """Those that have not ended, the announced ones included, by their name."""
    live: dict[str, Instance] = attrs.field(factory=dict[str, "Instance"])
    """Those that were added and have not ended."""
    unknown: dict[str, Instance] = attrs.field(factory=dict[str, "Instance"])
    """Those whose adding was delivered, and is no fact yet."""
    response_ended: bool = False
    sealed: bool = False
    interrupting: bool = False
    doubted: bool = False
    """Whether a call of it is in doubt: it stays open (S-26)."""
    closed: bool = False

    @property
    def takes_calls(self) -> bool:
        """Whether one more call may be added."""
        return not (self.sealed or self.interrupting or self.closed)

    @property
    def is_over(self) -> bool:
        """Whether the kernel has closed it, or will with what it was told."""
        told = self.sealed or self.interrupting
        return self.closed or (told and not self.live and not self.doubted)


@attrs.define(eq=False)
class Instance:
    """One execution."""

    item_id: str
    """As the runtime has it."""
    name: str
    """Its invocation id: the item's, or `~2`, `~3` … of it."""
    tool_name: str
    arguments: Mapping[str, Any]
    turn: KernelTurn
    home: Instances
    """Those of its upstream turn."""
    observed: bool = True

    # what is known of it
    item_kind: str | None = None
    """The kind of its item, once one was announced or ended."""
    raw: RawCall | None = None
    """The call in the raw stream that announced it."""
    told: bool = False
    """Whether the raw stream has its output."""
    process_id: str | None = None
    began: int | None = None
    runs: bool = False
    """Whether the runtime showed that it runs (S-21)."""
    outcome: Outcome | None = None
    declined: bool = False
    """Whether the runtime says that it was not run."""
    ended_as: str | None = None
    """The status with which its item ended; "" where that says none."""
    request: Asked | None = None
    """What waits for an answer of ours."""
    asked: str | None = None
    """The method by which it was asked for."""

    # what the kernel was told, and what it said
    added: bool = False
    gated: bool = False
    known: bool = False
    """Whether it is a fact that it was added."""
    approved: bool = False
    claimed: bool = False
    """Whether a claim was delivered, or handed out with a permit."""
    started: bool = False
    """Whether it is a fact that it was started."""
    permitted: bool = False
    """Whether its claim was handed out with a permit: it may not be judged yet."""
    decided: bool = False
    """Whether the kernel was told that somebody else has decided."""
    settled: bool = False
    """Whether its end was delivered, or is a fact."""
    denied: bool = False
    """Whether it is a fact that it was denied."""
    rejected: bool = False
    """Whether the kernel was told that it was never started."""
    why: str | None = None
    """Why it was declined, where that was our doing."""
    contradicted: bool = False
    """Whether it was said that it ran though it was refused."""

    @property
    def is_announced_only(self) -> bool:
        """Whether nothing is known but that it was announced (S-22)."""
        return not (self.added or self.runs or self.outcome or self.declined or self.asked)

    @property
    def is_held(self) -> bool:
        """Whether the kernel was to be told of it, and could not be."""
        return not (self.added or self.settled or self.is_announced_only)

    @property
    def ran(self) -> bool:
        """Whether the runtime has started it, or may have."""
        return self.observed and (self.runs or self.outcome is not None)

    def moves_to(self, turn: KernelTurn) -> None:
        """Take it that it is to be added to another turn of the kernel."""
        self.turn.members.pop(self.name, None)
        self.turn = turn
        turn.members[self.name] = self

    def let_go(self) -> None:
        """Keep of what is settled, as a fact, no more than tells it apart from another (S-6)."""
        if self.outcome is not None:
            self.outcome = Outcome(shows_start=self.outcome.shows_start)
        if self.raw is not None:
            self.raw = attrs.evolve(self.raw, arguments={})
        if self.item_kind not in BY_ARGUMENTS:
            self.arguments = {}

    def is_added_no_more(self) -> None:
        """Take it that the kernel did not take it: all is to be told again."""
        self.added = self.gated = self.approved = self.claimed = False
        self.permitted = self.decided = self.settled = False


class Instances:
    """The executions of one upstream turn."""

    def __init__(self) -> None:
        """Begin with none."""
        self._all: dict[str, list[Instance]] = {}
        self._numbers: dict[str, int] = {}
        self._raw_ids: dict[str, None] = {}
        self._ended: dict[Instance, None] = {}

    def __iter__(self) -> Iterator[Instance]:
        """Iterate over those that are remembered."""
        return (it for several in self._all.values() for it in several)

    def of(self, item_id: str) -> list[Instance]:
        """Return those with this id, in the order in which they were opened."""
        return self._all.get(item_id, [])

    def live(self, item_id: str) -> list[Instance]:
        """Return those with this id that have not ended."""
        return [it for it in self.of(item_id) if not it.settled]

    def is_repeat(self, raw_id: str) -> bool:
        """Whether a raw item has come before: their ids are unique (S-33)."""
        if raw_id in self._raw_ids:
            return True
        self._raw_ids[raw_id] = None
        if len(self._raw_ids) > ENDED_KEPT:
            del self._raw_ids[next(iter(self._raw_ids))]
        return False

    def open(
        self, item_id: str, tool_name: str, arguments: Mapping[str, Any], turn: KernelTurn
    ) -> Instance:
        """Open an instance; its name is not taken in the upstream turn."""
        stem = valid(item_id)
        number = self._numbers[stem] = self._numbers.get(stem, 0) + 1
        name = stem if number == 1 else f"{stem}~{number}"
        while number > 1 and self._numbers.get(name):
            number = self._numbers[stem] = number + 1
            name = f"{stem}~{number}"
        if number > 1:
            self._numbers[name] = 1
        made = Instance(
            item_id=item_id,
            name=name,
            tool_name=tool_name,
            arguments=arguments,
            turn=turn,
            home=self,
        )
        self._all.setdefault(item_id, []).append(made)
        turn.members[name] = made
        return made

    def end(self, instance: Instance) -> None:
        """Take it that one has ended: it is remembered for a while."""
        instance.turn.members.pop(instance.name, None)
        self._ended[instance] = None
        if len(self._ended) > ENDED_KEPT:
            oldest = next(iter(self._ended))
            del self._ended[oldest]
            several = self._all[oldest.item_id]
            several.remove(oldest)
            if not several:
                del self._all[oldest.item_id]

    # which one a message is about

    def announced(self, item: Item) -> Instance | None:
        """Return the instance that an `item/started` is about, None: it opens one (S-33)."""
        fitting = [
            it
            for it in self.of(item.id)
            if _is_same(it, item) and (not it.settled or _is_surely_same(it, item))
        ]
        return _likeliest(fitting, item.arguments)

    def ended(self, item: Item) -> Instance | None:
        """Return the instance that an `item/completed` is about; None: nobody announced it."""
        several = self.of(item.id)
        fitting = [it for it in several if _is_same(it, item)]
        live = [it for it in fitting if not it.settled]
        for it in (*reversed(live), *reversed(fitting)):
            if _is_surely_same(it, item):
                return it
        if live:
            return next((it for it in live if it.claimed), live[0])
        return fitting[-1] if fitting and not _is_another(fitting[-1], item) else None

    def asked_for(self, item_id: str, arguments: Mapping[str, Any] | None) -> Instance | None:
        """Return the announced instance that a request is about; None: it is another (S-33)."""
        fitting = [
            it
            for it in self.live(item_id)
            if it.is_announced_only
            and (arguments is None or it.item_kind is None or it.arguments == arguments)
        ]
        return _likeliest(fitting, arguments)

    def raw_call(self, call: RawCall) -> Instance | None:
        """Return the instance that the raw stream announces only now; None: it opens one."""
        for it in self.live(call.call_id):
            if it.raw is None or (it.turn.response_ended and it.is_announced_only):
                return it
        return None

    def raw_output(self, call_id: str) -> Instance | None:
        """Return the instance whose answer went to the model; None: nothing is known of it.

        Those of calls with one id go there in the order of the calls.
        """
        return next((it for it in self.of(call_id) if not it.told), None)


def _is_same(it: Instance, item: Item) -> bool:
    """Whether an item may be that of an instance: nothing speaks against it."""
    if it.item_kind is not None and it.item_kind != item.kind:
        return False
    if it.item_kind in BY_ARGUMENTS and it.arguments != item.arguments:
        return False
    if it.process_id is not None and item.process_id is not None:
        return it.process_id == item.process_id
    if it.began is not None and item.began is not None:
        return it.began == item.began
    return True


def _likeliest(fitting: list[Instance], arguments: Mapping[str, Any] | None) -> Instance | None:
    """Return the first, or the one whose raw call has the command: two may have one id."""
    command = (arguments or {}).get("command")
    if len(fitting) > 1 and isinstance(command, str):
        for it in fitting:
            asked = None if it.raw is None else it.raw.arguments.get("cmd")
            if isinstance(asked, str) and asked in command:
                return it
    return fitting[0] if fitting else None


def _is_surely_same(it: Instance, item: Item) -> bool:
    """Whether an item has the process, or was announced at the time, of an instance."""
    if it.process_id is not None and it.process_id == item.process_id:
        return True
    return it.began is not None and it.began == item.began


def _is_another(it: Instance, item: Item) -> bool:
    """Whether an instance that has ended cannot have ended with this item again."""
    return it.ended_as is not None and it.ended_as != (item.status or "")


@attrs.frozen
class Ended:
    """How an upstream turn has ended."""

    status: str
    """As the runtime says it; `died`: its process has ended."""

    @property
    def interrupted(self) -> bool:
        """Whether somebody has stopped it."""
        return self.status == "interrupted"


@attrs.define(eq=False)
class Upstream:
    """One upstream turn."""

    turn_id: str
    instances: Instances = attrs.field(factory=Instances)
    turns: int = 0
    """Turns of the kernel that it has had."""
    ended: Ended | None = None
    has_raw: bool = False
    """Whether it is told in a raw stream, too."""
    unshown: set[str] = attrs.field(factory=set[str])
    """Patches that were asked for, and could not be shown (S-37)."""
    shared: set[str] = attrs.field(factory=set[str])
    """Ids that two calls had at once: nothing is let under them any more (S-37)."""

    def next_id(self, settlement: str) -> str:
        """Return the id of its next turn of the kernel (S-31, S-32)."""
        self.turns += 1
        stem = self.turn_id.replace("#", "%23")
        return stem if settlement == "turn" and self.turns == 1 else f"{stem}#{self.turns}"
