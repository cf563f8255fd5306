"""A model behind a chat-completions endpoint: OpenAI's, or any that speaks like it.

The official client does the talking and tries again after 408, 409, 429, 5xx and lost connections.
What still fails is a `ModelError` that says what to do; the conversation owes its answer as before.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from ..models.errors import InvalidValue, TurnlockError
from ..models.safe_text import harmless
from ..models.strict_json import parse
from ..models.values import freeze
from .chat_messages import as_chat, calls_of, plain
from .errors import ModelError
from .messages import Answer, Stop
from .speaking import Ended, Question, Said

RETRIES: Final = 4
"""Times that the client asks again, with growing pauses, before it gives up."""
TIMEOUT: Final = 120.0
"""Seconds that one request may take."""
_SHOWN: Final = 400
"""Characters of an endpoint's complaint that a message repeats."""


class MissingClient(TurnlockError):
    """The openai client is not installed, or has no key."""


class ChatCompletionsModel:
    """Asks an endpoint for each answer; keeps nothing but its connections."""

    def __init__(
        self,
        *,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = TIMEOUT,
        retries: int = RETRIES,
    ) -> None:
        """Ask this model there, with the key given or OPENAI_API_KEY. Raises `MissingClient`.

        `timeout` is in seconds. An endpoint of one's own mostly takes any key.
        """
        try:
            import openai  # noqa: PLC0415 - an extra, and slow to load
        except ImportError as error:
            raise MissingClient(
                "the openai client is not installed; pip install 'turnlock[openai]'"
            ) from error
        try:
            self._client = openai.AsyncOpenAI(
                api_key=api_key, base_url=base_url, timeout=timeout, max_retries=retries
            )
        except openai.OpenAIError as error:
            raise MissingClient(
                "there is no key; put it into OPENAI_API_KEY (any text, if the endpoint of"
                " --base-url takes any)"
            ) from error
        self._failures: Final[tuple[type[Exception], ...]] = (openai.OpenAIError, ValueError)
        self._status_error: Final = openai.APIStatusError
        self._timeout_error: Final = openai.APITimeoutError
        self._connection_error: Final = openai.APIConnectionError
        self._model: Final = model

    async def speak(self, question: Question) -> AsyncIterator[Said]:
        """Ask once, which may be several requests. Raises `ModelError`."""
        request: dict[str, Any] = {"model": self._model, "messages": as_chat(question.messages)}
        if question.tools:
            request["tools"] = plain(question.tools.as_function_schemas())
        try:
            create: Any = self._client.chat.completions.with_raw_response.create
            response = await create(**request)
            body: Any = parse(response.content)
        except InvalidValue as error:
            raise self._error(
                f"its answer is no JSON ({error})", "is this its base URL?"
            ) from error
        except self._failures as error:
            raise self._told(error) from error
        try:
            answer = _answer(body)
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            shown = harmless(str(body), limit=_SHOWN)
            cause = f"its answer is no chat completion ({error!r}): {shown}"
            raise self._error(cause, "is this its base URL?") from error
        yield Ended(answer)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    def _told(self, error: Exception) -> ModelError:
        if isinstance(error, self._status_error):
            status = error.status_code
            said = harmless(error.response.text, limit=_SHOWN)
            return self._error(f"it answered {status}: {said}", _fix(status))
        if isinstance(error, self._timeout_error):
            return self._error("it took too long", "try again later")
        if isinstance(error, self._connection_error):
            cause = error.__cause__ or error
            return self._error(
                f"it cannot be reached ({harmless(str(cause), limit=_SHOWN)})",
                "see to the network, or correct --base-url",
            )
        return self._error(harmless(str(error), limit=_SHOWN), "see what it says")

    def _error(self, cause: str, fix: str) -> ModelError:
        where = f"model {harmless(self._model, limit=80)} at {self._client.base_url}"
        return ModelError(f"{where}: {cause}; {fix}; the conversation goes on from here")


def _answer(body: Any) -> Answer:  # noqa: ANN401 - any JSON
    message: Any = body["choices"][0]["message"]
    text = message.get("content")
    if text is not None and not isinstance(text, str):
        raise TypeError("content is no text")
    calls = calls_of(message.get("tool_calls") or ())
    return Answer(
        text=text,
        calls=calls,
        raw=freeze(message, place="message"),
        stop=Stop.CALLS if calls else Stop.DONE,
    )


def _fix(status: int) -> str:
    if status in {401, 403}:
        return "see to OPENAI_API_KEY"
    if status == 404:  # noqa: PLR2004 - Not Found
        return "see to --model and --base-url"
    if status in {408, 409, 429} or status >= 500:  # noqa: PLR2004 - the server's own errors
        return f"it was asked {RETRIES + 1} times; try again later"
    return "see what it says"
