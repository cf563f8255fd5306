"""Streams: many who follow one run, what each costs, catching up, and how late a fact arrives.

The server is a process of its own (`stream_server`), the clients are sockets in this one. The peer
is Starlette's StreamingResponse, one generator for each connection that takes the same bytes from a
queue, in the same server. Fan-out is the CPU time of the server for one delivery to one subscriber,
from a fact that is kept to all sockets; both sides read the fact from the journal once. Memory is
what the process has more for each connection. The rest is wall time.
"""

from __future__ import annotations

import json
import selectors
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, cast

from servers import served
from stream_server import SECRET
from timing import QUICK, Line

SUBSCRIBERS: Final = (1, 100, 1_000)
PAST: Final = 100_000
EVENTS: Final = 40
PAUSE: Final = 0.1
"""Seconds between two facts: each is delivered to all before the next."""
LATE: Final = 200
STALLS: Final = 20_000
"""Facts that one is sent who does not read them: more than the kernel takes of a connection."""
BARE: Final = "/bare"
OURS: Final = "/v1/runs/live/events"
_END: Final = b"event: end"


def measure(rounds: int) -> list[Line]:
    """Measure all of it."""
    quick = rounds <= QUICK
    past = 2_000 if quick else PAST
    lines: list[Line] = []
    with TemporaryDirectory() as folder, served("stream_server.py", Path(folder), past) as port:
        for count in SUBSCRIBERS[:1] if quick else SUBSCRIBERS:
            lines += _fan_out(port, count, events=3 if quick else EVENTS)
        lines += _catch_up(port, past)
        lines += _lateness(port, 10 if quick else LATE)
    with TemporaryDirectory() as folder:
        lines += _memory(Path(folder), 20 if quick else 500)
    return lines


class _Clients:
    """Sockets that read all they are sent."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._selector = selectors.DefaultSelector()
        self.sockets: list[socket.socket] = []
        self.received = 0
        """Events, of all."""

    def connect(self, count: int, path: str, *, reads: bool = True) -> None:
        for _ in range(count):
            made = socket.create_connection(("127.0.0.1", self._port))
            made.sendall(_request(path))
            if reads:
                made.settimeout(0)
                self._selector.register(made, selectors.EVENT_READ)
            self.sockets.append(made)

    def read_until(self, done: Callable[[], bool], *, within: float = 60.0) -> None:
        until = time.monotonic() + within
        while not done() and time.monotonic() < until:
            for key, _ in self._selector.select(0.05):
                data = cast("socket.socket", key.fileobj).recv(1 << 18)
                self.received += data.count(b"data: {")

    def have(self, count: int) -> bool:
        """Whether they have received so many events."""
        return self.received >= count

    def close(self) -> None:
        for it in self.sockets:
            it.close()
        self._selector.close()


def _request(path: str) -> bytes:
    return (
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n"
        f"Authorization: Bearer {SECRET}\r\n\r\n"
    ).encode()


def _control(port: int, what: str) -> dict[str, Any]:
    """Ask the server for something, and wait for the answer."""
    return _answered(_asked(port, what))


def _asked(port: int, what: str) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port))
    made.sendall(f"GET /control/{what} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    return made


def _answered(made: socket.socket) -> dict[str, Any]:
    with made, made.makefile("rb") as file:
        told: dict[str, Any] = json.loads(file.read().partition(b"\r\n\r\n")[2])
        return told


def _settled(port: int, count: int) -> None:
    """Wait until the server has so many subscribers, and has nothing to do."""
    while _control(port, "stand")["subscribers"] != count:
        time.sleep(0.05)
    time.sleep(0.2)


def _fan_out(port: int, count: int, *, events: int) -> list[Line]:
    costs: dict[str, float] = {}
    for path in (BARE, OURS):
        clients = _Clients(port)
        clients.connect(count, path)
        clients.read_until(lambda: False, within=0.2 + count / 1_000)
        _settled(port, count)
        clients.read_until(lambda: False, within=0.2)
        before = clients.received
        pause = max(PAUSE, count * 1e-4)
        asked = _asked(port, f"emit?count={events}&pause={pause}&bare={int(path == BARE)}")
        wanted = events * count
        clients.read_until(partial(clients.have, before + wanted), within=20 + events * pause)
        costs[path] = _answered(asked)["cost"] / wanted
        clients.close()
        _settled(port, 0)
    bare, ours = costs[BARE] * 1e6, costs[OURS] * 1e6
    return [
        Line(name=f"a delivery, {count:,} subscribers, bare", value=bare, unit="µs"),
        Line(name=f"a delivery, {count:,} subscribers", value=ours, unit="µs"),
        Line(
            name=f"delivery / bare, {count:,} subscribers", value=ours / bare, unit="ratio", bound=1
        ),
    ]


def _memory(folder: Path, count: int) -> list[Line]:
    """Return what each connection costs a server that has had none before."""
    lines: list[Line] = []
    cases = (
        (BARE, "a subscriber that is idle, bare", None, ""),
        (OURS, "a subscriber that is idle", 32, ""),
        ("/v1/runs/past/events", "a subscriber that is stalled", 160, "while it catches up"),
    )
    for number, (path, name, bound, note) in enumerate(cases):
        place = folder / str(number)
        place.mkdir()
        with served("stream_server.py", place, STALLS) as port:
            before = _control(port, "stand")["resident"]
            clients = _Clients(port)
            clients.connect(count, path, reads=False)
            _settled(port, count)
            time.sleep(3)
            after = _control(port, "stand")["resident"]
            clients.close()
        value = (after - before) / count / 1024
        lines.append(Line(name=name, value=value, unit="KiB", bound=bound, note=note))
    return lines


def _catch_up(port: int, past: int) -> list[Line]:
    path = "/v1/runs/past/events?follow=0"
    alone = [_caught_up(port, path) for _ in range(3)]
    first, whole = min(it[0] for it in alone), min(it[1] for it in alone)
    five, late = _five(port, path)
    return [
        Line(
            name=f"catch-up of {past:,} facts, first byte", value=first * 1e3, unit="ms", bound=20
        ),
        Line(name=f"catch-up of {past:,} facts", value=whole, unit="s", bound=1),
        Line(name="five at once", value=five, unit="s", bound=5),
        Line(
            name="a live fact meanwhile",
            value=max(late) * 1e3,
            median=statistics.median(late) * 1e3,
            unit="ms",
            bound=50,
            note="the latest of them",
        ),
    ]


def _caught_up(port: int, path: str) -> tuple[float, float]:
    """Return the seconds to the first event, and to the end."""
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", port)) as made:
        made.sendall(_request(path))
        rest, first = b"", 0.0
        while _END not in rest:
            data = made.recv(1 << 20)
            rest = rest[-32:] + data
            if not first and b"data: {" in rest:
                first = time.monotonic() - began
    return first, time.monotonic() - began


_FOLLOW: Final = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from bench_streams import _caught_up
print(_caught_up(int(sys.argv[2]), sys.argv[3])[1])
"""


def _five(port: int, path: str) -> tuple[float, list[float]]:
    """Return the seconds until five have caught up, and how late live facts were meanwhile."""
    live = socket.create_connection(("127.0.0.1", port))
    live.sendall(_request(OURS))
    live.settimeout(0.2)
    _drained(live)
    here = str(Path(__file__).parent)
    five = [
        subprocess.Popen(  # noqa: S603 - our own
            [sys.executable, "-c", _FOLLOW, here, str(port), path], stdout=subprocess.PIPE
        )
        for _ in range(5)
    ]
    time.sleep(0.5)  # their interpreters start
    late: list[float] = []
    while any(it.poll() is None for it in five):
        asked = _asked(port, "emit?count=1&pause=0")
        live.settimeout(5)
        data = live.recv(1 << 16)
        arrived = time.monotonic()
        while b"data: {" not in data:
            data = live.recv(1 << 16)
            arrived = time.monotonic()
        late.append(arrived - _answered(asked)["times"][0])
        live.settimeout(0.02)
        _drained(live)
    took = max(float(it.communicate()[0]) for it in five)
    live.close()
    return took, late


def _drained(live: socket.socket) -> None:
    try:
        while live.recv(1 << 16):
            pass
    except TimeoutError:
        pass


def _lateness(port: int, count: int) -> list[Line]:
    late: list[float] = []
    live = socket.create_connection(("127.0.0.1", port))
    live.sendall(_request(OURS))
    live.settimeout(0.2)
    _drained(live)
    live.settimeout(5)
    for _ in range(count):
        asked = _asked(port, "emit?count=1&pause=0")
        data = live.recv(1 << 16)
        while b"data: {" not in data:
            data = live.recv(1 << 16)
        arrived = time.monotonic()
        late.append(arrived - _answered(asked)["times"][0])
    live.close()
    late.sort()
    return [
        Line(
            name=f"from a durable fact to the client, p{percent}",
            value=late[min(len(late) - 1, count * percent // 100)] * 1e3,
            unit="ms",
        )
        for percent in (50, 95)
    ]
