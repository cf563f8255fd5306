"""A chat as lines: what was said, what is asked and decided, and what came of it.

Each takes an event of a chat as the wire has it (section 11), and tells it in a line or a few. All
texts are anybody's: they are made harmless, and what follows their first line is indented.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

import attrs
import click

from ..models.ids import escape
from ..models.safe_text import harmless, harmless_lines
from ..models.sealed import shown_json, shown_text
from ..models.values import canonical
from ..world.names import call_at, doubt_at, member_of
from .places import Place
from .shown import DIGEST, command_line

_COLUMN: Final = 5
"""Columns of the number of an entry."""
_INDENT: Final = " " * (_COLUMN + 2)
_NAME: Final = 64
_ARGUMENTS: Final = 2_000
"""Characters of the arguments of a call that nobody decides about."""
_OPEN: Final = 1_000
"""Requests and questions that are remembered while what happened before is told."""
_LINE: Final = 4_000
"""Characters after which a streamed line that does not end is broken."""

Event = Mapping[str, Any]


def as_line(event: Event) -> str:
    """Return an event as one line of JSON, in ASCII: nothing in it moves a cursor."""
    return json.dumps(json.loads(canonical(event)), allow_nan=False, separators=(",", ":"))


class ChatLines:
    """Tells the events of chats; what waits is told with the command that answers it.

    Of what happened before (until the event ``live``) only what waits still is told so.
    """

    def __init__(
        self,
        tell: Callable[[str], None],
        *,
        place: Place,
        named: bool = False,
        stream: bool = False,
        past: bool = True,
    ) -> None:
        """`tell` writes a line; `named`: with the name of the chat; `stream`: what is said now.

        Without `past`, of what happened before only what waits still is told.
        """
        self._tell = tell
        self._past = past
        self._place = place
        self._named = named
        self._stream = stream
        self._live: set[str] = set()
        self._open: dict[str, _Asked] = {}
        """What waits, by its id, of what happened before."""
        self._speaking: dict[str, tuple[str, str]] = {}
        """What is said just now, by the entry that it will be: who says it, and its open line."""

    def take(self, event: Event, *, chat: str) -> None:
        """Tell an event of a chat."""
        kind = event.get("type")
        if kind == "entry":
            self._entry(event, chat)
        elif kind == "projection":
            self._projection(event, chat)
        elif kind == "transient" and self._stream:
            self._transient(event, chat)
        elif kind == "live":
            self._now_live(chat)

    def _entry(self, event: Event, chat: str) -> None:
        body = _object(event["body"])
        self._speaking.pop(event["entry_id"], None)
        told = _told_entry(body) + (" (too late)" if event.get("late") else "")
        self._happened(f"{event['number']}", told, chat)
        if body.get("kind") == "question":
            lines = replying(event["entry_id"], body, self._place)
            who = f"{_one(body.get('server'))}, for {_speaker(str(body.get('run')))}"
            self._asked(event["entry_id"], _Asked(chat, who, lines))
        elif body.get("kind") == "reply":
            self._open.pop(str(body.get("to")), None)

    def _projection(self, event: Event, chat: str) -> None:
        told = _PROJECTIONS.get(str(event.get("role")))
        if told is None:
            return
        sign, text = told(event)
        self._happened(sign, text, chat)
        request = _request_of(event)
        if event.get("role") in {"request", "doubt"}:
            answer = deciding if event["role"] == "request" else resolving
            what = f"{_one(event['asks']['tool_name'])} of {_one(event['agent'])}"
            self._asked(event["id"], _Asked(chat, what, answer(event, self._place)))
        elif request is not None:
            for name in [it for it in self._open if it == request or _is_of(it, request)]:
                del self._open[name]

    def _happened(self, mark: str, text: str, chat: str) -> None:
        if self._past or chat in self._live:
            for line in self._lines(mark, text, chat):
                self._tell(line)

    def _asked(self, name: str, asked: _Asked) -> None:
        if asked.chat in self._live:
            self._answers(asked.lines)
            return
        self._open[name] = asked
        if len(self._open) > _OPEN:
            del self._open[next(iter(self._open))]

    def _now_live(self, chat: str) -> None:
        self._live.add(chat)
        for name in [name for name, it in self._open.items() if it.chat == chat]:
            asked = self._open.pop(name)
            for line in self._lines("?", f"waits for you: {asked.what}", chat):
                self._tell(line)
            self._answers(asked.lines)

    def _answers(self, lines: tuple[str, ...]) -> None:
        for line in lines:
            self._tell(f"{_INDENT}{line}")

    def _transient(self, event: Event, chat: str) -> None:
        """Tell what is said just now, line by line: it is void if the model is asked again."""
        name, kind = str(event.get("entry_id")), event.get("kind")
        who, line = self._speaking.get(name, (_speaker(name), ""))
        if kind == "start":
            if int(event.get("try") or 1) > 1:
                self._said(
                    who, f"(asked again, try {event['try']}: what came before is void)", chat
                )
            self._speaking[name] = who, ""
        elif kind == "chunk" and isinstance(event.get("text"), str):
            whole, ends, line = (line + event["text"]).rpartition("\n")
            if len(line) > _LINE:
                whole, ends, line = f"{whole}{ends}{line}", "\n", ""
            if ends:
                self._said(who, whole, chat)
            self._speaking[name] = who, line
        elif kind in {"end", "error"}:
            if line:
                self._said(who, line, chat)
            if kind == "error":
                self._said(who, f"(no answer: {event.get('message')})", chat)
            self._speaking.pop(name, None)

    def _said(self, who: str, text: str, chat: str) -> None:
        where = f"{chat} " if self._named else ""
        for line in text.split("\n"):
            told = f"{_INDENT}{where}{harmless(who, limit=_NAME)} ┆ {harmless(line)}"
            self._tell(click.style(told, dim=True))

    def _lines(self, mark: str, text: str, chat: str) -> Iterator[str]:
        first, *others = harmless_lines(text).split("\n")
        where = f"{chat} " if self._named else ""
        yield f"{mark:>{_COLUMN}}  {where}{first}"
        yield from (f"{_INDENT}{line}" for line in others)


@attrs.frozen
class _Asked:
    """Something that waits for a person."""

    chat: str
    what: str
    lines: tuple[str, ...]
    """How it is answered."""


def _told_entry(body: Mapping[str, Any]) -> str:
    tell = _ENTRIES.get(str(body.get("kind")))
    return f"({_one(body.get('kind'))}: not known to this version)" if tell is None else tell(body)


def _message(body: Mapping[str, Any]) -> str:
    role = body.get("role")
    aside = "" if role in {"person", "agent"} else f" ({_one(role)})"
    return f"{_one(body.get('sender'))}{aside}: {_text(body.get('text'))}"


def _question(body: Mapping[str, Any]) -> str:
    who = _speaker(str(body.get("run")))
    return f"{_one(body.get('server'))} asks, for {who}: {_text(body.get('text'))}"


def _reply(body: Mapping[str, Any]) -> str:
    content = body.get("content")
    told = "" if content is None else f" {shown_json(content)}"
    return f"{_one(body.get('by'))} replies: {_one(body.get('action'))}{told}"


def _stop(body: Mapping[str, Any]) -> str:
    why = body.get("reason")
    told = f": {_text(why)}" if why else ""
    return f"{_one(body.get('by'))} stops {_speaker(str(body.get('run')))}{told}"


_ENTRIES: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "message": _message,
    "handoff": lambda body: f"{_one(body.get('sender'))} hands over: {_text(body.get('text'))}",
    "notice": lambda body: f"notice: {_text(body.get('text'))}",
    "question": _question,
    "reply": _reply,
    "stop": _stop,
}


def _request(event: Event) -> tuple[str, str]:
    asks = event["asks"]
    what = f"{_one(asks['tool_name'])} {shown_json(asks['arguments'])}"
    return "?", f"{_one(event['agent'])} asks for approval: {what}"


def _decision(event: Event) -> tuple[str, str]:
    tool, agent = _one(event.get("tool_name")), _one(event.get("agent"))
    approved = event.get("approved", True)
    by = event.get("grant_id") or event.get("decided_by") or "somebody"
    scope = event.get("scope")
    more = f" for the {scope}" if approved and scope not in {None, "once"} else ""
    reason = f": {_text(event.get('reason'))}" if event.get("reason") else ""
    verb = "approves" if approved else "denies"
    return ("+" if approved else "-"), f"{_one(by)} {verb} {tool} of {agent}{more}{reason}"


def _result(event: Event) -> tuple[str, str]:
    tool = f"{_one(event.get('tool_name'))} of {_one(event.get('agent'))}"
    if event.get("status") == "succeeded":
        result = harmless(shown_json(event.get("result")), limit=_ARGUMENTS)
        return "✓", f"{tool}: {result}"
    if event.get("status") == "failed":
        return "✗", f"{tool} failed: {_text(event.get('error'))}"
    return "✗", f"{tool} was denied: {_text(event.get('reason'))}"


def _doubt(event: Event) -> tuple[str, str]:
    asks = event["asks"]
    what = f"{_one(asks['tool_name'])} {shown_json(asks['arguments'])}"
    return "~", f"{_one(event['agent'])} does not know whether this happened: {what}"


_PROJECTIONS: Final[Mapping[str, Callable[[Event], tuple[str, str]]]] = {
    "request": _request,
    "decision": _decision,
    "tool": _result,
    "doubt": _doubt,
}


def deciding(event: Event, place: Place) -> tuple[str, ...]:
    """Return the commands that decide about a request, and about nothing else."""
    digest = str(event["asks"]["arguments_digest"] or "")[:DIGEST]
    lines = (
        command_line(f"world {verb}", event["id"], place=place, digest=digest)
        for verb in ("approve", "deny")
    )
    unsaid = "no command line holds its id: turnlock show asks about it"
    return tuple(line or unsaid for line in lines)


def resolving(event: Event, place: Place) -> tuple[str, ...]:
    """Return the command that says what became of a call in doubt; pasted as it is, it asks how."""
    call, attempt = doubt_at(event["id"])
    line = command_line(
        "resolve", call.run_id, call.invocation_id, place=place, turn=call.turn_id, attempt=attempt
    )
    how = ", ".join({"retry": "--retry", "result": "--result JSON"}.get(it, "--error TEXT")
                    for it in event["choices"])  # fmt: skip
    return (f"{line or 'turnlock resolve'}  # with {how}",)


def replying(entry_id: str, body: Mapping[str, Any], place: Place) -> tuple[str, ...]:
    """Return the command that answers a question, with the fields of its form."""
    line = command_line("world reply", entry_id, place=place) or "turnlock world reply"
    fields = _object(_object(body.get("schema")).get("properties"))
    names = ", ".join(f"{json.dumps(harmless(name, limit=_NAME))}: …" for name in fields)
    return (f"{line} --accept '{{{names}}}', or --decline",)


def _request_of(event: Event) -> str | None:
    """Return the id of the request that a decision or a result is about."""
    try:
        call = call_at(str(event.get("id")), "decision", "result")
    except ValueError:
        return None
    return "/".join(map(escape, ("request", *call)))


def _is_of(name: str, request: str) -> bool:
    """Whether a doubt is about the call of this request."""
    return name.startswith(f"doubt{request.removeprefix('request')}/")


def _speaker(entry_or_run: str) -> str:
    """Return the agent of a run, or of an entry that the run publishes."""
    member = member_of("/".join(entry_or_run.split("/")[:3]))
    return "somebody" if member is None else member.agent


def _object(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _one(value: object) -> str:
    return harmless(str(value), limit=_NAME)


def _text(value: object) -> str:
    return shown_text(value) if isinstance(value, str) else ""
