"""The example pages of examples/clients, as their one command starts them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import attrs

ROOT: Final = Path(__file__).resolve().parents[2]
EXAMPLES: Final = ROOT / "examples" / "clients"
PICTURES: Final = ROOT / "docs" / "pictures"
WRITTEN: Final = os.environ.get("TURNLOCK_PICTURES") == "write"
"""Whether the pictures of docs/clients.md are made anew."""


@attrs.frozen
class Started:
    """What the command has printed."""

    url: str
    server: str
    token: str


@contextmanager
def started(page: str, packages: Path) -> Generator[Started]:
    """Run its command; packages lie where npm has put them."""
    port = _free_ports()
    told: dict[str, str] = {}
    options = ["--port", str(port), "--packages", str(packages)]
    with subprocess.Popen(
        [sys.executable, str(EXAMPLES / "start.py"), page, *options],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        start_new_session=True,
    ) as running:
        assert running.stdout is not None
        try:
            while not {"page", "token"} <= told.keys():
                line = running.stdout.readline()
                assert line, "it has ended"
                name, _, value = line.strip().partition(" ")
                told[name] = value.strip()
            yield Started(told["page"], f"http://127.0.0.1:{port}", told["token"])
        finally:
            os.killpg(running.pid, signal.SIGINT)
            running.stdout.read()


def _free_ports() -> int:
    """A port that is free now, and so is the next."""
    while True:
        with socket.socket() as one, socket.socket() as other:
            one.bind(("127.0.0.1", 0))
            port: int = one.getsockname()[1]
            try:
                other.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return port
