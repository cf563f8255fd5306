"""The house rules of the tree, read from its source: floors, imports, sizes and names."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).resolve().parents[1]

KERNEL = frozenset({"models", "machines", "lifecycle", "turn", "engine"})
# What each folder may import of ours, besides itself; None is anything. From the lowest floor up.
MAY_IMPORT: dict[str, frozenset[str] | None] = {
    "models": frozenset(),
    "machines": frozenset({"models"}),
    "lifecycle": frozenset({"models", "machines"}),
    "turn": frozenset({"models", "machines", "lifecycle"}),
    "engine": frozenset({"models", "machines", "lifecycle", "turn"}),
    "views": KERNEL,
    "wire": frozenset({"models", "engine"}),
    "diagrams": KERNEL | {"views", "wire"},
    "runtime": KERNEL | {"views", "wire"},
    "verification": KERNEL | {"views", "wire"},
    "agent": KERNEL | {"views", "wire", "runtime"},
    "toolkits": KERNEL | {"views", "wire", "runtime"},
    "world": KERNEL | {"views", "wire", "runtime", "agent", "toolkits"},
    "guards": KERNEL | {"views", "wire", "runtime"},
    "adapters": KERNEL | {"views", "wire", "runtime", "agent", "toolkits"},
    "server": KERNEL
    | {"views", "wire", "diagrams", "runtime", "agent", "toolkits", "world", "guards", "adapters"},
    "tui": KERNEL | {"views", "diagrams", "runtime", "world", "guards", "adapters", "server"},
    "cli": None,
}
KERNEL_LIBRARIES = frozenset({"attrs"})
# The two places where the kernel folders meet other libraries.
MEETS_LIBRARIES = ("models/codec*.py", "machines/interchange.py")

FACE = ("__init__.py", "__main__.py")
FACE_NAME = "the root's __init__.py"
MAX_LINES = 500
"""About 300 is the house size, a warning: a concept is not split for it. Beyond this it is two."""
MAX_FACE_LINES = 60
VAGUE_NAMES = frozenset({"utils", "helpers", "manager", "common"})


def package_files() -> list[PurePosixPath]:
    """Every file of the package, relative to the root."""
    inside = (path for folder in MAY_IMPORT for path in (ROOT / folder).rglob("*.py"))
    return [PurePosixPath(path.relative_to(ROOT)) for path in (*map(ROOT.joinpath, FACE), *inside)]


def is_type_checking(test: ast.expr) -> bool:
    """Whether an ``if`` has the test ``TYPE_CHECKING`` or ``typing.TYPE_CHECKING``."""
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def imports(
    node: ast.AST, *, on_import: bool = True
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Every import below the node, and whether it runs when the module is imported."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield node, on_import
    elif isinstance(node, ast.If) and is_type_checking(node.test):
        for statement in node.body:
            yield from imports(statement, on_import=False)
        for statement in node.orelse:
            yield from imports(statement, on_import=on_import)
    else:
        inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            yield from imports(child, on_import=on_import and not inside)


def relative_targets(path: PurePosixPath, node: ast.ImportFrom) -> list[str]:
    """The folders that a relative import of this file reaches."""
    package = path.parent.parts
    climbed = node.level - 1
    if climbed > len(package):
        return ["a place outside the package"]
    target = (*package[: len(package) - climbed], *(node.module or "").split("."))
    target = tuple(part for part in target if part)
    if target:
        return [target[0]]
    return [alias.name if alias.name in MAY_IMPORT else FACE_NAME for alias in node.names]


def absolute_targets(node: ast.Import | ast.ImportFrom) -> list[str]:
    """The top-level names that an absolute import reaches."""
    if isinstance(node, ast.Import):
        return [alias.name.partition(".")[0] for alias in node.names]
    return [(node.module or "").partition(".")[0]]


def import_violations(
    path: PurePosixPath, node: ast.Import | ast.ImportFrom, *, on_import: bool
) -> Iterator[str]:
    """What one import of a file in a folder breaks."""
    folder = path.parts[0]
    if isinstance(node, ast.ImportFrom) and node.level:
        allowed = MAY_IMPORT[folder]
        for target in relative_targets(path, node):
            if allowed is not None and target != folder and target not in allowed:
                yield f"{folder} may not import {target}"
        return
    libraries_only = folder in KERNEL and not any(path.match(place) for place in MEETS_LIBRARIES)
    for target in absolute_targets(node):
        if target == "turnlock" or target in MAY_IMPORT:
            yield f"imports {target} absolutely: write it relative"
        elif (
            libraries_only
            and on_import
            and target not in KERNEL_LIBRARIES | sys.stdlib_module_names
        ):
            yield f"the kernel may not import {target} at module level"


def misplaced_fields(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Fields of records in what is none: `attrs` does not know them, and takes one for a value."""
    taken = [
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("record")
        for alias in node.names
    ]
    if "field" not in taken:  # that of dataclasses, perhaps
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef):
            continue
        decorators = {ast.unparse(it).partition("(")[0] for it in node.decorator_list}
        if decorators & {"record", "base"}:
            continue
        for statement in node.body:
            value = statement.value if isinstance(statement, ast.AnnAssign) else None
            if isinstance(value, ast.Call) and ast.unparse(value.func) == "field":
                yield statement.lineno, f"{node.name} is no record: its fields are attrs.field"


def violations(path: PurePosixPath, source: str) -> list[str]:
    """What a file of the package, given by its path from the root, breaks; one line each."""
    face = len(path.parts) == 1
    found: list[tuple[int, str]] = []
    if not face and path.parts[0] not in MAY_IMPORT:
        return [f"{path}:1: the folder has no floor: give it one in MAY_IMPORT"]
    tree = ast.parse(source)
    found += misplaced_fields(tree)
    for node, on_import in imports(tree):
        if not face:
            told = import_violations(path, node, on_import=on_import)
            found += [(node.lineno, what) for what in told]
        elif isinstance(node, ast.ImportFrom) and node.level:
            found.append((node.lineno, "imports relatively: the root alone imports absolutely"))
    lines = len(source.splitlines())
    bound = MAX_FACE_LINES if path.name == path.as_posix() == "__init__.py" else MAX_LINES
    if lines > bound:
        found.append((lines, f"has {lines} lines, more than {bound}: split it"))
    found += [
        (1, f"is called {part}: name it for what it holds")
        for part in path.with_suffix("").parts
        if part in VAGUE_NAMES
    ]
    return [f"{path}:{line}: {what}" for line, what in found]


@pytest.mark.parametrize("path", package_files(), ids=str)
def test_house_rules_hold(path: PurePosixPath) -> None:
    """Every file of the package keeps its floor, its size and an honest name."""
    assert violations(path, (ROOT / path).read_text(encoding="utf-8")) == []


def test_every_package_folder_has_a_floor() -> None:
    """A folder that nobody placed is a folder that nothing checks."""
    folders = {
        init.parent.name
        for init in ROOT.glob("*/__init__.py")
        if not init.parent.name.startswith(".") and init.parent.name != "tests"
    }

    assert folders == set(MAY_IMPORT)


def test_floors_go_down_only() -> None:
    """S-1: the table itself lets no folder import one that stands on its floor's way up."""
    below: set[str] = set()
    for folder, allowed in MAY_IMPORT.items():
        assert (allowed or set()) <= below, f"{folder} imports upwards"
        below.add(folder)


FIELD = "from ..models.record import field\n"

PLANTED = [
    ("models/bad.py", "from ..turn.table import TABLE\n", "models may not import turn"),
    ("models/bad.py", "from ..machines import rows\n", "models may not import machines"),
    ("machines/bad.py", "from ..lifecycle import step\n", "machines may not import lifecycle"),
    ("lifecycle/bad.py", "from ..turn import table\n", "lifecycle may not import turn"),
    ("turn/bad.py", "from .. import engine\n", "turn may not import engine"),
    ("engine/deep/bad.py", "from ...cli.main import main\n", "engine may not import cli"),
    ("engine/bad.py", "from .. import Kernel\n", f"engine may not import {FACE_NAME}"),
    ("engine/bad.py", "def f():\n    from ..cli import main\n", "engine may not import cli"),
    (
        "engine/bad.py",
        "if TYPE_CHECKING:\n    from ..cli import x\n",
        "engine may not import cli",
    ),
    (
        "models/bad.py",
        "from ... import x\n",
        "models may not import a place outside the package",
    ),
    ("cli/bad.py", "from turnlock.models import ids\n", "imports turnlock absolutely"),
    ("toolkits/bad.py", "from ..agent.loop import Agent\n", "toolkits may not import agent"),
    ("agent/bad.py", "from ..toolkits import x\n", "agent may not import toolkits"),
    ("turn/bad.py", "from models.ids import RunId\n", "imports models absolutely"),
    ("turn/bad.py", "import os, engine.kernel\n", "imports engine absolutely"),
    ("engine/bad.py", "import cattrs\n", "the kernel may not import cattrs at module level"),
    ("models/bad.py", "try:\n    import msgspec\nexcept ImportError:\n    pass\n", "msgspec"),
    ("models/decodec.py", "from cattrs import Converter\n", "may not import cattrs"),
    (
        "world/bad.py",
        f"{FIELD}@attrs.frozen\nclass It:\n    x: int = field()\n",
        "It is no record",
    ),
    ("__init__.py", "from .engine.kernel import Kernel\n", "imports relatively"),
    ("__init__.py", "x = 1\n" * 61, "has 61 lines, more than 60"),
    ("turn/long.py", "x = 1\n" * 501, "has 501 lines, more than 500"),
    ("turn/utils.py", "", "is called utils"),
    ("turn/common/rows.py", "", "is called common"),
    ("attic/bad.py", "", "the folder has no floor"),
]


@pytest.mark.parametrize(("path", "source", "told"), PLANTED)
def test_a_planted_violation_is_told(path: str, source: str, told: str) -> None:
    """The negative control: each rule is seen to fail, once and by name."""
    found = violations(PurePosixPath(path), source)

    assert len(found) == 1
    assert told in found[0]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("models/codec_json.py", "import cattrs\nimport msgspec\n"),
        ("machines/interchange.py", "import transitions\n"),
        ("engine/kernel.py", "import attrs\nfrom ..turn.table import T\nfrom .inbox import I\n"),
        ("engine/kernel.py", "def draw():\n    import transitions\n"),
        ("engine/kernel.py", "if TYPE_CHECKING:\n    import transitions\n"),
        ("cli/main.py", "import click\nfrom .. import Kernel\nfrom ..models import ids\n"),
        ("world/it.py", f"{FIELD}@record\nclass It(Record):\n    x: int = field()\n"),
        ("world/it.py", "@dataclass\nclass It:\n    x: int = field()\n"),
        ("__init__.py", "from turnlock.engine.kernel import Kernel\n"),
        ("turn/long.py", "x = 1\n" * 500),
    ],
)
def test_what_the_rules_allow_is_left_alone(path: str, source: str) -> None:
    """The other control: nothing is told of a file that keeps the rules."""
    assert violations(PurePosixPath(path), source) == []
