"""What the closure finds, and how short it shows it: each planted fault by its own check."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import operator
from typing import Any

import attrs
import pytest

from turnlock import Kernel
from turnlock.engine import admission, effects, fingerprint, recovery
from turnlock.engine.kernel import state_of
from turnlock.engine.state import State
from turnlock.lifecycle import table
from turnlock.lifecycle.phases import Guard, Phase
from turnlock.models.inputs import Input
from turnlock.models.reasons import Reason
from turnlock.models.record import changed
from turnlock.turn.memory import Memory
from turnlock.verification.alphabet.life_scopes import ALIKE, LEASES, OUTCOMES
from turnlock.verification.alphabet.scope import Scope
from turnlock.verification.alphabet.symbols import call, of_call, open_turn, symbols
from turnlock.verification.alphabet.turn_scopes import LIMITS
from turnlock.verification.closure import counterexample, kernel_player
from turnlock.verification.closure import explore as exploring
from turnlock.verification.closure.technique import explore
from turnlock.verification.errors import HarnessFailed
from turnlock.verification.findings import NO_ANSWER, Finding
from turnlock.verification.oracle import moment
from turnlock.verification.oracle.key import key_of
from turnlock.verification.oracle.oracle import Oracle

SMALL = Scope(
    name="small",
    about="two calls, of which one is never claimed",
    run={"run_id": "r"},
    symbols=symbols(
        [
            open_turn("T", call("a"), call("b")),
            of_call("claim", "T", "a", attempt=1),
            of_call("report", "T", "a", result=1),
            of_call("report", "T", "a", result=True),
            of_call("lose", "T", "a"),
        ]
    ),
)


def found(scope: Scope) -> Finding:
    """The one finding of an exploration that stopped at it."""
    (finding,) = explore(scope).findings
    return finding


def never(*_: object, **__: object) -> bool:
    """Say no."""
    return False


def raises(*_: object) -> None:
    """Stand in for what breaks."""
    raise KeyError("missing")


def plant_row(monkeypatch: pytest.MonkeyPatch, key: tuple[Any, Any, str], **fields: Any) -> None:
    """Let one row of the invocation table say something else."""
    monkeypatch.setitem(table._TABLE, key, changed(table._TABLE[key], **fields))


def test_a_wrong_reason_is_shown_in_as_few_steps_as_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Opened, claimed, rejected: in fewer steps nothing is STARTED."""
    plant_row(monkeypatch, (Phase.STARTED, Input.REJECT, ""), reason=Reason.NOT_STARTED)

    finding = found(OUTCOMES)

    assert [step["type"] for step in finding.script] == ["open_turn", "claim", "reject"]
    assert finding.minimal
    assert finding.expected["reason"] == "already_started"
    assert finding.got["reason"] == "not_started"
    assert finding.run == OUTCOMES.run


def test_a_script_replays_on_the_oracle_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It stands for itself: no relative value is left in it, and every step has its time."""
    row = (Phase.IN_DOUBT, Input.CLAIM, "")
    plant_row(monkeypatch, row, reason=Reason.ALREADY_STARTED)

    finding = found(LEASES)

    oracle = Oracle(finding.run)
    *_, last = [oracle.receive(step) for step in finding.script]
    assert last == finding.expected


def test_no_step_can_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Minimal means it: without any one of its steps the last is answered as it should be."""
    monkeypatch.setattr(Memory, "holds_turn", never)

    finding = found(LIMITS)

    for skipped in range(len(finding.script) - 1):
        shorter = [step for place, step in enumerate(finding.script) if place != skipped]
        scope = attrs.evolve(
            LIMITS, symbols=symbols([{k: v for k, v in s.items() if k != "now"} for s in shorter])
        )
        assert all(len(it.script) >= len(finding.script) for it in explore(scope).findings)


def test_numbers_that_python_holds_equal_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that takes True for the 1 that was reported is found."""
    monkeypatch.setattr(admission, "same_json", operator.eq)

    finding = found(SMALL)

    assert finding.expected["reason"] == "conflicting_duplicate"


def test_what_the_kernel_raises_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """K-8: everything expected in operation is a verdict."""
    monkeypatch.delitem(table._TABLE, (Phase.STARTED, Input.LOSE, ""))

    finding = found(SMALL)

    assert finding.rule == NO_ANSWER
    assert "raised KeyError" in finding.got
    assert "KeyError" in finding.message
    assert [step["type"] for step in finding.script] == ["open_turn", "claim", "lose"]


def test_what_the_oracle_raises_is_the_kits_own_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """A harness error is never reported as a failure of what is tested."""
    monkeypatch.setattr(moment, "added", raises)

    with pytest.raises(HarnessFailed, match="small"):
        explore(SMALL)


def plant_secret_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a second claim, which is refused, name another worker."""
    real = Kernel.receive

    def receive(self: Kernel, delivery: Any, now: float) -> Any:
        verdict = real(self, delivery, now)
        turn = state_of(self).turn
        if verdict.reason is Reason.ALREADY_STARTED and turn is not None:
            turn.order[0].worker = "somebody"
        return verdict

    monkeypatch.setattr(Kernel, "receive", receive)


def test_a_refusal_that_changes_the_state_in_secret_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """K-2: nothing in its receipt shows it, but the key does."""
    plant_secret_change(monkeypatch)

    finding = found(SMALL)

    assert finding.rule == "K-2"
    assert finding.script[-1]["type"] == "claim"


def test_so_it_is_where_a_merged_state_is_fired_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """There, too, what is refused is fired at no copy, and the key is looked at in the end."""
    opened_and_claimed = [0, 1]
    player = kernel_player.KernelPlayer(SMALL.run)
    right = counterexample.answers(SMALL, player, opened_and_claimed)
    plant_secret_change(monkeypatch)
    finding = counterexample.answers(
        SMALL, kernel_player.KernelPlayer(SMALL.run), opened_and_claimed
    )

    assert isinstance(right, list)
    assert len(right) == len(SMALL.symbols)
    assert isinstance(finding, Finding)
    assert finding.rule == "K-2"
    assert [step["type"] for step in finding.script] == ["open_turn", "claim", "claim"]


def test_recovery_that_forgets_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """K-2: the fold of the journal is the state that was."""
    real = recovery.replay

    def replay(state: State, facts: Any) -> int:
        dropped = real(state, facts)
        for invocation in state.turn.order if state.turn is not None else ():
            invocation.decision = None
        return dropped

    monkeypatch.setattr(recovery, "replay", replay)

    assert found(ALIKE).rule == "K-2"


def test_recovery_that_raises_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The journal that a run has written is one that can be read."""
    monkeypatch.setattr(recovery, "replay", raises)

    finding = found(SMALL)

    assert (finding.rule, len(finding.script)) == ("K-2", 1)


def test_effects_that_are_not_those_added_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """K-3, even where the receipt is right: what is owed must be what was returned."""

    def pending(state: State) -> tuple[Any, ...]:
        return effects.pending(state)[1:]

    monkeypatch.setattr(kernel_player, "pending", pending)

    assert found(SMALL).rule == "K-3"


# ------------------------------------------------------------------------------------------- keys


def without_worker(state: State, now: float) -> Any:
    """The kernel's key of a state, but for who holds an invocation."""
    whole, rows = fingerprint.behaviour(state, now)
    return whole, tuple(row[:10] + row[11:] if len(row) == 12 else row for row in rows)


def oracle_without_worker(state: dict[str, Any], now: float) -> Any:
    """The oracle's, likewise."""
    whole, rows = key_of(state, now)
    return whole, tuple(row[:9] + row[10:] if len(row) == 11 else row for row in rows)


def with_sequence(state: State, now: float) -> Any:
    """The kernel's key of a state, and the number of its latest fact."""
    whole, rows = fingerprint.behaviour(state, now)
    return (*whole, state.sequence), rows


def test_a_key_that_forgets_is_found_by_what_it_hides(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two keys tell the same states apart, or one of them is wrong."""
    monkeypatch.setattr(kernel_player, "behaviour", without_worker)

    assert found(LEASES).message == exploring.FORGETFUL[1]


def test_a_key_that_tells_too_much_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sequence numbers in a key would never let it end."""
    monkeypatch.setattr(kernel_player, "behaviour", with_sequence)

    assert found(LEASES).message == exploring.TALKATIVE[1]


def test_keys_that_forget_alike_are_found_along_another_history(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The hole of closure: states are merged that answer differently. A sample shows it."""
    monkeypatch.setattr(kernel_player, "behaviour", without_worker)
    for module in (exploring, counterexample):
        monkeypatch.setattr(module, "key_of", oracle_without_worker)

    finding = found(LEASES)

    assert "along another way" in finding.message
    assert finding.script[-1]["type"] == "claim"


# --------------------------------------------------------------------------------------- symmetry


def test_symmetry_comes_to_the_same_verdict_with_fewer_states() -> None:
    """A healthy kernel holds either way."""
    three = attrs.evolve(
        ALIKE, symbols=tuple(s for s in ALIKE.symbols if "/c" not in s.name and "T2" not in s.name)
    )
    with_names = explore(attrs.evolve(three, alike=frozenset()))
    nameless = explore(three)

    assert with_names.holds
    assert nameless.holds
    assert nameless.states < with_names.states
    assert nameless.rows.keys() == with_names.rows.keys()


def test_symmetry_finds_what_is_found_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault that concerns any one invocation shows in a script of the same length."""
    row = (Phase.APPROVED, Input.DENY, "")
    plant_row(monkeypatch, row, reason=Reason.DUPLICATE)

    nameless, with_names = found(ALIKE), found(attrs.evolve(ALIKE, alike=frozenset()))

    assert len(nameless.script) == len(with_names.script) == 3
    assert nameless.rule == with_names.rule


def test_exploring_goes_on_after_a_finding_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each finding beside the first is one more; the rest of the states is still met."""
    plant_row(
        monkeypatch, (Phase.STARTED, Input.CLAIM, Guard.OTHER_WORKER), reason=Reason.DUPLICATE
    )
    plant_row(monkeypatch, (Phase.IN_DOUBT, Input.LOSE, ""), reason=Reason.NOT_STARTED)

    exploration = explore(SMALL, stop_at_first=False)

    assert len(exploration.findings) == 2
    assert exploration.complete
    assert not exploration.holds


def test_nothing_is_written_down_of_what_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripts are for findings, and receipts for what is compared; merged states are fired at, too.

    The control: of a fault, both are written.
    """
    written: list[str] = []

    def noted(player: kernel_player.KernelPlayer, reply: Any) -> dict[str, Any]:
        written.append("receipt" if reply.facts or reply.effects else "bare receipt")
        return receipt(player, reply)

    class Noting(counterexample.Replay):
        @property
        def script(self) -> list[dict[str, Any]]:
            written.append("script")
            return super().script

    receipt = kernel_player.KernelPlayer.receipt
    monkeypatch.setattr(kernel_player.KernelPlayer, "receipt", noted)
    monkeypatch.setattr(counterexample, "Replay", Noting)
    assert not explore(OUTCOMES).findings
    assert {*written} == {"receipt"}
    plant_row(monkeypatch, (Phase.STARTED, Input.REJECT, ""), reason=Reason.NOT_STARTED)
    assert found(OUTCOMES)
    assert {*written} >= {"script"}
