"""Journals written as traces in TLA+, for ``Traceturnlock.tla``.

A text is itself where TLA+ can write it, and a number else: only whether two are equal counts. A
digest is that of the arguments that have it. Times are their places in the order of all times of
the journal, the ends of approval timeouts too, so that nothing is rounded: a rule only compares
times (K-34), and the one sum that a fact does not hold, time + timeout, is made here as in K-34.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from ...engine.state import after
from ...models.calls import Call
from ...models.facts import (
    CallAdded,
    Fact,
    ToolDenied,
    ToolExecutionFailed,
    TurnOpened,
)
from ...models.ids import grant_id
from ...models.run import Run
from ...models.values import arguments_digest, canonical

Value: TypeAlias = "str | int | bool | list[Any] | dict[str, Any] | None"
"""What is written: a record is a dict, a tuple a list."""

NONE: Final = "None"
MOST: Final = 2**31 - 1
"""The largest number of TLC; what counts beyond it is taken for it."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./; -]{0,60}")
_TIMES: Final = ("deadline", "lease_until", "grace_until", "expires_at")
_FIELDS: Final[dict[str, tuple[str, str]]] = {
    "type": ("type", "_same"),
    "input": ("input", "_same"),
    "turn_id": ("turn", "_text"),
    "invocation_id": ("invocation", "_text"),
    "tool_name": ("tool", "_text"),
    "grant_id": ("grant", "_grant"),
    "scope": ("scope", "_same"),
    "match": ("match", "_same"),
    "cause": ("cause", "_same"),
    "attempt": ("attempt", "_same"),
    "epoch": ("epoch", "_same"),
    "sealed": ("sealed", "_same"),
    "arguments": ("arguments", "_json"),
    "arguments_digest": ("digest", "_digest"),
    "deadline": ("deadline", "_time"),
    "lease_until": ("until", "_time"),
    "grace_until": ("until", "_time"),
    "expires_at": ("until", "_time"),
}
"""Of a fact's field its name in the specification, and how its value is written."""


class Trace:
    """One run's facts, on their way into TLA+."""

    def __init__(self, run: Run, facts: Sequence[Fact]) -> None:
        """Order its times and learn its digests."""
        self.run = run
        self._texts: dict[str, str] = {}
        self._facts = facts
        self._digests = {
            arguments_digest(arguments): canonical(arguments) for arguments in _arguments(facts)
        }
        self._times = sorted({time for fact in facts for time in _times(fact)})
        self._place = {time: place for place, time in enumerate(self._times, start=1)}

    def lines(self) -> str:
        """Return the trace: a tuple of its lines."""
        return _joined(_written(self._line(fact)) for fact in self._facts)

    def gone(self) -> str:
        """Return of each time the place of the last at which what closed then is remembered."""
        last = (
            bisect_right(self._times, self.run.limits.remember_for, key=partial(_age, then))
            for then in self._times
        )
        return f"<<{', '.join(map(str, last))}>>"

    def _line(self, fact: Fact) -> dict[str, Value]:
        return {
            "sequence": fact.sequence,
            "commit": fact.commit,
            "at": self._place[fact.at],
            "fact": self._fact(fact),
        }

    def _fact(self, fact: Any) -> dict[str, Value]:  # noqa: ANN401 - of any class
        """Return what the specification says of a fact, under the names that it has there."""
        told: dict[str, Value] = {
            name: getattr(self, how)(getattr(fact, field))
            for field, (name, how) in _FIELDS.items()
            if hasattr(fact, field)
        }
        if isinstance(fact, ToolDenied):
            told["reason"] = None if fact.error is not None else self._text(fact.reason)
        if isinstance(fact, ToolExecutionFailed):
            told["error"] = self._text(fact.error)
        if isinstance(fact, TurnOpened):
            told["calls"] = [self._call(call, fact.at) for call in fact.calls]
        if isinstance(fact, CallAdded):
            told["call"] = self._call(fact.call, fact.at)
        return told

    def _call(self, call: Call, at: float) -> Value:
        timeout = call.approval_timeout
        ends = None if timeout is None else self._place[after(at, timeout)] - self._place[at]
        return {
            "id": self._text(call.invocation_id),
            "tool": self._text(call.tool_name),
            "arguments": self._json(call.arguments),
            "gated": call.requires_approval,
            "observed": call.observed,
            "timeout": ends,
        }

    def _same(self, value: Value) -> Value:
        return value

    def _text(self, text: str | None) -> str | None:
        if text is None or _PLAIN.fullmatch(text):
            return text
        return self._texts.setdefault(text, f"#{len(self._texts)}")

    def _json(self, value: Mapping[str, Any] | None) -> str | None:
        return None if value is None else self._text(canonical(value))

    def _digest(self, digest: str) -> str | None:
        return self._text(self._digests.get(digest, digest))

    def _time(self, time: float | None) -> int | None:
        return None if time is None else self._place[time]

    def _grant(self, name: str | None) -> int | None:
        """Return the number of a grant; of an id that the run never made, no number of one."""
        if name is None:
            return None
        number = name.rpartition("/")[2]
        if number.isdecimal() and name == grant_id(self.run.run_id, int(number)):
            return int(number)
        return -1


def _calls(fact: Fact) -> tuple[Call, ...]:
    """Return the calls that a fact brings."""
    if isinstance(fact, TurnOpened):
        return fact.calls
    return (fact.call,) if isinstance(fact, CallAdded) else ()


def _arguments(facts: Iterable[Fact]) -> Iterable[Mapping[str, Any]]:
    for fact in facts:
        yield from (call.arguments for call in _calls(fact))
        edited = getattr(fact, "arguments", None)
        if edited is not None:
            yield edited


def _age(then: float, now: float) -> float:
    """As the memory counts it (K-54), rounding and all."""
    return now - then


def _times(fact: Fact) -> Iterable[float]:
    yield fact.at
    yield from (time for name in _TIMES if (time := getattr(fact, name, None)) is not None)
    for call in _calls(fact):
        if call.approval_timeout is not None:
            yield after(fact.at, call.approval_timeout)


def module(traces: Sequence[Trace]) -> str:
    """Return ``Recorded.tla``: these traces."""
    definitions = [f"T{number} == {trace.lines()}" for number, trace in enumerate(traces)]
    names = ", ".join(f"T{number}" for number in range(len(traces)))
    gone = ",\n".join(trace.gone() for trace in traces)
    return "\n".join(
        [
            "---- MODULE Recorded ----",
            "EXTENDS turnlock",
            *definitions,
            f"Traces == <<{names}>>",
            f"Gone == <<{gone}>>",
            "====",
            "",
        ]
    )


def _joined(parts: Iterable[str]) -> str:
    return "<<\n" + ",\n".join(parts) + ">>"


def _written(value: Value) -> str:
    if value is None:
        return NONE
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int):
        return str(min(value, MOST))
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list):
        return f"<<{', '.join(map(_written, value))}>>"
    return f"[{', '.join(f'{name} |-> {_written(part)}' for name, part in value.items())}]"
