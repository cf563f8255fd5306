"""Requests of ours to a process: each waits within a bound, and is written once (S-31, S-55).

Only what changes nothing is ever asked again, where the process says that it has too much to do. A
request that is refused is another matter: what an older version does not know is left out then, and
what that means is said (`Thread.settlement`, S-32). Approvals are ours alone: a thread that others
may review, or that asks less than it was told to, is none (S-30).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, Literal, cast

import attrs

from ...models.errors import TurnlockError
from ...models.safe_text import harmless
from ...models.values import Json
from ...runtime.log import logger
from ...runtime.version import version
from ..contract import ModelInfo
from .messages import Answered, RequestId
from .settings import POLICIES, SANDBOXES
from .transport import PipeBroken, Wire

_log = logger(__name__)

REQUEST: Final = 30.0
"""Seconds that a request may wait for its answer (section 15)."""
START: Final = 60.0
"""Seconds that the beginning of a thread may wait: its tools are started then."""
AGAIN: Final = (0.1, 0.4, 1.6)
"""Seconds after which what changes nothing is asked again of a process that has too much to do."""
OVERLOADED: Final = -32001
"""The error of a process that has."""
RAW_SINCE: Final = (0, 169)
"""The version since which raw events say when a response of the model has ended (S-31)."""
PAGES: Final = 1_000
"""Pages that are read of one list."""
PAGE: Final = 4
"""Items of a thread on one page: a patch comes whole, and a line has its bound."""

REVIEWER: Final = "user"
"""Who decides on approvals: the client that has the process, and nobody beside it (S-30)."""
_NAMES: Final = {"readOnly": SANDBOXES[0], "workspaceWrite": SANDBOXES[1]}
_WORDS: Final = 1_000


class RequestRefused(TurnlockError):
    """What the process answered with an error, or would do otherwise than it was told."""

    def __init__(self, method: str, error: Mapping[str, Any]) -> None:
        """Take the method, and the error as JSON-RPC has it."""
        said = error.get("message")
        self.method: Final = method
        self.error: Final = error
        self.message: Final = harmless(str(said), limit=_WORDS)
        """What it says, harmless to look at."""
        super().__init__(f"{method} was refused: {self.message}")


class RequestUnanswered(TurnlockError):
    """What was not answered in time, or not as it is answered: nobody knows what came of it."""

    def __init__(self, method: str, why: str) -> None:
        """Say what was asked."""
        self.method: Final = method
        super().__init__(f"{method}: {why}")


@attrs.frozen(kw_only=True)
class Thread:
    """A conversation that a process has loaded."""

    thread_id: str
    settlement: Literal["response", "turn"]
    """What a turn of the kernel is: a response of its model, or a turn of its (S-31, S-32)."""
    model: str | None = None
    cwd: str | None = None
    approval_policy: Json = None
    """As it holds: one of its names, or what it says in their place."""
    sandbox: str | None = None
    """As it holds, by the names that are asked for."""


class Gateway:
    """What is asked of one process."""

    def __init__(self, wire: Wire) -> None:
        """Ask over a wire; its reader gives back what is answered (`take`)."""
        self._wire = wire
        self._waiting: dict[RequestId, asyncio.Future[Any]] = {}
        self._asked = 0
        self._closed = False
        self._knows_raw = True
        self.version = ""
        """What it says that it is, since `initialize`; nothing where it does not say it."""

    def take(self, answered: Answered) -> None:
        """Take what it answers; what nobody waits for any more is nothing."""
        waiting = self._waiting.pop(answered.id, None)
        if waiting is None or waiting.done():
            _log.info("%s answers %r, for which nobody waits", self._wire.name, answered.id)
        else:
            waiting.set_result(answered)

    def close(self) -> None:
        """Let nobody wait any more: it says nothing more (`PipeBroken`)."""
        self._closed = True
        waiting, self._waiting = self._waiting, {}
        for it in waiting.values():
            if not it.done():
                it.set_result(None)

    async def initialize(self) -> str:
        """Say who we are, and that we take what is experimental; return its version."""
        client = {"name": "turnlock", "title": "turnlock", "version": version()}
        given: dict[str, Any] = {"clientInfo": client}
        try:
            told = await self._ask(
                "initialize", {**given, "capabilities": {"experimentalApi": True}}, repeats=True
            )
        except RequestRefused as error:
            _log.info("%s: %s; it is asked for nothing experimental", self._wire.name, error)
            self._knows_raw = False
            told = await self._ask("initialize", given, repeats=True)
        await self._write("initialized", {"method": "initialized"})
        found = re.match(r"[^/]*/(\S+)", str(told.get("userAgent")))
        self.version = harmless(found[1], limit=100) if found else ""
        return self.version

    async def start_thread(
        self,
        *,
        cwd: str | None = None,
        model: str | None = None,
        approval_policy: str | None = None,
        sandbox: str | None = None,
        options: Mapping[str, Json] | None = None,
    ) -> Thread:
        """Begin a conversation; `options` override its configuration.

        Raises `RequestRefused`, also for one that would not ask us, or ask less than it was told.
        """
        asked = _settings(cwd, model, approval_policy, sandbox, options)
        raw = self._knows_raw and _is_since(self.version, RAW_SINCE)
        told, raw = await self._ask_new("thread/start", asked, {"experimentalRawEvents": raw})
        return _thread("thread/start", told, asked, settlement="response" if raw else "turn")

    async def resume_thread(  # noqa: PLR0913 - what a thread is
        self,
        thread_id: str,
        *,
        cwd: str | None = None,
        model: str | None = None,
        approval_policy: str | None = None,
        sandbox: str | None = None,
        options: Mapping[str, Json] | None = None,
    ) -> Thread:
        """Go on with one that it has kept, under these settings; raw events there are none (S-32).

        What was said in it does not come with it: it may be longer than any line.
        """
        settings = _settings(cwd, model, approval_policy, sandbox, options)
        asked = {"threadId": thread_id, **settings}
        told, _ = await self._ask_new("thread/resume", asked, {"excludeTurns": True})
        thread = _thread("thread/resume", told, asked, settlement="turn")
        if thread.thread_id != thread_id:
            raise RequestRefused("thread/resume", {"message": "it resumed another thread"})
        return thread

    async def read_thread(self, thread_id: str) -> Mapping[str, Any]:
        """Return all that it has kept of a conversation, in one line; see `items`."""
        asked = {"threadId": thread_id, "includeTurns": True}
        told = await self._ask("thread/read", asked, repeats=True)
        return _mapping("thread/read", told.get("thread"))

    async def items(
        self, thread_id: str, *, turn_id: str | None = None, newest_first: bool = False
    ) -> AsyncIterator[Mapping[str, Any]]:
        """Yield the items that it has kept, each with its `turnId`, page by page.

        Raises `RequestRefused` where it knows of no such list, as older versions do not.
        """
        asked: dict[str, Any] = {
            "threadId": thread_id,
            "limit": PAGE,
            "sortDirection": "desc" if newest_first else "asc",
        }
        if turn_id is not None:
            asked["turnId"] = turn_id
        async for entry in self._pages("thread/items/list", asked):
            yield entry

    async def start_turn(self, thread_id: str, text: str, *, message_id: str) -> str:
        """Have it begin a turn with what a person says; return the turn's id. Asked but once."""
        asked = {"threadId": thread_id, **_said(text, message_id)}
        told = await self._ask("turn/start", asked)
        return _text("turn/start", _mapping("turn/start", told.get("turn")).get("id"))

    async def steer(self, thread_id: str, turn_id: str, text: str, *, message_id: str) -> str:
        """Have it take what a person says into the turn that goes on; return the turn's id."""
        asked = {"threadId": thread_id, "expectedTurnId": turn_id, **_said(text, message_id)}
        told = await self._ask("turn/steer", asked)
        return _text("turn/steer", told.get("turnId", turn_id))

    async def interrupt(self, thread_id: str, turn_id: str) -> None:
        """Have it stop a turn."""
        await self._ask("turn/interrupt", {"threadId": thread_id, "turnId": turn_id})

    async def models(self) -> tuple[ModelInfo, ...]:
        """Return the models that it may be asked for."""
        found: dict[str, ModelInfo] = {}
        async for entry in self._pages("model/list", {}):
            name = entry.get("model") or entry.get("id")
            if isinstance(name, str):
                provider = entry.get("modelProvider")
                found[name] = ModelInfo(
                    name=name,
                    provider=provider if isinstance(provider, str) else None,
                    default=entry.get("isDefault") is True,
                )
        return tuple(found.values())

    async def _pages(
        self, method: str, asked: Mapping[str, Any]
    ) -> AsyncIterator[Mapping[str, Any]]:
        """Yield the entries of a list, page after page."""
        cursor: object = None
        for _ in range(PAGES):
            more = {} if cursor is None else {"cursor": cursor}
            told = await self._ask(method, {**asked, **more}, repeats=True)
            entries = told.get("data")
            if not isinstance(entries, list):
                raise RequestUnanswered(method, "it was answered without a list")
            for entry in cast("list[object]", entries):
                if isinstance(entry, dict):
                    yield cast("dict[str, Any]", entry)
            before, cursor = cursor, told.get("nextCursor")
            if cursor is None or cursor == before:
                return
        _log.warning("%s: %s has more than %d pages", self._wire.name, method, PAGES)

    async def _ask_new(
        self, method: str, asked: Mapping[str, Any], new: Mapping[str, bool]
    ) -> tuple[Mapping[str, Any], bool]:
        """Ask with what older versions do not know, and without it where they refuse just that."""
        wanted = {name: True for name, is_wanted in new.items() if is_wanted}
        if wanted:
            try:
                return await self._ask(method, {**asked, **wanted}, within=START), True
            except RequestRefused as error:
                words = (*wanted, "experimental")
                if not any(word in error.message for word in words):
                    raise
                _log.info("%s: %s; it is asked without", self._wire.name, error)
        return await self._ask(method, asked, within=START), False

    async def _ask(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        within: float | None = None,
        repeats: bool = False,
    ) -> Mapping[str, Any]:
        """Ask, and return what it answers.

        Raises `RequestRefused`, `RequestUnanswered`, and `PipeBroken`.
        """
        within = REQUEST if within is None else within
        try:
            async with asyncio.timeout(within):
                for pause in AGAIN if repeats else ():
                    try:
                        return await self._ask_once(method, params)
                    except RequestRefused as error:
                        if error.error.get("code") != OVERLOADED:
                            raise
                    await asyncio.sleep(pause)
                return await self._ask_once(method, params)
        except TimeoutError as error:
            raise RequestUnanswered(method, f"nothing was answered for {within:g} s") from error

    async def _ask_once(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        self._asked += 1
        request = self._asked
        waiting = self._waiting[request] = asyncio.get_running_loop().create_future()
        try:
            await self._write(method, {"method": method, "id": request, "params": params})
            answered: Answered | None = await waiting
        finally:
            self._waiting.pop(request, None)
        if answered is None:
            raise self._broken(method)
        if answered.error is not None:
            raise RequestRefused(method, answered.error)
        return _mapping(method, answered.result)

    async def _write(self, method: str, message: Mapping[str, Any]) -> None:
        if self._closed:
            raise self._broken(method)
        await self._wire.write(message)

    def _broken(self, method: str) -> PipeBroken:
        return PipeBroken(f"{self._wire.name}: it has ended, or said its last; {method} is lost")


def _settings(
    cwd: str | None,
    model: str | None,
    approval_policy: str | None,
    sandbox: str | None,
    options: Mapping[str, Json] | None,
) -> dict[str, Any]:
    """Return the parameters of a thread, each time all: of others it keeps what it was told."""
    given = {
        "cwd": cwd,
        "model": model,
        "approvalPolicy": approval_policy,
        "sandbox": sandbox,
        "config": dict(options) if options else None,
    }
    named = {name: value for name, value in given.items() if value is not None}
    return {**named, "approvalsReviewer": REVIEWER}


def _thread(
    method: str,
    told: Mapping[str, Any],
    asked: Mapping[str, Any],
    *,
    settlement: Literal["response", "turn"],
) -> Thread:
    """Return the thread of an answer; refuse one that decides more by itself than was asked."""
    reviewer = told.get("approvalsReviewer")
    if reviewer not in {None, REVIEWER}:  # older versions know of nobody else
        raise RequestRefused(
            method,
            {"message": f"its approvals would be reviewed by {reviewer!r} and not by the user"},
        )
    policy, sandbox = told.get("approvalPolicy"), _sandbox(told.get("sandbox"))
    for name, holds, known in (
        ("approvalPolicy", policy, POLICIES),
        ("sandbox", sandbox, SANDBOXES),
    ):
        wanted = asked.get(name)
        if wanted in known and holds in known and known.index(holds) > known.index(wanted):
            raise RequestRefused(
                method, {"message": f"its {name} would be {holds!r} and not {wanted!r}"}
            )
    model, cwd = told.get("model"), told.get("cwd")
    return Thread(
        thread_id=_text(method, _mapping(method, told.get("thread")).get("id")),
        settlement=settlement,
        model=model if isinstance(model, str) else None,
        cwd=cwd if isinstance(cwd, str) else None,
        approval_policy=policy,
        sandbox=sandbox,
    )


def _sandbox(told: object) -> str | None:
    """Return a sandbox by the name that is asked for."""
    kind = cast("dict[str, Any]", told).get("type") if isinstance(told, dict) else None
    if not isinstance(kind, str):
        return None
    return SANDBOXES[2] if kind == "dangerFullAccess" else _NAMES.get(kind, kind)


def _said(text: str, message_id: str) -> dict[str, Any]:
    said: list[dict[str, Any]] = [{"type": "text", "text": text, "text_elements": []}]
    return {"input": said, "clientUserMessageId": message_id}


def _mapping(method: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise RequestUnanswered(method, "it was answered without what it asks for")
    return cast("dict[str, Any]", value)


def _text(method: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise RequestUnanswered(method, "it was answered without the id it asks for")
    return value


def _is_since(told: str, least: tuple[int, ...]) -> bool:
    """Whether a version is this one or a later one; one that is none is not."""
    numbers = re.match(r"\d+(?:\.\d+)*", told)
    return numbers is not None and tuple(map(int, numbers[0].split(".")))[:2] >= least
