"""The agents of a Python file, by the names of its variables (`turnlock serve --agent FILE`)."""

from __future__ import annotations

import hashlib
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Final

from ..agent.loop import Agent
from ..models.errors import InvalidValue, shown
from ..models.safe_text import harmless
from ..runtime.tools.errors import said
from ..runtime.tools.toolbox import line_of

PLACE: Final = 300
"""Characters of a file's place that are shown."""


def load_agents(place: str) -> dict[str, Agent]:
    """Return the `Agent(…)` objects of a file, ``FILE`` or ``FILE:NAME``, by variable.

    The file is imported, so it runs: it is the server's owner who names it. Without a name all that
    it makes at its top level are returned, in its order. Raises `InvalidValue` for a file that is
    not there, is no Python, raises while it is imported, or has no such agent.
    """
    path, name = _split(place)
    module = _imported(path)
    found = {
        variable: value
        for variable, value in vars(module).items()
        if isinstance(value, Agent) and not variable.startswith("_")
    }
    if name is None:
        if not found:
            raise _wrong(path, "has no agent", "make one at its top level: NAME = Agent(model=…)")
        return found
    if name not in found:
        has = ", ".join(found) or "none"
        raise _wrong(path, f"has no agent {shown(name)}", f"name one that it has: {has}")
    return {name: found[name]}


def _split(place: str) -> tuple[Path, str | None]:
    """Return the file and the name; a file whose own name has a colon is a file."""
    whole = Path(place)
    before, colon, name = place.rpartition(":")
    if not colon or whole.is_file() or not name.isidentifier():
        return whole, None
    return Path(before), name


def _imported(path: Path) -> ModuleType:
    if not path.is_file():
        raise _wrong(path, "is no file", "give a Python file, FILE or FILE:NAME")
    if path.suffix != ".py":
        raise _wrong(path, "is no Python file", "give one that ends with .py")
    digest = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]
    name = f"turnlock_agents_{path.stem}_{digest}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise _wrong(path, "is no Python file", "give one that ends with .py")
    module = module_from_spec(spec)
    folder = str(path.resolve().parent)
    sys.modules[name] = module  # as `import` does: its classes name it
    sys.path.insert(0, folder)  # as `python FILE` does: it may import what stands beside it
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise _wrong(
            path,
            f"raised while it was imported ({harmless(said(error), limit=300)})",
            "mend it",
            line=line_of(error, Path(module.__file__ or path)),
        ) from error
    except SystemExit as error:
        del sys.modules[name]
        raise _wrong(
            path,
            "has ended the process while it was imported",
            'put what it does behind if __name__ == "__main__"',
            line=line_of(error, Path(module.__file__ or path)),
        ) from error
    finally:
        if folder in sys.path:
            sys.path.remove(folder)
    return module


def _wrong(path: Path, cause: str, fix: str, *, line: str = "") -> InvalidValue:
    return InvalidValue(
        place=f"agents of {harmless(str(path), limit=PLACE)!r}{line}", cause=cause, fix=fix
    )
