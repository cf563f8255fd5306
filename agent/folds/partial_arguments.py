"""Arguments of a call that come value by value, each with its JSON path (W-53), as Google sends."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, cast

from ...models.values import DEPTH

_VALUES: Final = ("stringValue", "numberValue", "boolValue", "nullValue")
_STEP: Final = re.compile(
    r"\.(?P<name>[^.\[\]]+)"
    r"|\[(?P<index>\d{1,9})\]"
    r"""|\[(?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\]"""
)


class _Pieces(list[str]):
    """A text that grows, in its pieces."""


class PartialArguments:
    """The arguments of one call, put together."""

    def __init__(self) -> None:
        """Begin without any."""
        self._values: dict[str, Any] = {}
        self._growing: dict[str, _Pieces] = {}
        """The texts that go on, by path."""

    def update(self, arguments: Mapping[str, Any]) -> None:
        """Take arguments that are whole."""
        self._values.update(arguments)

    def add(self, partial: Mapping[str, Any]) -> None:
        """Take a value, or some more of a text. Raises LookupError, TypeError or ValueError."""
        path = partial["jsonPath"]
        kind = next((it for it in _VALUES if it in partial), None)
        if kind is None:  # nothing of it yet
            return
        value: Any = None if kind == "nullValue" else partial[kind]
        if kind == "stringValue":
            value = self._growing.pop(path, None)
            if value is None:
                value = _Pieces()
                self._put(path, value)
            value.append(partial[kind])
            if partial.get("willContinue"):
                self._growing[path] = value
            return
        if kind == "numberValue" and isinstance(value, float) and value.is_integer():
            value = int(value)  # the provider has doubles alone; a tool may take an integer
        self._put(path, value)

    def whole(self) -> dict[str, Any]:
        """Return them, as JSON. Raises TypeError for a text of something else."""
        joined: dict[str, Any] = _joined(self._values)
        return joined

    def _put(self, path: str, value: Any) -> None:  # noqa: ANN401 - any JSON
        """Put a value where a path leads, and what it leads through, too."""
        holder: Any = self._values
        for step, after in pairwise((*_steps(path), None)):
            made: Any = value if after is None else [] if isinstance(after, int) else {}
            kind = cast("object", type(holder))
            if kind is not (list if isinstance(step, int) else dict):
                raise ValueError(f"{path} leads through something else")
            if kind is list and step == len(holder):
                holder.append(made)
            elif after is None or (kind is dict and step not in holder):
                holder[step] = made  # an IndexError, if it is beyond the end
            holder = holder[step]


def _steps(path: str) -> Iterator[str | int]:
    """Yield the keys and indexes of a path. Raises ValueError for one that is none, or too long."""
    at, steps = 1, 0
    while path[:1] == "$" and at < len(path) and (found := _STEP.match(path, at)) and steps < DEPTH:
        at, steps = found.end(), steps + 1
        if (name := found["name"]) is not None:
            yield name
        elif (index := found["index"]) is not None:
            yield int(index)
        else:
            yield _unquoted(found["quoted"])
    if at != len(path) or not steps:
        raise ValueError(f"{path!r} is no path to an argument")


def _unquoted(text: str) -> str:
    if text[0] == "'":
        text = '"' + text[1:-1].replace("\\'", "'").replace('"', '\\"') + '"'
    return cast("str", json.loads(text))


def _joined(value: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, _Pieces):
        return "".join(value)
    if isinstance(value, dict):
        return {key: _joined(it) for key, it in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list):
        return [_joined(it) for it in cast("Sequence[Any]", value)]
    return value
