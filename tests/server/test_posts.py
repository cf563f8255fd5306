"""Decisions about runs that another process performs: posted to it, and answered (F-26)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from turnlock import Run
from turnlock.runtime.journal.contract import PROBLEM, Journal, open_journal
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.submitting import receipt_of, receipt_of_unfit
from turnlock.runtime.tools.errors import BadArguments
from turnlock.runtime.tools.tool import tool
from turnlock.runtime.tools.toolbox import Toolbox
from turnlock.server import deciding
from turnlock.server.face import ServerSettings
from turnlock.server.routing import Role

from .faces import Opened, opened
from .runs import RUN, approval, free, gated, opened_turn, shared, told

DECISIONS = "/v1/runs/r/decisions"


class Elsewhere:
    """A process that performs a run, as its runtime: with a journal of its own on the same file."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.ran: list[int] = []
        self.continued = asyncio.Event()


@asynccontextmanager
async def elsewhere(file: Path) -> AsyncGenerator[Elsewhere]:
    ran: list[int] = []

    @tool(name="pay", approval=True)
    async def pay(amount: int) -> str:
        ran.append(amount)
        return f"paid {amount}"

    async def on_continue(_: object) -> None:
        here.continued.set()

    async with (
        await open_journal(file) as journal,
        Runtime(journal=journal, tools=Toolbox([pay]), on_continue=on_continue) as runtime,
    ):
        here = Elsewhere(runtime)
        here.ran = ran
        await runtime.open_run(RUN)
        yield here


@asynccontextmanager
async def facing(journal: Journal, *, within: float = 10.0) -> AsyncGenerator[Opened]:
    settings = ServerSettings(answer=within)
    async with opened(journal=journal, endpoints=deciding.ENDPOINTS, settings=settings) as it:
        yield it


def test_f_26_the_owner_in_another_process_judges_and_goes_on(tmp_path: Path) -> None:
    """The receipt is the owner's; arguments that its tool does not take are 422 here."""

    async def play() -> None:
        file = tmp_path / "agent.db"
        async with AsyncExitStack() as stack:
            other = await stack.enter_async_context(elsewhere(file))
            journal = await stack.enter_async_context(await open_journal(file))
            it = await stack.enter_async_context(facing(journal))
            await other.runtime.open_turn("r", [gated()], turn_id="t")
            client = it.client(Role.DECIDE)

            wrong = await client.post(DECISIONS, json=approval(arguments={"amount": "x"}))
            assert (wrong.status_code, wrong.json()["title"]) == (422, "invalid_value")
            assert "amount" in wrong.json()["at"]
            answers = await asyncio.gather(
                *(client.post(DECISIONS, json=approval()) for _ in range(3))
            )
            reasons = sorted((str(told(answer)) for answer in answers), key=len)
            assert reasons[0] == str((200, True))
            for answer in answers:
                assert answer.json()["call"]["decision"]["by"] == "decide"
            await other.continued.wait()
            assert other.ran == [12]
            late = await client.post(DECISIONS, json=approval())
            assert told(late) == (409, "late")
            assert late.json()["call"]["outcome"]["result"] == "paid 12"

    asyncio.run(play())


async def owned_by_nobody_who_answers(journal: Journal) -> None:
    await shared(journal, opened_turn())
    await journal.own("r", owner="somebody", now=journal.time(), lease=600.0)


def test_f_26_unanswered_is_202_and_the_outcome_is_found_there() -> None:
    """While it waits 202, with the receipt 200; of another run, or of no post, 404."""

    async def play() -> None:
        async with MemoryJournal() as journal:
            await owned_by_nobody_who_answers(journal)
            await shared(journal, opened_turn(), run=Run(run_id="other"))
            async with facing(journal, within=0.01) as it:
                client = it.client(Role.DECIDE)
                answer = await client.post(DECISIONS, json=approval())
                assert answer.status_code == 202
                assert answer.json() == {"accepted": None, "post": 1}
                place = answer.headers["location"]
                assert place == "/v1/runs/r/posts/1"

                waits = await client.get(place)
                assert (waits.status_code, waits.json()) == (202, answer.json())
                await journal.answer("r", 1, {"accepted": False, "reason": "late", "facts": []})
                done = await client.get(place)
                assert (done.status_code, done.json()["reason"]) == (200, "late")

                for path in (
                    "/v1/runs/other/posts/1",
                    *(
                        f"/v1/runs/r/posts/{name}"
                        for name in ("2", "0", "-1", "01", "1e0", "%D9%A1", "9" * 30, "1%20", "x")
                    ),
                ):
                    gone = await client.get(path)
                    assert (gone.status_code, gone.json()["title"]) == (404, "unknown_post"), path
                nobody = await client.get("/v1/runs/nobody/posts/1")
                assert (nobody.status_code, nobody.json()["title"]) == (404, "unknown_run")

    asyncio.run(play())


def test_f_26_the_place_tells_what_a_direct_answer_does() -> None:
    """The call after a decision (F-21), the turn of an interrupt (F-24)."""

    async def play() -> None:
        for path, body, told_beside in (
            (DECISIONS, approval(), "call"),
            ("/v1/runs/r/interrupt", {}, "turn_id"),
        ):
            async with MemoryJournal() as journal:
                await owned_by_nobody_who_answers(journal)
                async with facing(journal, within=0.01) as it:
                    client = it.client(Role.DECIDE)
                    place = (await client.post(path, json=body)).headers["location"]
                    await journal.release("r", fence=(await journal.entry("r")).fence)
                    (post,) = await journal.posts(["r"])
                    _, (verdict,) = await shared(journal, post.delivery)
                    await journal.answer("r", post.number, receipt_of(verdict))
                    answer = (await client.get(place)).json()
                    assert answer["accepted"]
                    if told_beside == "call":
                        assert answer["call"]["decision"]["by"] == "decide"
                    else:
                        assert (answer["turn_id"], "call" in answer) == ("t", False)

    asyncio.run(play())


def test_f_26_an_interrupt_that_is_posted_names_its_turn() -> None:
    """So that a repetition can; and the place has the run's id as one segment."""

    async def play() -> None:
        name = "a/b %\n"
        async with MemoryJournal() as journal:
            run = Run(run_id=name)
            await shared(journal, opened_turn(free("a")), run=run)
            await journal.own(name, owner="somebody", now=journal.time(), lease=600.0)
            async with facing(journal, within=0.01) as it:
                segment = quote(name, safe="")
                answer = await it.client(Role.DECIDE).post(f"/v1/runs/{segment}/interrupt", json={})
                assert answer.status_code == 202
                assert answer.json() == {"accepted": None, "post": 1, "turn_id": "t"}
                assert answer.headers["location"] == f"/v1/runs/{segment}/posts/1"
                assert (await it.client().get(answer.headers["location"])).status_code == 202

    asyncio.run(play())


def test_f_26_what_an_owner_found_wrong_is_told_as_it_would_have_been() -> None:
    """Not judged: what does not fit its tool, or what it could not read."""

    async def play() -> None:
        unfit = receipt_of_unfit(BadArguments(place="amount", cause="is no number", fix="give one"))
        for receipt, status, code in (
            (unfit, 422, "invalid_value"),
            ({PROBLEM: "of a newer version"}, 503, "journal_failed"),
        ):
            async with MemoryJournal() as journal:
                await owned_by_nobody_who_answers(journal)
                async with facing(journal, within=0.01) as it:
                    client = it.client(Role.DECIDE)
                    place = (await client.post(DECISIONS, json=approval())).headers["location"]
                    await journal.answer("r", 1, receipt)
                    answer = await client.get(place)
                    assert (answer.status_code, answer.json()["title"]) == (status, code)

    asyncio.run(play())


def test_f_26_an_owner_that_is_gone_is_put_out_and_the_run_judged_here(tmp_path: Path) -> None:
    """Its lease is over, and nobody lives who could answer: nobody waits for it."""

    async def play() -> None:
        async with await open_journal(tmp_path / "agent.db") as journal:
            await shared(journal, opened_turn())
            await journal.own("r", owner="somebody", now=journal.time() - 100.0, lease=1.0)
            async with facing(journal) as it:
                answer = await it.client(Role.DECIDE).post(DECISIONS, json=approval())
                assert told(answer) == (200, True)

    asyncio.run(play())


def test_f_6_no_answer_names_the_owner() -> None:
    """Of a run that another process performs, and of one that is not reached."""

    async def play() -> None:
        async with MemoryJournal() as journal:
            await shared(journal, opened_turn())
            owner = "turnlock/some-host/4711/secret"
            await journal.own("r", owner=owner, now=journal.time(), lease=600.0)
            async with facing(journal, within=0.01) as it:
                client = it.client(Role.DECIDE)
                answers: list[Any] = [
                    (await client.post(DECISIONS, json=approval())).json(),
                    (await client.post("/v1/runs/r/interrupt", json={})).json(),
                    (await client.get("/v1/runs/r/posts/1")).json(),
                ]
                assert "some-host" not in json.dumps(answers)

    asyncio.run(play())
