"""The server behind a proxy of MCP: what it is told of us."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from turnlock.guards.mcp.program import program


def test_d_55_a_server_is_not_told_which_journal_is_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All else of our environment it has."""
    monkeypatch.setenv("TURNLOCK_DB", "postgresql://me:hunter2@db/agents")
    monkeypatch.setenv("BANK", "1")
    told = tmp_path / "told"
    writes = f"import os; open({str(told)!r}, 'w').write(repr(dict(os.environ)))"

    async def started() -> None:
        async with program([sys.executable, "-c", writes]):
            for _ in range(6_000):
                if await asyncio.to_thread(lambda: told.exists() and told.read_text()):
                    break
                await asyncio.sleep(0.01)

    asyncio.run(started())
    seen = told.read_text(encoding="utf-8")
    assert "hunter2" not in seen
    assert "'BANK': '1'" in seen
    assert os.environ["TURNLOCK_DB"].endswith("agents")
