"""Names of a package that are imported when they are first asked for (PEP 562).

What most processes never need (cattrs and msgspec for the codec, the records of a snapshot) costs
them no time at their start. Checkers see the plain imports beside it, under `TYPE_CHECKING`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def imported_when_asked(
    package: str, homes: Mapping[str, str], *, extras: Mapping[str, str] | None = None
) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package: by module of it, the names that are there.

    ``imported_when_asked("turnlock", {"engine.snapshot": "Snapshot snapshot_from_json"})``; a dot
    before a module leads out of the package, as in an import: ``".views.status"``. It raises
    `AttributeError` for any other name, as a module does. `extras` names the extra that a module
    needs: where what it brings is not installed, the error says how to get it.
    """
    module_of = {name: module for module, names in homes.items() for name in names.split()}

    def get(name: str) -> Any:  # noqa: ANN401 - whatever the package exports
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = module_of[name]
        try:
            found = getattr(import_module(f".{module}", package), name)
        except ModuleNotFoundError as error:
            if extras is None or module not in extras:
                raise
            raise needs_extra(f"{package}.{name}", error, extra=extras[module]) from error
        setattr(import_module(package), name, found)  # asked for once, as with any import
        return found

    return get


def needs_extra(what: str, error: ModuleNotFoundError, *, extra: str) -> ModuleNotFoundError:
    """Return the error that says how to get what an extra of ours brings and is not installed."""
    told = f"{what} needs {error.name}: pip install 'turnlock[{extra}]'"
    return ModuleNotFoundError(told, name=error.name)
