"""Stored records of other versions: older ones are upgraded, newer ones are refused."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from turnlock.engine.kernel import Kernel
from turnlock.engine.snapshot import snapshot_from_json
from turnlock.lifecycle.phases import READY, Phase
from turnlock.models import codec
from turnlock.models.calls import Call
from turnlock.models.codec import (
    VERSION,
    fact_from_json,
    read_delivery,
    record_from_json,
    to_json,
)
from turnlock.models.deliveries import Claim, Decide, Lose, OpenTurn, Report
from turnlock.models.errors import InvalidValue, NewerVersion
from turnlock.models.facts import TurnSealed
from turnlock.models.run import Run

SEALED: dict[str, Any] = {
    "type": "TURN_SEALED",
    "run_id": "r",
    "sequence": 1,
    "commit": 1,
    "at": 0.0,
    "turn_id": "T",
}


@pytest.mark.parametrize("extra", [{}, {"version": VERSION}])
def test_a_line_without_a_version_is_taken_for_a_current_one(extra: dict[str, Any]) -> None:
    fact = fact_from_json(json.dumps({**extra, **SEALED}))

    assert fact == TurnSealed(run_id="r", sequence=1, commit=1, at=0.0, turn_id="T")


@pytest.mark.parametrize("version", [0, -1, VERSION + 1, 10**30, "1", True, False, 1.0, [], {}])
def test_any_other_version_is_refused(version: Any) -> None:
    """One from the future above all: what it means is not for this code to guess."""
    for read_line in (fact_from_json, partial(record_from_json, TurnSealed)):
        with pytest.raises(InvalidValue) as raised:
            read_line(json.dumps({**SEALED, "version": version}))
        assert raised.value.place == "version"
        assert "is not a version that this turnlock reads" in raised.value.cause
        assert raised.value.fix.endswith(f"a record of version 1 … {VERSION}")
        is_newer = type(version) is int and version > VERSION
        assert isinstance(raised.value, NewerVersion) is is_newer


def test_only_what_is_stored_has_a_version() -> None:
    """On the wire it is an unknown field."""
    with pytest.raises(InvalidValue, match=r"^version: is no known field here"):
        read_delivery({"type": "tick", "version": 1})


@pytest.mark.parametrize("text", ["[]", "5", "null", '"x"'])
def test_a_line_is_an_object(text: str) -> None:
    with pytest.raises(InvalidValue, match=r"^value: .* is no JSON object"):
        fact_from_json(text)


def rename_turn(raw: dict[str, Any]) -> dict[str, Any]:
    """Version 1 called it `turn`."""
    return {"turn_id" if name == "turn" else name: value for name, value in raw.items()}


def start_at_one(raw: dict[str, Any]) -> dict[str, Any]:
    """Version 2 counted from 0."""
    return {**raw, "sequence": raw["sequence"] + 1, "commit": raw["commit"] + 1}


def test_older_records_are_upgraded_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "VERSION", 3)
    monkeypatch.setattr(codec, "UPGRADES", {1: rename_turn, 2: start_at_one})
    first = {"type": "TURN_SEALED", "run_id": "r", "sequence": 0, "commit": 0, "at": 0.0}
    wanted = TurnSealed(run_id="r", sequence=1, commit=1, at=0.0, turn_id="T")

    assert fact_from_json(json.dumps({**first, "turn": "T", "version": 1})) == wanted
    assert fact_from_json(json.dumps({**first, "turn_id": "T", "version": 2})) == wanted
    assert fact_from_json(json.dumps({**SEALED, "version": 3})) == wanted
    assert fact_from_json(json.dumps(SEALED)) == wanted
    assert json.loads(to_json(wanted))["version"] == 3
    for version in (0, 4):
        with pytest.raises(InvalidValue, match=r"^version: .* a record of version 1 … 3$"):
            fact_from_json(json.dumps({**SEALED, "version": version}))


def paint(raw: dict[str, Any]) -> dict[str, Any]:
    return {**raw, "colour": "red"}


def test_an_upgrade_is_held_to_the_current_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it leaves behind is an unknown field like any other."""
    monkeypatch.setattr(codec, "VERSION", 2)
    monkeypatch.setattr(codec, "UPGRADES", {1: paint})

    with pytest.raises(InvalidValue, match=r"^colour: is no known field here"):
        fact_from_json(json.dumps({**SEALED, "version": 1}))


def test_no_version_has_been_left_behind_yet() -> None:
    """Whoever raises VERSION gives the upgrade from the one before."""
    assert set(codec.UPGRADES) == set(range(1, VERSION))


# ------------------------------------------------------------------------ from version 1 to 2


def in_every_phase() -> Kernel:
    """A kernel whose turn has a call in each phase: two may be claimed, one waits for a person."""
    kernel = Kernel(Run(run_id="r"))
    gated = {"requested", "approved", "denied", "started"}
    ids = [phase.lower() for phase in Phase] + ["free"]
    calls = [
        Call(invocation_id=it, tool_name="pay", arguments={}, requires_approval=it in gated)
        for it in ids
    ]
    kernel.receive(OpenTurn(turn_id="T", calls=tuple(calls)), 0.0)
    for it, approved in (("approved", True), ("denied", False), ("started", True)):
        kernel.receive(Decide(turn_id="T", invocation_id=it, approved=approved), 1.0)
    for it in ("started", "in_doubt", "retry_authorised", "succeeded", "failed"):
        kernel.receive(Claim(turn_id="T", invocation_id=it, attempt=1, worker="w"), 2.0)
    for it in ("in_doubt", "retry_authorised"):
        kernel.receive(Lose(turn_id="T", invocation_id=it, attempt=1), 3.0)
    retry = {"turn_id": "T", "invocation_id": "retry_authorised", "attempt": 1}
    kernel.receive(read_delivery({"type": "resolve", **retry, "as": "retry"}), 4.0)
    kernel.receive(Report(turn_id="T", invocation_id="succeeded", attempt=1, result=1), 5.0)
    kernel.receive(Report(turn_id="T", invocation_id="failed", attempt=1, error="no"), 5.0)
    return kernel


def as_version_1(kernel: Kernel) -> dict[str, Any]:
    """Its snapshot as version 0.1 wrote it: beside the phase, the attempt that is owed, or 0."""
    stored: dict[str, Any] = json.loads(to_json(kernel.snapshot()))
    for member in stored["turn"]["members"]:
        waits = member.pop("requires_approval") and member["phase"] == Phase.REQUESTED
        owed = member["phase"] in READY and not waits
        member["owed"] = member.get("attempt", 0) + 1 if owed else 0
        if member["phase"] == Phase.RETRY_AUTHORISED:
            member["phase"] = Phase.IN_DOUBT
    return {**stored, "version": 1}


def test_a_turn_of_version_1_goes_on_in_every_phase() -> None:
    """Else an update in the middle of a turn runs what nobody approved, or loses the run."""
    kernel = in_every_phase()
    turn = kernel.snapshot().turn
    assert turn is not None
    assert {member.phase for member in turn.members} == set(Phase)

    upgraded = snapshot_from_json(json.dumps(as_version_1(kernel)))
    restored = Kernel.recover(kernel.run, (), snapshot=upgraded)

    assert restored.pending_effects == kernel.pending_effects
    for member in turn.members:
        for attempt in (1, 2):
            claim = Claim(turn_id="T", invocation_id=member.invocation_id, attempt=attempt)
            assert restored.receive(claim, 9.0) == kernel.receive(claim, 9.0)
    asks = Decide(turn_id="T", invocation_id="requested", approved=True)
    assert restored.receive(asks, 9.0) == kernel.receive(asks, 9.0)
