"""What stands before a screen until it is closed: the keys, and whether a turn is interrupted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from ..models.safe_text import harmless
from .lines import Column, Rows

KEYS: Final = (
    ("j  k", "the next card, the one before"),
    ("a", "approve the card, with what its editor holds where that is open"),
    ("d", "deny it"),
    ("e", "edit its arguments; the difference stands below"),
    ("i", "interrupt the turn; you are asked once"),
    ("/", "filter the facts"),
    ("←  →", "look at the fact before, at the next one"),
    ("Home  End", "look at the beginning, at what is now"),
    ("Tab", "the next field or button"),
    ("Enter", "open a run or a chat; press a button; say what stands in the line"),
    ("w", "in the list of runs: the worlds and their chats"),
    ("s", "in a chat: say something"),
    ("Esc", "close: it never denies, approves or interrupts"),
    ("?", "these keys"),
    ("q", "leave"),
)


class Keys(ModalScreen[None]):
    """The keys."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,question_mark,q", "dismiss")]

    def compose(self) -> ComposeResult:
        """Yield them."""
        lines = (
            part
            for key, what in KEYS
            for part in (Content.styled(f"{key:>11}", "bold"), f"   {what}\n")
        )
        with Vertical(classes="dialog"):
            yield Static("KEYS", classes="section")
            yield Static(Content.assemble(*lines))
            yield Static(
                Content.styled(
                    "None of them acts while a field has the focus. Decisions can be made only"
                    " while the badge says live.",
                    "dim",
                )
            )


class Stopping(ModalScreen[str]):
    """Which member of a chat is to be interrupted. Nothing is done unless one is chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss")]

    def __init__(self, agents: Sequence[str]) -> None:
        """Ask about these."""
        super().__init__()
        self._agents: Final = agents
        self._rows = Rows((Column("member"),), id="members")

    def compose(self) -> ComposeResult:
        """Yield the question."""
        with Vertical(classes="dialog"):
            yield Static(Content.styled("Interrupt whom?", "bold"))
            yield Static(
                "What has not started is denied, what runs is asked to stop, and the answer that"
                " is owed is not asked for. Enter interrupts, Esc closes.",
                markup=False,
            )
            yield self._rows

    def on_mount(self) -> None:
        """Show them."""
        self._rows.tell(len(self._agents), lambda place: ((harmless(self._agents[place]), ""),))
        self._rows.focus()

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        """Answer who was chosen."""
        event.stop()
        self.dismiss(self._agents[event.place])


class Interrupting(ModalScreen[bool]):
    """Whether a turn is to be interrupted. Nothing is done unless that is said."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,n", "answer(False)"),
        Binding("y", "answer(True)"),
        Binding("left,right", "app.focus_next"),
    ]

    def __init__(self, run_id: str, turn_id: str) -> None:
        """Ask about this turn."""
        super().__init__()
        self._about = f"turn {harmless(turn_id)} of run {harmless(run_id)}"

    def compose(self) -> ComposeResult:
        """Yield the question; No has the focus."""
        with Vertical(classes="dialog"):
            yield Static(Content.styled(f"Interrupt {self._about}?", "bold"))
            yield Static(
                "What has not started is denied, what runs is asked to stop, and the model is not"
                " told.",
                markup=False,
            )
            with Horizontal(classes="deciding"):
                yield Button("No (n)", compact=True, id="no")
                yield Button("Interrupt (y)", variant="error", compact=True, id="yes")

    def on_mount(self) -> None:
        """Give No the focus."""
        self.query_one("#no").focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Answer what was pressed."""
        event.stop()
        self.dismiss(event.button.id == "yes")

    def action_answer(self, yes: bool) -> None:  # noqa: FBT001 - a binding's argument
        """Answer."""
        self.dismiss(yes)
