"""turnlock guard mcp as a command: what it refuses to start with, and how it ends."""

from __future__ import annotations

import asyncio
import json
import math
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from turnlock.cli import guard_mcp
from turnlock.cli.main import main
from turnlock.guards import At, Guard
from turnlock.guards.mcp import command
from turnlock.guards.mcp.asking import VERSION
from turnlock.guards.mcp.messages import Unreadable, messages_of

from .banking import BOUND, KEY, Bank, killed, pay, play, refused, until

HELLO: Any = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t"}},
}


def spoken(bank: Bank, *lines: bytes, answers: int) -> list[Any]:
    """Say lines to a proxy, and return its answers, so many; then it is left, and ends well."""
    with (
        bank.errors.open("a") as errors,
        subprocess.Popen(
            bank.proxy(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"\n".join(lines) + b"\n")
        process.stdin.flush()
        found = [json.loads(process.stdout.readline()) for _ in range(answers)]
        assert process.communicate(timeout=BOUND)[0] == b""
    assert process.returncode == 0
    return found


@pytest.mark.parametrize(
    ("words", "told_so"),
    [
        (["--db", "agent.db"], "name one server: its command after --, or its --url"),
        (["--db", "agent.db", "--url", "http://x", "--", "x"], "name one server"),
        (["--db", "agent.db", "--header", "A=B", "--", "x"], "--header is for a server at a --url"),
        (["--db", "agent.db", "--url", "http://x", "--header", "A=NO_SUCH"], "NAME=VARIABLE"),
        (["--db", "agent.db", "--run", "", "--", "x"], "--run: give a prefix"),
        (["--db", "text", "--", "x"], "text"),
        (["--db", "newer.db", "--", "x"], "newer"),
        (["--db", "no/folder/agent.db", "--", "x"], "no/folder"),
    ],
)
def test_wrong_usage_is_told_on_the_standard_error(
    words: list[str], told_so: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Status 2, with the cause, and nothing on the standard output."""
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("this is no journal, and long enough to be sure of that\n" * 50)
    assert CliRunner().invoke(main, ["runs", "--db", "newer.db"]).exit_code == 2
    Guard.open("newer.db").close()
    journal = sqlite3.connect("newer.db")
    journal.execute("PRAGMA user_version = 999")
    journal.commit()
    journal.close()
    found = CliRunner().invoke(main, ["guard", "mcp", *words])
    assert (found.exit_code, found.stdout) == (2, "")
    assert told_so in found.stderr


def test_the_module_is_the_command() -> None:
    """python -m turnlock.guards.mcp has the same options."""
    assert guard_mcp.command is command
    ended = subprocess.run(
        [sys.executable, "-m", "turnlock.guards.mcp", "--help"],
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=True,
    )
    assert "--gate TOOL" in ended.stdout


def test_a_server_that_cannot_be_started_or_ends_is_told(tmp_path: Path) -> None:
    """Status 1; what waits for an answer gets an error."""
    bank = Bank(tmp_path)
    missing = subprocess.run(
        [*bank.proxy()[:5], "--", "/no/such/program"],
        input=b"",
        capture_output=True,
        timeout=BOUND,
        check=False,
    )
    assert (missing.returncode, missing.stdout) == (1, b"")
    assert b"the server /no/such/program cannot be used" in missing.stderr.replace(b"'", b"")
    leave = json.dumps({"jsonrpc": "2.0", "id": "x", "method": "x/exit"}).encode()
    process = subprocess.Popen(
        bank.proxy(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdin is not None
    process.stdin.write(leave + b"\n")
    process.stdin.flush()
    out, errors = b"", b""
    assert process.wait(BOUND) == 1
    out, errors = process.communicate(timeout=BOUND)
    (error,) = map(json.loads, out.splitlines())
    assert (error["id"], error["error"]["code"]) == ("x", -32_000)
    assert b"last words" in errors
    assert b"is gone: it ended with code 7" in errors


def test_who_starts_it_without_pipes_is_told_who_should(tmp_path: Path) -> None:
    """A person who tries it, or a log that takes its output."""
    bank = Bank(tmp_path)
    with (tmp_path / "out").open("wb") as out:
        ended = subprocess.run(
            bank.proxy(),
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=subprocess.PIPE,
            timeout=BOUND,
            check=False,
        )
    assert ended.returncode == 2
    assert b"must be pipes: an MCP client starts this command" in ended.stderr
    ended = subprocess.run(
        bank.proxy(), stdin=subprocess.DEVNULL, capture_output=True, timeout=BOUND, check=False
    )
    assert (ended.returncode, ended.stdout) == (2, b"")


def test_a_library_that_is_missing_is_told(tmp_path: Path) -> None:
    """Servers over stdio need none."""
    code = (
        "import sys; sys.modules['mcp'] = None\n"
        "from turnlock.guards.mcp import command; command(sys.argv[1:])"
    )
    options = ["--db", str(tmp_path / "agent.db"), "--url", "http://127.0.0.1:9/mcp"]
    ended = subprocess.run(
        [sys.executable, "-c", code, *options],
        input=b"",
        capture_output=True,
        timeout=BOUND,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (1, b"")
    assert b"pip install 'turnlock[guard-mcp]'" in ended.stderr
    assert b"Traceback" not in ended.stderr


def test_told_to_end_it_leaves_a_doubt_at_once(tmp_path: Path) -> None:
    """SIGTERM: what runs is in doubt, not running for ever."""

    async def work() -> None:
        bank = Bank(tmp_path)
        with killed():
            async with bank.guarded() as client:
                payment = asyncio.create_task(refused(pay(client, how="hang")))
                await until(bank.paid)
                os.kill(bank.lines()[-1]["ppid"], signal.SIGTERM)
                assert (await payment).code == -32_011
        async with bank.guarded() as client:
            assert (await refused(pay(client, how="hang"))).code == -32_011
        assert bank.paid() == [5]

    play(work())


def test_what_has_two_meanings_is_refused(tmp_path: Path) -> None:
    """A batch is taken apart; what names a method twice goes nowhere, nor a call without an id."""
    call = {
        "jsonrpc": "2.0",
        "method": "tools/call",
        "params": {"name": "pay", "arguments": {"amount": 1}},
    }
    twice = b'{"jsonrpc":"2.0","id":2,"method":"tools/call","method":"ping"}'
    batch = json.dumps([{"jsonrpc": "2.0", "id": 3, "method": "ping"}, {**call, "id": 4}]).encode()
    bank = Bank(tmp_path)
    hello = json.dumps(HELLO).encode()
    said = spoken(bank, hello, twice, batch, json.dumps(call).encode(), b"no json", answers=6)
    by_id = {it["id"]: it for it in said if it["id"] is not None}
    assert set(by_id) == {1, 3, 4}
    assert by_id[4]["result"]["structuredContent"] == {"paid": 1}
    assert [it["error"]["code"] for it in said if it["id"] is None] == [-32_600, -32_600, -32_700]
    assert bank.paid() == [1]


def call_of(name: str, how: str = "", **meta: str) -> bytes:
    """Return a line that pays, by a call of this name."""
    params = {"name": "pay", "arguments": {"amount": 5, "how": how}, "_meta": {KEY: name, **meta}}
    message = {"jsonrpc": "2.0", "id": name, "method": "tools/call", "params": params}
    return json.dumps(message).encode()


def test_a_result_that_is_no_json_goes_through_once_and_is_not_kept(tmp_path: Path) -> None:
    """It was executed, and is never executed again. A task is kept: its handle is what came."""
    bank = Bank(tmp_path)
    lines = [call_of("n", "nan"), call_of("t", "task")]
    once, again = (
        {it["id"]: it["result"] for it in spoken(bank, *lines, answers=2)} for _ in range(2)
    )
    assert math.isnan(once["n"]["structuredContent"]["paid"])
    assert again["n"]["isError"]
    assert "its result is not kept" in again["n"]["content"][0]["text"]
    assert once["t"] == again["t"] == {"task": {"taskId": "t1"}}
    assert bank.paid() == [5, 5]


@pytest.mark.parametrize(
    ("version", "warned"),
    [
        ("2024-10-07", True),
        ("2024-11-05", False),
        ("2025-03-26", False),
        ("2025-06-18", False),
        ("2031-01-01", True),
    ],
)
def test_a_version_of_the_protocol_that_was_not_tested_is_told(
    version: str, warned: bool, tmp_path: Path
) -> None:
    """With both versions, once; each that was tested is guarded alike."""
    bank = Bank(tmp_path)
    hello = json.dumps({**HELLO, "params": {**HELLO["params"], "protocolVersion": version}})
    said = {it["id"]: it["result"] for it in spoken(bank, hello.encode(), call_of("k"), answers=2)}
    assert said["k"]["content"][0]["text"] == "paid 5"
    told = f"MCP {version} is spoken here, and this guard was tested with 2024-11-05 up to"
    assert bank.errors.read_text().count(told) == warned
    with Guard.open(bank.db) as guard:
        assert guard.look(At(run="once/mcp/k", turn=None, call="k")).outcome is not None


def test_a_newer_protocol_is_told_of_a_call_that_names_it(tmp_path: Path) -> None:
    """From 2026-07-28 on each request does."""
    bank = Bank(tmp_path)
    newer = {VERSION: "2031-01-01"}
    spoken(bank, call_of("a", **newer), call_of("b", **newer), answers=2)
    spoken(bank, call_of("c", **{VERSION: "2026-07-28"}), answers=1)
    assert bank.errors.read_text().count("MCP 2031-01-01 is spoken here") == 1
    assert "MCP 2026-07-28 is spoken here" not in bank.errors.read_text()
    assert bank.paid() == [5, 5, 5]


def test_lines_that_are_no_messages_are_named() -> None:
    """Each with the code that JSON-RPC has for it; a server's line is read as it comes."""
    for line in (b"{", b'{"a": NaN}', b"[" * 100_000, b"\xff", b'{"a": ' + b"1" * 5_000 + b"}"):
        with pytest.raises(Unreadable):
            messages_of(line, strict=True)
    with pytest.raises(Unreadable, match="is a JSON object"):
        messages_of(b'"text"', strict=True)
    (message,) = messages_of(b'{"result": NaN, "id": 1, "id": 2}', strict=False)
    assert message.id == 2
