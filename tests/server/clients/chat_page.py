"""A page with `useChat`, without a browser: what its client keeps, and what it asks for.

It is written from ai 7.0.173 (`chat.ts`, `process-ui-message-stream.ts`), not from our own code;
the real client is asked in tests/clients.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, Final

import attrs
import httpx

from ...clients.chat_model import Message

Chunk = dict[str, Any]

STREAM: Final = "text/event-stream"
KINDS: Final = frozenset(
    {
        *("start", "finish", "start-step", "finish-step", "reset-step", "error"),
        *("text-start", "text-delta", "text-end", "data-turnlock", "data-turnlock-refused"),
        *("tool-input-available", "tool-approval-request", "tool-approval-response"),
        *("tool-output-available", "tool-output-error", "tool-output-denied"),
    }
)
"""All that may ever be sent (F-70)."""


async def chunks_of(answer: httpx.Response) -> AsyncIterator[Chunk]:
    """Yield the chunks of a stream as they come; it ends with `[DONE]`, and so once (F-70)."""
    rest, done = b"", False
    async for part in answer.aiter_raw():
        assert b"\r" not in part
        *blocks, rest = (rest + part).split(b"\n\n")
        for block in blocks:
            if block.startswith((b":", b"retry:")):
                continue
            assert block.startswith(b"data: "), block
            assert not done, "nothing follows the end"
            if block == b"data: [DONE]":
                done = True
                continue
            chunk: Chunk = json.loads(block.removeprefix(b"data: "))
            assert chunk["type"] in KINDS, chunk
            yield chunk
    assert done
    assert rest == b""


@attrs.define
class ChatPage:
    """One chat in one tab."""

    id: str = "c"
    messages: list[dict[str, Any]] = attrs.field(factory=list[dict[str, Any]])
    chunks: list[Chunk] = attrs.field(factory=list[Chunk])
    """Those of the latest stream."""

    def say(self, text: str, message_id: str) -> None:
        """Have a person say something; it is not sent yet."""
        part = {"type": "text", "text": text}
        self.messages.append({"id": message_id, "role": "user", "parts": [part]})

    def answer(self, call: str, *, approved: bool, reason: str | None = None) -> None:
        """Press a button of a card; it is not sent yet."""
        card = self.card(call)
        assert card["state"] == "approval-requested"
        told = {"approved": approved, **({} if reason is None else {"reason": reason})}
        card.update(state="approval-responded", approval={**card["approval"], **told})

    def card(self, call: str = "1.c1") -> dict[str, Any]:
        """What is shown of a call."""
        parts = [part for it in self.messages for part in it["parts"]]
        found: dict[str, Any] = next(it for it in parts if it.get("toolCallId") == call)
        return found

    def body(self, **more: Any) -> dict[str, Any]:
        """Return what is posted."""
        last = self.messages[-1]
        goes_on = {"messageId": last["id"]} if last["role"] == "assistant" else {}
        sent = {"id": self.id, "messages": self.messages, "trigger": "submit-message"}
        return {**sent, **goes_on, **more}

    async def post(self, client: httpx.AsyncClient, *, cut: int = -1, path: str = "") -> Message:
        """Ask, and take the stream, or its first chunks only: then the connection is lost."""
        last = self.messages[-1]
        before = Message(last["id"], last["parts"]) if last["role"] == "assistant" else Message()
        async with client.stream("POST", f"/v1/chat{path}", json=self.body()) as answer:
            return await self.take(answer, before, cut=cut)

    async def resume(self, client: httpx.AsyncClient, *, cut: int = -1) -> Message | None:
        """Come again; None where there is nothing."""
        async with client.stream("GET", f"/v1/chat/{self.id}/stream") as answer:
            if answer.status_code == 204:
                return None
            return await self.take(answer, Message(), cut=cut)

    async def take(self, answer: httpx.Response, message: Message, *, cut: int = -1) -> Message:
        """Take a stream."""
        if answer.status_code != 200:
            raise AssertionError((await answer.aread()).decode())
        assert answer.headers["x-vercel-ai-ui-message-stream"] == "v1"
        assert answer.headers["content-type"] == STREAM
        self.chunks = []
        message = message.again()
        if cut == 0:
            return message
        async for chunk in chunks_of(answer):
            self.chunks.append(chunk)
            message.take([chunk])
            self._keep(message)
            if len(self.chunks) == cut:
                break
        return message

    def _keep(self, message: Message) -> None:
        if not message.parts:
            return
        kept = {"id": message.id, "role": "assistant", "parts": message.plain()}
        for place, it in enumerate(self.messages):
            if it["id"] == message.id:
                self.messages[place] = kept
                return
        self.messages.append(kept)

    def kinds(self) -> list[str]:
        """The types of the latest stream's chunks, but for facts as they are."""
        return [it["type"] for it in self.chunks if it["type"] != "data-turnlock"]

    def data(self, kind: str) -> list[Any]:
        """What came beside the messages."""
        return [it["data"] for it in self.chunks if it["type"] == kind]
