"""The server that `bench_clients` measures, in a process of its own: our face, and a bare one.

Both are served by the same uvicorn, and both play the same script at the same pace: a model that
says some tokens, calls a tool, and says some more. ``POST /bare/…`` is Starlette's own way: one
generator for each connection, which makes the same events and keeps nothing.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.types import Receive, Scope, Send

from turnlock.adapters.own import OwnAdapter
from turnlock.agent import Agent, Answer, Ended, Question, Results, Said, Stop, Text
from turnlock.agent.messages import ToolCall
from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.settings import Settings
from turnlock.runtime.tools.tool import tool
from turnlock.server.app import App
from turnlock.server.bounds import SessionSettings
from turnlock.server.connections import HttpConnection, WebSocketConnection
from turnlock.server.face import Face
from turnlock.server.hub import Hub
from turnlock.server.routing import Role
from turnlock.server.sessions import Sessions
from turnlock.server.tokens import Token, Tokens

SECRET: Final = "secret-of-the-benchmark"  # noqa: S105 - nobody else is let in by it
PAUSE: Final = 0.02
"""Seconds before each token: fifty a second, as models of today speak."""
ROOM: Final = 1_000
"""Sessions at once: more than are measured."""
Event: TypeAlias = dict[str, Any]


class Paced:
    """A model that says tokens at a pace, and calls a tool in between."""

    def __init__(self, tokens: int) -> None:
        """Say so many in each answer."""
        self._tokens = tokens

    async def speak(self, question: Question) -> AsyncIterator[Said]:
        """Answer."""
        words: list[str] = []
        async for word in _words(self._tokens):
            words.append(word)
            yield Text(word)
        text = "".join(words)
        if isinstance(question.messages[-1], Results):
            yield Ended(Answer(text=text, stop=Stop.DONE))
            return
        call = ToolCall(call_id="c1", tool_name="look", arguments={"at": "the sky"})
        yield Ended(Answer(text=text, calls=(call,), stop=Stop.CALLS))

    async def close(self) -> None:
        """Do nothing."""


async def _words(count: int) -> AsyncIterator[str]:
    for number in range(count):
        await asyncio.sleep(PAUSE)
        yield f"word{number} "


@tool
async def look(at: str) -> str:
    """Look at something."""
    return f"{at} is there"


def _agui(tokens: int) -> list[Event | None]:
    """Return the events of one stream; None is a token that takes its time."""
    ids = {"threadId": "t", "runId": "r"}
    call = {"toolCallId": "1.c1"}

    def said(name: str) -> list[Event | None]:
        start: Event = {"type": "TEXT_MESSAGE_START", "messageId": name, "role": "assistant"}
        end: Event = {"type": "TEXT_MESSAGE_END", "messageId": name}
        content = {"type": "TEXT_MESSAGE_CONTENT", "messageId": name}
        told: list[Event | None] = []
        for number in range(tokens):
            told += [None, {**content, "delta": f"word{number} "}]
        return [start, *told, end]

    return [
        {"type": "RUN_STARTED", **ids},
        *said("said/2"),
        {
            "type": "TOOL_CALL_START",
            **call,
            "toolCallName": "look",
            "parentMessageId": "said/2",
        },
        {"type": "TOOL_CALL_ARGS", **call, "delta": '{"at":"the sky"}'},
        {"type": "TOOL_CALL_END", **call},
        {
            "type": "TOOL_CALL_RESULT",
            **call,
            "messageId": "result/1.c1",
            "content": "the sky is there",
        },
        *said("said/3"),
        {"type": "RUN_FINISHED", **ids, "outcome": {"type": "success"}},
    ]


def _chat(tokens: int) -> list[Event | None]:
    """Return the chunks of one stream of the AI SDK."""
    call = {"toolCallId": "1.c1", "dynamic": True}

    def said(name: str) -> list[Event | None]:
        told: list[Event | None] = []
        for number in range(tokens):
            told += [None, {"type": "text-delta", "id": name, "delta": f"word{number} "}]
        return [{"type": "text-start", "id": name}, *told, {"type": "text-end", "id": name}]

    return [
        {"type": "start", "messageId": "reply/1"},
        {"type": "start-step"},
        *said("said/2"),
        {"type": "tool-input-available", **call, "toolName": "look", "input": {"at": "the sky"}},
        {"type": "tool-output-available", **call, "output": "the sky is there"},
        {"type": "finish-step"},
        {"type": "start-step"},
        *said("said/3"),
        {"type": "finish-step"},
        {"type": "finish", "finishReason": "stop"},
    ]


SCRIPTS: Final[dict[str, Callable[[int], list[Event | None]]]] = {"agui": _agui, "chat": _chat}


async def _bare(script: list[Event | None]) -> AsyncGenerator[bytes]:
    for event in script:
        if event is None:
            await asyncio.sleep(PAUSE)
        else:
            yield b"data: %b\n\n" % json.dumps(event, separators=(",", ":")).encode()
    yield b"data: [DONE]\n\n"


class Served:
    """The application."""

    def __init__(self, face: App, tokens: int) -> None:
        """Serve our face, and a bare one beside it."""
        self._face = face
        self._tokens = tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        path: str = scope.get("path", "")
        if path.startswith("/bare/"):
            await Request(scope, receive).json()
            script = SCRIPTS[path.removeprefix("/bare/")](self._tokens)
            answer = StreamingResponse(_bare(script), media_type="text/event-stream")
            await answer(scope, receive, send)
        elif path == "/control/cpu":
            await JSONResponse({"cpu": time.process_time()})(scope, receive, send)
        else:
            await self._face(scope, receive, send)


async def main() -> None:
    """Serve until standard input ends."""
    folder, tokens = Path(sys.argv[1]), int(sys.argv[2])
    async with (
        await SqliteJournal.open(folder / "clients.db") as journal,
        Runtime(journal=journal, settings=Settings(takes_over=False)) as runtime,
        Hub(journal=journal, runtime=runtime) as hub,
        Sessions(
            journal=journal,
            adapters=[
                OwnAdapter(
                    runtime=runtime,
                    agents={"paced": Agent(model=Paced(tokens), tools=[look])},
                )
            ],
            settings=SessionSettings(sessions=ROOM, drain=1.0),
            pass_on=hub.pass_on,
            is_watched=hub.is_watched,
        ) as sessions,
    ):
        face = Face(
            journal=journal,
            hub=hub,
            sessions=sessions,
            runtime=runtime,
            tokens=Tokens([Token.of("bench", [Role.RUN, Role.DECIDE], SECRET)]),
        )
        server = uvicorn.Server(
            uvicorn.Config(
                Served(App(face), tokens),
                port=0,
                log_level="error",
                access_log=False,
                lifespan="off",
                http=HttpConnection,
                ws=WebSocketConnection,
                timeout_graceful_shutdown=1,
            )
        )
        serving = asyncio.create_task(server.serve())
        while not server.started:  # noqa: ASYNC110 - uvicorn tells it no other way
            await asyncio.sleep(0.01)
        print(json.dumps({"port": server.servers[0].sockets[0].getsockname()[1]}), flush=True)
        await asyncio.to_thread(sys.stdin.read)
        hub.close()
        server.should_exit = True
        await serving


if __name__ == "__main__":
    asyncio.run(main())
