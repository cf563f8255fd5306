"""A pilot that waits for what was asked for, and not for the processor to be idle."""

from __future__ import annotations

import pytest
from textual import app, pilot
from textual._context import active_app


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Idleness says nothing on a machine that does other work, and costs 20 ms at the least."""

    async def handled(*_seconds: float) -> None:
        for _ in range(2):  # what is handled may bring what is to be handled
            await pilot.Pilot(active_app.get())._wait_for_screen()  # pyright: ignore[reportPrivateUsage] - it has no other

    monkeypatch.setattr(app, "wait_for_idle", handled)
    monkeypatch.setattr(pilot, "wait_for_idle", handled)
