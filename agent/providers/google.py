"""Models of Google, by its Gemini API or on Vertex AI (W-50)."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from enum import Enum
from typing import Any, Final, cast

from ...models.calls import Status
from ...runtime.tools.toolbox import Toolbox
from ..folds.calls import NAMELESS
from ..folds.google import GoogleFold
from ..messages import Answer, Message, Prompt, Results, Stop
from ..speaking import Question, Said
from ..telling import told
from ..wire_ids import wire_ids, wire_name
from .client import NOTHING, RETRIES, TIMEOUT, Asked, client_module, no_key, own_raw, words

PROVIDER: Final = "google"
"""Begins the specs of these models."""
KEY: Final = "GOOGLE_API_KEY"
UNSIGNED: Final = base64.b64encode(b"skip_thought_signature_validator").decode()
"""The signature of a call that another model made, in the provider's own words: Gemini 3 refuses
the first call of a message without one."""


_READ: Final = {"candidates", "prompt_feedback", "usage_metadata"}
"""What the fold reads of a piece."""


class GoogleModel:
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
        hosted: Sequence[Mapping[str, Any]] = (),
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        """Ask this model, with the key given or GOOGLE_API_KEY. Raises `MissingClient`.

        The client's own environment says whether that is Vertex AI. `timeout` is the seconds that
        the endpoint may be silent. One that cannot stream, or takes no JSON Schema for its answer,
        is told so by `streams` and `structured`. `hosted` are tools that Google runs itself, in its
        own words, such as ``{"googleSearch": {}}``. `extra` are fields of each request; those in an
        object go beside ours, as in ``{"generationConfig": {"temperature": 0}}``.
        """
        genai = client_module("google.genai", extra=PROVIDER)
        auth = client_module("google.auth.exceptions", extra=PROVIDER)
        self._types: Final[Any] = genai.types
        options = self._types.HttpOptions(
            base_url=base_url,
            retry_options=self._types.HttpRetryOptions(attempts=retries + 1),
        )
        try:
            self._client: Final[Any] = genai.Client(api_key=api_key, http_options=options)
        except (ValueError, auth.GoogleAuthError) as error:
            raise no_key(KEY) from error
        self.spec: Final = f"{PROVIDER}:{model}"
        self._asked: Final = Asked(
            model=model,
            base_url=base_url or "Google",
            variable=KEY,
            errors=(genai.errors.APIError, auth.GoogleAuthError),
            retries=retries,
        )
        self._no_json: Final[type[Exception]] = genai.errors.UnknownApiResponseError
        self._timeout: Final = timeout
        self._streams: Final = streams
        self._structured: Final = structured
        self._hosted: Final = hosted
        self._extra: Final = extra or {}

    def structured(self, question: Question) -> bool:
        """Whether the form goes to the provider's own field, which many models refuse with tools.

        Without one it is a tool (W-59).
        """
        return self._structured and not question.tools and not self._hosted

    def speak(self, question: Question) -> AsyncIterator[Said]:
        """Ask once, which may be several requests. Raises `ModelError`."""
        return self._asked.spoken(self._pieces(question), GoogleFold(spec=self.spec))

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aio.aclose()
        self._client.close()

    async def _pieces(self, question: Question) -> AsyncGenerator[Any]:
        """Yield the pieces of a response.

        The whole request goes as `extra_body`: in words of its own the client says what it knows
        and no more, and writes signatures anew. What it continues by itself after a lost connection
        (W-50) it would say twice.
        """
        models, types = self._client.aio.models, self._types
        options = types.HttpOptions(extra_body=self._request(question))
        automatic = types.AutomaticFunctionCallingConfig(disable=True)
        known = types.GenerateContentConfig.model_fields
        asked = {
            "model": self._asked.model,
            "contents": NOTHING,  # what is in `extra_body` goes in its place
            "config": types.GenerateContentConfig(
                http_options=options,
                automatic_function_calling=automatic,
                **({"automatic_continuation": False} if "automatic_continuation" in known else {}),
            ),
        }
        if not self._streams:
            yield _as_sent(await self._soon(models.generate_content(**asked)))
            return
        begun = False
        streaming = await self._soon(models.generate_content_stream(**asked))
        async with aclosing(streaming) as pieces:
            try:
                while (piece := await self._soon(anext(pieces, None))) is not None:
                    yield _as_sent(piece)
                    begun = True
            except self._no_json:
                if not begun:
                    raise  # else it ended in the middle of a piece: it is cut (W-52)

    async def _soon(self, awaited: Awaitable[Any]) -> Any:  # noqa: ANN401 - of the client
        """Return what the endpoint says. Raises TimeoutError where it is silent for too long.

        The client's own timeout is also told to Google, as that of the whole answer.
        """
        async with asyncio.timeout(self._timeout):
            return await awaited

    def _request(self, question: Question) -> dict[str, Any]:
        """Return the body of a request. One that was paused goes on by the token it ended with."""
        messages, token = question.messages, None
        while messages and (paused := _token(messages[-1])) is not None:
            messages, token = messages[:-1], token or paused
        config: dict[str, Any] = {}
        if question.limit is not None:
            config["maxOutputTokens"] = question.limit
        if question.output is not None:
            config["responseMimeType"] = "application/json"
            config["responseJsonSchema"] = question.output
        instructions = question.instructions.strip() and {
            "parts": [{"text": question.instructions}]
        }
        fields = {
            "systemInstruction": instructions,
            "tools": [*self._hosted, *_declared(question.tools)],
            "generationConfig": config,
            "continuationToken": token,
        }
        contents = [*as_contents(messages, spec=self.spec)]
        found = {name: it for name, it in fields.items() if it}
        request: dict[str, Any] = {"contents": contents, **found}
        for field, value in self._extra.items():
            ours = request.get(field)
            request[field] = {**ours, **value} if isinstance(ours, dict) else value
        return {name: it for name, it in request.items() if it is not None}


def _token(message: Message) -> str | None:
    """Return what an answer that was paused goes on by."""
    if isinstance(message, Answer) and message.stop is Stop.PAUSED:
        raw: Any = own_raw(message, PROVIDER) or {}
        token: str | None = raw.get("continuationToken")
        return token
    return None


def _declared(tools: Toolbox) -> list[dict[str, Any]]:
    """Return the tools with their JSON Schemas whole, not as the provider's own, smaller kind."""
    functions = [
        {"name": it.name, "description": it.description, "parametersJsonSchema": it.parameters}
        for it in tools.values()
    ]
    return [{"functionDeclarations": functions}] if functions else []


def as_contents(messages: Sequence[Message], *, spec: str) -> Iterator[dict[str, Any]]:
    """Yield the messages to a model; an answer of another provider as text and calls (W-56)."""
    for message, ids in zip(messages, wire_ids(messages), strict=True):
        parts = [*_parts(message, ids, spec)]
        if parts:
            yield {"role": "model" if isinstance(message, Answer) else "user", "parts": parts}


def _parts(message: Message, ids: tuple[str, ...], spec: str) -> Iterable[dict[str, Any]]:
    if isinstance(message, Prompt):
        return [{"text": words(message)}]
    if isinstance(message, Results):
        return _results(message, ids)
    raw: Any = own_raw(message, PROVIDER) or {}
    own: list[Any] = [*(raw["content"]["parts"] if "content" in raw else ())]
    fits = own and sum("functionCall" in it for it in own) == len(ids)
    parts = [*(_own(own, ids) if fits else _foreign(message, ids))]
    if not fits or message.spec != spec:
        for first in [it for it in parts if "functionCall" in it][:1]:
            first.setdefault("thoughtSignature", UNSIGNED)
    return parts


def _own(parts: Iterable[Mapping[str, Any]], ids: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Yield the provider's own parts as they were."""
    fresh = iter(ids)
    for part in parts:
        if "functionCall" in part:
            called = {"name": NAMELESS, **part["functionCall"], "id": next(fresh)}
            yield {**part, "functionCall": {**called, "name": wire_name(called["name"])}}
        else:
            yield dict(part)


def _foreign(answer: Answer, ids: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    if answer.text:
        yield {"text": answer.text}
    for call, call_id in zip(answer.calls, ids, strict=True):
        name = wire_name(call.tool_name)
        yield {"functionCall": {"id": call_id, "name": name, "args": call.arguments}}


def _results(results: Results, ids: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    for result, call_id in zip(results.results, ids, strict=True):
        field = "output" if result.status is Status.SUCCEEDED else "error"
        response = {field: told(result, results)}
        name = wire_name(result.tool_name)
        yield {"functionResponse": {"id": call_id, "name": name, "response": response}}


def _as_sent(response: Any) -> Any:  # noqa: ANN401 - of a package that may be missing
    """Return a piece as it was sent, as far as the client knows it."""
    fields = response.model_dump(by_alias=True, exclude_unset=True, include=_READ)
    return _json(fields)


def _json(value: Any) -> Any:  # noqa: ANN401 - any JSON, and what the client makes of it
    if isinstance(value, dict):
        return {key: _json(it) for key, it in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list):
        return [_json(it) for it in cast("Sequence[Any]", value)]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.value if isinstance(value, Enum) else value
