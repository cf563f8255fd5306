"""Phrases: every fact, delivery, effect, reason and phase has words, short and long."""

from __future__ import annotations

from typing import Any

import pytest

from turnlock import Decide, FactType, Reason, Scope
from turnlock.lifecycle.phases import Phase
from turnlock.models.codec import write
from turnlock.models.deliveries import DELIVERIES
from turnlock.models.facts import FACTS
from turnlock.turn.phases import TurnPhase
from turnlock.views.delivery_phrases import DELIVERED, delivered
from turnlock.views.meanings import PHASES, REASONS, refused, stands
from turnlock.views.phrases import about, answered, asked, happened, phase_of
from turnlock.views.run_view import RunView
from turnlock.views.wording import LONG, SHORT, LongWording, Wording, value_text

from ..outcome import gated
from ..script import Script
from .played import played

HOSTILE = "\x1b[31m\u202e" + "x" * 500


def test_everything_that_happens_has_words() -> None:
    """Whatever its optional fields: no field names, no braces, no None."""
    seen: set[FactType] = set()
    for seed in range(60):
        for kernel, facts in played(seed):
            for fact in facts:
                for wording in (SHORT, LONG):
                    told = happened(fact, wording)
                    assert told
                    assert "None" not in told
                seen.add(fact.type)
            for effect in kernel.pending_effects:
                assert asked(effect).startswith(str(effect.type))
                assert asked(effect, LONG).startswith(str(effect.type))
    assert seen == set(FactType)


def test_every_delivery_type_has_words() -> None:
    """Those of the closed list, and what harnesses send besides."""
    assert {kind.type for kind in DELIVERIES} | {"recover", "digest"} == DELIVERED


DELIVERY: list[tuple[dict[str, Any], str, str]] = [
    (
        {"type": "tick"},
        "tick",
        "time passes",
    ),
    (
        {"type": "claim", "turn_id": "T1", "invocation_id": "a", "attempt": 2, "lease": 1.5},
        "claim a · attempt 2 · lease 1.5 s",
        "claim a (turn T1), attempt 2, lease 1.5 s",
    ),
    (
        {"type": "report", "invocation_id": "a", "result": None},
        "report a · result null · no turn named",
        "report a (no turn named): result null",
    ),
    (
        {
            "type": "decide",
            "turn_id": "T2",
            "invocation_id": "a",
            "approved": True,
            "scope": "session",
            "match": "tool",
            "decided_by": "Ann",
            "arguments_digest": "d1",
        },
        "approve a · for the session, whatever the arguments · by Ann · of turn T2",
        (
            "approve a (turn T2) for the session, whatever the arguments, "
            "of what has the digest d1, by Ann"
        ),
    ),
    (
        {"type": "lose", "turn_id": "T1", "invocation_id": "a", "run_id": "other"},
        "lose a · for run other",
        "lose a (turn T1): its executor is gone, for run other",
    ),
    (
        {
            "type": "open_turn",
            "turn_id": "T1",
            "sealed": False,
            "calls": [
                {
                    "invocation_id": "a",
                    "tool_name": "ls",
                    "arguments": {"x": 1},
                    "requires_approval": True,
                    "approval_timeout": 60,
                },
                {"invocation_id": "b", "tool_name": "rm", "arguments": {}},
            ],
        },
        "open turn T1 · ls a (to be approved), rm b · more calls may come",
        'open turn T1; a: ls({"x": 1}), to be approved within 60 s; b: rm(), more calls may come',
    ),
    ({"type": "unheard of"}, '{"type": "unheard of"}', '{"type": "unheard of"}'),
]


@pytest.mark.parametrize(("delivery", "short", "long"), DELIVERY)
def test_a_delivery_in_words(delivery: dict[str, Any], short: str, long: str) -> None:
    assert delivered(delivery, active="T1") == short
    assert delivered(delivery, LONG) == long


def test_a_delivery_that_was_built_is_told_like_its_wire_form() -> None:
    """Hosts have objects, harnesses have JSON: one wording for both."""
    built = Decide(turn_id="T1", invocation_id="a", approved=False, reason="no", decided_by="Ann")

    for wording in (SHORT, LONG):
        assert delivered(built, wording) == delivered(write(built), wording)
    assert delivered(built) == "deny a · by Ann · “no”"


def test_a_story_in_facts() -> None:
    """The short form of a whole turn."""
    play = Script()
    play.opens("T1", gated("a", timeout=60, path="x"))
    play.approves("a", Scope.SESSION, by="Ann")
    play.claims("a", worker="w", lease=5)
    play.reports("a", {"ok": True})

    assert [happened(fact) for fact in play.journal] == [
        "turn T1 opened · epoch 1 · 1 call",
        'approve a? · {"path": "x"} · within 60 s',
        "a approved · by Ann · for the session",
        "grant/r/1 issued · for ls, match exact, scope session",
        "a started · attempt 1 · by w · lease 5 s",
        'a succeeded · {"ok": true}',
        "turn T1 settled",
    ]
    assert happened(play.journal[4], LONG) == "a (turn T1) started, attempt 1, by w, lease 5 s"
    assert about(play.journal[1]) == "fact 2 TOOL_APPROVAL_REQUESTED, turn T1, invocation a"


def test_the_phase_of_a_fact_is_read_off_the_tables() -> None:
    play = Script()
    play.opens("T1", gated("a"), sealed=False)
    play.interrupts()
    told = [(fact.type, phase_of(fact)) for fact in play.journal]

    assert told == [
        (FactType.TURN_OPENED, TurnPhase.OPEN),
        (FactType.TOOL_APPROVAL_REQUESTED, Phase.REQUESTED),
        (FactType.TURN_INTERRUPTING, TurnPhase.INTERRUPTING),
        (FactType.TOOL_DENIED, Phase.DENIED),
        (FactType.TURN_INTERRUPTED, TurnPhase.INTERRUPTED),
    ]
    play.opens("T2", "b")
    assert phase_of(play.journal[-1]) == TurnPhase.SEALED
    play.claims("b")
    play.reports("b", 1)
    play.acknowledges("T2")
    assert phase_of(play.journal[-1]) == ""


def test_an_answer_in_words() -> None:
    """A receipt of the wire: the verdict, what happened, what is asked; wakes are left out."""
    receipt = {
        "accepted": False,
        "reason": "late",
        "facts": [{"type": "GRANT_EXPIRED", "grant_id": "grant/r/1"}],
        "effects": [{"type": "wake", "at": 1}, {"type": "execute", "invocation_id": "a"}],
    }
    assert answered(receipt) == "refused: late · GRANT_EXPIRED grant/r/1 · execute a"


def test_what_comes_from_outside_is_harmless_and_short() -> None:
    """Whatever is in it, it steers no terminal, and the short form stays short."""
    evil = {"type": "deny", "turn_id": HOSTILE, "invocation_id": HOSTILE, "reason": HOSTILE}
    for kind in DELIVERED:
        told = delivered({**evil, "type": kind, "approved": False, "error": HOSTILE})
        assert told.isprintable()
        assert len(told) < 700
    assert value_text({1}) == "{1}"
    assert LongWording().value({1}) == "{1}"


def test_names_can_be_better() -> None:
    """Whoever knows tools and workers says them: a picture has short names of its own."""

    class Better(Wording):
        """Knows the tool."""

        def call(self, turn_id: str | None, invocation_id: str) -> str:
            return f"ls {invocation_id} of {turn_id}"

        def worker(self, worker: object) -> str:
            return f"worker {worker}"

    claim = {"type": "claim", "turn_id": "T1", "invocation_id": "a", "worker": 7}
    assert delivered(claim, Better()) == "claim ls a of T1 · by worker 7"


def test_every_reason_and_every_phase_has_a_meaning() -> None:
    assert set(REASONS) == set(Reason)
    assert set(PHASES) == set(Phase)
    assert refused(Reason.LATE) == "refused: late"
    assert refused(Reason.LATE, long=True) == "refused: late – its turn has closed"
    assert {kind.type for kind in FACTS} == set(FactType)


def test_where_a_call_stands_in_words() -> None:
    play = Script()
    play.opens("T1", gated("a"), "b")
    view = RunView.of(play.run, play.journal)
    assert view.turn is not None
    assert [stands(call) for call in view.turn.calls] == ["asks for approval", "ready"]
    play.claims("b")
    play.loses("b")
    view = RunView.of(play.run, play.journal)
    assert [stands(call) for call in view.in_doubt] == ["in doubt"]
