"""Snapshots: equal to the fold of the journal, written and read by the codec (K-2)."""

from __future__ import annotations

import random

import pytest

from turnlock import CorruptJournal, Fact, InvalidValue, Kernel, Limits, OpenTurn, Run
from turnlock.cli.wire import RECOVER
from turnlock.engine.fingerprint import fingerprint
from turnlock.engine.snapshot import Snapshot
from turnlock.models.codec import read, read_delivery, record_from_json, to_json

from ..scripts import run, script


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
    assert fingerprint(kernel.state) == fingerprint(restored.state)
    assert kernel.state.earliest_deadline == restored.state.earliest_deadline


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
