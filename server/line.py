"""The prompts of a run that wait their turn, as its notes tell of them (S-80, S-81, S-83).

A prompt is kept first as the note `waiting/ID`, and so once for ever. Once nothing is owed it is
said: the note `said/N` that names its id. Where another runtime is asked it is `sent/ID` after it
was taken; or, where a crash came between and nobody knows, `outcome_unknown/ID`: never sent again;
or `refused/ID`, where the runtime would not take it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from ..adapters.contract import CommandRefused, TurnSent
from ..agent.conversation import PREFIX
from ..agent.messages import Kind
from ..models.safe_text import harmless
from ..models.values import Json
from ..runtime.journal.contract import Journal
from ..runtime.journal.ledger import Cursor, Domain, Note, Noted
from ..runtime.runtime import Runtime

WAITING: Final = "waiting"
SENT: Final = "sent"
UNKNOWN: Final = "outcome_unknown"
REFUSED: Final = "refused"
ID: Final = 128
"""Characters of a `message_id` (S-80)."""


@attrs.frozen(kw_only=True)
class Taken:
    """A prompt that is kept; said again, the same (F-23)."""

    message_id: str
    cursor: Cursor
    turn_id: str | None = None
    steered: bool = False
    restored: bool = False
    ignored: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Waiting:
    """A prompt that is kept and was not said yet."""

    message_id: str
    text: str


def waiting_id(message_id: str) -> str:
    """Return the id of the note that a prompt is first."""
    return f"{WAITING}/{message_id}"


def check_message_id(message_id: str) -> None:
    """Raise `CommandRefused` for what is no id of a prompt (S-80)."""
    if not 0 < len(message_id) <= ID:
        raise CommandRefused(
            "invalid_value",
            f"it has {len(message_id):,} characters; give 1 to {ID}",
            at="message_id",
        )


async def taken_before(journal: Journal, run_id: str, message_id: str, text: str) -> Taken | None:
    """Return the first answer to a prompt of this id; None where there was none (F-23).

    Raises `CommandRefused` (`conflicting_duplicate`) where it had another text.
    """
    noted = await journal.find_note(run_id, waiting_id(message_id))
    if noted is None:
        return None
    body = noted.note.body
    if body.get("text") != text:
        raise conflicting(run_id, message_id)
    sent = await journal.find_note(run_id, f"{SENT}/{message_id}") if body.get("steered") else None
    ignored = body.get("ignored", ())
    return Taken(
        message_id=message_id,
        cursor=noted.cursor,
        turn_id=None if sent is None else _text(sent.note.body.get("turn_id")),
        steered=sent is not None and bool(sent.note.body.get("steered")),
        restored=bool(body.get("restored")),
        ignored=tuple(map(str, ignored)) if isinstance(ignored, list | tuple) else (),
    )


def conflicting(run_id: str, message_id: str) -> CommandRefused:
    """Return the refusal of a prompt whose id another one has."""
    return CommandRefused(
        "conflicting_duplicate",
        f"run {harmless(run_id)!r}: {harmless(message_id)!r} is the id of another prompt; give this"
        " one another",
    )


class Line:
    """The line of one run that is performed here."""

    def __init__(self, *, run_id: str, runtime: Runtime) -> None:
        """Begin with an empty one."""
        self.run_id: Final = run_id
        self._runtime = runtime
        self._waiting: dict[str, Waiting] = {}
        self.unsent: Final[dict[str, Waiting]] = {}
        """What was said, and of which nobody knows whether the runtime took it."""
        self._said = 0
        """Messages that were said."""

    def load(self, notes: Iterable[Noted]) -> None:
        """Take the messages of the run, in their order."""
        for noted in notes:
            body, kind = noted.note.body, noted.note.kind
            message_id = body.get("message_id")
            if (noted.note.id or "").startswith(PREFIX):
                self._said += 1
            if not isinstance(message_id, str):
                continue
            prompt = Waiting(message_id=message_id, text=str(body.get("text")))
            if kind == WAITING:
                self._waiting[message_id] = prompt
            elif kind == Kind.USER:
                self._waiting.pop(message_id, None)
                self.unsent[message_id] = prompt
            elif kind in {SENT, UNKNOWN, REFUSED}:
                self.unsent.pop(message_id, None)

    def __len__(self) -> int:
        """Count those that wait."""
        return len(self._waiting)

    @property
    def first(self) -> Waiting | None:
        """The one whose turn it is."""
        return next(iter(self._waiting.values()), None)

    async def keep(
        self, prompt: Waiting, extra: Mapping[str, Any], *, in_line: bool = True
    ) -> None:
        """Keep a prompt that waits; it is said in its turn, whatever happens to this process.

        One that is not to stand `in_line` is said by whoever keeps it, now.
        """
        body = {"message_id": prompt.message_id, "text": prompt.text, **extra}
        await self._note(WAITING, waiting_id(prompt.message_id), body)
        if in_line:
            self._waiting[prompt.message_id] = prompt

    def was_said(self, prompt: Waiting) -> None:
        """Take it that a session has kept a prompt as said."""
        self._waiting.pop(prompt.message_id, None)

    async def say(self, prompt: Waiting) -> None:
        """Keep a prompt as said, for a session that does not."""
        body = {"text": prompt.text, "message_id": prompt.message_id}
        await self._note(Kind.USER.value, f"{PREFIX}{self._said + 1}", body)
        self._said += 1
        self._waiting.pop(prompt.message_id, None)
        self.unsent[prompt.message_id] = prompt

    async def was_sent(self, message_id: str, sent: TurnSent) -> None:
        """Keep that the runtime took it."""
        body: dict[str, Json] = {"message_id": message_id}
        if sent.turn_id is not None:
            body["turn_id"] = sent.turn_id
        if sent.steered:
            body["steered"] = True
        await self._note(SENT, f"{SENT}/{message_id}", body)
        self.unsent.pop(message_id, None)

    async def is_unknown(self, message_id: str) -> None:
        """Keep that nobody knows whether the runtime took it: a person is shown that."""
        await self._note(UNKNOWN, f"{UNKNOWN}/{message_id}", {"message_id": message_id})
        self.unsent.pop(message_id, None)

    async def was_refused(self, message_id: str, why: str) -> None:
        """Keep that the runtime would not take it: it is said again under another id, if at all."""
        told: dict[str, Json] = {"message_id": message_id, "text": harmless(why)}
        await self._note(REFUSED, f"{REFUSED}/{message_id}", told)
        self.unsent.pop(message_id, None)

    async def _note(self, kind: str, note_id: str, body: Mapping[str, Json]) -> None:
        note = Note(
            domain=Domain.MESSAGE,
            kind=kind,
            body={"id": note_id, **body},
            at=self._runtime.now(),
            id=note_id,
        )
        await self._runtime.note(self.run_id, note)


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None
