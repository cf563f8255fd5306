"""The real Codex, which `TURNLOCK_CODEX` names; everything marked `codex` needs it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from .endpoint import Endpoint, Script
from .homes import environment, make_home
from .raw import Raw, Tape

VARIABLE = "TURNLOCK_CODEX"
MISSING = f"needs the real Codex: {VARIABLE} names no executable (make codex installs one)"


@attrs.frozen
class Codex:
    """An executable, and which version it says it is."""

    binary: str
    version: tuple[int, ...]

    @property
    def announces_first(self) -> bool:
        """Whether an item is announced before the question about it: 0.104 does it after."""
        return self.version >= (0, 169)

    @property
    def ends_responses(self) -> bool:
        """Whether raw events say when a response of the model has ended."""
        return self.version >= (0, 169)

    @property
    def model(self) -> str:
        """A model that it knows, so that it asks with the tools of today."""
        return "gpt-5.5" if self.announces_first else "gpt-5.2-codex"


@attrs.define
class Room:
    """A home, a workspace and a model of our own, for one test."""

    codex: Codex
    place: Path
    endpoint: Endpoint
    tape: Tape = attrs.field(factory=Tape)
    processes: list[Raw] = attrs.field(factory=list[Raw])

    @property
    def home(self) -> Path:
        return self.place / "home"

    @property
    def workspace(self) -> Path:
        return self.place / "workspace"

    @property
    def ledger(self) -> list[str]:
        """What commands have written: `append(word)` is such a command."""
        path = self.workspace / "ledger"
        return path.read_text(encoding="utf-8").split() if path.exists() else []

    def start(self, *arguments: str) -> Raw:
        """Start a process of it, and say hello."""
        raw = Raw(
            self.codex.binary,
            env=environment(self.home),
            cwd=self.workspace,
            arguments=("app-server", *arguments),
            tape=self.tape,
            proc=len(self.processes),
        )
        self.processes.append(raw)
        raw.begin()
        return raw


def append(word: str) -> str:
    """The script of a command that says in the ledger that it ran."""
    return f"echo {word} >> ledger"


@pytest.fixture(scope="session")
def codex() -> Codex:
    """The binary, or a skip that says why."""
    binary = os.environ.get(VARIABLE)
    if not binary:
        pytest.skip(MISSING)
    found = shutil.which(binary)
    assert found is not None, f"{VARIABLE} is {binary!r}, which is no executable"
    told = subprocess.run(
        [found, "--version"], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    version = re.search(r"(\d+)\.(\d+)\.(\d+)", told)
    assert version is not None, f"{found} --version says {told!r}"
    return Codex(found, tuple(map(int, version.groups())))


class Rooms:
    """Makes a room; at the end nothing of it goes on."""

    def __init__(self, codex: Codex, place: Path) -> None:
        self._codex = codex
        self._place = place
        self._endpoints: list[Endpoint] = []
        self._rooms: list[Room] = []

    def __call__(
        self,
        script: Script = (),
        *,
        sandbox: str = "workspace-write",
        features: tuple[str, ...] = (),
        more: str = "",
    ) -> Room:
        endpoint = Endpoint(script)
        self._endpoints.append(endpoint)
        place = self._place / f"room-{len(self._rooms)}"
        make_home(
            place / "home",
            base_url=endpoint.url,
            sandbox=sandbox,
            model=self._codex.model,
            features=features,
            more=more,
        )
        (place / "workspace").mkdir()
        room = Room(self._codex, place, endpoint)
        self._rooms.append(room)
        return room

    def close(self) -> None:
        for room in self._rooms:
            for raw in room.processes:
                raw.__exit__()
        for endpoint in self._endpoints:
            endpoint.close()


@pytest.fixture
def rooms(codex: Codex, tmp_path: Path) -> Iterator[Rooms]:
    """Rooms of one test."""
    made = Rooms(codex, tmp_path)
    try:
        yield made
    finally:
        made.close()
