"""What is said just now and not kept, for all who follow a run: newest wins (F-8, S-75).

The text of an item waits here, once for all subscribers; each knows how far it has heard it. What
nobody heard in time gives way, and is counted. The message that ends the item supersedes it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

import attrs
import msgspec

from ..agent.conversation import PREFIX
from ..agent.speaking import CallBegan, CallText, Text, Thought
from ..agent.transients import ItemChunk, SpeechChunk, Transient
from ..runtime.journal.ledger import Domain, LedgerEntry
from . import shown
from .shown import Delta

Kind: TypeAlias = Literal["text", "thought", "call", "output"]

WAITING: Final = 256 * 1024
"""Bytes of one item that wait (S-75)."""
ITEMS: Final = 64
"""Items of a run that are spoken at once; the oldest gives way."""
ENDED: Final = 64
"""Ended items that are remembered, so that what comes late is let go."""


@attrs.frozen(kw_only=True)
class Piece:
    """Some more of an item: what is passed on (F-8)."""

    item: str
    kind: Kind
    text: str


def item_of(entry_id: str) -> tuple[str, str]:
    """Return the run and the item of an entry `RUN/said/N`: its message has the item as its id."""
    run_id, _, number = entry_id.rpartition(f"/{PREFIX}")
    return run_id, f"{PREFIX}{number}"


def piece_of(transient: Transient) -> Piece | None:
    """Return what a client is shown of what a model says; None: nothing.

    A call of an answer is an item of its own, `said/N/PLACE`; its name comes first.
    """
    if isinstance(transient, ItemChunk):
        return Piece(item=transient.item, kind=transient.of, text=transient.text)
    if not isinstance(transient, SpeechChunk):
        return None
    said, item = transient.said, item_of(transient.entry_id)[1]
    if isinstance(said, Text | Thought):
        kind: Kind = "text" if isinstance(said, Text) else "thought"
        return Piece(item=item, kind=kind, text=said.text)
    if isinstance(said, CallBegan):
        return Piece(item=f"{item}/{said.place}", kind="call", text=f"{said.tool_name} ")
    if isinstance(said, CallText):
        return Piece(item=f"{item}/{said.place}", kind="call", text=said.text)
    return Piece(item=item, kind="call", text=f"{said.tool_name} {said.text}")


class _Spoken:
    """The text of one item: what is said from `base` to `end`, in bytes of all that was."""

    def __init__(self, run_id: str, item: str, kind: Kind) -> None:
        self.run_id: Final = run_id
        self.item: Final = item
        self.kind: Final = kind
        self.base = 0
        self.end = 0
        self._pieces: deque[tuple[int, str]] = deque()
        self._made: tuple[int, int, Delta] | None = None

    def add(self, text: str) -> None:
        """Take in more; beyond the bound the oldest gives way."""
        size = len(text.encode("utf-8", "surrogatepass"))
        if size > WAITING:
            text = text.encode("utf-8", "replace")[-WAITING:].decode("utf-8", "ignore")
            self.end += size - len(text.encode())
            size = len(text.encode())
        self._pieces.append((self.end, text))
        self.end += size
        while self.end - self._pieces[0][0] > WAITING:
            self._pieces.popleft()
        self.base = self._pieces[0][0]

    def void(self) -> None:
        """Let go what waits."""
        self._pieces.clear()
        self.base = self.end

    def since(self, heard: int) -> Delta:
        """Return what was said since, as one; made once for all who heard as much."""
        made = self._made
        if made is None or made[:2] != (heard, self.end):
            text = "".join(reversed([*self._after(heard)]))
            dropped = max(0, self.base - heard)
            told = shown.delta(self.run_id, self.item, self.kind, text, dropped)
            made = self._made = (heard, self.end, told)
        return made[2]

    def _after(self, heard: int) -> Iterator[str]:
        """Return what was said since, the last piece first: mostly it is that alone."""
        for at, text in reversed(self._pieces):
            if at < heard:
                return
            yield text


class Deltas:
    """What is being said in one run."""

    def __init__(self, run_id: str) -> None:
        """Begin in silence."""
        self.run_id: Final = run_id
        self.said = 0
        """Grows with each piece."""
        self._spoken: dict[tuple[str, str], _Spoken] = {}
        self._ended: deque[str] = deque(maxlen=ENDED)

    def add(self, piece: Piece) -> bool:
        """Take in a piece; False where its item has ended."""
        if piece.item in self._ended or not piece.text:
            return False
        key = piece.item, piece.kind
        spoken = self._spoken.get(key)
        if spoken is None:
            if len(self._spoken) >= ITEMS:
                del self._spoken[next(iter(self._spoken))]
            spoken = self._spoken[key] = _Spoken(self.run_id, piece.item, piece.kind)
        spoken.add(piece.text)
        self.said += 1
        return True

    def void(self, item: str) -> None:
        """Let go what nobody heard yet of a message that is begun anew."""
        for key, spoken in self._spoken.items():
            if key[0] == item or key[0].rpartition("/")[0] == item:
                spoken.void()

    def supersede(self, entry: LedgerEntry) -> None:
        """Drop what an entry ends: a message its text, an outcome the output of its call."""
        if not self._spoken:
            return
        for key, spoken in tuple(self._spoken.items()):
            if _ends(entry, spoken):
                del self._spoken[key]
                self._ended.append(spoken.item)

    def heard(self) -> dict[tuple[str, str], int]:
        """Return how far each item is said: who begins now hears what comes after."""
        return {key: spoken.end for key, spoken in self._spoken.items()}

    def since(self, heard: dict[tuple[str, str], int]) -> list[Delta]:
        """Return what was not heard, an item as one, and note in `heard` that it is."""
        told: list[Delta] = []
        for key, spoken in self._spoken.items():
            before = heard.get(key, 0)
            if before < spoken.end:
                told.append(spoken.since(before))
                heard[key] = spoken.end
        for key in heard.keys() - self._spoken.keys():
            del heard[key]
        return told


_OUTCOMES: Final = (b'"type":"TOOL_EXECUTION_SUCCEEDED"', b'"type":"TOOL_EXECUTION_FAILED"')


def _ends(entry: LedgerEntry, spoken: _Spoken) -> bool:
    """Whether an entry says all of an item: a message of its id, the outcome of its call."""
    if entry.domain is None:
        item = b'"invocation_id":' + msgspec.json.encode(spoken.item)
        is_outcome = any(it in entry.content for it in _OUTCOMES)
        return spoken.kind == "output" and is_outcome and item in entry.content
    if entry.domain is not Domain.MESSAGE:
        return False
    message = spoken.item.rpartition("/")[0] if spoken.kind == "call" else spoken.item
    names = {message, spoken.item}
    return any(b'"id":' + msgspec.json.encode(it) in entry.content for it in names)
