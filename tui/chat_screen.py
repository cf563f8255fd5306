"""One chat: what is said there, what waits for people, and a line to say something (W-67, W-71).

Calls that wait are the same cards as those of a run: the facts of the members that have asked
something are followed beside the chat, and their runs judge what is decided.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from typing import ClassVar, Final
from uuid import uuid4

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Input

from ..models.errors import TurnlockError
from ..models.safe_text import harmless
from ..models.values import Json
from .cards import ApprovalCard, Card, refusal
from .chat_heard import ChatHeard
from .chat_watched import ChatWatched
from .dialogs import Stopping
from .lines import WholeText
from .parts import Told, badge, bottom, section
from .question_card import QuestionCard
from .run_cards import RunCards
from .screens import FLUSH, CardsScreen

_ENDED: Final = 5
"""Cards of each kind that were decided and are kept."""


class ChatScreen(CardsScreen):
    """A chat."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "say"),
        Binding("end", "latest"),
    ]

    def __init__(self, world: str, chat: str) -> None:
        """Watch this chat."""
        super().__init__()
        self.watched: Final = ChatWatched(world, chat)
        self.members: Final[dict[str, RunCards]] = {}
        """Those that have asked something, by their runs."""
        self.questions: Final[dict[str, QuestionCard]] = {}
        """The cards of questions, by their ids."""
        self.inbox: Final[list[ChatHeard]] = []
        """What was heard and is not drawn yet."""
        self._chat = Told(id="run")
        self._standing = Told(id="standing")
        self._lines = WholeText(classes="said")
        self._waits = section("NOTHING WAITS FOR YOU", id="waits")
        self._cards = VerticalScroll(id="cards", can_focus=False)
        self._of_calls = Vertical(classes="cards")
        self._of_questions = Vertical(classes="cards")
        self._line = Input(placeholder="say something (s)", compact=True, id="say")
        self._notice = Told(classes="notice")
        self._message_id: str | None = None
        """Of what was said and not answered: said again it is said once."""
        self._saying = False

    @property
    def cards(self) -> list[Card | QuestionCard]:
        """All cards: those of calls, then those of questions."""
        calls = [card for it in self.members.values() for card in it.cards.values()]
        return [*calls, *self.questions.values()]

    def compose(self) -> ComposeResult:
        """Yield its parts."""
        with Horizontal(classes="top"):
            yield self._chat
            yield self._standing
        yield self._lines
        yield self._waits
        with self._cards:
            yield from (self._of_calls, self._of_questions)
        yield self._notice
        yield self._line
        yield bottom(
            ("?", "keys"),
            ("s", "say"),
            ("j k", "card"),
            ("a", "approve, reply"),
            ("d", "deny, decline"),
            ("e", "edit"),
            ("i", "interrupt"),
            ("End", "latest"),
            ("Esc", "closes"),
        )

    def on_mount(self) -> None:
        """Begin to watch."""
        self._lines.focus()
        self.run_worker(self._watch(), name="watch", exit_on_error=True)
        self.set_interval(FLUSH, self._flush)
        self.set_interval(1.0, self.draw_times)
        self._draw()

    async def _watch(self) -> None:
        it = self.watched
        async with aclosing(self.console_app.source.chats.follow(it.world, it.chat)) as heard:
            async for one in heard:
                self.inbox.append(one)

    async def _watch_run(self, member: RunCards) -> None:
        run_id = member.watched.run_id
        try:
            member.abilities = await self.console_app.source.abilities(run_id)
        except TurnlockError as error:
            self._say(str(error))
        async with aclosing(self.console_app.source.follow(run_id)) as heard:
            async for one in heard:
                member.inbox.append(one)

    def _flush(self) -> None:
        """Take what was heard, of the chat and of the runs, and draw it."""
        new = bool(self.inbox)
        heard, self.inbox[:] = list(self.inbox), []
        for it in heard:
            self.watched.hear(it)
        for run_id in self.watched.runs:
            if run_id not in self.members:
                member = self.members[run_id] = RunCards(run_id, ended=_ENDED)
                self.run_worker(self._watch_run(member), name=run_id, exit_on_error=True)
        for member in self.members.values():
            new = member.take() or new
        if new:
            self._draw()

    # What is drawn

    def _draw(self) -> None:
        at_end = self._lines.scroll_offset.y >= self._lines.max_scroll_y
        self._lines.tell(self.watched.shown())
        if at_end:
            self.call_after_refresh(self.action_latest)
        self._draw_cards()
        self.draw_times()

    def draw_times(self) -> None:
        """Draw the line at the top, and the cards."""
        it = self.watched
        told = Content.assemble(("turnlock  ", "bold"), f"{it.world} / {it.chat}")
        self._chat.tell(told)
        self._standing.tell(Content.assemble(badge(it.badge, it.told), " "))
        for member in self.members.values():
            member.tell(now=self.console_app.now())
        for asked in self.questions.values():
            if asked.is_mounted:
                replied = it.replies.get(asked.question.question_id)
                asked.tell(replied=replied, may_decide=it.is_live)
        waits = sum(not card.ended for card in self.cards)
        self._waits.tell(
            Content(f"WAITS FOR YOU ({waits:,})" if waits else "NOTHING WAITS FOR YOU")
        )
        self._cards.display = bool(self.cards)

    def _draw_cards(self) -> None:
        for member in self.members.values():
            for card in member.made():
                self._of_calls.mount(card)
        if self.watched.is_live:
            for name, question in self.watched.questions.items():
                if name not in self.questions:
                    self.questions[name] = QuestionCard(question)
                    self._of_questions.mount(self.questions[name])
        done = [name for name, it in self.questions.items() if it.ended and not it.has_focus_within]
        for name in done[:-_ENDED]:
            self.questions.pop(name).remove()

    def _say(self, text: str) -> None:
        self._notice.tell(Content.styled(harmless(text, limit=500), "bold yellow"))

    # What is done

    @property
    def chosen(self) -> Card | QuestionCard | None:
        """The card that keys are about: that with the focus, else the first that waits."""
        cards = self.cards
        focused = next((it for it in cards if it.has_focus_within), None)
        return focused or next((it for it in cards if not it.ended), None)

    def action_card(self, by: int) -> None:
        """Go to the next card, or the one before."""
        cards, here = self.cards, self.chosen
        if not cards:
            return
        at = cards.index(here) if here is not None else 0
        if here is not None and here.has_focus_within:
            at = max(0, min(at + by, len(cards) - 1))
        self.set_focus(cards[at])
        cards[at].scroll_visible(animate=False)

    def action_decide(self, key: str) -> None:
        """Approve, deny or edit the card of a call; reply to a question, or decline it."""
        card = self.chosen
        if card is None or self.is_repeat(key):
            return
        if isinstance(card, QuestionCard):
            if key != "e":
                {"a": card.reply, "d": card.decline}[key]()
        elif isinstance(card, ApprovalCard):
            {"a": card.approve, "d": card.deny, "e": card.edit}[key]()

    def on_question_card_replying(self, event: QuestionCard.Replying) -> None:
        """Have a reply kept."""
        event.stop()
        self.console_app.run_worker(self._reply(event.card, event.content))

    async def _reply(self, card: QuestionCard, content: Mapping[str, Json] | None) -> None:
        it, name = self.watched, card.question.question_id
        chats = self.console_app.source.chats
        answer = await chats.reply(it.world, it.chat, name, content)
        if self.is_attached:
            card.answered(answer)
            self.draw_times()

    def action_say(self) -> None:
        """Go to the line in which something is said."""
        self.set_focus(self._line)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Say what stands in the line, once."""
        text = self._line.value
        if event.input is not self._line or not text.strip() or self._saying:
            return
        self._saying = True
        self._message_id = self._message_id or uuid4().hex
        self.console_app.run_worker(self._send(text, self._message_id))

    def on_input_changed(self, event: Input.Changed) -> None:
        """Another text is another message."""
        if event.input is self._line and not self._saying:
            self._message_id = None

    async def _send(self, text: str, message_id: str) -> None:
        it, chats = self.watched, self.console_app.source.chats
        try:
            said = await chats.say(it.world, it.chat, text, message_id=message_id)
        finally:
            self._saying = False
        if not self.is_attached:
            return
        if said.accepted:
            self._message_id = None
            if self._line.value == text:
                self._line.value = ""
            self._notice.tell(Content(""))
        elif said.accepted is None:
            self._say(f"unknown whether it was said; again it is said once: {said.detail}")
        else:
            self._message_id = None
            self._say(f"not said: {said.detail}")

    def action_interrupt(self) -> None:
        """Ask which member is to be interrupted."""
        if not self.is_repeat("i"):
            self.run_worker(self._ask_whom(), name="interrupt")

    async def _ask_whom(self) -> None:
        it = self.watched
        try:
            listed = await self.console_app.source.chats.listed()
        except TurnlockError as error:
            self._say(str(error))
            return
        agents = [one.members for one in listed if (one.world, one.chat) == (it.world, it.chat)]

        def answered(agent: str | None) -> None:
            if agent is not None:
                self.console_app.run_worker(self._interrupt(agent))

        if agents and agents[0] and self.is_attached:
            self.console_app.push_screen(Stopping(agents[0]), answered)

    async def _interrupt(self, agent: str) -> None:
        it = self.watched
        answer = await self.console_app.source.chats.interrupt(it.world, it.chat, agent)
        if not self.is_attached:
            return
        if answer.accepted:
            self._say(f"{agent} is interrupted")
        elif answer.accepted is None:
            self._say(f"unknown whether {agent} was interrupted: {answer.detail or 'no answer'}")
        else:
            self._say(refusal(answer))

    def action_latest(self) -> None:
        """Go to what was said last."""
        self._lines.scroll_end(animate=False)

    def action_leave(self) -> None:
        """Close what is open, the innermost first: an editor, a field, this screen."""
        card = self.chosen
        if card is not None and card.has_focus_within and card.leave():
            return
        if self.in_field():
            self.set_focus(self._lines)
        else:
            self.dismiss(None)
