"""The official clients that Stainless generated, alike: those of OpenAI and of Anthropic."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, Final, Literal

from ..speaking import Fold, Said
from .client import Asked, client_module, no_key, posted

_CREDENTIALS: Final = ("api_key", "auth_token", "credentials")
"""What a client knows its user by, one of them; one without any would fail at the first request."""


class StainlessClient:
    """Asks one model at one endpoint; keeps nothing but its connections."""

    def __init__(  # noqa: PLR0913 - what the client takes
        self,
        vendor: Literal["OpenAI", "Anthropic"],
        *,
        model: str,
        base_url: str | None,
        api_key: str | None,
        timeout: float,
        retries: int,
        streams: bool,
    ) -> None:
        """Import the client and make one. Raises `MissingClient`."""
        variable = f"{vendor.upper()}_API_KEY"
        self.module: Final = client_module(vendor.lower(), extra=vendor.lower())
        errors: type[Exception] = getattr(self.module, f"{vendor}Error")
        try:
            self._client: Any = getattr(self.module, f"Async{vendor}")(
                api_key=api_key, base_url=base_url, timeout=timeout, max_retries=retries
            )
        except errors as error:
            raise no_key(variable) from error
        if all(getattr(self._client, name, None) is None for name in _CREDENTIALS):
            raise no_key(variable)
        self.base_url: Final = str(self._client.base_url)
        self.streams: Final = streams
        self._asked: Final = Asked(
            model=model,
            base_url=self.base_url,
            variable=variable,
            errors=(errors,),
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
            stream_class=self.module.AsyncStream,
            streams=self.streams,
            as_events=as_events,
        )
        return self._asked.spoken(events, fold)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()
