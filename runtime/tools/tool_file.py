"""A user's Python file of tools, run once; whatever is wrong with it is told with file and line."""

from __future__ import annotations

import hashlib
import inspect
import sys
import traceback
from pathlib import Path
from types import ModuleType

from .errors import BadToolFile
from .messages import said
from .tool import Tool


def load_tools(path: Path) -> tuple[Tool, ...]:
    """Run the file and return the tools among its names, each once, in order.

    Plain functions are no tools: nothing is shown to a model that was not declared with @tool. The
    file may import its neighbours, as a script may. Raises `BadToolFile`.
    """
    module = _run(path)
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
            "(from turnlock.runtime.tools import tool)"
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


def _run(path: Path) -> ModuleType:
    whole = path.resolve()
    try:
        source = whole.read_bytes()
    except OSError as error:
        message = f"{path}: cannot be read ({error.strerror}); name a Python file with tools"
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
        line = _line_of(error, whole)
        message = f"{path}{line}: {said(error)}; put that right and start again"
        raise BadToolFile(message) from error
    return module


def _line_of(error: BaseException, path: Path) -> str:
    """Name the line of this file that the error comes from; where it leads elsewhere, say so."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f", line {error.lineno}"
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(path)
    ]
    return f", line {lines[-1]}" if lines else ""
