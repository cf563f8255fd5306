"""The official client of OpenAI, behind both of its APIs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, Final

from ..speaking import Fold, Said
from .client import Asked, client_module, no_key, posted

KEY: Final = "OPENAI_API_KEY"


class OpenAIClient:
    """Asks one model at one endpoint; keeps nothing but its connections."""

    def __init__(  # noqa: PLR0913 - what the client takes
        self,
        *,
        model: str,
        base_url: str | None,
        api_key: str | None,
        timeout: float,
        retries: int,
        streams: bool,
    ) -> None:
        """Import the client and make one. Raises `MissingClient`."""
        openai = client_module("openai", extra="openai")
        try:
            self._client: Any = openai.AsyncOpenAI(
                api_key=api_key, base_url=base_url, timeout=timeout, max_retries=retries
            )
        except openai.OpenAIError as error:
            raise no_key(KEY) from error
        self.base_url: Final = str(self._client.base_url)
        self.streams: Final = streams
        self._stream_class: Final = openai.AsyncStream
        self._asked: Final = Asked(
            model=model,
            base_url=self.base_url,
            variable=KEY,
            errors=(openai.OpenAIError,),
            retries=retries,
        )

    def spoken(
        self,
        path: str,
        request: dict[str, Any],
        fold: Fold,
        as_events: Callable[[Any], Iterable[Any]],
    ) -> AsyncIterator[Said]:
        """Send a request without its fields that are None, and yield what is said to it."""
        events = posted(
            self._client,
            path,
            {name: value for name, value in request.items() if value is not None},
            stream_class=self._stream_class,
            streams=self.streams,
            as_events=as_events,
        )
        return self._asked.spoken(events, fold)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()
