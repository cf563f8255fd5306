"""Recorded processes as what a session talks to, in this process; and the people at the server.

A tape says what was recorded, in order, and waits where the recorded client said something, until
ours does. The people do what the recorded client did, by the server's commands: prompts, decisions,
answers, interrupts. Where nothing comes for a while of the loop's time they go on all the same.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, Protocol

import attrs

from turnlock.adapters.codex.messages import (
    Answered,
    Asked,
    Message,
    NotAMessage,
    Notified,
    object_of,
)
from turnlock.adapters.codex.people import Decided, decided
from turnlock.adapters.codex.process import Exited, ProcessName, name_of
from turnlock.adapters.codex.transcripts import Said, Step, Told
from turnlock.adapters.codex.transport import PipeBroken
from turnlock.adapters.contract import CommandRefused
from turnlock.models.errors import TurnlockError
from turnlock.models.verdicts import Verdict
from turnlock.runtime.runtime import Runtime
from turnlock.server.sessions import Sessions, When
from turnlock.views.call_view import CallView

from .recordings import recording

PATIENCE: Final = 60.0
"""Seconds of the loop's time that something is waited for."""
OURS: Final = frozenset({"initialize", "initialized", "thread/start", "thread/resume"})
"""What the adapter says by itself."""
RESOLVED: Final = "serverRequest/resolved"
BESIDE: Final = frozenset(
    {"thread/read", "model/list", "thread/list", "thread/items/list"}
    | {"thread/backgroundTerminals/list", "thread/backgroundTerminals/clean"}
)
"""What the recorded client asked beside, and we need not."""


@attrs.define(eq=False)
class Tape:
    """One recorded process."""

    steps: Sequence[Step]
    number: int = 1
    place: int = 0
    said: int = 0
    """Messages that were read, but for answers to us."""
    dead: bool = False
    stderr_tail: str = ""
    written: list[dict[str, Any]] = attrs.field(factory=list[dict[str, Any]])
    ids: dict[str, Any] = attrs.field(factory=dict[str, Any])
    """Our ids by the recorded ones."""
    heard: asyncio.Event = attrs.field(factory=asyncio.Event)
    change: Callable[[int, Said], list[Message | None]] = lambda _, said: [said.message]
    """What becomes of a message that is about to be said; None: a line that is none."""
    ready: list[Message | None] = attrs.field(factory=list[Message | None])
    unfit: list[dict[str, Any]] = attrs.field(factory=list[dict[str, Any]])
    """What we said and the recorded client did not."""
    expected: list[dict[str, Any]] = attrs.field(factory=list[dict[str, Any]])

    @property
    def name(self) -> ProcessName:
        """Its name: that of a process that has surely ended."""
        ours = name_of(os.getpid())
        boot, where, _ = ours.started.split(":")
        return attrs.evolve(ours, started=f"{boot}:{where}:{self.number}")

    async def read(self) -> Message | None:
        """Return what it says next."""
        await asyncio.sleep(0)
        while not self.dead:
            if self.ready:
                message = self.ready.pop(0)
                if message is None:
                    raise NotAMessage("a line that is no JSON")
                if isinstance(message, Answered):
                    key = json.dumps(message.id)
                    if key not in self.ids:
                        continue
                    return attrs.evolve(message, id=self.ids.pop(key))
                self.said += 1
                return message
            if self.place >= len(self.steps):
                self.dead = True
                break
            step = self.steps[self.place]
            self.place += 1
            if isinstance(step, Said):
                self.ready += self.change(self.place - 1, step)
            elif isinstance(step, Told):
                await self._waits(dict(step.message))
        return None

    async def _waits(self, expected: dict[str, Any]) -> None:
        """Wait until the client says this; for a while."""
        method = expected.get("method")
        if method in BESIDE:
            self.ids.pop(json.dumps(expected.get("id")), None)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(3 * PATIENCE):
                while not self.dead:
                    found = next((it for it in self.unfit if _fits(it, expected)), None)
                    if found is not None:
                        self.unfit.remove(found)
                        if _is_raw(found) and not _is_raw(expected):
                            error = {"code": -32600, "message": "experimentalRawEvents is unknown"}
                            self.ids['"raw"'] = found["id"]
                            self.ready.append(Answered("raw", None, error))
                            self.place -= 1
                            return
                        if method is not None and "id" in expected:
                            self.ids[json.dumps(expected["id"])] = found["id"]
                        return
                    self.heard.clear()
                    await self.heard.wait()

    async def write(self, message: Mapping[str, Any]) -> None:
        """Hear something; what nobody recorded is answered as far as that is needed."""
        if self.dead:
            raise PipeBroken("it is dead")
        told = json.loads(json.dumps(message))
        self.written.append(told)
        if told.get("method") in BESIDE:
            self.ready.append(Answered(told["id"], {"data": [], "thread": {"turns": []}}))
            self.ids[json.dumps(told["id"])] = told["id"]
        else:
            self.unfit.append(told)
        self.heard.set()

    async def end(self, *, grace: float) -> Exited:
        """End it."""
        self.kill()
        return Exited(status=0)

    def kill(self) -> None:
        """End it."""
        self.dead = True
        self.heard.set()

    def decisions(self) -> list[tuple[Any, str]]:
        """What was answered to its requests."""
        return [
            (it["id"], str(object_of(it.get("result")).get("decision")))
            for it in self.written
            if "method" not in it
        ]


def _is_raw(message: Mapping[str, Any]) -> bool:
    """Whether raw events are asked for."""
    return bool(object_of(message.get("params")).get("experimentalRawEvents"))


def _fits(told: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
    if "method" in expected:
        return bool(told.get("method") == expected["method"])
    return "method" not in told and bool(told.get("id") == expected.get("id"))


def tape(name: str, process: int = 0, **more: Any) -> Tape:
    """Return a recorded process."""
    steps = [it for it in recording(name).steps if it.process == process]
    return Tape(steps, **more)


class Heard(Protocol):
    """A process, and what was read of it by now."""

    steps: Sequence[Step]
    said: int
    dead: bool


@attrs.define
class People:
    """Do what the recorded client did, by commands."""

    sessions: Sessions
    runtime: Runtime
    tape: Heard
    run_id: str = "r"
    prompts: int = 0
    patience: float = PATIENCE

    async def play(self) -> None:
        """Do all of it, each in its place."""
        said = 0
        asked: dict[str, Asked] = {}
        for step in self.tape.steps:
            if isinstance(step, Said) and isinstance(step.message, Notified | Asked):
                said += 1
                if isinstance(step.message, Asked):
                    asked[json.dumps(step.message.id)] = step.message
                elif step.message.method == RESOLVED:  # an answer that comes later is of no use
                    asked.pop(json.dumps(step.message.params.get("requestId")), None)
            elif isinstance(step, Told):
                await self._until(partial(self._has_said, said))
                with suppress(CommandRefused):
                    await self._does(dict(step.message), asked)

    def _told_before(self, message: Mapping[str, Any]) -> Sequence[Told]:
        told = [it for it in self.tape.steps if isinstance(it, Told)]
        return told[: [it.message for it in told].index(message)]

    def _has_said(self, least: int) -> bool:
        return self.tape.said >= least or self.tape.dead

    async def _until(self, holds: Callable[[], bool]) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(self.patience):
                while not holds():  # noqa: ASYNC110 - of many things, few of which tell
                    await asyncio.sleep(0.01)
        return holds()

    async def _does(self, message: dict[str, Any], asked: Mapping[str, Asked]) -> None:
        method = message.get("method")
        if method is None:
            request = asked.get(json.dumps(message.get("id")))
            if request is not None:
                await self._answers(request, message)
        elif method in {"turn/start", "turn/steer"}:
            self.prompts += 1
            when: When = "steer" if method == "turn/steer" else "idle"
            await self.sessions.prompt(
                self.run_id, "go", message_id=f"m{self.prompts}", when=when, doubts="fail"
            )
        elif method == "turn/interrupt":
            answered = {json.dumps(it.message.get("id")) for it in self._told_before(message)}
            if asked.keys() - answered:  # it was read, and is about to be kept
                await self._until(lambda: bool(self.runtime.pending(self.run_id)))
            await self._interrupts()

    async def _interrupts(self) -> None:
        turn = (await self.runtime.view(self.run_id)).turn
        if turn is None:
            await self.sessions.interrupt(self.run_id, reason="enough", grace=5.0)
        else:
            with suppress(TurnlockError):
                await self.runtime.interrupt(self.run_id, turn_id=turn.turn_id, grace=5.0)

    async def _answers(self, request: Asked, message: Mapping[str, Any]) -> None:
        """Decide about the call that a request is of, or answer a question."""
        item = request.params.get("itemId") or request.params.get("callId")

        def found(*, exactly: bool) -> CallView | None:
            if self.run_id not in self.runtime.runs:
                return None
            calls = self.runtime.pending(self.run_id)
            of_item = [it for it in calls if it.provider_call_id == item]
            return next(iter(of_item or (() if exactly and item else calls)), None)

        await self._until(lambda: found(exactly=True) is not None or self.tape.dead)
        call = found(exactly=False)
        if call is None:
            return
        by = decided(request.method, message)
        with suppress(TurnlockError):
            if by is Decided.INTERRUPTED:
                await self._interrupts()
            else:
                await decide(self.runtime, call, approved=by is Decided.APPROVED)


async def decide(runtime: Runtime, call: CallView, *, approved: bool) -> Verdict:
    """Decide about a call, as it was shown."""
    if not approved:
        return await runtime.deny(
            call.run_id, turn_id=call.turn_id, invocation_id=call.invocation_id
        )
    return await runtime.approve(
        call.run_id,
        turn_id=call.turn_id,
        invocation_id=call.invocation_id,
        arguments_digest=call.arguments_digest,
    )
