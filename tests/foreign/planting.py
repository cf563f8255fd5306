"""Builds the foreign kernel, whole or with one mistake in its source, as often as one likes."""

from __future__ import annotations

import ast
import hashlib
import itertools
import sys
from functools import cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final

import attrs

HOME: Final = Path(__file__).parent / "kernel"
MODULES: Final = ("text", "mail", "call", "books", "turn", "ledger", "acts", "run", "restore")
"""Those that hold rules, each after those that it imports."""
SUBJECT: Final = "subject"

_number = itertools.count(1)


@attrs.frozen(kw_only=True)
class Bug:
    """One mistake: a module with another source, and the rules that a reader would name for it."""

    name: str
    kind: str
    module: str
    source: str
    rules: frozenset[str]

    @property
    def kernel(self) -> str:
        """Sixteen digits that stand for the whole kernel with the mistake, comments aside."""
        sources = [self.source if name == self.module else source_of(name) for name in MODULES]
        told = "\n".join(map(_without_comments, sources))
        return hashlib.sha256(told.encode()).hexdigest()[:16]


@cache
def _without_comments(source: str) -> str:
    return ast.unparse(ast.parse(source))


@cache
def source_of(module: str) -> str:
    """Return the source of a module as it should be."""
    return (HOME / f"{module}.py").read_text("utf-8")


@cache
def _compiled(module: str) -> CodeType:
    return compile(source_of(module), f"{module}.py", "exec")


def kernel_class(bug: Bug | None = None) -> type[Any]:
    """Return the subject of a kernel of its own, with the bug planted.

    Raises what the changed module raises when it is run.
    """
    package = ModuleType(f"foreign_kernel_{next(_number)}")
    package.__path__ = []
    made = {package.__name__: package}
    sys.modules.update(made)
    try:
        for name in (*MODULES, SUBJECT):
            module = ModuleType(f"{package.__name__}.{name}")
            module.__package__ = package.__name__
            sys.modules[module.__name__] = made[module.__name__] = module
            wrong = bug is not None and bug.module == name
            code = compile(bug.source, f"{name}.py", "exec") if bug and wrong else _compiled(name)
            exec(code, module.__dict__)  # noqa: S102 - our own source, with a mistake of ours
    finally:
        for name in made:
            sys.modules.pop(name, None)
    return made[f"{package.__name__}.{SUBJECT}"].ForeignKernel  # type: ignore[no-any-return]
