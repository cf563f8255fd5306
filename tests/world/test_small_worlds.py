"""Small worlds at random: whoever says, decides, comes and goes, they come to rest as they must."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from types import SimpleNamespace
from typing import TypeAlias
from unittest import mock

import attrs
from hypothesis import given, note
from hypothesis import strategies as st

from turnlock.runtime import submitting

from ..runtime.crash.life import play
from ..runtime.virtual import watched_threads
from .crash.living import BURIED
from .small_rules import violations
from .small_world import AGENTS, HOSTS, Everybody, Small

pytestmark = BURIED


Act: TypeAlias = Callable[[Small], Awaitable[None]]


@attrs.frozen
class Does:
    """One thing that happens, and how long it is until the next."""

    what: str
    which: tuple[object, ...] = ()
    pause: float = 0.0


NAMES = (*AGENTS, "human", "nobody", AGENTS[0].upper())
WORDS = ("hi", "look", "mail@ada", "#1", "ada")


@st.composite
def texts(draw: st.DrawFn) -> str:
    """What people say: lines that may begin with names, and hold some."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 2))):
        names = [f"@{it}" for it in draw(st.lists(st.sampled_from(NAMES), max_size=2))]
        word = draw(st.sampled_from((*WORDS, *(f"say @{it}" for it in NAMES))))
        lines.append(" ".join([*names, word]))
    return "\n".join(lines)


PAUSES = st.sampled_from((0.0, 0.1, 0.4, 1.5, 4.0))
AGENT = st.sampled_from(AGENTS)
PLACE = st.integers(0, HOSTS - 1)


def does(what: str, *which: st.SearchStrategy[object]) -> st.SearchStrategy[Does]:
    """One thing that may happen."""
    return st.builds(Does, st.just(what), st.tuples(*which), PAUSES)


ACTS = st.one_of(
    does("says", st.sampled_from(("me", "her")), texts()),
    does("says", st.sampled_from(("me", "her")), texts()),
    does("begins", PLACE),
    does("ends", PLACE),
    does("dies", PLACE),
    does("answers", st.integers(0, 99)),
    does("interrupts", AGENT),
    does("clears", AGENT),
    does("removes", AGENT),
    does("put", AGENT),
)


async def happens(small: Small, it: Does) -> None:
    """Have it happen."""
    which = it.which
    if it.what == "answers":
        draw = Random(str(which))
        which = (draw.randrange,)
    work = getattr(small, it.what)(*which)
    if asyncio.iscoroutine(work):
        await work
    await asyncio.sleep(it.pause)


def played(seed: int, acts: list[Does]) -> list[str]:
    """Play a world, have it come to rest, and return what is wrong with it."""
    wrong: list[str] = []
    small = Small(seed)

    async def work() -> None:
        await small.make()
        small.begins(0)
        for it in acts:
            await happens(small, it)
        await small.rests(Random(seed).randrange)
        wrong.extend(await violations(small))

    waiting = mock.patch.object(submitting, "time", SimpleNamespace(monotonic=_loop_time))
    with waiting, watched_threads():
        play(work(), Everybody(small), at=0.0)
    return wrong


def _loop_time() -> float:
    """What whoever waits for an answer counts by."""
    return asyncio.get_running_loop().time()


@given(st.integers(0, 9_999), st.lists(ACTS, min_size=1, max_size=12))
def test_w_20_w_26_small_worlds_come_to_rest_and_all_is_heard_once(
    seed: int, acts: list[Does]
) -> None:
    """W-5, W-22, W-30 … W-36, W-40, W-42, W-70: the log is gapless, each entry is heard once by
    those who answer it, no prompt is answered twice, nothing runs unasked, what is over rests."""
    for it in acts:
        note(f"{it}")
    assert played(seed, acts) == []
