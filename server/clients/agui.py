"""AG-UI 1.0: what its client asks is kept and judged, and answered with a stream (F-60 … F-66)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, cast

import attrs

from ...adapters.contract import CommandRefused
from ...models.deliveries import Resolution, Scope
from ...models.errors import InvalidValue
from ...models.values import Json
from ...runtime.journal.ledger import START, Cursor
from ..bodies import FOREIGN_LIMIT, named
from ..commands import STARTS
from ..face import Face
from ..line import conflicting
from ..problems import Problem
from ..routing import Asked, Endpoint, Role, Who
from .agui_events import NAME, RESULT, Agui
from .agui_messages import ASSISTANT, TOOL, USER, Messages
from .answering import Heard, Saying, answer, settle
from .approval_ids import ApprovalId
from .following import Event, Following
from .streams import Translated
from .threads import say, thread

if TYPE_CHECKING:  # an extra's
    from starlette.responses import Response

OURS: Final = ("said/", RESULT)
"""Beginnings of the ids that answers and ends of calls have."""


@attrs.frozen(kw_only=True)
class Resume:
    """What a person says to one question."""

    FOREIGN: ClassVar[bool] = True
    interrupt_id: str = named("interruptId")
    status: Literal["resolved", "cancelled"]
    payload: Json = None


@attrs.frozen(kw_only=True)
class RunAgentInput:
    """What the client asks with, of which more is let be: tools and context of the page, say."""

    FOREIGN: ClassVar[bool] = True
    thread_id: str = named("threadId")
    run_id: str = named("runId")
    messages: tuple[Mapping[str, Json], ...]
    state: Json = None
    resume: tuple[Resume, ...] | None = None
    protocol_version: str | None = named("protocolVersion", default=None)


async def stream(face: Face, asked: Asked) -> Response:
    """Keep what is new, and answer with what the client lacks."""
    body: RunAgentInput = asked.body
    messages = Messages(body.messages)
    if not body.thread_id:
        raise Problem("invalid_value", "a thread has a name", at="threadId")
    entry = await thread(face, body.thread_id, asked.who, agent=asked.query.get("agent"))
    following = Following.of(face.hub, entry)
    try:
        await following.catch_up()
        above, keeps_state = _known(body.state)
        translator = Agui(
            following.story,
            run_id=body.run_id,
            messages=messages,
            above=above if above <= following.last else START,
            keeps_state=keeps_state,
        )
        told = await _commanded(face, following, body, asked.who, translator)
        version = body.protocol_version
        began = translator.start(**({} if version is None else {"protocolVersion": VERSION}))
        return Translated(following, [began, *told, *following.begin(translator)])
    except BaseException:
        following.close()
        raise


VERSION: Final = "1.0"
"""The version of the protocol that is spoken."""


async def _commanded(
    face: Face, following: Following, body: RunAgentInput, who: Who, translator: Agui
) -> Sequence[Event]:
    """Have answers judged and the prompt kept; say what was refused (F-60, F-65).

    What each part needs is asked of the token before any of it is done (F-11).
    """
    prompt = _prompt(body.messages, following)
    said = [(it.interrupt_id, what) for it in body.resume or () if (what := _said(it)) is not None]
    if prompt is not None:
        who.check(Role.RUN)
    if said:
        who.check(Role.DECIDE)
    told: list[Event] = []
    for name, it in said:
        heard = await _judged(face, name, it, body.thread_id, who)
        if not heard.holds:
            told.append(translator.refused(name, heard.reason or "invalid_value", heard.call))
    if prompt is not None:
        told += await _prompted(face, following, prompt, who)
    if said:
        sequence = (await face.journal.entry(body.thread_id)).sequence
        await following.reach(Cursor(sequence))
    return told


async def _prompted(
    face: Face, following: Following, prompt: tuple[str, str], who: Who
) -> Sequence[Event]:
    """Have a prompt kept; where a call in doubt stands before it, the stream goes on to ask."""
    message_id, text = prompt
    try:
        taken = await say(face, following.story.run_id, text, who, message_id=message_id)
    except CommandRefused as error:
        if error.code != "in_doubt":
            raise
        return [_untaken(message_id, error)]
    await following.reach(taken.cursor)
    return ()


def _untaken(message_id: str, error: CommandRefused) -> Event:
    told = {"messageId": message_id, "reason": error.code, "detail": str(error)}
    return {"type": "CUSTOM", "name": "PROMPT_REFUSED", "value": told}


async def _judged(
    face: Face, interrupt_id: str, said: Saying | Mapping[str, Any], run_id: str, who: Who
) -> Heard:
    asked = ApprovalId.read(interrupt_id)
    if asked is None or asked.is_of_doubt is isinstance(said, Saying):
        return Heard(accepted=False, reason="invalid_value")
    if asked.run_id != run_id:
        return Heard(accepted=False, reason="run_mismatch")
    if isinstance(said, Saying):
        return await answer(face, asked, said, who)
    return await settle(face, asked, said, who)


def _said(resume: Resume) -> Saying | Mapping[str, Any] | None:
    """Return what an answer says; None for one that decides nothing (F-65)."""
    payload = resume.payload
    if resume.status != "resolved" or not isinstance(payload, Mapping):
        return None
    if "resolution" in payload:
        return _resolution(payload)
    approved, reason = payload.get("approved"), payload.get("reason")
    arguments, scope = payload.get("arguments"), payload.get("scope")
    if not isinstance(approved, bool) or not isinstance(reason, str | None):
        return None
    if not isinstance(arguments, Mapping | None) or (arguments is not None and not approved):
        return None
    if scope is not None and (not isinstance(scope, str) or scope not in set(Scope)):
        return None
    return Saying(
        approved=approved,
        reason=reason,
        arguments=arguments,
        scope=None if scope is None else Scope(scope),
    )


def _resolution(payload: Mapping[str, Json]) -> Mapping[str, Any] | None:
    resolution, error = payload["resolution"], payload.get("error")
    if not isinstance(resolution, str) or resolution not in set(Resolution):
        return None
    if not isinstance(error, str | None):
        return None
    said: dict[str, Any] = {"resolution": Resolution(resolution)}
    if resolution == Resolution.RESULT:
        return {**said, "result": payload["result"]} if "result" in payload else None
    if resolution == Resolution.ERROR:
        return {**said, "error": error} if error else None
    return said


def _prompt(messages: Sequence[Mapping[str, Json]], following: Following) -> tuple[str, str] | None:
    """Return the id and the text of what is newly said; None where nothing is (F-60).

    It is the last message of a person that nobody has answered: what an answer follows was said
    long ago, perhaps to another server, and is not to be said again.
    """
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if message["role"] in {ASSISTANT, TOOL}:
            return None
        if message["role"] == USER:
            break
    else:
        return None
    message_id, at = cast("str", message["id"]), f"messages[{place}].content"
    known = following.story.prompt(message_id)
    if known is not None:
        if not known.startswith(_text(message.get("content"), at)):  # of a lost stream, perhaps
            raise conflicting(following.story.run_id, message_id)
        return None
    if message_id.startswith(OURS):
        raise Problem(
            "invalid_value",
            "ids of this form are those of answers; give the prompt another",
            at=f"messages[{place}].id",
        )
    return message_id, _text(message.get("content"), at)


def _text(content: Json, at: str) -> str:
    """Return the text of a message, which may come in parts."""
    if isinstance(content, str):
        return content
    parts: list[str] = []
    for place, part in enumerate(content if isinstance(content, list | tuple) else ({},)):
        text = part.get("text") if isinstance(part, Mapping) else None
        if not isinstance(part, Mapping) or part.get("type") != "text" or not isinstance(text, str):
            raise Problem("invalid_value", "agents are told text alone", at=f"{at}[{place}]")
        parts.append(text)
    return "".join(parts)


def _known(state: Json) -> tuple[Cursor, bool]:
    """Return up to where the client has the facts, and whether its state can hold that (F-62)."""
    if not isinstance(state, Mapping | None):
        return START, False
    held = (state or {}).get(NAME)
    cursor = held.get("cursor") if isinstance(held, Mapping) else None
    try:
        return Cursor.read(cursor if isinstance(cursor, str) else ""), True
    except InvalidValue:
        return START, True


ENDPOINTS: Final = (
    Endpoint(
        method="POST",
        path="/v1/agui",
        handler=stream,
        role=Role.LOOK,
        summary="AG-UI: say something, answer, or follow (RunAgentInput of its version 1.0).",
        body=RunAgentInput,
        longest=FOREIGN_LIMIT,
        produces=("text/event-stream",),
        query={"agent": "the agent of a thread that is not known yet"},
        codes=(*STARTS, "unknown_run", "conflicting_duplicate", "overloaded"),
    ),
)
"""The endpoints of this module."""
