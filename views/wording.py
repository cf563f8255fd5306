"""How phrases are written: short ones for an arrow or a column, long ones for a sentence.

Recorded values may be anything and of any length: each is made harmless, and cut where the form is
short. A wording decides how calls are called, how values are shown and how parts are joined; what
is said stands in `phrases`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

import attrs

from ..models.errors import shown
from ..models.safe_text import harmless
from ..models.sealed import HIDDEN, is_sealed, shown_text
from ..models.workers import opaque

Raw: TypeAlias = Mapping[str, Any]
"""A delivery, a call or a fact as the wire writes it."""

NAME: Final = 40
"""Characters of a name from outside in the short form: a tool, a person, a worker, a turn."""
VALUE: Final = 60
"""Characters of a value in the short form, as JSON."""
QUOTED: Final = 280
"""Characters of an error or a reason in the short form: three lines of a note hold so many."""
LISTED: Final = 6
"""Calls that an opening names in the short form; the others are counted."""
PART: Final = " · "
"""Between the parts of a short phrase."""

_SMALL: Final = 10**9
_encoded: Final = json.JSONEncoder(ensure_ascii=False).encode


@attrs.frozen
class Part:
    """One part of a phrase; `joint` stands before it in the long form, which alone may have it."""

    text: str
    joint: str = ", "
    only_long: bool = False


Parts: TypeAlias = Iterable[Part | str]
"""What is told: the first says what, the others how. Empty ones are left out."""


class Wording:
    """The short form: calls by their ids, values cut, parts with dots between them.

    Whoever knows better names for calls and workers derives from it.
    """

    long: bool = False

    def call(self, turn_id: str | None, invocation_id: str) -> str:  # noqa: ARG002 - see LongWording
        """Name a call."""
        return self.plain(invocation_id)

    def of_call(self, call: Raw) -> str:
        """Name a call that is asked for, as the wire writes it."""
        return f"{self.plain(call.get('tool_name'))} {self.plain(call.get('invocation_id'))}"

    def worker(self, worker: object) -> str:
        """Name an executor, never by its host or process (F-6)."""
        return self.plain(opaque(str(worker)))

    def plain(self, text: object) -> str:
        """Return a name from outside."""
        return harmless(str(text), limit=NAME)

    def quoted(self, text: object) -> str:
        """Return an error or a reason in quotation marks."""
        return f"“{harmless(shown_text(str(text)), limit=QUOTED)}”"

    def value(self, value: object) -> str:
        """Return a value as JSON."""
        return value_text(value, limit=VALUE)

    def error(self, error: object) -> str:
        """Return an error as JSON, as much of it as of a quoted one."""
        return value_text(error, limit=QUOTED)

    def listed(self, calls: list[Raw]) -> str:
        """Name the calls that a turn is opened with, each with whether it is to be approved."""
        named = ", ".join(
            self.of_call(call) + (" (to be approved)" if call.get("requires_approval") else "")
            for call in calls[:LISTED]
        )
        more = f"and {len(calls) - LISTED:,} more" if len(calls) > LISTED else ""
        return " ".join(filter(None, (named, more)))

    def joined(self, parts: Parts) -> str:
        """Join what there is."""
        texts = (part if isinstance(part, str) else _short(part) for part in parts)
        return PART.join(filter(None, texts))


class LongWording(Wording):
    """The long form: calls with their turns, values whole, a sentence with commas."""

    long = True

    def call(self, turn_id: str | None, invocation_id: str) -> str:
        """Name a call and its turn, and say that no turn was named where none was."""
        place = "no turn named" if turn_id is None else f"turn {self.plain(turn_id)}"
        return f"{self.plain(invocation_id)} ({place})"

    def of_call(self, call: Raw) -> str:
        """Tell a call that is asked for, with its arguments."""
        arguments = self.value(call["arguments"]) if call.get("arguments") else ""
        name = f"{self.plain(call.get('invocation_id'))}: {self.plain(call.get('tool_name'))}"
        if not call.get("requires_approval"):
            return f"{name}({arguments})"
        timeout = call.get("approval_timeout")
        within = "" if timeout is None else f" within {seconds(timeout)}"
        return f"{name}({arguments}), to be approved{within}"

    def plain(self, text: object) -> str:
        """Return a name from outside, whole."""
        return str(text)

    def quoted(self, text: object) -> str:
        """Return an error or a reason in quotation marks, whole."""
        return f"“{text}”"

    def value(self, value: object) -> str:
        """Return a value as JSON, whole; what is no JSON is shown as Python shows it."""
        try:
            return _encoded(value)
        except (TypeError, ValueError, RecursionError):
            return repr(value)

    def error(self, error: object) -> str:
        """Return an error as JSON, whole."""
        return self.value(error)

    def listed(self, calls: list[Raw]) -> str:
        """Tell the calls that a turn is opened with."""
        return "; ".join(map(self.of_call, calls)) or "no call"

    def joined(self, parts: Parts) -> str:
        """Join what there is to a sentence."""
        told = [part if isinstance(part, Part) else Part(part) for part in parts]
        there = [part for part in told if part.text]
        return "".join(part.joint * bool(place) + part.text for place, part in enumerate(there))


def _short(part: Part) -> str:
    return "" if part.only_long else part.text


SHORT: Final = Wording()
LONG: Final = LongWording()


def value_text(value: object, *, limit: int = VALUE) -> str:
    """Return a value as JSON, harmless and cut; what is no JSON is shown as Python shows it."""
    if type(value) is int and abs(value) < _SMALL:
        return str(value)  # most are attempts: the encoder would cost what all else does
    if is_sealed(value):
        return HIDDEN
    if isinstance(value, str):
        value = shown_text(value)[: limit + 1]
    try:
        return harmless(_encoded(value), limit=limit)
    except (TypeError, ValueError, RecursionError):
        return harmless(shown(value), limit=limit)


def seconds(value: object) -> str:
    """Say a span in seconds, as short as it can be told."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:.6g} s"
    return value_text(value)


def counted(number: int, what: str, plural: str | None = None) -> str:
    """Say how many, in the plural where that is right; it ends in s unless it is given."""
    return f"{number:,} {what if number == 1 else plural or what + 's'}"
