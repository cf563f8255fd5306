"""The stream as WebSocket: many runs on one socket, and decisions about them (F-50, F-51)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import attrs
from starlette.responses import Response
from starlette.websockets import WebSocket

from ..models.errors import InvalidValue, TurnlockError
from ..models.strict_json import parse
from ..models.values import Json
from ..runtime.journal.contract import RunEntry
from ..runtime.journal.ledger import START, Cursor
from ..runtime.leases import Leases
from ..runtime.listing import told_entry
from . import bodies
from .answers import Answer
from .connections import transport_of
from .deciding import command
from .face import Face
from .problems import MEDIA, Problem, problem_of
from .reading import entry_of, failure_in
from .routing import Role, Who
from .shown import Bye, Hello
from .sockets import STOPS, Socket, text_of
from .subscriber import Subscriber
from .worlds_chats import command as command_in_chat
from .worlds_streams import follow_chat

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

PROTOCOL: Final = "turnlock.v1"
SUBSCRIPTIONS: Final = 256
"""Of one socket (F-51)."""
COMMANDS: Final = 64
"""Of one socket that are answered at once."""
LISTED: Final = 200
"""Runs of the first list; of others it is told once they change."""

TOO_MANY: Final = 4409
"""More than `SUBSCRIPTIONS`."""

Id: TypeAlias = "int | str | None"


@attrs.frozen(kw_only=True)
class Subscribe:
    """Follow a run, or a chat of a world, from a cursor."""

    type: str
    id: Json
    run_id: str | None = None
    world: str | None = None
    chat: str | None = None
    after: str = ""
    diagnostics: bool = False


@attrs.frozen(kw_only=True)
class Runs:
    """Look at the list of runs."""

    type: str
    id: Json


@attrs.frozen(kw_only=True)
class Command:
    """Decide about a run, or in a chat of a world."""

    type: str
    id: Json
    body: Json
    run_id: str | None = None
    world: str | None = None
    chat: str | None = None


@attrs.frozen(kw_only=True)
class Unsubscribe:
    """Follow no more."""

    type: str
    id: Json


@attrs.frozen(kw_only=True)
class Ping:
    """Ask whether the server lives."""

    type: str
    id: Json = None


SAY: Final = "say"
"""A message of a chat; it needs the role `run`, as it does over HTTP."""
SAID: Final[Mapping[str, type]] = {
    "subscribe": Subscribe,
    "runs": Runs,
    "decide": Command,
    "interrupt": Command,
    "resolve": Command,
    SAY: Command,
    "reply": Command,
    "unsubscribe": Unsubscribe,
    "ping": Ping,
}
"""What a client may say (F-50)."""


async def serve(face: Face, scope: Scope, receive: Receive, send: Send, who: Who) -> None:
    """Serve a socket that was let in, until it is closed."""
    socket = WebSocket(scope, receive, send)
    asked: list[str] = socket.scope["subprotocols"]
    if asked and PROTOCOL not in asked:
        problem = Problem("bad_request", f"ask for the subprotocol {PROTOCOL}, or for none")
        await socket.receive()
        answer = Response(problem.encoded(), problem.status, media_type=MEDIA)
        await socket.send_denial_response(answer)
        return
    await _Socket(face, socket, who, PROTOCOL if asked else None).serve()


class _Socket(Socket):
    """One socket: the runs and chats that it follows, and the list of runs."""

    def __init__(self, face: Face, socket: WebSocket, who: Who, protocol: str | None) -> None:
        super().__init__(face, socket, who, protocol)
        self._followed: dict[Id, Subscriber] = {}
        self._watched: dict[Id, _Watched] = {}

    def _let_go(self) -> None:
        for followed in tuple(self._followed.values()):
            followed.close()
        for watched in tuple(self._watched.values()):
            watched.close()

    async def _heard(self, text: str | None) -> None:
        named: Id = None
        try:
            text = text_of(text)
            told = _object(text)
            named = _id_of(told)
            said = _read(told, text)
            if named is None and not isinstance(said, Ping):
                raise Problem("invalid_value", "give a whole number or a text", at="id")
            await self._do(said, named)
        except TurnlockError as error:
            await self._problem(named, error)

    async def _do(self, said: object, named: Id) -> None:
        if isinstance(said, Subscribe):
            self._subscribe(said, named)
        elif isinstance(said, Runs):
            self._watch(named)
        elif isinstance(said, Command):
            await self._command(said, named)
        elif isinstance(said, Unsubscribe):
            self._unsubscribe(named)
        else:
            await self._say({"type": "pong", **({} if named is None else {"id": named})})

    # What is followed.

    def _subscribe(self, said: Subscribe, named: Id) -> None:
        run_id, chat = _about(said)
        after = Cursor.read(said.after) if chat is None else START
        self._check_free(named)
        if len(self._followed) + len(self._watched) >= SUBSCRIPTIONS:
            self._close(TOO_MANY, "too many subscriptions")
            return
        subscription: Subscriber = (
            self._face.hub.subscribe(run_id, after=after, diagnostics=said.diagnostics)
            if chat is None
            else follow_chat(self._face, chat, after=said.after)
        )
        self._followed[named] = subscription
        transport = transport_of(self._socket.scope)
        if transport is not None:
            subscription.unread = transport.get_write_buffer_size
        subscription.when_cut = self._cut
        self._tasks.spawn("follow a run", self._follow(subscription, named))

    def _check_free(self, named: Id) -> None:
        if named in self._followed or named in self._watched:
            raise Problem("bad_request", "this id is in use; give another", at="id")

    async def _follow(self, subscription: Subscriber, named: Id) -> None:
        try:
            hello = await subscription.open()
            head = json.loads(hello.data)["head"]
            await self._say({"type": "subscribed", "id": named, "head": head})
            async for batch in subscription:
                for it in batch:
                    if isinstance(it, Bye):
                        self._close(STOPS, "the server stops")
                        return
                    if not isinstance(it, Hello):
                        await self._socket.send_text(it.text)
        except TurnlockError as error:
            await self._problem(named, error)
        finally:
            subscription.close()
            if self._followed.get(named) is subscription:
                del self._followed[named]
        await self._say({"type": "ended", "id": named})

    def _unsubscribe(self, named: Id) -> None:
        found = self._followed.get(named) or self._watched.pop(named, None)
        if found is None:
            raise Problem("bad_request", "nothing is followed by this id", at="id")
        found.close()

    def _watch(self, named: Id) -> None:
        self._check_free(named)
        if len(self._followed) + len(self._watched) >= SUBSCRIPTIONS:
            self._close(TOO_MANY, "too many subscriptions")
            return
        watched = self._watched[named] = _Watched()
        watched.when_closed = self._face.hub.watching.add(watched.changed)
        self._tasks.spawn("look at runs", self._tell_runs(watched, named))

    async def _tell_runs(self, watched: _Watched, named: Id) -> None:
        page = await self._face.journal.latest(limit=LISTED)
        told = [await self._entry(it) for it in page.entries]
        await self._say({"type": "runs", "id": named, "runs": told})
        while not watched.closed:
            for entry in await watched.next():
                await self._say({"type": "run", **await self._entry(entry)})
        await self._say({"type": "ended", "id": named})

    async def _entry(self, entry: RunEntry) -> dict[str, Any]:
        journal = self._face.journal
        failed = failure_in(self._face, entry.run.run_id)
        return entry_of(await told_entry(journal, entry), Leases(now=journal.time()), failed)

    # What is commanded.

    async def _command(self, said: Command, named: Id) -> None:
        try:
            run_id, chat = _about(said)
            self._check_command(said)
        except Problem as problem:
            await self._answer(named, problem.status, problem.body())
            return
        answer = (
            command(self._face, said.type, run_id, said.body, self._who)
            if chat is None
            else command_in_chat(self._face, said.type, chat, said.body, self._who)
        )
        self._judging.spawn("answer a command", self._judged(answer, named))

    def _check_command(self, said: Command) -> None:
        self._who.check(Role.RUN if said.type == SAY else Role.DECIDE)
        self._face.standing.check_goes_on()
        if len(self._judging) >= COMMANDS:
            raise Problem("overloaded", f"{COMMANDS} commands of this socket are under way")

    async def _judged(self, judging: Awaitable[Answer], named: Id) -> None:
        answer = await judging
        await self._answer(named, answer.status, answer.body)

    async def _answer(self, named: Id, status: int, body: Mapping[str, Any]) -> None:
        await self._say({"type": "answer", "id": named, "status": status, "body": body})

    # What is said.

    async def _problem(self, named: Id, error: TurnlockError) -> None:
        known = {} if named is None else {"id": named}
        await self._say({"type": "error", **known, "problem": problem_of(error).body()})

    async def _say(self, told: Mapping[str, Any]) -> None:
        text = json.dumps(told, allow_nan=False, separators=(",", ":"))
        await self._socket.send_text(text)


class _Watched:
    """Runs that have changed since a client was told of them: the newest of each."""

    def __init__(self) -> None:
        self._entries: dict[str, RunEntry] = {}
        self._there = asyncio.Event()
        self.when_closed: Callable[[], None] | None = None
        self.closed = False

    def changed(self, entry: RunEntry) -> None:
        """Learn of one."""
        self._entries[entry.run.run_id] = entry
        self._there.set()

    async def next(self) -> list[RunEntry]:
        """Return those that have changed; none once it is closed."""
        await self._there.wait()
        self._there.clear()
        entries, self._entries = self._entries, {}
        return list(entries.values())

    def close(self) -> None:
        """Learn no more."""
        self.closed = True
        if self.when_closed is not None:
            self.when_closed()
        self._entries.clear()
        self._there.set()


def _object(text: str) -> Mapping[str, Any]:
    try:
        told = parse(text.encode())
    except (InvalidValue, UnicodeError) as error:
        raise Problem("invalid_json", f"send one JSON object a message: {error}") from None
    if not isinstance(told, dict):
        raise Problem("invalid_json", "send one JSON object a message")
    return cast("dict[str, Any]", told)


def _id_of(told: Mapping[str, Any]) -> Id:
    """Return the id of a message, where it is one."""
    found = told.get("id")
    if type(found) is int and abs(found) < 1 << 53:
        return found
    return found if isinstance(found, str) and len(found) <= 128 else None  # noqa: PLR2004 - as any id of a client


def _about(said: Subscribe | Command) -> tuple[str, Mapping[str, str] | None]:
    """Return the run that a message is about, or the chat; None: it is a run."""
    if said.run_id is not None and said.world is None and said.chat is None:
        return said.run_id, None
    if said.run_id is None and said.world is not None and said.chat is not None:
        return "", {"world": said.world, "chat": said.chat}
    raise Problem("invalid_value", "give the run's id, or a world and a chat", at="run_id")


def _read(told: Mapping[str, Any], text: str) -> object:
    kind = told.get("type")
    shape = SAID.get(kind) if isinstance(kind, str) else None
    if shape is None:
        raise Problem("bad_request", f"give one of {', '.join(SAID)}", at="type")
    return bodies.parse(shape, text.encode())
