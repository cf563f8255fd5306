"""Which models runs of each kind may have: asked for once in a while, preloaded at start (S-85)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from ..adapters.contract import CommandRefused, ModelInfo, RuntimeAdapter
from ..models.errors import shown
from ..models.safe_text import harmless
from ..runtime.log import logger

_log = logger(__name__)


@attrs.frozen(kw_only=True)
class Offered:
    """The models of one kind as they were told at `at`, of the loop's clock.

    `why` says why they are not known: then the kind is `unavailable`.
    """

    models: Sequence[ModelInfo]
    at: float
    why: str | None = None


class Catalogue:
    """The models by kind."""

    def __init__(self, adapters: Mapping[str, RuntimeAdapter], *, known_for: float) -> None:
        """Know none yet; what is told counts for so many seconds."""
        self._adapters = adapters
        self._known_for: Final = known_for
        self._known: dict[str, Offered] = {}
        self._asking: dict[str, asyncio.Lock] = {}

    async def preload(self) -> None:
        """Ask all kinds once; one that fails is unavailable, and the server starts."""
        await asyncio.gather(*(self._offered(kind, reload=False) for kind in self._adapters))

    async def models(
        self, kind: str | None = None, *, reload: bool = False
    ) -> Mapping[str, Offered]:
        """Return them, of one kind or of all; `reload` asks anew.

        Raises `CommandRefused` (`runtime_model_provider_not_found`) for a kind that is not here.
        """
        if kind is not None and kind not in self._adapters:
            raise CommandRefused(
                "runtime_model_provider_not_found",
                f"{shown(kind)} is no kind of runs of this server; it has"
                f" {', '.join(self._adapters)}",
            )
        kinds = [*self._adapters] if kind is None else [kind]
        found = await asyncio.gather(*(self._offered(it, reload=reload) for it in kinds))
        return dict(zip(kinds, found, strict=True))

    async def _offered(self, kind: str, *, reload: bool) -> Offered:
        """Return the models of one kind; who asks while somebody does is told the same."""
        now = asyncio.get_running_loop().time
        asked_at = now()
        async with self._asking.setdefault(kind, asyncio.Lock()):
            known = self._known.get(kind)
            if known is not None and (
                known.at > asked_at or (not reload and now() - known.at < self._known_for)
            ):
                return known
            try:
                models = await self._adapters[kind].models(reload=reload)
                known = Offered(models=models, at=now())
            except Exception as error:  # noqa: BLE001 - a runtime of others: whatever it is
                _log.warning("the models of kind %r are not known: %s", kind, error)
                known = Offered(models=(), at=now(), why=harmless(str(error), limit=300))
            self._known[kind] = known
            return known
