"""Whatever is said and whoever is killed: the log is what a dumb reading of it would have made it.

The oracle reads the finished log, entry by entry: for each that a member answers it counts turns,
and demands the answer or the handoff that must follow, once, and nothing besides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
from hypothesis import given, settings
from hypothesis import strategies as st

from turnlock.world import Stands
from turnlock.world.entries import Handoff, Message, Notice, Role, read_entry
from turnlock.world.mentions import answers, published

from ..runtime.faulty_journal import Fault, FaultyJournal
from ..runtime.virtual import run
from .playing import Played, Playing, Process, killed, play, says, told

AGENTS: tuple[str, ...] = ("alice", "bob", "carol")
LIMIT = 2

REPLIES = st.sampled_from([
    "fine",
    "@alice what do you say?",
    "@bob over to you",
    "@bob @carol both",
    "I think @human should look",
    "<world>DONE</world>",
    "<world>PASS</world>thanks",
    "",
])  # fmt: skip
WORDS = st.sampled_from(
    [
        "hello all",
        "@alice go",
        "@bob @carol go",
        "ask @alice",
        "@nobody hm",
        "<world>x</world>",
    ]
)


@attrs.frozen
class Step:
    """Somebody says something, then time passes, and the host is killed perhaps."""

    word: str
    seconds: float
    is_killed: bool


STEPS = st.builds(
    Step,
    word=WORDS,
    seconds=st.sampled_from([0.0, 0.05, 0.3, 1.0, 3.0, 9.0]),
    is_killed=st.booleans(),
)


def reply_to(prompt: str, replies: Sequence[str]) -> str:
    """What a model says to a prompt: the same, however often it is asked."""
    return replies[(len(prompt) + sum(map(ord, prompt))) % len(replies)]


async def check(played: Played, agent: str, replies: Sequence[str]) -> None:
    """Hold what stands in the log of one member to what must."""
    entries = await played.journal.entries(played.chat.log)
    run_id = f"demo/plan/{agent}"
    mine = [it for it in entries if it.entry_id.startswith(f"{run_id}/")]
    expected: list[str] = []
    turns = 0
    for entry in entries:
        said = read_entry(entry)
        if not (isinstance(said, Message) and answers(said, agent)):
            continue
        if said.role is Role.AGENT and turns >= LIMIT:
            expected.append(f"limit {entry.entry_id}")
            continue
        turns = turns + 1 if said.role is Role.AGENT else 0
        expected.append(f"heard {entry.entry_id}")
    noted = await played.journal.notes(run_id) if expected else ()
    notes = [dict(it.note.body) for it in noted if it.note.kind in {"user", "passed"}]
    found = [f"{'heard' if 'heard' in it else 'limit'} {entry_of(it)}" for it in notes]
    assert found == expected, "each was heard or passed by once, in the order of the log"
    answered = [read_entry(it) for it in mine]
    to = [it.reply_to for it in answered if isinstance(it, Message | Handoff)]
    assert len(set(to)) == len(to), "nothing was answered twice"
    by_id = {it.entry_id: read_entry(it) for it in entries}
    due = [it.partition(" ") for it in expected]
    assert to == [
        entry_id
        for kind, _, entry_id in due
        if kind == "limit" or is_published(by_id[entry_id], agent, replies)
    ]
    assert all(isinstance(it, Message | Handoff | Notice) for it in answered)


def entry_of(body: dict[str, Any]) -> str:
    heard: Any = body.get("heard", body)
    return str(heard["entry"])


def is_published(said: object, agent: str, replies: Sequence[str]) -> bool:
    """Whether what was heard has an answer in the log: one that says something."""
    assert isinstance(said, Message)
    reply = reply_to(f"{said.sender}: {said.text}", replies)
    sender = said.sender if said.role is Role.AGENT else None
    return bool(reply.strip() and published(reply, agent, sender).strip())


async def three(replies: Mapping[str, Sequence[str]], slow: Mapping[str, float]) -> Played:
    """A world of three agents that say these things, each in so many seconds."""

    def model(agent: str) -> Playing:
        return says(lambda it: reply_to(told(it), replies[agent]), slow=slow[agent])

    return await play({it: (model(it), {"turn_limit": LIMIT}) for it in AGENTS})


@settings(max_examples=max(1, settings().max_examples // 2))
@given(
    replies=st.lists(st.lists(REPLIES, min_size=1, max_size=4), min_size=3, max_size=3),
    slow=st.lists(st.sampled_from([0.0, 0.1, 1.0]), min_size=3, max_size=3),
    steps=st.lists(STEPS, min_size=1, max_size=5),
)
def test_w_30_the_log_is_what_a_dumb_reading_would_have_made_it(
    replies: list[list[str]], slow: list[float], steps: list[Step]
) -> None:
    """Each entry is heard once by each who answers it, or passed by once; answered at most once."""

    async def it() -> None:
        known = dict(zip(AGENTS, replies, strict=True))
        played = await three(known, dict(zip(AGENTS, slow, strict=True)))
        for number, step in enumerate(steps):
            process, before = Process(played.journal), asyncio.all_tasks()
            host = played.host(journal=process)
            await host.__aenter__()
            await played.chat.say("human", step.word, message_id=f"m{number}")
            await asyncio.sleep(step.seconds)
            if step.is_killed:
                await killed(process, asyncio.all_tasks() - before)
            else:
                await host.__aexit__(None, None, None)
        async with played.host() as host:
            await host.idle("plan")
            standing = await host.standing("plan")
            assert {it.stands for it in standing.members} == {Stands.IDLE}
        for agent in AGENTS:
            await check(played, agent, known[agent])

    run(it())


FAULTS = st.dictionaries(
    st.tuples(
        st.sampled_from(["append_entry", "entries", "logs", "note", "own", "release", "renew"]),
        st.integers(1, 12),
    ),
    st.sampled_from([Fault.LOST, Fault.UNACKNOWLEDGED]),
    max_size=20,
) | st.dictionaries(
    st.tuples(st.just("note"), st.integers(1, 8)), st.just(Fault.FENCED), max_size=3
)


@settings(max_examples=max(1, settings().max_examples // 2))
@given(
    replies=st.lists(st.lists(REPLIES, min_size=1, max_size=4), min_size=3, max_size=3),
    words=st.lists(WORDS, min_size=1, max_size=3),
    plan=FAULTS,
)
def test_w_6_a_journal_that_fails_delays_and_changes_nothing(
    replies: list[list[str]], words: list[str], plan: dict[tuple[str, int], Fault]
) -> None:
    """Before it keeps something, or after it, unheard: it is done again, or found done."""

    async def it() -> None:
        known = dict(zip(AGENTS, replies, strict=True))
        played = await three(known, dict.fromkeys(AGENTS, 0.1))
        journal = FaultyJournal(played.journal)
        async with played.host(journal=journal) as host:
            journal.calls.clear()
            journal.plan.update(plan)
            for number, word in enumerate(words):
                await played.chat.say("human", word, message_id=f"m{number}")
                await asyncio.sleep(0.3)
            await asyncio.sleep(100.0)
            journal.plan.clear()
            await host.idle("plan")
            assert (await host.standing("plan")).is_idle
        for agent in AGENTS:
            await check(played, agent, known[agent])

    run(it())
