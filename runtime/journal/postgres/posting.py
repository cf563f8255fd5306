"""The part of the journal that keeps posts and answers, and says so to who listens (D-48, D-50)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from ....models.codec import to_json
from ....models.deliveries import Delivery
from ....models.strict_json import parse
from ...log import logger
from ..contract import Finding, Post
from . import posts as posts_
from .database import Database
from .doors import Connection, Doors
from .known import Known
from .listening import ANSWERED, POSTED, notify
from .together import BESIDE_RUNS, OfRun

_log: Final = logger(__name__)


class PostgresPosts(Doors):
    """Posts and answers."""

    _database: Database

    async def post(self, run_id: str, delivery: Delivery) -> int:
        """Leave a delivery."""
        content = to_json(delivery)
        run = (await self._known(run_id)).number

        async def work(connection: Connection) -> int:
            number = await posts_.post(connection, self._tables, run_id, content)
            await notify(connection, self._tables, POSTED, run)
            return number

        posted: int = await self._database.do(
            BESIDE_RUNS, OfRun(run_id, work), run=run_id, size=len(content)
        )
        return posted

    async def posts(self, run_ids: Sequence[str], *, after: int = 0) -> tuple[Post, ...]:
        """Return the posts that wait; those that cannot be read are set aside."""
        found, unreadable = await self._read(
            lambda it: posts_.posts(it, self._tables, run_ids, after=after)
        )
        if unreadable:
            for it in unreadable:
                _log.error("%s", it.logged(self._where))
            if not self._is_read_only:
                await self._write(lambda it: posts_.set_aside(it, self._tables, unreadable))
        return found

    async def answer(self, run_id: str, number: int, receipt: Mapping[str, Any]) -> None:
        """Answer a post."""
        content = msgspec.json.encode(receipt)

        async def work(connection: Connection) -> None:
            await posts_.answer(connection, self._tables, run_id, number=number, receipt=content)
            await notify(connection, self._tables, ANSWERED, number)

        asked = OfRun(run_id, work)
        await self._database.do(BESIDE_RUNS, asked, run=run_id, size=len(content))

    async def answered(self, run_id: str, number: int) -> Mapping[str, Any] | None:
        """Return the answer."""
        content = await self._read(
            lambda it: posts_.answered(it, self._tables, run_id, number=number, where=self._where)
        )
        return None if content is None else parse(content)

    async def posted(self, run_id: str, number: int) -> bool:
        """Whether this is a post for this run."""
        return await self._read(lambda it: posts_.posted(it, self._tables, run_id, number=number))

    async def findings(self, run_id: str) -> tuple[Finding, ...]:
        """Return what stands in a run's way, and the posts that were set aside."""
        found = await super().findings(run_id)
        aside = await self._read(lambda it: posts_.put_aside(it, self._tables, run_id), run=run_id)
        return (*found, *aside)

    _is_read_only: bool

    @abstractmethod
    async def _known(self, run_id: str) -> Known:
        """Return the number of a run's row. Raises `UnknownRun`."""
