"""A whole server on a port of its own, in a thread: for commands and consoles, which block."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path

import attrs

from turnlock.agent.loop import Agent
from turnlock.server.app import App
from turnlock.server.face import ServerSettings
from turnlock.server.opening import Options, opened
from turnlock.server.routing import Role
from turnlock.server.tokens import Token

from ..agent.speakers import Speaker, asked, by_answers, speech
from .faces import SECRETS, pay
from .listeners import listening


@attrs.frozen
class Served:
    """A server that listens, and files with a token for each role."""

    url: str
    folder: Path

    def token_file(self, role: Role) -> str:
        """Return the file of the token with a role; its name is the role's."""
        return str(self.folder / f"{role}.token")


def assistant() -> Agent:
    """An agent that asks to pay at each prompt, and then says that it is done."""
    speeches = [speech("I pay.", asked("pay", call_id="c1", amount=12)), speech("Done.")]
    model = Speaker(speeches, which=lambda it, question: by_answers(it, question) % 2)
    return Agent(model=model, tools=[pay])


@contextmanager
def served(
    db: str,
    folder: Path,
    *,
    agents: Mapping[str, Agent] | None = None,
    port: int = 0,
    people: Iterable[Token] = (),
) -> Generator[Served]:
    """Serve the runs of a journal until the block is left, to these people, too."""
    for role in Role:
        (folder / f"{role}.token").write_text(SECRETS[role])
    every = [Token.of(str(it), {it}, SECRETS[it]).line() for it in Role]
    every += [it.line() for it in people]
    (folder / "tokens").write_text("\n".join(every))
    options = Options(
        db=db,
        agents=agents or {"assistant": assistant()},
        settings=ServerSettings(answer=0.3, drain=1.0),
        listen=("127.0.0.1",),
        tokens=folder / "tokens",
    )
    ports: list[int] = []
    there, leave = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        async with opened(options) as it, listening(App(it.face), port) as listener:
            ports.append(listener.port)
            there.set()
            await leave.wait()

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(serve())
        finally:
            there.set()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert there.wait(30.0)
        yield Served(f"http://127.0.0.1:{ports[0]}", folder)
    finally:
        if not loop.is_closed():
            loop.call_soon_threadsafe(leave.set)
        thread.join(30.0)
        assert not thread.is_alive()
