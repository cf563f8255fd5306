"""Who is spoken to, who answers, and to whom an answer goes: functions of the text alone (W-20).

A name stands after `@`, and is compared without case: of ASCII letters only, because all ids are of
these, and what merely looks like one, or is made one by a conversion of case, is another name. So
`@İ` and a Kelvin sign are no member's name; they are somebody's, all the same.

A name ends where its letters, digits, `_` and `-` end, and the marks that join these. `@` inside a
word, in an address of mail or of the web, and before what goes on like one (``@bob.example``,
``@bob@host``) begins no name.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from .entries import ChatEntry, Message, Role, Unknown
from .names import HUMAN, is_id

_WEB: Final = re.compile(r"://\S*")
"""An address of the web, behind its scheme: searching for that, too, would take a square's time."""
_BETWEEN: Final = re.compile(r"[\s,;:&]*")
"""What may stand between several names at a paragraph's beginning, and after the last."""
_PERIOD: Final = re.compile(r"[.!?]*\s*")
"""What goes with the names that are taken away, where nothing is left before it."""
_TAG: Final = re.compile(r"<world>(?P<inside>[^<>]*)</world>", re.IGNORECASE | re.ASCII)
_ENDS: Final = frozenset({"stop", "done", "pass"})
_TO: Final = re.compile(r"to\s*:(?P<names>.*)", re.IGNORECASE | re.ASCII | re.DOTALL)
_JOINT: Final = re.compile(r"[\s,;]+")
ROUNDS: Final = 100
"""How often what was nested in tags and addresses is looked at again; the rest stays as it is."""
_MARKS: Final = frozenset({"Mn", "Mc", "Me", "Cf"})


def answers(entry: ChatEntry | Unknown, agent: str) -> bool:
    """Say whether a member answers an entry: the table of section 4, the first row that fits.

    `agent` is the member's agent. Nothing else counts, so it is the same at every reading (W-20).
    """
    if not isinstance(entry, Message) or _is_own(entry, agent) or entry.role is Role.SYSTEM:
        return False
    if entry.role is Role.WORLD:
        return True
    named = addressed(entry.text)
    if agent in named:
        return True
    if named or entry.role is Role.AGENT:
        return False
    return not mentioned(entry.text)


def _is_own(entry: Message, agent: str) -> bool:
    return entry.role is Role.AGENT and entry.sender == agent


def addressed(text: str) -> tuple[str, ...]:
    """Return the names that paragraphs of a text begin with, each once, in order."""
    return _once(it.name for line in text.splitlines() for it in _leading(line))


def mentioned(text: str) -> tuple[str, ...]:
    """Return the names after `@` anywhere in a text, each once, in order."""
    return _once(name for line in text.splitlines() for name in _names_in(_WEB.sub(_blank, line)))


def published(text: str, agent: str, sender: str | None, *, auto_reply: bool = True) -> str:
    """Return an agent's answer as it is published (W-21).

    `sender` is the agent whose message it answers, None where no agent asked. The outcome may be
    empty; then there is nothing to publish. The note keeps what the model said.
    """
    said, orders = _taken(text, agent)
    if any(order.lower() in _ENDS for order in orders):
        return _taken(said, None)[0]
    if not said:
        return said
    named = addressed(said)
    to = _once(name for order in orders for name in _recipients(order, agent))
    if to:
        known = {*named}
        others = [f"@{name} " for name in to if name not in known]
        return "".join(others) + said
    asked = sender is not None and sender != agent
    if not asked or named or not auto_reply or HUMAN in mentioned(said):
        return said
    return f"@{sender} {said}"


class _Found(NamedTuple):
    """A name in a line: where its `@` stands, and where what may follow it ends."""

    name: str
    at: int
    end: int


def _leading(line: str) -> Iterator[_Found]:
    """Yield the names that a line begins with."""
    at = len(line) - len(line.lstrip())
    while (found := _name_at(line, at)) is not None:
        past = _past(_BETWEEN, line, found.end)
        yield found._replace(end=past)
        at = past


def _names_in(line: str) -> Iterator[str]:
    at = line.find("@")
    while at >= 0:
        found = _name_at(line, at)
        if found is not None:
            yield found.name
        at = line.find("@", at + 1)


def _name_at(line: str, at: int) -> _Found | None:
    """Return the name whose `@` stands here."""
    if not line.startswith("@", at) or (at and (line[at - 1].isalnum() or line[at - 1] in "_@")):
        return None
    end = at + 1
    while end < len(line) and (_is_of_word(line[end]) or _is_mark(line[end])):
        end += 1
    while unicodedata.category(line[end - 1]) == "Cf":  # only says which way the text runs, say
        end -= 1
    name = line[at + 1 : end]
    if not any(map(str.isalnum, name)) or _goes_on(line, end):
        return None
    return _Found(name.lower() if name.isascii() else name, at, end)


def _goes_on(line: str, end: int) -> bool:
    """Whether what follows makes an address of a name."""
    after = line[end : end + 2]
    return after[:1] == "@" or (len(after) > 1 and after[0] == "." and after[1].isalnum())


def _is_of_word(character: str) -> bool:
    return character.isalnum() or character in "_-"


def _is_mark(character: str) -> bool:
    return not character.isascii() and unicodedata.category(character) in _MARKS


def _past(what: re.Pattern[str], line: str, at: int) -> int:
    found = what.match(line, at)
    return at if found is None else found.end()


def _blank(found: re.Match[str]) -> str:
    return " " * len(found.group())


def _once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _taken(text: str, agent: str | None) -> tuple[str, list[str]]:
    """Return a text without tags and without words to this agent (None: to anybody).

    Also what the tags say. Taking something away may make a tag, or a paragraph's beginning, of
    what stood around it: until nothing is left to take.
    """
    orders: list[str] = []
    for _ in range(ROUNDS):
        left, found = _without_tags(text)
        orders += found
        left = "".join(_without_names(line, agent) for line in left.splitlines(keepends=True))
        left = left.strip()
        begins = _past(_BETWEEN, left, 0)
        if left.startswith("@", begins):  # an address that is put before it would join what follows
            left = left[begins:]
        if left == text:
            break
        text = left
    return text, orders


def _without_tags(text: str) -> tuple[str, list[str]]:
    orders: list[str] = []

    def take(found: re.Match[str]) -> str:
        inside = found["inside"].strip()
        if inside.lower() not in _ENDS and not _TO.fullmatch(inside):
            return found.group()
        orders.append(inside)
        return ""

    return _TAG.sub(take, text), orders


def _without_names(line: str, agent: str | None) -> str:
    """Return a line, with its end, without this agent among the names it begins with."""
    text = "".join(line.splitlines())
    kept, at, took = "", 0, False
    for found in _leading(text):
        if agent is None or found.name == agent:
            took = True
        else:
            kept += text[found.at : found.end]
        at = found.end
    if not took:
        return line
    if not kept:
        at = _past(_PERIOD, text, at)
    return kept + text[at:] + line[len(text) :]


def _recipients(order: str, agent: str) -> Iterator[str]:
    """Yield whom a tag addresses, but for the agent itself."""
    found = _TO.fullmatch(order)
    for named in _JOINT.split(found["names"]) if found else ():
        name = named.removeprefix("@")
        if name.isascii() and is_id(name.lower()) and name.lower() != agent:
            yield name.lower()
