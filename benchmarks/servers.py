"""Servers of benchmarks: processes of their own, which end with their standard input."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

if TYPE_CHECKING:
    from tests.postgres.cluster import Cluster

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))  # for the servers of the tests


@contextmanager
def served(script: str, folder: Path, size: int) -> Generator[int]:
    """Start a script of this folder on a folder of data and a size; yield the port it prints."""
    with subprocess.Popen(  # noqa: S603 - our own
        [sys.executable, str(HERE / script), str(folder), str(size)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        if process.stdin is None or process.stdout is None:
            raise AssertionError
        yield json.loads(process.stdout.readline())["port"]
        process.stdin.close()


@contextmanager
def postgres_cluster(**settings: str) -> Generator[Cluster]:
    """Begin a PostgreSQL server as the tests have, but one that waits for its disk: a real one."""
    from tests.postgres import cluster  # noqa: PLC0415 - no other benchmark needs it

    with (
        patch.object(cluster, "MEMORY", HERE / "no memory"),
        cluster.cluster(**{**cluster.SAFE, **settings}) as server,
    ):
        yield server
