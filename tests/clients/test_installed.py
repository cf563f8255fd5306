"""How the clients of others come here, and how a driver is asked (F-110, F-111)."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from . import conftest
from .conftest import Drive
from .drivers import StepFailed
from .installed import (
    HERE,
    LOCK,
    OLDEST,
    NotAsPinned,
    NotReached,
    Run,
    installed,
    node_version,
    version_of,
)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A package that needs one other."""
    made = tmp_path / "source"
    made.mkdir()
    (made / "package.json").write_text(json.dumps({"dependencies": {"ai": "7.0.173"}}))
    (made / LOCK).write_text("{}")
    return made


def puts(version: str, names: list[str] | None = None) -> Run:
    """An npm that puts a version of the package there; it notes where it was asked to."""

    def run(folder: Path) -> subprocess.CompletedProcess[str]:
        time.sleep(0.05)  # long enough for the others to come
        if names is not None:
            names.append(folder.name)
        there = folder / "node_modules" / "ai"
        there.mkdir(parents=True)
        (there / "package.json").write_text(json.dumps({"version": version}))
        return subprocess.CompletedProcess([], 0, "", "")

    return run


def says(words: str) -> Run:
    """An npm that fails."""
    return lambda _: subprocess.CompletedProcess([], 1, "", words)


def test_f_110_node_is_new_enough_for_the_clients() -> None:
    assert node_version() >= (OLDEST,)


def test_f_110_what_is_installed_is_what_package_json_names(node_modules: Path) -> None:
    package = json.loads((HERE / "package.json").read_text())

    assert package["dependencies"]["ai"] == "7.0.173"
    assert package["dependencies"]["@ag-ui/client"] == "1.0.0"
    for name, version in package["dependencies"].items():
        assert version_of(node_modules, name) == version


def test_f_110_a_version_that_npm_chose_by_itself_is_refused(source: Path, tmp_path: Path) -> None:
    """As version 6 of ai is under an old Node.js."""
    with pytest.raises(NotAsPinned, match=r"ai 6\.0\.1, not 7\.0\.173"):
        installed(source, tmp_path / "kept", run=puts("6.0.1"))


def test_f_110_of_many_who_ask_at_once_one_installs(source: Path, tmp_path: Path) -> None:
    asked = list[str]()
    found = list[Path]()

    def ask() -> None:
        found.append(installed(source, tmp_path / "kept", run=puts("7.0.173", asked)))

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for it in threads:
        it.start()
    for it in threads:
        it.join()

    assert len(asked) == 1
    assert len(found) == 6
    assert len(set(found)) == 1
    assert asked[0] != found[0].name  # it was made elsewhere, and then renamed
    assert [it.name for it in (tmp_path / "kept").iterdir() if it.is_dir()] == [found[0].name]


def test_f_110_another_lock_file_is_another_folder(source: Path, tmp_path: Path) -> None:
    one = installed(source, tmp_path / "kept", run=puts("7.0.173"))
    (source / LOCK).write_text('{"lockfileVersion": 3}')
    other = installed(source, tmp_path / "kept", run=puts("7.0.173"))

    assert one != other


def test_f_110_a_registry_that_is_not_reached_is_no_defect(source: Path, tmp_path: Path) -> None:
    """And leaves nothing behind; the next who asks tries again."""
    with pytest.raises(NotReached, match="EAI_AGAIN"):
        installed(source, tmp_path / "kept", run=says("npm error code EAI_AGAIN"))

    assert not [it for it in (tmp_path / "kept").iterdir() if it.is_dir()]
    assert installed(source, tmp_path / "kept", run=puts("7.0.173")).is_dir()


def test_f_110_a_lock_file_that_npm_refuses_is_one(source: Path, tmp_path: Path) -> None:
    with pytest.raises(NotAsPinned, match="not in sync"):
        installed(source, tmp_path / "kept", run=says("EUSAGE: lock file not in sync"))


@pytest.mark.parametrize(
    ("ci", "ends"), [("", pytest.skip.Exception), ("1", pytest.fail.Exception)]
)
def test_f_110_tests_skip_where_it_is_not_reached_and_the_gate_does_not_let_them(
    ci: str, ends: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_: Path) -> Path:
        raise NotReached("npm's registry is not reached: ENOTFOUND")

    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(conftest, "installed", away)
    with pytest.raises(ends, match="ENOTFOUND"):
        conftest.clients()


def test_f_110_the_lock_file_names_no_registry_and_each_digest() -> None:
    """Where packages come from is whoever installs them's to say; what they are is not."""
    lock: dict[str, Any] = json.loads((HERE / LOCK).read_text())
    packages = {name: it for name, it in lock["packages"].items() if name}

    assert packages
    for name, it in packages.items():
        assert it["integrity"].startswith("sha512-"), name
        assert "resolved" not in it, name


def test_f_111_a_driver_says_what_it_saw_what_came_of_it_and_what_failed(drive: Drive) -> None:
    driver = drive("versions.mjs")
    seen = driver.play("versions")

    assert tuple(map(int, seen.saw[0]["node"].split("."))) >= (OLDEST,)
    assert set(seen.value.values()) == {"function"}
    with pytest.raises(StepFailed, match="as it should"):
        driver.play("fails")
    with pytest.raises(StepFailed, match="there is no step sing"):
        driver.play("sing")


def test_f_111_steps_go_on_beside_each_other(drive: Drive) -> None:
    driver = drive("versions.mjs")
    long = driver.begin("waits", **{"for": 60_000})

    assert long.see() == "begun"
    assert driver.play("waits", **{"for": 1}).value == 1
