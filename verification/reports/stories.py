"""A finding as a story: its steps in words, the answers on the way, and where the last differs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from typing import Final, cast

import attrs

from ...views import phrases
from ...views.delivery_phrases import DELIVERED, delivered
from ...views.wording import LONG, seconds
from ..findings import NO_ANSWER, UNSTEADY, Finding, Raw
from ..oracle.oracle import Oracle
from ..rulebook import ABSENT, Difference, differences, is_receipt

OWN_COMMAND: Final = "turnlock stdio"
"""What answers the wire's lines where there is no other system under test."""

BY_PART: Final = 2
BY_FIELD: Final = 3
"""How deep JSON is written line by line: a line for each fact and effect, or for each field."""


@attrs.frozen(kw_only=True)
class Step:
    """One delivery: who sends it, when, in words, and the right receipt where it is known."""

    number: int
    sender: str
    at: str
    words: str
    delivery: Raw
    receipt: Raw | None


@attrs.frozen
class Line:
    """One line of JSON text, the path of the value that it shows, and whether it shows it all."""

    text: str
    path: str
    whole: bool


def steps(finding: Finding) -> tuple[Step, ...]:
    """Tell the script step by step, with the oracle's answers where it can be played."""
    receipts = list(_right_receipts(finding))
    return tuple(
        Step(
            number=place + 1,
            sender=sender(delivery),
            at=seconds(delivery["now"]) if "now" in delivery else "",
            words=told(delivery),
            delivery=delivery,
            receipt=receipts[place] if place < len(receipts) else None,
        )
        for place, delivery in enumerate(finding.script)
    )


def differing(finding: Finding) -> tuple[Difference, ...]:
    """Return where the answer differs, the worst first, if a receipt was expected and one came."""
    if not is_receipt(finding.expected) or finding.rule == NO_ANSWER:
        return ()
    return differences(cast("Raw", finding.expected), finding.got)


def labelled(finding: Finding) -> tuple[tuple[str, object], ...]:
    """Return both answers to the last step, each with what it is to be called."""
    one, other = ("first", "then") if finding.rule == UNSTEADY else ("expected", "got")
    return (one, finding.expected), (other, finding.got)


def pointed(found: Difference) -> str:
    """Say where it differs: the path, what was expected there, what was got."""
    there = [
        "nothing" if value is ABSENT else compact(value) for value in (found.expected, found.got)
    ]
    where = found.path or "the answer"
    if found.at and found.at != found.path:
        where += f" ({found.at} of the answer)"
    by = f" – by decision ({found.decided}, docs/wire.md)" if found.decided else ""
    return f"{where}: expected {there[0]}, got {there[1]}{by}"


def json_lines(value: object, *, depth: int) -> list[Line]:
    """Write JSON line by line down to a depth: `BY_PART` or `BY_FIELD`."""
    return list(_lines(value, depth, path="", before=""))


def marked(line: Line, found: Sequence[Difference], *, got: bool) -> bool:
    """Whether a line of one of the answers shows what differs, or a part of it, or holds it."""
    if not line.whole:
        return False
    places = (_place(one, got=got) for one in found)
    return any(it and (_within(line.path, it) or _within(it, line.path)) for it in places)


def _place(found: Difference, *, got: bool) -> str:
    """Return where it stands in one of the answers; nowhere, if it is not there."""
    if found.missing if got else found.too_many:
        return ""
    return found.at or found.path if got else found.path


def request_line(finding: Finding) -> str:
    """Return the finding as one request of the wire (section 12): a line of JSON."""
    request = {"id": 1, "run": finding.run, "scripts": [finding.script]}
    return json.dumps(request, separators=(",", ":"))


def pasted(finding: Finding, command: str) -> tuple[str, ...]:
    """Return lines for a shell: what shows the answers of a command, and what judges them again.

    Nothing where no receipt shows what is wrong: such a finding is about a state.
    """
    if not (differing(finding) or finding.rule == NO_ANSWER or finding.got is None):
        return ()
    line = f"printf '%s\\n' {shlex.quote(request_line(finding))}"
    ours = command == OWN_COMMAND
    again = "turnlock verify --replay -" + ("" if ours else f" --sut {shlex.quote(command)}")
    return (f"{line} | {command}", f"{line} | {again}")


def _within(inner: str, outer: str) -> bool:
    return inner == outer or inner.startswith((f"{outer}.", f"{outer}["))


def _lines(value: object, depth: int, *, path: str, before: str, comma: str = "") -> Iterator[Line]:
    """Write a value; `before` is the indent and the name that stand before it."""
    indent = before[: len(before) - len(before.lstrip(" "))]
    parts = _parts(value, path) if depth else []
    if not parts:
        yield Line(f"{before}{compact(value)}{comma}", path, whole=True)
        return
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    yield Line(f"{before}{opening}", path, whole=False)
    for place, (key, at, part) in enumerate(parts):
        label = f"  {indent}{compact(key)}: " if key else f"  {indent}"
        more = "," if place + 1 < len(parts) else ""
        yield from _lines(part, depth - 1, path=at, before=label, comma=more)
    yield Line(f"{indent}{closing}{comma}", path, whole=False)


def _parts(value: object, path: str) -> list[tuple[str, str, object]]:
    """Return what a JSON object or array is made of: name (or none), path, value."""
    if isinstance(value, dict):
        fields = cast("Raw", value)
        return [(name, f"{path}.{name}".lstrip("."), part) for name, part in fields.items()]
    if isinstance(value, list):
        items = cast("list[object]", value)
        return [("", f"{path}[{place}]", part) for place, part in enumerate(items)]
    return []


def _right_receipts(finding: Finding) -> Iterator[Raw]:
    """Play the script on the oracle as far as it goes: not every finding is about a script."""
    if "run_id" not in finding.run:
        return
    oracle = Oracle(finding.run)
    for delivery in finding.script:
        if not is_delivery(delivery):
            return
        yield oracle.receive(delivery)


# ------------------------------------------------------------------------------
# Deliveries and receipts of the wire in plain words, and who sends what.


_SENDER: Final = {
    "decide": "person",
    "revoke": "person",
    "resolve": "person",
    "claim": "executor",
    "renew": "executor",
    "report": "executor",
    "tick": "clock",
}


def sender(delivery: Raw) -> str:
    """Return who sends such a delivery."""
    return _SENDER.get(str(delivery.get("type")), "host")


def is_delivery(step: Raw) -> bool:
    """Whether a step is a delivery of the wire: histories and logs hold other things, too."""
    kind = step.get("type")
    return kind in DELIVERED - {"digest"} and ("now" in step or kind == "recover")


def told(delivery: Raw) -> str:
    """Tell one delivery in a sentence without its time; one that has no words is shown as JSON."""
    return delivered(delivery, LONG)


def answered(receipt: object) -> str:
    """Tell a receipt: the verdict, the facts, the effects; what is no receipt is shown as JSON."""
    if not is_receipt(receipt):
        return "no receipt" if receipt is None else compact(receipt)
    return phrases.answered(cast("Raw", receipt))


def compact(value: object) -> str:
    """Return JSON text; what is no JSON is shown as Python shows it."""
    return LONG.value(value)


def printable(text: str) -> str:
    r"""Escape what steers terminals or may not stand in XML: control characters, surrogates.

    Names come from the system under test, and may be hostile. Line ends and tabs stay.
    """
    return "".join(
        character
        if character.isprintable() or character in "\n\t "
        else character.encode("unicode_escape", "surrogatepass").decode("ascii")
        for character in text
    )
