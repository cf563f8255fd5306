"""What a process says, put together by tests: one thread `T`, one upstream turn `u`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from turnlock.adapters.codex.messages import Asked, Notified
from turnlock.models.deliveries import Decide
from turnlock.models.fact import Fact
from turnlock.models.facts import CallAdded, TurnOpened
from turnlock.views.live import calls_of

from .driving import Driven

THREAD: Final = "T"
TURN: Final = "u"


def said(method: str, *, of: str | None = TURN, **params: Any) -> Notified:
    """Return a notification of the thread."""
    named = {} if of is None else {"turnId": of}
    return Notified(method, {"threadId": THREAD, **named, **params})


def asked(method: str, request: int | str = 0, *, turn: str = TURN, **params: Any) -> Asked:
    """Return a request of the thread."""
    return Asked(request, method, {"threadId": THREAD, "turnId": turn, **params})


def begun(turn: str = TURN) -> Notified:
    """Return that an upstream turn has begun."""
    return said("turn/started", of=None, turn={"id": turn, "status": "inProgress"})


def over(turn: str = TURN, status: str = "completed") -> Notified:
    """Return that an upstream turn is over."""
    return said("turn/completed", of=None, turn={"id": turn, "status": status})


def command(
    name: str = "c", *, process: str | None = None, text: str = "ls", **more: Any
) -> dict[str, Any]:
    """Return the item of a command."""
    return {
        "type": "commandExecution",
        "id": name,
        "command": text,
        "cwd": "/w",
        "processId": process,
        "status": "inProgress",
        **more,
    }


def patch(name: str = "p", *paths: str, **more: Any) -> dict[str, Any]:
    """Return the item of a patch."""
    changes = [{"path": it, "kind": {"type": "add"}, "diff": "+"} for it in paths or ("a",)]
    return {"type": "fileChange", "id": name, "changes": changes, "status": "inProgress", **more}


def mcp(name: str = "m", **more: Any) -> dict[str, Any]:
    """Return the item of a call of an MCP server."""
    return {
        "type": "mcpToolCall",
        "id": name,
        "server": "files",
        "tool": "read",
        "arguments": {"path": "a"},
        "status": "inProgress",
        **more,
    }


def started(item: Mapping[str, Any], *, turn: str = TURN) -> Notified:
    """Return that an item was announced."""
    return said("item/started", of=turn, item=dict(item))


def ended(item: Mapping[str, Any], status: str = "completed", *, turn: str = TURN) -> Notified:
    """Return that an item has ended."""
    return said("item/completed", of=turn, item={**item, "status": status})


def raw_call(call_id: str = "c", *, own: str = "fc1", name: str = "exec_command") -> Notified:
    """Return a call in the raw stream."""
    item = {"type": "function_call", "id": own, "call_id": call_id, "name": name, "arguments": "{}"}
    return said("rawResponseItem/completed", item=item)


def raw_output(call_id: str = "c", *, own: str = "fco1", output: Any = "done") -> Notified:
    """Return an output in the raw stream."""
    item = {"type": "function_call_output", "id": own, "call_id": call_id, "output": output}
    return said("rawResponseItem/completed", item=item)


def response_over() -> Notified:
    """Return that a model response has ended."""
    return said("rawResponse/completed", responseId="r")


def asks_command(
    name: str = "c", request: int | str = 0, *, text: str = "ls", **more: Any
) -> Asked:
    """Return that a command asks for approval."""
    return asked(
        "item/commandExecution/requestApproval",
        request,
        itemId=name,
        command=text,
        cwd="/w",
        **more,
    )


class Talk(Driven):
    """One thread, of which every step can be looked at."""

    def __init__(self, settlement: str = "turn", **how: Any) -> None:
        super().__init__(THREAD, settlement=settlement, **how)
        self._seen = 0
        self._written = 0
        self._odd = 0

    def hears(self, *messages: Notified | Asked) -> list[str]:
        """Take messages, and return the facts that they brought, in short."""
        for message in messages:
            self.take(message)
        self.drain()
        return self.new_facts()

    def new_facts(self) -> list[str]:
        """Return the facts since, in short: type, then call or turn; acknowledgements left out."""
        new, self._seen = self.facts[self._seen :], len(self.facts)
        return [in_short(it) for it in new if it.type.name != "CONTINUATION_TAKEN"]

    def written(self) -> list[dict[str, Any]]:
        """Return what was answered since."""
        new, self._written = self.replies[self._written :], len(self.replies)
        return [dict(it.result) for it in new]

    def anomalies(self) -> list[str]:
        """Return the anomalies since."""
        new, self._odd = self.odd[self._odd :], len(self.odd)
        return [it.anomaly.value for it in new]

    def decides(self, name: str, *, approved: bool) -> list[str]:
        """Have a person decide, and return the facts that follow."""
        call = next(it for it in calls_of(self.kernel) if it.invocation_id == name)
        decision = Decide(
            turn_id=call.turn_id,
            invocation_id=name,
            approved=approved,
            arguments_digest=call.arguments_digest if approved else None,
        )
        self.judge(decision, ours=True)
        self.drain()
        return self.new_facts()

    def arguments(self, name: str) -> Mapping[str, Any]:
        """Return what a person is shown of a call."""
        found = (it for it in calls_of(self.kernel) if it.invocation_id == name)
        return dict(next(found).arguments or {})

    def ends(self) -> list[str]:
        """End the process, and return the facts that follow before anything is brought to rest."""
        self.step(self.normaliser.process_ended(at=self.now))
        self.drain()
        return self.new_facts()

    def unexplained(self) -> list[object]:
        """Return the refusals without a reason."""
        return [it for it in self.refusals if it.why is None]


def in_short(fact: Fact) -> str:
    """Return a fact in short."""
    name = getattr(fact, "invocation_id", None)
    if isinstance(fact, TurnOpened | CallAdded):
        calls = fact.calls if isinstance(fact, TurnOpened) else (fact.call,)
        names = " ".join(it.invocation_id for it in calls)
        turn = f" {fact.turn_id}" if isinstance(fact, TurnOpened) else ""
        return f"{_short(fact)}{turn}: {names}"
    error = getattr(fact, "error", None)
    told = f" {error}" if error else ""
    return f"{_short(fact)} {name}{told}" if name else _short(fact)


def _short(fact: Fact) -> str:
    words = fact.type.name.removeprefix("TOOL_").removeprefix("EXECUTION_")
    return words.lower().replace("_", " ")
