"""What a person answers to a question of a tool, and whether it came too late (W-67)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from ..lifecycle.phases import Phase
from ..models.errors import InvalidValue, UnknownRun
from ..runtime.errors import RunForgotten
from ..runtime.journal.contract import Journal
from ..runtime.looking import Looking
from ..toolkits.mcp.questions import check_answer, why_not
from .entries import Action, Question, Reply, body_of, read_entry
from .errors import UnknownQuestion
from .names import question_at, reply_id


@attrs.frozen(kw_only=True)
class Replied:
    """What became of a reply: the first one to a question stands, whoever gave it."""

    number: int
    """Of the entry that stands."""
    entry_id: str
    reply: Reply
    """The one that stands."""
    new: bool
    """Whether it was given just now."""
    late: bool
    """Whether its call did not wait for it any more: nobody heeds it."""


def reply_of(
    question: str, *, accept: Mapping[str, Any] | None, decline: bool, cancel: bool, by: str
) -> Reply:
    """Return a reply to a question. Raises `InvalidValue` unless it says one thing."""
    if (accept is not None) + decline + cancel != 1:
        raise InvalidValue(
            place="reply",
            cause="says nothing, or more than one thing",
            fix="give one of accept={…}, decline=True, cancel=True",
        )
    action = Action.ACCEPT if accept is not None else Action.DECLINE
    return Reply(to=question, action=Action.CANCEL if cancel else action, content=accept, by=by)


async def replied(journal: Journal, log: str, reply: Reply, *, at: float) -> Replied:
    """Keep a reply, unless one stands already.

    Raises `UnknownQuestion`, `InvalidValue` for what the form does not take, and for a form that
    asks for a secret.
    """
    found = await journal.find_entry(log, reply.to)
    asked = None if found is None else read_entry(found, log=log)
    if not isinstance(asked, Question):
        raise UnknownQuestion(log, reply.to)
    if reply.content is not None:
        _check(asked, reply)
    name = reply_id(reply.to)
    try:
        entered = await journal.append_entry(log, name, body_of(reply), at=at)
    except InvalidValue:
        if await journal.find_entry(log, name) is None:
            raise
        new = False  # another stands
    else:
        new = entered.new
    kept = await journal.find_entry(log, name)
    stands = None if kept is None else read_entry(kept, log=log)
    if kept is None or not isinstance(stands, Reply):
        raise InvalidValue(
            place=f"log {log}, entry {name}",
            cause="is no reply, and its id is that of one",
            fix="look at the log: somebody else has written it",
        )
    late = await is_late(journal, stands, at=kept.at)
    return Replied(number=kept.number, entry_id=name, reply=stands, new=new, late=late)


def _check(asked: Question, reply: Reply) -> None:
    form = asked.schema
    secret = "it has no form" if form is None else why_not(form)
    if form is None or secret is not None:
        raise InvalidValue(
            place="accept",
            cause=f"is no answer to this question: {secret}",
            fix="decline it, or put it away with cancel",
        )
    check_answer(form, reply.content or {})


async def is_late(journal: Journal, reply: Reply, *, at: float) -> bool:
    """Whether the call that asked did not wait any more when its reply was kept, at this time."""
    asked = question_at(reply.to)
    try:
        call = await Looking(journal).call(*asked.call)
    except (UnknownRun, RunForgotten):
        return True
    if call is None:
        return True
    waits = call.phase is Phase.STARTED and call.attempt == asked.attempt
    return not waits and call.since is not None and call.since <= at
