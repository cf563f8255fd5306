"""Decisions over HTTP: the kernel's verdict, one for all who decide, wherever the run is."""

from __future__ import annotations

import asyncio
import random
from typing import Any
from urllib.parse import quote

import attrs
import pytest

from turnlock import Decide, Kernel, Run
from turnlock.models.deliveries import Interrupt
from turnlock.models.values import arguments_digest
from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.looking import Looking
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.tools.tool import tool
from turnlock.runtime.tools.toolbox import Toolbox
from turnlock.server import deciding
from turnlock.server.deciding import DecisionBody, command, decide
from turnlock.server.problems import Problem
from turnlock.server.routing import Role

from ..runtime.faulty_journal import Fault, FaultyJournal
from .deciders import ADA, BEN, LOOKER, Kind, facing, facts_of
from .faces import opened
from .runs import RUN, approval, denial, free, gated, opened_turn, shared, told

DECISIONS = "/v1/runs/r/decisions"
RESOLUTIONS = "/v1/runs/r/resolutions"


def test_f_21_a_receipt_is_what_the_wire_writes_and_how_the_call_stands() -> None:
    """The name of the token is who has decided (F-12); the facts are durable by then."""

    async def play() -> None:
        async with facing(opened_turn()) as it:
            answer = await it.client(Role.DECIDE).post(DECISIONS, json=approval(reason="ok"))

            assert answer.status_code == 200
            body = answer.json()
            assert body["accepted"] is True
            (fact,) = body["facts"]
            assert (fact["type"], fact["decided_by"]) == ("TOOL_APPROVED", "decide")
            assert (await facts_of(it.journal))[-1].sequence == fact["sequence"] == 3
            assert body["call"]["phase"] == "APPROVED"
            assert body["call"]["decision"] == {
                "approved": True,
                "by": "decide",
                "reason": "ok",
                "scope": "once",
                "cause": "decision",
                "at": fact["at"],
                "sequence": 3,
            }

    asyncio.run(play())


def test_f_12_nobody_decides_as_somebody_else() -> None:
    """A body that sets `decided_by` is 422, and nothing has happened."""

    async def play() -> None:
        async with facing(opened_turn()) as it:
            before = await facts_of(it.journal)
            body = {**approval(), "decided_by": "root"}
            answer = await it.client(Role.DECIDE).post(DECISIONS, json=body)

            assert (answer.status_code, answer.json()["at"]) == (422, "decided_by")
            assert await facts_of(it.journal) == before

    asyncio.run(play())


def test_f_11_only_a_token_with_decide_decides() -> None:
    """Whoever calls the functions, HTTP or a WebSocket: the functions ask themselves."""

    async def play() -> None:
        async with facing(opened_turn()) as it:
            bodies = {
                "decide": approval(),
                "interrupt": {},
                "resolve": {**approval(), "attempt": 1, "resolution": "retry"},
            }
            for kind in ("decide", "interrupt"):
                answer = await command(it.face, kind, "r", bodies[kind], LOOKER)
                assert (answer.status, answer.body["title"]) == (403, "forbidden")
            with pytest.raises(Problem, match="role decide"):
                await deciding.revoke(it.face, "r", "grant/r/1", LOOKER)
            answer2 = await it.client(Role.LOOK).post(DECISIONS, json=approval())
            assert answer2.status_code == 403

    asyncio.run(play())


@pytest.mark.parametrize(
    ("body", "at"),
    [
        ({"arguments_digest": None}, "arguments_digest"),
        ({"approved": False, "arguments": {}}, "arguments"),
        ({"approved": False, "scope": "turn"}, "scope"),
        ({"expires_in": 5.0}, "expires_in"),
        ({"match": "tool"}, "match"),
        ({"scope": "turn", "expires_in": -1.0}, "expires_in"),
        ({"scope": "all"}, "scope"),
        ({"approved": "yes"}, "approved"),
        ({"turn_id": ""}, "turn_id"),
        ({"all": True}, "all"),
        ({"invocation_id": ["a", "b"]}, "invocation_id"),
    ],
)
def test_f_20_a_decision_that_cannot_be_meant_is_told_with_its_field(
    body: dict[str, Any], at: str
) -> None:
    """An approval without a digest first of all (S-40), an unknown field by its name (S-86).

    And no command takes a list (F-27).
    """

    async def play() -> None:
        async with facing(opened_turn()) as it:
            before = await facts_of(it.journal)
            answer = await it.client(Role.DECIDE).post(DECISIONS, json={**approval(), **body})

            assert (answer.status_code, answer.json()["title"]) == (422, "invalid_value")
            assert answer.json()["at"] == at
            assert await facts_of(it.journal) == before

    asyncio.run(play())


def test_f_20_a_denial_needs_no_digest_and_a_wrong_one_means_nothing() -> None:
    async def play() -> None:
        extras: tuple[dict[str, Any], ...] = ({}, {"arguments_digest": "0" * 64})
        for extra in extras:
            async with facing(opened_turn()) as it:
                answer = await it.client(Role.DECIDE).post(DECISIONS, json=denial(**extra))
                assert told(answer) == (200, True)

    asyncio.run(play())


def test_f_22_of_two_at_once_one_decides_and_both_are_told_the_same() -> None:
    """Two tokens, one fact; the second is told who was first, what, when, and by which fact."""

    async def play() -> None:
        for first, second in ((approval(), denial()), (denial(), approval())):
            async with facing(opened_turn(gated("a"), gated("b"))) as it:
                one, other = await asyncio.gather(
                    command(it.face, "decide", "r", first, ADA),
                    command(it.face, "decide", "r", second, BEN),
                )
                won, lost = (one, other) if one.status == 200 else (other, one)
                assert (won.status, lost.status) == (200, 409)
                assert lost.body["reason"] == "already_decided"
                assert lost.body["accepted"] is False
                assert won.body["call"] == lost.body["call"]
                assert won.body["call"]["decision"]["by"] in {"ada", "ben"}
                facts = await facts_of(it.journal)
                assert len(facts) == 4

    asyncio.run(play())


def test_f_22_a_decision_that_holds_already_is_a_duplicate_and_no_problem() -> None:
    """Said again by the same client or by another: 200, and who was first."""

    async def play() -> None:
        async with facing(opened_turn()) as it:
            await decide(it.face, "r", DecisionBody(**approval()), ADA)
            answer = await it.client(Role.DECIDE).post(DECISIONS, json=approval())

            assert told(answer) == (200, "duplicate")
            assert answer.headers["content-type"] == "application/json"
            assert answer.json()["accepted"] is False
            assert answer.json()["call"]["decision"]["by"] == "ada"

    asyncio.run(play())


def test_412_what_was_shown_is_not_what_would_run() -> None:
    """The digest of other arguments; the call shows what would run."""

    async def play() -> None:
        async with facing(opened_turn()) as it:
            stale = approval(gated(arguments={"amount": 1}))
            answer = await it.client(Role.DECIDE).post(DECISIONS, json=stale)

            assert told(answer) == (412, "arguments_mismatch")
            assert answer.json()["type"] == "urn:turnlock:arguments_mismatch"
            assert answer.json()["call"]["arguments"] == {"amount": 12}
            assert answer.json()["call"]["waits"] == "approval"

    asyncio.run(play())


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        ({"turn_id": "u"}, 409, "turn_mismatch"),
        ({"invocation_id": "b"}, 404, "unknown_invocation"),
        ({"invocation_id": "A"}, 404, "unknown_invocation"),
        ({"invocation_id": " a"}, 404, "unknown_invocation"),
    ],
)
def test_f_22_a_decision_about_another_call_decides_nothing(
    body: dict[str, Any], status: int, reason: str
) -> None:
    async def play() -> None:
        async with facing(opened_turn()) as it:
            before = await facts_of(it.journal)
            answer = await it.client(Role.DECIDE).post(DECISIONS, json={**approval(), **body})

            assert told(answer) == (status, reason)
            assert "call" not in answer.json()
            assert await facts_of(it.journal) == before

    asyncio.run(play())


def test_a_run_that_nobody_knows_is_404() -> None:
    async def play() -> None:
        async with facing(opened_turn()) as it:
            client = it.client(Role.DECIDE)
            bodies: dict[str, Any] = {"decisions": approval(), "interrupt": {}}
            for name, body in bodies.items():
                answer = await client.post(f"/v1/runs/R/{name}", json=body)
                assert (answer.status_code, answer.json()["title"]) == (404, "unknown_run")
            answer = await client.delete("/v1/runs/R/grants/g")
            assert (answer.status_code, answer.json()["title"]) == (404, "unknown_run")

    asyncio.run(play())


def test_f_22_late_says_who_decided_as_long_as_the_turn_is_remembered() -> None:
    """The turn has closed meanwhile, by a denial, an end, or an interrupt; then it is forgotten."""

    async def play() -> None:
        denied = Decide(turn_id="t", invocation_id="a", approved=False, decided_by="ada")
        async with facing(opened_turn(), denied) as it:
            answer = await it.client(Role.DECIDE).post(DECISIONS, json=approval())
            assert told(answer) == (409, "late")
            assert answer.json()["call"]["decision"]["by"] == "ada"
            assert answer.json()["call"]["allowed"] == []

        async with facing(opened_turn(), Interrupt(turn_id="t", grace=0.0)) as it:
            answer = await it.client(Role.DECIDE).post(DECISIONS, json=approval())
            assert told(answer) == (409, "late")
            assert answer.json()["call"]["decision"]["cause"] == "interrupt"

        async with facing(opened_turn(), denied, opened_turn(turn_id="u")) as it:
            answer = await it.client(Role.DECIDE).post(DECISIONS, json=approval())
            assert told(answer) == (409, "late")
            assert answer.json()["call"]["decision"]["by"] == "ada"
            assert answer.json()["call"]["turn_id"] == "t"

    asyncio.run(play())


def test_f_22_after_its_deadline_a_call_is_denied_and_the_answer_says_so() -> None:
    """Time decided: the facts of that are in the refusal's journal, and its cause in the call."""

    async def play() -> None:
        timed = gated(approval_timeout=0.0)
        async with facing(opened_turn(timed, gated("b"))) as it:
            await asyncio.sleep(0.001)
            answer = await it.client(Role.DECIDE).post(DECISIONS, json=approval(timed))

            assert told(answer) == (409, "already_decided")
            assert answer.json()["call"]["decision"]["cause"] == "expiry"
            assert "by" not in answer.json()["call"]["decision"]

    asyncio.run(play())


def test_f_21_an_approval_after_a_restart() -> None:
    """The view of a new server knows what was shown; nobody performs the run, and it is woken."""

    async def play() -> None:
        async with MemoryJournal() as journal:
            await shared(journal, opened_turn())
            for expected in (True, "duplicate"):
                sessions = Kind()
                async with opened(
                    journal=journal, endpoints=deciding.ENDPOINTS, sessions=sessions
                ) as it:
                    answer = await it.client(Role.DECIDE).post(DECISIONS, json=approval())
                    assert sessions.woken == ["r"]
                    assert sessions.heeded == ["r"]
                    assert told(answer) == (200, expected)

    asyncio.run(play())


def test_s_80_any_order_of_decisions_of_two_clients_is_as_the_kernel_judges_it() -> None:
    """UC-005: what each is told is the verdict of the kernel, and so are the facts (S-4)."""

    async def play(seed: int) -> int:
        rng = random.Random(seed)
        calls = [gated("a"), gated("b", tool="look"), free("c")]
        kernel = Kernel(RUN)
        kernel.receive(opened_turn(*calls), 1.0)
        refused = 0
        async with facing(opened_turn(*calls)) as it:
            for _ in range(12):
                who, call = rng.choice((ADA, BEN)), rng.choice(calls)
                body: dict[str, Any] = rng.choice(
                    (
                        approval(call),
                        denial(call),
                        approval(gated(call.invocation_id, arguments={})),
                        approval(call, arguments={"amount": rng.randrange(2)}),
                        approval(call, scope="turn", match=rng.choice(("exact", "tool"))),
                        approval(call, turn_id="u"),
                        denial(gated("nobody")),
                    )
                )
                meant = Decide(run_id="r", decided_by=who.name, **body)
                verdict = kernel.receive(meant, 2.0)
                answer = await command(it.face, "decide", "r", body, who)
                assert answer.body["accepted"] is (verdict.reason is None)
                assert answer.body.get("reason") == verdict.reason
                refused += verdict.reason is not None
                if "call" in answer.body and kernel.turn is not None:
                    member = kernel.turn.members[body["invocation_id"]]
                    assert answer.body["call"]["phase"] == member.phase
            assert [it.type for it in await facts_of(it.journal)][-1:] != []
            recovered = Kernel.recover(RUN, await facts_of(it.journal))
            one, other = recovered.snapshot(), kernel.snapshot()
            assert (one.sequence, one.turn, one.grants) == (
                other.sequence,
                other.turn,
                other.grants,
            )
        return refused

    assert sum(asyncio.run(play(seed)) for seed in range(24)) > 24


ODD = ("a/b", "a%2Fb", "%", "a\nb", "..", ".", "x" * 1_024, "a b", "é\u202e", "?q=1#f")


@pytest.mark.parametrize("name", ODD)
def test_f_2_odd_ids_name_what_they_name_and_nothing_else(name: str) -> None:
    """Of runs, turns and invocations; none is trimmed, folded or read twice."""

    async def play() -> None:
        async with MemoryJournal() as journal:
            run, call = Run(run_id=name), gated(name)
            await shared(journal, opened_turn(call, turn_id=name), run=run)
            await shared(journal, opened_turn())
            async with opened(journal=journal, endpoints=deciding.ENDPOINTS) as it:
                client = it.client(Role.DECIDE)
                place = f"/v1/runs/{_escaped(name)}/decisions"
                body = approval(call, turn_id=name, scope="session")
                answer = await client.post(place, json=body)
                assert told(answer) == (200, True), answer.text
                issued = [it for it in answer.json()["facts"] if it["type"] == "GRANT_ISSUED"]
                grant = _escaped(issued[0]["grant_id"])
                revoked = await client.delete(f"/v1/runs/{_escaped(name)}/grants/{grant}")
                assert told(revoked) == (200, True)
                assert len(await facts_of(journal)) == 2

    asyncio.run(play())


def _escaped(name: str) -> str:
    """As one segment; dots too, which a client would otherwise take for folders."""
    return quote(name, safe="").replace(".", "%2E")


def test_f_50_a_command_answers_as_http_would() -> None:
    """Its problems, too: a body that does not fit, an unknown name, a run that is not there."""

    async def play() -> None:
        async with facing(opened_turn()) as it:
            tried: list[tuple[str, str, object, int, str]] = [
                ("decide", "r", [], 422, "invalid_value"),
                ("decide", "r", {**approval(), "decided_by": "x"}, 422, "invalid_value"),
                ("decide", "r", None, 422, "invalid_value"),
                ("decide", "nobody", approval(), 404, "unknown_run"),
                ("approve", "r", approval(), 400, "bad_request"),
                ("interrupt", "r", {"grace": "long"}, 422, "invalid_value"),
            ]
            for kind, run_id, body, status, code in tried:
                answer = await command(it.face, kind, run_id, body, ADA)
                assert (answer.status, answer.body["title"]) == (status, code), body
            answer = await command(it.face, "decide", "r", approval(), ADA)
            assert (answer.status, answer.body["accepted"]) == (200, True)

    asyncio.run(play())


def test_f_21_what_is_durable_is_told_though_nobody_can_say_how_the_call_stands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The journal fails after it has kept the decision: it is not said that nothing happened."""

    async def play() -> None:
        async with facing(opened_turn()) as it:

            async def fails(*_: object) -> None:
                raise JournalError("the disk is gone")

            monkeypatch.setattr(Looking, "call", fails)
            answer = await it.client(Role.DECIDE).post(DECISIONS, json=approval())
            assert told(answer) == (200, True)
            assert "call" not in answer.json()

    asyncio.run(play())


@pytest.mark.parametrize(
    ("fault", "again"),
    [(Fault.LOST, True), (Fault.FULL, True), (Fault.UNACKNOWLEDGED, "duplicate")],
)
def test_503_where_nothing_is_known_to_have_happened_it_is_said_again(
    fault: Fault, again: object
) -> None:
    """And the second answer says what holds: it had not happened, or it had, by the same name."""

    async def play() -> None:
        journal = FaultyJournal(MemoryJournal())
        await shared(journal, opened_turn())
        async with opened(journal=journal, endpoints=deciding.ENDPOINTS) as it:
            client = it.client(Role.DECIDE)
            journal.fail("append", fault)
            answer = await client.post(DECISIONS, json=approval())
            assert (answer.status_code, answer.json()["title"]) == (503, "journal_failed")
            assert int(answer.headers["retry-after"]) > 0
            second = await client.post(DECISIONS, json=approval())
            assert told(second) == (200, again)
            assert second.json()["call"]["decision"]["by"] == "decide"

    asyncio.run(play())


def test_a_run_that_is_performed_here_is_decided_by_its_owner() -> None:
    """The tool runs once, whoever decides how often; the receipt comes before that."""
    ran: list[int] = []

    @tool(name="pay", approval=True)
    async def pay(amount: int) -> str:
        ran.append(amount)
        return f"paid {amount}"

    async def play() -> None:
        async with MemoryJournal() as journal:
            continued = asyncio.Event()

            async def on_continue(_: object) -> None:
                continued.set()

            async with Runtime(
                journal=journal, tools=Toolbox([pay]), on_continue=on_continue
            ) as runtime:
                await runtime.open_run(RUN)
                await runtime.open_turn("r", [gated()], turn_id="t")
                async with opened(journal=journal, endpoints=deciding.ENDPOINTS) as it:
                    face = attrs.evolve(it.face, runtime=runtime)
                    wrong = await command(
                        face, "decide", "r", approval(arguments={"amount": "x"}), ADA
                    )
                    assert (wrong.status, wrong.body["title"]) == (422, "invalid_value")
                    answers = await asyncio.gather(
                        *(command(face, "decide", "r", approval(), who) for who in (ADA, BEN) * 3)
                    )
                    assert sorted(it.body["accepted"] for it in answers) == [False] * 5 + [True]
                    assert len({it.body["call"]["decision"]["by"] for it in answers}) == 1
                    await continued.wait()
            assert ran == [12]
            digest = arguments_digest(gated().arguments)
            assert [
                it.arguments_digest for it in await facts_of(journal) if hasattr(it, "deadline")
            ] == [digest]

    asyncio.run(play())
