"""Models behind a chat-completions endpoint: OpenAI's, and all that speak like it (W-50)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from ...models.values import canonical
from ..folds.chat_completions import ChatCompletionsFold, as_events
from ..folds.json_fields import items, members, text
from ..messages import Answer, Message, Prompt, ToolCall
from ..speaking import Question, Said
from ..telling import told
from ..wire_ids import wire_ids, wire_name
from .client import RETRIES, TIMEOUT, own_raw, words
from .stainless import StainlessClient

PROVIDER: Final = "openai"
"""Begins the specs of these models."""

_NOT_TAKEN: Final = frozenset({"annotations", "audio", "function_call", "tool_calls"})
"""Fields of an answer that do not go back as they came."""
_LIMITED_BY: Final = {True: "max_completion_tokens", False: "max_tokens"}
"""What bounds an answer at OpenAI's own endpoint, and at others, which know the old name."""
_OWN_HOSTS: Final = ("openai.com", "openai.azure.com")


class ChatCompletionsModel:
    """Asks an endpoint for each answer; keeps nothing but its connections."""

    def __init__(  # noqa: PLR0913 - how an endpoint differs from others
        self,
        *,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = TIMEOUT,
        retries: int = RETRIES,
        streams: bool = True,
        structured: bool = True,
        reasonless: bool = False,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        """Ask this model there, with the key given or OPENAI_API_KEY. Raises `MissingClient`.

        `timeout` is the seconds that the endpoint may be silent. An endpoint of one's own mostly
        takes any key. One that cannot stream, takes no JSON Schema for its answer, or never says
        why it stops is told so by `streams`, `structured` and `reasonless`. `extra` are fields of
        each request, such as ``{"temperature": 0}``; None takes a field of ours away.
        """
        self.spec: Final = f"{PROVIDER}:{model}"
        self.structured: Final = structured
        self._model: Final = model
        self._reasonless: Final = reasonless
        self._extra: Final = extra or {}
        self._client: Final = StainlessClient(
            "OpenAI",
            model=model,
            base_url=base_url,
            api_key=api_key,
            timeout=timeout,
            retries=retries,
            streams=streams,
        )

    def speak(self, question: Question) -> AsyncIterator[Said]:
        """Ask once, which may be several requests. Raises `ModelError`."""
        fold = ChatCompletionsFold(spec=self.spec, reasonless=self._reasonless)
        request = self._request(question)
        return self._client.spoken("/chat/completions", request, fold, as_events)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    def _request(self, question: Question) -> dict[str, Any]:
        first = [{"role": "system", "content": question.instructions}]
        messages = [*as_chat(question.messages)]
        request: dict[str, Any] = {
            "model": self._model,
            "messages": first + messages if question.instructions else messages,
        }
        if question.tools:
            request["tools"] = question.tools.as_function_schemas()
        if question.output is not None:
            form = {"name": "answer", "schema": question.output}
            request["response_format"] = {"type": "json_schema", "json_schema": form}
        if question.limit is not None:
            host = urlsplit(self._client.base_url).hostname or ""
            request[_LIMITED_BY[host.endswith(_OWN_HOSTS)]] = question.limit
        if self._client.streams:
            request["stream_options"] = {"include_usage": True}
        return {**request, **self._extra}


def as_chat(messages: tuple[Message, ...]) -> Iterator[dict[str, Any]]:
    """Yield the messages; an answer of another provider as its text and its calls (W-56)."""
    for message, ids in zip(messages, wire_ids(messages), strict=True):
        if isinstance(message, Prompt):
            yield {"role": "user", "content": words(message)}
        elif isinstance(message, Answer):
            yield _assistant(message, ids)
        else:
            for result, call_id in zip(message.results, ids, strict=True):
                yield {"role": "tool", "tool_call_id": call_id, "content": told(result, message)}


def _assistant(answer: Answer, ids: tuple[str, ...]) -> dict[str, Any]:
    """Return the provider's own message, if it is one of this provider, under wire ids (W-56)."""
    raw = members(own_raw(answer, PROVIDER))
    own = items(raw.get("tool_calls"))
    if len(own) != len(ids):  # said by another, or not kept whole
        raw, own = {"content": answer.text}, [None] * len(ids)
    message: dict[str, Any] = {"role": "assistant", "content": None if ids else ""}
    message |= {name: it for name, it in raw.items() if it is not None and name not in _NOT_TAKEN}
    calls = zip(ids, answer.calls, map(members, own), strict=True)
    if ids:
        message["tool_calls"] = [_asked_again(*call) for call in calls]
    return message


def _asked_again(call_id: str, call: ToolCall, own: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call as it goes back: as it came, but under its wire id, and with JSON."""
    function = members(own.get("function"))
    sent = text(function.get("arguments"))
    arguments = sent if sent and call.fault is None else canonical(call.arguments)
    more = {name: it for name, it in own.items() if name != "custom"}  # of another kind, empty
    function = {**function, "name": wire_name(call.tool_name), "arguments": arguments}
    return {"type": "function", **more, "id": call_id, "function": function}
