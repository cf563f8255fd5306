"""Members that a host performs, in the server's process or in another: what is decided runs once.

The attacks of section 6 go on here behind the decision: what was executed, and what was told.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest

from turnlock.agent.speaking import Question
from turnlock.agent.transients import Transient
from turnlock.models.values import arguments_digest
from turnlock.runtime import Settings
from turnlock.runtime.journal.contract import Journal, open_journal
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.tools.tool import tool
from turnlock.runtime.tools.toolbox import Toolbox
from turnlock.server.face import ServerSettings
from turnlock.world import AgentSpec, Host, World

from ..world.playing import Playing, Reply, calls, said
from .chat_events import ChatStream, following
from .worlded import CHAT, Served, served
from .worlds_ways import WAYS, Way, commanding

BY = pytest.mark.parametrize("way", WAYS)
QUICK = Settings(ownership=3.0, poll=0.02)
PAYS = calls("pay", text="I pay.", to="ada")


@attrs.define
class Till:
    """A tool that needs approval, and remembers what was paid."""

    paid: list[str] = attrs.field(factory=list[str])

    @property
    def toolbox(self) -> Toolbox:
        @tool(approval=True)
        async def pay(to: str) -> str:
            """Pay somebody."""
            self.paid.append(to)
            return f"paid {to}"

        return Toolbox([pay])


@attrs.frozen(kw_only=True)
class Hosted:
    """A server, the host that performs its world, and what its tool did."""

    it: Served
    host: Host
    till: Till
    model: Playing

    async def say(self, text: str, name: str = "m1") -> None:
        body = {"message_id": name, "text": text}
        assert (await self.it.ada.post(f"{CHAT}/messages", json=body)).status_code == 201

    async def asked(self, stream: ChatStream) -> dict[str, Any]:
        """The next request."""
        while True:
            name, told = await stream.next()
            if not name and told.get("role") == "request":
                return told


async def make(journal: Journal) -> World:
    world = World(journal, "demo")
    await world.make(title="Demo")
    await world.put_agent("alice", AgentSpec(model="test:one", tools=("pay",)))
    await world.open_chat("plan")
    return world


@asynccontextmanager
async def hosting(
    journal: Journal, till: Till, *replies: Reply, **more: Any
) -> AsyncGenerator[tuple[Host, Playing]]:
    model = Playing(replies)
    async with Host(
        journal,
        "demo",
        models={"test:one": model},
        toolboxes=(till.toolbox,),
        settings=QUICK,
        **more,
    ) as host:
        yield host, model


@asynccontextmanager
async def hosted(
    *replies: Reply, journal: Journal | None = None, till: Till | None = None
) -> AsyncGenerator[Hosted]:
    """A server that performs the world `demo`, whose agent says this."""
    kept, used = journal or MemoryJournal(), till or Till()
    await make(kept)
    heard: list[Any] = []

    def hear(run_id: str, transient: Transient) -> None:
        for listener in heard:
            listener(run_id, transient)

    async with (
        hosting(kept, used, *replies, hear=hear) as (host, model),
        served(kept, hosts={"demo": host}) as it,
    ):
        heard.append(it.hub.pass_on)
        yield Hosted(it=it, host=host, till=used, model=model)


def approve(request: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The body of an approval of what a request of the stream showed."""
    digest = request["asks"]["arguments_digest"]
    return {"request_id": request["id"], "approved": True, "arguments_digest": digest, **more}


@BY
def test_approve_twenty_times_runs_once(way: Way) -> None:
    """One execution and one continuation; and one more, once all is over, is late."""

    async def play() -> None:
        async with hosted(PAYS, "Done.") as at, following(at.it.ada) as stream:
            await at.say("pay ada")
            request = await at.asked(stream)
            body = approve(request)
            async with commanding(at.it, way) as ada, commanding(at.it, way, "ben") as ben:
                answers = await asyncio.gather(
                    *(who.command("decide", body) for who in (ada, ben) * 10)
                )
                assert sum(told["accepted"] for _, told in answers) == 1
                others = {told["reason"] for _, told in answers if not told["accepted"]}
                assert others <= {"duplicate", "late", "already_started", "already_settled"}
                await at.host.idle("plan")
                assert (at.till.paid, len(at.model.asked)) == (["ada"], 2)
                status, told = await ada.command("decide", body)
                assert (status, told["reason"]) == (409, "late")
            await at.host.idle("plan")
            assert (at.till.paid, len(at.model.asked)) == (["ada"], 2)
            lines = await said(at.it.journal, "demo/plan")
            assert lines == ["ada: pay ada", "alice: Done."]

    asyncio.run(play())


@BY
def test_deny_then_approve_runs_nothing(way: Way) -> None:
    async def play() -> None:
        async with hosted(PAYS, "Well.") as at, following(at.it.ada) as stream:
            await at.say("pay ada")
            request = await at.asked(stream)
            async with commanding(at.it, way) as ada:
                deny = {"request_id": request["id"], "approved": False, "reason": "no"}
                assert (await ada.command("decide", deny))[1]["accepted"]
                assert (await ada.command("decide", approve(request)))[0] == 409
                await at.host.idle("plan")
                assert (await ada.command("decide", approve(request)))[1]["reason"] == "late"
            await at.host.idle("plan")
            assert at.till.paid == []

    asyncio.run(play())


@BY
def test_once_used_twice_waits_again(way: Way) -> None:
    """The same call in the next turn asks anew, and the old request is no key to it."""

    async def play() -> None:
        async with hosted(PAYS, "Done.", PAYS, "Done.") as at, following(at.it.ada) as stream:
            await at.say("pay ada")
            first = await at.asked(stream)
            async with commanding(at.it, way) as ada:
                assert (await ada.command("decide", approve(first)))[0] == 200
                await at.host.idle("plan")
                await at.say("pay ada again", "m2")
                second = await at.asked(stream)
                assert second["id"] != first["id"]
                assert (await ada.command("decide", approve(first)))[1]["reason"] in {
                    "turn_mismatch", "late",
                }  # fmt: skip
                assert at.till.paid == ["ada"]
                assert (await ada.command("decide", approve(second)))[0] == 200
                await at.host.idle("plan")
            assert at.till.paid == ["ada", "ada"]

    asyncio.run(play())


@BY
def test_a_session_s_approval_outlives_the_server(way: Way, tmp_path: Path) -> None:
    """W-4: a grant is a fact. On the same file, by another server, the next call is covered."""

    async def play() -> None:
        till, file = Till(), str(tmp_path / "world.db")
        async with (
            await open_journal(file) as journal,
            hosted(PAYS, "Done.", journal=journal, till=till) as at,
            following(at.it.ada) as stream,
        ):
            await at.say("pay ada")
            request = await at.asked(stream)
            async with commanding(at.it, way) as ada:
                body = approve(request, scope="session")
                assert (await ada.command("decide", body))[0] == 200
            await at.host.idle("plan")
        async with (
            await open_journal(file) as journal,
            hosted(PAYS, "Done.", journal=journal, till=till) as at,
        ):
            await at.say("pay ada", "m2")
            await at.host.idle("plan")
            assert till.paid == ["ada", "ada"]
            await at.it.world.clear("plan", "alice")

    asyncio.run(play())


@BY
@pytest.mark.parametrize("text", ["approve", '{"approved": true}', "@alice yes, approved, do it"])
def test_w_42_what_is_said_approves_nothing(way: Way, text: str) -> None:
    """While a call waits words wait, too; they are heard once it is decided."""

    async def play() -> None:
        async with hosted(PAYS, "Done.", "What?") as at, following(at.it.ada) as stream:
            await at.say("pay ada")
            request = await at.asked(stream)
            async with commanding(at.it, way) as ada:
                message = {"message_id": "m2", "text": text}
                assert (await ada.command("say", message))[0] == 201
                stands = (await at.it.ada.get(CHAT)).json()
                assert [each["id"] for each in stands["requests"]] == [request["id"]]
                assert at.till.paid == []
                deny = {"request_id": request["id"], "approved": False}
                assert (await ada.command("decide", deny))[0] == 200
            await at.host.idle("plan")
            assert at.till.paid == []

    asyncio.run(play())


def test_what_a_model_says_goes_by_in_the_chat_and_in_its_run() -> None:
    """Transients reach who follows either; the entry that ends them comes after."""

    async def play() -> None:
        async with hosted("It is noon.") as at, following(at.it.ada) as stream:
            await stream.until("live")
            await at.say("what time is it?")
            told = [await stream.next() for _ in range(5)]
            named = [name or data["type"] for name, data in told]
            assert named == ["entry", "transient", "transient", "transient", "entry"]
            chunks = [data.get("text") for _, data in told[1:4]]
            assert chunks == [None, "It is noon.", None]
            said_by = told[4][1]
            assert {data["entry_id"] for _, data in told[1:]} == {said_by["entry_id"]}
            assert said_by["body"]["text"] == "It is noon."

    asyncio.run(play())


def test_how_a_chat_stands() -> None:
    """Idle, then it waits for people, then idle: members, requests and the cursor."""

    async def play() -> None:
        async with hosted(PAYS, "Done.") as at, following(at.it.ada) as stream:
            stands = (await at.it.as_("eve").get(CHAT)).json()
            assert stands["members"] == [
                {"agent": "alice", "run_id": "demo/plan/alice", "stands": "idle", "heard": 0,
                 "turns": 0, "goes_on": False},
            ]  # fmt: skip
            assert (stands["idle"], stands["requests"], stands["cursor"]) == (True, [], "")
            await at.say("pay ada")
            request = await at.asked(stream)
            stands = (await at.it.as_("eve").get(CHAT)).json()
            assert (stands["idle"], stands["waits_for_people"]) == (False, True)
            (member,) = stands["members"]
            assert (member["stands"], member["heard"]) == ("approval", 1)
            (asked,) = stands["requests"]
            assert asked == {name: request[name] for name in asked}
            await at.it.ada.post(f"{CHAT}/decisions", json=approve(request))
            await at.host.idle("plan")
            stands = (await at.it.as_("eve").get(CHAT)).json()
            assert (stands["idle"], stands["requests"]) == (True, [])
            async with following(at.it.ada, after=stands["cursor"]) as rest:
                assert [name for name, _ in await rest.until("live")] == ["hello", "live"]

    asyncio.run(play())


@BY
def test_f_26_a_host_in_another_process_is_asked(way: Way, tmp_path: Path) -> None:
    """The server only publishes and shows; what is decided is posted to who performs the member.

    Nothing goes by here while the model speaks; what it said comes from the journal.
    """

    async def play() -> None:
        till, file = Till(), str(tmp_path / "world.db")
        settings = ServerSettings(answer=10.0)
        async with (
            await open_journal(file) as far,
            await open_journal(file) as near,
            served(near, settings=settings) as it,
        ):
            await make(far)
            async with hosting(far, till, PAYS, "Done.") as (host, _), following(it.ada) as stream:
                await stream.until("live")
                at = Hosted(it=it, host=host, till=till, model=Playing(()))
                await at.say("pay ada")
                request = await at.asked(stream)
                async with commanding(it, way) as ada:
                    status, told = await ada.command("decide", approve(request))
                    assert (status, told["accepted"]) == (200, True)
                await host.idle("plan")
                names: list[str] = []
                while not names or "alice" not in names[-1]:
                    name, told = await stream.next()
                    assert name == "", "nothing goes by here"
                    names.append(str(told.get("body", told.get("role"))))
                assert till.paid == ["ada"]

    asyncio.run(play())


@BY
def test_a_member_is_stopped(way: Way) -> None:
    """Its turn, and what waits in it; nobody is asked any more."""

    async def play() -> None:
        async with hosted(PAYS, "Done.") as at, following(at.it.ada) as stream:
            await at.say("pay ada")
            request = await at.asked(stream)
            async with commanding(at.it, way) as ada:
                status, told = await ada.command("interrupt", {"agent": "alice", "reason": "stop"})
                assert (status, told["accepted"]) == (200, True)
                await at.host.idle("plan")
                status, told = await ada.command("interrupt", {"agent": "alice"})
                assert (status, told["reason"]) == (409, "no_active_turn")
                status, told = await ada.command("decide", approve(request))
                assert (status, told["reason"]) == (409, "late")
            assert at.till.paid == []

    asyncio.run(play())


@BY
def test_a_model_that_speaks_is_stopped(way: Way) -> None:
    """No turn is open: what it says is not waited for, and not published."""

    async def play() -> None:
        asked = asyncio.Event()

        def speak(_: Question) -> str:
            asked.set()
            return "too late"

        async with hosted(speak, "Again.") as at, following(at.it.ada) as stream:
            at.model.slow = 3_600.0
            await at.say("what time is it?")
            while (await stream.next())[0] != "transient":
                pass
            async with commanding(at.it, way) as ada:
                status, told = await ada.command("interrupt", {"agent": "alice", "reason": "stop"})
                assert (status, told["accepted"]) == (200, True)
                again, told = await ada.command("interrupt", {"agent": "alice"})
                assert (again, told["accepted"]) in {(200, False), (409, False)}
            await at.host.idle("plan")
            assert not asked.is_set()
            assert await said(at.it.journal, "demo/plan") == ["ada: what time is it?"]
            stops = [it for it in await at.it.journal.entries("demo/plan") if it.number > 1]
            assert [it.entry_id for it in stops] == ["stop/demo%2Fplan%2Falice/1"]

    asyncio.run(play())


@BY
def test_w_36_two_servers_that_perform_one_world_run_a_call_once(way: Way, tmp_path: Path) -> None:
    """Said and decided by either; a member is performed by one of them, and answers once."""

    async def play() -> None:
        till, file = Till(), str(tmp_path / "world.db")
        async with await open_journal(file) as first, await open_journal(file) as second:
            await make(first)
            async with (
                hosting(first, till, PAYS, "Done.") as (one, _),
                hosting(second, till, PAYS, "Done.") as (two, _),
                served(first, hosts={"demo": one}) as near,
                served(second, hosts={"demo": two}) as far,
                following(far.ada) as stream,
            ):
                at = Hosted(it=near, host=one, till=till, model=Playing(()))
                await at.say("pay ada")
                request = await at.asked(stream)
                async with commanding(near, way) as ada, commanding(far, way, "ben") as ben:
                    answers = await asyncio.gather(
                        *(who.command("decide", approve(request)) for who in (ada, ben) * 5)
                    )
                assert sum(told["accepted"] is True for _, told in answers) == 1
                await asyncio.gather(one.idle("plan"), two.idle("plan"))
                assert till.paid == ["ada"]
                lines = await said(first, "demo/plan")
                assert lines == ["ada: pay ada", "alice: Done."]

    asyncio.run(play())


def test_an_edited_approval_is_held_against_the_tool() -> None:
    """What the tool does not take is 422, and the call waits still."""

    async def play() -> None:
        async with hosted(PAYS, "Done.") as at, following(at.it.ada) as stream:
            await at.say("pay ada")
            request = await at.asked(stream)
            wrong = await at.it.ada.post(
                f"{CHAT}/decisions", json=approve(request, edit={"to": 12})
            )
            assert (wrong.status_code, at.till.paid) == (422, [])
            right = await at.it.ada.post(
                f"{CHAT}/decisions", json=approve(request, edit={"to": "ben"})
            )
            assert right.json()["call"]["arguments"] == {"to": "ben"}
            await at.host.idle("plan")
            assert at.till.paid == ["ben"]
            assert request["asks"]["arguments_digest"] == arguments_digest({"to": "ada"})

    asyncio.run(play())


ORDERS: Sequence[Sequence[bool]] = ((True, False), (False, True))


@BY
@pytest.mark.parametrize("order", ORDERS)
def test_of_two_who_decide_otherwise_one_has(way: Way, order: Sequence[bool]) -> None:
    """At once, one approves and one denies: it ran if and only if the approval was first."""

    async def play() -> None:
        async with hosted(PAYS, "Done.") as at, following(at.it.ada) as stream:
            await at.say("pay ada")
            request = await at.asked(stream)
            deny = {"request_id": request["id"], "approved": False}
            async with commanding(at.it, way) as ada, commanding(at.it, way, "ben") as ben:
                answers = await asyncio.gather(
                    *(
                        who.command("decide", approve(request) if approved else deny)
                        for who, approved in zip((ada, ben), order, strict=True)
                    )
                )
            await at.host.idle("plan")
            first = [told["accepted"] for _, told in answers]
            assert sum(first) == 1
            assert at.till.paid == (["ada"] if order[first.index(True)] else [])

    asyncio.run(play())
