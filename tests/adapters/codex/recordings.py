"""The recorded transcripts, read once, and what is done to them: faults at every place."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import attrs
import msgspec

from turnlock.adapters.codex.messages import Asked, Notified, object_of
from turnlock.adapters.codex.normaliser import thread_of
from turnlock.adapters.codex.playing import Play
from turnlock.adapters.codex.transcripts import (
    Ended,
    Said,
    Step,
    Told,
    Transcript,
    read_transcript,
)

from ...runtime.crash.depth import DEEP

DATA: Final = Path(__file__).resolve().parents[2] / "data" / "codex"
NAMES: Final = tuple(sorted(it.name.removesuffix(".jsonl.gz") for it in DATA.glob("*.jsonl.gz")))


@cache
def recording(name: str) -> Transcript:
    """Return a transcript by the name of its scenario."""
    with gzip.open(DATA / f"{name}.jsonl.gz") as lines:
        return read_transcript(enumerate(lines, start=1))


def heard(step: Step) -> bool:
    """Whether a step is a message that a normaliser is given."""
    return (
        isinstance(step, Said)
        and isinstance(step.message, Notified | Asked)
        and thread_of(step.message) is not None
    )


@cache
def places(name: str) -> tuple[int, ...]:
    """Return which steps of a transcript a normaliser is given."""
    return tuple(place for place, step in enumerate(recording(name).steps) if heard(step))


def begun(name: str, **options: Any) -> Play:
    """Begin to play a transcript."""
    return Play(name, recording(name).settlements, **options)


def played(play: Play, steps: Sequence[Step]) -> Play:
    """Play these steps, too."""
    for step in steps:
        play.take(step)
    return play


def wrong(play: Play) -> list[str]:
    """Say what must not be: demands that are not met, and refusals that nobody explained."""
    found = [str(it) for it in play.breaches]
    for run in play.runs.values():
        for it in run.refusals:
            if it.why is None:
                about = getattr(it.delivery, "invocation_id", None)
                found.append(
                    f"seq {it.seq}: {it.delivery.type} of {about} by {it.by}: {it.refused.reason}"
                )
    return found


# ------------------------------------------------------------------------------
# What comes after: another process, in which the thread is resumed, and a command approved.

_AFTER: Final = "02_cmd_accept"
_PROCESS: Final = 1_000
_TURN: Final = "01ffffff-0000-7000-8000-000000000000"


@cache
def sequel(thread: str) -> tuple[Step, ...]:
    """Return one more process of a thread: a turn with one command, which is approved."""
    steps = recording(_AFTER).steps
    first = steps[places(_AFTER)[0]]
    assert isinstance(first, Said)
    assert isinstance(first.message, Notified | Asked)
    renamed = {
        str(thread_of(first.message)): thread,
        next(filter(None, map(_begun, steps))): _TURN,
    }
    return tuple(_renamed(step, renamed) for step in steps)


def _begun(step: Step) -> str | None:
    """Return the turn that a step begins."""
    if isinstance(step, Said) and isinstance(step.message, Notified):
        turn = step.message.params.get("turn")
        return str(turn["id"]) if step.message.method == "turn/started" and turn else None
    return None


def _renamed(step: Step, names: Mapping[str, str]) -> Step:
    at = step.at + 1e6
    if isinstance(step, Ended):
        return attrs.evolve(step, process=_PROCESS, at=at)
    if isinstance(step, Told):
        told = _with_names(step.message, names)
        return attrs.evolve(step, process=_PROCESS, at=at, message=told)
    message = step.message
    if isinstance(message, Notified | Asked):
        message = attrs.evolve(message, params=_with_names(message.params, names))
    return attrs.evolve(step, process=_PROCESS, at=at, message=message)


def _with_names(value: Any, names: Mapping[str, str]) -> Any:
    text = msgspec.json.encode(value).decode()
    for old, new in names.items():
        text = text.replace(old, new)
    return msgspec.json.decode(text.encode())


# ------------------------------------------------------------------------------
# Faults.

GARBAGE: Final[tuple[Any, ...]] = (None, True, 0, -1.5, 10**30, "", "x", [], [None], {}, {"id": 1})
"""A value of each type of JSON, and the odd ones among them."""


def lost(steps: Sequence[Step], place: int) -> list[Step]:
    """Leave out a message."""
    return [*steps[:place], *steps[place + 1 :]]


def doubled(steps: Sequence[Step], place: int) -> list[Step]:
    """Say a message twice."""
    return [*steps[:place], steps[place], *steps[place:]]


def overtaken(steps: Sequence[Step], place: int) -> list[Step]:
    """Swap a message with the next one of its process that a normaliser is given."""
    for other in range(place + 1, len(steps)):
        if heard(steps[other]) and steps[other].process == steps[place].process:
            between = steps[place + 1 : other]
            return [*steps[:place], steps[other], *between, steps[place], *steps[other + 1 :]]
    return [*steps]


def died(steps: Sequence[Step], place: int) -> list[Step]:
    """End the process after a message; the later ones of the transcript come then."""
    process = steps[place].process
    end = Ended(seq=steps[place].seq, at=steps[place].at, process=process)
    after = [it for it in steps[place + 1 :] if it.process > process]
    return [*steps[: place + 1], end, *after]


def malformed(step: Step) -> Iterator[Step]:
    """Yield a message with garbage in the place of its params, of each of them, and in those."""
    assert isinstance(step, Said)
    message = step.message
    assert isinstance(message, Notified | Asked)

    def told(params: Mapping[str, Any]) -> Step:
        return attrs.evolve(step, message=attrs.evolve(message, params=params))

    params = dict(message.params)
    yield told({})
    for name, whole in params.items():
        yield told({key: it for key, it in params.items() if key != name})
        for garbage in GARBAGE:
            yield told({**params, name: garbage})
        value = object_of(whole)
        for inner in value:
            yield told({**params, name: {key: it for key, it in value.items() if key != inner}})
            for garbage in GARBAGE:
                yield told({**params, name: {**value, inner: garbage}})


def shape(step: Step) -> tuple[str, ...]:
    """Say what kind of message it is: its method, and type and status of its item."""
    assert isinstance(step, Said)
    assert isinstance(step.message, Notified | Asked)
    item = object_of(step.message.params.get("item"))
    return step.message.method, str(item.get("type")), str(item.get("status"))


SILENT: Final = (
    *("codex/event/", "thread/", "warning", "turn/diff", "turn/plan", "item/agentMessage"),
    *("rawResponseItem/completed message", "item/started userMessage", "item/started agentMessage"),
    *("item/completed userMessage", "item/completed agentMessage"),
)
"""How messages begin that only say something: played where there is time."""


def telling(name: str) -> Iterator[int]:
    """Yield the places of a recording at which something is said of turns, calls and requests."""
    for place in places(name):
        if DEEP or not " ".join(shape(recording(name).steps[place])).startswith(SILENT):
            yield place


EVERY: Final = 1 if DEEP else 7
"""Of the places of a recording every so-manieth is played by each test; `make crash` plays all."""


def some(name: str, what: str) -> list[int]:
    """Return every third place of those that tell, others for each recording and each fault."""
    told = [*telling(name)]
    return told[crc32(f"{name} {what}".encode()) % max(1, min(EVERY, len(told))) :: EVERY]
