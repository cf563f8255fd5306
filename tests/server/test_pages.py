"""Pages of a run's events, the same bytes as in a stream."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnlock import Decide, Run
from turnlock.models.codec import to_json
from turnlock.runtime.journal.contract import Journal, open_journal
from turnlock.runtime.journal.ledger import START, Domain, Note
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.server import pages, sse
from turnlock.server.hub import Hub
from turnlock.server.shown import Sent

from .faces import Opened, opened
from .runs import RUN, gated, opened_turn, shared

LINES = {"Accept": "application/x-ndjson"}
EVENTS = "/v1/runs/r/events"


async def spoken(journal: Journal, run: Run = RUN) -> None:
    """A run with facts, messages, observations, and a manifest that nobody is shown."""
    await journal.declare(run)
    notes = [
        Note(domain=Domain.SESSION, kind="session", body={"version": 1}, at=1.0),
        Note(domain=Domain.MESSAGE, kind="user", body={"text": "pay\n“é”\r"}, at=2.0, id="said/1"),
        Note(
            domain=Domain.ITEM,
            kind="item/started",
            body={"n": 1},
            at=3.0,
            correlation={"thread_id": "T", "completeness": "partial"},
        ),
    ]
    await journal.note(run.run_id, fence=None, notes=notes)
    await shared(journal, opened_turn(gated("a"), gated("b")), run=run)
    said = Note(domain=Domain.MESSAGE, kind="assistant", body={"text": "I pay."}, at=4.0)
    await journal.note(run.run_id, fence=None, notes=[said])
    denied = Decide(turn_id="t", invocation_id="a", approved=False, decided_by="ada")
    await shared(journal, denied, run=run)


CURSORS = ["0.2", "0.3", "1", "2", "3", "3.1", "4"]


async def page(it: Opened, query: str = "") -> Any:
    answer = await it.client().get(f"{EVENTS}{query}")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    return answer.json()


def test_f_33_a_page_has_the_envelopes_and_where_to_go_on() -> None:
    async def play() -> None:
        async with MemoryJournal() as journal:
            await spoken(journal)
            async with opened(journal=journal, endpoints=pages.ENDPOINTS) as it:
                whole = await page(it)
                assert set(whole) == {"events", "next", "head"}
                assert [event["cursor"] for event in whole["events"]] == CURSORS
                assert (whole["next"], whole["head"]) == ("4", "4")
                befores = [event["after"] for event in whole["events"]]
                assert befores == ["", *CURSORS[:-1]]
                facts = [event["fact"] for event in whole["events"] if "fact" in event]
                kept = [json.loads(to_json(fact)) async for fact in journal.facts("r")]
                assert facts == kept
                notes = [event["note"] for event in whole["events"] if "note" in event]
                assert [note["domain"] for note in notes] == ["message", "item", "message"]

    asyncio.run(play())


@settings(max_examples=25, deadline=None)
@given(limits=st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_f_33_pages_of_any_size_are_the_whole(limits: list[int]) -> None:
    """Each entry once, in order, and the last page ends at the head."""

    async def play() -> None:
        async with MemoryJournal() as journal:
            await spoken(journal)
            async with opened(journal=journal, endpoints=pages.ENDPOINTS) as it:
                whole = (await page(it))["events"]
                found: list[Any] = []
                after, at = "", 0
                while True:
                    limit = limits[at % len(limits)]
                    some = await page(it, f"?after={after}&limit={limit}")
                    assert len(some["events"]) <= limit
                    found += some["events"]
                    after, at = some["next"], at + 1
                    if after == some["head"]:
                        break
                assert found == whole
                assert (await page(it, f"?after={after}"))["events"] == []

    asyncio.run(play())


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("after=5", 409, "cursor_ahead"),
        ("after=4.1", 409, "cursor_ahead"),
        ("after=99999999999999999999", 409, "cursor_ahead"),
        ("after=01", 400, "bad_cursor"),
        ("after=1.0", 400, "bad_cursor"),
        ("after=-1", 400, "bad_cursor"),
        ("after=%D9%A1", 400, "bad_cursor"),
        ("after=1%0A", 400, "bad_cursor"),
        ("after=+1", 400, "bad_cursor"),
        ("limit=0", 400, "bad_request"),
        ("limit=1001", 400, "bad_request"),
        ("children=2", 400, "bad_request"),
        ("follow=abc", 400, "bad_request"),
        ("diagnostics=on", 400, "bad_request"),
    ],
)
def test_s_71_what_is_no_cursor_and_what_is_ahead(query: str, status: int, code: str) -> None:
    """Never waited for; as lines alike."""

    async def play() -> None:
        async with MemoryJournal() as journal:
            await spoken(journal)
            async with opened(journal=journal, endpoints=pages.ENDPOINTS) as it:
                for headers in ({}, LINES):
                    answer = await it.client().get(f"{EVENTS}?{query}", headers=headers)
                    assert (answer.status_code, answer.json()["title"]) == (status, code)
                    if code == "cursor_ahead":
                        assert answer.json()["head"] == "4"
                answer = await it.client().get("/v1/runs/nobody/events")
                assert (answer.status_code, answer.json()["title"]) == (404, "unknown_run")

    asyncio.run(play())


def test_s_63_uc_011_every_event_has_its_correlation_live_replayed_and_from_a_page() -> None:
    """The very bytes (F-4, F-7): of a stream that was live, of one from the beginning, of a page
    and of lines.

    Entries of own runs have none: null; what an adapter correlated is what was kept.
    """

    async def play() -> None:
        async with MemoryJournal() as journal:
            await journal.declare(RUN)
            async with (
                Hub(journal=journal) as hub,
                opened(
                    journal=journal, hub=hub, endpoints=(*pages.ENDPOINTS, *sse.ENDPOINTS)
                ) as it,
            ):
                living = asyncio.create_task(followed(hub, upto=len(CURSORS)))
                await asyncio.sleep(0)
                await spoken(journal)
                live = await asyncio.wait_for(living, 10.0)
                replayed = await followed(hub, upto=len(CURSORS))
                paged = (await it.client().get(EVENTS)).content
                lines = (await it.client().get(EVENTS, headers=LINES)).content.splitlines()

                assert live == replayed == lines
                assert b"[" + b",".join(live) + b"]" in paged
                correlations = [json.loads(line)["correlation"] for line in live]
                assert [it for it in correlations if it is not None] == [
                    {"thread_id": "T", "completeness": "partial"}
                ]
                ids = [json.loads(line)["event_id"] for line in live]
                assert ids == [f"event/r/{cursor}" for cursor in CURSORS]

    asyncio.run(play())


async def followed(hub: Hub, *, upto: int) -> list[bytes]:
    found: list[bytes] = []
    async with aclosing(hub.subscribe("r", after=START)) as subscription:
        async for batch in subscription:
            found += [shown.envelope for shown in batch if isinstance(shown, Sent)]
            if len(found) >= upto:
                break
    return found


def test_f_33_lines_without_a_limit_are_all_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many pages; with one a page of it."""
    monkeypatch.setattr(pages, "PAGE", 2)

    async def play() -> None:
        async with MemoryJournal() as journal:
            await spoken(journal)
            async with opened(journal=journal, endpoints=pages.ENDPOINTS) as it:
                client = it.client(Accept="application/x-ndjson")
                whole = await client.get(EVENTS)
                assert whole.headers["content-type"].startswith("application/x-ndjson")
                assert [json.loads(line)["cursor"] for line in whole.text.splitlines()] == CURSORS
                some = await client.get(f"{EVENTS}?after=1&limit=2")
                assert [json.loads(line)["cursor"] for line in some.text.splitlines()] == ["2", "3"]
                none = await client.get(f"{EVENTS}?after=4")
                assert none.content == b""

    asyncio.run(play())


def test_s_64_what_was_pruned_is_a_gap_in_a_page_and_in_lines() -> None:
    async def play() -> None:
        async with MemoryJournal() as journal:
            await journal.declare(RUN)
            old = [
                Note(domain=Domain.ITEM, kind="x", body={"n": at}, at=float(at)) for at in range(3)
            ]
            await journal.note("r", fence=None, notes=old)
            await shared(journal, opened_turn())
            assert await journal.prune("r", fence=None, now=1e10) == 3
            async with opened(journal=journal, endpoints=pages.ENDPOINTS) as it:
                whole = await page(it)
                assert whole["gaps"] == [{"from": "0.1", "to": "0.3", "reason": "pruned"}]
                assert [event["after"] for event in whole["events"]] == ["0.3", "1"]
                lines = (await it.client().get(EVENTS, headers=LINES)).text.splitlines()
                assert json.loads(lines[0]) == {"gap": whole["gaps"][0]}

    asyncio.run(play())


@pytest.mark.parametrize("digits", [18, 19, 20, 4_400])
def test_s_71_a_cursor_of_any_length_is_ahead_in_a_file_too(digits: int, tmp_path: Path) -> None:
    """S-71: decimal has no bound; a store that counts to 2**63 says so as any other."""

    async def play() -> None:
        async with await open_journal(tmp_path / "agent.db") as journal:
            await spoken(journal)
            async with opened(journal=journal, endpoints=pages.ENDPOINTS) as it:
                for cursor in ("9" * digits, "4." + "9" * digits):
                    answer = await it.client().get(
                        f"{EVENTS}?after={cursor}", headers={"Accept": "application/json"}
                    )
                    assert (answer.status_code, answer.json()["title"]) == (409, "cursor_ahead")

    asyncio.run(play())


def test_s_56_with_children_the_runs_of_sub_agents_follow() -> None:
    """Behind the run's own last event; not on a page before it."""

    async def play() -> None:
        async with MemoryJournal() as journal:
            await spoken(journal)
            child = Run(run_id="r/thread")
            await journal.declare(child)
            manifest = Note(domain=Domain.SESSION, kind="session", body={"parent": "r"}, at=1.0)
            await journal.note("r/thread", fence=None, notes=[manifest])
            await shared(journal, opened_turn(), run=child)
            async with (
                Hub(journal=journal) as hub,
                opened(journal=journal, hub=hub, endpoints=pages.ENDPOINTS) as it,
            ):
                whole = await page(it, "?children=1")
                assert [event["run_id"] for event in whole["events"]] == ["r"] * 7 + [
                    "r/thread"
                ] * 2
                assert (whole["next"], whole["head"]) == ("4", "4")
                first = await page(it, "?children=1&limit=2")
                assert [event["run_id"] for event in first["events"]] == ["r"] * 2
                lines = await it.client().get(f"{EVENTS}?children=1", headers=LINES)
                assert len(lines.text.splitlines()) == 9

    asyncio.run(play())
