"""Snapshots: equal to the fold of the journal, written and read by the codec (K-2)."""

from __future__ import annotations

import random
from typing import Any

import pytest

from turnlock import (
    Call,
    Claim,
    CorruptJournal,
    Decide,
    Fact,
    InvalidValue,
    Kernel,
    Limits,
    OpenTurn,
    Reject,
    Revoke,
    Run,
    Scope,
)
from turnlock.engine.fingerprint import fingerprint
from turnlock.engine.kernel import state_of
from turnlock.engine.snapshot import Snapshot, snapshot_from_json
from turnlock.models.codec import read, read_delivery, record_from_json, to_json
from turnlock.models.record import changed
from turnlock.wire.plain import RECOVER

from ..random_scripts import run, script


def played(seed: int, length: int = 40) -> tuple[Kernel, list[Fact]]:
    """A kernel after a random script, and its journal."""
    rng = random.Random(seed)
    configuration = run(rng)
    kernel = Kernel(read(Run, configuration))
    facts: list[Fact] = []
    for raw in script(rng, length, configuration):
        delivery = dict(raw)
        now = delivery.pop("now")
        if delivery["type"] != RECOVER:
            facts += kernel.receive(read_delivery(delivery), now).facts
    return kernel, facts


@pytest.mark.parametrize("seed", range(150))
def test_a_snapshot_equals_the_fold_and_survives_json(seed: int) -> None:
    """Live, folded and restored from JSON: one state, one set of owed effects."""
    kernel, facts = played(seed)

    snapshot = kernel.snapshot()
    folded = Kernel.recover(kernel.run, facts)
    restored = Kernel.recover(
        kernel.run, [], snapshot=record_from_json(Snapshot, to_json(snapshot))
    )

    assert folded.snapshot() == snapshot == restored.snapshot()
    assert kernel.pending_effects == folded.pending_effects == restored.pending_effects
    assert fingerprint(state_of(kernel)) == fingerprint(state_of(restored))
    assert kernel.earliest_deadline == restored.earliest_deadline


def test_a_restored_run_goes_on_like_the_one_it_was_taken_from() -> None:
    """The same script, half of it after a restart, gives the same facts."""
    for seed in range(40):
        rng = random.Random(seed)
        configuration = run(rng)
        live = Kernel(read(Run, configuration))
        restarted = Kernel(live.run)
        for raw in script(rng, 60, configuration):
            if raw["type"] == RECOVER:
                continue
            delivery = dict(raw)
            now = delivery.pop("now")
            built = read_delivery(delivery)
            text = to_json(restarted.snapshot())
            restarted = Kernel.recover(live.run, [], snapshot=record_from_json(Snapshot, text))

            assert restarted.receive(built, now) == live.receive(built, now)


def test_a_snapshot_is_built_from_its_text() -> None:
    """The function for those who import no codec says the same as the codec."""
    kernel, _ = played(0)
    text = to_json(kernel.snapshot())

    assert snapshot_from_json(text) == snapshot_from_json(text.decode()) == kernel.snapshot()


def test_another_run_s_snapshot_is_refused() -> None:
    """The configuration belongs to the run: identity and limits must be the same."""
    snapshot = Kernel(Run(run_id="r", limits=Limits(calls=3))).snapshot()

    with pytest.raises(CorruptJournal, match="give the configuration that the run had"):
        Kernel.recover(Run(run_id="r"), [], snapshot=snapshot)


def test_a_snapshot_is_read_strictly() -> None:
    """A wrong field is refused with its place."""
    kernel = Kernel(Run(run_id="r"))
    kernel.receive(OpenTurn(turn_id="T1", calls=(), sealed=False), 0.0)
    text = to_json(kernel.snapshot()).replace(b'"OPEN"', b'"AJAR"')

    with pytest.raises(InvalidValue) as caught:
        record_from_json(Snapshot, text)

    assert caught.value.place == "turn.phase"


def full() -> Snapshot:
    """A snapshot with all there is: two closings, two grants, a pending, a running, a done call."""
    kernel = Kernel(Run(run_id="r"))
    for turn in ("T1", "T2"):
        kernel.receive(OpenTurn(turn_id=turn, calls=(call("a", gated=True),)), 0.0)
        kernel.receive(
            Decide(turn_id=turn, invocation_id="a", approved=True, scope=Scope.SESSION), 0.0
        )
        kernel.receive(Reject(turn_id=turn, invocation_id="a", error="no"), 0.0)
        kernel.receive(Revoke(grant_id="grant/r/1"), 0.0)
    calls = (call("a", gated=True, tool="rm"), call("b"), call("c"))
    kernel.receive(OpenTurn(turn_id="T3", calls=calls), 0.0)
    kernel.receive(Claim(turn_id="T3", invocation_id="b", attempt=1, worker="w", lease=9.0), 0.0)
    kernel.receive(Reject(turn_id="T3", invocation_id="c", error="no"), 0.0)
    return kernel.snapshot()


def call(name: str, *, gated: bool = False, tool: str = "ls") -> Call:
    return Call(invocation_id=name, tool_name=tool, arguments={}, requires_approval=gated)


FULL = full()


def with_turn(**fields: Any) -> Snapshot:
    assert FULL.turn is not None
    return changed(FULL, turn=changed(FULL.turn, **fields))


def with_member(index: int, **fields: Any) -> Snapshot:
    assert FULL.turn is not None
    members = list(FULL.turn.members)
    members[index] = changed(members[index], **fields)
    return with_turn(members=tuple(members))


def impossible() -> dict[str, Snapshot]:
    assert FULL.turn is not None
    asked, running, done = FULL.turn.members
    grant = FULL.grants[0]
    closing = FULL.closings[0]
    return {
        "closed twice": changed(FULL, closings=(closing, closing)),
        "a pair closed twice": changed(
            FULL, closings=(changed(closing, invocation_ids=("a", "a")),)
        ),
        "grants out of order": changed(FULL, grants=(grant, grant)),
        "grants not yet issued": changed(FULL, grants_issued=0),
        "another's grant id": changed(FULL, grants=(changed(grant, grant_id="x"),)),
        "no time": changed(FULL, at=None),
        "a closed turn": with_turn(phase="SETTLED"),
        "grace without interrupt": with_turn(grace_until=1.0),
        "interrupt without grace": with_turn(phase="INTERRUPTING"),
        "interrupted, and not denied": with_turn(phase="INTERRUPTING", grace_until=1.0),
        "one id twice": with_turn(members=(asked, asked)),
        "all terminal": with_turn(members=(done,)),
        "waiting, unasked": with_member(0, digest=None),
        "approved with a deadline": with_member(0, phase="APPROVED", digest=None, deadline=1.0),
        "running, never started": with_member(1, attempt=0),
        "approved, never gated": with_member(
            0, phase="APPROVED", digest=None, requires_approval=False
        ),
        "observed, and a retry authorised": with_member(
            1, phase="RETRY_AUTHORISED", deadline=None, worker=None, observed=True
        ),
        "interrupted, and a retry authorised": with_turn(
            phase="INTERRUPTING",
            grace_until=1.0,
            members=(
                changed(running, phase="RETRY_AUTHORISED", deadline=None, worker=None),
                done,
            ),
        ),
        "doubtful, with a worker": with_member(1, phase="IN_DOUBT", deadline=None),
        "done without an outcome": with_member(2, outcome=None),
        "running, with an outcome": with_member(1, outcome=done.outcome),
        "running without arguments": with_member(1, arguments=None),
        "running, with a digest": with_member(1, digest=asked.digest),
        "a bare start": with_member(0, phase="STARTED", digest=None, worker=running.worker),
    }


@pytest.mark.parametrize("name", impossible())
def test_a_snapshot_that_no_run_can_be_in_is_refused(name: str) -> None:
    """Each field may be right by itself: what they say together must be possible."""
    Kernel.recover(FULL.run, [], snapshot=FULL)

    with pytest.raises(CorruptJournal, match="the snapshot says"):
        Kernel.recover(FULL.run, [], snapshot=impossible()[name])


def test_an_interrupt_that_left_a_call_ready_is_told() -> None:
    """K-53: what is wrong is said, not only that something is."""
    with pytest.raises(CorruptJournal) as told:
        Kernel.recover(FULL.run, [], snapshot=impossible()["interrupted, and not denied"])

    assert told.value.cause == "the snapshot says that an interrupt left a call which may start"
