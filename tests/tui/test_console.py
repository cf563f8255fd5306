"""The terminal console, driven by textual's pilot on real journals (F-99, F-113)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Button, Input, TextArea

from turnlock import Claim, Decide, FactType, Lose, Report
from turnlock.models.deliveries import Match, Scope
from turnlock.models.facts import ToolApproved, ToolDenied
from turnlock.tui.app import Console
from turnlock.tui.heard import Answered
from turnlock.tui.run_screen import RunScreen
from turnlock.tui.runs_screen import RunsScreen

from ..depth import DEEP
from .consoles import (
    RUN,
    Watching,
    approval,
    call,
    card,
    deliver,
    facts,
    opened,
    screen,
    settled,
    text_of,
    types,
    until,
    watching,
)

Story = Callable[[Console, Pilot[None], Watching, Path], Awaitable[None]]

WEATHER = call("c1", "weather", gated=False, city="Bern")
PAY, PAID = call("c2", account="DE02", amount=1), call("c3", account="x", amount=9)
RAN = (
    Claim(turn_id="t1", invocation_id="c1", attempt=1),
    Report(turn_id="t1", invocation_id="c1", attempt=1, result="sunny"),
)


def tell(tmp_path: Path, story: Story, *deliveries: Any, **options: Any) -> None:
    """Tell a story of a console on the run `refund`, in which two calls wait for approval."""

    async def run() -> None:
        db = tmp_path / "a.db"
        await deliver(db, *(deliveries or (opened(WEATHER, PAY, PAID), *RAN)))
        source = Watching(db)
        async with watching(source, **options) as (console, pilot):
            await story(console, pilot, source, db)

    asyncio.run(run())


def lose(db: Path) -> None:
    """Take the file away."""
    for file in db.parent.glob("a.db*"):
        file.unlink()


def decided(invocation_id: str, *, approved: bool, by: str) -> Decide:
    return Decide(turn_id="t1", invocation_id=invocation_id, approved=approved, decided_by=by)


def test_f_99_a_call_is_approved_by_a_key_and_the_card_says_who_and_folds(tmp_path: Path) -> None:
    async def story(console: Console, pilot: Pilot[None], source: Watching, db: Path) -> None:
        await pilot.press("j", "a")
        await until(pilot, lambda: card(console, "c2").ended)
        (fact,) = [it for it in await facts(db) if isinstance(it, ToolApproved)]
        assert (fact.invocation_id, fact.decided_by, fact.scope) == ("c2", "anna", Scope.ONCE)
        await settled(pilot)
        assert "approved by anna" in text_of(console)
        assert card(console, "c2").has_class("-folded")
        assert not card(console, "c3").ended

    tell(tmp_path, story)


def test_f_99_a_denial_carries_its_reason_and_a_scope_its_grant(tmp_path: Path) -> None:
    async def story(console: Console, pilot: Pilot[None], source: Watching, db: Path) -> None:
        approval(console, "c2").query_one(Input).value = "too much"
        await pilot.press("j", "d")
        await until(pilot, lambda: card(console, "c2").ended)
        approval(console, "c3").scope.value = (Scope.SESSION, Match.TOOL)
        await pilot.press("j", "a")
        await until(pilot, lambda: card(console, "c3").ended)
        kept = await facts(db)
        (denied,) = [it for it in kept if isinstance(it, ToolDenied)]
        assert (denied.reason, denied.decided_by) == ("too much", "anna")
        assert FactType.GRANT_ISSUED in types(kept)

    tell(tmp_path, story)


def test_f_93_typed_text_and_focus_stay_whatever_happens(tmp_path: Path) -> None:
    """Events come, the connection is lost and comes back, the call is decided elsewhere."""

    async def story(console: Console, pilot: Pilot[None], source: Watching, db: Path) -> None:
        reason = approval(console, "c2").query_one(Input)
        reason.focus()
        await pilot.press(*"bec")
        await deliver(db, decided("c3", approved=True, by="bert"))
        await until(pilot, lambda: card(console, "c3").ended)
        await source.let_go()  # a cut: the next look fails, and it is opened anew
        await until(pilot, lambda: screen(console).watched.badge == "off")
        await until(pilot, lambda: screen(console).watched.badge == "live")
        await pilot.press(*"ause")
        assert (console.focused, reason.value) == (reason, "because")
        await deliver(db, decided("c2", approved=False, by="bert"))
        await until(pilot, lambda: card(console, "c2").ended)
        await pilot.press("!")
        assert (console.focused, reason.value) == (reason, "because!")
        assert not card(console, "c2").has_class("-folded")
        await pilot.press("escape")
        await settled(pilot)
        await until(pilot, lambda: card(console, "c2").has_class("-folded"))
        assert source.delivered == []

    tell(tmp_path, story)


def test_f_93_the_editor_keeps_its_text_through_events(tmp_path: Path) -> None:
    async def story(console: Console, pilot: Pilot[None], source: Watching, db: Path) -> None:
        await pilot.press("j", "e")
        editor = approval(console, "c2").query_one(TextArea)
        editor.text = '{"account": "safe", "amount": 7}'
        before = (editor.text, editor.cursor_location, console.focused)
        await deliver(db, decided("c3", approved=True, by="bert"))
        await until(pilot, lambda: card(console, "c3").ended)
        await settled(pilot)
        assert (editor.text, editor.cursor_location, console.focused) == before

    tell(tmp_path, story)


def test_f_93_edited_arguments_show_the_difference_and_are_approved(tmp_path: Path) -> None:
    async def story(console: Console, pilot: Pilot[None], source: Watching, db: Path) -> None:
        await pilot.press("j", "e")
        card_ = approval(console, "c2")
        card_.query_one(TextArea).text = '{"account": "safe", "amount": 1}'
        await pilot.pause()
        await pilot.pause()
        shown = text_of(console)
        assert '-   "account": "DE02"' in shown
        assert '+   "account": "safe"' in shown
        assert "Approve edited" in shown
        await pilot.click(card_.query_one(".approve"))
        await until(pilot, lambda: card_.ended)
        (fact,) = [it for it in await facts(db) if isinstance(it, ToolApproved)]
        assert fact.arguments == {"account": "safe", "amount": 1}

    tell(tmp_path, story)


def test_f_93_what_is_no_object_is_not_sent_and_a_closed_editor_counts_for_nothing(
    tmp_path: Path,
) -> None:
    async def story(console: Console, pilot: Pilot[None], source: Watching, db: Path) -> None:
        await pilot.press("j", "e")
        card_ = approval(console, "c2")
        for wrong in ("[1]", "{", '{"a": 1, "a": 2}', "NaN"):
            card_.query_one(TextArea).text = wrong
            card_.approve()
            await pilot.pause()
            assert card_.refused
            assert source.delivered == []
        card_.query_one(TextArea).text = '{"account": "mine"}'
        await pilot.press("escape", "a")
        await until(pilot, lambda: card_.ended)
        (fact,) = [it for it in await facts(db) if isinstance(it, ToolApproved)]
        assert fact.arguments is None  # as they were shown

    tell(tmp_path, story)


def test_f_94_a_stale_card_is_told_who_was_first(tmp_path: Path) -> None:
    """It was decided elsewhere, and the console has not heard of it when the key is pressed."""

    async def story(console: Console, pilot: Pilot[None], source: Watching, db: Path) -> None:
        source.hearing.clear()
        await deliver(db, decided("c2", approved=False, by="bert"))
        await pilot.press("j", "a")
        await until(pilot, lambda: "already_decided" in text_of(console))
        assert "it was decided otherwise before" in text_of(console)
        assert FactType.TOOL_APPROVED not in types(await facts(db))
        source.hearing.set()
        await until(pilot, lambda: card(console, "c2").ended)
        await settled(pilot)
        assert "denied by bert" in text_of(console)
        assert "IGNORED DELIVERIES (1)" in text_of(console)
        await pilot.press("a", "d")
        assert len(source.delivered) == 1  # a decided card decides nothing

    tell(tmp_path, story)


def test_f_22_the_same_decision_again_holds_and_a_late_one_is_said(tmp_path: Path) -> None:
    async def story(console: Console, pilot: Pilot[None], source: Watching, db: Path) -> None:
        source.hearing.clear()
        claim = Claim(turn_id="t1", invocation_id="c2", attempt=1)
        await deliver(db, decided("c2", approved=True, by="bert"))
        source.answer = Answered(accepted=False, reason="duplicate")
        await pilot.press("j", "a")
        await until(pilot, lambda: "nothing to do" in text_of(console))
        source.answer = Answered(accepted=False, reason="late", first="bert approved it first")
        await pilot.press("d")
        await until(
            pilot, lambda: "its turn has closed; bert approved it first" in text_of(console)
        )
        await deliver(db, claim)
        source.hearing.set()
        await until(pilot, lambda: card(console, "c2").ended)

    tell(tmp_path, story)


def test_f_96_a_double_press_sends_one_decision(tmp_path: Path) -> None:
    async def story(console: Console, pilot: Pilot[None], source: Watching, db: Path) -> None:
        source.answering.clear()
        await pilot.press("j", "a", "a", "d", "a")
        button = approval(console, "c2").query_one(".deny", Button)
        assert button.disabled
        await pilot.click(button)
        assert len(source.delivered) == 1
        assert "asking" in text_of(console)
        source.answering.set()
        await until(pilot, lambda: card(console, "c2").ended)
        await pilot.press("a", "d")
        assert len(source.delivered) == 1
        assert not card(console, "c3").ended  # the next card is nobody's second press

    tell(tmp_path, story)


def test_f_95_a_key_that_is_held_down_acts_once(tmp_path: Path) -> None:
    async def story(console: Console, pilot: Pilot[None], source: Watching, db: Path) -> None:
        source.answer = Answered(accepted=False, reason="stale_epoch")
        await pilot.press("j", *"aaaaaa")
        await settled(pilot)
        assert len(source.delivered) == 1

    tell(tmp_path, story, tick=lambda: 1.0)


def test_f_96_what_was_not_answered_is_unknown_until_the_stream_tells(tmp_path: Path) -> None:
    async def story(console: Console, pilot: Pilot[None], source: Watching, db: Path) -> None:
        source.answer = Answered(accepted=None, detail="the server is gone")
        await pilot.press("j", "a")
        await until(pilot, lambda: card(console, "c2").unknown)
        await pilot.pause()
        assert "unknown – nobody has answered: the server is gone" in text_of(console)
        await deliver(db, decided("c2", approved=True, by="anna"))
        await until(pilot, lambda: card(console, "c2").ended)
        assert not card(console, "c2").unknown

    tell(tmp_path, story)


def test_f_95_escape_closes_and_never_decides(tmp_path: Path) -> None:
    """In the editor, in a field, in a dialog, in the replay, on the page."""

    async def story(console: Console, pilot: Pilot[None], source: Watching, db: Path) -> None:
        before = types(await facts(db))
        await pilot.press("j", "e", "escape")
        assert console.focused is card(console, "c2")
        approval(console, "c2").query_one(Input).focus()
        await pilot.press("x", "escape")
        await pilot.press("slash", "q", "escape")
        await pilot.press("i", "escape")
        await pilot.press("question_mark", "escape")
        await pilot.press("left", "escape")
        assert isinstance(console.screen, RunScreen)
        assert screen(console).watched.moment is None
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(console.screen, RunsScreen))
        await pilot.press("escape")
        assert isinstance(console.screen, RunsScreen)
        assert source.delivered == []
        assert types(await facts(db)) == before

    tell(tmp_path, story)


def test_f_95_an_interrupt_is_asked_about_once(tmp_path: Path) -> None:
    async def story(console: Console, pilot: Pilot[None], source: Watching, db: Path) -> None:
        await pilot.press("i")
        await pilot.press("i", "enter")  # No has the focus
        assert source.delivered == []
        await pilot.press("i", "y")
        await until(pilot, lambda: screen(console).watched.view.turn is None)
        await settled(pilot)
        assert "denied: its turn was interrupted" in text_of(console)
        await pilot.press("i")
        assert isinstance(console.screen, RunScreen)
        assert "no turn is open" in text_of(console)

    tell(tmp_path, story)


def test_f_95_no_key_acts_in_a_field_or_with_a_modifier(tmp_path: Path) -> None:
    async def story(console: Console, pilot: Pilot[None], source: Watching, db: Path) -> None:
        await pilot.press("j")
        await pilot.press("ctrl+a", "alt+a", "A", "ctrl+d", "D")
        field = approval(console, "c2").query_one(Input)
        field.focus()
        await pilot.press("a", "d", "e", "i", "j", "k", "slash", "question_mark", "left")
        assert field.value == "adeijk/?"
        approval(console, "c2").scope.focus()
        await pilot.press("a", "d", "i", "j")
        await pilot.press("enter", "a", "d", "escape")  # the list of scopes is open
        assert source.delivered == []
        assert isinstance(console.screen, RunScreen)
        assert screen(console).watched.moment is None

    tell(tmp_path, story)


def test_f_94_without_a_connection_nobody_decides(tmp_path: Path) -> None:
    async def story(console: Console, pilot: Pilot[None], source: Watching, db: Path) -> None:
        lose(db)
        await source.let_go()
        await until(pilot, lambda: screen(console).watched.badge == "off")
        await settled(pilot)
        assert "○ off" in text_of(console)
        buttons = list(screen(console).query(".card Button").results(Button))
        assert buttons
        assert all(it.disabled for it in buttons)
        await pilot.press("j", "a", "d", "i")
        await pilot.click(buttons[0])
        assert source.delivered == []
        assert isinstance(console.screen, RunScreen)

    tell(tmp_path, story)


def test_f_98_in_the_replay_nothing_decides(tmp_path: Path) -> None:
    async def story(console: Console, pilot: Pilot[None], source: Watching, db: Path) -> None:
        approval(console, "c2").query_one(Input).value = "typed"
        await pilot.press("left", "left")
        shown = text_of(console)
        assert "◀ replay 3 of 5" in shown
        assert "WAITED AT FACT 3 (2)" in shown
        for word in ("Approve", "Deny"):
            assert word not in shown
        await pilot.press("j", "a", "d", "e", "i")
        assert source.delivered == []
        await pilot.press("end")
        await settled(pilot)
        assert "● live" in text_of(console)
        assert approval(console, "c2").query_one(Input).value == "typed"

    tell(tmp_path, story)


def test_f_92_a_call_in_doubt_is_settled_by_a_person(tmp_path: Path) -> None:
    async def story(console: Console, pilot: Pilot[None], source: Watching, db: Path) -> None:
        doubt = card(console, "c1")
        assert "nobody knows whether it happened" in text_of(console)
        await pilot.press("j", "a", "d", "e")
        assert source.delivered == []
        happened, failed, again = doubt.query(Button).results(Button)
        await pilot.click(happened)
        assert "its result is needed" in text_of(console)
        await pilot.click(failed)
        assert "say what went wrong" in text_of(console)
        assert (source.delivered, again.disabled) == ([], False)
        doubt.query_one(Input).value = '{"sent": true}'
        await until(pilot, lambda: not happened.has_class("-active"))  # it was pressed just now
        await pilot.click(happened)
        await until(pilot, lambda: doubt.ended)
        assert types(await facts(db))[-2:] == ["TOOL_EXECUTION_SUCCEEDED", "TURN_SETTLED"]

    lost = (
        Claim(turn_id="t1", invocation_id="c1", attempt=1),
        Lose(turn_id="t1", invocation_id="c1", attempt=1),
    )
    tell(tmp_path, story, opened(call("c1", "send", gated=False)), *lost)


def test_f_92_facts_are_filtered_and_the_runs_wait_first(tmp_path: Path) -> None:
    async def story(console: Console, pilot: Pilot[None], source: Watching, db: Path) -> None:
        await pilot.press("slash", *"sunny")
        await pilot.pause()
        assert screen(console).facts.count == 1
        await pilot.press("escape", "escape")
        await until(pilot, lambda: isinstance(console.screen, RunsScreen))
        await deliver(db, opened(call("a", "look", gated=False)), run_id="later")
        console.look()
        await until(pilot, lambda: len(console.listing.entries) == 2)
        await pilot.pause()
        assert [it.run_id for it in console.listing.entries] == [RUN, "later"]
        assert "1 run waits for you" in text_of(console)
        await pilot.press("j", "enter")
        await until(pilot, lambda: isinstance(console.screen, RunScreen))
        assert screen(console).watched.run_id == "later"

    tell(tmp_path, story)


SIZES = [(200, 60), (20, 5), *([(80, 24), (60, 20)] if DEEP else ())]


@pytest.mark.parametrize("size", SIZES)
def test_f_97_it_can_be_used_in_any_size(tmp_path: Path, size: tuple[int, int]) -> None:
    async def story(console: Console, pilot: Pilot[None], source: Watching, db: Path) -> None:
        await pilot.press("j", "d")
        await until(pilot, lambda: card(console, "c2").ended)

    tell(tmp_path, story, size=size)
