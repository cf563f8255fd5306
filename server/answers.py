"""What is answered to a command, over HTTP and over the WebSocket alike (F-21, F-22, F-50)."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from urllib.parse import quote

import attrs
import msgspec

from ..models.errors import TurnlockError
from ..models.reasons import Reason
from ..views.meanings import REASONS
from . import bodies
from .problems import Problem, problem_of

if TYPE_CHECKING:  # an extra's, and who stands on this module
    from starlette.responses import Response

    from .face import Face
    from .routing import Who

A = TypeVar("A")


@attrs.frozen(kw_only=True)
class Answer:
    """What is answered: a status, its body as JSON, and headers."""

    status: int
    body: Mapping[str, Any]
    headers: Mapping[str, str] = attrs.field(factory=dict[str, str])


Command: TypeAlias = "tuple[type, Callable[[Face, A, Any, Who], Awaitable[Answer]]]"
"""The body of a command, and what does it about something: a run, or a chat."""


async def answered(
    commands: Mapping[str, Command[A]],
    kind: str,
    body: object,
    *,
    asked: tuple[Face, A, Who],
) -> Answer:
    """Answer a command of these by its name, as HTTP would (F-50).

    The body is JSON that was parsed; a problem is an answer, too. What it raises is a bug.
    """
    face, about, who = asked
    try:
        if kind not in commands:
            raise Problem("bad_request", f"give one of {', '.join(commands)}", at="type")
        shape, judge = commands[kind]
        return await judge(face, about, bodies.parse(shape, json.dumps(body).encode()), who)
    except TurnlockError as error:
        problem = problem_of(error)
        return Answer(status=problem.status, body=problem.body(), headers=problem.headers())


def refused(answer: Mapping[str, Any]) -> Problem:
    """Return a refusal of the kernel as a problem."""
    reason = Reason(answer["reason"])
    return Problem(reason.value, REASONS[reason], extra=answer)


def posted(run_id: str, number: int, told: Mapping[str, str] | None = None) -> Answer:
    """Return what is told where another process is asked, and has not answered (F-26)."""
    place = f"/v1/runs/{quote(run_id, safe='')}/posts/{number}"
    body = {"accepted": None, "post": number, **(told or {})}
    return Answer(status=202, body=body, headers={"Location": place})


def response_of(answer: Answer) -> Response:
    """Return an answer of HTTP."""
    from starlette.responses import Response  # noqa: PLC0415 - an extra's

    return Response(
        msgspec.json.encode(answer.body),
        answer.status,
        headers=dict(answer.headers),
        media_type="application/json",
    )
