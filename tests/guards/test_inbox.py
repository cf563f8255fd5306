"""One inbox for all frameworks: processes of their own, one file, one server, a person."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from turnlock import Decide
from turnlock.models.deliveries import Resolution, Resolve
from turnlock.server.client import Client, Judgeable
from turnlock.server.credentials import read_token

from .test_pages import ROOT

PAYING = "examples/guards/inbox_langgraph.py"
BOOKING = "examples/guards/inbox_openai.py"
WITHIN = 300.0
"""Seconds for what takes some, on a machine that does much else: a framework is imported."""


@contextmanager
def started(folder: Path, *command: str, **environment: str) -> Generator[subprocess.Popen[str]]:
    """A process of its own, which is gone afterwards."""
    told = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1", **environment}
    with subprocess.Popen(
        [sys.executable, *command],
        cwd=folder,
        env=told,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def said(process: subprocess.Popen[str]) -> str:
    """All that it says until its end."""
    return process.communicate(timeout=WITHIN)[0]


@contextmanager
def serving(folder: Path) -> Generator[Callable[[], Client]]:
    """`turnlock serve --db agent.db`, which performs nothing, and what makes clients of it."""
    with started(folder, "-m", "turnlock", "serve", "--db", "agent.db", "--port", "0") as server:
        assert server.stdout is not None
        lines = [next(server.stdout) for _ in range(2)]
        assert "performs nothing: people look and decide" in lines[0], lines
        found = re.search(r"http://[^/]*", lines[1])
        assert found is not None
        yield lambda: Client(found[0], token=read_token(str(folder / "agent.db.token")))


async def found(client: Client, run_id: str, phase: str) -> Mapping[str, Any]:
    """The call of a run, once it stands so."""
    give_up = time.monotonic() + WITHIN
    while True:
        listed = {it.run_id for it in (await client.runs(limit=10)).runs}
        view: Mapping[str, Any] = await client.view(run_id) if run_id in listed else {}
        for call in view.get("turn", {}).get("calls", ()):
            if call["phase"] == phase:
                assert view["kind"] == "guard"
                return dict(call)
        assert time.monotonic() < give_up, view
        await asyncio.sleep(0.05)


def yes(call: Mapping[str, Any]) -> Judgeable:
    return Decide(
        turn_id=call["turn_id"],
        invocation_id=call["invocation_id"],
        approved=True,
        arguments_digest=call["arguments_digest"],
    )


def test_a_person_decides_for_two_frameworks_in_one_place(tmp_path: Path) -> None:
    """Both processes wait, are decided about over HTTP, and go on by themselves."""

    async def person(clients: Callable[[], Client]) -> None:
        async with clients() as client:
            pays = await found(client, "invoice-17", "REQUESTED")
            books = await found(client, "trip-4", "REQUESTED")
            assert (await client.runs(limit=10)).waiting == 2
            assert (pays["tool_name"], pays["arguments"]) == ("pay", {"amount": 5})
            assert (books["tool_name"], books["arguments"]) == ("book", {"seat": "4A"})
            assert (await client.deliver("invoice-17", yes(pays))).accepted
            no = Decide(
                turn_id=books["turn_id"], invocation_id="c1", approved=False, reason="too far"
            )
            assert (await client.deliver("trip-4", no)).accepted

    (tmp_path / "examples").symlink_to(ROOT / "examples")
    with (
        serving(tmp_path) as clients,
        started(tmp_path, PAYING, "agent.db") as paying,
        started(tmp_path, BOOKING, "agent.db") as booking,
    ):
        asyncio.run(person(clients))
        assert said(paying) == "invoice-17 waits for a person\npaid 5. The invoice is settled.\n"
        assert said(booking) == "trip-4 waits for a person\nHave a good trip.\n"
    _conforms(tmp_path)


def test_a_person_resolves_the_doubt_of_a_killed_process(tmp_path: Path) -> None:
    """Started again it waits for whoever says what is so, and goes on; it books nothing again."""

    async def approves(clients: Callable[[], Client]) -> None:
        async with clients() as client:
            call = await found(client, "trip-4", "REQUESTED")
            assert (await client.deliver("trip-4", yes(call))).accepted

    async def resolves(clients: Callable[[], Client]) -> None:
        async with clients() as client:
            call = await found(client, "trip-4", "IN_DOUBT")
            happened = Resolve(
                turn_id=call["turn_id"],
                invocation_id=call["invocation_id"],
                attempt=call["attempt"],
                resolution=Resolution.RESULT,
                result="booked 4A",
            )
            assert (await client.deliver("trip-4", happened)).accepted

    (tmp_path / "examples").symlink_to(ROOT / "examples")
    with serving(tmp_path) as clients:
        with started(tmp_path, BOOKING, "agent.db", POWER_CUT="1") as killed:
            asyncio.run(approves(clients))
            said(killed)
            assert killed.returncode == -9
        with started(tmp_path, BOOKING, "agent.db", POWER_CUT="1") as again:  # it would be killed
            asyncio.run(resolves(clients))
            assert said(again).endswith("Have a good trip.\n")
            assert again.returncode == 0
    _conforms(tmp_path)


def _conforms(folder: Path) -> None:
    with started(folder, "-m", "turnlock", "check", "--db", "agent.db") as checked:
        assert "conforms" in said(checked)
        assert checked.returncode == 0
