"""Models that speak at once: so many in all, and so many of one endpoint (section 13)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

from ..agent.errors import ModelError
from ..agent.speaking import Model, Question, Said, speaking
from ..models.errors import TurnlockError
from ..runtime.log import logger

_log = logger(__name__)

SPEAKING: Final = 16
"""Models of one process that speak at once."""
SPEAKING_OF_ENDPOINT: Final = 8
"""Of these, those of one endpoint."""


class Slots:
    """Who may speak now; who waits is served in the order in which they came."""

    def __init__(self, *, all_models: int = SPEAKING, each: int = SPEAKING_OF_ENDPOINT) -> None:
        """Begin with all of them free."""
        self._all = asyncio.Semaphore(all_models)
        self._each = each
        self._endpoints: dict[str, asyncio.Semaphore] = {}

    def of(self, endpoint: str) -> asyncio.Semaphore:
        """Return those of one endpoint."""
        return self._endpoints.setdefault(endpoint, asyncio.Semaphore(self._each))

    @property
    def all(self) -> asyncio.Semaphore:
        """Those of all endpoints together."""
        return self._all


class Queued:
    """A model that waits for its turn to speak."""

    def __init__(self, model: Model, slots: Slots, *, endpoint: str) -> None:
        """Have this model speak where a slot is free."""
        self._model: Final = model
        self._slots: Final = slots
        self._endpoint: Final = endpoint

    async def speak(self, question: Question) -> AsyncIterator[Said]:
        """Have it speak once it may; one that is not listened to any more gives way at once.

        Raises `ModelError`, also for what a model of one's own raises: it did not answer.
        """
        async with (
            self._slots.of(self._endpoint),
            self._slots.all,
            speaking(self._model, question) as saying,
        ):
            try:
                async for said in saying:
                    yield said
            except TurnlockError:
                raise
            except Exception as error:
                raised = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
                _log.warning("a model of %s has raised", self._endpoint, exc_info=error)
                raise ModelError(f"the model raised {raised}; see to that model") from error

    async def close(self) -> None:
        """Leave it open: it is its maker's to close."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the model has
        """Return what else it has: `spec`, or what it takes."""
        return getattr(self._model, name)
