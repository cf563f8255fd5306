"""Runs as they stand: the list for people, and the view of one."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.calls_made import calls_made

from turnlock import Acknowledge, Claim, Decide, Lose, Report, Run
from turnlock.models.deliveries import Interrupt, Match, Scope
from turnlock.models.errors import UnknownRun
from turnlock.models.values import arguments_digest
from turnlock.runtime.journal.contract import Journal, open_journal
from turnlock.runtime.journal.ledger import Domain, Note
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.listing import told_entry
from turnlock.server import deciding, pages, pictures, reading
from turnlock.server.routing import Role

from ..runtime.faulty_journal import WrappedJournal
from .faces import Opened, opened
from .peers import serving
from .runs import RUN, approval, free, gated, opened_turn, shared, told

ENDPOINTS = (*reading.ENDPOINTS, *deciding.ENDPOINTS)


@asynccontextmanager
async def facing(journal: Journal) -> AsyncGenerator[Opened]:
    async with opened(journal=journal, endpoints=ENDPOINTS) as it:
        yield it


async def got(it: Opened, path: str) -> Any:
    answer = await it.client().get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


ENTRY = {
    "run_id",
    "sequence",
    "status",
    "waiting",
    "in_doubt",
    "began_at",
    "latest_at",
    "owned",
}
WAITS = {"turn_id", "invocation_id", "tool_name", "waiting_since"}


WRITTEN_BEFORE = Path(__file__).parents[1] / "data/journals/0.1/journal.db"


def test_f_30_runs_of_version_0_1_are_found_by_how_they_stand(tmp_path: Path) -> None:
    """Once a server has begun: filtered, first in the list and counted, as their facts say."""

    async def play() -> None:
        file = tmp_path / "agent.db"
        shutil.copy(WRITTEN_BEFORE, file)
        async with await open_journal(file) as journal:
            entries = [it async for it in journal.run_entries()]
            assert any(it.status is None for it in entries)
            stands = {it.run.run_id: await told_entry(journal, it) for it in entries}
            waiting = {name for name, it in stands.items() if it.waiting}
            doubtful = {name for name, it in stands.items() if it.status == "in_doubt"}
            assert waiting
            async with serving(journal, real=True), facing(journal) as it:
                async with asyncio.timeout(20):
                    while any([one.status is None async for one in journal.run_entries()]):  # noqa: ASYNC110 - nobody tells
                        await asyncio.sleep(0.01)
                listed = await got(it, "/v1/runs")
                assert listed["waiting"] == len(waiting)
                first = listed["runs"][: len(waiting)]
                assert {one["run_id"] for one in first} == waiting
                assert {"invocation_id", "tool_name", "waiting_since"} <= first[0].keys()
                for query, expected in (("waiting=1", waiting), ("status=in_doubt", doubtful)):
                    found = await got(it, f"/v1/runs?{query}")
                    assert {one["run_id"] for one in found["runs"]} == expected

    asyncio.run(play())


def test_f_30_an_entry_tells_what_the_list_of_runs_shows() -> None:
    """Exactly these fields: those of a call that waits only where one does."""

    async def play() -> None:
        async with MemoryJournal() as journal, facing(journal) as it:
            assert await got(it, "/v1/runs") == {"runs": [], "next": None, "waiting": 0}
            await journal.declare(Run(run_id="new"))
            await shared(journal, opened_turn(gated("a"), gated("b")))
            idle = Run(run_id="idle")
            denied = Decide(turn_id="t", invocation_id="a", approved=False)
            await shared(journal, opened_turn(), denied, run=idle)

            page = await got(it, "/v1/runs")
            assert page["waiting"] == 1
            by_id = {run["run_id"]: run for run in page["runs"]}
            assert page["runs"][0]["run_id"] == "r", "who waits stands first"
            waits = by_id["r"]
            assert set(waits) == ENTRY | WAITS
            assert (waits["status"], waits["waiting"], waits["in_doubt"]) == (
                "awaiting_approval",
                2,
                0,
            )
            assert (waits["turn_id"], waits["invocation_id"], waits["tool_name"]) == (
                "t",
                "a",
                "pay",
            )
            assert waits["began_at"] <= waits["waiting_since"] <= waits["latest_at"]
            assert waits["owned"] is False
            assert set(by_id["idle"]) == ENTRY
            assert by_id["idle"]["status"] == "processing_results"
            assert by_id["new"] == {
                "run_id": "new",
                "sequence": 0,
                "status": "idle",
                "waiting": 0,
                "in_doubt": 0,
                "began_at": None,
                "latest_at": None,
                "owned": False,
            }

    asyncio.run(play())


def test_f_30_pages_hold_each_run_once_whatever_is_picked() -> None:
    async def play() -> None:
        async with MemoryJournal() as journal, facing(journal) as it:
            for at in range(7):
                run = Run(run_id=f"run {at}/%")
                calls = (gated(),) if at % 2 else (free("a"),)
                await shared(journal, opened_turn(*calls), run=run)

            async def every(query: str) -> list[str]:
                found: list[str] = []
                place = ""
                while True:
                    page = await got(it, f"/v1/runs?limit=2{query}{place}")
                    assert page["waiting"] == 3
                    assert len(page["runs"]) <= 2
                    found += [run["run_id"] for run in page["runs"]]
                    if page["next"] is None:
                        return found
                    place = f"&before={quote(page['next'])}"

            waiting = [f"run {at}/%" for at in (1, 3, 5)]
            others = [f"run {at}/%" for at in (6, 4, 2, 0)]
            assert await every("") == waiting + others
            assert await every("&waiting=1") == waiting
            assert await every("&waiting=0") == others
            assert await every("&status=executing") == others
            assert await every("&status=in_doubt") == []

    asyncio.run(play())


@pytest.mark.parametrize(
    ("query", "at"),
    [
        ("status=busy", "status"),
        ("status=", "status"),
        ("status=IDLE", "status"),
        ("waiting=yes", "waiting"),
        ("waiting=2", "waiting"),
        ("limit=0", "limit"),
        ("limit=-1", "limit"),
        ("limit=1001", "limit"),
        ("limit=1e3", "limit"),
        ("limit=%D9%A1", "limit"),
        ("before=", "before"),
        ("before=r", "before"),
        ("before=%00", "before"),
        ("before=W10", "before"),
        ("limit=1&limit=2", "limit"),
    ],
)
def test_f_30_what_cannot_be_picked_is_a_bad_request(query: str, at: str) -> None:
    async def play() -> None:
        async with MemoryJournal() as journal, facing(journal) as it:
            answer = await it.client().get(f"/v1/runs?{query}")
            assert (answer.status_code, answer.json()["title"]) == (400, "bad_request")
            assert answer.json()["at"] == f"query.{at}"

    asyncio.run(play())


def test_f_30_a_thousand_runs_are_listed_without_reading_a_fact(tmp_path: Any) -> None:
    """The goal is 50 ms (face.md 11, `benchmarks/bench_listing.py`)."""

    class Unread(WrappedJournal):
        async def read(self, run_id: str, **page: Any) -> Any:
            raise AssertionError(run_id)

    async def play() -> None:
        async with await open_journal(tmp_path / "runs.db") as journal:
            for at in range(1_000):
                await journal.declare(Run(run_id=f"r{at}"))
            await shared(journal, opened_turn())
            async with facing(Unread(journal)) as it:
                await got(it, "/v1/runs?limit=1000")
                with calls_made() as calls:
                    page = await got(it, "/v1/runs?limit=1000")
                assert len(page["runs"]) == 1_000
                assert calls.made < 24_000  # some 8,000

    asyncio.run(play())


def test_f_31_the_view_of_a_run() -> None:
    """What is absent is absent; the call is the one that a receipt shows."""

    async def play() -> None:
        async with MemoryJournal() as journal, facing(journal) as it:
            await shared(journal, opened_turn(gated("a"), free("b", "look")))
            view = await got(it, "/v1/runs/r")
            turn = view.pop("turn")
            capabilities = view.pop("capabilities")
            assert view == {
                "run_id": "r",
                "kind": "own",
                "session": "inactive",
                "cursor": "2",
                "status": "awaiting_approval",
                "grants": [],
                "owed": [
                    {
                        "type": "execute",
                        "effect_id": "execute/r/1/t/b/1",
                        "turn_id": "t",
                        "invocation_id": "b",
                        "attempt": 1,
                        "tool_name": "look",
                        "idempotency_key": "call/r/1/t/b",
                    }
                ],
                "owned": False,
                "findings": [],
            }
            assert capabilities["edit_arguments"] is True
            assert (turn["turn_id"], turn["epoch"], turn["phase"]) == ("t", 1, "SEALED")
            assert [call["call_id"] for call in turn["calls"]] == ["1.a", "1.b"]
            assert turn["calls"][0]["arguments_digest"] == arguments_digest({"amount": 12})

            client = it.client(Role.DECIDE)
            decided = (await client.post("/v1/runs/r/decisions", json=approval())).json()
            after = await got(it, "/v1/runs/r")
            assert after["turn"]["calls"][0] == decided["call"]
            assert after["cursor"] == "3"
            assert after["status"] == "executing"

    asyncio.run(play())


def test_f_31_grants_and_what_is_owed() -> None:
    async def play() -> None:
        async with MemoryJournal() as journal, facing(journal) as it:
            granting = Decide(
                turn_id="t",
                invocation_id="a",
                approved=True,
                decided_by="ada",
                scope=Scope.SESSION,
                match=Match.TOOL,
            )
            claim = Claim(turn_id="t", invocation_id="a", attempt=1, worker="w")
            report = Report(turn_id="t", invocation_id="a", result=1)
            await shared(journal, opened_turn(), granting, claim, report)
            view = await got(it, "/v1/runs/r")
            assert "turn" not in view
            assert view["status"] == "processing_results"
            assert view["grants"] == [
                {
                    "grant_id": "grant/r/1",
                    "number": 1,
                    "tool_name": "pay",
                    "match": "tool",
                    "arguments_digest": arguments_digest({"amount": 12}),
                    "scope": "session",
                }
            ]
            assert view["owed"] == [
                {"type": "continue", "effect_id": "continue/r/1/t", "turn_id": "t"}
            ]

    asyncio.run(play())


def test_f_31_who_subscribes_after_the_cursor_misses_nothing() -> None:
    """It is that of an entry which is shown (S-60): never a manifest's, and never one to come."""

    async def play() -> None:
        async with MemoryJournal() as journal, facing(journal) as it:
            await journal.declare(RUN)
            assert (await got(it, "/v1/runs/r"))["cursor"] == ""
            manifest = Note(domain=Domain.SESSION, kind="session", body={"v": 1}, at=1.0)
            await journal.note("r", fence=None, notes=[manifest])
            assert (await got(it, "/v1/runs/r"))["cursor"] == ""
            said = Note(domain=Domain.MESSAGE, kind="user", body={"text": "hi"}, at=2.0)
            await journal.note("r", fence=None, notes=[said])
            assert (await got(it, "/v1/runs/r"))["cursor"] == "0.2"
            await shared(journal, opened_turn())
            await journal.note("r", fence=None, notes=[manifest])
            assert (await got(it, "/v1/runs/r"))["cursor"] == "2"

    asyncio.run(play())


def test_f_31_a_doubt_and_an_interrupt() -> None:
    async def play() -> None:
        async with MemoryJournal() as journal, facing(journal) as it:
            to: dict[str, Any] = {"turn_id": "t", "invocation_id": "a"}
            await shared(
                journal, opened_turn(free("a")), Claim(**to, attempt=1, worker="w"), Lose(**to)
            )
            (call,) = (await got(it, "/v1/runs/r"))["turn"]["calls"]
            assert (call["phase"], call["waits"], call["attempt"]) == ("IN_DOUBT", "resolution", 1)
            assert "resolve_retry" in call["allowed"]

            await shared(journal, Interrupt(turn_id="t", grace=60.0, reason="stop"))
            view = await got(it, "/v1/runs/r")
            assert view["status"] == "interrupted"
            assert view["turn"]["phase"] == "INTERRUPTING"
            assert "resolve_retry" not in view["turn"]["calls"][0]["allowed"]

    asyncio.run(play())


def test_f_31_an_unknown_run_is_404_and_ids_are_exact() -> None:
    async def play() -> None:
        async with MemoryJournal() as journal, facing(journal) as it:
            for name in ("a/b", "a\nb", "%", "x" * 1_024, "é"):
                await journal.declare(Run(run_id=name))
                view = await got(it, f"/v1/runs/{quote(name, safe='')}")
                assert view["run_id"] == name
            for name in ("A%2Fb", "a%2Fb%20", "a%252Fb", "e%CC%81"):
                answer = await it.client().get(f"/v1/runs/{name}")
                assert (answer.status_code, answer.json()["title"]) == (404, "unknown_run")
            with pytest.raises(UnknownRun):
                await it.face.looking.look("nobody")

    asyncio.run(play())


def test_f_6_what_stands_in_a_runs_way_names_no_place() -> None:
    """A journal says why with paths and processes; whoever asks from afar is told what to do."""

    async def play() -> None:
        async with MemoryJournal() as journal, facing(journal) as it:
            await shared(journal, opened_turn())
            await journal.mark_rewound("r", why="the file /var/lib/agent.db ends with fact 1")
            entry = (await got(it, "/v1/runs"))["runs"][0]
            view = await got(it, "/v1/runs/r")
            assert entry["rewound"] == view["findings"][0]["cause"] == reading.REWOUND
            assert "/var" not in json.dumps([entry, view])

    asyncio.run(play())


def test_a_run_that_was_removed_is_unknown_though_it_was_looked_at_before() -> None:
    """Neither its view nor its picture nor its list outlives it; nothing can be said of it."""

    async def play() -> None:
        async with (
            MemoryJournal() as journal,
            opened(
                journal=journal, endpoints=(*ENDPOINTS, *pages.ENDPOINTS, *pictures.ENDPOINTS)
            ) as it,
        ):
            denied = Decide(turn_id="t", invocation_id="a", approved=False)
            await shared(journal, opened_turn(), denied, Acknowledge(turn_id="t"))
            await got(it, "/v1/runs/r")
            entry = await journal.entry("r")
            assert (await it.client().get("/v1/runs/r/pictures/timeline.svg")).status_code == 200
            await journal.forget("r", fence=entry.fence, after=entry.sequence, at=1.0)

            assert (await got(it, "/v1/runs"))["runs"] == []
            client = it.client(Role.DECIDE)
            for answer in (
                await client.get("/v1/runs/r"),
                await client.get("/v1/runs/r/events"),
                await client.get("/v1/runs/r/pictures/timeline.svg"),
                await client.get("/v1/runs/r/posts/1"),
                await client.post("/v1/runs/r/decisions", json=approval()),
                await client.post("/v1/runs/r/interrupt", json={}),
                await client.post("/v1/runs/r/interrupt", json={"turn_id": "t"}),
                await client.delete("/v1/runs/r/grants/g"),
            ):
                assert (answer.status_code, answer.json()["title"]) == (404, "unknown_run")

    asyncio.run(play())


async def nobody_asks(_: object) -> None:
    """A model that is told nothing."""


def test_a_run_with_a_living_owner_is_owned() -> None:
    async def play() -> None:
        async with MemoryJournal() as journal, facing(journal) as it:
            await it.runtime.open_run(RUN, on_continue=nobody_asks)
            assert (await got(it, "/v1/runs"))["runs"][0]["owned"] is True
            assert (await got(it, "/v1/runs/r"))["owned"] is True
            await it.runtime.open_turn("r", [gated()], turn_id="t")
            assert told(await it.client(Role.DECIDE).post("/v1/runs/r/interrupt", json={})) == (
                200,
                True,
            )

    asyncio.run(play())
