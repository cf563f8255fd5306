"""The clients of others, and a real server that they talk with; once for each file of tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path

import pytest

from .drivers import Driver, driving
from .installed import HERE, NotReached, installed
from .served import Clients, served

Drive = Callable[[str], Driver]


def clients(source: Path = HERE) -> Path:
    """Where the clients are installed. In CI they are not missing; elsewhere the tests skip."""
    try:
        return installed(source)
    except NotReached as missing:
        if os.environ.get("CI"):
            pytest.fail(str(missing))
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def node_modules() -> Path:
    """The folder with the clients' `node_modules`."""
    return clients()


@pytest.fixture(scope="module")
def drive(node_modules: Path) -> Generator[Drive]:
    """Run a driver of this folder by its name; the same one for all of a file."""
    running: dict[str, Driver] = {}
    with ExitStack() as stack:

        def driven(name: str) -> Driver:
            if name not in running:
                running[name] = stack.enter_context(driving(name, node_modules))
            return running[name]

        yield driven


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Clients]:
    """A real server, for all of a file; each scenario has a run of its own."""
    with served(Path(tmp_path_factory.mktemp("served"))) as it:
        yield it
