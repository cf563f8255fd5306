"""A server that does what servers should not: plain JSON lines over stdio, MCP of 2025-11-25.

``python odd_server.py TOOLS [HOW]``: TOOLS is the JSON of its list of tools, each of which writes
what its argument `say` has, line by line: a text as it stands, an object as JSON, where ``"$id"``
is the id of the request; an object ``{"$do": …}`` is done instead. HOW is how it begins: ``hangs``,
``dies``, ``babbles``, ``pages`` (its list never ends).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

TOOLS = json.loads(sys.argv[1])
HOW = sys.argv[2] if len(sys.argv) > 2 else ""

PIECE = 1 << 16


def write(said: object) -> None:
    sys.stdout.write((said if isinstance(said, str) else json.dumps(said)) + "\n")
    sys.stdout.flush()


def do(what: str, times: float, offered: list[Any]) -> None:
    """Do something that is no message."""
    if what == "offer":  # other tools from now on
        TOOLS[:] = offered
        write({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    elif what == "exit":
        os._exit(int(times))
    elif what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif what == "sleep":
        time.sleep(times)
    elif what == "flood":  # bytes without a line's end
        for _ in range(int(times) // PIECE):
            sys.stdout.write("x" * PIECE)
        sys.stdout.flush()
    elif what == "child":  # which has our pipes, and outlives us
        subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({times})"])
    elif what == "wait":  # for the next message, an answer, and say it on
        answer = json.loads(sys.stdin.readline())
        print(json.dumps(answer), file=sys.stderr, flush=True)
    else:
        raise AssertionError(what)


def with_id(said: Any, number: object) -> Any:
    text = json.dumps(said)
    return json.loads(text.replace('"$id"', json.dumps(number)))


def answered(request: dict[str, Any]) -> None:
    number, method = request["id"], request["method"]
    if method == "initialize":
        result: dict[str, Any] = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "odd", "version": "1"},
        }
    elif method == "tools/list":
        result = {"tools": TOOLS}
        if HOW == "pages":
            result["nextCursor"] = "more"
    elif method == "tools/call":
        for said in request["params"]["arguments"]["say"]:
            if isinstance(said, str):
                write(said)
            elif "$do" in said:
                do(said["$do"], said.get("times", 0), said.get("tools", []))
            else:
                write(with_id(said, number))
        return
    else:
        error = {"code": -32_601, "message": f"no {method}"}
        write({"jsonrpc": "2.0", "id": number, "error": error})
        return
    write({"jsonrpc": "2.0", "id": number, "result": result})


if HOW == "hangs":
    time.sleep(600)
if HOW == "dies":
    print("there is no \x1b[1mconfiguration", file=sys.stderr)
    sys.exit(3)
if HOW == "babbles":
    for _ in range(200):
        write("ready?")
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        answered(message)
