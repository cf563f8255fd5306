"""Exports that are not as they were written: cut, damaged, or made up; nothing of them is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlock.models.values import Json
from turnlock.runtime.journal.logs import ENTRY_BYTES, LOG_ENTRIES
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.world import export_lines
from turnlock.world.entries import read_entry
from turnlock.world.export_lines import items_of
from turnlock.world.moving import ExportError, export_world, import_world

from ..runtime.virtual import LoopClock, run
from .moved import Line, exported, forged, kept_by, lines_of, scene_that_pays
from .scenes import Scene


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An export of a world with something of everything."""
    folder = tmp_path_factory.mktemp("whole")

    async def it() -> Path:
        scene = await scene_that_pays()
        await scene.world.put_agent("bob", (await scene.world.configuration()).agents["alice"].spec)
        await scene.ask("bob", {"n": 1})
        await scene.say("more")
        return await exported(scene, folder)

    return run(it())


def is_refused(path: Path) -> str:
    """Import a file that must not be; what was wrong, once it is sure that nothing was kept."""

    async def it() -> str:
        journal = MemoryJournal()
        with pytest.raises(ExportError) as caught:
            await import_world(journal, path, clock=LoopClock())
        assert await kept_by(journal) == {}
        assert await journal.logs() == ()
        return str(caught.value)

    return run(it())


def test_w_72_a_file_that_breaks_off_leaves_nothing(whole: Path, tmp_path: Path) -> None:
    """After each line, and inside each."""
    lines = whole.read_bytes().splitlines(keepends=True)
    assert len(lines) > 20
    path = tmp_path / "cut.world"
    for count, line in enumerate(lines):
        path.write_bytes(b"".join(lines[:count]))
        assert f"line {count + 1}" in is_refused(path)
        path.write_bytes(b"".join(lines[:count]) + line[: len(line) // 2])
        assert f"line {count + 1}" in is_refused(path)
        path.write_bytes(b"".join(lines[:count]) + line[:-1])
        assert f"line {count + 1}" in is_refused(path)


def test_w_72_each_line_that_is_damaged_missing_moved_or_doubled_is_found(
    whole: Path, tmp_path: Path
) -> None:
    lines = whole.read_bytes().splitlines(keepends=True)
    path = tmp_path / "damaged.world"
    for place, line in enumerate(lines):
        middle = len(line) * 3 // 4
        damaged = line[:middle] + bytes([line[middle] ^ 1]) + line[middle + 1 :]
        others = [
            [*lines[:place], damaged, *lines[place + 1 :]],
            [*lines[:place], *lines[place + 1 :]],
            [*lines[: place + 1], *lines[place:]],
            [*lines[: place + 1], b"\n", *lines[place + 1 :]],
        ]
        if place:
            others.append([*lines[: place - 1], line, lines[place - 1], *lines[place + 1 :]])
        for other in others:
            path.write_bytes(b"".join(other))
            assert "line " in is_refused(path)


@given(data=st.data())
def test_w_72_any_byte_that_is_another_is_found(data: st.DataObject, whole: Path) -> None:
    content = bytearray(whole.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    path = whole.with_name("byte.world")
    path.write_bytes(bytes(content))
    with pytest.raises(ExportError, match="line "):
        for _ in items_of(path):
            pass


@given(data=st.binary(max_size=300))
def test_what_is_no_export_is_told_so(
    data: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.world"
    path.write_bytes(data)
    with pytest.raises(ExportError, match="line 1"):
        for _ in items_of(path):
            pass


def place_of(lines: list[Line], kind: str, number: int = 0) -> int:
    """Where the line of a kind stands."""
    found = [place for place, line in enumerate(lines) if kind in line]
    return found[number]


def entry_with(lines: list[Line], kind: str) -> dict[str, Any]:
    """The first entry whose body is of this kind."""
    bodies = [line["entry"] for line in lines if "entry" in line]
    return next(it for it in bodies if it["body"].get("kind") == kind)


def note_with(lines: list[Line], field: str) -> dict[str, Any]:
    """The first note whose body has this field."""
    notes = [line["note"] for line in lines if "note" in line]
    return next(it for it in notes if field in it["body"])


def fact_with(lines: list[Line], kind: str) -> Line:
    """The first fact of this type."""
    return next(line for line in lines if line.get("type") == kind)


def drop(kind: str) -> Callable[[list[Line]], None]:
    """Leave out the first line of this kind."""

    def change(lines: list[Line]) -> None:
        del lines[place_of(lines, kind)]

    return change


def set_in(find: Callable[[list[Line]], dict[str, Any]], **fields: Any) -> Callable[..., None]:
    """Have other fields in what is found."""

    def change(lines: list[Line]) -> None:
        find(lines).update(fields)

    return change


def at_line(kind: str, number: int = 0) -> Callable[[list[Line]], dict[str, Any]]:
    """What stands in a line of this kind."""

    def find(lines: list[Line]) -> dict[str, Any]:
        found: dict[str, Any] = lines[place_of(lines, kind, number)][kind]
        return found

    return find


def header(lines: list[Line]) -> dict[str, Any]:
    return lines[0]


def body(kind: str) -> Callable[[list[Line]], dict[str, Any]]:
    def find(lines: list[Line]) -> dict[str, Any]:
        found: dict[str, Any] = entry_with(lines, kind)["body"]
        return found

    return find


def note_body(field: str) -> Callable[[list[Line]], dict[str, Any]]:
    def find(lines: list[Line]) -> dict[str, Any]:
        found: dict[str, Any] = note_with(lines, field)["body"]
        return found

    return find


def called(lines: list[Line]) -> dict[str, Any]:
    call: dict[str, Any] = note_with(lines, "calls")["body"]["calls"][0]
    return call


def fact(kind: str) -> Callable[[list[Line]], dict[str, Any]]:
    return lambda lines: fact_with(lines, kind)


HEARD = {"number": 99, "entry": "say/human/1", "from": "human", "role": "person"}
MADE_UP: dict[str, tuple[Callable[[list[Line]], object], str]] = {
    "another file": (set_in(header, turnlock="run"), "no export of a world"),
    "newer": (set_in(header, version=2), "newer turnlock"),
    "no version": (set_in(header, version=True), "version"),
    "no id": (set_in(header, world="Demo"), "no id"),
    "another world": (set_in(header, world="other"), "not the log that should stand here"),
    "no header": (lambda lines: lines.pop(0), "no export of a world"),
    "no world's log": (lambda lines: lines.pop(1), "stands in no log"),
    "no run": (drop("run"), "stands before any run"),
    "another's chat": (set_in(at_line("log", 1), name="else/plan"), "no log of this world"),
    "too many entries": (set_in(at_line("log"), last=2), "stands in no log"),
    "too few entries": (set_in(at_line("log"), last=99), "are missing before it"),
    "a log below zero": (set_in(at_line("log"), last=-1), "not the log that should"),
    "a log twice": (lambda lines: lines.insert(1, lines[1]), "begins a log|are missing"),
    "a number twice": (set_in(at_line("entry", 1), number=1), "is not entry 2"),
    "no entry id": (set_in(at_line("entry"), entry_id=""), "its id is no text"),
    "no time": (set_in(at_line("entry"), at="now"), "at"),
    "no world": (set_in(body("WORLD_MADE"), kind="OTHER"), "holds no world"),
    "a key": (
        set_in(body("AGENT_PUT"), spec={"model": "a:b", "options": {"api_key": "x"}}),
        "names a secret",
    ),
    "an address": (
        set_in(body("AGENT_PUT"), spec={"model": "a:b", "options": {"base_url": "x"}}),
        "where a model is asked",
    ),
    "no agent": (set_in(body("AGENT_PUT"), agent="human"), "no agent's id"),
    "no message": (set_in(body("message"), role="tool"), "role"),
    "heard too much": (set_in(note_body("heard"), heard=HEARD), "has heard more"),
    "asked too late": (set_in(note_body("calls"), configuration=99), "configuration"),
    "a note of another": (set_in(at_line("note"), run_id="demo/plan/bob"), "is no line of run"),
    "a note elsewhere": (set_in(at_line("note"), cursor="9.1"), "does not stand at"),
    "a note at a fact": (set_in(at_line("note"), cursor="0"), "does not stand at"),
    "no place": (set_in(at_line("note"), cursor="x"), "no place in a ledger"),
    "no domain": (set_in(at_line("note"), domain="x"), "note.domain"),
    "a message too far": (set_in(at_line("note"), id="said/9"), "stands where"),
    "no text": (set_in(note_body("calls"), text=5), "is no text"),
    "no prompt's text": (set_in(note_body("heard"), text=5), "is no text"),
    "a call without a tool": (set_in(called, tool_name=""), "tool_name: is empty"),
    "arguments that are none": (set_in(called, arguments="x"), "is not a JSON object"),
    "a fault that says nothing": (set_in(called, fault=""), "calls.0..fault: says nothing"),
    "ids of other calls": (set_in(note_body("calls"), ids=[]), "are not one text for each call"),
    "tokens that are none": (
        set_in(note_body("calls"), tokens={"input": "x"}),
        "tokens.input: 'x' is no number",
    ),
    "another kind": (set_in(at_line("run"), kind="own"), "no member of this world"),
    "another agent": (set_in(at_line("run"), agent_id="bob"), "another agent"),
    "another run": (set_in(at_line("run"), run_id="demo/plan/bob#2"), "is no (fact|line)"),
    "a fact too far": (set_in(fact("TOOL_APPROVED"), sequence=9), "is not fact"),
    "an impossible fact": (set_in(fact("TOOL_APPROVED"), invocation_id="x"), "fact 3"),
    "another's grant": (set_in(fact("GRANT_ISSUED"), grant_id="grant/x/y"), "grant"),
    "an unknown fact": (set_in(fact("TOOL_APPROVED"), type="MOON_ROSE"), "type"),
    "a future": (set_in(fact("TURN_OPENED"), at=4e9), "happened in the future"),
    "a question of other arguments": (
        set_in(fact("TOOL_APPROVAL_REQUESTED"), arguments={"to": "bob"}),
        "asks about another call",
    ),
    "a question of another tool": (
        set_in(fact("TOOL_APPROVAL_REQUESTED"), tool_name="look"),
        "asks about another call",
    ),
    "a question of another digest": (
        set_in(fact("TOOL_APPROVAL_REQUESTED"), arguments_digest="00"),
        "asks about another call",
    ),
    "an id twice": (set_in(at_line("entry", 1), entry_id="made"), "two entries of the id"),
    "a note's id twice": (
        set_in(at_line("note", 0), id="x", domain="usage"),
        "stands where",
    ),
    "an entry too large": (
        set_in(body("message"), kind="other", text="x" * ENTRY_BYTES),
        "ENTRY_BYTES",
    ),
    "a log too long": (set_in(at_line("log"), last=LOG_ENTRIES + 1), "has more than"),
    "half a commit": (drop("scope"), "is not fact|ends inside a commit|commit"),
    "a run twice": (
        lambda lines: lines.extend([*lines[place_of(lines, "run") : -1], lines[-1]]),
        "counts other lines|behind the end",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("change", "cause"), MADE_UP.values(), ids=[*MADE_UP])
def test_w_72_what_nobody_can_have_exported_is_refused(
    change: Callable[[list[Line]], object], cause: str, whole: Path, tmp_path: Path
) -> None:
    """Every sum is right: what the lines say is checked as well, before anything is kept."""
    path = tmp_path / "demo.world"
    path.write_bytes(whole.read_bytes())
    with pytest.raises(ExportError, match=cause):
        raise ExportError(is_refused(forged(path, change)))


def test_w_72_a_run_that_stands_there_twice_is_refused(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "demo.world"
    path.write_bytes(whole.read_bytes())

    def change(lines: list[Line]) -> None:
        lines[-1:-1] = lines[place_of(lines, "run") : place_of(lines, "run", 1)]

    assert "stands there twice" in is_refused(forged(path, change))


def test_w_72_a_note_stands_there_once(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "demo.world"
    path.write_bytes(whole.read_bytes())

    def change(lines: list[Line]) -> None:
        at = place_of(lines, "note")
        note = {**lines[at]["note"], "domain": "usage", "id": "used"}
        twice = [{"note": {**note, "cursor": f"0.{part}"}} for part in (8, 9)]
        lines[at + 2 : at + 2] = twice

    assert "two notes of the id" in is_refused(forged(path, change))


def test_w_72_an_answer_in_a_chat_has_its_note(whole: Path, tmp_path: Path) -> None:
    """Else a host would publish another one under its id."""
    path = tmp_path / "demo.world"
    path.write_bytes(whole.read_bytes())

    def change(lines: list[Line]) -> None:
        entry_with(lines, "message")["entry_id"] = "demo/plan/alice/said/9"

    assert "lacks notes" in is_refused(forged(path, change))


def test_w_9_a_line_has_a_bound(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is longer is neither written nor read."""
    longest = max(map(len, whole.read_bytes().splitlines(keepends=True)))
    monkeypatch.setattr(export_lines, "LINE_BYTES", longest)
    assert [*items_of(whole)]
    monkeypatch.setattr(export_lines, "LINE_BYTES", longest - 1)
    assert "has more than" in is_refused(whole)

    async def it() -> None:
        scene = await scene_that_pays()
        await scene.say("x" * longest)
        with pytest.raises(ExportError, match="a line may have"):
            await export_world(scene.journal, "demo", tmp_path / "long.world")

    run(it())
    assert not (tmp_path / "long.world").exists()


def test_w_72_what_nobody_here_knows_comes_along(tmp_path: Path) -> None:
    """Entries of kinds of later versions are kept, and skipped, there as here."""

    async def it() -> None:
        scene = await Scene.begin()
        odd: dict[str, Json] = {"kind": "MOON_ROSE", "run": "demo/plan/alice", "to": 7}
        for log in ("demo", "demo/plan"):
            await scene.journal.append_entry(log, "odd", odd, at=1.0)
        journal = MemoryJournal()
        await import_world(journal, await exported(scene, tmp_path), clock=LoopClock())
        assert (await journal.entries("demo/plan"))[0].body == odd
        assert (await journal.entries("demo"))[-1].body == odd
        assert read_entry((await journal.entries("demo/plan"))[0]).kind == "MOON_ROSE"

    asyncio.run(it())


def test_the_lines_are_as_the_docstring_says(whole: Path) -> None:
    first, log, entry, *_, end = lines_of(whole)
    assert (first["turnlock"], first["version"], first["world"]) == ("world", 1, "demo")
    assert log == {"log": {"name": "demo", "last": log["log"]["last"]}}
    assert set(entry["entry"]) == {"number", "entry_id", "at", "body"}
    assert end == {"end": {"lines": len(lines_of(whole)) - 1}}
