"""The contract of journals, last part: any story told to a journal ends as in a plain model."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

import attrs
from hypothesis import given, settings
from hypothesis import strategies as st

from turnlock import Run
from turnlock.models.fact import Fact
from turnlock.runtime.errors import JournalOwned
from turnlock.runtime.journal.contract import Appended, Journal

from .stage import JournalStage, facts

RUNS = tuple(Run(run_id=name) for name in ("a", "b"))
REOPEN = "reopen"

Step: TypeAlias = tuple[str, dict[str, Any]]

runs = st.sampled_from([0, 1])
owners = st.sampled_from(["ada", "bob"])
off = st.sampled_from([0, 0, 0, 0, -1, 1])
"""How far a writer is from the truth."""
times = st.integers(0, 9).map(float)
nobody = st.sampled_from([None, None, None, "ada"])
small = st.integers(1, 4)


def _step(what: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Step]:
    return st.tuples(st.just(what), st.fixed_dictionaries(fields))


_append_step = _step("append", which=runs, ago=off, ahead=off, size=small, commit=small)
steps: st.SearchStrategy[Step] = st.one_of(
    _step("own", which=runs, owner=owners, now=times, gone=nobody),
    _append_step,
    _append_step,  # twice as often
    _step("renew", owner=owners, now=times),
    _step("release", which=runs, ago=off),
    _step("read", which=runs, after=st.integers(0, 6), limit=small),
    _step(REOPEN),
)


@attrs.define
class Told:
    """What the model knows of a run."""

    facts: list[Fact] = attrs.field(factory=list[Fact])
    fence: int = 0
    owner: str | None = None
    until: float = 0.0
    busy: bool = False


class Model:
    """The contract in the plainest words: what each step does, and what it answers."""

    def __init__(self) -> None:
        self.told = [Told() for _ in RUNS]

    def own(self, which: int, owner: str, now: float, gone: str | None) -> int | None:
        told = self.told[which]
        if told.owner not in {None, owner, gone} and now < told.until:
            return None
        told.fence, told.owner, told.until = told.fence + 1, owner, now + 5.0
        return told.fence

    def renew(self, owner: str, now: float) -> frozenset[str]:
        mine = [which for which, told in enumerate(self.told) if told.owner == owner]
        for which in mine:
            self.told[which].until = now + 5.0
        return frozenset(RUNS[which].run_id for which in mine)

    def release(self, which: int, fence: int) -> None:
        if self.told[which].fence == fence:
            self.told[which].owner = None

    def append(self, which: int, fence: int, after: int, batch: list[Fact]) -> Appended:
        told = self.told[which]
        if told.owner is None or told.fence != fence:
            return Appended.FENCED
        if len(told.facts) != after:
            return Appended.CONFLICT
        told.facts += batch
        told.busy = len(batch) % 2 == 0
        return Appended.OK


class Stories(JournalStage):
    """Any order of steps."""

    settings = settings()

    def test_any_story_ends_as_in_the_model(self, tmp_path: Path) -> None:
        """Each step answers as the model does, and what is kept is what the model holds."""
        places = (tmp_path / str(number) for number in count())

        @self.settings
        @given(st.lists(steps, min_size=10, max_size=30))
        def agree(story: list[Step]) -> None:
            place = next(places)
            place.mkdir()
            asyncio.run(self._tell(place, story))

        agree()

    async def _tell(self, place: Path, story: list[Step]) -> None:
        journal = await self.open_journal(place)
        model = Model()
        try:
            for run in RUNS:
                await journal.declare(run)
            for what, fields in story:
                if what != REOPEN:
                    await SAME[what](journal, model, **fields)
                elif self.durable:
                    await journal.close()
                    journal = await self.open_journal(place)
            await _same_in_the_end(journal, model)
        finally:
            await journal.close()


async def _own(
    journal: Journal, model: Model, *, which: int, owner: str, now: float, gone: str | None
) -> None:
    fence: int | None = None
    with suppress(JournalOwned):
        fence = await journal.own(RUNS[which].run_id, owner=owner, now=now, lease=5.0, gone=gone)
    assert fence == model.own(which, owner, now, gone)


async def _renew(journal: Journal, model: Model, *, owner: str, now: float) -> None:
    renewed = await journal.renew(owner=owner, now=now, lease=5.0)
    assert renewed == model.renew(owner, now)


async def _release(journal: Journal, model: Model, *, which: int, ago: int) -> None:
    fence = model.told[which].fence + ago
    await journal.release(RUNS[which].run_id, fence=fence)
    model.release(which, fence)


async def _append(
    journal: Journal, model: Model, *, which: int, ago: int, ahead: int, size: int, commit: int
) -> None:
    name = RUNS[which].run_id
    fence = model.told[which].fence + ago
    after = max(0, len(model.told[which].facts) + ahead)
    batch = facts(size, after=after, commit=commit, run_id=name)
    answer = await journal.append(name, fence=fence, after=after, facts=batch, busy=size % 2 == 0)
    assert answer is model.append(which, fence, after, batch)


async def _read(journal: Journal, model: Model, *, which: int, after: int, limit: int) -> None:
    page = await journal.read(RUNS[which].run_id, after=after, limit=limit)
    assert list(page) == model.told[which].facts[after : after + limit]


SAME: dict[str, Callable[..., Awaitable[None]]] = {
    "own": _own,
    "renew": _renew,
    "release": _release,
    "append": _append,
    "read": _read,
}
"""Takes one step on both, and compares the answers."""


async def _same_in_the_end(journal: Journal, model: Model) -> None:
    for run, told, entry in zip(RUNS, model.told, await journal.runs(), strict=True):
        found = [fact async for fact in journal.facts(run.run_id)]
        assert found == told.facts
        assert (entry.run, entry.sequence) == (run, len(told.facts))
        assert (entry.fence, entry.owner, entry.busy) == (told.fence, told.owner, told.busy)
        assert entry.owned_until == (None if told.owner is None else told.until)
