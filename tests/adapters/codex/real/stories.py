"""What the binary is led through, with raw events: each story makes one tape.

A story says how the model answers, what Codex is configured with, and what the client does. What it
asks is answered by the call that it is about, in whichever order the questions come.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs

from .conftest import Room, append
from .endpoint import Request, Script, Step, call, command, patch, say, step
from .raw import Raw

SERVER: Final = Path(__file__).with_name("mcp_server.py")
"""A tool server of ours: it looks, changes, and inquires."""

Result: TypeAlias = Mapping[str, Any]
Answers: TypeAlias = Mapping[str, Result | None]
"""By the id of the call, or the name of the MCP tool; None: never."""

ACCEPT: Final[Result] = {"decision": "accept"}
DECLINE: Final[Result] = {"decision": "decline"}


@attrs.frozen(kw_only=True)
class Story:
    """How the model answers, and what the client does once the thread is there."""

    name: str
    script: Callable[[], Script]
    drive: Callable[[Room, Raw, str], None]
    sandbox: str = "workspace-write"
    features: tuple[str, ...] = ()
    mcp: bool = False
    params: Mapping[str, Any] = attrs.field(factory=dict[str, Any])
    """Of `thread/start`, beside the directory and the raw events."""

    def more(self) -> str:
        """What its configuration has besides."""
        if not self.mcp:
            return ""
        return f'[mcp_servers.ours]\ncommand = "python3"\nargs = ["{SERVER}"]\n'

    def perform(self, room: Room) -> None:
        """Start a process, and a thread of it, and go through it."""
        with room.start() as raw:
            cwd = str(room.workspace)
            told = raw.start_thread(cwd=cwd, experimentalRawEvents=True, **self.params)
            self.drive(room, raw, told["thread"]["id"])
            if not raw.ended:
                raw.close()


def about(asked: Mapping[str, Any]) -> str:
    """Return which call a question is about, or which MCP tool; else its method."""
    params: dict[str, Any] = asked["params"]
    meta: dict[str, Any] = params.get("_meta") or {}
    named = params.get("itemId") or params.get("callId") or meta.get("tool_name")
    return str(named or asked["method"])


def answering_all(raw: Raw, thread: str, answers: Answers, *, turns: int = 1) -> None:
    """Answer what is asked until so many turns of the thread are over."""
    seen = 0
    while True:
        told = raw.wait(
            lambda told: (
                ("id" in told and "method" in told)
                or (told.get("method") == "turn/completed" and told["params"]["threadId"] == thread)
            ),
            count=seen + 1,
        )
        seen += 1
        if "id" not in told:
            turns -= 1
            if not turns:
                return
        elif (result := answers[about(told)]) is not None:
            raw.send({"id": told["id"], "result": result})


def plainly(answers: Answers, *says: str) -> Callable[[Room, Raw, str], None]:
    """A turn, or several one after the other, with every question answered."""

    def drive(room: Room, raw: Raw, thread: str) -> None:
        for number, text in enumerate(says or ("go",), start=1):
            raw.start_turn(thread, text)
            answering_all(raw, thread, answers, turns=number)

    return drive


def until(room: Room, word: str, *, seconds: float = 30.0) -> None:
    """Wait until a command has said so in the ledger."""
    end = time.monotonic() + seconds
    while word not in room.ledger:
        assert time.monotonic() < end, f"{word} is not in the ledger: {room.ledger}"
        time.sleep(0.01)


ASKS: Final = "item/commandExecution/requestApproval"


def _interrupted(pending: int, accepted: str | None = None) -> Callable[[Room, Raw, str], None]:
    """Interrupt once so many questions were asked, and one that was accepted runs."""

    def drive(room: Room, raw: Raw, thread: str) -> None:
        turn = raw.start_turn(thread)
        for count in range(1, pending + 1):
            asked = raw.wait_for(ASKS, count=count)
            if about(asked) == accepted:
                raw.answer(asked, "accept")
        if accepted is not None:
            until(room, "began")
        raw.request("turn/interrupt", threadId=thread, turnId=turn)
        raw.wait_for("turn/completed")
        raw.start_turn(thread, "again")
        raw.wait_for("turn/completed", count=2)

    return drive


def _killed(accepted: bool) -> Callable[[Room, Raw, str], None]:
    """Kill it while a command waits, or runs; resume the thread in another process."""

    def drive(room: Room, raw: Raw, thread: str) -> None:
        raw.start_turn(thread)
        asked = raw.wait_for(ASKS)
        if accepted:
            raw.answer(asked, "accept")
            until(room, "began")
        raw.kill()
        with room.start() as other:
            other.request("thread/resume", threadId=thread)
            other.request("thread/read", threadId=thread, includeTurns=True)
            other.start_turn(thread, "again")
            other.wait_for("turn/completed")
            other.close()

    return drive


def _steered(room: Room, raw: Raw, thread: str) -> None:
    turn = raw.start_turn(thread)
    asked = raw.wait_for(ASKS)
    said = [{"type": "text", "text": "steer me"}]
    raw.request("turn/steer", threadId=thread, expectedTurnId=turn, input=said)
    raw.answer(asked, "accept")
    raw.wait_for("turn/completed")


def _left_running(room: Room, raw: Raw, thread: str) -> None:
    raw.start_turn(thread)
    answering_all(raw, thread, {"c1": ACCEPT})
    raw.wait_item("commandExecution", "c1")


def _agents(spawn: Step, wait: Callable[[Request], Step]) -> Callable[[], Script]:
    """A parent that spawns and waits; its child runs one command."""

    def made() -> Script:
        parent, child, lock = iter(range(9)), iter(range(9)), threading.Lock()

        def script(request: Request) -> Step:
            with lock:
                if "go" not in request.said():
                    calls = step(command("c1", append("child")))
                    return calls if next(child) == 0 else step(say("the child is done"))
                number = next(parent)
            return spawn if number == 0 else wait(request) if number == 1 else step(say("done"))

        return script

    return made


def _wait_v1(request: Request) -> Step:
    agent = json.loads(request.outputs()["s1"])["agent_id"]
    arguments = {"targets": [agent], "timeout_ms": 30_000}
    return step(call("w1", "wait_agent", arguments, namespace="multi_agent_v1"))


def _mcp(call_id: str, name: str, what: str) -> Step:
    return step(call(call_id, name, {"what": what}, namespace="mcp__ours"))


TICKET: Final = {
    "name": "lookup_ticket",
    "description": "Look up",
    "inputSchema": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
}
SLEEPS: Final = f"{append('began')}; sleep 60; {append('ended')}"


def _ticket(text: str, *, well: bool = True) -> Result:
    return {"contentItems": [{"type": "inputText", "text": text}], "success": well}


def _question(call_id: str) -> Step:
    options = [{"label": "A", "description": "a"}, {"label": "B", "description": "b"}]
    asked = {"id": "pick", "header": "Pick", "question": "Which?", "options": options}
    return step(call(call_id, "request_user_input", {"questions": [asked]}))


def _permission(call_id: str) -> Step:
    asked = {"permissions": {"network": {"enabled": True}}, "reason": "may I?"}
    return step(call(call_id, "request_permissions", asked))


def _same(*steps: Step) -> Callable[[], Script]:
    return lambda: steps


STORIES: Final = (
    Story(
        name="raw_accept",
        script=_same(step(command("c1", append("ran")))),
        drive=plainly({"c1": ACCEPT}),
    ),
    Story(
        name="raw_decline",
        script=_same(step(command("c1", append("ran")))),
        drive=plainly({"c1": DECLINE}),
    ),
    Story(
        name="raw_parallel_mixed",
        script=_same(
            step(
                command("c1", f"sleep 0.5; {append('one')}"),
                command("c2", append("two")),
                command("c3", append("three"), escalated=False),
                patch("p1", "four.txt", "four"),
            ),
            step(say("between"), command("c4", append("five"))),
        ),
        drive=plainly({"c1": ACCEPT, "c2": DECLINE, "c4": ACCEPT}),
    ),
    Story(
        name="raw_interrupt_pending",
        script=_same(step(command("c1", append("ran")))),
        drive=_interrupted(1),
    ),
    Story(
        name="raw_interrupt_running",
        script=_same(step(command("c1", SLEEPS))),
        drive=_interrupted(1, "c1"),
    ),
    Story(
        name="raw_interrupt_parallel",
        script=_same(step(command("c1", SLEEPS), command("c2", append("never")))),
        drive=_interrupted(2, "c1"),
    ),
    Story(
        name="raw_stream_cut",
        script=_same(
            step(command("c1", append("ran"), escalated=False), cut=True),
            step(command("c1", append("ran"), escalated=False)),
        ),
        drive=plainly({}),
    ),
    Story(
        name="raw_stream_cut_asked",
        script=_same(
            step(command("c1", append("ran")), cut=True), step(command("c1", append("ran")))
        ),
        drive=plainly({"c1": ACCEPT}),
    ),
    Story(
        name="raw_model_errors",
        script=_same(
            step(status=500),
            step(failed="server_error"),
            step(command("c1", append("ran"), escalated=False)),
            *(step(failed="server_error") for _ in range(4)),
            step(say("fine")),
        ),
        drive=plainly({}, "go", "again"),
    ),
    Story(
        name="raw_patch_approval",
        script=_same(step(patch("p1", "a.txt", "a")), step(patch("p2", "b.txt", "b"))),
        drive=plainly({"p1": ACCEPT, "p2": DECLINE}),
        sandbox="read-only",
    ),
    Story(
        name="raw_patch_parallel",
        script=_same(step(patch("p1", "a.txt", "a"), patch("p2", "b.txt", "b"))),
        drive=plainly({"p1": ACCEPT, "p2": ACCEPT}),
        sandbox="read-only",
    ),
    Story(
        name="raw_dynamic_tool",
        script=_same(
            step(
                call("t1", "lookup_ticket", {"id": "A"}),
                command("c1", append("ran"), escalated=False),
            ),
            step(call("t2", "lookup_ticket", {"id": "B"})),
        ),
        drive=plainly({"t1": _ticket("open"), "t2": _ticket("no such ticket", well=False)}),
        params={"dynamicTools": [TICKET]},
    ),
    Story(
        name="raw_user_input",
        script=_same(_question("q1")),
        drive=plainly({"q1": {"answers": {"pick": {"answers": ["B"]}}}}),
        features=("default_mode_request_user_input",),
    ),
    Story(
        name="raw_permissions",
        script=_same(_permission("r1"), _permission("r2")),
        drive=plainly(
            {
                "r1": {"permissions": {"network": {"enabled": True}}, "scope": "turn"},
                "r2": {"permissions": {}},
            }
        ),
        features=("request_permissions_tool",),
    ),
    Story(
        name="raw_mcp_tools",
        script=_same(_mcp("m1", "look", "at it"), _mcp("m2", "change", "it")),
        drive=plainly({"change": {"action": "accept", "content": {}}}),
        mcp=True,
    ),
    Story(
        name="raw_mcp_declined",
        script=_same(_mcp("m1", "change", "it")),
        drive=plainly({"change": {"action": "decline"}}),
        mcp=True,
    ),
    Story(
        name="raw_mcp_elicitation",
        script=_same(_mcp("m1", "inquire", "which")),
        drive=plainly(
            {"mcpServer/elicitation/request": {"action": "accept", "content": {"pick": "a"}}}
        ),
        mcp=True,
    ),
    Story(
        name="raw_steer",
        script=_same(step(command("c1", append("ran")))),
        drive=_steered,
    ),
    Story(
        name="raw_background",
        script=_same(
            step(command("c1", f"{append('began')}; sleep 1.5; {append('ended')}", wait_ms=250))
        ),
        drive=_left_running,
    ),
    Story(
        name="raw_one_id_twice_at_once",
        script=_same(
            step(
                command("c1", append("one"), escalated=False),
                command("c1", append("two"), escalated=False),
            )
        ),
        drive=plainly({}),
    ),
    Story(
        name="raw_one_id_twice_asked",
        script=_same(step(command("c1", append("one")), command("c1", append("two")))),
        drive=plainly({"c1": ACCEPT}),
    ),
    Story(
        name="raw_one_id_again",
        script=_same(step(command("c1", append("one"))), step(command("c1", append("two")))),
        drive=plainly({"c1": ACCEPT}),
    ),
    Story(
        name="raw_kill_pending_resume",
        script=_same(step(command("c1", append("ran")))),
        drive=_killed(accepted=False),
    ),
    Story(
        name="raw_kill_running_resume",
        script=_same(step(command("c1", SLEEPS))),
        drive=_killed(accepted=True),
    ),
    Story(
        name="raw_agent_v1",
        script=_agents(
            step(call("s1", "spawn_agent", {"message": "a task"}, namespace="multi_agent_v1")),
            _wait_v1,
        ),
        drive=plainly({"c1": ACCEPT}),
        features=("multi_agent",),
    ),
    Story(
        name="raw_agent_v2",
        script=_agents(
            step(
                call(
                    "s1",
                    "spawn_agent",
                    {"message": "a task", "task_name": "kid", "fork_turns": "none"},
                    namespace="collaboration",
                )
            ),
            lambda _: step(
                call("w1", "wait_agent", {"timeout_ms": 30_000}, namespace="collaboration")
            ),
        ),
        drive=plainly({"c1": ACCEPT}),
        features=("multi_agent_v2",),
    ),
)
