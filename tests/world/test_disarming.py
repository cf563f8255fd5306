"""What an import takes from a run: whatever its facts claim, nothing in it runs unasked (W-72)."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.outcome import gated
from tests.script import Script
from tests.views.played import played

from turnlock import Kernel, Match, Run, Scope
from turnlock.agent.messages import Answer, Prompt, ToolCall, as_note
from turnlock.models.effects import Execute
from turnlock.models.errors import TurnlockError
from turnlock.models.fact import Fact
from turnlock.runtime.journal.ledger import Cursor, Noted
from turnlock.turn.phases import TurnPhase
from turnlock.views.call_view import Waits
from turnlock.views.live import calls_of
from turnlock.views.run_view import RunView
from turnlock.world import disarming
from turnlock.world.disarming import disarm, without_unopened

RUN = Run(run_id="w/c/alice", agent_id="alice", agent_name="alice", kind="world")
SEEDS = st.integers(0, 2**32 - 1)


def disarmed(play: Script) -> tuple[disarming.Disarmed, RunView]:
    """What is taken from the run of a script, and how it stands then."""
    kernel = Kernel.recover(play.run, play.journal)
    taken = disarm(kernel, now=play.clock)
    return taken, RunView.of(play.run, (*play.journal, *taken.facts))


@given(SEEDS)
def test_w_72_after_any_history_nothing_runs_unasked(seed: int) -> None:
    """Whatever has happened: no grant, nothing to claim, nothing that runs or is in doubt."""
    facts: list[Fact] = []
    steps = [*played(seed)]
    run = steps[0][0].run
    chosen = random.Random(seed).randrange(len(steps))
    for _, brought in steps[: chosen + 1]:
        facts += brought
    now = facts[-1].at if facts else 0.0
    kernel = Kernel.recover(run, facts)
    asked = {it.invocation_id for it in calls_of(kernel) if it.waits is Waits.APPROVAL}

    taken = disarm(kernel, now=now)

    view = RunView.of(run, (*facts, *taken.facts))
    left = set[str]() if view.turn is None else {it.invocation_id for it in view.turn.unfinished}
    assert kernel.grants == ()
    assert not any(isinstance(effect, Execute) for effect in view.owed)
    assert left <= asked
    assert all(it.waits is Waits.APPROVAL for it in view.waiting)
    assert view.turn is None or view.turn.phase is not TurnPhase.OPEN
    assert Kernel.recover(run, (*facts, *taken.facts)).snapshot() == kernel.snapshot()
    assert disarm(kernel, now=now).facts == ()


def test_w_72_each_kind_of_call() -> None:
    """Who waits for a person waits on; what nobody here has allowed fails, as the model is told."""
    play = Script(RUN)
    play.opens(
        "t1", gated("waits", "pay"), gated("approved"), "free", "begun", "lost", "again", "done"
    )
    play.approves("approved", Scope.SESSION, Match.TOOL)
    for name in ("begun", "lost", "again", "done"):
        play.claims(name)
    play.loses("lost")
    play.loses("again")
    play.retries("again")
    play.reports("done", {"ok": True})

    taken, view = disarmed(play)

    assert (taken.revoked, taken.rejected, taken.lost) == (1, 2, 3)
    found = {
        it.invocation_id: it.outcome.error if it.outcome else None
        for it in (view.turn.calls if view.turn else ())
    }
    assert found == {
        "waits": None,
        "approved": disarming.REJECTED,
        "free": disarming.REJECTED,
        "begun": disarming.LOST,
        "lost": disarming.LOST,
        "again": disarming.LOST,
        "done": None,
    }
    assert [it.invocation_id for it in view.waiting] == ["waits"]


def test_w_72_a_turn_that_lacks_calls_is_sealed_as_it_is() -> None:
    """Else a host would add what the answer has besides, and run what needs no approval (W-58)."""
    play = Script(RUN)
    play.opens("t1", gated("a"), sealed=False)
    _, view = disarmed(play)
    assert view.turn is not None
    assert view.turn.phase is TurnPhase.SEALED
    assert [it.invocation_id for it in view.waiting] == ["a"]


def test_w_72_a_turn_that_is_being_stopped_is_over() -> None:
    play = Script(RUN)
    play.opens("t1", "a", gated("b"))
    play.claims("a")
    play.interrupts(grace=60)
    _, view = disarmed(play)
    assert view.turn is None
    assert view.recent[-1].interrupted


def test_what_cannot_be_taken_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is imported where something would be left."""
    monkeypatch.setattr(disarming, "ROUNDS", 1)
    play = Script(RUN)
    play.opens("t1", "a")
    with pytest.raises(TurnlockError, match="cannot be taken"):
        disarmed(play)


def answer(*names: str) -> Answer:
    """An answer that asks for these tools."""
    asked = tuple(ToolCall(call_id=None, tool_name=it, arguments={}) for it in names)
    return Answer(text="so", calls=asked)


def noted(*said: tuple[str, Prompt | Answer]) -> list[Noted]:
    """The notes of what was said, under these ids."""
    return [
        Noted(
            cursor=Cursor(0, part),
            note=as_note(it, name=name, at=1.0, is_part=name.startswith("part/")),
        )
        for part, (name, it) in enumerate(said, 1)
    ]


def kept(notes: list[Noted], *turns: str) -> list[str | None]:
    """The ids of the notes that are left where these turns were opened."""
    play = Script(RUN)
    for turn in turns:
        play.opens(turn, "a")
        play.claims("a")
        play.reports("a")
    return [it.note.id for it in without_unopened(notes, play.journal)]


def test_w_72_an_answer_whose_turn_was_not_opened_does_not_come_along() -> None:
    """A host would open the turn, and run what its tools let run freely."""
    said = noted(("said/1", Prompt(text="go")), ("said/2", answer("look")))
    assert kept(said) == ["said/1"]
    assert kept(said, "t1") == ["said/1", "said/2"]


def test_w_72_nor_do_parts_of_one() -> None:
    first = (("said/1", Prompt(text="go")), ("said/2", answer("look")))
    parts = (("part/3/1", answer("look")), ("part/3/2", answer("look", "pay")))
    whole = (*first, *parts, ("said/3", answer("look", "pay")))
    assert kept(noted(*first, *parts), "t1") == ["said/1", "said/2"]
    assert kept(noted(*first, *parts), "t1", "t2") == [it for it, _ in (*first, *parts)]
    assert kept(noted(*whole), "t1") == ["said/1", "said/2"]
    assert kept(noted(*whole), "t1", "t2") == [it for it, _ in whole]


def test_w_72_what_is_said_without_calls_comes_along() -> None:
    said = noted(("said/1", Prompt(text="go")), ("said/2", Answer(text="done")))
    assert kept(said) == ["said/1", "said/2"]


def test_w_72_a_sealed_answer_asks_for_calls() -> None:
    """It is sealed because of their arguments; nobody needs the key to leave it behind."""
    (prompt, asks) = noted(("said/1", Prompt(text="go")), ("said/2", answer("look")))
    note = asks.note
    sealed = Noted(
        cursor=asks.cursor,
        note=type(note)(
            domain=note.domain,
            kind=note.kind,
            body={"id": "said/2", "sealed": "AAAA"},
            at=1.0,
            id="said/2",
        ),
    )
    assert kept([prompt, sealed]) == ["said/1"]
    assert kept([prompt, sealed], "t1") == ["said/1", "said/2"]
