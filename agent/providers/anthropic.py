"""Models of Anthropic, and of endpoints that speak like it (W-50)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from ...models.calls import Status
from ..folds.anthropic import AnthropicFold, as_events
from ..folds.calls import NAMELESS
from ..messages import Answer, Message, Prompt, Results
from ..speaking import JsonSchema, Question, Said
from ..telling import told
from ..wire_ids import wire_ids, wire_name
from .client import RETRIES, TIMEOUT, own_raw, words
from .stainless import StainlessClient

PROVIDER: Final = "anthropic"
"""Begins the specs of these models."""
LIMIT: Final = 16_384
"""Tokens of an answer at most, unless the question says: the provider wants to be told a bound."""

_SAYABLE: Final = {
    *("type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const"),
    *("$ref", "$defs", "title", "description", "examples", "default", "format", "pattern"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "minItems", "maxItems", "uniqueItems"),
}
"""What the client can say of a schema in the provider's field, some of it in words alone."""
_BESIDE_REF: Final = {"$ref", "$defs", "title", "description", "default", "examples"}


class AnthropicModel:
    """Asks for each answer; keeps nothing but its connections."""

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
        limit: int = LIMIT,
        hosted: Sequence[Mapping[str, Any]] = (),
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        """Ask this model there, with the key given or ANTHROPIC_API_KEY. Raises `MissingClient`.

        `timeout` is the seconds that the endpoint may be silent. One that cannot stream, or takes
        no JSON Schema for its answer, is told so by `streams` and `structured`. `limit` are the
        tokens of an answer, where the question bounds none. `hosted` are tools that Anthropic runs
        itself, in its own words. `extra` are fields of each request, such as ``{"thinking": …}``;
        None takes a field of ours away.
        """
        self.spec: Final = f"{PROVIDER}:{model}"
        self._model: Final = model
        self._client: Final = StainlessClient(
            "Anthropic",
            model=model,
            base_url=base_url,
            api_key=api_key,
            timeout=timeout,
            retries=retries,
            streams=streams,
        )
        says = getattr(self._client.module, "transform_schema", None)
        self._say: Final = says if structured else None
        self._limit: Final = limit
        self._hosted: Final = hosted
        self._extra: Final = extra or {}

    def structured(self, question: Question) -> bool:
        """Whether the provider's own field can hold the form that is asked for (W-59)."""
        return question.output is not None and self._form(question.output) is not None

    def speak(self, question: Question) -> AsyncIterator[Said]:
        """Ask once, which may be several requests. Raises `ModelError`."""
        fold = AnthropicFold(spec=self.spec)
        return self._client.spoken("/v1/messages", self._request(question), fold, as_events)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    def _form(self, output: JsonSchema) -> Any:  # noqa: ANN401 - a JSON Schema
        """Return the schema as the provider's field takes it, None if it or the client does not."""
        if self._say is None or not is_sayable(output):
            return None
        try:
            return self._say(output)
        except (AssertionError, TypeError, ValueError):  # older clients say less
            return None

    def _request(self, question: Question) -> dict[str, Any]:
        request: dict[str, Any] = {
            "model": self._model,
            "max_tokens": question.limit or self._limit,
            "messages": as_messages(question.messages),
        }
        if question.instructions.strip():
            request["system"] = question.instructions
        tools = [
            {"name": it.name, "description": it.description, "input_schema": it.parameters}
            for it in question.tools.values()
        ]
        if tools or self._hosted:
            request["tools"] = [*self._hosted, *tools]
        if question.output is not None:
            form = {"type": "json_schema", "schema": self._form(question.output)}
            request["output_config"] = {"format": form}
        return {**request, **self._extra}


def as_messages(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    """Return the messages, roles by turns; an answer of another provider as text and calls (W-56).

    The results of an answer's calls are together, at the beginning of the next message.
    """
    said: list[dict[str, Any]] = []
    for message, ids in zip(messages, wire_ids(messages), strict=True):
        role = "assistant" if isinstance(message, Answer) else "user"
        blocks = [*_blocks(message, ids)]
        if said and said[-1]["role"] == role:
            said[-1]["content"] += blocks
        elif blocks:
            said.append({"role": role, "content": blocks})
    return said


def _blocks(message: Message, ids: tuple[str, ...]) -> Iterable[dict[str, Any]]:
    if isinstance(message, Prompt):
        return [{"type": "text", "text": words(message)}]
    if isinstance(message, Results):
        return _results(message, ids)
    raw: Any = own_raw(message, PROVIDER) or {}
    content: Any = raw.get("content") or ()
    if sum(it["type"] == "tool_use" for it in content) == len(ids) and content:
        return _own(content, ids)
    return _foreign(message, ids)


def _own(content: Iterable[Mapping[str, Any]], ids: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Yield the provider's own blocks as they were, but for what it refuses to take back."""
    fresh = iter(ids)
    for block in content:
        if block["type"] == "tool_use":
            name = wire_name(block.get("name") or NAMELESS)
            yield {**block, "id": next(fresh), "name": name}
        elif block["type"] != "text" or str(block.get("text")).strip():
            yield dict(block)


def _foreign(answer: Answer, ids: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    if answer.text and answer.text.strip():
        yield {"type": "text", "text": answer.text}
    for call, call_id in zip(answer.calls, ids, strict=True):
        name = wire_name(call.tool_name)
        yield {"type": "tool_use", "id": call_id, "name": name, "input": call.arguments}


def _results(results: Results, ids: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    for result, call_id in zip(results.results, ids, strict=True):
        text = told(result, results)
        block: dict[str, Any] = {"type": "tool_result", "tool_use_id": call_id}
        if text.strip():
            block["content"] = text
        if result.status is not Status.SUCCEEDED:
            block["is_error"] = True
        yield block


def is_sayable(output: JsonSchema) -> bool:
    """Whether the provider's field can hold a JSON Schema: closed objects, none within itself."""
    defs: Any = output.get("$defs", {})
    known: dict[str, bool] = {}

    def says(schema: object) -> bool:
        return isinstance(schema, Mapping) and says_all_of(cast("JsonSchema", schema))

    def says_all_of(schema: Mapping[str, Any]) -> bool:
        if "$ref" in schema:
            name = str(schema["$ref"]).removeprefix("#/$defs/")
            if name not in known:
                known[name] = False  # until it is known, so that one within itself is not
                known[name] = says(defs.get(name))
            return known[name] and schema.keys() <= _BESIDE_REF
        kind, values = schema.get("type"), [*schema.get("enum", ()), schema.get("const")]
        said = schema.get("anyOf") or schema.get("enum") or "const" in schema
        named = isinstance(kind, str) if "type" in schema else bool(said)
        closed = (
            "items" in schema
            if kind == "array"
            else kind != "object"
            or ("properties" in schema and schema.get("additionalProperties", False) is False)
        )
        below = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
        below += [schema["items"]] if "items" in schema else []
        plain = not any(isinstance(it, Mapping | list) for it in values)
        return schema.keys() <= _SAYABLE and named and closed and plain and all(map(says, below))

    return says(output)
