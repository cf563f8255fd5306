"""The calls of a turn as a persistent sequence: after a change all other calls are shared.

A tree of width 16 over the calls in expected order. Each node knows what the calls below it wait
for, so the first that waits for something is found without looking at the others; a turn of 10,000
calls is four nodes deep. The index from ids to positions only ever grows, and is shared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias, overload

import attrs

from .call_view import CallView, Waits

_BITS: Final = 4
_WIDTH: Final = 1 << _BITS
_LAST: Final = _WIDTH - 1

_BIT: Final = {waits: 1 << place for place, waits in enumerate(Waits)}

_Node: TypeAlias = tuple[int, Any]
"""What is waited for below, as bits; and a call, or up to 16 nodes."""


def _node(parts: tuple[_Node, ...]) -> _Node:
    waits = 0
    for part in parts:
        waits |= part[0]
    return waits, parts


_EMPTY: Final = _node(())


@attrs.frozen(eq=False, repr=False)
class CallList(Sequence[CallView]):
    """Calls in expected order, also found by their ids and by what they wait for.

    It never changes: `with_call` and `with_added` return another that shares what is alike.
    """

    _root: _Node = _EMPTY
    _height: int = 1
    _size: int = 0
    _index: dict[str, int] = attrs.field(factory=dict[str, int])

    @classmethod
    def of(cls, calls: Iterable[CallView]) -> CallList:
        """Return a list of these calls; the position of each is its place."""
        level: list[_Node] = [(_BIT[call.waits], call) for call in calls]
        if not level:
            return cls()
        size, height = len(level), 0
        index = {node[1].invocation_id: place for place, node in enumerate(level)}
        while len(level) > 1 or not height:
            starts = range(0, len(level), _WIDTH)
            level = [_node(tuple(level[start : start + _WIDTH])) for start in starts]
            height += 1
        return cls(level[0], height, size, index)

    def __len__(self) -> int:
        """Return how many there are."""
        return self._size

    @overload
    def __getitem__(self, place: int) -> CallView: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[CallView]: ...
    def __getitem__(self, place: int | slice) -> CallView | Sequence[CallView]:
        """Return the call at a place in expected order."""
        if isinstance(place, slice):
            return [self[at] for at in range(*place.indices(self._size))]
        if place < 0:
            place += self._size
        if not 0 <= place < self._size:
            raise IndexError(place)
        node = self._root
        for level in range(self._height - 1, -1, -1):
            node = node[1][place >> level * _BITS & _LAST]
        found: CallView = node[1]
        return found

    def __iter__(self) -> Iterator[CallView]:
        """Iterate in expected order."""
        return _below(self._root, self._height, -1)

    def __eq__(self, other: object) -> bool:
        """Compare the calls, shared ones by identity first."""
        return self is other or (
            isinstance(other, CallList)
            and len(self) == len(other)
            and all(one is two or one == two for one, two in zip(self, other, strict=True))
        )

    def __hash__(self) -> int:
        """Hash what it is about."""
        return hash(tuple(self))

    def __repr__(self) -> str:
        """Show the calls."""
        return f"CallList({[*self]!r})"

    def get(self, invocation_id: str) -> CallView | None:
        """Return the call with this id, or None."""
        place = self._index.get(invocation_id, self._size)
        return self[place] if place < self._size else None

    def waiting_for(self, *waits: Waits) -> Iterator[CallView]:
        """Iterate, in expected order, over the calls that wait for one of these."""
        wanted = 0
        for one in waits:
            wanted |= _BIT[one]
        return _below(self._root, self._height, wanted)

    def any_waiting_for(self, *waits: Waits) -> bool:
        """Whether any call waits for one of these: the root knows."""
        return any(self._root[0] & _BIT[one] for one in waits)

    def first(self, *waits: Waits) -> CallView | None:
        """Return the first call in expected order that waits for one of these, or None."""
        return next(self.waiting_for(*waits), None)

    def with_call(self, call: CallView) -> CallList:
        """Return the list with this call at its position."""
        leaf = _BIT[call.waits], call
        root = _replaced(self._root, self._height, call.position, leaf)
        return CallList(root, self._height, self._size, self._index)

    def with_added(self, call: CallView) -> CallList:
        """Return the list with one call more, whose position is the next one."""
        root, height, index = self._root, self._height, self._index
        if self._size == 1 << height * _BITS:  # full: one level more on top
            root, height = _node((root,)), height + 1
        root = _replaced(root, height, self._size, (_BIT[call.waits], call))
        if len(index) > self._size:  # another list has grown from this one
            index = {one.invocation_id: one.position for one in self}
        index[call.invocation_id] = self._size
        return CallList(root, height, self._size + 1, index)


def _replaced(node: _Node, height: int, place: int, leaf: _Node) -> _Node:
    if not height:
        return leaf
    parts: tuple[_Node, ...] = node[1]
    slot = place >> (height - 1) * _BITS & _LAST
    below = parts[slot] if slot < len(parts) else _EMPTY
    return _node((*parts[:slot], _replaced(below, height - 1, place, leaf), *parts[slot + 1 :]))


def _below(node: _Node, height: int, wanted: int) -> Iterator[CallView]:
    if not height:
        yield node[1]
        return
    for part in node[1]:
        if part[0] & wanted:
            yield from _below(part, height - 1, wanted)
