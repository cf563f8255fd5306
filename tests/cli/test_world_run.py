"""``turnlock world run``: members that a process of its own performs, and that is killed."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import attrs
import pytest

from turnlock import Decide, FactType
from turnlock.runtime import open_journal
from turnlock.world.entries import Question, body_of
from turnlock.world.names import question_id

from .recordings import turnlock
from .sessions import TIMEOUT
from .test_world_make import refused, told
from .waiting import facts

ALICE = "demo/plan/alice"
MODELS = '''
import asyncio, re
from turnlock.agent import Answer, Ended, ModelError, Prompt, Results, Stop, Text, ToolCall

class Scripted:
    """Calls the tool that it is told to, fails if it is told to, or repeats what it was told."""
    async def speak(self, question):
        last = question.messages[-1]
        text = last.text if isinstance(last, Prompt) else ""
        if "fail" in text:
            raise ModelError("the model cannot be reached\\x1b[2J; see to the network")
        if isinstance(last, Results):
            ended = last.results[0]
            yield Ended(Answer(text=f"it came to {ended.error or ended.reason or ended.result}"))
            return
        if "slow" in text:
            yield Text("I begin\\n")
            await asyncio.sleep(60)
        named = re.search("call (\\\\w+)", text)
        if named:
            call = ToolCall(call_id="c1", tool_name=named[1], arguments={})
            yield Ended(Answer(calls=(call,), stop=Stop.CALLS))
            return
        for part in ("you said\\n", text.rpartition(": ")[2], "\\u202e"):
            yield Text(part)
        yield Ended(Answer(text=f"you said\\n{text.rpartition(': ')[2]}\\u202e"))
    async def close(self):
        pass

model = Scripted()
'''
TOOLS = '''
import os, signal, time
from pathlib import Path
from turnlock.runtime import Happened, InDoubt, ToolContext, tool

@tool(approval=True)
def pay() -> str:
    """Pay."""
    with Path("paid").open("a") as file:
        file.write("paid\\n")
    print("paying")
    return "paid"

def probe(context: ToolContext):
    """Find out that it happened, after a while."""
    time.sleep(1.0)
    return Happened("transferred")

@tool(in_doubt=InDoubt.PROBE, probe=probe)
def transfer() -> str:
    """Transfer money, and be killed before it can say so."""
    os.kill(os.getpid(), signal.SIGKILL)

@tool
def linger(context: ToolContext) -> str:
    """Take long, and say that it has begun."""
    Path("begun").touch()
    while True:
        context.raise_if_cancelled()
        time.sleep(0.01)
'''
HOST = '[models]\nfiles = ["models.py"]\n[tools]\nfiles = ["tools.py"]\n'


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A world of two agents with scripted models, and its host's files, in this folder."""
    monkeypatch.chdir(tmp_path)
    for name, text in (("models.py", MODELS), ("tools.py", TOOLS), ("host.toml", HOST)):
        (tmp_path / name).write_text(text)
    db = str(tmp_path / "w.db")
    told("new", "demo", db=db)
    for agent in ("alice", "bob"):
        put = (
            "agent",
            "put",
            "demo",
            agent,
            "--model",
            "file:model",
            "--tools",
            "pay,linger,transfer",
        )
        told(*put, db=db)
    told("chat", "demo", "plan", db=db)
    return db


def say(db: str, text: str, chat: str = "plan") -> None:
    told("say", "demo", chat, text, db=db)


def chat_of(db: str, chat: str = "plan") -> str:
    return told("follow", "demo", chat, "--no-wait", db=db)


@attrs.frozen
class Host:
    """A `turnlock world run` under way, and what it has said so far."""

    process: subprocess.Popen[str]
    stdout: IO[str]

    def says(self, wanted: str) -> None:
        deadline = time.monotonic() + TIMEOUT
        for line in self.stdout:
            if wanted in line:
                return
            assert time.monotonic() < deadline
        raise AssertionError(wanted)

    def ends(self, *signals: signal.Signals) -> tuple[int, str, str]:
        for number in signals:
            self.process.send_signal(number)
        out, err = self.process.communicate(timeout=TIMEOUT)
        return self.process.returncode, out, err


@contextmanager
def hosted(db: str, *options: str) -> Generator[Host]:
    program = [sys.executable, "-m", "turnlock", "world", "run", "demo", "--db", db]
    process = subprocess.Popen(
        [*program, "--host-file", "host.toml", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield Host(process, process.stdout)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def ran(db: str, *options: str) -> tuple[int, str, str]:
    """How `world run --until-idle` ends, and what it says; none of it moves a cursor."""
    with hosted(db, "--until-idle", *options) as host:
        status, out, err = host.ends()
    assert (out + err).replace("\n", "").isprintable()
    return status, out, err


def test_it_ends_with_0_once_all_is_heard_and_answered(db: str) -> None:
    """W-70; again it has nothing to do, and says nothing of before."""
    say(db, "@alice hello")
    status, out, _ = ran(db)
    assert status == 0
    assert out == "    2  plan alice: you said\n       hello\\u202e\n"
    assert ran(db)[:2] == (0, "")
    assert "idle, heard 1  demo/plan/alice" in told("show", "demo", db=db)


def test_w_27_it_ends_with_3_where_people_are_waited_for(db: str) -> None:
    """What waits is told with the command that answers it, and again by who comes next."""
    say(db, "@alice call pay")
    status, out, err = ran(db)
    assert status == 3
    assert f"alice waits for people: turnlock world show demo --db {shlex.quote(db)}" in err
    approve = next(line for line in out.splitlines() if "turnlock world approve" in line)
    assert approve.strip() in ran(db)[1]
    assert approve.strip() in told("show", "demo", db=db)

    words = approve.replace("'", "").split()[2:]
    told(*words[:-2], "--as", "me", db=db)
    status, out, _ = ran(db)
    assert status == 0
    assert '✓  plan pay of alice: "paid"' in out
    assert Path("paid").read_text() == "paid\n"
    assert "alice: it came to paid" in chat_of(db)


def test_w_27_a_decision_that_was_left_for_a_dead_owner_is_not_waited_for(db: str) -> None:
    """Who decided has done so: the next host judges the post before it ends."""
    say(db, "@alice call pay")
    assert ran(db)[0] == 3
    (request,) = json.loads(told("show", "demo", "--json", db=db))["chats"][0]["requests"]
    decide = Decide(
        turn_id="t1",
        invocation_id="c1",
        approved=True,
        run_id="demo/plan/alice",
        decided_by="me",
        arguments_digest=request["asks"]["arguments_digest"],
    )

    async def leave() -> None:
        async with await open_journal(db) as journal:
            await journal.post("demo/plan/alice", decide)

    asyncio.run(leave())
    status, out, _ = ran(db)
    assert status == 0, out
    assert Path("paid").read_text() == "paid\n"


def test_w_69_headless_nobody_is_asked(db: str) -> None:
    """What needs approval is denied, with the reason, and the model goes on."""
    say(db, "@alice call pay")
    status, out, _ = ran(db, "--headless")
    assert status == 0, out
    assert "pay of alice was denied" in out
    assert not Path("paid").exists()
    assert FactType.TOOL_DENIED in {it.type for it in facts(db, "demo/plan/alice")}


def test_w_69_headless_what_waited_before_is_denied_too(db: str) -> None:
    """A host that comes next decides first, and ends then."""
    say(db, "@alice call pay")
    assert ran(db)[0] == 3
    status, out, err = ran(db, "--headless")
    assert status == 0, out + err
    assert "pay of alice was denied" in out


def test_what_a_tool_finds_out_by_itself_is_waited_for(db: str) -> None:
    """It is in doubt, and its probe takes a while: nobody is to be asked."""
    say(db, "@alice call transfer")
    with hosted(db) as host:
        assert host.process.wait(TIMEOUT) == -signal.SIGKILL
    status, out, err = ran(db)
    assert status == 0, out + err
    assert '✓  plan transfer of alice: "transferred"' in out


def test_it_ends_with_1_where_a_model_fails_for_long(db: str) -> None:
    """Its patience is an option; the other member has answered, and it goes on once it can."""
    say(db, "@alice fail")
    say(db, "@bob hello")
    status, out, err = ran(db, "--patience", "1s")
    assert status == 1
    assert "demo/plan/alice does not go on: the model cannot be reached\\x1b[2J" in err
    assert "bob: you said" in out

    say(db, "@alice call pay")
    models = Path("models.py")
    models.write_text(models.read_text().replace('"fail" in text', "False"))
    assert ran(db)[0] == 3


def test_only_some_chats_are_performed(db: str) -> None:
    """--chat; the others go on waiting."""
    told("chat", "demo", "two", db=db)
    say(db, "@alice one")
    say(db, "@alice two", chat="two")
    status, out, _ = ran(db, "--chat", "two")
    assert status == 0
    assert out.startswith("    2  alice: you said")
    assert "has not heard all yet" in told("show", "demo", db=db)
    assert "alice:" not in chat_of(db)
    refused("run", "demo", "--chat", "none", db=db)


def test_it_is_interrupted_and_goes_on(db: str) -> None:
    """4, with all kept; what other processes say while it runs is heard."""
    with hosted(db) as host:
        say(db, "@alice call pay")
        host.says("asks for approval")
        status, _, err = host.ends(signal.SIGINT)
    assert status == 4
    assert "ending; what runs has 10 s" in err
    with hosted(db) as host:
        host.says("waits for you: pay of alice")
        assert host.ends(signal.SIGTERM)[0] == 4


def test_the_second_interrupt_ends_at_once(db: str) -> None:
    """What ran then is in doubt, and shown to be; nothing is run again in silence."""
    say(db, "@alice call linger")
    with hosted(db, "--drain", "1h") as host:
        until = time.monotonic() + TIMEOUT
        while not Path("begun").exists():
            assert time.monotonic() < until
            time.sleep(0.02)
        host.process.send_signal(signal.SIGINT)
        assert host.process.stderr is not None
        while "ending" not in host.process.stderr.readline():
            assert time.monotonic() < until
        status, _, err = host.ends(signal.SIGINT)
    assert status == 4
    assert "ended at once" in err

    status, out, _ = ran(db)
    assert status == 3
    assert "alice does not know whether this happened: linger {}" in out
    shown = told("show", "demo", db=db)
    assert "doubt   c1 linger (demo/plan/alice)" in shown
    line = next(it for it in shown.splitlines() if "turnlock resolve" in it)
    words = line.split("#")[0].split()[1:]
    assert turnlock(*words, "--error", "it was stopped").exit_code == 0
    assert ran(db)[0] == 0
    assert "alice: it came to it was stopped" in chat_of(db)


def test_what_a_tool_asks_while_it_runs_is_shown(db: str) -> None:
    """W-67: its member waits for a reply, and nothing else."""
    say(db, "@alice call linger")
    with hosted(db):
        until = time.monotonic() + TIMEOUT
        while not Path("begun").exists():
            assert time.monotonic() < until
            time.sleep(0.02)
        question = asked_by_call(db)
        shown = told("show", "demo", db=db)
        assert "alice        waits for a reply, heard 1  demo/plan/alice\n" in shown
        assert f"turnlock world reply {question}" in shown
        (chat,) = json.loads(told("show", "demo", "--json", db=db))["chats"]
        assert chat["status"] == "waits for people"
        assert [it["stands"] for it in chat["standing"]] == ["question", "idle"]


def asked_by_call(db: str) -> str:
    """Have the call of alice ask a person something; return the question's id."""
    name = question_id(ALICE, "t1", "c1", 1, 1)
    question = Question(run=ALICE, turn="t1", invocation="c1", attempt=1, server="s", text="?")

    async def ask() -> None:
        async with await open_journal(db) as journal:
            await journal.append_entry("demo/plan", name, body_of(question), at=time.time())

    asyncio.run(ask())
    return name


def test_a_host_that_was_killed_is_gone_on_with(db: str) -> None:
    """`kill -9` while it waits; approved with nobody there; run once."""
    say(db, "@alice call pay")
    with hosted(db) as host:
        host.says("asks for approval")
        host.process.kill()
        host.process.wait(TIMEOUT)
    (request,) = json.loads(told("show", "demo", "--json", db=db))["chats"][0]["requests"]
    digest = request["asks"]["arguments_digest"]
    assert "nobody performs the run now" in told(
        "approve", request["id"], "--digest", digest, db=db
    )
    assert ran(db)[0] == 0
    assert Path("paid").read_text() == "paid\n"


def test_what_models_say_is_streamed_where_it_is_wanted(db: str) -> None:
    """Line by line, before the entry that keeps it."""
    say(db, "@alice hello")
    status, out, _ = ran(db, "--stream")
    assert status == 0
    lines = out.splitlines()
    assert lines.index("       plan alice ┆ you said") < lines.index("    2  plan alice: you said")
    assert "       plan alice ┆ @alice hello\\u202e" in lines


def test_a_model_that_speaks_is_stopped_from_another_terminal(db: str) -> None:
    """By its run, as a turn is; then it does nothing, and that is said."""
    say(db, "@alice slow")
    with hosted(db, "--until-idle", "--stream") as host:
        host.says("I begin")
        stopped = turnlock("interrupt", "demo/plan/alice", "--reason", "enough", "--db", db)
        assert stopped.exit_code == 0, stopped.output
        assert host.ends()[0] == 0
    assert ": enough" in chat_of(db)
    again = turnlock("interrupt", "demo/plan/alice", "--db", db)
    assert again.exit_code == 2
    assert "does nothing now" in again.output


def test_as_json_it_prints_the_wires_events(db: str) -> None:
    """From now on, with cursors that `follow` goes on from."""
    say(db, "@alice hello")
    status, out, _ = ran(db, "--json")
    assert status == 0
    events = [json.loads(line) for line in out.splitlines()]
    entries = [it for it in events if it["type"] == "entry"]
    assert [it["number"] for it in entries] == [2]
    say(db, "and?")
    after = ("--after", entries[0]["cursor"], "--json", "--no-wait")
    next_event, _ = told("follow", "demo", "plan", *after, db=db).splitlines()
    assert json.loads(next_event)["number"] == 3


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("[models", "host.toml"),
        ('[models]\nfiles = ["none.py"]', "none.py"),
        ("[what]\nx = 1", "what"),
        ('[tools]\nfiles = ["host.toml"]', "host.toml"),
        ('[endpoints.x]\nprovider = "y"', "provider"),
    ],
)
def test_a_file_that_cannot_be_used_is_wrong_usage(db: str, text: str, wrong: str) -> None:
    Path("host.toml").write_text(text)
    assert wrong in refused("run", "demo", "--until-idle", "--host-file", "host.toml", db=db)


def test_what_is_not_there_is_wrong_usage(db: str) -> None:
    refused("run", "none", db=db)
    refused("run", "demo", "--host-file", "none.toml", db=db)
    refused("run", "demo", "--patience", "soon", db=db)
    refused("run", "demo", db=f"{db}.none")
    assert not os.path.exists(f"{db}.none")  # noqa: PTH110 - a text
