"""One chat as a console has heard of it: its lines, who speaks now, and what waits for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

import attrs

from ..models.errors import shown
from ..models.safe_text import harmless, harmless_lines
from ..models.values import Json, freeze
from ..world.names import REQUEST, call_at, doubt_at
from .chat_heard import Came, ChatHeard
from .heard import Live, Off
from .machine import Line
from .texts import clock_time, spelt
from .watched import Badge

LINES: Final = 2_000
"""Lines that a chat shows; what was before is not shown any more."""
SPOKEN: Final = 20_000
"""Characters of what a model says just now that are shown, the last of them."""
SPEAKERS: Final = 50
"""Models and tools that are shown at once while they say something."""
RESULT: Final = 2_000
"""Characters of a call's result that a chat shows; the run has all of it."""
MEMBERS: Final = 50
"""Runs of members whose calls are shown as cards."""

_ROLES: Final = {"person": "bold cyan", "agent": "bold green", "system": "dim", "world": "bold"}


@attrs.define
class Speaking:
    """What somebody says just now, and nothing keeps."""

    who: str
    text: str = ""


@attrs.frozen(kw_only=True)
class OpenQuestion:
    """A question of a tool, as the log has it."""

    question_id: str
    at: float | None
    body: Mapping[str, Any]


class ChatWatched:
    """A chat under observation."""

    def __init__(self, world: str, chat: str) -> None:
        """Begin with nothing heard."""
        self.world: Final = world
        self.chat: Final = chat
        self.lines: Final[list[Line]] = []
        """What has happened, as it is shown."""
        self.speaking: Final[dict[str, Speaking]] = {}
        """What is said just now, by the id that its entry will have."""
        self.questions: Final[dict[str, OpenQuestion]] = {}
        """Those that wait for a reply."""
        self.replies: Final[dict[str, str]] = {}
        """How the questions that were replied to ended."""
        self.runs: Final[list[str]] = []
        """The runs of members that have asked a person something."""
        self.is_live = False
        """Whether what is known is what is."""
        self.why = ""
        """Why nothing is heard."""
        self._off = False
        self._last = 0

    @property
    def badge(self) -> Badge:
        """How what is shown relates to what is."""
        if self._off:
            return Badge.OFF
        return Badge.LIVE if self.is_live else Badge.CATCHING_UP

    @property
    def told(self) -> str:
        """The same in words."""
        why = f": {harmless(self.why, limit=200)}" if self._off and self.why else ""
        return f"{self.badge}{why}"

    def hear(self, heard: ChatHeard) -> None:
        """Take what was heard."""
        if isinstance(heard, Live):
            self.is_live, self._off, self.why = True, False, ""
        elif isinstance(heard, Off):
            self.is_live, self._off, self.why = False, True, heard.why
            self.speaking.clear()
        else:
            self._take(heard)

    def _take(self, came: Came) -> None:
        message = came.message
        match message.get("type"):
            case "entry":
                self._entry(message)
            case "projection":
                self._projection(message)
            case "transient":
                self._transient(message)
            case _:
                pass
        del self.lines[:-LINES]

    def _entry(self, message: Mapping[str, Any]) -> None:
        number, body = message.get("number"), message.get("body")
        if not isinstance(number, int) or number <= self._last:
            return
        self._last = number
        name = f"{message.get('entry_id')}"
        self.speaking.pop(name, None)
        said = cast("Mapping[str, Any]", body if isinstance(body, Mapping) else {})
        at = _at(message)
        match said.get("kind"):
            case "message" | "handoff":
                self._says(said, at)
            case "notice":
                self._line(at, "notice", "yellow", f"{said.get('text')}")
            case "question":
                self.questions[name] = OpenQuestion(question_id=name, at=at, body=said)
                self._line(at, f"{said.get('server')} asks", "bold magenta", f"{said.get('text')}")
            case "reply":
                self._reply(said, at, late=message.get("late") is True)
            case "stop":
                self._line(at, f"{said.get('by')} stops it", "bold", f"{said.get('reason') or ''}")
            case _:
                self._line(at, "something else", "dim", f"kind {said.get('kind')!r}")

    def _says(self, said: Mapping[str, Any], at: float | None) -> None:
        handoff = " hands over" if said.get("kind") == "handoff" else ""
        style = "bold yellow" if handoff else _ROLES.get(f"{said.get('role')}", "bold")
        self._line(at, f"{said.get('sender')}{handoff}", style, f"{said.get('text')}")

    def _reply(self, said: Mapping[str, Any], at: float | None, *, late: bool) -> None:
        question, action, by = f"{said.get('to')}", f"{said.get('action')}", f"{said.get('by')}"
        told = (
            f"{harmless(by, limit=80)}: {harmless(action, limit=40)}{', too late' if late else ''}"
        )
        content = said.get("content")
        if self.questions.pop(question, None) is not None:
            self.replies[question] = told
            while len(self.replies) > LINES:
                del self.replies[next(iter(self.replies))]
        self._line(at, f"{by} replies", "magenta", action if content is None else _spelt(content))

    def _projection(self, message: Mapping[str, Any]) -> None:
        role, who, at = f"{message.get('role')}", f"{message.get('agent')}", _at(message)
        tool = f"{message.get('tool_name')}"
        if role in {"request", "doubt"}:
            self._remember_run(f"{message.get('id')}", doubt=role == "doubt")
            found = message.get("asks")
            asks = cast("Mapping[str, Any]", found if isinstance(found, Mapping) else {})
            what = f"{asks.get('tool_name')} {_spelt(asks.get('arguments') or {})}"
            asked = "does not know whether it happened" if role == "doubt" else "wants to call"
            self._line(at, f"{who} {asked}", "bold yellow", what)
        elif role == "decision":
            verb = "approved" if message.get("approved") else "denied"
            by = message.get("decided_by") or message.get("grant_id") or "somebody"
            reason = f"“{message.get('reason')}”" if message.get("reason") else ""
            self._line(at, f"{verb} {tool} of {who} by {by}", "bold", reason)
        elif role == "tool":
            said = next((message[it] for it in ("result", "error", "reason") if it in message), "")
            text = said if isinstance(said, str) else _spelt(said)
            self.speaking.pop(f"{message.get('id')}", None)
            cut = f"{text[:RESULT]}…" if len(text) > RESULT else text
            self._line(at, f"{tool} of {who}: {message.get('status')}", "dim", cut)

    def _remember_run(self, name: str, *, doubt: bool) -> None:
        try:
            run_id = (doubt_at(name).call if doubt else call_at(name, REQUEST)).run_id
        except ValueError:
            return
        if run_id not in self.runs and len(self.runs) < MEMBERS:
            self.runs.append(run_id)

    def _transient(self, message: Mapping[str, Any]) -> None:
        name, kind = f"{message.get('entry_id')}", message.get("kind")
        if kind == "start":
            self._begin(name, f"{message.get('agent')}")
        elif kind == "log":
            self._more(name, "a tool", f"{message.get('text')}\n")
        elif kind == "chunk" and isinstance(message.get("text"), str):
            self._more(name, "somebody", message["text"])
        elif kind == "error":
            self._more(name, "somebody", f"\n{message.get('message')}\n")

    def _begin(self, name: str, who: str) -> None:
        self.speaking[name] = Speaking(who)
        while len(self.speaking) > SPEAKERS:
            del self.speaking[next(iter(self.speaking))]

    def _more(self, name: str, who: str, text: str) -> None:
        if name not in self.speaking:
            self._begin(name, who)
        it = self.speaking[name]
        it.text = (it.text + text)[-SPOKEN:]

    def _line(self, at: float | None, who: str, style: str, text: str) -> None:
        head = f"{clock_time(at)}  {harmless(who, limit=200)}"
        self.lines.append([(head, style)])
        self.lines.extend([(f"  {it}", "")] for it in harmless_lines(text).split("\n") if text)

    def shown(self) -> list[Line]:
        """Return all that is shown: what has happened, and what is said just now."""
        lines = list(self.lines)
        for it in self.speaking.values():
            lines.append([(f"{harmless(it.who, limit=200)} …", "italic green")])
            lines += [[(f"  {line}", "italic")] for line in harmless_lines(it.text).split("\n")]
        return lines or [[("nothing was said here yet", "dim")]]


def _at(message: Mapping[str, Any]) -> float | None:
    at = message.get("at")
    try:
        return float(at) if isinstance(at, int | float) else None
    except OverflowError:
        return None


def _spelt(value: Json) -> str:
    """Return a value as JSON; what is none is told as it is."""
    try:
        return spelt(freeze(value, place="value"))
    except (ValueError, TypeError, RecursionError):
        return shown(value)
