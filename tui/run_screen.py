"""One run: what waits, its calls, its facts, and the machine of a call (F-92 … F-98)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input

from ..diagrams.palette import Theme, look_of
from ..models.deliveries import Interrupt
from ..models.errors import TurnlockError
from ..models.safe_text import harmless
from ..models.sealed import shown_json
from ..server.client import Judgeable
from ..turn.phases import TurnPhase
from ..views.call_view import CallView
from ..views.meanings import stands
from ..views.phrases import phase_of
from .calls_told import OF_CALLS, OF_FACTS, OF_IGNORED, as_it_was, took
from .cards import ApprovalCard, Card, how_it_ended, refusal
from .dialogs import Interrupting
from .heard import Answered, Ignored
from .lines import Rows, WholeText
from .machine import Line, Part, colour_of, drawn, next_steps, path_of
from .parts import Slider, Told, badge, bottom, section, waiting_told
from .run_cards import RunCards
from .screens import FLUSH, CardsScreen
from .texts import clock_time

_ENDED: Final = 20
"""Cards that were decided and are kept."""
_GRACE: Final = 10.0
"""Seconds in which what runs may still report after an interrupt."""
_CALLS: Final = 1_000
"""Calls that the table shows."""


class RunScreen(CardsScreen):
    """A run."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (104, "-wide")]  # noqa: RUF012 - Textual's

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter"),
        Binding("left", "replay(-1)"),
        Binding("right", "replay(1)"),
        Binding("home", "replay_to(0)"),
        Binding("end", "replay_to(-1)"),
    ]

    def __init__(self, run_id: str) -> None:
        """Watch this run."""
        super().__init__()
        self._decided: Final = RunCards(run_id, ended=_ENDED)
        self.watched: Final = self._decided.watched
        self.cards: Final = self._decided.cards
        self.inbox: Final = self._decided.inbox
        self._run = Told(id="run")
        self._standing = Told(id="standing")
        self._waits = section("WAITS FOR YOU", id="waits")
        self._cards = VerticalScroll(id="cards", can_focus=False)
        self._past = WholeText(classes="past")
        self._calls = Rows(OF_CALLS, empty="no call", id="calls")
        self._filter = Input(placeholder="filter (/)", compact=True, id="filter")
        self._slider = Slider()
        self.facts = Rows(OF_FACTS, empty="no fact", id="facts")
        self._machine = Told(id="machine")
        self._ignored_title = section("IGNORED DELIVERIES")
        self._ignored = Rows(OF_IGNORED, empty="none", id="ignored")
        self._call: tuple[int, str] | None = None
        """The call whose machine is drawn."""
        self._listed: list[CallView] = []
        self._found: list[int] = []
        self._said = ""
        self._interrupting = False

    def compose(self) -> ComposeResult:
        """Yield its parts."""
        with Horizontal(classes="top"):
            yield self._run
            yield self._standing
        with Horizontal(id="body"):
            with Vertical(id="main"):
                yield from (self._waits, self._cards, self._past, section("CALLS"), self._calls)
                with Horizontal(classes="bar"):
                    yield from (section("FACTS"), self._filter, self._slider)
                yield self.facts
            with Vertical(id="side"):
                yield from (section("THE CALL'S MACHINE"), self._machine)
                yield from (self._ignored_title, self._ignored)
        yield bottom(
            ("?", "keys"),
            ("j k", "card"),
            ("a", "approve"),
            ("d", "deny"),
            ("e", "edit"),
            ("i", "interrupt"),
            ("/", "filter"),
            ("← →", "replay"),
            ("Esc", "closes"),
        )

    def on_mount(self) -> None:
        """Begin to watch."""
        self.facts.focus()
        self.run_worker(self._watch(), name="watch", exit_on_error=True)
        self.run_worker(self._ask_abilities(), name="abilities")
        self.set_interval(FLUSH, self._flush)
        self.set_interval(1.0, self.draw_times)
        self._draw()

    async def _watch(self) -> None:
        async with aclosing(self.console_app.source.follow(self.watched.run_id)) as heard:
            async for it in heard:
                self.inbox.append(it)

    async def _ask_abilities(self) -> None:
        try:
            self._decided.abilities = await self.console_app.source.abilities(self.watched.run_id)
        except TurnlockError as error:
            self._say(str(error))
        self._draw()

    def _flush(self) -> None:
        if self._decided.take():
            self._draw()

    # What is drawn

    def _draw(self) -> None:
        self._draw_cards()
        self._draw_tables()
        self.draw_times()
        self._draw_machine()

    def draw_times(self) -> None:
        """Draw the line at the top, and the cards."""
        watched, app = self.watched, self.console_app
        status = watched.shown.status.value
        self._run.tell(
            Content.assemble(
                ("turnlock  ", "bold"),
                (harmless(watched.run_id), "bold"),
                f"{self._decided.abilities.of_kind}  ",
                (
                    f" {look_of(status).sign} {status.replace('_', ' ')} ",
                    f"reverse {colour_of(status, Theme.DARK)}",
                ),
                (f"  {harmless(self._said)}", "bold yellow"),
            )
        )
        self._standing.tell(
            Content.assemble(
                waiting_told(app.waiting), "   ", badge(watched.badge, watched.told), " "
            )
        )
        self._decided.tell(now=app.now())

    def _draw_cards(self) -> None:
        watched = self.watched
        replay = watched.moment is not None
        for card in self._decided.made():
            self._cards.mount(card)
            self._call = self._call or _key(card.call)
        self._cards.display = bool(self.cards) and not replay
        shown = watched.shown
        self._past.display = replay and bool(shown.waiting or shown.in_doubt)
        if replay:
            self._past.tell(list(as_it_was((*shown.waiting, *shown.in_doubt))))
        waits = len(shown.waiting) + len(shown.in_doubt)
        title = f"WAITS FOR YOU ({waits:,})" if waits else "NOTHING WAITS FOR YOU"
        if replay:
            title = f"WAITED AT FACT {watched.moment:,} ({waits:,})"
        self._waits.tell(Content(title))

    def _draw_tables(self) -> None:
        watched = self.watched
        self._listed = watched.calls()[:_CALLS]
        cursor = next((n for n, it in enumerate(self._listed) if _key(it) == self._call), None)
        self._calls.tell(len(self._listed), self._call_cells, cursor=cursor)
        self._found = watched.found(self._filter.value.strip())
        moment = len(watched.facts) if watched.moment is None else watched.moment
        near = next((n for n, it in enumerate(self._found) if it <= moment), 0)
        self.facts.tell(len(self._found), self._fact_cells, cursor=near)
        slider = self._slider
        slider.at, slider.of, slider.live = moment, len(watched.facts), watched.moment is None
        count = len(watched.ignored)
        title = f"IGNORED DELIVERIES ({count})" if count else "IGNORED DELIVERIES"
        self._ignored_title.tell(Content(title))
        self._ignored.tell(count, self._ignored_cells)

    def _call_cells(self, place: int) -> Sequence[Part]:
        call = self._listed[place]
        look = look_of(call.phase)
        ran = ""
        if call.started_at is not None:
            until = call.ended_at or self.watched.shown.at or call.started_at
            ran = took(until - call.started_at)
        return (
            (harmless(call.turn_id, limit=60), ""),
            (f"{harmless(call.tool_name, limit=60)} {harmless(call.invocation_id, limit=60)}", ""),
            (harmless(shown_json(call.arguments or {}), limit=400), ""),
            (f"{look.sign} {call.phase}", colour_of(call.phase, Theme.DARK)),
            (ran, "dim"),
        )

    def _fact_cells(self, place: int) -> Sequence[Part]:
        fact = self.watched.facts[self._found[place] - 1]
        phase = phase_of(fact)
        what = fact.type.lower().replace("_", " ")
        return (
            (f"{fact.sequence:,}", "dim"),
            (clock_time(fact.at), "dim"),
            (f"{look_of(phase).sign} {what}", colour_of(phase, Theme.DARK)),
            (self.watched.words(fact.sequence), ""),
        )

    def _ignored_cells(self, place: int) -> Sequence[Part]:
        it = self.watched.ignored[-1 - place]
        return (clock_time(it.at), "dim"), (it.reason, "bold"), (it.what, "")

    def _draw_machine(self) -> None:
        call = self._chosen_call()
        if call is None:
            self._machine.tell(Content.styled("no call", "dim"))
            return
        name = f"{harmless(call.tool_name, limit=60)} {harmless(call.invocation_id, limit=60)}"
        lines: list[Line] = [[(f"{name}: {stands(call)}", "bold")]]
        lines += drawn(path_of(call, self.watched.past))
        if call.decision is not None or call.ended:
            lines.append([(how_it_ended(call), "")])
        steps = list(next_steps(call.allowed, call.phase))
        if steps:
            lines += [[("", "")], [("what may come, and where it leads", "dim")]]
        lines += [
            [(f"{it} → ", ""), (str(to), colour_of(to, Theme.DARK)), (f" {rule}", "dim")]
            for it, to, rule in steps
        ]
        self._machine.tell(
            Content("\n").join(
                Content.assemble(*(part for part in line if part[0])) for line in lines
            )
        )

    def _chosen_call(self) -> CallView | None:
        found = [it for it in self._listed if _key(it) == self._call]
        return found[0] if found else next(iter(self._listed), None)

    def _say(self, text: str) -> None:
        self._said = text

    # What is done

    @property
    def chosen(self) -> Card | None:
        """The card that keys are about."""
        focused: Widget | None = self.focused
        cards = list(self.cards.values())
        for it in cards:
            if focused is not None and (focused is it or it in focused.ancestors):
                return it
        return next((it for it in cards if _is_about(it, self._call)), None)

    def action_card(self, by: int) -> None:
        """Go to the next card, or the one before."""
        cards = list(self.cards.values())
        if not cards or self.watched.moment is not None:
            return
        here = self.chosen
        at = cards.index(here) if here in cards else -1 if by > 0 else len(cards)
        if here is not None and not here.has_focus_within:
            at -= by  # the first press takes the one that is chosen
        card = cards[max(0, min(at + by, len(cards) - 1))]
        self.set_focus(card)
        card.scroll_visible(animate=False)

    def on_descendant_focus(self) -> None:
        """Draw the machine of the card that has the focus."""
        card = self.chosen
        if card is not None and card.has_focus_within:
            self._choose(_key(card.call))

    def _choose(self, key: tuple[int, str]) -> None:
        if key != self._call:
            self._call = key
            self._draw_tables()
            self._draw_machine()

    def action_decide(self, key: str) -> None:
        """Approve, deny or edit the card."""
        card = self.chosen
        if self.is_repeat(key) or not isinstance(card, ApprovalCard):
            return
        if self.watched.moment is not None:
            return
        {"a": card.approve, "d": card.deny, "e": card.edit}[key]()

    def judged(self, card: Card, delivery: Judgeable, answer: Answered) -> None:
        """Say why a decision was ignored."""
        if answer.accepted is False and answer.reason:
            what = f"{delivery.type} {harmless(card.call.invocation_id, limit=60)}"
            ignored = Ignored(at=self.console_app.now(), reason=answer.reason, what=what)
            self.inbox.append(ignored)

    def action_interrupt(self) -> None:
        """Ask once whether the turn is to be interrupted."""
        turn = self.watched.view.turn
        if self.is_repeat("i") or self._interrupting or not self.watched.may_decide:
            return
        if turn is None or turn.phase is TurnPhase.INTERRUPTING:
            self._say("no turn is open" if turn is None else "the turn is being interrupted")
            self.draw_times()
            return
        turn_id = turn.turn_id

        def answered(yes: bool | None) -> None:  # noqa: FBT001 - a dialog's answer
            if yes:
                self._interrupting = True
                self.console_app.run_worker(self._interrupt(turn_id))

        self.console_app.push_screen(Interrupting(self.watched.run_id, turn_id), answered)

    async def _interrupt(self, turn_id: str) -> None:
        delivery = Interrupt(turn_id=turn_id, grace=_GRACE)
        try:
            answer = await self.console_app.source.deliver(self.watched.run_id, delivery)
        finally:
            self._interrupting = False
        if not self.is_attached:
            return
        self._say("")
        if answer.accepted is None:
            self._say(f"unknown whether it was interrupted: {answer.detail or 'nobody answered'}")
        elif not answer.accepted:
            self._say(refusal(answer))
        self.draw_times()

    def action_filter(self) -> None:
        """Go to the filter."""
        self.set_focus(self._filter)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter the facts."""
        if event.input.id == "filter":
            self._draw_tables()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go from the filter to what it has found; nothing else is sent by return."""
        if event.input.id == "filter":
            self.set_focus(self.facts)

    def action_replay(self, by: int) -> None:
        """Look a fact further back or on."""
        self.watched.move(by)
        self._draw()

    def action_replay_to(self, place: int) -> None:
        """Look at the beginning, or at what is."""
        self.watched.look_at(None if place < 0 else place)
        self._draw()

    def on_slider_moved(self, event: Slider.Moved) -> None:
        """Look at what was clicked."""
        self.watched.look_at(event.sequence)
        self._draw()

    def on_rows_moved(self, event: Rows.Moved) -> None:
        """Look at the fact, or draw the machine of the call."""
        self._row(event)

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        """As when the cursor moved there."""
        self._row(event)

    def _row(self, event: Rows.Moved) -> None:
        if event.rows.id == "calls" and event.place < len(self._listed):
            self._choose(_key(self._listed[event.place]))
        elif event.rows.id == "facts" and event.place < len(self._found):
            self.watched.look_at(self._found[event.place])
            self._draw()

    def action_leave(self) -> None:
        """Close what is open, the innermost first: an editor, a field, the replay, this screen."""
        card = self.chosen
        if card is not None and card.has_focus_within and card.leave():
            return
        if self.in_field():
            self.set_focus(self.facts)
        elif self.watched.moment is not None:
            self.action_replay_to(-1)
        else:
            self.dismiss(None)


def _key(call: CallView) -> tuple[int, str]:
    return call.epoch, call.invocation_id


def _is_about(card: Card, key: tuple[int, str] | None) -> bool:
    return _key(card.call) == key
