"""A bank as an MCP server over stdio, of the standard library alone: it starts at once, and does
on demand what servers should not do.

``python bank.py LEDGER [legacy|modern]``: each payment is a line of the ledger, written before it
is told. Where `LEDGER.go` is there, what hangs goes on.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

LEDGER = Path(sys.argv[1])
MODERN = "2026-07-28"
ERA = sys.argv[2] if len(sys.argv) > 2 else "both"
CAPABILITIES: dict[str, dict[str, Any]] = {
    "tools": {},
    "resources": {},
    "prompts": {},
    "logging": {},
}
PAY = {
    "type": "object",
    "properties": {"amount": {"type": "integer"}, "how": {"type": "string"}},
    "required": ["amount"],
}
TOOLS = [
    {"name": "pay", "description": "Pay.", "inputSchema": PAY},
    {"name": "pay_asking", "description": "Pay, once its client agrees.", "inputSchema": PAY},
]
FORM = {
    "mode": "form",
    "message": "Really?",
    "requestedSchema": {
        "type": "object",
        "properties": {"really": {"type": "boolean"}},
        "required": ["really"],
    },
}

_writing = threading.Lock()
_answers: dict[object, Any] = {}
_answered = threading.Condition()


def say(**message: Any) -> None:
    """Write a message."""
    with _writing:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def note(**what: Any) -> None:
    """Write a line into the ledger, at once."""
    with LEDGER.open("a") as file:
        file.write(json.dumps({"pid": os.getpid(), "ppid": os.getppid(), **what}) + "\n")


def pay(  # noqa: C901, PLR0912 - each way is a line or two
    name: object, params: dict[str, Any], amount: int, how: str
) -> None:
    """Pay, and answer; or do not."""
    meta = params.get("_meta", {})
    note(paid=amount, key=meta.get("turnlock/idempotency-key"))
    text = {"type": "text", "text": f"paid {amount}"}
    match how:
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "hang" | "late":
            while not LEDGER.with_suffix(".go").exists():
                time.sleep(0.01)
        case "mute":
            return
        case "fail":
            done(name, params, content=[text], isError=True)
            return
        case "break":
            say(id=name, error={"code": -32_000, "message": "the line broke", "data": [1]})
            return
        case "much":
            text["text"] = "x" * (2 << 20)
        case "picture":
            text = {"type": "image", "data": "iVBORw==", "mimeType": "image/png"}
        case "nan":
            done(name, params, content=[text], structuredContent={"paid": float("nan")})
            return
        case "task":
            say(id=name, result={"task": {"taskId": "t1"}})
            return
        case "tell":
            token = meta["progressToken"]
            for progress in (1, 2):
                told = {"progressToken": token, "progress": progress, "total": 2}
                say(method="notifications/progress", params=told)
            told = {"level": "info", "data": "half way"}
            say(method="notifications/message", params=told)
        case _:
            pass
    done(name, params, content=[text], structuredContent={"paid": amount})


def done(name: object, params: dict[str, Any], **result: Any) -> None:
    """Answer a call, as its era has it."""
    say(id=name, result={"resultType": "complete", **result} if is_modern(params) else result)


def is_modern(params: dict[str, Any]) -> bool:
    """Whether a request is of 2026-07-28."""
    return "io.modelcontextprotocol/protocolVersion" in params.get("_meta", {})


def call(name: object, params: dict[str, Any]) -> None:
    """Answer tools/call."""
    arguments: dict[str, Any] = params.get("arguments") or {}
    amount, how = int(arguments.get("amount", 0)), str(arguments.get("how", ""))
    if params["name"] not in {"pay", "pay_asking"} or how == "refuse":
        note(refused=params["name"])
        say(id=name, error={"code": -32_602, "message": "no such thing", "data": {"a": 1}})
    elif params["name"] == "pay":
        pay(name, params, amount, how)
    elif (answer := asked(name, params)) is not None:
        if answer.get("content", {}).get("really") is True:
            pay(name, params, amount, how)
        else:
            text = {"type": "text", "text": f"not paid: {answer.get('action')}"}
            done(name, params, content=[text], isError=True)


def asked(name: object, params: dict[str, Any]) -> dict[str, Any] | None:
    """Ask the client, as its era has it; None: it has to call again with the answer."""
    if not is_modern(params):
        return ask_client("elicitation/create", FORM)
    if params.get("requestState") == "s1":
        found: dict[str, Any] = params["inputResponses"]["really"]
        return found
    wants = {"really": {"method": "elicitation/create", "params": FORM}}
    asks = {"resultType": "input_required", "inputRequests": wants, "requestState": "s1"}
    say(id=name, result=asks)
    return None


def ask_client(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Send a request, with an id that its client has given, too, and wait for the response."""
    with _answered:
        say(id=1, method=method, params=params)
        while 1 not in _answers:
            _answered.wait()
        found: dict[str, Any] = _answers.pop(1)
        return found


def greet(name: object, method: str, params: dict[str, Any]) -> bool:
    """Answer what begins a connection."""
    if method == "initialize" and ERA != "modern":
        version = params["protocolVersion"]
        server = {"name": "bank", "version": "1"}
        told: dict[str, Any] = {
            "protocolVersion": version,
            "capabilities": CAPABILITIES,
            "serverInfo": server,
        }
        say(id=name, result={**told, "instructions": "Pay once."})
    elif method == "server/discover" and ERA != "legacy":
        told = {"supportedVersions": [MODERN], "capabilities": CAPABILITIES}
        say(id=name, result={**told, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"})
    else:
        return False
    return True


def answer(name: object, method: str, params: dict[str, Any]) -> None:
    """Answer a request."""
    more = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    if not is_modern(params):
        more = {}
    if greet(name, method, params):
        return
    match method:
        case "tools/list":
            say(id=name, result={"tools": TOOLS, **more})
        case "tools/call":
            threading.Thread(target=call, args=(name, params), daemon=True).start()
        case "resources/read":
            found = {"uri": params["uri"], "text": "a text", "mimeType": "text/plain"}
            say(id=name, result={"contents": [found], **more})
        case "prompts/list":
            say(id=name, result={"prompts": [{"name": "p"}], **more})
        case "ping":
            say(id=name, result={})
        case "x/roots":
            threading.Thread(
                target=lambda: say(id=name, result=ask_client("roots/list", {})), daemon=True
            ).start()
        case "x/exit":
            print("last words", file=sys.stderr, flush=True)
            os._exit(7)
        case _:
            say(id=name, error={"code": -32_601, "message": "Method not found"})


def main() -> None:
    """Read requests until there are no more."""
    print("the bank is open", file=sys.stderr, flush=True)
    for line in sys.stdin:
        message: dict[str, Any] = json.loads(line)
        method, params = message.get("method"), dict[str, Any](message.get("params") or {})
        if method is None:
            with _answered:
                _answers[message["id"]] = message.get("result") or {}
                _answered.notify_all()
        elif "id" in message:
            answer(message["id"], method, params)
        elif method == "notifications/cancelled":
            note(cancelled=params["requestId"])


if __name__ == "__main__":
    main()
