"""One endpoint behind the application: routed, allowed, read, answered."""

from __future__ import annotations

import asyncio

import attrs
from starlette.responses import JSONResponse, Response

from turnlock.server.face import Face
from turnlock.server.routing import Asked, Endpoint, Role

from .faces import opened


@attrs.frozen(kw_only=True)
class Said:
    text: str
    often: int = 1


async def say(face: Face, asked: Asked) -> Response:
    return JSONResponse({"run": asked.ids["run"], "text": asked.body.text, "by": asked.who.name})


SAY = Endpoint(
    method="POST",
    path="/v1/runs/{run}/say",
    handler=say,
    role=Role.DECIDE,
    summary="Say.",
    body=Said,
)


def test_f_2_an_endpoint_is_given_the_ids_of_the_raw_path() -> None:
    async def play() -> None:
        async with opened(endpoints=[SAY]) as it:
            client = it.client(Role.DECIDE)
            answer = await client.post("/v1/runs/a%2Fb%0A%25/say", json={"text": "hi"})

            assert answer.json() == {"run": "a/b\n%", "text": "hi", "by": "decide"}

    asyncio.run(play())


def test_f_3_an_unknown_field_is_refused_by_name() -> None:
    async def play() -> None:
        async with opened(endpoints=[SAY]) as it:
            client = it.client(Role.DECIDE)
            answer = await client.post("/v1/runs/r/say", json={"text": "hi", "decided_by": "x"})

            assert (answer.status_code, answer.json()["at"]) == (422, "decided_by")
            assert answer.headers["content-type"] == "application/problem+json"

    asyncio.run(play())
