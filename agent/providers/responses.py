"""Models behind OpenAI's responses API (W-50)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from ...models.calls import CallResult
from ...models.values import canonical
from ..folds.response_items import KINDS, kind_of
from ..folds.responses import ResponsesFold, as_events
from ..messages import Answer, Message, Prompt, ToolCall
from ..speaking import Question, Said
from ..telling import told
from ..wire_ids import wire_ids, wire_name
from .client import RETRIES, TIMEOUT, own_raw, words
from .stainless import StainlessClient

PROVIDER: Final = "openai-responses"
"""Begins the specs of these models."""

_NO_THOUGHTS: Final = ("gpt-3", "gpt-4", "chatgpt-", "gpt-5-chat")
"""How the names of models begin that do not reason, and refuse to be asked for their thoughts."""
_THOUGHTS: Final = "reasoning.encrypted_content"
_NAMED: Final = [kind for kind in KINDS.values() if kind.tool is None]
"""The kinds that say themselves which tool they call."""
_ITEM_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What the API takes for the id of an item; some proxies send longer ones."""


class ResponsesModel:
    """Asks the API for each answer, which keeps none of it: all that was said goes along."""

    structured: Final = True

    def __init__(  # noqa: PLR0913 - how an endpoint differs from others
        self,
        *,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = TIMEOUT,
        retries: int = RETRIES,
        streams: bool = True,
        hosted: Sequence[Mapping[str, Any]] = (),
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        """Ask this model there, with the key given or OPENAI_API_KEY. Raises `MissingClient`.

        `timeout` is the seconds that the endpoint may be silent. `hosted` are tools as the API
        declares them, ``{"type": "web_search"}`` for one that its provider runs, ``{"type":
        "shell"}`` for one that your tool `shell` serves. `extra` are fields of each request, such
        as ``{"reasoning": {"effort": "low"}}``; None takes a field of ours away.
        """
        self.spec: Final = f"{PROVIDER}:{model}"
        self._model: Final = model
        self._hosted: Final = [*hosted]
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
        fold = ResponsesFold(spec=self.spec)
        return self._client.spoken("/responses", self._request(question), fold, as_events)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    def _request(self, question: Question) -> dict[str, Any]:
        request: dict[str, Any] = {
            "model": self._model,
            "input": as_input(question.messages),
            "store": False,
        }
        if not self._model.startswith(_NO_THOUGHTS):
            request["include"] = [_THOUGHTS]
        if question.instructions:
            request["instructions"] = question.instructions
        if tools := [*self._functions(question), *self._hosted]:
            request["tools"] = tools
        if question.output is not None:
            form = {"type": "json_schema", "name": "answer", "schema": question.output}
            request["text"] = {"format": {**form, "strict": False}}
        if question.limit is not None:
            request["max_output_tokens"] = question.limit
        return {**request, **self._extra}

    def _functions(self, question: Question) -> Iterator[dict[str, Any]]:
        """Yield the tools that are not declared as hosted ones already."""
        declared = {tool.get("name") or tool["type"] for tool in self._hosted}
        for schema in question.tools.as_function_schemas():
            function = schema["function"]
            if function["name"] not in declared:
                yield {"type": "function", **function, "strict": False}


def as_input(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    """Return the messages as items; an answer of another provider as text and functions (W-56)."""
    items: list[dict[str, Any]] = []
    asked: dict[str, int] = {}
    """Where each call stands, by its wire id."""
    used: set[str] = set()
    for message, ids in zip(messages, wire_ids(messages), strict=True):
        if isinstance(message, Prompt):
            items.append({"role": "user", "content": words(message)})
        elif isinstance(message, Answer):
            for item, call_id in _answer(message, ids):
                if call_id is not None:
                    asked[call_id] = len(items)
                items.append(_with_new_id(item, used))
        else:
            for result, call_id in zip(message.results, ids, strict=True):
                call, answer = _result(
                    items[asked[call_id]], call_id, result, told(result, message)
                )
                items[asked[call_id]] = call
                items.append(answer)
    return items


def _answer(answer: Answer, ids: Sequence[str]) -> Iterable[tuple[dict[str, Any], str | None]]:
    """Yield the items of an answer, those that are calls with their wire ids."""
    raw: Any = own_raw(answer, PROVIDER)
    own: list[Any] = [*raw] if isinstance(raw, Sequence) and not isinstance(raw, str) else []
    if sum(kind_of(item) is not None for item in own) != len(ids) or not own:
        if answer.text:
            yield {"role": "assistant", "content": answer.text}, None
        for call_id, call in zip(ids, answer.calls, strict=True):
            yield _function(call_id, call.tool_name, canonical(call.arguments)), call_id
        return
    calls = iter(zip(ids, answer.calls, strict=True))
    for item in own:
        if kind_of(item) is None:
            if item["type"] != "reasoning" or item.get("encrypted_content") or item.get("content"):
                yield dict(item), None
            continue
        call_id, call = next(calls)
        yield _asked_again(item, call_id, call), call_id


def _asked_again(item: Mapping[str, Any], call_id: str, call: ToolCall) -> dict[str, Any]:
    """Return the item of a call as it goes back: under its wire id, and whole."""
    sent = {name: value for name, value in item.items() if name != "status"}
    if "call_id" in item:
        sent["call_id"] = call_id
    if kind_of(item) in _NAMED:
        sent["name"] = wire_name(call.tool_name)
    if call.fault is not None and item["type"] == "function_call":
        sent["arguments"] = canonical(call.arguments)
    if item["type"] in {"shell_call", "apply_patch_call", "computer_call", "local_shell_call"}:
        sent["status"] = "completed"
    return sent


def _result(
    call: dict[str, Any], call_id: str, result: CallResult, words: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a call and what it is answered with: those of a function where its kind has none."""
    answer = KINDS[call["type"]].answer(call, call_id, result, words)
    if answer is not None:
        return call, answer
    arguments = KINDS[call["type"]].arguments(call)
    output = {"type": "function_call_output", "call_id": call_id, "output": words}
    return _function(call_id, result.tool_name, arguments), output


def _function(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    asked = {"name": wire_name(name), "arguments": arguments}
    return {"type": "function_call", "call_id": call_id, **asked}


def _with_new_id(item: dict[str, Any], used: set[str]) -> dict[str, Any]:
    """Return an item without its own id where that came before, or is refused."""
    own = item.get("id")
    if own is None:
        return item
    if own in used or not _ITEM_ID.fullmatch(own):
        return {name: value for name, value in item.items() if name != "id"}
    used.add(own)
    return item
