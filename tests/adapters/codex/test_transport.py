"""Lines between a process and us, whatever it does: bounded, in order, never waited for."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from turnlock.adapters.codex import transport as of_transport
from turnlock.adapters.codex.messages import Asked, NotAMessage, Notified, read
from turnlock.adapters.codex.process import Child, is_dead
from turnlock.adapters.codex.transport import (
    AHEAD,
    CHUNK,
    LINE,
    STDERR,
    PipeBroken,
    Transport,
)

PYTHON = (sys.executable, "-I", "-S", "-c")
HEAD = "import os, signal, sys, time\nsay = lambda text: os.write(1, text.encode())\n"
X = '{"method":"x"}'


@asynccontextmanager
async def process(script: str) -> AsyncGenerator[Transport]:
    """Start one, and end it afterwards whatever it does."""
    transport = await Transport.start((*PYTHON, HEAD + script), cwd=None, env=None)
    try:
        async with asyncio.timeout(60):
            yield transport
    finally:
        transport.kill()
        await transport.end(grace=0)


def run(story: Callable[[], Any]) -> None:
    asyncio.run(story())


async def all_of(transport: Transport) -> list[Any]:
    """Return what it says until it says no more."""
    said: list[Any] = []
    while (message := await transport.read()) is not None:
        said.append(message)
    return said


async def until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110 - what the process does, nothing tells of
        await asyncio.sleep(0.01)


def test_messages_pass_both_ways_in_order() -> None:
    """As they were written, with what no field is known of; blank lines are none."""

    async def story() -> None:
        async with process("for line in sys.stdin: say(line + '\\n')") as transport:
            for number in range(50):
                await transport.write({"id": number, "method": "ü", "params": {"odd": [None]}})
            for number in range(50):
                assert await transport.read() == Asked(number, "ü", {"odd": [None]})
            assert (await transport.end(grace=20)).status == 0
            assert await transport.read() is None
            assert await transport.read() is None

    run(story)


def test_lines_are_the_same_however_they_come() -> None:
    """Cut anywhere: messages do not depend on how the pipe was read."""
    lines = [f'{{"method":"{"é" * (number % 7)}{number}"}}\n' for number in range(300)]
    data = "".join(lines).encode()
    expected = [read(line.encode()) for line in lines]
    script = f"""
data = {data!r}
import itertools
at, sizes = 0, itertools.cycle([1, 2, 3, 5, 8, 13, 21, 34, 55, 1000])
while at < len(data):
    at += os.write(1, data[at : at + next(sizes)])
"""

    async def story() -> None:
        async with process(script) as transport:
            assert await all_of(transport) == expected

    run(story)


@pytest.mark.parametrize(
    ("ending", "last"),
    [
        ('say(\'{"method":"tur\')', ()),
        ('say(\'{"method":"whole"}\')', (Notified("whole", {}),)),
    ],
)
def test_half_a_line_and_dead_is_an_end(ending: str, last: tuple[object, ...]) -> None:
    """What it wrote before is read; the half is nothing, unless it lacks its end alone (S-26)."""

    async def story() -> None:
        async with process(f"say('{X}\\n'); {ending}; os.kill(os.getpid(), 9)") as transport:
            assert await all_of(transport) == [Notified("x", {}), *last]
            assert (await transport.end(grace=0)).status == -signal.SIGKILL

    run(story)


@pytest.mark.parametrize("garbage", ["this is none", "[]", "3", "\\xff", '{"id":true}', "{}"])
def test_s_13_a_line_that_is_no_message_ends_it(garbage: str) -> None:
    """What came before is read first; it is killed, and nothing after it is heard."""

    async def story() -> None:
        script = f"os.write(1, b'{X}\\n{garbage}\\n{X}\\n'); signal.pause()"
        async with process(script) as transport:
            assert await transport.read() == Notified("x", {})
            with pytest.raises(NotAMessage):
                await transport.read()
            assert await transport.read() is None
            assert (await transport.end(grace=60)).status == -signal.SIGKILL

    run(story)


@pytest.mark.parametrize("end", ["\\n", ""])
def test_a_line_is_bounded_and_a_longer_one_ends_it(
    end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Section 15: 16 MiB; not one byte more is kept, whether or not the line has an end."""
    bound = 1 << 20
    monkeypatch.setattr(of_transport, "LINE", bound)
    script = f"""
out = sys.stdout.write
out('{X}' + ' ' * ({bound} - {len(X)}) + '\\n')
out('{X}' + ' ' * ({bound} - {len(X)} + 1) + '{end}')
sys.stdout.flush()
signal.pause()
"""

    async def story() -> None:
        async with process(script) as transport:
            assert await transport.read() == Notified("x", {})
            with pytest.raises(NotAMessage, match="more than"):
                await transport.read()
            assert await transport.read() is None
            assert (await transport.end(grace=60)).status == -signal.SIGKILL

    assert LINE == 16 << 20
    run(story)


def test_what_nobody_takes_is_not_read_further() -> None:
    """Section 15: 1,000 messages, then the process waits; once they are taken it goes on."""
    script = f"""
import threading
count = 0
def count_it():
    global count
    while True:
        count += os.write(1, b'{X}\\n')
threading.Thread(target=count_it, daemon=True).start()
for line in sys.stdin:
    sys.stderr.write(f"{{count}}\\n"); sys.stderr.flush()
"""
    line = len(X) + 1

    def has_lines(transport: Transport, lines: int) -> bool:
        return transport.stderr_tail.count("\n") >= lines

    async def written(transport: Transport) -> int:
        """How many bytes it could write until it waited."""
        told, before = -1, -2
        while told != before:
            before = told
            lines = transport.stderr_tail.count("\n") + 1
            await transport.write({"method": "how many"})
            await until(partial(has_lines, transport, lines))
            told = int(transport.stderr_tail.split()[-1])
            await asyncio.sleep(0.05)
        return told

    async def story() -> None:
        async with process(script) as transport:
            await until(lambda: transport.waiting >= AHEAD)
            assert await written(transport) <= AHEAD * line + 2 * CHUNK + 65_536
            assert AHEAD <= transport.waiting <= AHEAD + CHUNK // line + 1
            for _ in range(20_000):
                assert await transport.read() == Notified("x", {})
            assert transport.waiting <= AHEAD + CHUNK // line + 1

    run(story)


def test_long_lines_that_nobody_takes_are_bounded_by_their_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thousand lines of 16 MiB each would be 16 GiB."""
    monkeypatch.setattr(of_transport, "BYTES_AHEAD", 1 << 20)
    script = "text = '{\"method\":\"' + 'x' * 100_000 + '\"}\\n'\nwhile True: say(text)"

    async def story() -> None:
        async with process(script) as transport:
            await until(lambda: transport.waiting >= 10)
            await asyncio.sleep(0.05)
            assert transport.waiting <= 12
            for _ in range(50):
                assert isinstance(await transport.read(), Notified)

    run(story)


def test_what_it_said_before_it_died_is_read_though_nobody_had_taken_it() -> None:
    """The end of a process is heard after all that it said, also what was not read further."""
    script = f"os.write(1, b'{X}\\n' * 3_000); os.close(1); time.sleep(0)"

    async def story() -> None:
        async with process(script) as transport:
            await transport.exited.wait()
            assert len(await all_of(transport)) == 3_000

    run(story)


def test_a_pipe_that_others_hold_is_over_when_it_has_ended() -> None:
    """A grandchild that has its output open for ever keeps nobody waiting for more."""
    script = f"""
if not (pid := os.fork()):
    os.setsid()
    while True: signal.pause()
say('{{"method":"' + str(pid) + '"}}\\n')
sys.stdin.readline(); say('{X}\\n')
"""

    async def story() -> None:
        async with process(script) as transport:
            message = await transport.read()
            assert isinstance(message, Notified)
            await transport.write({})
            assert await all_of(transport) == [Notified("x", {})]
            os.kill(int(message.method), signal.SIGKILL)  # it lived: nobody could find it any more

    run(story)


def test_s_47_one_that_says_no_more_but_lives_on_is_ended() -> None:
    """Its output is over; that is what the session hears, and then it ends it."""

    async def story() -> None:
        async with process(f"say('{X}\\n'); os.close(1); signal.pause()") as transport:
            assert await all_of(transport) == [Notified("x", {})]
            assert not is_dead(transport.name)
            assert (await transport.end(grace=0)).status == -signal.SIGTERM
            assert is_dead(transport.name)

    run(story)


def test_s_54_of_standard_error_the_end_is_kept_and_harmless() -> None:
    """4 KiB of whatever length, and escapes come out as text."""
    script = "os.write(2, b'first ' + b'x' * 9_000 + b'\\x1b[31m\\xff last\\n'); sys.exit(3)"

    async def story() -> None:
        async with process(script) as transport:
            assert await all_of(transport) == []
            exited = await transport.end(grace=20)
            assert exited.status == 3
            assert exited.said == transport.stderr_tail
            assert len(exited.said) <= STDERR
            assert exited.said.endswith("\\x1b[31m\ufffd last\n")
            assert "first" not in exited.said

    run(story)


def test_s_54_standard_error_without_end_stops_nothing() -> None:
    """It is always read, so the process never waits for it; and others get their turn."""
    script = """
import threading
def flood():
    while True: os.write(2, b'noise\\x07' * 10_000)
threading.Thread(target=flood, daemon=True).start()
for line in sys.stdin: say(line)
"""

    async def story() -> None:
        async with process(script) as transport:
            await until(lambda: len(transport.stderr_tail) >= STDERR)
            for _ in range(50):
                await transport.write({"method": "x"})
                assert await transport.read() == Notified("x", {})
            assert len(transport.stderr_tail) <= STDERR

    run(story)


def test_a_stalled_process_blocks_neither_the_loop_nor_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A pipe that is full is waited for; after its bound the process is ended for it."""
    monkeypatch.setattr(of_transport, "WRITING", 0.3)

    async def story() -> None:
        async with process("signal.pause()") as transport:
            big = {"method": "x" * 1_000_000}
            writes = [asyncio.create_task(transport.write(big)) for _ in range(2)]
            await asyncio.sleep(0)
            assert not any(write.done() for write in writes)
            told = await asyncio.gather(*writes, return_exceptions=True)
            assert [type(it) for it in told] == [PipeBroken, PipeBroken]
            assert "has not read" in str(told[0])
            assert await transport.read() is None
            with pytest.raises(PipeBroken, match="has not read"):
                await transport.write({})
            assert (await transport.end(grace=60)).status == -signal.SIGKILL

    run(story)


def test_what_waits_to_be_written_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that reads nothing does not fill our memory."""
    monkeypatch.setattr(of_transport, "UNWRITTEN", 1_000_000)

    async def story() -> None:
        async with process("signal.pause()") as transport:
            first = asyncio.create_task(transport.write({"method": "x" * 2_000_000}))
            await asyncio.sleep(0)
            with pytest.raises(PipeBroken, match="does not read"):
                await transport.write({})
            with pytest.raises(PipeBroken):
                await first

    run(story)


def test_a_slow_reader_gets_each_message_whole_and_in_order() -> None:
    """Written by many at once, through a pipe that holds a fraction of them."""
    script = "for line in sys.stdin: say(line[:30].strip() + '\"}\\n')"

    async def story() -> None:
        async with process(script) as transport:
            writes = [
                transport.write({"method": f"{number:05}" + "x" * 50_000}) for number in range(60)
            ]
            await asyncio.gather(*writes)
            said = [await transport.read() for _ in writes]
            numbers = [it.method[:5] for it in said if isinstance(it, Notified)]
            assert numbers == [f"{number:05}" for number in range(60)]

    run(story)


def test_who_stops_waiting_for_a_write_leaves_no_half_of_it() -> None:
    """Its rest is written all the same: half a message would spoil the next one."""
    script = "sys.stdin.read(1)\nfor line in sys.stdin: say('{' + line[-14:])"

    async def story() -> None:
        async with process(script) as transport:
            first = asyncio.create_task(transport.write({"x": "x" * 500_000, "method": "a"}))
            await asyncio.sleep(0)
            first.cancel()
            await transport.write({"x": 1, "method": "b"})
            assert [await transport.read() for _ in "ab"] == [Notified("a", {}), Notified("b", {})]

    run(story)


def test_writing_to_one_that_has_ended_says_so() -> None:
    """S-42: a write that fails is the end of the process; it is heard as one."""

    async def story() -> None:
        async with process("sys.exit(2)") as transport:
            await transport.exited.wait()
            with pytest.raises(PipeBroken, match="has ended"):
                await transport.write({})
            assert await transport.read() is None

    async def ended_before() -> None:
        child = await Child.start((*PYTHON, HEAD + "sys.exit(2)"), cwd=None, env=os.environ)
        await child.exited.wait()
        transport = Transport(child)
        with pytest.raises(PipeBroken, match="has ended"):
            await transport.write({})
        await transport.end(grace=0)

    async def closed() -> None:
        async with process(f"os.close(0); say('{X}\\n'); signal.pause()") as transport:
            assert await transport.read() == Notified("x", {})
            with pytest.raises(PipeBroken, match="reads no more"):
                await transport.write({})
            assert await transport.read() is None
            assert (await transport.end(grace=60)).status == -signal.SIGKILL

    run(story)
    run(ended_before)
    run(closed)


def test_s_49_killed_at_once_it_says_no_more() -> None:
    """Whoever waits to write to it hears it at once, whoever reads hears the end."""

    async def story() -> None:
        async with process(f"say('{X}\\n'); signal.pause()") as transport:
            assert await transport.read() == Notified("x", {})
            write = asyncio.create_task(transport.write({"method": "x" * 1_000_000}))
            reading = asyncio.create_task(transport.read())
            await asyncio.sleep(0)
            transport.kill()
            with pytest.raises(PipeBroken, match="killed"):
                await write
            assert await reading is None
            assert (await transport.end(grace=60)).status == -signal.SIGKILL

    run(story)


def test_our_variables_reach_it_but_for_turnlocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """And those that are given, beside."""
    monkeypatch.setenv("TURNLOCK_TOKEN", "secret")
    monkeypatch.setenv("SOMETHING", "else")

    async def story() -> None:
        script = (
            *PYTHON,
            "import os, json; print(json.dumps({'method': 'x', 'params': dict(os.environ)}))",
        )
        transport = await Transport.start(script, cwd=None, env={"CODEX_HOME": "/home"})
        said = await transport.read()
        assert isinstance(said, Notified)
        assert said.params["SOMETHING"] == "else"
        assert said.params["CODEX_HOME"] == "/home"
        assert not [name for name in said.params if name.startswith("TURNLOCK")]
        await transport.end(grace=20)

    run(story)


def test_no_descriptor_is_left() -> None:
    """Of a process that was ended, killed, or never started."""

    async def story() -> None:
        async with process("sys.stdin.read()"):
            pass
        before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names alone
        for number in range(3):
            async with process("sys.stdin.read()") as transport:
                if number:
                    transport.kill()
        with pytest.raises(Exception, match="no such program"):
            await Transport.start(("no-such-program",), cwd=None, env=None)
        assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 - names alone

    run(story)
