"""What a tool keeps secret is nowhere but in the tool and at the model; files are read for it."""

# Looks inside: crash() ends a process without a word.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from turnlock import AddCall, Call, Claim, Decide, Fact, OpenTurn, Reason, Report, Run, Status
from turnlock.models.errors import InvalidValue
from turnlock.models.facts import ToolApprovalRequested, ToolExecutionSucceeded
from turnlock.models.record import changed
from turnlock.models.sealed import HIDDEN, is_sealed, shown_json, shown_text
from turnlock.runtime.dispatcher import Continuation
from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.settings import Settings
from turnlock.runtime.submitting import SharedRun, submit
from turnlock.runtime.tools.errors import BadArguments
from turnlock.runtime.tools.policy import Keep, Policy
from turnlock.runtime.tools.sealing import UNSAID, Cipher, Place, SealBroken, Seals
from turnlock.runtime.tools.tool import Tool, tool
from turnlock.runtime.tools.toolbox import Toolbox
from turnlock.runtime.writer import fold_run

from .sdk import Sdk
from .secrets import TestCipher
from .test_runtime import crash

RUN = Run(run_id="r")
SECRET = "hunter2-of-the-model"  # noqa: S105 - a word to look for
EDITED = "hunter2-of-a-person"
RESULT = "hunter2-of-the-tool"
ERROR = "hunter2-of-an-error"
ALL = (SECRET, EDITED, RESULT, ERROR)


def calls(*names: str) -> list[Call]:
    return [
        Call(
            invocation_id=name,
            tool_name=name,
            arguments={"token": SECRET},
            requires_approval=False,
        )
        for name in names
    ]


@attrs.define
class Host:
    """A process with tools that keep secrets, and what its model was told."""

    path: Path
    keep_arguments: Keep = Keep.SEALED
    keep_result: Keep = Keep.SEALED
    key: bytes = b"key"
    ran: list[tuple[str, str]] = attrs.field(factory=list[tuple[str, str]])
    told: list[Continuation] = attrs.field(factory=list[Continuation])
    facts: list[Fact] = attrs.field(factory=list[Fact])
    asked: list[Any] = attrs.field(factory=list[Any])

    def tools(self) -> Toolbox:
        policy = Policy(keep_arguments=self.keep_arguments, keep_result=self.keep_result)

        def predicate(arguments: Any) -> bool:
            self.asked.append(arguments["token"])
            return True

        @tool(policy=policy)
        async def fetch(token: str) -> Any:
            self.ran.append(("fetch", token))
            return {"found": [RESULT]}

        @tool(policy=policy, approval=predicate)
        async def pay(token: str) -> str:
            self.ran.append(("pay", token))
            return RESULT

        @tool(policy=policy)
        async def fails(token: str) -> str:
            self.ran.append(("fails", token))
            raise ValueError(f"{ERROR} {token}")

        @tool(policy=policy)
        async def typed(token: int) -> str:
            raise AssertionError(token)

        return Toolbox.of(fetch, pay, fails, typed, cipher=TestCipher(self.key))

    def runtime(self, journal: SqliteJournal, **given: Any) -> Runtime:
        async def on_continue(continuation: Continuation) -> None:
            self.told.append(continuation)

        return Runtime(
            journal=journal,
            tools=self.tools(),
            on_continue=on_continue,
            settings=Settings(poll=0.02, snapshot_every=3, ownership=0.2),
            **given,
        )

    async def journal(self) -> SqliteJournal:
        return await SqliteJournal.open(self.path / "secret.db")

    def found(self) -> set[str]:
        """Which secrets stand in any file of the journal."""
        data = b"".join(it.read_bytes() for it in self.path.iterdir())
        return {it for it in ALL if it.encode() in data}


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not true():  # noqa: ASYNC110 - journals are real
            await asyncio.sleep(0.005)


async def play(host: Host, sdk: Sdk) -> None:
    """A turn of all tools: a person approves with edited arguments, from another process."""
    async with await host.journal() as journal:
        async with host.runtime(journal, telemetry=sdk.telemetry) as runtime:
            await runtime.open_run(RUN)
            everything = calls("fetch", "pay", "fails", "typed")
            await runtime.open_turn("r", everything, turn_id="t1", epoch=1)
            (waiting,) = runtime.pending("r")
            assert runtime.clear_arguments(waiting) == {"token": SECRET}
            edited = Decide(
                turn_id="t1",
                invocation_id="pay",
                approved=True,
                arguments={"token": EDITED},
                arguments_digest=waiting.arguments_digest,
            )
            done = await submit(journal, "r", edited, within=5, tools=host.tools())
            assert done.receipt["accepted"]
            await until(lambda: bool(host.told))
            subscription = runtime.subscribe("r")
            sequence = (await journal.entry("r")).sequence
            async for fact in subscription:
                host.facts.append(fact)
                if fact.sequence >= sequence:
                    break
            subscription.close()
        assert host.found() == (set(ALL) if host.keep_result is Keep.CLEAR else set())


def outcomes(host: Host) -> dict[str, Any]:
    """What the model was told of each call."""
    return {
        one.tool_name: one.error if one.status is Status.FAILED else one.result
        for one in host.told[-1].results
    }


def test_what_is_sealed_reaches_the_tool_and_the_model_and_nobody_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Facts, snapshots, posts, streams, telemetry with contents, logs: none holds it."""
    caplog.set_level(logging.DEBUG)
    host, sdk = Host(tmp_path), Sdk(contents=True)
    asyncio.run(play(host, sdk))

    assert sorted(host.ran) == [("fails", SECRET), ("fetch", SECRET), ("pay", EDITED)]
    assert host.asked[0] == SECRET
    told = outcomes(host)
    assert (told["fetch"], told["pay"]) == ({"found": [RESULT]}, RESULT)
    assert f"ValueError: {ERROR} {SECRET}" in told["fails"]
    assert told["typed"] == f"bad arguments: token: '{SECRET}' is str; give int"
    spans = json.dumps([json.loads(span.to_json()) for span in sdk.spans])
    assert "gen_ai.tool.call.arguments" in spans
    assert "gen_ai.tool.call.result" in spans
    for text in (spans, caplog.text, repr(host.facts), json.dumps(list(host.found()))):
        assert not [it for it in ALL if it in text]


def test_without_the_seal_everything_is_found_everywhere(tmp_path: Path) -> None:
    """Negative control of the test above: the same turn, kept clear."""
    host, sdk = (
        Host(tmp_path, keep_arguments=Keep.CLEAR, keep_result=Keep.CLEAR),
        Sdk(contents=True),
    )
    asyncio.run(play(host, sdk))
    spans = json.dumps([json.loads(span.to_json()) for span in sdk.spans])
    for text in (spans, repr(host.facts)):
        assert not [it for it in (SECRET, RESULT, ERROR) if it not in text]


def test_of_a_digest_nobody_has_more_not_even_the_model(tmp_path: Path) -> None:
    """Errors, which may say anything, are sealed where there is a cipher."""
    host = Host(tmp_path, keep_arguments=Keep.SEALED, keep_result=Keep.DIGEST)
    asyncio.run(play(host, Sdk(contents=True)))
    told = outcomes(host)
    assert set(told["pay"]) == {"redacted", "sha256", "bytes"}
    assert told["pay"]["bytes"] == len(RESULT) + 2
    assert f"{ERROR}" in told["fails"]


def test_a_digest_needs_no_cipher_and_its_errors_say_only_their_kind() -> None:
    seals = Seals({"f": Policy(keep_result=Keep.DIGEST)}, None)
    place = Place("r", "t1", "c")
    assert seals.error("f", "hunter2", place, kind="ValueError") == f"{UNSAID} (ValueError)"
    kept: Any = seals.result("f", "hunter2", place)
    assert kept["bytes"] == 9
    assert seals.result("f", kept, place) == kept
    assert seals.results((), "r", "t1") == ()


def test_after_a_crash_the_next_process_goes_on_with_the_key(tmp_path: Path) -> None:
    """The call is run with what was asked for, and the model told what was found before."""

    async def before(host: Host) -> None:
        async with await host.journal() as journal:
            runtime = host.runtime(journal)
            await runtime.__aenter__()
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("fetch", "pay"), turn_id="t1", epoch=1)
            await until(lambda: bool(host.ran))
            await asyncio.sleep(0.05)
            await crash(runtime)
            runtime._dispatcher.timers.close()

    async def after(host: Host) -> None:
        async with await host.journal() as journal:
            await asyncio.sleep(0.5)
            async with host.runtime(journal) as runtime:
                await runtime.open_run(RUN)
                again = await runtime.open_turn("r", calls("fetch", "pay"), turn_id="t1", epoch=1)
                assert again.reason in {Reason.TURN_OPEN, Reason.STALE_EPOCH}
                await runtime.approve("r", turn_id="t1", invocation_id="pay")
                await until(lambda: bool(host.told))

    first, second = Host(tmp_path), Host(tmp_path)
    asyncio.run(before(first))
    asyncio.run(after(second))
    assert (first.ran, second.ran) == ([("fetch", SECRET)], [("pay", SECRET)])
    assert outcomes(second) == {"fetch": {"found": [RESULT]}, "pay": RESULT}
    assert second.found() == set()


def test_a_process_with_another_key_starts_nothing_and_tells_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It says so; the call waits for the right key."""

    async def asked(host: Host) -> None:
        async with await host.journal() as journal, host.runtime(journal) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("pay"), turn_id="t1", epoch=1)

    async def approved(host: Host) -> None:
        async with await host.journal() as journal, host.runtime(journal) as runtime:
            await runtime.open_run(RUN)
            with pytest.raises(SealBroken, match="start with the cipher"):
                runtime.clear_arguments(runtime.pending("r")[0])
            await runtime.approve("r", turn_id="t1", invocation_id="pay")
            await asyncio.sleep(0.05)

    async def right(host: Host) -> None:
        async with await host.journal() as journal, host.runtime(journal) as runtime:
            await runtime.open_run(RUN)
            await until(lambda: bool(host.told))

    wrong = Host(tmp_path, key=b"another")
    asyncio.run(asked(Host(tmp_path)))
    asyncio.run(approved(wrong))
    assert (wrong.ran, wrong.told) == ([], [])
    assert "is not started, and waits" in caplog.text
    host = Host(tmp_path)
    asyncio.run(right(host))
    assert host.ran == [("pay", SECRET)]


def test_a_process_with_another_key_hands_no_results_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """They are owed until they open: a model is told the truth or nothing."""

    async def played(host: Host, *, opens: bool, wait: Callable[[], bool]) -> None:
        async with await host.journal() as journal:
            runtime = host.runtime(journal)
            await runtime.__aenter__()
            await runtime.open_run(RUN)
            if opens:
                await runtime.open_turn("r", calls("fetch"), turn_id="t1", epoch=1)
            await until(wait)
            await asyncio.sleep(0.05)
            await crash(runtime)
            await asyncio.sleep(0.5)

    class Deaf(Host):
        """Takes nothing, so that the results are owed to the next process."""

        def runtime(self, journal: SqliteJournal, **given: Any) -> Runtime:
            async def on_continue(_: object) -> None:
                self.asked.append("told")
                await asyncio.Event().wait()

            return Runtime(
                journal=journal,
                tools=self.tools(),
                on_continue=on_continue,
                settings=Settings(ownership=0.2),
            )

    deaf, wrong, right = Deaf(tmp_path), Host(tmp_path, key=b"another"), Host(tmp_path)
    asyncio.run(played(deaf, opens=True, wait=lambda: bool(deaf.asked)))
    asyncio.run(played(wrong, opens=False, wait=lambda: "does not open here" in caplog.text))
    assert wrong.told == []
    asyncio.run(played(right, opens=False, wait=lambda: bool(right.told)))
    assert outcomes(right) == {"fetch": {"found": [RESULT]}}


def test_a_process_without_the_key_can_look_and_decide_but_bring_nothing(tmp_path: Path) -> None:
    """It approves by the digest of the envelope, which commits to it and tells nothing of it."""
    host = Host(tmp_path)

    async def scene() -> None:
        async with await host.journal() as journal:
            async with host.runtime(journal) as runtime:
                await runtime.open_run(RUN)
                await runtime.open_turn("r", calls("pay"), turn_id="t1", epoch=1)
            kernel = await fold_run(RUN, journal)
            asked = [it async for it in journal.facts("r") if isinstance(it, ToolApprovalRequested)]
            assert is_sealed(asked[0].arguments)
            assert kernel.turn is not None
            secret: Any = {"token": EDITED}
            decided = Decide(turn_id="t1", invocation_id="pay", approved=True)
            edited = changed(decided, arguments=secret)
            with pytest.raises(InvalidValue, match="the key is not here"):
                await submit(journal, "r", edited, within=1)
            shared = await SharedRun.open(journal, "r", policies=host.tools().policies)
            added = AddCall(turn_id="t1", call=calls("fetch")[0])
            with pytest.raises(InvalidValue, match="the key is not here"):
                await shared.submit(added)
            by_digest = changed(decided, arguments_digest=asked[0].arguments_digest)
            done = await submit(journal, "r", by_digest, within=1)
            assert done.receipt["accepted"]
            async with host.runtime(journal) as runtime:
                await runtime.open_run(RUN)
                await until(lambda: bool(host.told))

    asyncio.run(scene())
    assert host.ran == [("pay", SECRET)]
    assert host.found() == set()


def test_a_report_of_somebody_elses_is_sealed_and_known_again(tmp_path: Path) -> None:
    """Sealed anew it would be another value: what is kept already counts as the same."""
    host = Host(tmp_path)

    async def scene() -> None:
        async with await host.journal() as journal:
            shared = await SharedRun.open(
                *await declared(journal), policies=None, tools=host.tools()
            )
            (call,) = calls("fetch")
            observed = changed(call, observed=True)
            claim = Claim(turn_id="t1", invocation_id="fetch", attempt=1, worker="me")
            report = Report(turn_id="t1", invocation_id="fetch", attempt=1, result=RESULT)
            opened = OpenTurn(turn_id="t1", calls=(observed, *calls("pay")))
            verdicts = await shared.submit(opened, claim, report)
            assert [it.reason for it in verdicts] == [None, None, None]
            (again,) = await shared.submit(report)
            assert again.reason is Reason.DUPLICATE
            other = changed(report, result="other")
            (refused,) = await shared.submit(other)
            assert refused.reason is Reason.CONFLICTING_DUPLICATE
            facts = [it async for it in journal.facts("r")]
            (done,) = [it for it in facts if isinstance(it, ToolExecutionSucceeded)]
            assert is_sealed(done.result)

    asyncio.run(scene())
    assert host.found() == set()


async def declared(journal: SqliteJournal) -> tuple[SqliteJournal, str]:
    await journal.declare(RUN)
    return journal, "r"


def test_an_envelope_belongs_to_its_place() -> None:
    """Moved to another call, or made up by a model, it does not open; there it is a mere value."""
    seals = Seals({"f": Policy(keep_arguments=Keep.SEALED)}, TestCipher())
    here, there = Place("r", "t1", "a"), Place("r", "t1", "b")
    clear: Any = {"token": SECRET}
    kept = seals.arguments("f", clear, here)
    assert seals.clear_arguments(kept, here) == clear
    assert seals.arguments("f", kept, here) is kept
    with pytest.raises(SealBroken):
        seals.clear_arguments(kept, there)
    moved = seals.arguments("f", kept, there)
    assert moved != kept
    assert seals.clear_arguments(moved, there) == kept
    assert seals.arguments("f", clear, here) != kept
    assert seals.arguments("f", clear, here, known=kept) is kept


def test_a_model_that_makes_up_an_envelope_has_given_a_value(tmp_path: Path) -> None:
    """Its tool gets what it wrote; nothing is refused, and nobody has to open it."""
    host = Host(tmp_path)
    made_up: Any = {"sealed": "AAAA"}

    async def scene() -> None:
        async with await host.journal() as journal, host.runtime(journal) as runtime:
            await runtime.open_run(RUN)
            call = changed(calls("fetch")[0], arguments=made_up)
            assert (await runtime.open_turn("r", [call], turn_id="t1")).reason is None
            await until(lambda: bool(host.told))

    asyncio.run(scene())
    assert outcomes(host)["fetch"].startswith("bad arguments: sealed: is not taken here")


def test_what_is_wrong_with_edited_arguments_is_said_without_them(tmp_path: Path) -> None:
    """The answer to a post is kept."""
    host = Host(tmp_path)

    async def scene() -> None:
        async with await host.journal() as journal, host.runtime(journal) as runtime:
            await runtime.open_run(RUN)
            call = changed(calls("typed")[0], requires_approval=True)
            await runtime.open_turn("r", [call], turn_id="t1")
            wrong: Any = {"token": EDITED}
            with pytest.raises(BadArguments, match=r"token: does not fit; give int") as told:
                await runtime.approve("r", turn_id="t1", invocation_id="typed", arguments=wrong)
            assert EDITED not in str(told.value)

    asyncio.run(scene())


class Broken:
    """A cipher that cannot."""

    def seal(self, data: bytes, *, aad: bytes) -> bytes:
        raise OSError(SECRET)

    def open(self, sealed: bytes, *, aad: bytes) -> bytes:
        raise OSError(SECRET)


def test_a_cipher_that_fails_lets_nothing_through(tmp_path: Path) -> None:
    """A call is not taken; a result has failed, and its error does not say what it was."""
    cipher: Cipher = Broken()
    seals = Seals({"f": Policy(keep_result=Keep.SEALED)}, cipher)
    place = Place("r", "t1", "a")
    assert seals.error("f", SECRET, place, kind="ValueError") == f"{UNSAID} (ValueError)"

    async def scene() -> None:
        host = Host(tmp_path)
        tools = Toolbox(host.tools().values(), cipher=cipher)
        async with await host.journal() as journal:

            async def on_continue(_: object) -> None: ...

            async with Runtime(journal=journal, tools=tools, on_continue=on_continue) as runtime:
                await runtime.open_run(RUN)
                with pytest.raises(InvalidValue, match="could not be sealed"):
                    await runtime.open_turn("r", calls("fetch"), turn_id="t1")
        assert host.found() == set()

    asyncio.run(scene())


def test_a_seal_needs_a_cipher_and_arguments_more_than_a_digest() -> None:
    def f() -> None: ...

    with pytest.raises(InvalidValue, match=r"tool f: keeps something sealed.*cipher="):
        Toolbox.of(tool(keep_result=Keep.SEALED)(f))
    with pytest.raises(InvalidValue, match="keep_arguments: is digest"):
        Policy(keep_arguments=Keep.DIGEST)
    assert isinstance(Toolbox.of(Tool(name="f", call=f)).seals, Seals)


def test_people_are_shown_that_there_is_something() -> None:
    sealed: Any = {"sealed": "AAAA"}
    assert (shown_json(sealed), shown_json({"a": 1})) == (HIDDEN, '{"a":1}')
    assert (shown_text("sealed:AAAA"), shown_text("no")) == (HIDDEN, "no")
