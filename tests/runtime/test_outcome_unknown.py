"""W-62: a tool that cannot tell what it did is in doubt, as if its process had died; not failed."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

import pytest

from turnlock import FactType, Resolution, Run, Status
from turnlock.models.diagnostics import ToolLog
from turnlock.runtime import OutcomeUnknown
from turnlock.runtime import Status as RunStatus
from turnlock.runtime.dispatcher import Continuation
from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.tools.calling import ToolContext
from turnlock.runtime.tools.performing import perform, prepare
from turnlock.runtime.tools.policy import InDoubt, Keep
from turnlock.runtime.tools.results import Failed, NeverHappened, Outcome, Succeeded, Unknown
from turnlock.runtime.tools.tool import Tool, tool
from turnlock.runtime.tools.toolbox import Toolbox

from .sdk import Sdk
from .secrets import TestCipher
from .test_runtime import World, calls, crash
from .tools.scene import SHORT, Gate, context, play
from .virtual import run, settled

RUN = Run(run_id="r")
WHY = "the server went away"


def breaks() -> NoReturn:
    raise OutcomeUnknown(WHY)


async def tells_nobody(_: object) -> None:
    """No model is there to be told."""


def performed(it: Tool, **fields: Any) -> Outcome:
    return play(lambda pool: perform(it, context(**fields), {}, threads=pool, grace=SHORT))


async def breaks_on_the_loop() -> NoReturn:
    await asyncio.sleep(0)
    breaks()


async def breaks_in_a_group() -> None:
    """As a client does that has a task for its connection."""
    async with asyncio.TaskGroup() as group:
        group.create_task(breaks_on_the_loop())


def breaks_deep_in_groups() -> NoReturn:
    inner = ExceptionGroup("inner", [ValueError("x"), OutcomeUnknown(WHY)])
    raise ExceptionGroup("outer", [KeyError("y"), inner])


class HiddenGroup(ExceptionGroup[Exception]):
    """Its members are there, whatever it says of them."""

    @property
    def exceptions(self) -> Any:
        raise SystemExit(3)


def breaks_in_a_hidden_group() -> NoReturn:
    raise HiddenGroup("hidden", [OutcomeUnknown(WHY)])


class Torn(OutcomeUnknown):
    """One of the author's own."""


def breaks_in_own_words() -> NoReturn:
    raise Torn(WHY)


@pytest.mark.parametrize(
    "call",
    [
        breaks,
        breaks_on_the_loop,
        breaks_in_a_group,
        breaks_deep_in_groups,
        breaks_in_a_hidden_group,
        breaks_in_own_words,
    ],
)
def test_w_62_a_tool_that_cannot_tell_has_an_unknown_outcome(call: Any) -> None:
    got = performed(tool(call))

    assert isinstance(got, Unknown)
    assert got.later is None
    assert got.why.startswith("the tool cannot tell: ")


@pytest.mark.parametrize("error", [ValueError(WHY), ExceptionGroup("g", [ValueError(WHY)])])
def test_w_62_any_other_error_is_a_failure(error: Exception) -> None:
    """The negative control: a tool that raises has failed, also where `OutcomeUnknown` is behind.

    Who raises another error from it has said what it means.
    """

    def fails() -> NoReturn:
        try:
            breaks()
        except OutcomeUnknown as cause:
            raise error from cause

    assert isinstance(performed(tool(fails)), Failed)


def test_w_62_a_call_that_is_stopped_may_not_be_able_to_tell_either() -> None:
    """A request is cancelled when time is over, and nobody knows whether the server saw that."""

    @tool(timeout=SHORT)
    async def slow() -> None:
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            breaks()

    got = performed(slow)

    assert isinstance(got, Unknown)
    assert got.why == f"the tool cannot tell: it timed out after 0.02 s; then {WHY}"


def test_w_62_a_processor_may_find_that_nobody_can_tell() -> None:
    def looks(_: Any, __: ToolContext) -> NoReturn:
        breaks()

    @tool(processors=(looks,))
    def f() -> int:
        return 1

    got = performed(f)

    assert isinstance(got, Unknown)
    assert got.why == f"the tool succeeded, but its result processor looks cannot tell: {WHY}"


def test_w_62_before_the_claim_there_is_nothing_to_be_in_doubt_about() -> None:
    """A preprocessor that raises it rejects the call: the tool was not started."""

    def asks(_: Any, __: ToolContext) -> NoReturn:
        breaks()

    it = tool(name="f", preprocessors=(asks,))(lambda: None)

    async def scene(pool: ThreadPoolExecutor) -> str:
        try:
            await prepare(it, context(), {}, threads=pool)
        except Exception as error:  # noqa: BLE001 - looked at below
            return f"{type(error).__name__}: {error}"
        return ""

    assert play(scene).startswith("Rejected: the preprocessor asks failed: OutcomeUnknown: ")


def test_w_62_a_thread_that_ends_late_may_say_so_too() -> None:
    gate = Gate()

    @tool(timeout=SHORT)
    def hangs() -> None:
        gate.pass_through()
        breaks()

    async def scene(pool: ThreadPoolExecutor) -> None:
        got = await perform(hangs, context(), {}, threads=pool, grace=SHORT)
        assert isinstance(got, Unknown)
        assert got.later is not None
        gate.open.set()
        later = await got.later
        assert isinstance(later, Unknown)
        assert later.later is None

    play(scene)


def did_not(_: ToolContext) -> NeverHappened:
    return NeverHappened()


def cannot_tell(_: ToolContext) -> NoReturn:
    breaks()


POLICIES: list[tuple[dict[str, Any], Status | None, int]] = [
    ({"in_doubt": InDoubt.ASK}, None, 1),
    ({"in_doubt": InDoubt.FAIL}, Status.FAILED, 1),
    ({"safe_to_repeat": True}, Status.SUCCEEDED, 2),
    ({"probe": did_not}, Status.SUCCEEDED, 2),
]


@pytest.mark.parametrize(("policy", "status", "ran"), POLICIES)
def test_w_62_its_policy_decides_what_becomes_of_it(
    policy: dict[str, Any], status: Status | None, ran: int
) -> None:
    """The first attempt cannot tell; where it is tried again it succeeds."""

    async def scene() -> None:
        world = World()
        act = world.tool("act", lambda: world.ledger["act"] > 1 or breaks(), **policy)
        async with world.process(act) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("act"), turn_id="t1")
            await settled()

        facts = await world.facts()
        assert FactType.EXECUTION_IN_DOUBT in facts
        assert (FactType.TOOL_EXECUTION_FAILED in facts) is (status is Status.FAILED)
        assert [one.status for told in world.told for one in told.results] == (
            [] if status is None else [status]
        )
        assert world.ledger == {"act": ran}

    run(scene())


def test_w_62_a_model_that_is_told_that_it_failed_is_told_why_nobody_knows() -> None:
    async def scene() -> None:
        world = World()
        act = world.tool("act", breaks, in_doubt=InDoubt.FAIL)
        async with world.process(act) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("act"), turn_id="t1")
            await settled()

        (result,) = world.told[0].results
        assert result.error == (
            "the outcome is unknown: it was started, and nobody knows whether it happened: "
            f"the tool cannot tell: {WHY}"
        )

    run(scene())


def test_w_62_what_a_person_says_of_it_is_told_to_the_model() -> None:
    """Also after a crash: it is in doubt in the journal, not in the memory of the process."""

    async def scene() -> None:
        world = World()
        act = world.tool("act", breaks)
        first = world.process(act)
        await first.__aenter__()
        await first.open_run(RUN)
        await first.open_turn("r", calls("act"), turn_id="t1")
        await settled()
        await crash(first)
        await asyncio.sleep(31)

        async with world.process(act) as second:
            await second.open_run(RUN)
            await settled()
            assert (await second.status("r")).status is RunStatus.IN_DOUBT
            await second.resolve(
                "r",
                turn_id="t1",
                invocation_id="act",
                attempt=1,
                resolution=Resolution.RESULT,
                result="it did",
            )
            await settled()

        assert [one.result for one in world.told[0].results] == ["it did"]
        assert world.ledger == {"act": 1}

    run(scene())


def test_w_62_it_is_in_doubt_after_a_crash_before_it_could_say_so() -> None:
    """The `Lose` was not kept: the next process finds what a dead one had claimed."""

    async def scene() -> None:
        world = World()
        first = world.process(world.tool("act", lambda: asyncio.sleep(3600)))
        await first.__aenter__()
        await first.open_run(RUN)
        await first.open_turn("r", calls("act"), turn_id="t1")
        await settled()
        await crash(first)
        await asyncio.sleep(31)
        async with world.process(world.tool("act", breaks)) as second:
            await second.open_run(RUN)
            await settled()
            assert (await second.status("r")).status is RunStatus.IN_DOUBT

    run(scene())


def test_w_62_who_watches_is_told_why(caplog: pytest.LogCaptureFixture) -> None:
    """Telemetry, TOOL_LOG and the log of the process: whoever settles it wants to know."""
    sdk = Sdk()
    said: list[Any] = []

    async def scene() -> None:
        world = World()
        act = world.tool("act", breaks)
        runtime = Runtime(
            journal=world.journal,
            tools=Toolbox.of(act),
            on_continue=tells_nobody,
            telemetry=sdk.telemetry,
        )
        async with runtime:
            await runtime.open_run(RUN)

            saying = asyncio.ensure_future(anext(runtime.diagnostics("r")))
            await settled()
            await runtime.open_turn("r", calls("act"), turn_id="t1")
            said.append(await saying)

    with caplog.at_level(logging.WARNING):
        run(scene())

    span = next(it for it in sdk.spans if it.name.startswith("execute_tool"))
    assert (span.attributes or {})["turnlock.outcome"] == "unknown"
    assert span.status.description == f"the tool cannot tell: {WHY}"
    assert isinstance(said[0], ToolLog)
    assert [it.text for it in said] == [f"the outcome is unknown: the tool cannot tell: {WHY}"]
    assert f"is unknown: the tool cannot tell: {WHY}" in caplog.text


@pytest.mark.parametrize("keep", [Keep.SEALED, Keep.CLEAR])
def test_w_62_why_a_secretive_tool_cannot_tell_is_kept_as_its_errors_are(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, keep: Keep
) -> None:
    """Sealed it is nowhere but at the model; kept clear, the negative control, it is."""
    sdk = Sdk(contents=True)
    told: list[str | None] = []

    @tool(keep_arguments=keep, keep_result=keep, in_doubt="fail")
    async def act() -> None:
        breaks()

    async def scene() -> None:
        settled = asyncio.Event()

        async def on_continue(continuation: Continuation) -> None:
            told.extend(one.error for one in continuation.results)
            settled.set()

        async with (
            await SqliteJournal.open(tmp_path / "r.db") as journal,
            Runtime(
                journal=journal,
                tools=Toolbox.of(act, cipher=TestCipher()),
                on_continue=on_continue,
                telemetry=sdk.telemetry,
            ) as runtime,
        ):
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("act"), turn_id="t1")
            async with asyncio.timeout(5):
                await settled.wait()

    asyncio.run(scene())
    files = b"".join(it.read_bytes() for it in tmp_path.iterdir()).decode(errors="replace")
    seen = caplog.text + files + "".join(it.to_json() for it in sdk.spans)
    assert "is unknown" in caplog.text
    assert (WHY in seen) is (keep is Keep.CLEAR)
    assert [WHY in (error or "") for error in told] == [True]


def test_w_62_a_probe_that_cannot_tell_leaves_the_doubt_to_a_person() -> None:
    async def scene() -> None:
        world = World()
        act = world.tool("act", breaks, in_doubt=InDoubt.PROBE, probe=cannot_tell)
        async with world.process(act) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("act"), turn_id="t1")
            await settled()
            assert (await runtime.status("r")).status is RunStatus.IN_DOUBT

    run(scene())


def test_w_62_a_tool_that_tells_is_believed() -> None:
    """The other negative control: the same world, with a tool whose server stayed."""
    assert performed(tool(lambda_of_one)) == Succeeded(1)


def lambda_of_one() -> int:
    return 1
