"""Characters that come in halves: a surrogate pair may be split over two pieces (W-51).

Pieces are joined as they came, and made whole after; a half that is alone then is U+FFFD, which
notes can hold. So what streams is what would have come at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

import attrs

from .speaking import Again, CallBegan, CallEnded, CallText, Elsewhere, Said, Text, Thought

_HALF: Final = re.compile("[\ud800-\udfff]")
_HIGH: Final = re.compile("[\ud800-\udbff]\\Z")

_Piece: TypeAlias = Text | Thought | CallText | Elsewhere


def whole(text: str) -> str:
    """Return a text whose halves are joined, or replaced."""
    if _HALF.search(text) is None:
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def all_whole(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return a JSON value with all of its texts whole, its keys too."""
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        return {all_whole(key): all_whole(it) for key, it in fields.items()}
    if isinstance(value, list | tuple):
        return [all_whole(it) for it in cast("Sequence[Any]", value)]
    return value


class WholeTexts:
    """What a model says, in texts: the first half of a character waits for its other half."""

    def __init__(self) -> None:
        """Begin with nothing that waits."""
        self._waiting: dict[tuple[object, ...], _Piece] = {}
        """By what goes on with it."""

    def of(self, said: Iterable[Said]) -> Iterator[Said]:
        """Yield what can be said by now."""
        for it in said:
            if isinstance(it, _Piece):
                yield from self._piece(it)
                continue
            if isinstance(it, Again):
                self._waiting.clear()
            elif isinstance(it, CallEnded):
                yield from self.rest()
            yield (
                attrs.evolve(it, tool_name=whole(it.tool_name)) if isinstance(it, CallBegan) else it
            )

    def rest(self) -> Iterator[Said]:
        """Yield what has waited in vain."""
        for it in self._waiting.values():
            yield _with_text(it, whole(it.text))
        self._waiting.clear()

    def _piece(self, piece: _Piece) -> Iterator[Said]:
        goes_on = (type(piece), *attrs.astuple(_with_text(piece, "")))
        before = self._waiting.pop(goes_on, None)
        text = piece.text if before is None else before.text + piece.text
        if _HIGH.search(text) is not None:
            self._waiting[goes_on] = _with_text(piece, text[-1])
            text = text[:-1]
            if not text:
                return
        yield _with_text(piece, whole(text))


def _with_text(piece: _Piece, text: str) -> _Piece:
    if isinstance(piece, Elsewhere):
        return Elsewhere(whole(piece.tool_name), text)
    return attrs.evolve(piece, text=text)
