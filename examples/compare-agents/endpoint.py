"""A chat-completions endpoint on loopback that plays one fixed conversation, streamed or not.

    python examples/compare-agents/endpoint.py      # at http://127.0.0.1:8765/v1

The official clients of all frameworks speak to it as they would to the real one: it asks for both
tools at once, and when it has heard their results it says how it went.
"""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

CALLS: Final = (
    ("call_weather", "weather", '{"city": "Oslo"}'),
    ("call_pay", "pay", '{"to": "Ada", "amount": 5}'),
)
SAID: Final = "It rains in Oslo, and Ada has her 5 euros."
"""What it says when it has heard that both tools have done their work …"""
TROUBLE: Final = "It rains in Oslo, and I do not know that Ada was paid."
"""… and when it has not …"""
DRY: Final = "It rains in Oslo."
"""… and where it has no tool to pay with."""
FORM: Final = '{"city": "Oslo", "rain": true}'
"""What it says where an answer in a form is asked for."""
PORT: Final = 8765
USED: Final = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}


def answer(asked: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the assistant's message, and why it stopped."""
    if "response_format" in asked:
        return {"role": "assistant", "content": FORM}, "stop"
    results = [said for said in asked["messages"] if said["role"] == "tool"]
    if not results:
        offered = {tool["function"]["name"] for tool in asked.get("tools", ())}
        calls = [
            {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}
            for id_, name, arguments in CALLS
            if name in offered
        ]
        return {"role": "assistant", "content": None, "tool_calls": calls}, "tool_calls"
    heard = " ".join(map(str, (said["content"] for said in results)))
    paid = SAID if "paid 5 to Ada" in heard else TROUBLE
    return {"role": "assistant", "content": paid if len(results) == len(CALLS) else DRY}, "stop"


class Handler(BaseHTTPRequestHandler):
    """Answers POST …/chat/completions."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer one request."""
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if not self.path.endswith("/chat/completions"):
            return self._sent(404, "application/json", "{}")
        message, stop = answer(asked)
        about = {"id": "chatcmpl-1", "created": 1, "model": asked["model"], "usage": USED}
        if not asked.get("stream"):
            whole = {"index": 0, "message": message, "finish_reason": stop, "logprobs": None}
            body = {**about, "object": "chat.completion", "choices": [whole]}
            return self._sent(200, "application/json", json.dumps(body))
        for place, call in enumerate(message.get("tool_calls", ())):
            call["index"] = place
        chunk = {**about, "object": "chat.completion.chunk"}
        parts = [
            {
                **chunk,
                "usage": None,
                "choices": [{"index": 0, "delta": delta, "finish_reason": end}],
            }
            for delta, end in ((message, None), ({}, stop))
        ]
        events = [json.dumps(part) for part in (*parts, {**chunk, "choices": []})]
        stream = "".join(f"data: {event}\n\n" for event in (*events, "[DONE]"))
        return self._sent(200, "text/event-stream", stream)

    def _sent(self, status: int, kind: str, body: str) -> None:
        sent = body.encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def endpoint(port: int = 0) -> ThreadingHTTPServer:
    """Return the endpoint, bound to this port of loopback; 0: to a free one."""
    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


if __name__ == "__main__":
    with endpoint(PORT) as server:
        server.serve_forever()
