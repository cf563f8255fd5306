"""The methods of A2A 1.0: messages, tasks, and streams of them (F-82)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any, Final, cast

import attrs

from ....models.errors import UnknownRun
from ....runtime.journal.contract import RunEntry
from ....runtime.journal.ledger import Cursor
from ....runtime.looking import known
from ...deciding import InterruptBody, interrupt
from ...face import Face
from ...problems import Problem
from ...routing import Role, Who
from ...shown import Sent
from ..answering import Heard, Saying, answer, settle
from ..approval_ids import ApprovalId
from ..entries import Entry
from ..following import RESTARTS, Following
from ..story import Story
from ..threads import say, thread
from .messages import HOW, Decision, Said, Settlement
from .streaming import TaskStream
from .tasks import Name, Status, Task
from .wire import (
    CONTENT_TYPE_NOT_SUPPORTED,
    INVALID_PARAMS,
    PUSH_NOT_SUPPORTED,
    TASK_NOT_CANCELABLE,
    TASK_NOT_FOUND,
    UNSUPPORTED_OPERATION,
    Body,
    Refused,
    Request,
    flag_of,
    number_of,
    object_of,
    text_of,
)

HISTORY: Final = 2**31 - 1
"""Messages of a history that may be asked for: a whole number of protobuf."""
CANCELS: Final = 15.0
"""Seconds in which a task that is stopped comes to its end, or is told as it stands."""


@attrs.frozen(kw_only=True)
class Asking:
    """Who asks what of which face."""

    face: Face
    who: Who
    agent: str | None
    request: Request


async def begin(asking: Asking, *, streams: bool) -> tuple[Following, TaskStream]:
    """Take a message: begin a task, or answer its questions; return what follows it."""
    params = asking.request.params
    if object_of(object_of(params, "configuration"), "taskPushNotificationConfig"):
        raise Refused(PUSH_NOT_SUPPORTED, "this agent sends no push notifications; follow the task")
    said = Said.read(params)
    if not said.task_id:
        return await _begun(asking, said)
    name = _named(said.task_id)
    if said.context_id not in {"", name.context_id}:
        raise Refused(INVALID_PARAMS, "contextId is not that of the task")
    before = await _entry(asking.face, name)
    await _answered(asking, name, said)
    entry = await _entry(asking.face, name)
    after = before.shown if streams else None
    return _follow(asking, name, entry, head=entry.shown, after=after)


async def subscribe(asking: Asking) -> tuple[Following, TaskStream]:
    """Follow a task that goes on, to its end."""
    name = _named(text_of(asking.request.params, "id"))
    _, status = await _read(asking.face, name)
    if status.is_terminal:
        raise Refused(UNSUPPORTED_OPERATION, "the task has ended; GetTask has all of it")
    entry = await _entry(asking.face, name)
    return _follow(asking, name, entry, head=entry.shown, ends_at_questions=False)


async def get(asking: Asking) -> dict[str, Any]:
    """Return a task as the journal has it."""
    params = asking.request.params
    length = number_of(params, "historyLength", None, least=0, most=HISTORY)
    task, status = await _read(asking.face, _named(text_of(params, "id")))
    return task.told(status, history=length)


async def cancel(asking: Asking) -> dict[str, Any]:
    """Stop a task: its turn is interrupted."""
    face, who = asking.face, asking.who
    who.check(Role.DECIDE)
    name = _named(text_of(asking.request.params, "id"))
    _, status = await _read(face, name)
    if status.is_terminal:
        raise Refused(TASK_NOT_CANCELABLE, "the task has ended")
    try:
        await interrupt(face, name.run_id, InterruptBody(reason="canceled by its client"), who)
    except Problem as problem:
        if problem.extra.get("accepted") is not False:
            raise
        raise Refused(TASK_NOT_CANCELABLE, str(problem), reason=problem.code) from problem
    entry = await _entry(face, name)
    following, stream = _follow(asking, name, entry, head=entry.shown, ends_at_questions=False)
    try:
        async with asyncio.timeout(CANCELS):
            await wait(following, stream)
    except TimeoutError:
        pass
    finally:
        following.close()
    task, status = await _read(face, name)
    return task.told(status)


async def wait(following: Following, stream: TaskStream, *, at_once: bool = False) -> None:
    """Wait until a stream is over; with `at_once` until it says the task. Raises `Refused`."""
    following.begin(stream)
    if at_once and stream.status is not None:
        return
    async with aclosing(cast("Any", following.go_on())) as going:
        async for events in going:
            for event in events:
                if "error" in event:
                    raise Refused(event["error"]["code"], event["error"]["message"])
            if at_once and stream.status is not None:
                return


async def _begun(asking: Asking, said: Said) -> tuple[Following, TaskStream]:
    if said.answers or not said.text:
        what = "a task begins with text; an answer names its task in taskId"
        raise Refused(CONTENT_TYPE_NOT_SUPPORTED, what)
    asking.who.check(Role.RUN)
    name = Name.of(asking.who.name, said.context_id, said.message_id)
    face = asking.face
    await thread(face, name.run_id, asking.who, agent=asking.agent)
    taken = await say(face, name.run_id, said.text, asking.who, message_id=said.message_id)
    entry = await _entry(face, name)
    return _follow(asking, name, entry, head=max(entry.shown, taken.cursor))


async def _answered(asking: Asking, name: Name, said: Said) -> None:
    """Have answers judged. Raises `Refused` for the first that does not hold, once all are."""
    face, who = asking.face, asking.who
    if said.answers:
        who.check(Role.DECIDE)
    heard = [await _judged(face, name, it, who) for it in said.answers]
    refused = next((it for it in heard if not it.holds), None)
    if heard and refused is None:
        return
    _, status = await _read(face, name)
    code = UNSUPPORTED_OPERATION if status.is_terminal else INVALID_PARAMS
    if refused is None:
        what = "the task has ended; begin another" if status.is_terminal else HOW
        raise Refused(code, what)
    raise Refused(code, refused.detail or "the answer was refused", **_told(refused))


async def _judged(face: Face, name: Name, said: Decision | Settlement, who: Who) -> Heard:
    asked = ApprovalId(
        run_id=name.run_id,
        turn_id=said.turn_id,
        invocation_id=said.invocation_id,
        arguments_digest=said.arguments_digest if isinstance(said, Decision) else None,
        attempt=None if isinstance(said, Decision) else said.attempt,
    )
    if isinstance(said, Settlement):
        told = {"resolution": said.resolution, "result": said.result, "error": said.error}
        return await settle(face, asked, told, who)
    if said.approved and said.arguments_digest is None:
        raise Refused(INVALID_PARAMS, f"an approval has the digest of what was shown; {HOW}")
    saying = Saying(
        approved=said.approved, reason=said.reason, arguments=said.arguments, scope=said.scope
    )
    return await answer(face, asked, saying, who)


def _told(heard: Heard) -> dict[str, str]:
    """Return why an answer was refused, and who was first."""
    call = heard.call or {}
    decision: Body = call.get("decision") or {}
    found = {"reason": heard.reason or "refused", "phase": call.get("phase")}
    if decision:
        found |= {"approved": str(decision.get("approved")).lower(), "by": decision.get("by")}
    return {name: str(value) for name, value in found.items() if value is not None}


# How tasks are read.


def _named(task_id: str) -> Name:
    name = Name.read(task_id)
    if name is None:
        raise _not_found()
    return name


async def _entry(face: Face, name: Name) -> RunEntry:
    try:
        return await known(face.journal, name.run_id)
    except UnknownRun:
        raise _not_found() from None


def _not_found() -> Refused:
    return Refused(TASK_NOT_FOUND, "there is no such task")


def _follow(  # noqa: PLR0913 - what a stream is made of
    asking: Asking,
    name: Name,
    entry: RunEntry,
    *,
    head: Cursor,
    after: Cursor | None = None,
    ends_at_questions: bool = True,
) -> tuple[Following, TaskStream]:
    following = Following.of(asking.face.hub, entry)
    stream = TaskStream(
        Task(name, following.story, began=entry.began or 0.0),
        asking.request.id,
        head=head,
        after=after,
        ends_at_questions=ends_at_questions,
    )
    return following, stream


async def _read(face: Face, name: Name) -> tuple[Task, Status]:
    """Return a task and how it stands, as the journal has it now."""
    return await read(face, name, await _entry(face, name))


async def read(face: Face, name: Name, entry: RunEntry) -> tuple[Task, Status]:
    """Return a task and how it stands, of a run that is known."""
    story = Story(name.run_id, kind=entry.run.kind)
    task = Task(name, story, began=entry.began or 0.0)
    async for it in _entries(face, name.run_id):
        task.take(it, story.take(it))
    fails = face.journal.time() - task.at >= RESTARTS
    return task, task.status(asks_late=True, fails_late=fails)


async def _entries(face: Face, run_id: str) -> AsyncIterator[Entry]:
    subscription = face.hub.subscribe(run_id, follow=False)
    try:
        await subscription.open()
        async for batch in subscription:
            for it in cast("Sequence[object]", batch):
                if isinstance(it, Sent):
                    yield Entry.of(it)
    finally:
        subscription.close()


def immediate(params: Body) -> bool:
    """Whether the task is wanted at once, and not once it has ended or asks."""
    return flag_of(object_of(params, "configuration"), "returnImmediately")


def history_of(params: Body) -> int | None:
    """Return how many messages are wanted of a task."""
    configuration = object_of(params, "configuration")
    return number_of(configuration, "historyLength", None, least=0, most=HISTORY)
