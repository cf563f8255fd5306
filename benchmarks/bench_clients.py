"""The clients of others: a hundred streams of a model that speaks, beside a bare server's.

The server is a process of its own (`clients_server`), the clients are sockets in this one. All ask
at once; each is told a prompt's two answers, fifty tokens a second, and the call in between. The
bare server plays the same script and keeps nothing; ours keeps all of it in SQLite, judges the call
and folds it. The figure is wall time from the first request to the last end, of the better of some
rounds; the ratio is the bare server's over ours: 1 is as fast. CPU time is the server's, for each
token that is told.
"""

from __future__ import annotations

import json
import selectors
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, cast

from clients_server import SECRET
from servers import served
from timing import QUICK, Line

STREAMS: Final = 100
TOKENS: Final = 100
"""Of each of the two answers: two seconds of speech."""
ROUNDS: Final = 3
WITHIN: Final = 120.0
CLIENTS: Final = {"AG-UI": "agui", "useChat": "chat"}
ENDS: Final = {"agui": b'"RUN_FINISHED"', "chat": b"data: [DONE]"}


def measure(rounds: int) -> list[Line]:
    """Measure both clients."""
    quick = rounds <= QUICK
    streams, tokens = (4, 5) if quick else (STREAMS, TOKENS)
    lines: list[Line] = []
    with TemporaryDirectory() as folder, served("clients_server.py", Path(folder), tokens) as port:
        for name, kind in CLIENTS.items():
            took: dict[str, list[float]] = {"/bare": [], "/v1": []}
            cost: dict[str, list[float]] = {"/bare": [], "/v1": []}
            for number in range(1 if quick else ROUNDS):
                for prefix, walls in took.items():
                    runs = [f"{kind}-{number}-{place}" for place in range(streams)]
                    wall, cpu = _together(port, prefix, kind, runs)
                    walls.append(wall)
                    cost[prefix].append(cpu / streams / tokens / 2 * 1e6)
            lines += _told(f"{streams} streams of {name}", took)
            lines.append(Line(name=f"a token of {name}, bare", value=min(cost["/bare"]), unit="µs"))
            lines.append(Line(name=f"a token of {name}", value=min(cost["/v1"]), unit="µs"))
    return lines


def _told(name: str, took: dict[str, list[float]]) -> list[Line]:
    bare, ours = min(took["/bare"]), min(took["/v1"])
    note = f"bare / ours is {bare / ours:.2f}, and should be 0.8"
    return [
        Line(name=f"{name}, bare", value=bare, unit="s"),
        Line(name=name, value=ours, unit="s"),
        Line(name=f"{name}, ours / bare", value=ours / bare, unit="ratio", bound=1.25, note=note),
    ]


def _together(port: int, prefix: str, kind: str, runs: Sequence[str]) -> tuple[float, float]:
    """Ask for all at once; return the seconds until all have ended, and the server's CPU."""
    before, began = _cpu(port), time.monotonic()
    selector = selectors.DefaultSelector()
    texts: dict[socket.socket, bytearray] = {}
    for run_id in runs:
        made = socket.create_connection(("127.0.0.1", port))
        made.sendall(_request(f"{prefix}/{kind}", _body(kind, run_id)))
        made.settimeout(0)
        selector.register(made, selectors.EVENT_READ)
        texts[made] = bytearray()
    left = set(texts)
    while left and time.monotonic() - began < WITHIN:
        for key, _ in selector.select(0.05):
            it = cast("socket.socket", key.fileobj)
            texts[it] += it.recv(1 << 18)
            if ENDS[kind] in texts[it][-400:]:
                left.discard(it)
    took = time.monotonic() - began
    for it, text in texts.items():
        it.close()
        if it in left or b"word0 " not in text:
            raise AssertionError(bytes(text[-500:]))
    selector.close()
    return took, _cpu(port) - before


def _body(kind: str, run_id: str) -> dict[str, Any]:
    if kind == "agui":
        message: dict[str, Any] = {"id": "m1", "role": "user", "content": "go"}
        return {"threadId": run_id, "runId": "r", "messages": [message], "state": {}}
    message = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "go"}]}
    return {"id": run_id, "messages": [message], "trigger": "submit-message"}


def _request(path: str, body: Mapping[str, Any]) -> bytes:
    content = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n"
        f"Authorization: Bearer {SECRET}\r\n\r\n"
    )
    return head.encode() + content


def _cpu(port: int) -> float:
    with socket.create_connection(("127.0.0.1", port)) as made, made.makefile("rb") as file:
        made.sendall(b"GET /control/cpu HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        told: dict[str, float] = json.loads(file.read().partition(b"\r\n\r\n")[2])
        return told["cpu"]
