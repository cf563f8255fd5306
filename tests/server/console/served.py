"""A real server for the console's tests: journal on disk, runtime, hub, sessions, uvicorn, sockets.

It runs in a thread with a loop of its own, since a browser is driven from the test's. Runs are made
in two ways: by a session, whose model says what it was told to, and by deliveries to a run that
nobody owns, for what a session cannot be brought to at a given moment.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final, TypeVar

from turnlock import Call, Claim, Decide, Delivery, Lose, OpenTurn, Report, Run
from turnlock.agent.loop import Agent
from turnlock.models.run import OWN
from turnlock.models.values import arguments_digest
from turnlock.runtime.submitting import SharedRun
from turnlock.runtime.tools.tool import tool
from turnlock.server.app import App
from turnlock.server.face import Face, ServerSettings
from turnlock.server.listening import listen
from turnlock.server.opening import Options, opened
from turnlock.server.routing import Role
from turnlock.server.serve import serve
from turnlock.server.tokens import Token

from ...agent.speakers import Speaker, asked, by_answers, speech

T = TypeVar("T")

WITHIN: Final = 60.0
PEOPLE: Final = {
    "anna": (Role.LOOK, Role.DECIDE, Role.RUN),
    "bob": (Role.LOOK, Role.DECIDE),
    "eve": (Role.LOOK,),
}
"""Who asks, and what each may; the secret is the name twice."""

PAID: Final = list[int]()
"""What the tool below has paid, in this process."""


@tool(approval=True)
async def pay(amount: int) -> str:
    """Pay; it needs approval."""
    PAID.append(amount)
    return f"paid {amount}"


def _agent() -> Agent:
    speeches = [
        speech("I pay what you owe.", asked("pay", call_id="c1", amount=12)),
        speech("It is paid."),
    ]
    return Agent(
        model=Speaker(speeches, which=lambda it, question: by_answers(it, question) % 2),
        tools=[pay],
    )


class Served:
    """One server; stopped and begun anew it has the same port, journal, tokens and keys."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        people = [Token.of(name, roles, name * 2).line() for name, roles in PEOPLE.items()]
        (folder / "tokens").write_text("\n".join(people) + "\n", encoding="utf-8")
        (folder / "tokens").chmod(0o600)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.port = 0
        self._stack = AsyncExitStack()
        self._until = asyncio.Event()
        self._serving: Future[None] | None = None
        self.face: Face
        self.call(self._begin())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def call(self, told: Coroutine[Any, Any, T]) -> T:
        """Have the server's loop do it."""
        return asyncio.run_coroutine_threadsafe(told, self._loop).result(WITHIN)

    async def _begin(self) -> None:
        sockets: Sequence[socket.socket] = listen(("127.0.0.1",), self.port)
        self.port = int(sockets[0].getsockname()[1])
        options = Options(
            db=str(self.folder / "agent.db"),
            agents={"teller": _agent()},
            settings=ServerSettings(port=self.port, drain=0.2),
            listen=("127.0.0.1",),
            tokens=self.folder / "tokens",
        )
        self._stack = AsyncExitStack()
        it = await self._stack.enter_async_context(opened(options))
        if it.file is not None:
            it.file.look()
        self.face = it.face
        self._until, started = asyncio.Event(), asyncio.Event()
        self._serving = asyncio.run_coroutine_threadsafe(
            serve(App(it.face), sockets, until=self._until, started=started.set), self._loop
        )
        await started.wait()

    async def _end(self) -> None:
        self._until.set()
        assert self._serving is not None
        await asyncio.wrap_future(self._serving)
        await self._stack.aclose()

    def stop(self) -> None:
        """End it: streams first, as at a signal."""
        self.call(self._end())

    def start(self) -> None:
        """Begin anew."""
        self.call(self._begin())

    def cut(self) -> None:
        """Cut every connection in the middle of whatever it is, as a network does."""

        async def abort() -> None:
            for it in list(_transports(self._loop)):
                it.abort()

        self.call(abort())

    def close(self) -> None:
        """End it for good."""
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(WITHIN)
        self._loop.close()

    # What happens in runs that nobody owns.

    def happens(self, run_id: str, *deliveries: Delivery, kind: str = OWN) -> None:
        """Have a run judge deliveries; it is declared if it is new."""

        async def submit() -> None:
            await self.face.journal.declare(Run(run_id=run_id, kind=kind))
            shared = await SharedRun.open(self.face.journal, run_id, policies={})
            verdicts = await shared.submit(*deliveries)
            assert all(it.accepted for it in verdicts), verdicts

        self.call(submit())

    def asks(self, run_id: str, *calls: Call, turn_id: str = "t1") -> None:
        """Open a turn with these calls."""
        self.happens(run_id, OpenTurn(turn_id=turn_id, calls=calls or (gated("call_1"),)))


def _transports(loop: asyncio.AbstractEventLoop) -> list[asyncio.Transport]:
    # asyncio's loop knows what it reads from; nobody else knows all connections
    found: Any = getattr(loop, "_transports", {})
    return [it for it in found.values() if it.get_extra_info("peername") is not None]


def gated(name: str, tool_name: str = "pay", **arguments: Any) -> Call:
    """A call that waits for a person."""
    return Call(
        invocation_id=name,
        tool_name=tool_name,
        arguments=arguments or {"account": "DE02", "amount": 1},
        requires_approval=True,
    )


def free(name: str, tool_name: str = "look", **arguments: Any) -> Call:
    """A call that does not."""
    return Call(
        invocation_id=name, tool_name=tool_name, arguments=arguments, requires_approval=False
    )


def began(name: str, turn_id: str = "t1") -> Claim:
    return Claim(turn_id=turn_id, invocation_id=name, attempt=1, worker="w/1")


def lost(name: str, turn_id: str = "t1") -> Lose:
    return Lose(turn_id=turn_id, invocation_id=name, attempt=1)


def did(name: str, result: Any = "done", turn_id: str = "t1") -> Report:
    return Report(turn_id=turn_id, invocation_id=name, result=result)


def decides(call: Call, *, approved: bool, by: str, reason: str | None = None) -> Decide:
    return Decide(
        turn_id="t1",
        invocation_id=call.invocation_id,
        approved=approved,
        decided_by=by,
        reason=reason,
        arguments_digest=arguments_digest(call.arguments) if approved else None,
    )
