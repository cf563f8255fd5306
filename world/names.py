"""The ids of worlds, of what is in them, and of all that is published there (W-3, W-5).

An id of a world, a chat or an agent needs no escapes; what is joined of other parts has them as in
K-7. Each id that is made of parts can be taken apart again, and only the text that would be made of
these parts is read.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple, NoReturn

import attrs

from ..models.errors import InvalidValue, shown
from ..models.ids import escape
from ..models.record import Record, field, record

KIND: Final = "world"
"""The kind of a member's run: only hosts of worlds perform it."""
ID_LENGTH: Final = 64
"""Characters of the id of a world, a chat or an agent, at most."""
HUMAN: Final = "human"
"""Who is called when an agent asks for a person."""
WORLD: Final = "world"
"""The sender of what the world itself says, and who gives a title that no person gave."""
SYSTEM: Final = "system"
"""The sender of what the system says; nobody answers it."""
TAKEN: Final = frozenset({HUMAN, "you", SYSTEM, WORLD})
"""Words that are no agent's id; nor is any that begins with `user`."""

_ID: Final = re.compile(r"[a-z0-9][a-z0-9_-]*", re.ASCII)
_NTH: Final = re.compile(r"[2-9]|[1-9][0-9]{1,8}", re.ASCII)
_COUNT: Final = re.compile(r"0|[1-9][0-9]{0,17}", re.ASCII)
_RIGHT: Final = f"give 1 to {ID_LENGTH} of a-z, 0-9, _ and -, the first of them a letter or a digit"


def is_id(text: str) -> bool:
    """Whether a text may be the id of a world or a chat."""
    return len(text) <= ID_LENGTH and _ID.fullmatch(text) is not None


def check_id(value: object, *, place: str) -> str:
    """Return the id of a world or a chat, or raise `InvalidValue` at `place`."""
    if type(value) is not str:
        raise InvalidValue(place=place, cause=f"{shown(value)} is no text", fix=_RIGHT)
    if not is_id(value):
        raise InvalidValue(place=place, cause=f"{shown(value)} is no id", fix=_RIGHT)
    return value


def check_agent(value: object, *, place: str) -> str:
    """Return the id of an agent, or raise `InvalidValue` at `place`."""
    name = check_id(value, place=place)
    if name in TAKEN or name.startswith("user"):
        raise InvalidValue(
            place=place,
            cause=f"{name!r} is no agent's id: it means a person, or the world itself",
            fix=f"take another than {', '.join(sorted(TAKEN))}, user…",
        )
    return name


def an_id(_: object, field: attrs.Attribute[Any], value: object) -> None:
    """Accept the id of a world or a chat in the field of a record."""
    check_id(value, place=field.name)


def an_agent(_: object, field: attrs.Attribute[Any], value: object) -> None:
    """Accept the id of an agent in the field of a record."""
    check_agent(value, place=field.name)


def slug(title: str, *, place: str = "title") -> str:
    """Return the id made of a title: lower case, every run of other characters one ``-``.

    What is an id stays as it is. Raises `InvalidValue` where nothing is left.
    """
    if is_id(title):
        return title
    made = re.sub(r"[^a-z0-9_]+", "-", title.lower(), flags=re.ASCII)
    made = made.lstrip("-_")[:ID_LENGTH].rstrip("-")
    if not made:
        raise InvalidValue(
            place=place,
            cause=f"{shown(title)} has no letter or digit that an id may have",
            fix="give an id beside it",
        )
    return made


@record
class MemberName(Record):
    """One agent in one chat: the name of its run. `nth` counts its memories, from 1."""

    world: str = field(validator=an_id)
    chat: str = field(validator=an_id)
    agent: str = field(validator=an_agent)
    nth: int = field(default=1)

    def __attrs_post_init__(self) -> None:
        """Refuse a memory that no run can have."""
        if type(self.nth) is not int or (self.nth != 1 and not _NTH.fullmatch(str(self.nth))):
            raise InvalidValue(
                place="nth", cause=f"{shown(self.nth)} counts no memory", fix="count from 1"
            )

    @property
    def run_id(self) -> str:
        """The id of its run."""
        return member_run(self.world, self.chat, self.agent, self.nth)

    @property
    def log(self) -> str:
        """The log of its chat."""
        return chat_log(self.world, self.chat)


class ChatName(NamedTuple):
    """One chat of one world."""

    world: str
    chat: str


def world_log(world: str) -> str:
    """Return the name of a world's log."""
    return escape(world)


def chat_log(world: str, chat: str) -> str:
    """Return the name of a chat's log, `WORLD/CHAT`."""
    return f"{escape(world)}/{escape(chat)}"


def chat_of(log: str) -> ChatName | None:
    """Return the chat whose log has this name; None for the log of something else."""
    parts = log.split("/")
    return ChatName(*parts) if len(parts) == 2 and all(map(is_id, parts)) else None  # noqa: PLR2004 - a world and a chat


def member_run(world: str, chat: str, agent: str, nth: int = 1) -> str:
    """Return the id of a member's run: `WORLD/CHAT/AGENT`, from its second memory on `…#NTH`."""
    run_id = f"{escape(world)}/{escape(chat)}/{escape(agent)}"
    return run_id if nth == 1 else f"{run_id}#{nth}"


def member_of(run_id: str) -> MemberName | None:
    """Return the member whose run has this id; None for the run of something else."""
    parts = run_id.split("/")
    if len(parts) != 3:  # noqa: PLR2004 - a world, a chat, an agent
        return None
    agent, mark, nth = parts[2].partition("#")
    if mark and not _NTH.fullmatch(nth):
        return None
    try:
        return MemberName(world=parts[0], chat=parts[1], agent=agent, nth=int(nth or 1))
    except InvalidValue:
        return None


def said_entry(run_id: str, number: int) -> str:
    """Return the id of the entry of a member's answer: the number is that of its note (W-5)."""
    return f"{run_id}/said/{number}"


def limit_entry(run_id: str, number: int) -> str:
    """Return the id of the handoff at the limit of turns, for entry `number` (W-22)."""
    return f"{run_id}/limit/{number}"


def answers_entry(run_id: str, number: int) -> str:
    """Return the id of the handoff at the limit of answers, for entry `number` (W-23)."""
    return f"{run_id}/answers/{number}"


def notice_entry(run_id: str, number: int) -> str:
    """Return the id of the notice of an answer that said nothing; `number` is its note's (W-28)."""
    return f"{run_id}/notice/{number}"


def say_entry(sender: str, message_id: str) -> str:
    """Return the id of what a person says, so that nobody sits on an answer's id (W-10)."""
    return f"say/{escape(sender)}/{escape(message_id)}"


def title_entry(chat: str) -> str:
    """Return the id of the entry of a chat's title that no person gave (W-70)."""
    return f"title/{escape(chat)}"


def stop_entry(run_id: str, number: int) -> str:
    """Return the id of the entry that nobody waits for the answer after note `number`."""
    return f"stop/{escape(run_id)}/{number}"


REQUEST: Final = "request"
"""Begins the id of a request: an approval as a message (W-40)."""
DECISION: Final = "decision"
"""Begins the id of what was decided of a request (W-43)."""
RESULT: Final = "result"
"""Begins the id of what became of a call (W-43)."""


class CallAt(NamedTuple):
    """One call of one turn of one run."""

    run_id: str
    turn_id: str
    invocation_id: str


def request_id(run_id: str, turn_id: str, invocation_id: str) -> str:
    """Return the id of the request of a call (W-40)."""
    return _joined(REQUEST, run_id, turn_id, invocation_id)


def decision_id(run_id: str, turn_id: str, invocation_id: str) -> str:
    """Return the id of the decision of a call (W-43)."""
    return _joined(DECISION, run_id, turn_id, invocation_id)


def result_id(run_id: str, turn_id: str, invocation_id: str) -> str:
    """Return the id of the result of a call (W-43)."""
    return _joined(RESULT, run_id, turn_id, invocation_id)


def call_at(text: str, *kinds: str, place: str = "request_id") -> CallAt:
    """Return the call that an id names, of these kinds: a request's, where none is given.

    Raises `InvalidValue` at `place` for any text that is no such id.
    """
    wanted = kinds or (REQUEST,)
    parts = _parts(text, wanted, 4)
    if parts is None:
        _no_id(text, place, wanted, "RUN/TURN/INVOCATION")
    return CallAt(*parts[1:])


DOUBT: Final = "doubt"
"""Begins the id of a doubt: a call of which nobody knows whether it happened (W-46)."""


class AttemptAt(NamedTuple):
    """One attempt of one call."""

    call: CallAt
    attempt: int


def doubt_id(run_id: str, turn_id: str, invocation_id: str, attempt: int) -> str:
    """Return the id of the doubt about one attempt of a call (W-46)."""
    return _joined(DOUBT, run_id, turn_id, invocation_id, str(attempt))


def doubt_at(text: str, *, place: str = "doubt_id") -> AttemptAt:
    """Return the attempt that a doubt is about. Raises `InvalidValue` at `place`."""
    parts = _parts(text, (DOUBT,), 5)
    if parts is None or not _COUNT.fullmatch(parts[4]):
        _no_id(text, place, (DOUBT,), "RUN/TURN/INVOCATION/ATTEMPT")
    return AttemptAt(CallAt(*parts[1:4]), int(parts[4]))


QUESTION: Final = "question"
"""Begins the id of what a running tool asks a person (W-67)."""
REPLY: Final = "reply"
"""Begins the id of the reply to a question: there is one for each, so the first stands."""


class QuestionAt(NamedTuple):
    """One question of one attempt of one call; `number` counts them, from 1."""

    call: CallAt
    attempt: int
    number: int


def question_id(run_id: str, turn_id: str, invocation_id: str, attempt: int, number: int) -> str:
    """Return the id of the entry of a question (W-67)."""
    return _joined(QUESTION, run_id, turn_id, invocation_id, str(attempt), str(number))


def reply_id(question: str) -> str:
    """Return the id of the reply to a question, by the question's id. Raises `InvalidValue`."""
    question_at(question)
    return REPLY + question.removeprefix(QUESTION)


def question_at(text: str, *kinds: str, place: str = "question_id") -> QuestionAt:
    """Return the question that an id names, of these kinds: a question's, where none is given.

    Raises `InvalidValue` at `place` for any text that is no such id.
    """
    wanted = kinds or (QUESTION,)
    parts = _parts(text, wanted, 6)
    if parts is None or not (_COUNT.fullmatch(parts[4]) and _COUNT.fullmatch(parts[5])):
        _no_id(text, place, wanted, "RUN/TURN/INVOCATION/ATTEMPT/NUMBER")
    return QuestionAt(CallAt(*parts[1:4]), int(parts[4]), int(parts[5]))


def _joined(*parts: str) -> str:
    return "/".join(map(escape, parts))


def _parts(text: str, kinds: tuple[str, ...], count: int) -> list[str] | None:
    """Return the parts of an id of these kinds; None where `_joined` would not have made it."""
    parts = text.split("/")
    if len(parts) != count or parts[0] not in kinds:
        return None
    plain = [part.replace("%2F", "/").replace("%25", "%") for part in parts]
    return plain if all(plain) and _joined(*plain) == text else None


def _no_id(text: str, place: str, kinds: tuple[str, ...], form: str) -> NoReturn:
    kind = " or ".join(kinds)
    raise InvalidValue(
        place=place,
        cause=f"{shown(text)} is no id of a {kind}",
        fix=f"give {kinds[0]}/{form} as it was told, each part with %2F for / and %25 for %",
    )
