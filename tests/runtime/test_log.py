"""Ids, tool names, model text and exception texts never reach a log raw (`runtime.log`)."""

from __future__ import annotations

import ast
import asyncio
import io
import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlock import Call, Run, TurnlockError, UnknownRun
from turnlock.models.errors import CorruptJournal, InvalidValue
from turnlock.runtime import Continuation, MemoryJournal, Runtime, Settings, Toolbox, log, tool

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = (
    *("models", "machines", "lifecycle", "turn", "engine", "views", "wire", "diagrams", "runtime"),
    *("verification", "agent", "toolkits", "adapters", "server", "tui", "cli"),
)
HOSTILE = {
    "terminal": "\x1b[2J\x1b]0;owned\x07",
    "lines": "a\nERROR|forged|127.0.0.1\r\n",
    "bidi": "\u202egnp.exe\u2066\u200b",
    "C1 and separators": "\x9b31m\x85\u2028",
    "long": "x" * 10_000,
}
"""Ids that UTF-8 can hold, and a kernel takes."""
TEXTS = {**HOSTILE, "lone surrogates": "\ud800\udfff"}


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """What all loggers write, with everything that a format can name, as a handler writes it."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        logging.Formatter("%(levelname)s|%(name)s|%(threadName)s|%(processName)s|%(message)s")
    )
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield stream
    root.removeHandler(handler)
    root.setLevel(before)


def harmless_log(text: str) -> bool:
    """Whether a terminal may show it: records of one line, others indented, none without end."""
    lines = text.splitlines()
    return (
        text.replace("\n", "").isprintable()
        and lines == text.rstrip("\n").split("\n")
        and all(line.startswith(("  ", "DEBUG|", "INFO|", "WARNING|", "ERROR|")) for line in lines)
        and all(len(line) < 2_500 for line in lines)
    )


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


def everything_logged(logger: logging.Logger, text: str) -> None:
    """Log a text in every place that a record has."""
    logger.warning("%s did %r and %d, %.3g", text, text, 7, 0.5)
    logger.warning("by name: %(who)s", {"who": text})
    logger.error("all of %s", [text, text])
    error = ValueError(text)
    error.__cause__ = KeyError(text)
    logger.error("it failed with %s", error, exc_info=error)
    logger.info("it stands here", stack_info=True)
    named = threading.Thread(target=logger.warning, args=("from a thread",), name=text)
    named.start()
    named.join()


def written(logger: logging.Logger, text: str) -> str:
    """What a handler of its own writes."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(levelname)s|%(threadName)s|%(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        everything_logged(logger, text)
    finally:
        logger.removeHandler(handler)
    return stream.getvalue()


@given(text=st.text(st.characters(exclude_categories=()), max_size=50))
def test_whatever_is_logged_comes_out_harmless(text: str) -> None:
    said = written(log.logger("turnlock.tests.door"), text)
    assert harmless_log(said)
    assert "and 7, 0.5" in said


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_control_a_plain_logger_lets_it_through(text: str) -> None:
    """The same records without the door: each of these texts is one that harms."""
    assert not harmless_log(written(logging.Logger("elsewhere"), text))  # noqa: LOG001 - not below pytest's handlers
    assert harmless_log(written(log.logger("turnlock.tests.door"), text))


def test_what_cannot_be_shown_ends_nobody(logged: io.StringIO) -> None:
    log.logger("turnlock.tests.text").error("it is %s", Unspeakable())
    assert "it is a Unspeakable that cannot be shown" in logged.getvalue()


def test_a_traceback_is_bounded_and_keeps_its_end(logged: io.StringIO) -> None:
    def deep(left: int) -> None:
        if not left:
            raise ValueError("\n".join(["x"] * 200) + "the end")
        deep(left - 1)

    logger = log.logger("turnlock.tests.deep")
    with suppress(ValueError):
        try:
            deep(50)
        except ValueError:
            logger.exception("it failed")
            raise
    lines = logged.getvalue().splitlines()
    assert len(lines) == 1 + 1 + log.LINES
    assert lines[1].startswith("  … ")
    assert lines[-1] == "  xthe end"


def product_files() -> list[Path]:
    return [file for folder in PRODUCT for file in sorted((ROOT / folder).rglob("*.py"))]


DOORS = {"logging", "warnings", "faulthandler", "syslog"}


def goes_past(source: str) -> list[str]:
    """Where a module has another way to a log or a terminal than `runtime.log` and click."""
    found: list[str] = []
    if not any(word in source for word in (*DOORS, "print", "sys.std")):
        return found  # most of them: parsing takes time
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        found += [f"imports {name}" for name in names if name.partition(".")[0] in DOORS]
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called == "print" or called.startswith(
                ("traceback.print", "sys.stderr.write", "sys.stdout.write")
            ):
                found.append(f"calls {called}")
    return found


def test_no_module_has_another_way_to_the_log() -> None:
    """`runtime.log` alone asks `logging` for a logger, so that no call site can forget it."""
    found = {
        str(file.relative_to(ROOT)): past
        for file in product_files()
        if (past := goes_past(file.read_text(encoding="utf-8")))
    }
    assert found == {"runtime/log.py": ["imports logging"]}


@pytest.mark.parametrize(
    "source",
    [
        "import logging\n_log = logging.getLogger(__name__)",
        "from logging import getLogger",
        "def f():\n    import warnings",
        "print(run_id)",
        "import sys\nsys.stderr.write(run_id)",
        "import traceback\ntraceback.print_exc()",
    ],
)
def test_control_another_way_is_found(source: str) -> None:
    assert goes_past(source)


def test_every_logger_of_ours_has_the_filter() -> None:
    """Of all that was imported in this process."""
    ours = [
        it
        for name, it in logging.root.manager.loggerDict.items()
        if name.startswith("turnlock.runtime") and isinstance(it, logging.Logger)
    ]
    assert len(ours) > 5
    assert all(it.filters for it in ours)


class Told(Exception):
    """What a host's callback raises."""


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_a_runtime_logs_harmless_text_whatever_the_ids(
    name: str, logged: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A continuation that fails, a task that does not end, a run of another runtime; task names."""
    names: set[str] = set()
    monkeypatch.setattr("turnlock.runtime.runtime.CANCEL_WITHIN", 0.02)

    async def play() -> None:
        hanging = asyncio.Event()
        called = {"1": asyncio.Event(), "2": asyncio.Event()}

        @tool(name=name)
        async def act() -> str:
            names.update(task.get_name() for task in asyncio.all_tasks())
            raise Told(name)

        async def on_continue(told: Continuation) -> None:
            called[told.run_id[0]].set()
            if told.run_id.startswith("1"):
                raise Told(name)
            while not hanging.is_set():
                with suppress(asyncio.CancelledError):
                    await hanging.wait()

        journal = MemoryJournal()
        await journal.declare(Run(run_id="other" + name, kind="other" + name))
        async with Runtime(
            journal=journal,
            tools=Toolbox([act]),
            on_continue=on_continue,
            settings=Settings(drain=0.01),
        ) as runtime:
            for run_id in ("1" + name, "2" + name):
                await runtime.open_run(Run(run_id=run_id))
                call = Call(
                    invocation_id=name,
                    tool_name=name,
                    arguments={},
                    requires_approval=False,
                )
                await runtime.open_turn(run_id, [call], turn_id=name)
                await called[run_id[0]].wait()
            with suppress(TurnlockError):
                await runtime.open_run(Run(run_id="other" + name, kind="other" + name))
        hanging.set()

    asyncio.run(play())
    said = logged.getvalue()
    assert "the host did not take continue/1" in said
    assert "tasks did not end when they were cancelled" in said
    assert harmless_log(said), said[:3_000]
    assert all(it.isprintable() and len(it) <= 200 for it in names)
    assert any("execute" in it for it in names)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_errors_say_it_harmlessly_whoever_prints_them(text: str) -> None:
    """A traceback of ours on somebody's terminal, too: `args` has the message as it was made."""
    kinds: list[TurnlockError] = [
        TurnlockError(text),
        UnknownRun(text),
        InvalidValue(place=text, cause=text, fix=text),
        CorruptJournal(sequence=1, cause=text, fix=text),
    ]
    kinds += [
        kind(text)
        for kind in vars(sys.modules["turnlock.runtime.errors"]).values()
        if isinstance(kind, type)
        and issubclass(kind, TurnlockError)
        and kind.__init__ is TurnlockError.__init__
    ]
    assert len(kinds) > 10
    for error in kinds:
        assert str(error).replace("\n", "").isprintable()
        assert repr(error).isprintable()
