"""What a sequence diagram is made of: who takes part, and the messages between them, in steps.

Writers read nothing else: they need not know what a delivery is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum, StrEnum
from typing import Any, Final

import attrs

from ...models.calls import Call
from ...models.facts import (
    CallAdded,
    ExecutionRetried,
    Fact,
    ToolExecutionStarted,
    TurnOpened,
)
from ...models.safe_text import CUT, harmless
from ...views.wording import Wording
from ..drawing.lettering import short_names
from ..recordings.recording import Moment


class Role(IntEnum):
    """Who speaks to a kernel, or in a chat; the order is that of the lanes, from the left."""

    MODEL = 0
    HOST = 1
    PERSON = 2
    WORKER = 3
    """One executor that gave its name."""
    EXECUTORS = 4
    """The others, and those that gave none."""
    CLOCK = 5
    KERNEL = 6
    MEMBER = 7
    """An agent in a chat."""
    TOOLS = 8
    """What the members of a chat call."""
    CHAT = 9
    """The log of a chat, in the place of a kernel."""


@attrs.frozen(order=True)
class Party:
    """One participant; `in_full` is the name of a worker, as long as it is."""

    role: Role
    name: str
    in_full: str = ""

    @property
    def is_hub(self) -> bool:
        """Whether all the others speak to it: its lane is the last."""
        return self.role in {Role.KERNEL, Role.CHAT}


MODEL: Final = Party(Role.MODEL, "model")
HOST: Final = Party(Role.HOST, "host")
PERSON: Final = Party(Role.PERSON, "person")
EXECUTORS: Final = Party(Role.EXECUTORS, "executors")
CLOCK: Final = Party(Role.CLOCK, "clock")
KERNEL: Final = Party(Role.KERNEL, "kernel")
PARTIES: Final = (MODEL, HOST, PERSON, EXECUTORS, CLOCK, KERNEL)
"""All that are no single worker."""


class Kind(StrEnum):
    """What a message is."""

    DELIVERY = "delivery"
    """It arrived at the kernel, and that was recorded."""
    INFERRED = "inferred"
    """Only facts were recorded: who must have brought them, told by the first of them."""
    TIME = "time"
    """Deadlines that came due; it stands before their facts (K-11)."""
    FACT = "fact"
    """It happened: a note at the kernel, or a question to a person."""
    REFUSAL = "refusal"
    EFFECT = "effect"
    EXPECTED = "expected"
    """What a kernel that is right answers, where another one answered something else."""
    GOT = "got"
    """What that other one answered."""
    DIFFERENCE = "difference"
    """Where the two differ first."""
    GAP = "gap"
    """Steps that are left out."""


ANSWER_SIGNS: Final = {Kind.EXPECTED: "=", Kind.GOT: "≠", Kind.DIFFERENCE: "!"}
"""What stands before the answers that are compared, so that they are not told by colour alone."""


@attrs.frozen(kw_only=True)
class Message:
    """One arrow, or one note where sender and receiver are the kernel.

    `name` is what it is called where it is specified: a delivery's type, a fact's, an effect's, a
    reason. `words` tell it; nothing in them is safe yet but that they are bounded. `about` names in
    full what the words may shorten. `phase` colours it; empty for what has no phase.
    """

    kind: Kind
    sender: Party
    receiver: Party
    name: str
    words: str
    about: str = ""
    phase: str = ""
    count: int = 1
    """How many are drawn as this one."""

    @property
    def is_note(self) -> bool:
        """Whether it is no arrow."""
        return self.sender == self.receiver

    @property
    def label(self) -> str:
        """Return the words, after the count where there are many."""
        return f"×{self.count:,} {self.words}" if self.count > 1 else self.words

    @property
    def in_full(self) -> str:
        """Return the label, and in full what it is about."""
        return f"{self.label} ({self.about})" if self.about else self.label


@attrs.frozen(kw_only=True)
class Step:
    """One receive with what came of it; `at` is seconds since the beginning of the recording."""

    at: float
    messages: tuple[Message, ...]

    @property
    def opens_turn(self) -> bool:
        """Whether a turn begins here."""
        return any(message.name == "TURN_OPENED" for message in self.messages)


def parties_of(steps: tuple[Step, ...]) -> tuple[Party, ...]:
    """Return who takes part, in the order of the lanes; a kernel, or a chat, always does."""
    found: set[Party] = set()
    for step in steps:
        for message in step.messages:
            found.add(message.sender)
            found.add(message.receiver)
    if not any(party.is_hub for party in found):
        found.add(KERNEL)
    return tuple(sorted(found))


SHORT: Final = 14
"""Characters of an id that is told whole; of a longer one the end is, where that tells it apart."""
_TAIL: Final = 6


class Names(Wording):
    """The short form, with the tools of a recording's calls and ids that fit on an arrow."""

    def __init__(self, moments: Iterable[Moment]) -> None:
        """Learn the tools of all calls, and which ids can be told by their ends."""
        self._tools: dict[tuple[str, str], str] = {}
        workers: dict[str, None] = {}
        by_tail: defaultdict[str, set[str]] = defaultdict(set)
        for moment in moments:
            for turn_id, call in _calls(moment.facts):
                self._tools[turn_id, call.invocation_id] = call.tool_name
                by_tail[call.invocation_id[-_TAIL:]].add(call.invocation_id)
            if moment.invocation_id is not None:
                by_tail[moment.invocation_id[-_TAIL:]].add(moment.invocation_id)
            workers |= dict.fromkeys(_workers(moment))
        self._ambiguous = {
            one for several in by_tail.values() if len(several) > 1 for one in several
        }
        self.workers = short_names(workers, taken={party.name for party in PARTIES})
        """By their whole names, as they were recorded."""

    def invocation(self, invocation_id: str) -> str:
        """Return the id, or its end."""
        if len(invocation_id) <= SHORT or invocation_id in self._ambiguous:
            return self.plain(invocation_id)
        return CUT + harmless(invocation_id[-_TAIL:])

    def worker(self, worker: object) -> str:
        """Return the short name of an executor."""
        return self.workers.get(str(worker)) or self.plain(worker)

    def call(self, turn_id: str | None, invocation_id: str) -> str:
        """Return the tool, where it is known, and the id."""
        tool = self._tools.get((turn_id or "", invocation_id))
        short = self.invocation(invocation_id)
        return short if tool is None else f"{self.plain(tool)} {short}"

    def of_call(self, call: Mapping[str, Any]) -> str:
        """Return the tool and the id of a call as the wire writes it."""
        short = self.invocation(str(call.get("invocation_id")))
        return f"{self.plain(call.get('tool_name'))} {short}"


def _workers(moment: Moment) -> Iterator[str]:
    """Yield who claims, and whose claims were accepted."""
    if moment.kind == "claim" and moment.delivery is not None:
        worker = moment.delivery.get("worker")
        if worker is not None:
            yield str(worker)
    for fact in moment.facts:
        if isinstance(fact, ToolExecutionStarted | ExecutionRetried) and fact.worker:
            yield fact.worker


def _calls(facts: Iterable[Fact]) -> Iterator[tuple[str, Call]]:
    for fact in facts:
        if isinstance(fact, TurnOpened):
            yield from ((fact.turn_id, call) for call in fact.calls)
        elif isinstance(fact, CallAdded):
            yield fact.turn_id, fact.call


def clock(at: float) -> str:
    """Return a time in seconds, in at most eleven characters."""
    if abs(at) < 1e6:  # noqa: PLR2004 - eleven days, to the millisecond
        return f"{at:.3f}"
    return f"{at:.0f}" if abs(at) < 1e9 else f"{at:.3e}"  # noqa: PLR2004 - thirty years
