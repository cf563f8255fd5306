"""The checkout is the package: the lists of its folders agree, and the wheel holds them all."""

import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
KERNEL = {"models", "machines", "lifecycle", "turn", "engine"}
ROOT_FILES = {"__init__.py", "__main__.py", "py.typed"}
# Of this folder the specification ships, as data, under turnlock/: the rules that answers name.
DOCS = "docs"
SPECIFICATION = f"{DOCS}/spec"
# Folders that may hold Python and are never shipped.
NOT_SHIPPED = {"tests", "examples", "benchmarks", "tools", "docs", "src", "build", "dist"}


def folders(root: Path) -> set[str]:
    """The folders at a root that hold package code, whether or not anything declares them."""
    return {
        folder.name
        for folder in root.iterdir()
        if folder.is_dir()
        and folder.name not in NOT_SHIPPED
        and not folder.name.startswith(".")
        and not (folder / "pyvenv.cfg").exists()
        and any(folder.rglob("*.py"))
    }


def modules(root: Path) -> set[str]:
    """Every Python file of the package, relative to its root."""
    inside = (path for folder in folders(root) for path in (root / folder).rglob("*.py"))
    return {path.relative_to(root).as_posix() for path in (*root.glob("*.py"), *inside)}


def packages(root: Path) -> set[str]:
    """Every folder with Python in it, root and subfolders too, under the name it is imported by."""
    parents = {Path(module).parent for module in modules(root)}
    return {".".join(("turnlock", *parent.parts)) for parent in parents}


def gaps(root: Path, settings: dict[str, Any]) -> list[str]:
    """What the lists and links of a checkout leave out, or name in vain; one line each."""
    tool = settings["tool"]
    here = folders(root)

    def compare(where: str, listed: Iterable[str], wanted: set[str]) -> list[str]:
        given = set(listed)
        return [
            *(f"{where} lacks {name}" for name in sorted(wanted - given)),
            *(f"{where} names {name} in vain" for name in sorted(given - wanted)),
        ]

    view = root / "src" / "turnlock"
    links = sorted(entry for entry in view.iterdir() if entry.name != "__pycache__")
    measured = set(tool["coverage"]["run"]["source"])
    return [
        *compare("[tool.setuptools] packages", tool["setuptools"]["packages"], packages(root)),
        *compare(
            "[tool.pyright] include",
            tool["pyright"]["include"],
            {f"src/turnlock/{name}" for name in (*here, "__init__.py", "__main__.py")}
            | {f"examples/{name}" for name in ("clients", "dbos", "guards")}
            | {"tests"},
        ),
        *compare("[tool.coverage.run] source", measured, (KERNEL | measured) & here),
        *compare("src/turnlock", (link.name for link in links), here | ROOT_FILES | {DOCS}),
        *(
            f"src/turnlock/{link.name} is not a link to ../../{link.name}"
            for link in links
            if not link.is_symlink() or link.readlink() != Path("../..", link.name)
        ),
        *(
            f"{package} has no __init__.py"
            for package in sorted(packages(root))
            if not root.joinpath(*package.split(".")[1:], "__init__.py").exists()
        ),
    ]


def settings_of(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))


def copy_checkout(to: Path) -> Path:
    """A copy without the environment and what earlier builds left, which a build would pick up."""
    leave = shutil.ignore_patterns(
        ".git", ".venv", ".*_cache", ".hypothesis", "__pycache__", "*.egg-info", "build", "dist"
    )
    return shutil.copytree(ROOT, to, symlinks=True, ignore=leave)


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command to its success and return what it printed."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, f"{' '.join(map(str, command))} failed:\n{done.stdout}"
    return done.stdout


def test_every_list_and_link_names_every_folder() -> None:
    """A folder that one list forgets would be missing from the wheel or from a check."""
    assert gaps(ROOT, settings_of(ROOT)) == []


def test_a_forgotten_folder_is_told(tmp_path: Path) -> None:
    """The negative control: a planted folder, subfolder and false link are each missed by name."""
    checkout = copy_checkout(tmp_path / "checkout")
    (checkout / "planted" / "deep").mkdir(parents=True)
    (checkout / "planted" / "__init__.py").touch()
    (checkout / "planted" / "deep" / "rows.py").touch()
    (checkout / "src" / "turnlock" / "turn").unlink()
    (checkout / "src" / "turnlock" / "turn").mkdir()
    settings = settings_of(checkout)
    settings["tool"]["coverage"]["run"]["source"].remove("engine")

    assert gaps(checkout, settings) == [
        "[tool.setuptools] packages lacks turnlock.planted",
        "[tool.setuptools] packages lacks turnlock.planted.deep",
        "[tool.pyright] include lacks src/turnlock/planted",
        "[tool.coverage.run] source lacks engine",
        "src/turnlock lacks planted",
        "src/turnlock/turn is not a link to ../../turn",
        "turnlock.planted.deep has no __init__.py",
    ]


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the sdist, built from the checkout, and the wheel, built from the sdist."""
    place = tmp_path_factory.mktemp("build")
    checkout = copy_checkout(place / "checkout")
    run(
        *(sys.executable, "-m", "build", "--no-isolation", "--outdir", place / "dist", checkout),
        cwd=place,
    )
    return place / "dist"


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    """The wheel as users get it."""
    (built,) = dist.glob("*.whl")
    return built


def test_sdist_holds_the_documentation_and_the_changelog(dist: Path) -> None:
    """Its README names them by their places: whoever has the sdist has what it speaks of."""
    (built,) = dist.glob("*.tar.gz")
    with tarfile.open(built) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    documents = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.*")}
    assert documents <= names
    assert {"CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "mkdocs.yml"} <= names
    assert {"examples/embedded_host.py", "examples/double-payment/run.py"} <= names
    assert [name for name in names if "/.venv/" in name or name.endswith(".pyc")] == []
    assert {f"{module}" for module in modules(ROOT)} <= names


def test_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    """Every module and py.typed under turnlock/, the metadata, and no file besides."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()

    version = settings_of(ROOT)["project"]["version"]
    dist_info = f"turnlock-{version}.dist-info/"
    shipped = {name for name in names if not name.startswith(dist_info)}
    package = {f"turnlock/{module}" for module in modules(ROOT)} | {"turnlock/py.typed"}
    rules = {f"turnlock/{SPECIFICATION}/{file.name}" for file in (ROOT / SPECIFICATION).iterdir()}
    served = {
        f"turnlock/server/{folder}/{file.name}"
        for folder in ("console", "machines")
        for file in (ROOT / "server" / folder).iterdir()
    }
    besides = {"turnlock/tui/console.tcss", "turnlock_pytest.py"}
    assert shipped == package | rules | served | besides

    metadata = {name.removeprefix(dist_info) for name in names if name.startswith(dist_info)}
    assert metadata >= {"METADATA", "entry_points.txt", "licenses/LICENSE"}


IMPORT_ALL = """
import importlib, pathlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
import turnlock
missing = [name for name in turnlock.__all__ if not hasattr(turnlock, name)]
assert not missing, missing
assert pathlib.Path(turnlock.__file__).with_name("py.typed").is_file()
from turnlock.verification.rulebook.specification import specification
assert "K-33" in {rule.id for rule in specification().rules}
print(turnlock.__file__)
"""


def test_wheel_installs_and_imports_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    """Declared dependencies are enough; the command and ``python -m turnlock`` answer."""
    home = tmp_path / "empty"
    venv.EnvBuilder(with_pip=False).create(home)
    python = home / "bin" / "python"
    run(
        *(sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"),
        *("install", "--quiet", wheel),
        cwd=tmp_path,
    )

    where = run(
        python, "-I", "-c", IMPORT_ALL, *sorted(packages(ROOT)), "turnlock.cli.main", cwd=tmp_path
    )
    assert Path(where.strip()).is_relative_to(home)

    assert "Usage" in run(home / "bin" / "turnlock", "--help", cwd=tmp_path)
    assert "claim before start" in run(home / "bin" / "turnlock", "explain", "K-33", cwd=tmp_path)
    assert "Usage" in run(python, "-m", "turnlock", "--help", cwd=tmp_path)
