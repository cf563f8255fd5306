"""Toolboxes, and the files of tools that users write."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from turnlock.models.errors import InvalidValue
from turnlock.runtime.tools.arguments import check
from turnlock.runtime.tools.errors import BadToolFile
from turnlock.runtime.tools.tool import tool
from turnlock.runtime.tools.toolbox import Toolbox


def look() -> None:
    """Look."""


async def wait() -> None:
    await asyncio.sleep(0)


def test_a_toolbox_is_a_mapping_in_the_order_given() -> None:
    box = Toolbox.of(wait, tool(look))
    assert list(box) == ["wait", "look"]
    assert box["wait"].is_async
    assert not box["look"].is_async
    assert box.get("nothing") is None
    assert len(box) == 2
    assert repr(box) == "Toolbox(wait, look)"
    assert [it["function"]["name"] for it in box.as_function_schemas()] == ["wait", "look"]


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidValue, match="tool look: is there twice"):
        Toolbox.of(look, look)


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """A place for a file of tools; what it does to the interpreter is undone."""
    modules, places = set(sys.modules), list(sys.path)
    yield tmp_path / "tools.py"
    sys.path[:] = places
    for name in set(sys.modules) - modules:
        del sys.modules[name]


HEAD = "from __future__ import annotations\nfrom turnlock.runtime import tool\n"


def test_a_file_gives_the_tools_that_it_declares(path: Path) -> None:
    """Each once, in order, with types that its own dataclasses give; functions stay its own."""
    path.write_text(
        HEAD
        + "import dataclasses\n"
        + "@dataclasses.dataclass\nclass Item:\n    price: float\n"
        + "@tool\ndef pay(item: Item) -> float:\n    return item.price\n"
        + "@tool(approval=True)\ndef delete(): ...\n"
        + "def helper(): ...\nalias = pay\n"
    )
    box = Toolbox.from_file(path)
    assert list(box) == ["pay", "delete"]
    assert box["pay"](**check(box["pay"], {"item": {"price": 2}})) == 2.0


def test_a_file_may_import_its_neighbours(path: Path) -> None:
    (path.parent / "turnlock_test_neighbour.py").write_text("WORD = 'hello'\n")
    path.write_text(
        HEAD + "from turnlock_test_neighbour import WORD\n@tool(name=WORD)\ndef f(): ...\n"
    )
    assert list(Toolbox.from_file(path)) == ["hello"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = 1\ndef f(:\n", "tools.py, line 2: SyntaxError"),
        ("\n\n1 / 0\n", "tools.py, line 3: ZeroDivisionError: division by zero"),
        ("def f():\n    raise OSError('no')\nf()\n", "tools.py, line 2: OSError: no"),
        ("import sys\nsys.exit(4)\n", "tools.py, line 2: SystemExit: 4"),
        ("import nothing_of_that_name\n", "tools.py, line 1: ModuleNotFoundError"),
        ("import json\njson.loads('x')\n", "tools.py, line 2: JSONDecodeError"),
        (HEAD + "@tool(timeout=0)\ndef f(): ...\n", "line 3: InvalidValue: tool f.timeout: 0 is"),
        (
            "def f(): ...\nasync def g(): ...\n",
            "only functions: f (line 1), g (line 2); write @tool",
        ),
        ("", "declares no tools; write @tool"),
        (
            HEAD + "@tool\ndef f(): ...\ng = f\n@tool(name='f')\ndef h(): ...\n",
            "the tool f is there twice (line 3 and line 6)",
        ),
        ("x = 'a\0b'\n", "tools.py: "),
    ],
)
def test_a_file_that_cannot_be_used_says_where(path: Path, text: str, told: str) -> None:
    """Syntax errors, exceptions, exits, bad declarations, nothing there: file, line, what to do."""
    path.write_text(text)
    with pytest.raises(BadToolFile) as error:
        Toolbox.from_file(path)
    assert told in str(error.value)
    assert str(path) in str(error.value)


def test_a_file_that_is_not_there_says_so(path: Path) -> None:
    with pytest.raises(BadToolFile, match=r"tools\.py: cannot be read \(No such file"):
        Toolbox.from_file(path)
    with pytest.raises(BadToolFile, match="cannot be read"):
        Toolbox.from_file(path.parent)


def test_a_file_that_failed_leaves_no_module_behind(path: Path) -> None:
    path.write_text("1 / 0\n")
    before = set(sys.modules)
    with pytest.raises(BadToolFile):
        Toolbox.from_file(path)
    assert set(sys.modules) == before
