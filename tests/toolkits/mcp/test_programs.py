"""Servers as programs that do what they should not: each is named, bounded, and begun anew."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from turnlock.models.errors import InvalidValue, TurnlockError
from turnlock.runtime.tools.policy import Policy
from turnlock.toolkits.mcp import (
    Accept,
    McpServer,
    McpServerError,
    McpServers,
    Question,
    Reply,
    answering,
    life,
    stdio,
)

from .hosting import (
    ANY,
    Notes,
    context,
    doubt,
    failure,
    odd,
    outcome,
    play,
    result,
    shop_as_program,
    until,
)

RESULT = {"jsonrpc": "2.0", "id": "$id", "result": {"content": [{"type": "text", "text": "ok"}]}}
QUESTION = {
    "jsonrpc": "2.0",
    "id": "q1",
    "method": "elicitation/create",
    "params": {
        "message": "Which size?",
        "requestedSchema": {"type": "object", "properties": {"size": {"type": "integer"}}},
    },
}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait long for servers that do not end."""
    monkeypatch.setattr(stdio, "ENDING", 0.3)


async def refused(server: McpServer, name: str = "odd") -> str:
    """Why this server cannot be used."""
    with pytest.raises(McpServerError) as caught:
        async with McpServers({name: server}):
            pass
    return str(caught.value)


def test_a_server_that_cannot_start_is_named_with_why() -> None:
    """No program, one that dies with last words, one that hangs, one that only babbles."""

    async def work() -> None:
        gone = await refused(McpServer(command=["/no/such/program"]))
        assert "MCP server odd: FileNotFoundError" in gone
        assert "see that '/no/such/program' is such a server" in gone
        dead = await refused(odd(how="dies"))
        assert "MCP server odd: it ended with code 3; see that " in dead
        assert "; its last words: there is no \\x1b[1mconfiguration" in dead
        began = time.monotonic()
        assert "within 0.5 s" in await refused(odd(how="hangs", start_within=0.5))
        assert time.monotonic() - began < 6
        babble = await refused(odd(how="babbles"))
        assert "more than 100 lines that are no messages" in babble
        assert "lists its tools on more than 100 pages" in await refused(odd(how="pages"))

    play(work())


UNFIT: list[tuple[list[dict[str, Any]], str]] = [
    (
        [{"name": "act", "inputSchema": {"type": "object", "properties": {"a": {"type": 7}}}}],
        "MCP server odd, tool 'act': parameters.properties.a.type: 7 is not valid",
    ),
    (
        [{"name": "act", "inputSchema": {"type": "object", "$ref": "http://127.0.0.1/x"}}],
        "MCP server odd, tool 'act': parameters.$ref: 'http://127.0.0.1/x' leads nowhere",
    ),
    (
        [
            {
                "name": "act",
                "inputSchema": ANY,
                "outputSchema": {"type": "object", "minProperties": "x"},
            }
        ],
        "MCP server odd, tool 'act': output schema: 'x' is not of type 'integer'",
    ),
    (
        [{"name": "a.b", "inputSchema": ANY}, {"name": "a/b", "inputSchema": ANY}],
        "tool 'a/b': name: would be odd__a_b, as is that of MCP server odd, tool 'a.b'",
    ),
    (
        [{"name": "x" * n, "inputSchema": ANY} for n in (70, 71)],
        "as is that of MCP server odd, tool",
    ),
    (
        [
            {
                "name": "act",
                "inputSchema": {"type": "object", "properties": {"turnlock_context": {}}},
            }
        ],
        "parameters.properties.turnlock_context: is ours",
    ),
    ([{"name": f"a{n}", "inputSchema": ANY} for n in range(501)], "more than 500 tools"),
]


STAYS = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
"""A program that ends neither with its input nor when it is asked to."""


def test_letting_go_of_pipes_reaps_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever else asks how it ended is told, and the loop says that it ended with code 255."""

    async def work() -> None:
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", STAYS, **pipes)
        asked: list[object] = []
        transport: Any = vars(process)["_transport"]
        monkeypatch.setattr(transport._proc, "poll", lambda: asked.append(process))
        process.send_signal(signal.SIGKILL)
        asked.clear()  # that asks as well, before it dies
        stdio.close_pipes(process)
        assert await process.wait() == -signal.SIGKILL
        assert asked == []

    play(work())


def test_who_ends_a_program_and_is_cancelled_leaves_neither_it_nor_streams(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stdio, "ENDING", 60.0)  # only a second cancellation ends the waiting

    async def work() -> None:
        server = McpServer(command=(sys.executable, "-c", STAYS))
        program = stdio.Program("stays", server, ended=lambda: None)
        began = asyncio.Event()
        streams: list[Any] = []

        async def life_of_it() -> None:
            async with program.connected() as both:
                streams.extend(both)
                began.set()
                await asyncio.sleep(60)

        living = asyncio.create_task(life_of_it())
        await began.wait()
        for _ in range(2):
            living.cancel()
            await asyncio.sleep(0.05)
        with pytest.raises(asyncio.CancelledError):
            await living
        await program.exited()

        assert program.why_over() == "it was ended by signal 9"
        assert [it.statistics().open_receive_streams for it in streams] == [0, 0]

    play(work())


@pytest.mark.parametrize(("tools", "said"), UNFIT)
def test_w_63_a_tool_that_cannot_be_one_is_refused_at_start(
    tools: list[dict[str, Any]], said: str
) -> None:
    """The message names the server and the tool; no tool is left out in silence."""

    async def work() -> None:
        assert said in await refused(odd(*tools))

    play(work())


def test_w_63_names_and_schemas_are_as_the_server_has_them() -> None:
    """SERVER__TOOL, other characters as _, 64 at most; a policy for nothing is refused."""
    schema = {
        "type": "object",
        "properties": {"class": {"type": "string"}, "a b": {"type": "integer"}},
        "required": ["class"],
    }

    async def work() -> None:
        server = odd({"name": "Ä.t/ool" + "x" * 80, "inputSchema": schema})
        async with McpServers({"o.dd": server}) as servers:
            (tool,) = servers.tools()
            assert tool.name == ("o_dd____t_ool" + "x" * 80)[:64]
            assert tool.parameters == schema
            given: dict[str, Any] = {"class": "a", "a b": 1, "say": [RESULT]}
            assert await result(tool, None, **given) == "ok"
        for name, called in (("my server\x1b", "my_server___act"), ("a" * 40, "a" * 40 + "__act")):
            async with McpServers({name: odd()}) as servers:
                assert [it.name for it in servers.tools()] == [called]
        with pytest.raises(McpServerError, match="name: would be a_b__act, as is that of"):
            async with McpServers({"a b": odd(), "a_b": odd()}):
                pass
        hints = {"readOnlyHint": True}
        tools = [{"name": it, "inputSchema": ANY, "annotations": hints} for it in ("act", "look")]
        policy = Policy(approval=True, timeout=7)
        server = odd(*tools, trusted=True, policies={"act": policy})
        async with McpServers({"odd": server}) as servers:
            act, look = servers.tools()
            assert act.policy == policy  # it goes before the hint (W-64)
            assert (look.policy.approval, look.policy.safe_to_repeat) == (False, True)
        policies = {"act": Policy(), "akt": Policy()}
        why = await refused(odd(policies=policies))
        assert "policies name 'akt', which it does not offer; name one of these: act" in why

    play(work())


def test_w_65_what_a_dying_server_did_is_in_doubt_and_the_next_call_begins_it_anew() -> None:
    """Killed, or gone while its child holds the pipes: in doubt; the call is never made again."""

    async def work() -> None:
        async with McpServers({"odd": odd()}) as servers:
            (act,) = servers.tools()
            first = servers.process("odd")
            why = await doubt(act, say=[{"$do": "kill"}])
            assert "the connection was closed (it was ended by signal 9)" in why
            assert await result(act, say=[RESULT]) == "ok"
            second = servers.process("odd")
            assert first != second
            began = time.monotonic()
            why = await doubt(act, say=[{"$do": "child", "times": 9}, {"$do": "exit", "times": 4}])
            assert "it ended with code 4" in why
            assert time.monotonic() - began < 8  # the child has its pipes still
            assert await result(act, say=[RESULT]) == "ok"
            third = servers.process("odd")
            assert third is not None
            os.kill(third, 9)  # while nothing runs: the next call is not the worse for it
            await asyncio.sleep(0.05)
            assert await result(act, say=[RESULT]) == "ok"

    play(work())


def test_w_65_what_a_server_answers_decides_between_failure_and_doubt() -> None:
    """An error of its own is a failure; an answer that cannot be read is a doubt."""

    def error(code: int, message: str = "no") -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": "$id", "error": {"code": code, "message": message}}

    async def work() -> None:
        async with McpServers({"odd": odd()}) as servers:
            (act,) = servers.tools()
            assert "did not take the arguments: no" in await failure(act, say=[error(-32_602)])
            assert "has no such tool any more" in await failure(act, say=[error(-32_601)])
            assert "with the error -32603: no" in await failure(act, say=[error(-32_603)])
            # the client's own code for a closed connection, sent by a server that lives
            assert "with the error -32000: no" in await failure(act, say=[error(-32_000)])
            broken = {"jsonrpc": "2.0", "id": "$id", "result": {"content": "none"}}
            assert "is no result of MCP" in await doubt(act, say=[broken])
            said = {"content": [{"type": "text", "text": "out of stock"}], "isError": True}
            failed = {"jsonrpc": "2.0", "id": "$id", "result": said}
            assert "out of stock" in await failure(act, say=[failed])
            lines = ["what?", "\u00e9{", "{}", RESULT]
            assert await result(act, say=lines) == "ok"

    play(work())


def test_w_64_of_a_list_that_changes_what_cannot_be_is_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The rest is there, the error names the tool; a list that is none counts for nothing."""
    bad = {"name": "bad", "inputSchema": {"type": "object", "properties": {"a": {"type": 7}}}}
    none = {"name": "none", "inputSchema": {"type": "object", "properties": 7}}
    act, good = ({"name": name, "inputSchema": ANY} for name in ("act", "good"))
    many = [{"name": f"a{n}", "inputSchema": ANY} for n in range(501)]
    changes: list[tuple[list[Any], str]] = [
        ([bad, act, good], "left out, as the list has changed: MCP server odd, tool 'bad'"),
        ([act, none], "MCP server odd does not list its tools"),
        (many, "MCP server odd does not list its tools"),
    ]

    async def work() -> None:
        async with McpServers({"odd": odd(act)}) as servers:
            (tool,) = servers.tools()
            for offered, why in changes:
                await result(tool, say=[{"$do": "offer", "tools": offered}, RESULT])
                await until(lambda why=why: why in caplog.text)  # type: ignore[misc]
                assert [it.name for it in servers.tools()] == ["odd__act", "odd__good"]
                caplog.clear()

    play(work())


def test_a_message_without_end_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded: the call is in doubt, and the next one has a new process."""
    monkeypatch.setattr(stdio, "LINE", 1 << 20)

    async def work() -> None:
        async with McpServers({"odd": odd()}) as servers:
            (act,) = servers.tools()
            why = await doubt(act, say=[{"$do": "flood", "times": 4 << 20}])
            assert "a message of more than 1,048,576 bytes" in why
            assert await result(act, say=[RESULT]) == "ok"

    play(work())


def test_w_67_a_question_is_taken_back_when_its_call_ends_or_its_asker_dies() -> None:
    """The callback is cancelled, and the server told `cancel` where it can hear it."""
    asked: list[Question] = []
    taken_back: list[str] = []

    async def ask(it: Question) -> Reply:
        asked.append(it)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            taken_back.append(it.question_id)
            raise
        return Accept({})

    async def work() -> None:
        async with McpServers({"odd": odd()}, elicit=ask) as servers:
            notes = Notes()
            servers.remember(notes)

            def kept_as_cancelled() -> bool:
                """Whether that is kept once the call has ended; what comes next is asked anew."""
                told = dict(notes.kept)
                notes.kept.clear()
                return told.pop("reply/r/t1/a/1/1") == {"action": "cancel"} and len(told) == 1

            (act,) = servers.tools()
            assert act.policy.concurrency == 1
            # it asks, and answers its call before anybody has answered it
            assert await result(act, say=[QUESTION, {"$do": "sleep", "times": 0.3}, RESULT]) == "ok"
            assert taken_back == ["question/r/t1/a/1/1"]
            assert kept_as_cancelled()
            # it asks, and dies
            why = await doubt(act, say=[QUESTION, {"$do": "sleep", "times": 0.3}, {"$do": "kill"}])
            assert "signal 9" in why
            assert len(taken_back) == 2
            assert kept_as_cancelled()
            # its call is interrupted
            given = context("odd__act")
            calling = asyncio.create_task(outcome(act, given, say=[QUESTION]))
            await until(lambda: len(asked) == 3)
            given.cancel("the turn was interrupted")
            assert "was cancelled" in str(await calling)
            assert len(taken_back) == 3
            assert kept_as_cancelled()

    play(work())


def test_w_67_a_question_that_nobody_could_be_asked_is_cancelled() -> None:
    """What the callback raises is logged; the server is told `cancel`, and that is kept."""

    async def ask(_: Question) -> Reply:
        raise OSError("no terminal")

    async def work() -> None:
        async with McpServers({"odd": odd()}, elicit=ask) as servers:
            notes = Notes()
            servers.remember(notes)
            (act,) = servers.tools()
            assert await result(act, say=[QUESTION, {"$do": "wait"}, RESULT]) == "ok"
            assert notes.kept["reply/r/t1/a/1/1"] == {"action": "cancel"}

    play(work())


def test_w_67_what_the_dead_asked_is_cancelled_once_their_run_is_open_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Now, or later; what has a reply, belongs to another run or is asked here stays."""
    monkeypatch.setattr(answering, "LOOK_FOR_RUNS", 0.01)
    asked = asyncio.Event()
    answers: list[asyncio.Future[Reply]] = []

    async def ask(_: Question) -> Reply:
        answers.append(asyncio.get_running_loop().create_future())
        asked.set()
        return await answers[0]

    async def work() -> None:
        dead, answered = "question/r/t0/a/1/1", "question/r/t0/b/1/1"
        replied = answered.replace("question", "reply")
        notes = Notes(dead, answered, replied, "question/other/t1/a/1/1", runs=())
        before = dict(notes.kept)
        async with McpServers({"odd": odd()}, elicit=ask) as servers:
            servers.remember(notes)
            (act,) = servers.tools()
            calling = asyncio.create_task(result(act, say=[QUESTION, {"$do": "wait"}, RESULT]))
            await asked.wait()
            await asyncio.sleep(0.05)
            assert notes.kept.keys() - before == {"question/r/t1/a/1/1"}  # not open here
            notes.runs = ("r",)
            await until(lambda: "reply/r/t0/a/1/1" in notes.kept)
            await asyncio.sleep(0.05)
            answers[0].set_result(Accept({"size": 3}))
            assert await calling == "ok"
        new = {name: notes.kept[name] for name in notes.kept if name not in before}
        del new["question/r/t1/a/1/1"]
        assert new == {
            "reply/r/t0/a/1/1": {"action": "cancel"},
            "reply/r/t1/a/1/1": {"action": "accept", "content": {"size": 3}},
        }

    play(work())


@pytest.mark.parametrize("how", [(), ("old",)], ids=["2026-07-28", "2025-11-25"])
def test_w_64_a_list_that_changed_in_a_call_counts_when_it_has_its_result(
    tmp_path: Path, how: tuple[str, ...]
) -> None:
    """The question after it has the new tool. W-67: forms alone may be asked, pages may not."""

    async def ask(_: Question) -> Reply:
        raise AssertionError

    async def work() -> None:
        server = shop_as_program(tmp_path / "ledger", *how)
        async with McpServers({"shop": server}, elicit=ask) as servers:
            for name in ("bird", "fish"):
                await result(servers.toolbox()["shop__grow"], called=name)
                assert f"shop__{name}" in servers.toolbox()
            assert await result(servers.toolbox()["shop__asked_with"]) == '{"form": {}}'

    play(work())


@pytest.mark.parametrize("legacy", [True, False])
def test_w_67_a_tool_may_ask_in_the_middle_of_its_work_in_the_older_protocol(
    tmp_path: Path, *, legacy: bool
) -> None:
    """The control: in the newer one the SDK's server has no way to ask, and says so."""

    async def ask(_: Question) -> Reply:
        return Accept({"size": 3})

    async def work() -> None:
        server = shop_as_program(tmp_path / "ledger", legacy=legacy)
        async with McpServers({"shop": server}, elicit=ask) as servers:
            order = servers.toolbox()["shop__order_then"]
            if legacy:
                assert '"size":3' in await result(order, what="tea")
            else:
                assert "no back-channel" in await failure(order, what="tea")

    play(work())


def test_w_64_a_list_that_does_not_come_keeps_no_result_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The result waits for it, bounded."""
    monkeypatch.setattr(life, "LISTED_WITHIN", 0.2)

    async def work() -> None:
        async with McpServers({"odd": odd()}) as servers:
            (act,) = servers.tools()
            change = {"$do": "offer", "tools": [{"name": "new", "inputSchema": ANY}]}
            began = time.monotonic()
            assert await result(act, say=[change, RESULT, {"$do": "sleep", "times": 4}]) == "ok"
            assert time.monotonic() - began < 3.5
            assert servers.tools() == (act,)

    play(work())


def test_what_the_client_logs_of_servers_comes_out_harmless(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its loggers, and those below it, have the filter that ours have."""

    async def work() -> None:
        async with McpServers({"odd": odd()}):
            for name in ("client", "mcp.client.streamable_http", "httpx2"):
                logging.getLogger(name).warning("it said %s", "\x1b[2J\nERROR")

    play(work())
    assert caplog.messages == ["it said \\x1b[2J\\nERROR"] * 3


def test_w_66_a_call_has_its_time_and_questions_do_not_count() -> None:
    """Its request is cancelled then, and it has failed; a policy of its own goes before."""
    asked: list[Question] = []

    async def ask(it: Question) -> Reply:
        asked.append(it)
        await asyncio.sleep(1.2)
        return Accept({})

    async def work() -> None:
        server = odd(call_within=0.8)
        async with McpServers({"odd": server}, elicit=ask) as servers:
            (act,) = servers.tools()
            why = await failure(act, say=[])
            assert "timed out after 0.8 s; its request was cancelled" in why
            assert await result(act, say=[QUESTION, {"$do": "wait"}, RESULT]) == "ok"
            assert len(asked) == 1
        server = odd(call_within=0.1, policies={"act": Policy(timeout=30)})
        async with McpServers({"odd": server}) as servers:
            (act,) = servers.tools()
            assert await result(act, say=[{"$do": "sleep", "times": 0.3}, RESULT]) == "ok"

    play(work())


def test_nothing_is_loaded_before_a_server_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client is an extra, and slow to load; who lacks it is told what to install."""
    code = (
        "import sys, turnlock.toolkits.mcp\n"
        "print({'mcp', 'mcp_types', 'pydantic', 'httpx2', 'anyio', 'jsonschema'} & {*sys.modules})"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "set()\n"

    def missing(_: str) -> None:
        """Find no such package."""

    async def work() -> None:
        monkeypatch.setattr("turnlock.toolkits.mcp.servers.find_spec", missing)
        with pytest.raises(TurnlockError, match="pip install 'turnlock\\[mcp\\]'"):
            async with McpServers({"odd": odd()}):
                pass

    play(work())


def test_a_server_is_declared_as_a_command_or_a_url() -> None:
    """A text is enough; what cannot be meant is refused with the fix, and no secret is shown."""
    assert McpServer.of("python 'my server.py' -x").command == ("python", "my server.py", "-x")
    assert McpServer.of("https://127.0.0.1:1/mcp").url == "https://127.0.0.1:1/mcp"
    assert McpServer.named("files=python s.py")[0] == "files"
    assert McpServer.named("python -u tools/my-shop.py --at x=y")[0] == "my-shop"
    assert McpServer.named("npx -y @org/server-files /tmp")[0] == "npx"
    assert McpServer.named("http://shop.example:1/mcp?a=b") == (
        "shop_example",
        McpServer(url="http://shop.example:1/mcp?a=b"),
    )
    server = McpServer(url="http://127.0.0.1", headers={"Authorization": "Bearer s3cret"})
    assert "s3cret" not in repr(server)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({}, "url are both missing"),
        ({"command": "a", "url": "http://b"}, "url are both given"),
        ({"command": "a 'b"}, "No closing quotation"),
        ({"command": 7}, "is no command"),
        ({"url": "ftp://a"}, "is no URL of a server"),
        ({"command": "a", "policies": {"b": {}}}, "is no policy"),
        ({"command": "a", "start_within": 0}, "is not above 0"),
    ]
    for given, why in wrong:
        with pytest.raises(InvalidValue, match=why):
            McpServer(**given)
    with pytest.raises(InvalidValue, match="come together"):
        McpServers({}, sample=None, approve_sample=lambda _: asyncio.sleep(0, True))
    with pytest.raises(InvalidValue, match="are 33; name 32 at most"):
        McpServers({f"s{n}": "c" for n in range(33)})
    with pytest.raises(InvalidValue, match="one with no characters"):
        McpServers({"": "c"})
