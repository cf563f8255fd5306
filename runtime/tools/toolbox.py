"""The tools of one agent, by name; those of a user's Python file, which is run once.

Whatever is wrong with the file is told with file and line.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, Final, TypeAlias

from ...models.errors import InvalidValue
from .errors import BadToolFile, said
from .policy import Policy
from .sealing import Cipher, Seals
from .tool import Tool, tool


class Toolbox(Mapping[str, Tool]):
    """Tools by name, in the order given; it never changes."""

    def __init__(self, tools: Iterable[Tool] = (), *, cipher: Cipher | None = None) -> None:
        """Hold these tools, and the cipher for those that keep something sealed.

        Raises `InvalidValue` for two of one name, and for a tool that lacks the cipher.
        """
        self._tools: dict[str, Tool] = {}
        for it in tools:
            if it.is_method:
                raise InvalidValue(
                    place=f"tool {it.name}",
                    cause="is a method without its object",
                    fix=f"give that of an object: shop.{it.call.__name__}",
                )
            if self._tools.setdefault(it.name, it) is not it:
                raise InvalidValue(
                    place=f"tool {it.name}",
                    cause="is there twice, with two functions",
                    fix="give one of them another name=",
                )

        self.policies: Final[Mapping[str, Policy]] = MappingProxyType(
            {name: it.policy for name, it in self._tools.items()}
        )
        """What each tool declares, by its name."""
        self.cipher: Final = cipher
        self.seals: Final = Seals(self.policies, cipher)
        """Seals what these tools keep sealed, and opens it."""

    @classmethod
    def of(cls, *tools: Tool | Callable[..., Any], cipher: Cipher | None = None) -> Toolbox:
        """Hold these tools; plain functions become tools with the default policy."""
        return cls((it if isinstance(it, Tool) else tool(it) for it in tools), cipher=cipher)

    @classmethod
    def from_file(cls, path: str | Path) -> Toolbox:
        """Run a Python file and hold the tools that it declares, and its `cipher`, if it has one.

        Raises `BadToolFile`.
        """
        module = run_file(Path(path))
        cipher = getattr(module, "cipher", None)
        try:
            return cls(
                tools_of(module, Path(path)), cipher=cipher if isinstance(cipher, Cipher) else None
            )
        except InvalidValue as error:
            raise BadToolFile(f"{path}: {error}") from None

    def __getitem__(self, name: str) -> Tool:
        """Return the tool, or raise KeyError."""
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._tools)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._tools)

    def __repr__(self) -> str:
        """Show the names."""
        return f"Toolbox({', '.join(self._tools)})"

    def as_function_schemas(self) -> list[dict[str, Any]]:
        """Return all declarations, as chat-completions endpoints take them in `tools`."""
        return [it.as_function_schema() for it in self._tools.values()]


ToolsOf: TypeAlias = Callable[[str], Toolbox]
"""The tools of a run by its id, as they are now (W-60). It is asked often, on the loop: return what
is at hand, the same toolbox as long as nothing has changed. One that raises leaves a run that is
open with those it had."""


def tools_of_each(tools: Toolbox | ToolsOf | None) -> ToolsOf:
    """Return the tools of each run: these for all, those that a function gives, or none."""
    if callable(tools):
        return tools
    toolbox = Toolbox() if tools is None else tools
    return lambda _: toolbox


def tools_of(module: ModuleType, path: Path) -> tuple[Tool, ...]:
    """Return the tools among the names of a file that was run, each once, in order.

    Plain functions are no tools: nothing is shown to a model that was not declared with @tool.
    Raises `BadToolFile`.
    """
    tools = {id(it): it for it in vars(module).values() if isinstance(it, Tool)}
    if not tools:
        functions = [
            f"{name} (line {it.__code__.co_firstlineno})"
            for name, it in vars(module).items()
            if inspect.isfunction(it) and it.__module__ == module.__name__
        ]
        there = f"; there are only functions: {', '.join(functions)}" if functions else ""
        message = (
            f"{path}: declares no tools{there}; write @tool above those that a model may call "
            "(from turnlock.runtime import tool)"
        )
        raise BadToolFile(message)
    first: dict[str, Tool] = {}
    for it in tools.values():
        other = first.setdefault(it.name, it)
        if other is not it:
            message = (
                f"{path}: the tool {it.name} is there twice ({_line(other)} and {_line(it)}); "
                "give one of them another name="
            )
            raise BadToolFile(message)
    return tuple(tools.values())


def _line(it: Tool) -> str:
    code = getattr(inspect.unwrap(it.call), "__code__", None)
    return "a line unknown" if code is None else f"line {code.co_firstlineno}"


def run_file(path: Path, *, holds: str = "tools") -> ModuleType:
    """Run a Python file of a person's own, which is to hold something. Raises `BadToolFile`."""
    whole = path.resolve()
    try:
        source = whole.read_bytes()
    except OSError as error:
        message = f"{path}: cannot be read ({error.strerror}); name a Python file with {holds}"
        raise BadToolFile(message) from error
    module = ModuleType(f"turnlock_tools_{hashlib.sha256(bytes(whole)).hexdigest()[:16]}")
    module.__file__ = str(whole)
    before = sys.modules.get(module.__name__)
    if str(whole.parent) not in sys.path:
        sys.path.append(str(whole.parent))
    sys.modules[module.__name__] = module  # dataclasses and type hints look their module up there
    try:
        exec(compile(source, str(whole), "exec"), vars(module))  # noqa: S102 - the user's own code
    except (Exception, SystemExit) as error:
        if before is None:
            del sys.modules[module.__name__]
        else:
            sys.modules[module.__name__] = before
        line = line_of(error, whole)
        message = f"{path}{line}: {said(error)}; put that right and start again"
        raise BadToolFile(message) from error
    return module


def line_of(error: BaseException, path: Path) -> str:
    """Name the line of this file that the error comes from; where it leads elsewhere, say so."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f", line {error.lineno}"
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(path)
    ]
    return f", line {lines[-1]}" if lines else ""
