"""The AI SDK's `useChat`: what its client asks is kept and judged, and answered with a stream.

Its HTTP transport posts to `/v1/chat`, and comes again to `/v1/chat/{id}/stream`; `chat_socket` has
the same over its WebSocket transport (F-70 … F-75).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from starlette.responses import Response

from ...models.errors import UnknownRun
from ...runtime.journal.ledger import Cursor
from ...runtime.looking import known
from ..bodies import FOREIGN_LIMIT
from ..commands import STARTS
from ..face import Face
from ..routing import Asked, Endpoint, Role, Who
from .answering import Heard, Saying, answer
from .approval_ids import ApprovalId
from .chat_requests import Answered, ChatBody, ChatRequest, Said
from .chat_translator import ChatTranslator, Wanted
from .following import Event, Following
from .streams import Translated
from .threads import say, thread

HEADERS: Final = {"x-vercel-ai-ui-message-stream": "v1"}
END: Final = b"data: [DONE]\n\n"


async def asked_for(
    face: Face, body: ChatBody, who: Who, *, agent: str | None
) -> tuple[Following, list[Event]]:
    """Keep what is said, have answers judged, and follow: return what is sent first, too.

    Raises `Problem` (`forbidden`, `unknown_run`, `invalid_value`) and what the journal raises.
    """
    face.standing.check_goes_on()
    request = ChatRequest.of(body)
    run = await (
        known(face.journal, request.run_id)
        if request.said is None
        else thread(face, request.run_id, who, agent=agent)
    )
    following = Following.of(face.hub, run)
    try:
        await following.catch_up()
        after = following.last
        refused = await _judged(face, request, who)
        if request.said is not None:
            await _say(face, following, request.said, who)
        if request.answers:
            sequence = (await face.journal.entry(request.run_id)).sequence
            await following.reach(Cursor(sequence))
        prompt = None if request.said is None or request.has else request.said.message_id
        wanted = Wanted(prompt=prompt, has=request.has, refused=refused, after=after)
        return following, following.begin(ChatTranslator(following.story, wanted))
    except BaseException:
        following.close()
        raise


async def resumed(face: Face, run_id: str) -> tuple[Following, list[Event]] | None:
    """Follow the latest reply from its start; None where nothing was said (F-74)."""
    try:
        run = await known(face.journal, run_id)
    except UnknownRun:
        return None
    following = Following.of(face.hub, run)
    try:
        await following.catch_up()
        translator = ChatTranslator(following.story, Wanted())
        told = following.begin(translator)
    except BaseException:
        following.close()
        raise
    if translator.has_nothing:
        following.close()
        return None
    return following, told


async def _say(face: Face, following: Following, said: Said, who: Who) -> None:
    """Have a prompt kept; whoever may only look is shown what became of one that was (F-23)."""
    if following.story.knows(said.message_id) and not who.may(Role.RUN):
        return
    taken = await say(face, following.story.run_id, said.text, who, message_id=said.message_id)
    await following.reach(taken.cursor)


async def _judged(face: Face, request: ChatRequest, who: Who) -> Sequence[Mapping[str, Any]]:
    """Have answers judged; return what is told of those that do not hold (F-73)."""
    refused: list[Mapping[str, Any]] = []
    for it in request.answers:
        heard = await _heard(face, request.run_id, it, who)
        if not heard.holds:
            told = {"approvalId": it.approval_id, "reason": heard.reason, "call": heard.call}
            refused.append({name: value for name, value in told.items() if value is not None})
    return refused


async def _heard(face: Face, run_id: str, it: Answered, who: Who) -> Heard:
    """Have one answer judged. Without the role it does not count, and the card is put right."""
    asked = ApprovalId.read(it.approval_id)
    if asked is None or asked.is_of_doubt:
        return Heard(accepted=False, reason="invalid_value")
    if asked.run_id != run_id:
        return Heard(accepted=False, reason="run_mismatch")
    if not who.may(Role.DECIDE):
        return Heard(accepted=False, reason="forbidden")
    return await answer(face, asked, Saying(approved=it.approved, reason=it.reason), who)


async def _post(face: Face, asked: Asked) -> Response:
    told = await asked_for(face, asked.body, asked.who, agent=asked.query.get("agent"))
    return Translated(*told, end=END, headers=HEADERS)


async def _resume(face: Face, asked: Asked) -> Response:
    told = await resumed(face, asked.ids["chat"])
    return (
        Response(status_code=204) if told is None else Translated(*told, end=END, headers=HEADERS)
    )


ENDPOINTS: Final = (
    Endpoint(
        method="POST",
        path="/v1/chat",
        handler=_post,
        role=Role.LOOK,
        summary="useChat of the AI SDK: say something, answer, or follow.",
        body=ChatBody,
        longest=FOREIGN_LIMIT,
        produces=("text/event-stream",),
        query={"agent": "the agent of a chat that is not known yet"},
        codes=(*STARTS, "unknown_run", "conflicting_duplicate", "in_doubt", "overloaded"),
    ),
    Endpoint(
        method="GET",
        path="/v1/chat/{chat}/stream",
        handler=_resume,
        role=Role.LOOK,
        summary="useChat of the AI SDK: the latest reply from its start.",
        produces=("text/event-stream",),
        codes=("overloaded", "journal_failed"),
        statuses=(200, 204),
    ),
)
"""The endpoints of this module."""
