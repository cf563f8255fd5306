"""A host in a process of its own, to be killed or stopped: ``python child.py FOLDER SEED TURNS``.

In the folder: the journal; a ledger to which the tools themselves append what they do; and what
this host was told. Each line of those is one `write` to a file opened with O_APPEND, synced before
anything else happens: what stands there has happened. It prints "owner" once it owns the run.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final, NoReturn

import attrs

from turnlock import Call, Fact, Resolution, Resolve, Run
from turnlock.models.codec import to_json
from turnlock.models.facts import (
    ContinuationTaken,
    ExecutionInDoubt,
    ToolApprovalRequested,
    TurnSettled,
)
from turnlock.models.ids import idempotency_key, invocation_path, turn_scope
from turnlock.runtime import leases, scheduling
from turnlock.runtime.dispatcher import Continuation
from turnlock.runtime.errors import JournalError, JournalOwned
from turnlock.runtime.journal import posting, sqlite_clock, sqlite_posts
from turnlock.runtime.journal.contract import Appended, Busy, Journal, Post
from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.runtime.journal.sqlite_guard import Guard
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.settings import Settings
from turnlock.runtime.tools import calling, performing
from turnlock.runtime.tools.calling import Admitted, Calling, ToolContext, always, begin
from turnlock.runtime.tools.policy import InDoubt
from turnlock.runtime.tools.results import Happened, NeverHappened, ProbeAnswer, Succeeded
from turnlock.runtime.tools.tool import Tool, tool
from turnlock.runtime.tools.toolbox import Toolbox

RUN: Final = Run(run_id="r")
SETTINGS: Final = Settings(
    ownership=0.3, poll=0.05, drain=1.0, retry_first=0.01, retry_longest=0.1, snapshot_every=25
)
LONG_LEASE: Final = 2.0
"""Seconds for which a child owns its run that must not lose it, however busy this machine is."""
LONGEST: Final = 0.01
"""Seconds that a tool takes at most, unless it is told to take longer."""
GIVEN_UP: Final = 0.2
"""Seconds after which a tool is given up that hangs."""


TORN: Final = "\x18\n"
"""Ends a line whose writer was killed; whoever opens the notebook next writes it."""


class Notebook:
    """A file of JSON lines that outlives whoever writes it, also one killed while it writes."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)
        if path.read_bytes()[-1:] not in {b"", b"\n"}:
            os.write(self._file, TORN.encode())

    def write(self, **line: Any) -> None:
        os.write(self._file, json.dumps(line).encode() + b"\n")
        os.fsync(self._file)


def lines_of(path: Path) -> Iterator[dict[str, Any]]:
    """Read a notebook; a line that a kill cut off was never finished by its writer."""
    content = path.read_text() if path.exists() else ""
    for line in content.splitlines(keepends=True):
        if line.endswith("\n") and not line.endswith(TORN):
            yield json.loads(line)


class Notes:
    """The notebooks of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ledger = Notebook(folder / "ledger")
        self.shown = Notebook(folder / "shown")
        self.told = Notebook(folder / "told")
        self.written = Notebook(folder / "written")

    def shows(self, facts: Iterable[Fact]) -> None:
        told = [to_json(fact).decode() for fact in facts]
        if told:
            self.shown.write(facts=told)

    def has_ended(self, key: str) -> bool:
        """Whether a tool has done what this key stands for."""
        lines = lines_of(self.folder / "ledger")
        return any(line["key"] == key and line["what"] == "end" for line in lines)


class NotingJournal(SqliteJournal):
    """Notes who has written which facts under which fence."""

    notebooks: Notes
    fenced = True
    """Whether it heeds the fence: the negative control does not."""

    async def append(
        self,
        run_id: str,
        *,
        fence: int | None,
        after: int,
        facts: Sequence[Fact],
        busy: Busy,
        **more: Any,
    ) -> Appended:
        under = fence if self.fenced else (await self.entry(run_id)).fence
        answer = await super().append(
            run_id, fence=under, after=after, facts=facts, busy=busy, **more
        )
        if answer is Appended.OK:
            last = facts[-1].sequence
            self.notebooks.written.write(fence=fence, first=after + 1, last=last, by=os.getpid())
        return answer

    async def renew(self, *, owner: str, now: float, lease: float) -> frozenset[str]:
        renewed = await super().renew(owner=owner, now=now, lease=lease)
        return renewed if self.fenced else frozenset({RUN.run_id})


class Hostile:
    """What a stranger's tool may return: whoever reads it is ended."""

    def model_dump(self, **_: Any) -> NoReturn:
        raise SystemExit(4)

    def __str__(self) -> NoReturn:
        raise KeyboardInterrupt


def tools(
    notes: Notes, draw: random.Random, *, hold: bool, modes: Collection[str] = ()
) -> tuple[Tool, ...]:
    """Tools of each kind: sync and async, for each policy of doubt, one that waits for a person.

    Some return what is `hostile`, or are `hung` until long after they were given up.
    """

    def returned() -> Any:
        return Hostile() if "hostile" in modes and draw.random() < 0.4 else "done"

    def note(what: str, context: ToolContext) -> None:
        notes.ledger.write(
            what=what,
            run=context.run_id,
            turn=context.turn_id,
            invocation=context.invocation_id,
            attempt=context.attempt,
            key=context.idempotency_key,
            by=os.getpid(),
            thread=threading.get_ident(),
        )

    def act(context: ToolContext) -> Any:
        note("begin", context)
        if hold:
            print("running", flush=True)
        hangs = "hung" in modes and draw.random() < 0.3
        while "long" in modes and not (notes.folder / "end").exists():
            time.sleep(0.01)
        held = hold and "long" not in modes
        time.sleep(1.5 if held else 3 * GIVEN_UP if hangs else draw.uniform(0, LONGEST))
        note("end", context)
        return returned()

    async def act_on_the_loop(context: ToolContext) -> Any:
        note("begin", context)
        await asyncio.sleep(draw.uniform(0, LONGEST))
        note("end", context)
        return returned()

    def probe(context: ToolContext) -> ProbeAnswer:
        done = notes.has_ended(context.idempotency_key)
        return Happened("was done") if done else NeverHappened()

    timeout = GIVEN_UP if "hung" in modes else None
    return (
        tool(name="ask", description="", timeout=timeout)(act),
        tool(
            name="repeat",
            description="",
            in_doubt=InDoubt.RETRY_IF_SAFE,
            safe_to_repeat=True,
            sequential=True,
        )(act_on_the_loop),
        tool(name="probe", description="", timeout=timeout, in_doubt=InDoubt.PROBE, probe=probe)(
            act
        ),
        tool(name="fail", description="", in_doubt=InDoubt.FAIL)(act_on_the_loop),
        tool(name="pay", description="", approval=True)(act_on_the_loop),
    )


def block_before_the_call(*, asks: bool) -> None:
    """Stand still once, when everything was asked and nothing is left but to call the tool.

    Unless it asks, it makes the call then, whatever the clock says: the negative control. The loop
    stands still until the call is made, in its thread: it might learn first that the run is lost.
    """

    def late(*args: Any, admitted: Admitted = always, **given: Any) -> Calling:
        print("running", flush=True)
        time.sleep(0.5)  # long enough to be stopped in
        if asks:
            return begin(*args, **given, admitted=admitted)
        made = threading.Event()

        def admitted_anyway() -> bool:
            made.set()
            return True

        calling = begin(*args, **given, admitted=admitted_anyway)
        made.wait(5.0)
        return calling

    setattr(performing, "begin", late)  # noqa: B010 - it is imported there


async def block(draw: random.Random) -> None:
    """Hold the loop up, now and then, for longer than anything is owned unless it is renewed."""
    while True:
        await asyncio.sleep(draw.uniform(0.1, 0.4))
        time.sleep(1.5 * SETTINGS.ownership)  # noqa: ASYNC251 - that is the nemesis


def choke_on_posts() -> None:
    """Read posts as if none could be bad: the negative control."""

    def read(number: int, *_: object) -> NoReturn:
        raise JournalError(f"post {number} cannot be read")

    real = posting.read_post

    def trusting(number: int, run_id: str, content: Any, kept: int | None) -> Any:
        post = real(number, run_id, content, kept)
        return post if isinstance(post, Post) else read(number)

    setattr(sqlite_posts, "read_post", trusting)  # noqa: B010


def be_careless_about_the_file() -> None:
    """Never look whether the file at the path is ours: the negative control."""

    def nothing(*_: object) -> None:
        """Look at nothing."""

    for name in ("begun", "committed", "check"):
        setattr(Guard, name, nothing)


def read_on_the_loop() -> None:
    """Read results on the loop, ready for nothing: the negative control."""

    def is_small(_: object) -> bool:
        return True

    def trusting(value: Any, *_: object) -> Any:
        return Succeeded(value.model_dump() if isinstance(value, Hostile) else value)

    setattr(calling, "is_small", is_small)  # noqa: B010
    setattr(performing, "outcome_of", trusting)  # noqa: B010


class Host:
    """Opens the turns one after the other, the next from the continuation of the one before."""

    def __init__(
        self,
        notes: Notes,
        journal: SqliteJournal,
        *,
        turns: int,
        draw: random.Random,
        hold: bool,
    ) -> None:
        self.notes = notes
        self.hold = hold
        self.journal = journal
        self.turns = turns
        self.draw = draw
        self.runtime: Runtime = None  # type: ignore[assignment] # known once it is made

    async def on_continue(self, told: Continuation) -> None:
        number = int(told.turn_id.removeprefix("t"))
        self.notes.told.write(effect=told.effect_id, turn=told.turn_id, what="heard")
        if self.draw.random() < 0.1:
            raise RuntimeError("the model is not there")
        if number < self.turns:
            await self.open(number + 1)
        self.notes.told.write(effect=told.effect_id, turn=told.turn_id, what="taken")

    async def open(self, number: int) -> None:
        names = ("ask", "repeat", "probe", "fail", "pay")
        chosen = [names[number % 5], names[(number + 2) % 5], names[(2 * number + 1) % 5]]
        if self.hold:
            chosen = ["ask"]
        calls = [
            Call(invocation_id=f"c{place}", tool_name=name, arguments={}, requires_approval=False)
            for place, name in enumerate(chosen)
        ]
        verdict = await self.runtime.open_turn("r", calls, turn_id=f"t{number}", epoch=number)
        self.notes.shows(verdict.facts)

    async def own(self) -> None:
        while True:
            try:
                await self.runtime.open_run(RUN)
            except JournalOwned:
                await asyncio.sleep(0.02)
            else:
                return

    async def begin(self) -> int:
        """Open the first turn, unless that was done; return where it is worth while to look on."""
        kept = [fact async for fact in self.journal.facts("r")]
        if not kept:
            await self.open(1)
        return max((fact.sequence for fact in kept if isinstance(fact, TurnSettled)), default=1) - 1

    async def follow(self, after: int) -> None:
        """Look on, and be the person who is asked, until all is done."""
        async with aclosing(self.runtime.subscribe("r", after=after)) as facts:
            async for fact in facts:
                self.notes.shows([fact])
                if isinstance(fact, ToolApprovalRequested):
                    await self.approve(fact)
                elif isinstance(fact, ExecutionInDoubt):
                    await self.resolve(fact)
                elif isinstance(fact, ContinuationTaken) and fact.turn_id == f"t{self.turns}":
                    return

    async def approve(self, asked: ToolApprovalRequested) -> None:
        verdict = await self.runtime.approve(
            "r",
            turn_id=asked.turn_id,
            invocation_id=asked.invocation_id,
            arguments_digest=asked.arguments_digest,
        )
        self.notes.shows(verdict.facts)

    async def resolve(self, asked: ExecutionInDoubt) -> None:
        number = int(asked.turn_id.removeprefix("t"))
        scope = turn_scope("r", number, asked.turn_id)
        done = self.notes.has_ended(idempotency_key(invocation_path(scope, asked.invocation_id)))
        given: dict[str, Any] = {"result": "was done"} if done else {}
        if self.hold:
            print("doubt", flush=True)
            while not (self.notes.folder / "answer").exists():  # noqa: ASYNC110 - a person is asked
                await asyncio.sleep(0.01)
        verdict = await self.runtime.deliver(
            "r",
            Resolve(
                turn_id=asked.turn_id,
                invocation_id=asked.invocation_id,
                attempt=asked.attempt,
                resolution=Resolution.RESULT if done else Resolution.RETRY,
                **given,
            ),
        )
        self.notes.shows(verdict.facts)


async def main(folder: Path, seed: str, turns: int, modes: Collection[str]) -> None:
    hold = "hold" in modes
    lease = LONG_LEASE if "long" in modes else SETTINGS.ownership
    draw = random.Random(seed)
    notes = Notes(folder)
    journal = await NotingJournal.open(folder / "journal.db")
    journal.notebooks, journal.fenced = notes, "unfenced" not in modes
    host = Host(notes, journal, turns=turns, draw=draw, hold=hold)
    async with journal:
        host.runtime = Runtime(
            journal=journal,
            tools=Toolbox(tools(notes, draw, hold=hold, modes=modes)),
            on_continue=host.on_continue,
            settings=attrs.evolve(SETTINGS, ownership=lease, takes_over=not hold),
        )
        async with host.runtime as runtime:
            print("up", flush=True)
            await host.own()
            print("owner", flush=True)
            blocking = asyncio.ensure_future(block(draw)) if "blocked" in modes else None
            await host.follow(await host.begin())
            assert runtime.runs == ("r",)
            if "choking" not in modes:
                await answer_posts(journal)
            if blocking is not None:
                blocking.cancel()
    print("done", flush=True)


async def answer_posts(journal: Journal) -> None:
    """Stay for as long as posts wait: all turns may be done before the last of them was left."""
    while await journal.posts(["r"]):  # noqa: ASYNC110 - another process tells nobody
        await asyncio.sleep(0.05)


def unseen(_: str) -> bool:
    """Instead of `is_alive`: nobody is seen to live."""
    return False


def set_the_clock(by: float, *, agreed: bool) -> None:
    """Have the wall clock set by so many seconds before this process began.

    Unless it is agreed, it counts by that alone, and looks at nobody: the negative control.
    """
    real = time.time
    setattr(time, "time", lambda: real() + by)  # noqa: B010 - of the module, for all
    if not agreed:
        setattr(sqlite_clock, "time_line", lambda: None)  # noqa: B010
        setattr(leases, "is_alive", unseen)  # noqa: B010


def let_the_machine_sleep(folder: Path) -> None:
    """Have the clock that counts suspends go on by what stands in a file, as if it had slept."""
    real = scheduling.since_boot

    def slept() -> float:
        told = folder / "slept"
        return real() + (float(told.read_text()) if told.exists() else 0.0)

    setattr(scheduling, "since_boot", slept)  # noqa: B010


if __name__ == "__main__":
    given = sys.argv[4:]
    for mode in given:
        if mode.startswith("ahead="):
            set_the_clock(float(mode.partition("=")[2]), agreed="alone" not in given)
        elif mode == "sleeps":
            let_the_machine_sleep(Path(sys.argv[1]))
    if "late" in given:
        block_before_the_call(asks="unasked" not in given)
    if "trusting" in given:
        read_on_the_loop()
    if "choking" in given:
        choke_on_posts()
    if "careless" in given:
        be_careless_about_the_file()
    try:
        asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), given))
    except JournalError as error:
        print(f"journal: {error}", flush=True)
        sys.exit(3)
