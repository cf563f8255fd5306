"""JSON text, read strictly: nothing guessed, nothing dropped, every fault with its place.

The standard parser accepts NaN and lets the last of two equal keys win. Here both are refused.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any, Final, NoReturn, TypeAlias, cast

from .errors import InvalidValue, shown
from .values import DEPTH

_STRING: Final = r'"(?:[^"\\]++|\\.)*+"'
_CONSTANTS: Final = re.compile(_STRING + r"|(NaN|-?Infinity)")
_BRACKETS: Final = re.compile(_STRING + r"|([\[{])|([\]}])")


def parse(text: str | bytes) -> Any:  # noqa: ANN401 - any JSON
    """Return the JSON value of a text, or raise `InvalidValue` at its place.

    Refused with line and column: what is no JSON or no UTF-8, NaN and infinities, nesting beyond
    the interpreter's depth. Refused with the path of the field: an object with one key twice,
    integers beyond the interpreter's digits. A number such as 1e999 is JSON and becomes infinite:
    the field that it stands in refuses it.
    """
    value, fault = examine(text)
    if fault is not None:
        raise fault
    return value


def examine(text: str | bytes) -> tuple[Any, InvalidValue | None]:
    """Return the value, and what is wrong with a part of it that can still be told from the rest.

    So an answer can name the request even if one of its fields is refused. What is no JSON at all
    raises, as with `parse`.
    """
    if isinstance(text, bytes):
        text = _decoded(text)
    try:
        try:
            return _DECODER.decode(text), None
        except json.JSONDecodeError:
            raise
        except ValueError:  # a key that stands twice, or an integer that is too long
            value = _MARKING_DECODER.decode(text)
            return value, _first_fault(value)
    except json.JSONDecodeError as error:
        cause, fix, at = f"is no JSON ({error.msg})", "send one valid JSON value", error.pos
    except _ConstantError as error:
        cause, fix = f"{error} is no JSON number", "send a finite number or null"
        at = next(found.start() for found in _CONSTANTS.finditer(text) if found[1])
    except RecursionError:
        cause, fix, at = "is nested too deeply", "send it flatter", _too_deep(text)
    raise InvalidValue(place=_line_and_column(text, at), cause=cause, fix=fix)


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode()
        raise InvalidValue(
            place=_line_and_column(before, len(before)),
            cause=f"is no UTF-8 (byte {raw[error.start]:#04x})",
            fix="encode the text as UTF-8",
        ) from None


def _line_and_column(text: str, at: int) -> str:
    line = text.count("\n", 0, at) + 1
    return f"line {line} column {at - text.rfind(chr(10), 0, at)}"


def _too_deep(text: str) -> int:
    """Return where the nesting first goes deeper than a value may be."""
    depth = 0
    for found in _BRACKETS.finditer(text):
        depth += bool(found[1]) - bool(found[2])
        if depth > DEPTH:
            return found.start()
    return 0


class _ConstantError(Exception):
    """NaN or an infinity, in words; the decoder does not say where."""


class _Repeated(dict[str, Any]):
    """An object in which `key` stands twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        counts = Counter(key for key, _ in pairs)
        self.key = next(key for key, _ in pairs if counts[key] > 1)


class _Long:
    """An integer of more digits than the interpreter converts."""

    def __init__(self, digits: int) -> None:
        self.digits = digits


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError
    return value


def _marking_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    return _Repeated(pairs) if len(value) < len(pairs) else value


def _marking_integer(text: str) -> int | _Long:
    try:
        return int(text)
    except ValueError:
        return _Long(len(text.lstrip("-")))


def _constant(name: str) -> NoReturn:
    raise _ConstantError(name)


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant)
_MARKING_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_marking_object, parse_int=_marking_integer, parse_constant=_constant
)

_Node: TypeAlias = "tuple[str, object, _Node | None]"
"""The last step of a path, what it leads to, and the node that it starts from."""


def _first_fault(root: object) -> InvalidValue:
    """Return what is wrong with the first marked part of a value, in reading order: it has one."""
    open_nodes: list[_Node] = [("", root, None)]
    while True:
        node = open_nodes.pop()
        value = node[1]
        if isinstance(value, _Long):
            cause = f"is an integer of {value.digits} digits"
            return InvalidValue(place=_path(node), cause=cause, fix="send it as text")
        if isinstance(value, _Repeated):
            cause = f"the key {shown(value.key)} stands twice"
            place = _path((f".{value.key}", None, node))
            return InvalidValue(place=place, cause=cause, fix="send each key once")
        inside: list[_Node] = []
        if isinstance(value, dict):
            fields = cast("dict[str, object]", value)
            inside = [(f".{key}", item, node) for key, item in fields.items()]
        elif isinstance(value, list):
            items = cast("list[object]", value)
            inside = [(f"[{index}]", item, node) for index, item in enumerate(items)]
        open_nodes += reversed(inside)


def _path(node: _Node | None) -> str:
    steps: list[str] = []
    while node is not None:
        steps.append(node[0])
        node = node[2]
    return "".join(reversed(steps)).removeprefix(".")
