"""One chat as one stream: each event once for a cursor, whatever happens meanwhile (W-71, W-2)."""

# Looks inside, where it breaks a stream on purpose.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlock.runtime.journal.ledger import Cursor
from turnlock.world import sources, streams
from turnlock.world.configuration import Configuration
from turnlock.world.events import ChatEvent, EntryEvent, LiveEvent, ProjectionEvent
from turnlock.world.names import MemberName
from turnlock.world.requests import Projections
from turnlock.world.streams import Events

from ..runtime.virtual import run
from .scenes import AGENTS, SPEC, Scene, name_of

STEPS = st.one_of(
    st.just(("say", 0, 0)),
    st.tuples(st.just("go on"), st.integers(0, 2), st.integers(0, 5)),
    st.tuples(st.just("time"), st.integers(0, 1), st.just(0)),
    st.tuples(st.just("read"), st.integers(1, 12), st.just(0)),
    st.tuples(st.just("clear"), st.integers(0, 2), st.just(0)),
    st.tuples(st.just("come or go"), st.integers(1, 2), st.just(0)),
)


def long_story(seed: int) -> list[tuple[str, int, int]]:
    """Fifty steps, in most of which calls come further."""
    random = Random(seed)
    others = [("say", 0, 0), ("time", 1, 0), ("read", 7, 0), ("clear", 0, 0), ("come or go", 1, 0)]
    return [
        ("go on", random.randrange(2), random.randrange(6))
        if random.random() < 0.7
        else random.choice(others)
        for _ in range(50)
    ]


STORIES = st.one_of(st.lists(STEPS, max_size=30), st.integers(0, 2**32).map(long_story))


async def play(scene: Scene, step: tuple[str, int, int]) -> None:
    """Have one thing happen."""
    what, which, way = step
    agent = AGENTS[which % 3]
    if what == "say":
        await scene.say()
    elif what == "time":
        await scene.pass_time(which)
    elif what == "come or go":
        if agent in (await scene.world.configuration()).agents:
            await scene.world.remove_agent(agent)
        else:
            await scene.world.put_agent(agent, SPEC)
    elif await scene.member(agent) is None:
        return
    elif what == "clear":
        await scene.chat.clear(agent)
    else:
        await scene.go_on(agent, way)


async def replay(scene: Scene, after: str = "") -> list[ChatEvent]:
    """All there is after a cursor."""
    told = [event async for event in scene.chat.events(after, follow=False)]
    live = [event for event in told if isinstance(event, LiveEvent)]
    assert live == [LiveEvent(cursor=cursor_of(told[-2]) if len(told) > 1 else after)]
    assert told[-1:] == live
    return told[:-1]


def names(events: list[ChatEvent]) -> list[tuple[str, str]]:
    return [name_of(event) for event in events]


def by_source(events: list[ChatEvent]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for source, name in names(events):
        found.setdefault(source, []).append(name)
    return found


def cursor_of(event: ChatEvent) -> str:
    assert isinstance(event, EntryEvent | ProjectionEvent)
    return event.cursor


async def check(scene: Scene, live: list[ChatEvent], resumed: list[ChatEvent]) -> None:
    """Hold what was told against what there is: the model knows no stream and no cursor."""
    expected = await scene.sources()
    whole = await replay(scene)
    owed = {source: [name for _, name in told] for source, told in expected.items() if told}
    assert by_source(whole) == owed
    assert by_source(live) == owed
    assert by_source(resumed) == owed
    assert [*names(whole)] == await merged(scene, expected)
    for told in (whole, live):
        rest = Counter(names(whole))
        for number, event in enumerate(told):
            rest -= Counter([name_of(event)])
            if number % 5 == 0 or number > len(told) - 3:
                after = await replay(scene, cursor_of(event))
                assert Counter(names(after)) == rest
                if told is whole:
                    assert names(after) == names(whole)[number + 1 :]


async def merged(
    scene: Scene, expected: dict[str, list[tuple[float, str]]]
) -> list[tuple[str, str]]:
    """What there is by time, the log first, and each source in its own order."""
    known = await scene.world.configuration()
    over = [it.run_id for it in known.ended()]
    order = ["", *over, *(it.run_id for it in known.members("plan"))]
    left = {source: list(told) for source, told in expected.items()}
    found: list[tuple[str, str]] = []
    while any(left.values()):
        source = min(
            (it for it in order if left.get(it)), key=lambda it: (left[it][0][0], order.index(it))
        )
        found.append((source, left[source].pop(0)[1]))
    return found


async def read_on(scene: Scene, events: Events, told: list[ChatEvent], count: int) -> None:
    """Take so many more events, or as many as there are."""
    owed = len(await replay(scene, cursor_of(told[-1]) if told else ""))
    owed = len(told) + min(count, owed)
    while len(told) < owed:
        event = await anext(events)
        told += [] if isinstance(event, LiveEvent) else [event]


async def tell(story: list[tuple[str, int, int]]) -> None:
    """Play a story, with one who follows all along, and one who comes again after each read."""
    scene = await Scene.begin("alice", "bob")
    live: list[ChatEvent] = []
    resumed: list[ChatEvent] = []
    following = scene.chat.events()
    await following.open()

    async def read(count: int) -> None:
        await read_on(scene, following, live, count)
        async with scene.chat.events(cursor_of(resumed[-1]) if resumed else "") as again:
            await read_on(scene, again, resumed, count)

    for step in story:
        if step[0] == "read":
            await read(step[1])
        else:
            await play(scene, step)
    await read(10_000)
    await check(scene, live, resumed)
    await following.aclose()


@given(STORIES)
def test_w_71_each_event_once_for_a_cursor(story: list[tuple[str, int, int]]) -> None:
    """Against a model over the union of all sources, at every fifth cursor and the last ones."""
    run(tell(story))


@given(STORIES, st.integers(1, 3))
def test_w_71_pages_of_any_size_tell_the_same(story: list[tuple[str, int, int]], size: int) -> None:
    with patch.object(sources, "ENTRIES", size), patch.object(sources, "FACTS", size):
        run(tell(story))


DENIED: list[tuple[str, int, int]] = [
    ("say", 0, 0),
    ("go on", 0, 0),
    ("go on", 0, 0),
    ("read", 3, 0),
    ("time", 1, 0),
    ("say", 0, 0),
    ("come or go", 2, 0),
    ("go on", 2, 0),
    ("read", 1, 0),
    ("clear", 0, 0),
    ("go on", 0, 0),
]
"""A call is denied, which says two things; a member comes, another begins anew."""


@contextmanager
def whole_facts() -> Generator[None]:
    """A cursor that takes a fact for told once one of the things is told that it says."""

    def wrong(sequence: int, part: int = 0) -> Cursor:
        return Cursor(sequence + 1) if part else Cursor(sequence)

    with patch.object(sources, "Cursor", wrong):
        yield


@contextmanager
def present_members() -> Generator[None]:
    """A stream that does not know of runs that are over."""

    def wrong(known: Configuration, chat: str) -> list[MemberName]:
        return [*known.members(chat)]

    with patch.object(streams, "members_of", wrong):
        yield


@contextmanager
def log_alone_first() -> Generator[None]:
    """A stream that tells the whole log before anything else."""
    first: Any = streams.Events._first

    async def wrong(self: Any) -> Any:
        found = await first(self)
        return self._log if self._log.head is not None else found

    with patch.object(streams.Events, "_first", wrong):
        yield


@contextmanager
def no_fold() -> Generator[None]:
    """A stream that begins in the middle of a turn, and does not know its calls."""

    async def wrong(_: object) -> Projections:
        return Projections()

    with patch.object(sources.RunSource, "_primed", wrong):
        yield


@pytest.mark.parametrize("broken", [whole_facts, present_members, log_alone_first, no_fold])
def test_w_71_the_model_finds_what_is_wrong(broken: Any) -> None:
    """The negative controls: each is seen to fail."""
    run(tell(DENIED))
    with broken(), pytest.raises(Exception) as found:  # noqa: PT011 - whatever shows it
        run(tell(DENIED))
    assert not isinstance(found.value, asyncio.CancelledError)
