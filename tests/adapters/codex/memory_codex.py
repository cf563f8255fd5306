"""A ``codex app-server`` in memory: it answers requests by itself, and says what a test has it say.

Its messages are those of the recorded transcripts, with raw events or without. `pipe` shows what
all its processes were told, in order; `held` holds back the answers to a method until the test
opens them, `refusing` has it answer with an error, `silent` not at all.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import attrs

from turnlock.adapters.codex.messages import Message, object_of, read
from turnlock.adapters.codex.process import Exited, ProcessName, name_of
from turnlock.adapters.codex.transport import PipeBroken

Json: TypeAlias = Any
WITH_RAW: Final = "0.169.0"
WITHOUT: Final = "0.104.0"


SANDBOXES: Final[Mapping[str | None, str]] = {
    "read-only": "readOnly",
    "workspace-write": "workspaceWrite",
    "danger-full-access": "dangerFullAccess",
    None: "workspaceWrite",
}


async def _nothing(_: object) -> None:
    """Do nothing."""


@attrs.define(eq=False)
class MemoryWire:
    """What a session has of one process."""

    codex: MemoryCodex
    number: int
    said: asyncio.Queue[bytes | None] = attrs.field(factory=asyncio.Queue[bytes | None])
    dead: bool = False
    thread: str | None = None
    """The thread that it performs."""
    status: int | None = 0
    stderr_tail: str = ""

    @property
    def name(self) -> ProcessName:
        """Its name: that of a process that has surely ended, of our pid and begun before us."""
        ours = name_of(os.getpid())
        boot, where, _ = ours.started.split(":")
        return attrs.evolve(ours, started=f"{boot}:{where}:{self.number}")

    async def read(self) -> Message | None:
        """Return what it says next."""
        line = await self.said.get()
        return None if line is None else read(line)

    async def write(self, message: Mapping[str, Any]) -> None:
        """Have it hear something."""
        if self.dead:
            raise PipeBroken("it is dead")
        told = json.loads(json.dumps(message))
        await self.codex.on_write(told)
        self.codex.heard(self, told)

    async def end(self, *, grace: float) -> Exited:
        """End it."""
        if not self.dead:
            self.codex.pipe.append(("end", self.number))
        self.dies(0)
        return Exited(status=self.status)

    def kill(self) -> None:
        """Kill it."""
        if not self.dead:
            self.codex.pipe.append(("kill", self.number))
        self.dies(-9)

    def dies(self, status: int = 1, words: str = "") -> None:
        """End by itself."""
        if not self.dead:
            self.dead, self.status, self.stderr_tail = True, status, words
            self.said.put_nowait(None)

    def says(self, message: Mapping[str, Any]) -> None:
        """Say something, unless it is dead."""
        if not self.dead:
            self.said.put_nowait(json.dumps(message).encode())


@attrs.define(eq=False)
class MemoryCodex:
    """All processes that were started, and the threads that they leave behind."""

    version: str = WITH_RAW
    pipe: list[tuple[Any, ...]] = attrs.field(factory=list[tuple[Any, ...]])
    """What was written, as (`method` or `answer`, its params or (id, result))."""
    wires: list[MemoryWire] = attrs.field(factory=list[MemoryWire])
    commands: list[tuple[tuple[str, ...], str | None]] = attrs.field(factory=list[Any])
    threads: dict[str, list[dict[str, Any]]] = attrs.field(factory=dict[str, list[dict[str, Any]]])
    """The turns of each thread."""
    held: dict[str, asyncio.Event] = attrs.field(factory=dict[str, asyncio.Event])
    refusing: dict[str, str] = attrs.field(factory=dict[str, str])
    silent: set[str] = attrs.field(factory=set[str])
    models: tuple[str, ...] = ("small", "large")
    turn: str | None = None
    """The turn that goes on."""
    raw: bool = False
    """Whether raw events were asked for."""
    turns: int = 0
    asked: int = 0
    """Requests of its, so far."""
    items: dict[str, dict[str, Any]] = attrs.field(factory=dict[str, dict[str, Any]])
    """Commands of the turn that goes on."""
    waiting: dict[int, str] = attrs.field(factory=dict[int, str])
    """Requests that wait, and their items."""
    answers: list[tuple[str, Any]] = attrs.field(factory=list[tuple[str, Any]])
    """What was answered, by item."""
    tasks: set[asyncio.Task[None]] = attrs.field(factory=set[asyncio.Task[None]])

    on_write: Callable[[dict[str, Any]], Awaitable[None]] = _nothing
    """Is awaited with each message at the moment in which it is written."""

    async def start(
        self, command: Sequence[str], *, cwd: str | None, env: Mapping[str, str] | None
    ) -> MemoryWire:
        """Start a process."""
        self.commands.append((tuple(command), cwd))
        wire = MemoryWire(self, len(self.wires) + 1)
        self.wires.append(wire)
        self.turn, self.items, self.asked = None, {}, 0
        self.waiting.clear()
        return wire

    @property
    def wire(self) -> MemoryWire:
        """The latest process."""
        return self.wires[-1]

    @property
    def thread(self) -> str:
        """The latest thread."""
        return list(self.threads)[-1]

    def told(self, *methods: str) -> list[Any]:
        """Return the params of requests of these methods."""
        return [it[1] for it in self.pipe if it[0] in methods]

    # what it hears

    def heard(self, wire: MemoryWire, message: dict[str, Any]) -> None:
        """Hear a message."""
        method = message.get("method")
        if method is None:
            self._answered(message)
            return
        self.pipe.append((method, message.get("params")))
        if "id" in message and method not in self.silent:
            task = asyncio.get_running_loop().create_task(self._responds(wire, message))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    def _answered(self, message: dict[str, Any]) -> None:
        self.pipe.append(("answer", (message["id"], message.get("result"))))
        item = self.waiting.pop(message["id"], None)
        if item is None:
            return
        self.answers.append((item, message.get("result")))
        self.notifies("serverRequest/resolved", requestId=message["id"])
        if object_of(message.get("result")).get("decision") == "decline":
            self.ends(item, status="declined")

    async def _responds(self, wire: MemoryWire, message: dict[str, Any]) -> None:
        method, params = message["method"], object_of(message.get("params"))
        if method in self.held:
            await self.held[method].wait()
        if method == "thread/items/list" and self.version == WITHOUT:
            wire.says({"id": message["id"], "error": {"code": -32601, "message": "unknown"}})
            return
        if method in self.refusing:
            error = {"code": -32600, "message": self.refusing[method]}
            wire.says({"id": message["id"], "error": error})
            return
        result, then = self._result(wire, method, params)
        wire.says({"id": message["id"], "result": result})
        then()

    def _result(  # noqa: PLR0911 - one for each method
        self, wire: MemoryWire, method: str, params: Mapping[str, Any]
    ) -> tuple[dict[str, Any], Callable[[], None]]:
        def nothing() -> None:
            return

        if method == "initialize":
            return {"userAgent": f"turnlock/{self.version} (Debian; x86_64)"}, nothing
        if method in {"thread/start", "thread/resume"}:
            return self._thread(wire, method, params), nothing
        if method == "turn/start":
            return self._turn(params)
        if method == "turn/steer":
            return {"turnId": self.turn}, nothing
        if method == "turn/interrupt":
            return {}, lambda: self.completes("interrupted")
        if method == "thread/items/list":
            turns = self.threads[params["threadId"]]
            entries = [{"turnId": it["id"], "item": one} for it in turns for one in it["items"]]
            return {"data": entries[::-1], "nextCursor": None}, nothing
        if method == "thread/read":
            turns = self.threads[params["threadId"]]
            return {"thread": {"id": params["threadId"], "turns": turns}}, nothing
        if method == "model/list":
            data = [
                {"id": it, "model": it, "displayName": it, "isDefault": it == self.models[0]}
                for it in self.models
            ]
            return {"data": data, "nextCursor": None}, nothing
        raise AssertionError(method)

    def _thread(self, wire: MemoryWire, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        if method == "thread/start":
            thread = f"thread-{len(self.threads) + 1}"
            self.threads[thread] = []
            self.raw = bool(params.get("experimentalRawEvents")) and self.version == WITH_RAW
        else:
            thread = params["threadId"]
            self.raw = False
        wire.thread = thread
        return {
            "thread": {"id": thread, "cwd": params.get("cwd"), "turns": []},
            "model": params.get("model") or self.models[0],
            "modelProvider": "mock",
            "cwd": params.get("cwd") or "/workspace",
            "approvalPolicy": params.get("approvalPolicy") or "on-request",
            "approvalsReviewer": "user",
            "sandbox": {"type": SANDBOXES[params.get("sandbox")]},
        }

    def _turn(self, params: Mapping[str, Any]) -> tuple[dict[str, Any], Callable[[], None]]:
        self.turns += 1
        turn = self.turn = f"turn-{self.turns}"
        self.items = {}
        text = params["input"][0]["text"]
        item = {
            "type": "userMessage",
            "id": f"user-{self.turns}",
            "clientId": params.get("clientUserMessageId"),
            "content": [{"type": "text", "text": text}],
        }
        self.threads[params["threadId"]].append({"id": turn, "items": [item]})
        told: Json = {"id": turn, "items": [], "status": "inProgress", "error": None}

        def begins() -> None:
            self.notifies("turn/started", turn=told)
            self.notifies("item/started", item=item, turnId=turn)
            self.notifies("item/completed", item=item, turnId=turn)

        return {"turn": told}, begins

    # what it says

    def notifies(self, method: str, **params: Json) -> None:
        """Say something of the thread."""
        self.wire.says({"method": method, "params": {"threadId": self.thread, **params}})

    def asks(self, method: str, item: str, **params: Json) -> int:
        """Ask something of the turn that goes on; return the id of the request."""
        number, self.asked = self.asked, self.asked + 1
        self.waiting[number] = item
        told = {"threadId": self.thread, "turnId": self.turn, "itemId": item, **params}
        self.wire.says({"method": method, "id": number, "params": told})
        return number

    def calls(self, *items: str) -> None:
        """Have the model's response ask for commands: said only where raw events are."""
        if not self.raw:
            return
        for item in items:
            call = {
                "type": "function_call",
                "id": f"fc-{self.turn}-{item}",
                "name": "exec_command",
                "arguments": json.dumps({"cmd": f"run {item}"}),
                "call_id": item,
            }
            self.notifies("rawResponseItem/completed", turnId=self.turn, item=call)
        self.notifies("rawResponse/completed", turnId=self.turn, responseId=f"resp-{items}")

    def announces(self, item: str, *, process: str | None = None) -> None:
        """Announce a command; with a process id it runs already."""
        told = self.items[item] = {
            "type": "commandExecution",
            "id": item,
            "command": f"run {item}",
            "cwd": "/workspace",
            "processId": process,
            "source": "agent",
            "status": "inProgress",
            "commandActions": [],
            "aggregatedOutput": None,
            "exitCode": None,
        }
        self.notifies("item/started", turnId=self.turn, item=told)

    def asks_to_run(self, *items: str) -> list[int]:
        """Have the model ask for commands that need an approval."""
        self.calls(*items)
        asked: list[int] = []
        for item in items:
            self.announces(item)
            asked.append(
                self.asks(
                    "item/commandExecution/requestApproval",
                    item,
                    kind="command",
                    reason=f"Allow: {item}?",
                    command=f"run {item}",
                    cwd="/workspace",
                    availableDecisions=["accept", "cancel"],
                )
            )
        return asked

    def runs(self, *items: str) -> None:
        """Have commands run that nobody is asked about."""
        self.calls(*items)
        for item in items:
            self.announces(item, process=f"p-{item}")

    def ends(self, item: str, *, status: str = "completed", output: str = "out\n") -> None:
        """Say how a command ended, and tell the model."""
        ran = status != "declined"
        told = self.items[item] | {
            "status": status,
            "processId": f"p-{item}" if ran else None,
            "aggregatedOutput": output if ran else None,
            "exitCode": {"completed": 0, "failed": 1}.get(status),
        }
        self.notifies("item/completed", turnId=self.turn, item=told)
        if self.raw:
            said = {
                "type": "function_call_output",
                "id": f"fco-{self.turn}-{item}",
                "call_id": item,
                "output": output if ran else "rejected by user",
            }
            self.notifies("rawResponseItem/completed", turnId=self.turn, item=said)

    def speaks(self, text: str, item: str = "msg-1") -> None:
        """Have the model say something."""
        told = {"type": "agentMessage", "id": item, "text": "", "phase": None}
        self.notifies("item/started", turnId=self.turn, item=told)
        self.notifies("item/agentMessage/delta", turnId=self.turn, itemId=item, delta=text)
        self.notifies("item/completed", turnId=self.turn, item=told | {"text": text})
        if self.raw:
            self.notifies("rawResponse/completed", turnId=self.turn, responseId=f"resp-{item}")

    def completes(self, status: str = "completed") -> None:
        """End the turn."""
        turn, self.turn = self.turn, None
        told: Json = {"id": turn, "items": [], "status": status, "error": None}
        self.notifies("turn/completed", turn=told)
        for number in tuple(self.waiting):
            del self.waiting[number]
            self.notifies("serverRequest/resolved", requestId=number)
