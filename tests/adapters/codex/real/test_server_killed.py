"""The server killed around an answer, at each step and anywhere, above the real Codex.

Before the claim is kept nothing ran; after it, the call is in doubt or settled; never does it run
again in silence; and a ledger that the command itself writes agrees (section 14, K-33, K-35).
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import pytest

from turnlock.models.facts import (
    ExecutionInDoubt,
    ToolApproved,
    ToolDenied,
    ToolExecutionFailed,
    ToolExecutionStarted,
    ToolExecutionSucceeded,
)

from ....runtime.crash.depth import DEEP
from .conftest import Room, Rooms, append
from .endpoint import command, say, step
from .killing_serve import POINTS
from .served import LOST, RUN, Served, serving

pytestmark = pytest.mark.codex

SANDBOXED: Final = ("--approval-policy", "untrusted")
"""Each command is asked about, and runs in the sandbox once it is approved."""
LATER: Final = (0.0, 0.003, 0.01, 0.03, 0.1)
RANDOM: Final = 120 if DEEP else 12


def of_a_command(rooms: Rooms, *, escalated: bool) -> Room:
    """A room whose model calls a command that says in the ledger that it ran, and then is done."""
    ran = step(command("c1", append("ran"), escalated=escalated))
    return rooms([ran, step(say("done")), step(say("done"))])


def decide_and_lose_it(served: Served, *, approved: bool) -> None:
    """Decide; the answer may be lost with the server."""
    [call] = served.asked()
    with suppress(*LOST):
        served.decide(call, approved)


def restored(served: Served) -> tuple[str, list[str]]:
    """Start anew and restore the run; return how the call stands, and the ledger."""
    served.start()
    told = served.did(f"/{RUN}/restore")
    assert told["session"] == "active", told
    return standing(served), served.room.ledger


def standing(served: Served) -> str:
    """How the one call stands, by the file."""
    facts = served.facts()
    ended = [
        fact
        for fact in facts
        if isinstance(fact, ToolExecutionSucceeded | ToolExecutionFailed | ToolDenied)
    ]
    if ended:
        [end] = ended
        if isinstance(end, ToolExecutionFailed):
            return f"failed: {str(end.error).partition(':')[0]}"
        return type(end).__name__
    return "in doubt" if any(isinstance(fact, ExecutionInDoubt) for fact in facts) else "open"


def agree(served: Served, stands: str, ledger: list[str], *, claimed: bool) -> None:
    """What the file says and what the command has written fit."""
    facts = served.facts()
    assert ledger in ([], ["ran"])
    assert stands in {"in doubt", "failed: never started", "ToolExecutionSucceeded", "ToolDenied"}
    if not claimed:
        assert ledger == [], "it ran, and no claim was kept"
        assert stands in {"failed: never started", "ToolDenied"}
    else:
        assert stands in {"in doubt", "ToolExecutionSucceeded"}
    if stands == "ToolExecutionSucceeded":
        assert ledger == ["ran"]
    assert len([fact for fact in facts if isinstance(fact, ToolExecutionStarted)]) == claimed


def goes_on(served: Served, ledger: list[str]) -> None:
    """The next turn runs nothing of what is past, and neither does anybody else."""
    served.talk("again", doubts="fail")
    assert served.end() == 0, served.errors
    assert served.room.ledger == ledger
    claims = [fact for fact in served.facts() if isinstance(fact, ToolExecutionStarted)]
    assert len(claims) <= 1


def points() -> Iterator[Any]:
    for point in POINTS:
        if point.startswith(("denial", "decline")):
            yield pytest.param(point, False, id=f"deny, {point}")
        else:
            for later in LATER if point in {"claim-kept", "accept-written"} else (0.0,):
                name = f"{point}+{later}" if later else point
                yield pytest.param(name, True, id=f"approve, {name}")


@pytest.mark.parametrize("escalated", [True, False], ids=["escalated", "sandboxed"])
@pytest.mark.parametrize(("point", "approved"), list(points()))
def test_s_21_a_server_killed_at_a_step_of_an_answer_lets_nothing_run_unseen(
    rooms: Rooms, point: str, approved: bool, escalated: bool
) -> None:
    """S-21, S-26, S-52: which steps let it run is known from the file, at each of them."""
    room = of_a_command(rooms, escalated=escalated)
    with serving(room, *(() if escalated else SANDBOXED), killed_at=point) as served:
        served.create()
        decide_and_lose_it(served, approved=approved)
        served.until_killed()
        claimed = ToolExecutionStarted.__name__ in served.kept()
        assert claimed is (approved and not point.startswith(("approval", "claim-unkept")))
        if point in {"approval-unkept", "denial-unkept"}:
            assert not served.kept(ToolApproved, ToolDenied)
        stands, ledger = restored(served)
        agree(served, stands, ledger, claimed=claimed)
        print(f"killed at {point}: {stands}; ran {len(ledger)}")
        goes_on(served, ledger)


@pytest.mark.parametrize("seed", range(2))
def test_s_21_a_server_killed_anywhere_around_an_answer(
    rooms: Rooms, seed: int, record_property: Any
) -> None:
    """As above, at instants that nobody chose."""
    draw = random.Random(seed)
    outcomes: Counter[str] = Counter()
    for _ in range(RANDOM):
        room = of_a_command(rooms, escalated=bool(seed))
        with serving(room, *(() if seed else SANDBOXED)) as served:
            served.create()
            [call] = served.asked()
            kill_soon(served, call, after=draw.uniform(0.0, 0.12))
            claimed = ToolExecutionStarted.__name__ in served.kept()
            stands, ledger = restored(served)
            agree(served, stands, ledger, claimed=claimed)
            outcomes[f"{stands}; ran {len(ledger)}"] += 1
            goes_on(served, ledger)
    record_property("outcomes", dict(outcomes))
    print(f"seed {seed}, {RANDOM} kills: {dict(outcomes)}")


def kill_soon(served: Served, call: dict[str, Any], *, after: float) -> None:
    """Kill the server so many seconds after it was told to approve."""

    def kill() -> None:
        time.sleep(after)
        served.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    with suppress(*LOST):
        served.decide(call, approved=True)
    killer.join()
