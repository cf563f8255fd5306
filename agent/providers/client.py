"""What all providers share: a client that may be missing, what its failures mean, and the stream.

The official clients do the talking. They ask again before the first byte of an answer, after 408,
409, 429, 5xx and lost connections; nobody does after it. What fails then is a `ModelError` that
says what to do; the conversation owes its answer as before (W-50).
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import aclosing
from importlib import import_module
from typing import Any, Final, cast

import attrs

from ...models.errors import TurnlockError
from ...models.safe_text import harmless
from ..errors import ModelError, ProviderFailure
from ..messages import Answer, Prompt
from ..speaking import Fold, Said
from ..whole_text import WholeTexts

RETRIES: Final = 4
"""Times that a client asks again, with growing pauses, before it gives up."""
TIMEOUT: Final = 120.0
"""Seconds that an endpoint may be silent."""
NOTHING: Final = "(nothing)"
"""Said in place of a prompt without a word."""
_SHOWN: Final = 400
"""Characters of an endpoint's complaint that a message repeats."""
_TRANSPORTS: Final = {
    "httpx": ("HTTPError", "StreamError", "InvalidURL"),
    "httpx2": ("HTTPError", "StreamError", "InvalidURL"),
    "aiohttp": ("ClientError",),
}
"""What clients speak HTTP with, and the bases of what they raise."""
_NO_EVENT: Final = (LookupError, TypeError, ValueError, AttributeError, RecursionError)
"""What a fold raises for an event that is none."""


class MissingClient(TurnlockError):
    """A provider's client is not installed, or has no key."""


class MissingKey(MissingClient):
    """A provider's client is there, and has no key."""


def client_module(name: str, *, extra: str) -> Any:  # noqa: ANN401 - a module that may be missing
    """Import a provider's client. Raises `MissingClient`, which names the extra."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingClient(
            f"the {extra} client is not installed; pip install 'turnlock[{extra}]'"
        ) from error


def words(prompt: Prompt) -> str:
    """Return what a person said; a message without a word is refused by some."""
    return prompt.text if prompt.text.strip() else NOTHING


def own_raw(answer: Answer, provider: str) -> Any:  # noqa: ANN401 - any JSON
    """Return the provider's own message of an answer, None if another provider said it (W-56)."""
    said_by = (answer.spec or "").partition(":")[0]
    return answer.raw if said_by == provider else None


def no_key(variable: str) -> MissingKey:
    """Return the error for a client that has no key."""
    return MissingKey(
        f"there is no key; put it into {variable} (any text, if your endpoint takes any)"
    )


@attrs.frozen(kw_only=True)
class Asked:
    """Who is asked and where, for what is said of failures.

    `variable` holds the key, `errors` are the bases of what the client raises by itself; what its
    transport raises is known. `retries` are the client's.
    """

    model: str
    base_url: str
    variable: str
    errors: tuple[type[Exception], ...]
    retries: int = RETRIES

    async def spoken(self, events: AsyncGenerator[Any], fold: Fold) -> AsyncIterator[Said]:
        """Yield what the events of a response say, then the `Ended` of its fold.

        `events` begin to be asked for here; they are closed whatever happens. Those of a response
        that came at once are what its fold's `as_events` makes of it. A connection that breaks
        after the first event leaves what was said, which is cut unless the reason had come (W-52);
        what else fails raises `ModelError`.
        """
        failures = (*self.errors, *_transport_errors())
        event: Any = None
        texts = WholeTexts()
        async with aclosing(events):
            try:
                try:
                    async for event in events:
                        for said in texts.of(fold.feed(event)):
                            yield said
                except failures as error:
                    if event is None or not _is_connection(error):
                        raise self._failed(error) from error
                ended = fold.end()
            except ProviderFailure as error:
                raise self.error(f"it failed: {_short(error)}", "try again later") from error
            except _NO_EVENT as error:
                shown = "" if event is None else f" in {_short(event)}"
                cause = f"this is no answer: {_short(error)}{shown}"
                raise self.error(cause, "is this its base URL?") from error
        for said in texts.rest():
            yield said
        yield ended

    def error(self, cause: str, fix: str) -> ModelError:
        """Return the error of this endpoint; `cause` may hold what was sent."""
        where = f"model {harmless(self.model, limit=80)} at {self.base_url}"
        return ModelError(f"{where}: {cause}; {fix}; the conversation goes on from here")

    def _failed(self, error: Exception) -> ModelError:
        status, cause = _status(error), error.__cause__ or error
        if status == 200:  # noqa: PLR2004 - OK: it said so in the middle of its answer
            return self.error(f"it failed: {_complaint(error)}", "try again later")
        if status is not None:
            return self.error(f"it answered {status}: {_complaint(error)}", self._fix(status))
        if any("Timeout" in kind.__name__ for it in (error, cause) for kind in type(it).__mro__):
            return self.error("it took too long", "try again later")
        if _is_connection(error):
            return self.error(
                f"it cannot be reached, or fell silent ({_short(cause)})",
                "try again later, see to the network, or correct its base URL",
            )
        return self.error(_complaint(error), "see what it says")

    def _fix(self, status: int) -> str:
        if status in {401, 403}:
            return f"see to {self.variable}"
        if status == 404:  # noqa: PLR2004 - Not Found
            return "see to the name of the model and its base URL"
        if status in {408, 409, 429} or status >= 500:  # noqa: PLR2004 - the server's own errors
            return f"it was asked up to {self.retries + 1} times; try again later"
        return "see what it says"


async def posted(  # noqa: PLR0913 - a request and what it is answered with
    client: Any,  # noqa: ANN401 - of a package that may be missing
    path: str,
    body: dict[str, Any],
    *,
    stream_class: Any,  # noqa: ANN401 - as client
    streams: bool,
    as_events: Callable[[Any], Iterable[Any]],
) -> AsyncGenerator[Any]:
    """Yield the events of a response as they were sent, by a client that Stainless generated.

    `stream_class` is its `AsyncStream`. An endpoint that does not stream although it was asked to
    answers JSON at once: that counts, too. Raises ValueError for what is neither.
    """
    if not streams:
        for event in _all(as_events, await client.post(path, cast_to=object, body=body)):
            yield event
        return
    stream = await client.post(
        path,
        cast_to=object,
        body={**body, "stream": True},
        stream=True,
        stream_cls=stream_class[object],
    )
    async with stream:  # its end closes the response
        kind = stream.response.headers.get("content-type", "")
        if "json" in kind or "html" in kind:
            for event in _all(as_events, _whole(await stream.response.aread())):
                yield event
            return
        async for event in stream:
            yield event


def _whole(content: bytes) -> Any:  # noqa: ANN401 - any JSON
    try:
        return json.loads(content)
    except ValueError as error:
        text = content.decode(errors="replace")
        raise ValueError(f"{error}, in {harmless(text, limit=_SHOWN)!r}") from None


def _all(as_events: Callable[[Any], Iterable[Any]], body: Any) -> list[Any]:  # noqa: ANN401
    try:
        return [*as_events(body)]
    except _NO_EVENT as error:
        raise ValueError(f"{error!r} in {_short(body)}") from error


def _transport_errors() -> tuple[type[Exception], ...]:
    """Return what the transports raise that are loaded, and the sockets below them."""
    loaded = [
        getattr(sys.modules[name], base)
        for name, bases in _TRANSPORTS.items()
        for base in bases
        if name in sys.modules
    ]
    return (*loaded, OSError)


def _is_connection(error: Exception) -> bool:
    named = any(kind.__name__ == "APIConnectionError" for kind in type(error).__mro__)
    return named or isinstance(error, _transport_errors())


def _status(error: Exception) -> int | None:
    """Return the status that a client's error has, under either name."""
    for name in ("status_code", "code"):
        status = getattr(error, name, None)
        if isinstance(status, int):
            return status
    return None


def _complaint(error: Exception) -> str:
    """Return what the endpoint says, out of whatever the client made of it."""
    said: Any = getattr(error, "body", None) or getattr(error, "details", None) or error
    for name in ("error", "message"):
        if isinstance(said, dict):
            said = cast("dict[str, Any]", said).get(name, cast("object", said))
    return _short(said)


def _short(value: object) -> str:
    return harmless(str(value), limit=_SHOWN)
