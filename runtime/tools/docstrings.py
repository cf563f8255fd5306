"""What a docstring says to a model: of the tool, and of each parameter that it describes.

Google's, NumPy's and reST's ways to write it are read, by docstring-parser (extra `tools`), which
is imported where a docstring has such a part.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Collection, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final

import attrs

from ...models.errors import InvalidValue

NOTHING_SAID: Final[Mapping[str, str]] = MappingProxyType({})

_STYLES: Final = {
    "google": re.compile(r"^( *)(?:Args|Arguments|Parameters|Params): *\n+\1 +\S", re.MULTILINE),
    "numpydoc": re.compile(r"^ *(?:Parameters|Other Parameters) *\n *-{3,} *$", re.MULTILINE),
    "rest": re.compile(r"^ *:(?:param|parameter|arg|argument)\b[^:\n]*:", re.MULTILINE),
}
"""docstring-parser's modules, and how a part begins that one of them reads."""


@attrs.frozen
class Documented:
    """What a docstring says."""

    description: str
    """All of it but what it says of parameters."""
    parameters: Mapping[str, str] = NOTHING_SAID
    """What it says of each that it describes."""


def read_docstring(function: object, *, whole: bool) -> Documented:
    """Read the docstring of a function; `whole` leaves in it what it says of parameters.

    Raises `InvalidValue` where it describes one parameter twice, and where the extra is missing.
    """
    while isinstance(function, functools.partial):
        function = function.func
    text = inspect.getdoc(function) or ""
    style = next((name for name, begin in _STYLES.items() if begin.search(text)), None)
    if style is None or whole:
        return Documented(text)
    try:
        parser: Any = import_module(f"docstring_parser.{style}")
        common: Any = import_module("docstring_parser.common")
    except ImportError:
        raise InvalidValue(
            place="docstring",
            cause="describes parameters, and docstring-parser is missing",
            fix="pip install 'turnlock[tools]'",
        ) from None
    try:
        read: Any = parser.parse(text)
    except common.ParseError as error:
        raise InvalidValue(
            place="docstring",
            cause=f"describes parameters, and cannot be read ({error})",
            fix="write them as Google, NumPy or reST have it",
        ) from None
    described = [it for it in read.params if it.args[0] != "attribute"]
    said: dict[str, str] = {}
    for one in described:
        for name in one.arg_name.split(","):
            key = name.strip().lstrip("*")
            if key in said:
                raise InvalidValue(
                    place="docstring", cause=f"describes {key} twice", fix="describe it once"
                )
            said[key] = (one.description or "").strip()
    read.meta = [it for it in read.meta if it not in described]
    return Documented(parser.compose(read).strip() if said else text, said)


def check_names(described: Mapping[str, str], known: Collection[str]) -> None:
    """Refuse a description of a parameter that the function does not have."""
    for name in described:
        if name not in known:
            names = ", ".join(known) or "none: the function takes nothing"
            raise InvalidValue(
                place="docstring",
                cause=f"describes {name}, which is no parameter of the function",
                fix=f"name one of {names}",
            )
