"""The files that version 0.1 wrote are read by this one: see tests/data/journals/0.1/README.md."""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from turnlock import Decide, Fact, FactType, Kernel, Limits, Run
from turnlock.engine.snapshot import Snapshot
from turnlock.models.codec import fact_from_json, record_from_json, to_json
from turnlock.runtime import SqliteJournal
from turnlock.runtime.journal.contract import Appended

WRITTEN = Path(__file__).parents[2] / "data/journals/0.1"
RUN = Run(run_id="story", agent_id="a1", agent_name="Ada", limits=Limits(remembered=64))
FACTS = 58
SNAPSHOT_AT = 40


def facts_written() -> list[Fact]:
    """The run's facts, as the codec reads them."""
    lines = WRITTEN.joinpath("facts.jsonl").read_bytes().splitlines()
    return [fact_from_json(line) for line in lines]


@contextmanager
def copied() -> Generator[Path]:
    """A copy of the journal: to open one is to write in it."""
    with TemporaryDirectory() as folder:
        yield Path(shutil.copy(WRITTEN / "journal.db", folder))


def owed(kernel: Kernel) -> list[str]:
    """The ids of the effects that are owed, the wake aside."""
    ids = [effect.effect_id for effect in kernel.pending_effects]
    return [it for it in ids if not it.startswith("wake/")]


OWED = ["continue/story/3/t3", "execute/story/4/t4/retry/2", "execute/story/4/t4/ready/1"]


def test_the_facts_are_read_and_fold_to_what_they_did() -> None:
    """One of each type, at least; what the run owes has the ids that it had."""
    facts = facts_written()
    assert [fact.sequence for fact in facts] == list(range(1, FACTS + 1))
    assert {fact.type for fact in facts} == set(FactType)
    assert Counter(fact.type for fact in facts)[FactType.EXECUTION_IN_DOUBT] == 5
    kernel = Kernel.recover(RUN, facts)
    assert kernel.sequence == FACTS
    assert sorted(owed(kernel)) == sorted(OWED)


def test_the_snapshot_is_read_and_is_the_fold_of_the_facts() -> None:
    snapshot = record_from_json(Snapshot, WRITTEN.joinpath("snapshot.json").read_bytes())
    restored = Kernel.recover(RUN, [], snapshot=snapshot)
    folded = Kernel.recover(RUN, facts_written())
    assert to_json(restored.snapshot()) == to_json(folded.snapshot())
    assert sorted(owed(restored)) == sorted(OWED)


def test_the_journal_is_read_to_its_end() -> None:
    """Facts, snapshot, note, posts and owner; what it holds is what the codec reads."""

    async def play(path: Path) -> None:
        async with await SqliteJournal.open(path, create=False) as journal:
            assert [entry.run.run_id for entry in await journal.runs()] == ["story", "empty"]
            entry = await journal.entry("story")
            assert (entry.run, entry.sequence, entry.busy) == (RUN, FACTS, True)
            assert (entry.owner, entry.owned_until) == ("somebody", 21.0)
            assert [fact async for fact in journal.facts("story")] == facts_written()

            snapshot = await journal.snapshot("story")
            assert snapshot is not None
            assert snapshot.sequence == SNAPSHOT_AT
            rest = await journal.read("story", after=SNAPSHOT_AT)
            kernel = Kernel.recover(RUN, rest, snapshot=snapshot)
            assert sorted(owed(kernel)) == sorted(OWED)

            (noted,) = await journal.notes("story")
            assert noted.note.body == {"id": "said/1", "prompt": "go on"}
            page = await journal.ledger("story")
            lines = WRITTEN.joinpath("facts.jsonl").read_bytes().splitlines()
            assert [it.content for it in page.entries if not it.is_note] == lines
            assert [it.at for it in page.entries][:FACTS] == [it.at for it in facts_written()]
            (post,) = await journal.posts(["story"])
            assert isinstance(post.delivery, Decide)
            assert (post.number, post.delivery.invocation_id) == (1, "waits")
            assert await journal.answered("story", 2) == {"accepted": True, "facts": []}
            await journal.check()

    with copied() as path:
        asyncio.run(play(path))


def test_the_journal_is_gone_on_with() -> None:
    """Its fence is counted on from where it stood: who owned the run then writes nothing more."""

    async def play(path: Path) -> None:
        async with await SqliteJournal.open(path, create=False) as journal:
            kernel = Kernel.recover(RUN, [fact async for fact in journal.facts("story")])
            (post,) = await journal.posts(["story"])
            facts = kernel.receive(post.delivery, 30.0).facts
            fence = await journal.own("story", owner="me", now=30.0, lease=1.0)
            assert fence == 3
            for given, appended in ((2, Appended.FENCED), (3, Appended.OK)):
                said = await journal.append(
                    "story", fence=given, after=FACTS, facts=facts, busy=True
                )
                assert said is appended
            (approved,) = await journal.read("story", after=FACTS)
            assert approved == facts[0]

    with copied() as path:
        asyncio.run(play(path))
