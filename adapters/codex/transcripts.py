"""Recorded transcripts: what a client and ``codex app-server`` said to each other, line by line.

A line is one JSON object ``{seq, t, ts, dir, proc, msg}``: `dir` is ``c2s`` (the client said it),
``s2c`` (the program did), ``stderr`` (a text) or ``meta`` (what the recorder did and saw); `proc`
counts the processes of the recording. Fields beyond these are let be.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Literal, TypeAlias

import attrs
import msgspec

from ...models.errors import TurnlockError
from .messages import Answered, Message, NotAMessage, object_of, read

Settlement: TypeAlias = Literal["response", "turn"]
"""Whether a turn of the kernel is one response of the model, or one upstream turn (S-31, S-32)."""

MODEL: Final = ".model.jsonl"
"""How files end that hold what the model's endpoint said: they stand beside, and are not played."""


class Direction(StrEnum):
    """Who said a line."""

    CLIENT = "c2s"
    SERVER = "s2c"
    STDERR = "stderr"
    META = "meta"


class NotATranscript(TurnlockError):
    """A line that no transcript has; `number` counts from 1."""

    def __init__(self, number: int, cause: str) -> None:
        """Say which line it is, and what is wrong with it."""
        super().__init__(cause)
        self.number = number
        self.cause = cause


@attrs.frozen(kw_only=True)
class Said:
    """The process said something; `message` is None for a line that is no message (S-13)."""

    seq: int
    at: float
    process: int
    message: Message | None


@attrs.frozen(kw_only=True)
class Told:
    """The client told the process something: a request, a notification, or an answer."""

    seq: int
    at: float
    process: int
    message: Mapping[str, Any]


@attrs.frozen(kw_only=True)
class Ended:
    """The process has ended, and all that it said was read."""

    seq: int
    at: float
    process: int


Step: TypeAlias = Said | Told | Ended


@attrs.frozen(kw_only=True)
class Transcript:
    """What happened, in order; each process that said or was told something ends in it once."""

    steps: tuple[Step, ...]
    settlements: Mapping[tuple[int, str], Settlement]
    """Of each thread that a process was asked to start or to resume."""


class _Line(msgspec.Struct):
    dir: Direction
    msg: msgspec.Raw
    seq: int = 0
    t: float = 0.0
    ts: datetime | None = None
    proc: int | None = None


_line: Final = msgspec.json.Decoder(_Line).decode
_json: Final[Callable[[msgspec.Raw], object]] = msgspec.json.Decoder().decode
RAW_EVENTS: Final = (0, 169)
"""The first version whose raw events say where a response ends (S-32)."""
_VERSION: Final = re.compile(r"/(\d+)\.(\d+)\.")
"""Of the program, in what it answers to `initialize`."""


def read_transcript(lines: Iterable[tuple[int, bytes]]) -> Transcript:
    """Return the transcript of these lines, each with its number.

    Raises `NotATranscript` at the first that is no line of one, and where there is none.
    """
    steps = tuple(_ending(_steps(lines)))
    if not steps:
        raise NotATranscript(1, "nothing that a process said or was told stands here")
    return Transcript(steps=steps, settlements=dict(_settlements(steps)))


def _steps(lines: Iterable[tuple[int, bytes]]) -> Iterator[Step]:
    for number, text in lines:
        try:
            line = _line(text)
            told = _json(line.msg)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise NotATranscript(number, f"is no line of a transcript ({error})") from error
        seq = line.seq or number
        at = line.t if line.ts is None else line.ts.timestamp()
        process = line.proc or 0
        if line.dir is Direction.SERVER:
            yield Said(seq=seq, at=at, process=process, message=_message(bytes(line.msg), told))
        elif line.dir is Direction.CLIENT:
            if not bytes(line.msg).startswith(b"{"):
                raise NotATranscript(number, "the client told no JSON object")
            yield Told(seq=seq, at=at, process=process, message=object_of(told))
        elif line.dir is Direction.META and _at(told, "event") == "stdout_eof":
            yield Ended(seq=seq, at=at, process=process)


def _message(line: bytes, told: object) -> Message | None:
    """Return what was said; a recorder writes a line that was no JSON as a text."""
    try:
        return None if isinstance(told, str) else read(line)
    except NotAMessage:
        return None


def _ending(steps: Iterable[Step]) -> Iterator[Step]:
    """End each process once: where its output ended, or before the next one, or at the last."""
    living: dict[int, None] = {}
    ended: set[int] = set()
    last: Step | None = None
    for step in steps:
        process = step.process
        if process in ended:
            continue  # nobody reads what is left of it
        if process not in living:
            for other in tuple(living):
                yield Ended(seq=step.seq, at=step.at, process=other)
            ended.update(living)
            living.clear()
        if isinstance(step, Ended):
            living.pop(process, None)
            ended.add(process)
        else:
            living[process] = None
        last = step
        yield step
    if last is not None:
        for process in living:
            yield Ended(seq=last.seq, at=last.at, process=process)


def _settlements(steps: Iterable[Step]) -> Iterator[tuple[tuple[int, str], Settlement]]:
    """Yield how turns are settled in each thread: as it was asked for (S-31, S-32)."""
    asked: dict[tuple[int, object], bool] = {}
    old: set[int] = set()
    for step in steps:
        if isinstance(step, Told):
            method, params = step.message.get("method"), step.message.get("params")
            if method in {"thread/start", "thread/resume", "thread/fork"}:
                raw = method == "thread/start" and _at(params, "experimentalRawEvents") is True
                asked[step.process, step.message.get("id")] = raw
        elif isinstance(step, Said) and isinstance(step.message, Answered):
            result = step.message.result
            version = _VERSION.search(str(_at(result, "userAgent")))
            if version is not None and tuple(map(int, version.groups())) < RAW_EVENTS:
                old.add(step.process)
            raw = asked.pop((step.process, step.message.id), None)
            thread = _at(result, "thread", "id")
            if raw is not None and isinstance(thread, str):
                whole = raw and step.process not in old
                yield (step.process, thread), "response" if whole else "turn"


def _at(value: object, *path: str) -> object:
    for name in path:
        value = object_of(value).get(name)
    return value
