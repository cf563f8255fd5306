"""A world under another name: every id in it that says the old one says the new one (W-72).

Ids are rewritten where ids stand, and nowhere else: a text that looks like one is left as it is.
Who wants to know what an id was finds the world's old name in the entry that made it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import attrs

from ..models.ids import escape
from ..models.values import Json, freeze
from ..runtime.journal.contract import Entry
from ..runtime.journal.ledger import Noted, body_of
from .names import member_of, member_run

_ESCAPED: Final = frozenset({"request", "decision", "result", "doubt", "question", "reply", "stop"})
"""What begins the ids whose parts are as in K-7, the first of them a run."""
_ABOUT: Final = "misfit/"
"""Begins the id of a notice about what has the id behind it."""
_OF_RUN: Final = 5
"""Parts of the id of what a member publishes: those of its run, a word and a number."""
_WITHIN: Final = ("heard", "because")
"""The fields of notes that say what they were made of."""


@attrs.frozen
class Renaming:
    """From one name of a world to another; the same one changes nothing."""

    old: str
    new: str

    def log(self, name: str) -> str:
        """Return the name of the world's log, or of one of its chats'."""
        return self.new + name.removeprefix(self.old)

    def run(self, run_id: str) -> str:
        """Return the id of a member's run; that of another run stays."""
        member = member_of(run_id)
        if member is None or member.world != self.old:
            return run_id
        return member_run(self.new, member.chat, member.agent, member.nth)

    def entry_id(self, text: str) -> str:
        """Return the id of an entry; one that names no run of the world stays."""
        if text.startswith(_ABOUT):
            return _ABOUT + self.entry_id(text.removeprefix(_ABOUT))
        parts = text.split("/")
        if len(parts) == _OF_RUN:
            named = "/".join(parts[:3])
            if self.run(named) != named:
                return "/".join((self.run(named), *parts[3:]))
        if len(parts) > 1 and parts[0] in _ESCAPED:
            named = parts[1].replace("%2F", "/").replace("%25", "%")
            return "/".join((parts[0], escape(self.run(named)), *parts[2:]))
        return text

    def entry(self, entry: Entry) -> Entry:
        """Return an entry of a chat."""
        if self.old == self.new:
            return entry
        body = _with(entry.body, {"run": self.run, "to": self.entry_id, "reply_to": self.entry_id})
        return attrs.evolve(entry, entry_id=self.entry_id(entry.entry_id), body=body)

    def note(self, noted: Noted) -> Noted:
        """Return a note of a run."""
        if self.old == self.new:
            return noted
        ids = {"entry": self.entry_id}
        body = dict(cast("Mapping[str, Json]", _with(noted.note.body, ids)))
        for name in _WITHIN:
            if name in body:
                body[name] = _with(body[name], ids)
        return attrs.evolve(noted, note=attrs.evolve(noted.note, body=body_of(body)))


def _with(value: Json, ids: Mapping[str, Callable[[str], str]]) -> Json:
    """Return an object whose fields of these names hold other ids; anything else as it is."""
    if not isinstance(value, Mapping):
        return value
    changed: dict[str, Any] = dict(value)
    for name, renamed in ids.items():
        if isinstance(changed.get(name), str):
            changed[name] = renamed(changed[name])
    frozen: Json = freeze(changed, place="body")
    return frozen
