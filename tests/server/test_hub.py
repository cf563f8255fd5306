"""The hub: the past, then live; each entry once, in order; nobody is waited for (S-70 … S-79)."""

# Looks inside: what is held for those who follow.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnlock.models.errors import UnknownRun
from turnlock.runtime.errors import CursorAhead, JournalError, Overloaded
from turnlock.runtime.journal.ledger import START, Cursor, Domain
from turnlock.server.children import child_id, parent_in
from turnlock.server.deltas import WAITING, Piece
from turnlock.server.hub import HELD, Hub, HubSettings
from turnlock.server.shown import Sent, Shown
from turnlock.server.subscription import HubSubscription
from turnlock.server.tail import KEPT, Tail

from ..runtime.virtual import run, settled
from .ledgers import WrittenLedgers, runtime_of

R = "r/1"


@asynccontextmanager
async def hub_of(
    written: WrittenLedgers, *owned: str, settings: HubSettings | None = None
) -> AsyncGenerator[Hub]:
    async with Hub(
        journal=written.journal,
        runtime=runtime_of(written, *owned) if owned else None,
        settings=settings or HubSettings(),
    ) as hub:
        yield hub


class Client:
    """Reads a subscription as a client does: checks what is said of places (F-52)."""

    def __init__(self, after: str = "") -> None:
        self.last = after
        self.cursors: list[str] = []
        self.names: list[str] = []
        self.told: list[tuple[str, Any]] = []
        self.gaps: list[tuple[str, str]] = []

    def take(self, batch: Sequence[Shown], run_id: str = R) -> None:
        for it in batch:
            if isinstance(it, Sent):
                envelope = json.loads(it.envelope)
                assert envelope["after"] == self.last, (envelope, self.last)
                assert envelope["cursor"] == str(it.cursor) == it.place.decode()
                assert envelope["run_id"] == run_id
                self.last = envelope["cursor"]
                self.cursors.append(self.last)
                self.names.append("event")
            else:
                self.names.append(it.name)
                self.told.append((it.name, json.loads(it.data)))
                if it.name == "gap":
                    self.last = json.loads(it.data)["to"]
                    self.gaps.append((json.loads(it.data)["from"], self.last))

    async def read_until(self, subscription: HubSubscription, cursor: str) -> None:
        while self.last != cursor:
            self.take(await anext(subscription))


async def all_of(subscription: HubSubscription) -> Client:
    client = Client()
    async for batch in subscription:
        client.take(batch)
    return client


def test_s_70_the_past_then_live_and_it_says_when() -> None:
    """S-70, F-41: hello, all entries after the cursor, live, and then each as it is kept."""

    async def play() -> None:
        written = WrittenLedgers()
        for _ in range(3):
            written.fact(R)
        written.note(R, Domain.SESSION)
        written.note(R, Domain.MESSAGE, id="said/1")
        async with hub_of(written, R) as hub:
            subscription = hub.subscribe(R, after=Cursor(1))
            client = Client("1")
            await client.read_until(subscription, "3.2")
            client.take(await anext(subscription))
            reading = asyncio.ensure_future(anext(subscription))
            await settled()
            assert not reading.done()
            written.fact(R)
            client.take(await reading)

            assert client.names == ["hello", "event", "event", "event", "live", "event"]
            assert client.cursors == ["2", "3", "3.2", "4"]
            assert client.told[0] == ("hello", {"run_id": R, "head": "3.2"})
            assert client.told[1] == ("live", {"cursor": "3.2"})
            subscription.close()
            with pytest.raises(StopAsyncIteration):
                await anext(subscription)

    run(play())


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("facts"), st.integers(1, 30)),
        st.tuples(st.just("notes"), st.integers(1, 30)),
        st.tuples(st.just("manifest"), st.just(1)),
        st.tuples(st.just("prune"), st.integers(0, 5)),
        st.tuples(st.just("read"), st.integers(1, 6)),
        st.tuples(st.just("drop"), st.just(0)),
        st.tuples(st.just("settle"), st.just(0)),
    ),
    min_size=5,
    max_size=40,
)


async def resumed(steps: list[tuple[str, int]], *, owned: bool) -> None:  # noqa: C901 - a model
    """Subscribe, drop, resume after the last one had, while it grows: the union is the ledger."""
    written = WrittenLedgers()
    written.fact(R)
    ever = ["1"]
    got: list[str] = []
    gaps: list[tuple[str, str]] = []
    small = HubSettings(page=7, poll=0.25)
    async with hub_of(written, *([R] if owned else []), settings=small) as hub:
        with patch("turnlock.server.tail.KEPT", 2_000):
            client, subscription = Client(), hub.subscribe(R)
            for what, count in steps:
                if what == "facts":
                    ever += [str(written.fact(R)) for _ in range(count)]
                elif what == "notes":
                    ever += [str(written.note(R, n=it)) for it in range(count)]
                elif what == "manifest":
                    written.note(R, Domain.SESSION, n=1)
                elif what == "prune":
                    written.prune(R, keep=count)
                elif what == "settle":
                    await settled()
                elif what == "read":
                    for _ in range(count):
                        if client.last != ever[-1]:
                            client.take(await anext(subscription))
                else:
                    subscription.close()
                    got, gaps = got + client.cursors, gaps + client.gaps
                    client = Client(client.last)
                    subscription = hub.subscribe(R, after=Cursor.read(client.last))
            async with asyncio.timeout(60):
                await client.read_until(subscription, str(written.ends_at(R)))
            got, gaps = got + client.cursors, gaps + client.gaps
            subscription.close()
    shown = [Cursor.read(it) for it in got]
    assert shown == sorted(set(shown)), "once, in order"
    missing = set(ever) - set(got)
    for it in missing:  # it was pruned before it was told, and its range was
        place = Cursor.read(it)
        assert any(Cursor.read(low) <= place <= Cursor.read(high) for low, high in gaps), it
    assert set(got) <= set(ever)
    assert missing.isdisjoint(written.shown(R))


@given(STEPS, st.booleans())
@settings(max_examples=120, deadline=None)
def test_uc_012_the_union_of_what_is_told_is_the_ledger(
    steps: list[tuple[str, int]], owned: bool
) -> None:
    """UC-012, S-60, S-66: drops and resumes during floods, notes and pruning (S-71)."""
    run(resumed(steps, owned=owned))


def test_uc_012_without_a_look_after_the_join_entries_are_missed() -> None:
    """The negative control: what is kept between the last page and the join is looked for."""

    async def play() -> None:
        written = WrittenLedgers()
        written.fact(R)
        async with hub_of(written, R) as hub:
            subscription = hub.subscribe(R)
            await subscription.open()
            written.fact(R)  # kept after the page was read: nobody is live yet
            client = Client()
            with patch.object(Tail, "look"):
                async with asyncio.timeout(5):
                    await client.read_until(subscription, "2")

    with pytest.raises(TimeoutError):
        run(play())


def test_s_70_handoff_from_replay_to_live_under_load() -> None:
    """A flood goes on while the journal is read: nothing is missing, nothing twice, then live."""

    async def play() -> None:
        written = WrittenLedgers(pause=0.001)
        for _ in range(500):
            written.fact(R)
        async with hub_of(written, R, settings=HubSettings(page=50)) as hub:
            flooding = asyncio.create_task(flood(written))
            client = await clients_of(hub, 3)
            await flooding
            for it in client:
                assert it.cursors == [str(n) for n in range(1, 1501)]
                assert it.names.count("live") == 1

    async def flood(written: WrittenLedgers) -> None:
        for _ in range(1_000):
            written.fact(R)
            await asyncio.sleep(0.0001)

    async def clients_of(hub: Hub, count: int) -> list[Client]:
        async def follow(number: int) -> Client:
            await asyncio.sleep(number * 0.01)
            client = Client()
            subscription = hub.subscribe(R)
            await client.read_until(subscription, "1500")
            subscription.close()
            return client

        return list(await asyncio.gather(*(follow(it) for it in range(count))))

    run(play())


def test_f_43_one_who_never_reads_beside_99_that_do() -> None:
    """F-43, S-70: it delays nobody, costs nothing that waits, and goes on from the journal."""

    async def play() -> None:
        written = WrittenLedgers()
        written.fact(R)
        text = "x" * 2_000
        async with hub_of(written, R) as hub:
            stalled = hub.subscribe(R)
            slow = Client()
            while "live" not in slow.names:
                slow.take(await anext(stalled))
            tasks = [asyncio.create_task(read(hub.subscribe(R))) for _ in range(99)]
            await settled()
            for _ in range(300):
                written.fact(R, text=text)
                await asyncio.sleep(0)
            for client in await asyncio.gather(*tasks):
                assert client.cursors == [str(n) for n in range(1, 302)]
                assert client.names.count("replay") == 0
            kept = sum(len(it) for tail in hub._tails.values() for it in tail.batches(tail.begin))
            assert kept < 2 * KEPT / 1_000
            assert hub.counts.replays == 0

            await slow.read_until(stalled, "301")
            while slow.names[-1] != "live":
                slow.take(await anext(stalled))
            assert slow.cursors == [str(n) for n in range(1, 302)]
            assert [it for it in slow.names if it != "event"] == ["hello", "live", "replay", "live"]
            assert hub.counts.replays == 1
            stalled.close()

    async def read(subscription: HubSubscription) -> Client:
        client = Client()
        await client.read_until(subscription, "301")
        subscription.close()
        return client

    run(play())


def test_s_71_a_cursor_behind_the_end_is_refused_and_never_waited_for() -> None:
    """S-71: of another server, or of a file that was put back; the error has the end."""

    async def play() -> None:
        written = WrittenLedgers()
        written.fact(R)
        async with hub_of(written) as hub:
            for ahead in (Cursor(2), Cursor(1, 1), Cursor(10**18)):
                subscription = hub.subscribe(R, after=ahead)
                with pytest.raises(CursorAhead) as caught:
                    await subscription.open()
                assert (caught.value.head, caught.value.code) == ("1", "cursor_ahead")
                subscription.close()
            at_end = hub.subscribe(R, after=Cursor(1))
            assert json.loads((await at_end.open()).data)["head"] == "1"
            at_end.close()
            unknown = hub.subscribe("nobody")
            with pytest.raises(UnknownRun):
                await unknown.open()
            unknown.close()
            assert hub.subscribers == 0

    run(play())


@pytest.mark.parametrize("owned", [True, False])
def test_a_file_put_back_under_living_streams_ends_them(owned: bool) -> None:
    """Section 14: streams end with cursor_ahead; nobody waits until the ledger is as long again."""

    async def play() -> None:
        written = WrittenLedgers()
        for _ in range(5):
            written.fact(R)
        async with hub_of(written, *([R] if owned else [])) as hub:
            following = asyncio.create_task(all_of(hub.subscribe(R)))
            await settled()
            written.put_back(R, count=3)
            if owned:
                written.fact(R)
            client = await following
            assert client.cursors == ["1", "2", "3", "4", "5"]
            assert client.told[-1][0] == "error"
            assert client.told[-1][1]["problem"]["title"] == "cursor_ahead"
            assert hub.subscribers == 0

    run(play())


def test_s_71_a_pruned_range_is_a_gap_and_not_an_error() -> None:
    """S-71, S-64: from, to, why; the entry behind it names its end (S-60)."""

    async def play() -> None:
        written = WrittenLedgers()
        for _ in range(2):
            written.fact(R)
            written.note(R, n=1)
            written.note(R, n=2)
        written.fact(R)
        written.prune(R, keep=1)
        async with hub_of(written) as hub:
            client = await all_of(hub.subscribe(R, follow=False))
            assert client.names == [
                "hello",
                "event",
                "gap",
                "event",
                "gap",
                "event",
                "event",
                "end",
            ]
            assert [fields for name, fields in client.told if name == "gap"] == [
                {"from": "1.1", "to": "1.2", "reason": "pruned"},
                {"from": "2.1", "to": "2.1", "reason": "pruned"},
            ]
            resumed = Client("2.1")
            inside = hub.subscribe(R, after=Cursor(2, 1), follow=False)
            async for batch in inside:
                resumed.take(batch)
            assert resumed.cursors == ["2.2", "3"]

    run(play())


def test_f_45_without_follow_it_ends_after_the_head_that_was_said() -> None:
    """F-45: what is kept meanwhile is another stream's."""

    async def play() -> None:
        written = WrittenLedgers()
        for _ in range(600):
            written.fact(R)
        async with hub_of(written, R) as hub:
            subscription = hub.subscribe(R, follow=False)
            client = Client()
            client.take(await anext(subscription))
            written.fact(R)
            async for batch in subscription:
                client.take(batch)
            assert client.cursors == [str(n) for n in range(1, 601)]
            assert client.told[-1] == ("end", {"cursor": "600"})
            assert "live" not in client.names

    run(play())


def test_f_45_a_hub_that_stops_says_so_before_all_that_waits() -> None:
    """F-45: bye, and the end; who comes then is told the same."""

    async def play() -> None:
        written = WrittenLedgers()
        for _ in range(600):
            written.fact(R)
        async with hub_of(written, R) as hub:
            subscription = hub.subscribe(R)
            client = Client()
            client.take(await anext(subscription))
            hub.close()
            async for batch in subscription:
                client.take(batch)
            late = await all_of(hub.subscribe(R))
        assert client.told[-1] == ("bye", {"retry": 2.0})
        assert late.names[-1] == "bye"
        assert hub.subscribers == 0

    run(play())


def test_the_bounds_of_subscribers() -> None:
    """Section 15: of a run, of a server; who leaves makes room."""

    async def play() -> None:
        written = WrittenLedgers()
        written.fact(R)
        bounds = HubSettings(subscribers=3, of_a_run=2)
        async with hub_of(written, settings=bounds) as hub:
            held = [hub.subscribe(R) for _ in range(2)]
            with pytest.raises(Overloaded, match="they may have 2 and 3"):
                hub.subscribe(R)
            other = hub.subscribe("other")
            with pytest.raises(Overloaded):
                hub.subscribe("third")
            assert (hub.is_watched(R), hub.is_watched("third")) == (True, False)
            held[0].close()
            held[0].close()
            hub.subscribe("third").close()
            held[1].close()
            other.close()
            assert (hub.is_watched(R), hub.subscribers) == (False, 0)

    run(play())


def test_f_43_who_reads_nothing_for_60_s_is_cut_off_and_who_reads_slowly_is_not() -> None:
    """F-43, F-42: cut after 60 s; one that only has nothing to hear is shown that it lives."""

    async def play() -> None:
        written = WrittenLedgers()
        written.fact(R)
        cut: list[str] = []
        async with hub_of(written, R) as hub:
            dead, slow, idle = (hub.subscribe(R) for _ in range(3))
            waits = [100]
            slow.unread = lambda: waits[0]
            for it, name in ((dead, "dead"), (slow, "slow")):
                it.when_cut = lambda name=name: cut.append(name)
                await anext(it)
            beats = asyncio.create_task(beats_of(idle))
            for _ in range(59):
                await asyncio.sleep(1)
                waits[0] -= 1
            assert cut == []
            for _ in range(20):
                await asyncio.sleep(1)
                waits[0] -= 1
            assert cut == ["dead"]
            assert hub.counts.cut == 1
            await asyncio.sleep(62)
            assert cut == ["dead", "slow"]
            idle.close()
            assert 8 <= await beats <= 10

    async def beats_of(subscription: HubSubscription) -> int:
        return sum([1 async for batch in subscription if not batch])

    run(play())


def test_s_75_deltas_are_joined_while_they_wait_and_newest_wins() -> None:
    """S-75, F-8: no cursor, never replayed; beyond 256 KiB the oldest gives way, and is counted."""

    async def play() -> None:
        written = WrittenLedgers()
        written.fact(R)
        async with hub_of(written, R) as hub:
            hub.pass_on(R, Piece(item="said/1", kind="text", text="nobody hears"))
            subscription = hub.subscribe(R)
            client = Client()
            while "live" not in client.names:
                client.take(await anext(subscription))
            for text in ("a", "b", "c"):
                hub.pass_on(R, Piece(item="said/1", kind="text", text=text))
            hub.pass_on(R, Piece(item="said/1", kind="thought", text="hm"))
            client.take(await anext(subscription))
            assert client.told[2:] == [
                ("delta", {"run_id": R, "item": "said/1", "kind": "text", "text": "abc"}),
                ("delta", {"run_id": R, "item": "said/1", "kind": "thought", "text": "hm"}),
            ]
            for number in range(300):
                hub.pass_on(R, Piece(item="said/1", kind="text", text=f"{number % 10}" * 1_024))
            client.take(await anext(subscription))
            name, told = client.told[-1]
            assert (name, told["dropped"] + len(told["text"])) == ("delta", 300 * 1_024)
            assert len(told["text"]) == WAITING
            assert told["text"].endswith("9" * 1_024)

            hub.pass_on(R, Piece(item="said/1", kind="text", text="superseded"))
            written.note(R, Domain.MESSAGE, id="said/1", text="whole")
            hub.pass_on(R, Piece(item="said/2", kind="text", text="next"))
            written.fact(R)
            before = len(client.told)
            await client.read_until(subscription, "2")
            hub.pass_on(R, Piece(item="said/1", kind="text", text="late"))
            hub.pass_on(R, Piece(item="said/2", kind="text", text="!"))
            while len(client.told) == before or client.told[-1][1].get("text") != "!":
                client.take(await anext(subscription))
                if "next!" in str(client.told[-1]):
                    break
            texts = "".join(told["text"] for _, told in client.told[before:])
            assert texts in {"next!", "supersedednext!"}
            assert "late" not in str(client.told)
            subscription.close()
            late = hub.subscribe(R, after=Cursor(2))
            quiet = Client("2")
            while "live" not in quiet.names:
                quiet.take(await anext(late))
            assert "delta" not in quiet.names
            late.close()

    run(play())


def test_s_56_children_are_mixed_in_if_asked() -> None:
    """S-56: runs `<run>/<thread>` whose manifest names the parent; a stranger's id is none."""

    async def play() -> None:
        written = WrittenLedgers()
        child = child_id(R, "t/1")
        grandchild = child_id(child, "t2")
        stranger = child_id(R, "other")
        assert child == "r%2F1/t%2F1"
        written.fact(R)
        for run_id, parent in ((child, R), (stranger, None)):
            written.note(run_id, Domain.SESSION, parent=parent)
            written.fact(run_id)
        async with hub_of(written, R) as hub:
            subscription = hub.subscribe(R, children=True)
            seen: dict[str, list[str]] = {}
            following = asyncio.create_task(take(subscription, seen))
            await settled()
            written.note(grandchild, Domain.SESSION, parent=child)
            written.fact(grandchild)
            await asyncio.sleep(1)
            written.fact(child)
            written.fact(R)
            await asyncio.sleep(1)
            subscription.close()
            await following
            assert seen == {R: ["1", "2"], child: ["1", "2"], grandchild: ["1"]}
            assert await hub.family.of(R) == (child, grandchild)

    async def take(subscription: HubSubscription, seen: dict[str, list[str]]) -> None:
        async for batch in subscription:
            for it in batch:
                if isinstance(it, Sent):
                    seen.setdefault(it.run_id, []).append(str(it.cursor))

    run(play())


@pytest.mark.parametrize(
    ("run_id", "parent"),
    [
        ("call/p%2F%25/1/t1/c1", "p/%"),
        ("call/p/1/t1/c%2F1", "p"),
        ("call//1/t1/c1", None),
        ("call/p/1/t1", None),
        ("calls/p/1/t1/c1", None),
        ("call/p", "call"),
        ("p", None),
    ],
)
def test_s_56_an_agent_that_is_a_tool_tells_its_parent_by_its_id(
    run_id: str, parent: str | None
) -> None:
    """S-56: the run of its call, which has no manifest that could."""
    assert parent_in(run_id) == parent


def test_a_journal_that_fails_for_a_while_is_read_again() -> None:
    """Then the stream goes on; one that stays broken ends it, and says so."""

    async def play() -> None:
        written = WrittenLedgers()
        written.fact(R)
        async with hub_of(written, R) as hub:
            subscription = hub.subscribe(R)
            client = Client()
            while "live" not in client.names:
                client.take(await anext(subscription))
            written.failures += [JournalError("locked")] * 3
            written.fact(R)
            await client.read_until(subscription, "2")
            written.failures += [JournalError("broken")] * 30
            written.fact(R)
            async for batch in subscription:
                client.take(batch)
            assert client.told[-1][1]["problem"]["title"] == "journal_failed"

    run(play())


def test_s_79_a_connection_that_ends_leaves_nothing_behind() -> None:
    """S-79: closed at any moment, also while a page is read."""

    async def play() -> None:
        written = WrittenLedgers(pause=0.01)
        for _ in range(1_000):
            written.fact(R)
        async with hub_of(written, R) as hub:
            for steps in range(12):
                subscription = hub.subscribe(R)
                reading = asyncio.create_task(all_of(subscription))
                await asyncio.sleep(0.005 * steps)
                if steps % 2:
                    reading.cancel()
                    subscription.close()
                    await asyncio.gather(reading, return_exceptions=True)
                else:
                    subscription.close()
                    await reading
            await settled()
            assert (hub.subscribers, hub._tails) == (0, {})

    run(play())


def test_s_77_who_asks_for_the_same_page_at_once_is_given_the_same() -> None:
    """S-77: a thousand that come back after a restart are not a thousand reads of each page."""

    async def play() -> None:
        written = WrittenLedgers(pause=0.01)
        for _ in range(600):
            written.fact(R)
        async with hub_of(written, R) as hub:
            found = await asyncio.gather(
                *(all_of(hub.subscribe(R, follow=False)) for _ in range(50))
            )
            assert all(it.cursors == found[0].cursors for it in found)
            assert len(written.reads) < 10

    run(play())


def test_s_70_those_who_catch_up_in_the_same_second_share_pages_that_are_held_for_no_longer() -> (
    None
):
    """S-70, F-43: one read a page for all; the last page, which grows, is read by each."""

    async def play() -> None:
        written = WrittenLedgers()
        for _ in range(95):
            written.fact(R)
        async with hub_of(written, settings=HubSettings(page=10)) as hub:
            for _ in range(5):
                client, subscription = Client(), hub.subscribe(R, follow=False)
                async for batch in subscription:
                    client.take(batch)
                assert client.cursors == [str(number) for number in range(1, 96)]
            assert len(written.reads) == 9 + 5
            assert len(hub._reads) == 9
            await asyncio.sleep(1.1)
            assert not hub._reads
            for _ in range(200):
                written.fact(R)
            client, subscription = Client(), hub.subscribe(R, follow=False)
            async for batch in subscription:
                client.take(batch)
            assert client.cursors[-1] == "295"
            assert len(hub._reads) == HELD

    run(play())


def test_start_is_before_everything() -> None:
    """S-71: the empty cursor is the beginning."""
    assert Cursor.read("") == START


def test_s_77_a_run_of_another_process_is_looked_at_as_soon_as_the_journal_hears() -> None:
    """UC-012, D-53: nobody polls for minutes here, and the entry is there in a moment."""

    async def play() -> None:
        written = WrittenLedgers(hears=True)
        written.fact(R)
        async with hub_of(written, settings=HubSettings(poll=600.0)) as hub:
            client, subscription = Client(), hub.subscribe(R)
            await client.read_until(subscription, "1")
            await settled()
            written.fact(R)
            written.hinted.set()
            async with asyncio.timeout(1):
                await client.read_until(subscription, "2")
            subscription.close()

    run(play())


def test_s_77_many_hints_and_many_runs_are_one_question_now_and_then() -> None:
    """D-53: whatever is followed, and however much the journal hears."""

    async def play() -> None:
        written = WrittenLedgers(hears=True)
        names = [f"r/{number}" for number in range(20)]
        for name in names:
            written.fact(name)
        async with hub_of(written, settings=HubSettings(poll=0.25)) as hub:
            subscriptions = [hub.subscribe(name) for name in names]
            for name, subscription in zip(names, subscriptions, strict=True):
                reader = Client()
                while reader.last != "1":
                    reader.take(await anext(subscription), name)
            before = written.ends_asked
            for _ in range(1_000):
                written.hinted.set()
                await asyncio.sleep(0.001)
            assert 2 <= written.ends_asked - before <= 25
            for subscription in subscriptions:
                subscription.close()

    run(play())
