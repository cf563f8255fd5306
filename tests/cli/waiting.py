"""Journals with calls that wait or are in doubt, and the commands that `turnlock show` prints."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from turnlock import (
    Acknowledge,
    Call,
    Claim,
    Delivery,
    Fact,
    Lose,
    OpenTurn,
    Report,
    Run,
)
from turnlock.cli.databases import facts_of_db
from turnlock.runtime import SharedRun, SqliteJournal

from .recordings import turnlock

RUN = "agent"


def call(invocation_id: str, tool_name: str, gated: bool = True, **arguments: Any) -> Call:
    return Call(
        invocation_id=invocation_id,
        tool_name=tool_name,
        arguments=arguments,
        requires_approval=gated,
    )


def opened(turn_id: str, *calls: Call, **more: Any) -> OpenTurn:
    return OpenTurn(turn_id=turn_id, calls=calls, **more)


def done(turn_id: str, invocation_id: str) -> list[Delivery]:
    """What comes of an approved call that is the last of its turn."""
    return [
        Claim(turn_id=turn_id, invocation_id=invocation_id, attempt=1),
        Report(turn_id=turn_id, invocation_id=invocation_id, attempt=1, result="done"),
        Acknowledge(turn_id=turn_id),
    ]


def doubted(turn_id: str, invocation_id: str) -> list[Delivery]:
    """What brings a call that needs no approval into doubt."""
    return [
        Claim(turn_id=turn_id, invocation_id=invocation_id, attempt=1),
        Lose(turn_id=turn_id, invocation_id=invocation_id, attempt=1),
    ]


def deliver(
    db: Path | str,
    *deliveries: Delivery,
    run: Run = Run(run_id=RUN),  # noqa: B008 - frozen
) -> None:
    """Have them judged in a run that nobody owns, made if need be; all are accepted."""

    async def work() -> None:
        async with await SqliteJournal.open(Path(db)) as journal:
            await journal.declare(run)
            shared = await SharedRun.open(journal, run.run_id, policies={})
            for verdict in await shared.submit(*deliveries):
                assert verdict.reason is None

    asyncio.run(work())


def facts(db: Path | str, run_id: str = RUN) -> list[Fact]:
    return facts_of_db(str(db), run_id)[1]


def printed(db: Path | str, verb: str, run_id: str = RUN) -> list[list[str]]:
    """The commands of this verb that `turnlock show` prints, as a shell takes them apart."""
    shown = turnlock("show", run_id, "--db", str(db), "--no-facts")
    assert shown.exit_code == 0, shown.output
    found = [shlex.split(line) for line in shown.output.splitlines() if f"turnlock {verb} " in line]
    assert all(it[:2] == ["turnlock", verb] for it in found)
    return [it[1:] for it in found]


def waiting(db: Path | str, run_id: str = RUN) -> list[dict[str, Any]]:
    """What `turnlock show --json` says of the calls that wait."""
    shown = turnlock("show", run_id, "--db", str(db), "--no-facts", "--json")
    told: list[dict[str, Any]] = json.loads(shown.output)["waiting"]
    return told


def as_shown(told: Mapping[str, Any], *, digits: int = 64) -> tuple[str, ...]:
    """The options that say what was shown of a call."""
    return "--turn", told["turn_id"], "--digest", told["arguments_digest"][:digits]
