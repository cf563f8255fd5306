"""From a chat to steps of messages: what was said, heard, called, asked, decided, and came of it.

A chat is its log and the runs of its members. Each of these is told in its own order, and all of
them together by time. The log stands where a kernel stands in other sequences: all is said to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import merge
from typing import Any, Final

import attrs

from ...lifecycle.phases import Phase
from ...models.facts import Fact, FactType
from ...models.inputs import Input
from ...models.safe_text import harmless
from ...models.sealed import shown_json, shown_text
from ...models.values import Json
from ...views.phrases import about, phase_of
from ..errors import NothingToDraw
from .bounding import bounded
from .messages import Kind, Message, Party, Role, Step
from .picture import SequencePicture

MOST_PEOPLE: Final = 3
"""People with a lane of their own in the picture of a chat; where there are more, all share one."""
MOST_MEMBERS: Final = 6
"""Members with a lane of their own in the picture of a chat; where there are more, all share
one."""
_WORDS: Final = 400
"""Characters of a message; forms cut further."""
_TOOL: Final = 40
_ARGUMENTS: Final = 160

PEOPLE: Final = Party(Role.PERSON, "people")
MEMBERS: Final = Party(Role.MEMBER, "members")
TOOLS: Final = Party(Role.TOOLS, "tools")


@attrs.frozen(kw_only=True)
class Entry:
    """An entry of the chat's log; `body` is what W-14 says, or anything."""

    number: int
    at: float
    body: Mapping[str, Json]


@attrs.frozen(kw_only=True)
class Hearing:
    """A member was told the entry of this number."""

    at: float
    number: int


@attrs.frozen(kw_only=True)
class MemberStory:
    """What is known of one run of a member."""

    agent: str
    facts: tuple[Fact, ...] = ()
    heard: tuple[Hearing, ...] = ()


@attrs.frozen(kw_only=True)
class ChatStory:
    """A chat, as far as it is recorded."""

    name: str
    """World and chat, as they are shown."""
    chat: str
    entries: tuple[Entry, ...] = ()
    members: tuple[MemberStory, ...] = ()


def chat_picture(story: ChatStory) -> SequencePicture:
    """Draw a chat. Raises `NothingToDraw` where nothing was said in it."""
    steps = told_chat(story)
    if not steps:
        raise NothingToDraw(
            f"nothing was said in {harmless(story.name, limit=_TOOL)} yet; say something first"
        )
    hub = Party(Role.CHAT, story.chat)
    return SequencePicture(
        name=f"chat {story.name}", steps=bounded(steps, hub=hub), summary=_summary(story)
    )


def told_chat(story: ChatStory) -> tuple[Step, ...]:
    """Tell all of it by time, each log and run in its own order."""
    return tuple(_Teller(story).steps())


def _summary(story: ChatStory) -> str:
    calls = [
        fact
        for run in story.members
        for fact in run.facts
        if fact.type is FactType.TOOL_EXECUTION_STARTED
    ]
    return (
        f"A sequence diagram of a chat: {len(story.entries):,} entries of its log,"
        f" {len({run.agent for run in story.members}):,} members, {len(calls):,} calls that were"
        " started."
    )


class _Teller:
    """Goes through a chat, and knows who stands in which lane."""

    def __init__(self, story: ChatStory) -> None:
        self._story = story
        self._hub = Party(Role.CHAT, story.chat)
        people = dict.fromkeys(_people(story))
        self._person = dict.fromkeys(people, PEOPLE)
        if len(people) <= MOST_PEOPLE:
            self._person = {name: Party(Role.PERSON, harmless(name)) for name in people}
        agents = dict.fromkeys(
            [*(run.agent for run in story.members), *_senders(story, "agent")], MEMBERS
        )
        if len(agents) <= MOST_MEMBERS:
            agents = {name: Party(Role.MEMBER, name) for name in agents}
        self._member = agents

    def steps(self) -> Iterator[Step]:
        sources: list[Iterable[tuple[float, Message]]] = [self._entries()]
        for run in self._story.members:
            sources += [self._hearings(run), self._facts(run)]
        start: float | None = None
        for at, message in merge(*map(_in_order, sources), key=lambda told: told[0]):
            start = at if start is None else start
            yield Step(at=at - start, messages=(message,))

    def _entries(self) -> Iterator[tuple[float, Message]]:
        for entry in self._story.entries:
            yield entry.at, self._entry(entry)

    def _entry(self, entry: Entry) -> Message:
        body = entry.body
        kind = str(body.get("kind", ""))
        sender, words = self._hub, f"{kind} (nothing that is known here)"
        if kind in {"message", "handoff"}:
            sender = self._sender(body)
            words = ("hands over: " if kind == "handoff" else "") + _text(body.get("text"))
        elif kind == "notice":
            words = _text(body.get("text"))
        elif kind == "question":
            sender = self._of_run(body.get("run"))
            words = f"{_text(body.get('server'))} asks: {_text(body.get('text'))}"
        elif kind == "reply":
            sender = self._who(body.get("by"))
            words = f"replies: {_text(body.get('action'))}"
        return Message(
            kind=Kind.DELIVERY,
            sender=sender,
            receiver=self._hub,
            name=harmless(kind, limit=_TOOL) or "entry",
            words=harmless(f"{entry.number} {words}", limit=_WORDS),
            about=f"entry {entry.number}",
        )

    def _sender(self, body: Mapping[str, Json]) -> Party:
        name, role = str(body.get("sender", "")), body.get("role")
        if role == "agent" and name in self._member:
            return self._member[name]
        if role == "person":
            return self._who(name)
        return Party(Role.HOST, "world" if role == "world" else "system")

    def _who(self, name: object) -> Party:
        """Return the lane of a person; of nobody in particular that of the first one."""
        if name is None:
            return next(iter(self._person.values()), PEOPLE)
        return self._person.get(str(name), PEOPLE)

    def _of_run(self, run_id: object) -> Party:
        """Return the member whose run it is, by the end of the run's id."""
        agent = str(run_id).rpartition("/")[2].partition("#")[0]
        return self._member.get(agent, self._hub)

    def _hearings(self, run: MemberStory) -> Iterator[tuple[float, Message]]:
        for heard in run.heard:
            yield (
                heard.at,
                Message(
                    kind=Kind.EFFECT,
                    sender=self._hub,
                    receiver=self._member[run.agent],
                    name="heard",
                    words=f"hears {heard.number}",
                ),
            )

    def _facts(self, run: MemberStory) -> Iterator[tuple[float, Message]]:
        lane = self._member[run.agent]
        tools: dict[tuple[str, str], tuple[str, Mapping[str, Json]]] = {}
        for fact in run.facts:
            for call in _calls(fact):
                key = getattr(fact, "turn_id", ""), call.invocation_id
                tools[key] = call.tool_name, call.arguments
            told = _FACTS.get(fact.type)
            if told is None:
                continue
            key = getattr(fact, "turn_id", ""), getattr(fact, "invocation_id", "")
            tool, arguments = tools.get(key, (getattr(fact, "tool_name", ""), {}))
            edited: Mapping[str, Json] | None = getattr(fact, "arguments", None)
            if edited is not None:
                tools[key] = tool, edited
            call = _Call(harmless(tool, limit=_TOOL), edited or arguments)
            yield fact.at, self._fact(fact, told(fact, call), lane)

    def _fact(self, fact: Fact, told: tuple[str, str, str], lane: Party) -> Message:
        sender, receiver, words = told
        decided_by = getattr(fact, "decided_by", None)
        lanes = {
            "member": lane,
            "tools": TOOLS,
            "log": self._hub,
            "person": self._who(decided_by),
        }
        if sender == receiver:  # a note stands beside the log, so it says whose it is
            words = f"{lane.name}: {words}"
        return Message(
            kind=Kind.FACT,
            sender=lanes[sender],
            receiver=lanes[receiver],
            name=fact.type,
            words=harmless(words, limit=_WORDS),
            about=about(fact),
            phase=phase_of(fact) if phase_of(fact) in set(Phase) else "",
        )


@attrs.frozen
class _Call:
    tool: str
    arguments: Mapping[str, Json]

    def __str__(self) -> str:
        return f"{self.tool} {harmless(shown_json(self.arguments), limit=_ARGUMENTS)}"


def _people(story: ChatStory) -> Iterator[str]:
    """Yield who said or decided something, in the order of the log, then of the facts."""
    yield from _senders(story, "person")
    for entry in story.entries:
        if entry.body.get("kind") == "reply" and entry.body.get("by") is not None:
            yield str(entry.body["by"])
    for run in story.members:
        for fact in run.facts:
            by = getattr(fact, "decided_by", None)
            if by is not None and getattr(fact, "grant_id", None) is None:
                yield by


def _senders(story: ChatStory, role: str) -> Iterator[str]:
    for entry in story.entries:
        if entry.body.get("role") == role:
            yield str(entry.body.get("sender", ""))


def _calls(fact: Fact) -> Iterator[Any]:
    yield from getattr(fact, "calls", ())
    if (call := getattr(fact, "call", None)) is not None:
        yield call


def _in_order(source: Iterable[tuple[float, Message]]) -> Iterator[tuple[float, Message]]:
    """Yield them with times that never go back: clocks may, and the order of a source counts."""
    latest = float("-inf")
    for at, message in source:
        latest = max(latest, at)
        yield latest, message


def _text(value: object) -> str:
    return shown_text(value) if isinstance(value, str) else ""


_Told = tuple[str, str, str]
"""From whom, to whom, in which words."""


def _opened(fact: Any, _: _Call) -> _Told:  # noqa: ANN401 - each type has its own fields
    names = ", ".join(harmless(call.tool_name, limit=_TOOL) for call in fact.calls)
    return "log", "log", f"wants {names}" if names else "begins to call"


def _approved(fact: Any, call: _Call) -> _Told:  # noqa: ANN401 - as above
    edited = "" if fact.arguments is None else f" as {call}"
    if fact.grant_id is not None:
        return "log", "log", f"a grant covers {call.tool}"
    scope = "" if fact.scope == "once" else f" for the {fact.scope}"
    return "person", "member", f"approves {call.tool}{edited}{scope}"


def _denied(fact: Any, call: _Call) -> _Told:  # noqa: ANN401 - as above
    why = _text(fact.reason or fact.error)
    if fact.input is Input.DENY:
        return "person", "member", f"denies {call.tool}: {why}" if why else f"denies {call.tool}"
    return "log", "log", f"{call.tool} is denied: {why or fact.cause}"


def _succeeded(fact: Any, call: _Call) -> _Told:  # noqa: ANN401 - as above
    result = harmless(shown_json(fact.result), limit=_ARGUMENTS)
    if fact.input is Input.RESOLVE_RESULT:
        return "log", "log", f"{call.tool} has happened: {result}"  # a person said it, or a probe
    return "tools", "member", f"{call.tool}: {result}"


def _failed(fact: Any, call: _Call) -> _Told:  # noqa: ANN401 - as above
    if fact.input is Input.RESOLVE_ERROR:
        return "log", "log", f"{call.tool} counts as failed: {_text(fact.error)}"
    return "tools", "member", f"{call.tool} failed: {_text(fact.error)}"


def _stopped(fact: Any, _: _Call) -> _Told:  # noqa: ANN401 - as above
    why = _text(fact.reason)
    return "log", "log", f"is being stopped: {why}" if why else "is being stopped"


def _plain(sender: str, receiver: str, words: str) -> Callable[[Any, _Call], _Told]:
    """Return what tells a fact in the same words each time, but for the call and the attempt."""

    def told(fact: Any, call: _Call) -> _Told:  # noqa: ANN401 - as above
        attempt = getattr(fact, "attempt", "")
        return sender, receiver, words.format(call=call, tool=call.tool, attempt=attempt)

    return told


_FACTS: Final[Mapping[FactType, Callable[[Any, _Call], _Told]]] = {
    FactType.TURN_OPENED: _opened,
    FactType.TOOL_APPROVAL_REQUESTED: _plain("member", "person", "asks for {call}"),
    FactType.TOOL_APPROVED: _approved,
    FactType.TOOL_DENIED: _denied,
    FactType.TOOL_EXECUTION_STARTED: _plain("member", "tools", "{call}"),
    FactType.EXECUTION_RETRIED: _plain("member", "tools", "{tool} once more, attempt {attempt}"),
    FactType.TOOL_EXECUTION_SUCCEEDED: _succeeded,
    FactType.TOOL_EXECUTION_FAILED: _failed,
    FactType.EXECUTION_IN_DOUBT: _plain(
        "log", "log", "{tool} is in doubt: nobody knows whether it happened"
    ),
    FactType.RETRY_AUTHORISED: _plain("log", "log", "{tool} may be run again"),
    FactType.TURN_INTERRUPTING: _stopped,
    FactType.TURN_INTERRUPTED: _plain("log", "log", "is interrupted"),
    FactType.GRANT_REVOKED: _plain("log", "log", "a grant is revoked"),
}
"""How a fact is told; of those that are not here nobody in a chat notices anything."""
