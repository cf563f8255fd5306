"""One shop over HTTP for all tests of a module: starting one costs more than the tests."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from .hosting import Shop, shop_over_http


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Generator[Shop]:
    """Start it, and end it."""
    with shop_over_http(tmp_path_factory.mktemp("shop") / "ledger") as it:
        yield it
