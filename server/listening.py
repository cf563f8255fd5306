"""Where a server listens, and how much a connection may cost before it has said what it wants.

uvicorn bounds neither the time nor the size of a request's head: here both are, so that nobody
holds a place with a request that never comes (server.md 15).
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket
from collections.abc import Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from uvicorn.protocols.utils import ClientDisconnected

from ..models.errors import InvalidValue
from .connections import HttpConnection, WebSocketConnection
from .guard import HEADERS, is_loopback
from .problems import MEDIA, Problem

if TYPE_CHECKING:
    from uvicorn._types import ASGISendEvent
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

CONNECTIONS: Final = 1_200
"""Connections at once: those of all subscribers, and some to decide with (S-15)."""
HEAD: Final = 64 * 1024
"""Bytes of a request's head."""
MESSAGE: Final = 64 * 1024 * 1024
"""Bytes of a request as it is sent, chunks and trailers and all; its body is bounded by F-3."""
HEAD_WITHIN: Final = 10.0
"""Seconds in which the first head has to be there …"""
IDLE: Final = 30.0
"""… and, after an answer, the next."""
ENDS: Final = 1013
"""What a WebSocket is told when the server ends."""
_BESIDE: Final = 4
"""Bytes of a header beside its name and its value."""
LINGER: Final = 2.0
"""Seconds for which what is still sent is let go after an answer that did not wait for it."""


class Connection(HttpConnection):
    """A connection with these bounds."""

    def __init__(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - uvicorn's
        """Wait for a head."""
        super().__init__(*args, **options)
        self._received = 0
        self._in_head = self._is_whole = True
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Refuse one that is too many."""
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS:
            self._refuse(Problem("overloaded", "too many connections are open", status=503))
        else:
            self._arm(HEAD_WITHIN)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        self._disarm()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, within the bounds."""
        self._received += len(data)
        super().data_received(data)
        if self._received > (HEAD if self._in_head else MESSAGE):
            self.send_400_response("the request is too long")

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection over: it is no more one of requests."""
        self._disarm()
        self._in_head = False
        super().handle_websocket_upgrade()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request; in the middle of an answer only the end can say so."""
        if not self.transport.is_closing():
            self._refuse(Problem("bad_request", msg))

    def on_message_begin(self) -> None:
        """Count anew."""
        self._in_head, self._is_whole = True, False
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Wait for the head no longer."""
        sizes = (len(name) + len(value) + _BESIDE for name, value in self.headers)
        if len(self.url) + sum(sizes) > HEAD:
            raise ValueError(HEAD)  # the parser's error, which is answered
        self._in_head = False
        self._disarm()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Have the next one counted anew."""
        self._received, self._in_head, self._is_whole = 0, True, True
        super().on_message_complete()
        if self._has_answered() and not self.pipeline:
            self._arm(IDLE)

    def on_response_complete(self) -> None:
        """Wait for the next; where the rest of this one comes for too long, close."""
        super().on_response_complete()
        if not self.transport.is_closing() and self.cycle.response_complete:
            self._arm(IDLE if self._is_whole else LINGER)

    def _has_answered(self) -> bool | None:
        """Say whether the latest request was answered whole; None before the first."""
        cycle: RequestResponseCycle | None = getattr(self, "cycle", None)  # uvicorn types no None
        return None if cycle is None else cycle.response_complete

    def _refuse(self, problem: Problem) -> None:
        if self._has_answered() is not False:
            body = problem.encoded()
            headers = {
                **HEADERS,
                **problem.headers(),
                "Content-Type": MEDIA,
                "Content-Length": str(len(body)),
                "Connection": "close",
            }
            lines = [f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}"]
            lines += [f"{name}: {value}" for name, value in headers.items()]
            self.transport.write("\r\n".join([*lines, "", ""]).encode() + body)
        self.transport.close()

    def _arm(self, seconds: float) -> None:
        self._disarm()
        self._deadline = self.loop.call_later(seconds, self.transport.close)

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class Socket(WebSocketConnection):
    """A WebSocket; one that is no handshake, or that was refused, ends without a trace."""

    def data_received(self, data: bytes) -> None:
        """Read on; of a head, which comes whole, websockets reads less than HTTP does."""
        super().data_received(data)
        if not self.handshake_initiated:
            self.transport.close()

    def shutdown(self) -> None:
        """Tell a socket that the server ends, as those with streams were told (F-51)."""
        if self.handshake_complete and not self.close_sent:
            self.stop_keepalive()
            self.queue.put_nowait({"type": "websocket.disconnect", "code": ENDS})
            self.conn.send_close(ENDS, "the server ends")
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.transport.close()
        else:
            super().shutdown()

    async def send(self, message: ASGISendEvent) -> None:
        """Send; a handshake that was refused is over, and whoever closes is as good as gone."""
        if self.close_sent and message["type"] in {"websocket.send", "websocket.close"}:
            raise ClientDisconnected  # uvicorn's own error, which is nobody's mistake here
        await super().send(message)
        if message["type"] == "websocket.http.response.body":
            self.handshake_complete = True


def addresses(hosts: Sequence[str]) -> tuple[str, ...]:
    """Return those of `--host` that are listened on: addresses; without any, the loopback's."""
    found = tuple(dict.fromkeys(it for it in map(address_of, hosts) if it is not None))
    return found or ("127.0.0.1",)


def address_of(host: str) -> str | None:
    """Return the address that a `--host` is; None for a name, which others are asked by."""
    if host.lower() == "localhost":
        return "127.0.0.1"
    try:
        return str(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        return None


def is_local(hosts: Sequence[str]) -> bool:
    """Say whether only this machine reaches what listens there."""
    return all(map(is_loopback, addresses(hosts)))


def listen(hosts: Sequence[str], port: int) -> list[socket.socket]:
    """Return sockets that listen on each address, all on one port. Raises `InvalidValue`."""
    found: list[socket.socket] = []
    try:
        for address in addresses(hosts):
            found.append(_listening(address, port))
            port = found[0].getsockname()[1]
    except BaseException:
        for it in found:
            it.close()
        raise
    return found


def _listening(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    made = socket.socket(family)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family is socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind((address, port))
        made.listen(CONNECTIONS)
        made.setblocking(False)  # noqa: FBT003 - its only parameter
    except OSError as error:
        made.close()
        fixes = {
            errno.EADDRINUSE: "another process listens there, maybe this server already: end it,"
            " or give another --port",
            errno.EACCES: "give a --port above 1023",
            errno.EADDRNOTAVAIL: "give --host an address of this machine",
        }
        raise InvalidValue(
            place=f"{address} port {port}",
            cause=f"cannot be listened on ({error.strerror})",
            fix=fixes.get(error.errno or 0, "give another --host or --port"),
        ) from None
    return made
