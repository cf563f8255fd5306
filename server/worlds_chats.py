"""Chats of a world: opened, shown, spoken in, and what is decided, replied and stopped there.

Who speaks or decides is who asks (F-12): the token's name is `sender` and `by`, and the role is
`person`. A decision is no entry: its request names a call, and the call's run judges it as ever
(W-41, W-42). HTTP and the WebSocket use these very functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

import attrs

from ..models.deliveries import Match, Scope
from ..models.reasons import Reason
from ..models.values import Json
from ..runtime.submitting import Unanswered
from ..world.deciding import Judgement
from ..world.entries import check_title
from ..world.errors import UnknownAgent
from ..world.names import KIND, call_at
from .answers import Answer, Command, answered, posted, refused, response_of
from .deciding import call_told
from .face import Face
from .problems import Problem
from .routing import Asked, Endpoint, Role, Who
from .worlds import chat_json, named
from .worlds_known import chat_in, chat_of, check_speaker
from .worlds_standing import standing_of

if TYPE_CHECKING:  # an extra's
    from starlette.responses import Response


@attrs.frozen(kw_only=True)
class ChatBody:
    """A new chat; without an id it gets that of its title, without members all agents are."""

    chat: str | None = None
    title: str | None = None
    members: tuple[str, ...] | None = None


@attrs.frozen(kw_only=True)
class MessageBody:
    """What a person says; the id makes it idempotent (F-23)."""

    message_id: str
    text: str
    reply_to: str | None = None


@attrs.frozen(kw_only=True)
class ChatDecisionBody:
    """Somebody approves or denies a request. Whoever approves echoes what was shown (F-20).

    A tool's name and arguments are compared with what waits, and never run; only those of `edit`
    do.
    """

    request_id: str
    approved: bool
    scope: Scope = Scope.ONCE
    arguments_digest: str | None = None
    tool_name: str | None = None
    arguments: Mapping[str, Json] | None = None
    edit: Mapping[str, Json] | None = None
    reason: str | None = None
    match: Match = Match.EXACT
    expires_in: float | None = None


@attrs.frozen(kw_only=True)
class ReplyBody:
    """What a person answers to a question of a tool (W-67)."""

    question_id: str
    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, Json] | None = None


@attrs.frozen(kw_only=True)
class StopBody:
    """Somebody stops what a member does."""

    agent: str
    reason: str | None = None


async def say(face: Face, ids: Mapping[str, str], body: MessageBody, who: Who) -> Answer:
    """Have a person's message entered, once for each id (F-23). Raises what is answered."""
    who.check(Role.RUN)
    chat, configuration, _ = await chat_in(face, ids)
    check_speaker(who, configuration)
    said = await chat.say(who.name, body.text, message_id=body.message_id, reply_to=body.reply_to)
    told = {"number": said.number, "entry_id": said.entry_id, "new": said.new}
    return Answer(status=201 if said.new else 200, body=told)


async def decide(face: Face, ids: Mapping[str, str], body: ChatDecisionBody, who: Who) -> Answer:
    """Have a decision judged by the run of the call that a request names (W-41, W-42)."""
    who.check(Role.DECIDE)
    chat, configuration, _ = await chat_in(face, ids)
    check_speaker(who, configuration)
    call = call_at(body.request_id)
    try:
        judged = await chat.decide(
            body.request_id,
            approved=body.approved,
            decided_by=who.name,
            scope=body.scope,
            match=body.match,
            arguments_digest=body.arguments_digest,
            tool_name=body.tool_name,
            arguments=body.arguments,
            edit=body.edit,
            reason=body.reason,
            expires_in=body.expires_in,
            within=face.settings.answer,
        )
    except Unanswered as error:
        return posted(call.run_id, error.number)
    stands = None if judged.reason is Reason.RUN_MISMATCH else await call_told(face, KIND, call)
    return _answer(judged, {} if stands is None else {"call": stands})


async def reply(face: Face, ids: Mapping[str, str], body: ReplyBody, who: Who) -> Answer:
    """Have a reply to a question entered: the first stands (W-67). Raises what is answered."""
    who.check(Role.DECIDE)
    chat, configuration, _ = await chat_in(face, ids)
    check_speaker(who, configuration)
    if body.content is not None and body.action != "accept":
        raise Problem("invalid_value", "a content stands beside accept alone", at="content")
    replied = await chat.reply(
        body.question_id,
        accept=(body.content or {}) if body.action == "accept" else None,
        decline=body.action == "decline",
        cancel=body.action == "cancel",
        by=who.name,
    )
    stands = replied.reply
    told: dict[str, Json] = {
        "number": replied.number,
        "entry_id": replied.entry_id,
        "new": replied.new,
        "late": replied.late,
        "reply": {"action": str(stands.action), "content": stands.content, "by": stands.by},
    }
    if replied.new:
        return Answer(status=201, body=told)
    same = (str(stands.action), stands.by) == (body.action, who.name)
    if same and (stands.content or {}) == (body.content or {}):
        return Answer(status=200, body=told)
    raise Problem(
        "already_decided", "somebody has replied already, and the first stands", extra=told
    )


async def interrupt(face: Face, ids: Mapping[str, str], body: StopBody, who: Who) -> Answer:
    """Have what a member does stopped: its turn, or the answer that its model owes."""
    who.check(Role.DECIDE)
    chat, configuration, _ = await chat_in(face, ids)
    check_speaker(who, configuration)
    try:
        judged = await chat.interrupt(
            body.agent, reason=body.reason, by=who.name, within=face.settings.answer
        )
    except Unanswered as error:
        member = configuration.member(chat.name, body.agent)
        return posted("" if member is None else member.run_id, error.number)
    return _answer(judged, {})


def _answer(judged: Judgement, more: Mapping[str, Any]) -> Answer:
    """Return a receipt (F-21), or raise the refusal as a problem (F-22)."""
    told = {**judged.as_json(), **more}
    if judged.accepted or judged.reason is Reason.DUPLICATE:
        return Answer(status=200, body=told)
    raise refused(told)


async def command(face: Face, kind: str, ids: Mapping[str, str], body: object, who: Who) -> Answer:
    """Answer a command in a chat by its name, see `answered`."""
    return await answered(COMMANDS, kind, body, asked=(face, ids, who))


COMMANDS: Final[Mapping[str, Command[Mapping[str, str]]]] = {
    "decide": (ChatDecisionBody, decide),
    "interrupt": (StopBody, interrupt),
    "reply": (ReplyBody, reply),
    "say": (MessageBody, say),
}
"""What can be commanded in a chat, by the names that a WebSocket has for it."""


async def _list(face: Face, asked: Asked) -> Response:
    _, configuration = await face.worlds.known(asked.ids["world"])
    chats = [chat_json(name, it) for name, it in configuration.chats.items()]
    return response_of(Answer(status=200, body={"chats": chats}))


async def _open(face: Face, asked: Asked) -> Response:
    body: ChatBody = asked.body
    world, configuration = await face.worlds.known(asked.ids["world"])
    name = named(body.chat, body.title, place="chat")
    if body.title is not None:
        check_speaker(asked.who, configuration)
        check_title(body.title)
    try:
        chat = await world.open_chat(name, members=body.members)
    except UnknownAgent as error:
        raise Problem("invalid_value", str(error), at="members") from error
    if body.title is not None:
        await world.title(name, body.title, by=asked.who.name)
    return response_of(
        Answer(
            status=200 if name in configuration.chats else 201,
            body=chat_json(name, await chat.configuration()),
            headers={"Location": f"/v1/worlds/{world.name}/chats/{name}"},
        )
    )


async def _show(face: Face, asked: Asked) -> Response:
    chat, configuration, config = await chat_in(face, asked.ids)
    stands = await standing_of(face, chat, configuration)
    told = {"world": chat.world.name, **chat_json(chat.name, config), **stands}
    return response_of(Answer(status=200, body=told))


async def _close(face: Face, asked: Asked) -> Response:
    chat = await chat_of(face, asked.ids)
    await chat.close()
    return response_of(Answer(status=200, body=chat_json(chat.name, await chat.configuration())))


async def _clear(face: Face, asked: Asked) -> Response:
    chat = await chat_of(face, asked.ids)
    await chat.clear(asked.ids["agent"])
    configuration = await chat.world.configuration()
    member = configuration.member(chat.name, asked.ids["agent"])
    told = {"agent": asked.ids["agent"], "run_id": None if member is None else member.run_id}
    return response_of(Answer(status=200, body=told))


async def _messages(face: Face, asked: Asked) -> Response:
    return response_of(await say(face, asked.ids, asked.body, asked.who))


async def _decisions(face: Face, asked: Asked) -> Response:
    return response_of(await decide(face, asked.ids, asked.body, asked.who))


async def _replies(face: Face, asked: Asked) -> Response:
    return response_of(await reply(face, asked.ids, asked.body, asked.who))


async def _interrupts(face: Face, asked: Asked) -> Response:
    return response_of(await interrupt(face, asked.ids, asked.body, asked.who))


_CHATS: Final = "/v1/worlds/{world}/chats"
_CHAT: Final = "/v1/worlds/{world}/chats/{chat}"
_REFUSALS: Final = ("not_found", "capability_unsupported", *(str(reason) for reason in Reason))

ENDPOINTS: Final = (
    Endpoint(
        method="GET",
        path=_CHATS,
        handler=_list,
        role=Role.LOOK,
        summary="List the chats of a world.",
        codes=("not_found",),
    ),
    Endpoint(
        method="POST",
        path=_CHATS,
        handler=_open,
        role=Role.ADMIN,
        summary="Open a chat of some agents, or of all.",
        body=ChatBody,
        codes=("not_found", "overloaded"),
        statuses=(201, 200),
    ),
    Endpoint(
        method="GET",
        path=_CHAT,
        handler=_show,
        role=Role.LOOK,
        summary="How a chat stands: its members, and what waits for people.",
        codes=("not_found",),
    ),
    Endpoint(
        method="DELETE",
        path=_CHAT,
        handler=_close,
        role=Role.ADMIN,
        summary="Close a chat: what its members do is stopped, and nothing more is said.",
        codes=("not_found",),
    ),
    Endpoint(
        method="DELETE",
        path=f"{_CHAT}/memories/{{agent}}",
        handler=_clear,
        role=Role.ADMIN,
        summary="Have a member forget: it goes on as another run.",
        codes=("not_found",),
    ),
    Endpoint(
        method="POST",
        path=f"{_CHAT}/messages",
        handler=_messages,
        role=Role.RUN,
        summary="Say something in a chat.",
        body=MessageBody,
        codes=("not_found", "conflicting_duplicate", "run_inactive", "overloaded"),
        statuses=(201, 200),
    ),
    Endpoint(
        method="POST",
        path=f"{_CHAT}/decisions",
        handler=_decisions,
        role=Role.DECIDE,
        summary="Approve or deny a request of a member.",
        body=ChatDecisionBody,
        codes=_REFUSALS,
        statuses=(200, 202),
    ),
    Endpoint(
        method="POST",
        path=f"{_CHAT}/replies",
        handler=_replies,
        role=Role.DECIDE,
        summary="Reply to a question of a tool.",
        body=ReplyBody,
        codes=("not_found", "unknown_invocation", "already_decided", "overloaded"),
        statuses=(201, 200),
    ),
    Endpoint(
        method="POST",
        path=f"{_CHAT}/interrupt",
        handler=_interrupts,
        role=Role.DECIDE,
        summary="Stop what a member does.",
        body=StopBody,
        codes=_REFUSALS,
        statuses=(200, 202),
    ),
)
"""The endpoints of this module."""
