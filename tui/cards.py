"""Cards: what a person decides about, shown whole, made once and then only updated (F-93, F-96).

A card has at most one decision under way. What is typed in it, the focus and the place to which it
was scrolled stay, whatever happens; once it is decided it says by whom, and folds as soon as nobody
types in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Button, Input, Select, TextArea

from ..diagrams.palette import Theme, look_of
from ..models.deliveries import Decide, Match, Resolution, Resolve, Scope
from ..models.errors import InvalidValue
from ..models.inputs import Input as Delivered
from ..models.lifecycle_facts import DenialCause
from ..models.reasons import Reason
from ..models.safe_text import harmless
from ..models.sealed import HIDDEN, is_sealed
from ..models.strict_json import parse
from ..models.values import ABSENT, Absent, Json, arguments_digest, freeze
from ..server.client import Judgeable
from ..views.call_view import CallView
from ..views.meanings import REASONS, stands
from .heard import Abilities, Answered
from .lines import WholeText
from .machine import Line, colour_of
from .parts import Told
from .texts import clock_time, differing, span, spelt

_SCOPES: Final[tuple[tuple[str, tuple[Scope, Match]], ...]] = (
    ("once", (Scope.ONCE, Match.EXACT)),
    ("turn, these arguments", (Scope.TURN, Match.EXACT)),
    ("turn, any arguments", (Scope.TURN, Match.TOOL)),
    ("session, these arguments", (Scope.SESSION, Match.EXACT)),
    ("session, any arguments", (Scope.SESSION, Match.TOOL)),
)
_LAST: Final = {"-": "red", "+": "green", " ": "dim"}


class Card(Vertical, can_focus=True):
    """One call that waits for a person."""

    class Deciding(Message):
        """Somebody has decided: have it judged, and tell the card what came of it."""

        def __init__(self, card: Card, delivery: Judgeable) -> None:
            """Say what was decided, and where."""
            self.card: Final = card
            self.delivery: Final = delivery
            super().__init__()

    class Made(Message):
        """A card is there: tell it how things stand."""

        def __init__(self, card: Card) -> None:
            """Say which."""
            self.card: Final = card
            super().__init__()

    def __init__(self, call: CallView) -> None:
        """Be the card of this call, as it was asked about."""
        super().__init__(classes="card")
        self.call = call
        self.under_way = False
        """Whether a decision was sent, and nothing is known of it."""
        self.unknown = False
        """Whether a decision was not answered."""
        self.ended = False
        """Whether it was decided, by whomever."""
        self._forgotten = False
        """Whether its turn is not known any more."""
        self._may_decide = False
        self._abilities = Abilities()
        self.refused = ""
        """Why nothing came of the last decision."""
        self._head = Told(classes="head")
        self._ids = Told(classes="ids")
        self._arguments = WholeText(classes="arguments")
        self._notice = Told(classes="notice")

    @property
    def open_to_decision(self) -> bool:
        """Whether a decision may be sent now."""
        return self._may_decide and not (self.under_way or self.ended)

    def compose_form(self) -> ComposeResult:
        """Yield what decides."""
        yield from ()

    def compose(self) -> ComposeResult:
        """Yield its parts."""
        yield self._head
        yield self._ids
        yield self._arguments
        yield from self.compose_form()
        yield self._notice

    def on_mount(self) -> None:
        """Show the arguments, all of them."""
        call = self.call
        lines: list[Line] = [[(it, "")] for it in spelt(call.arguments or {}).split("\n")]
        if is_sealed(call.arguments):
            lines.append([(f"{HIDDEN}, or made to look so: only who has the key can tell", "dim")])
        self._arguments.tell(lines)
        digest = call.arguments_digest or arguments_digest(call.arguments or {})
        parts = [f"turn {harmless(call.turn_id)}", f"epoch {call.epoch}", f"digest {digest}"]
        if call.attempt:
            parts.insert(2, f"attempt {call.attempt}")
        self._ids.tell(Content(" · ".join(parts)))
        self.post_message(self.Made(self))

    def tell(
        self, call: CallView | None, *, may_decide: bool, abilities: Abilities, now: float
    ) -> None:
        """Update it: how the call stands, and whether what is shown is what is."""
        if call is not None:
            if call.phase is not self.call.phase or call.since != self.call.since:
                self.unknown = False  # the stream has told
            self.call = call
        self._may_decide, self._abilities = may_decide, abilities
        self._forgotten = call is None
        self.ended = call is None or not self._waits(call)
        self._head.tell(self._headline(now))
        self._show_notice()
        self.set_class(self.ended and not self._typing(), "-folded")
        self.set_class(self.ended, "-ended")
        for it in self.query(Button):
            it.disabled = not self.open_to_decision
        self._told()

    def answered(self, answer: Answered) -> None:
        """Take what became of the decision that was under way."""
        self.under_way = False
        self.unknown = answer.accepted is None
        if answer.accepted is None:
            self.refused = f"nobody has answered: {answer.detail or 'the stream will tell'}"
        elif answer.accepted:
            self.refused = ""
        else:
            self.refused = refusal(answer)
        self._show_notice()

    def send(self, delivery: Judgeable) -> None:
        """Send a decision, one at a time."""
        if not self.open_to_decision:
            return
        self.under_way, self.unknown, self.refused = True, False, ""
        self._show_notice()
        for it in self.query(Button):
            it.disabled = True
        self.post_message(self.Deciding(self, delivery))

    def complain(self, text: str) -> None:
        """Say what is wrong with what was typed."""
        self.refused = text
        self._show_notice()

    def leave(self) -> bool:
        """Close what is open in it; return whether anything was."""
        return False

    def _waits(self, call: CallView) -> bool:
        return call.gated

    def _told(self) -> None:
        """Update what only this kind has."""

    def _typing(self) -> bool:
        focused = self.screen.focused
        return focused is not None and focused is not self and self in focused.ancestors

    def _headline(self, now: float) -> Content:
        call, look = self.call, look_of(self.call.phase)
        name = f"{harmless(call.tool_name)} "
        parts = [
            Content.styled(f"{look.sign} ", f"bold {colour_of(call.phase, Theme.DARK)}"),
            Content.styled(name, "bold"),
            Content.styled(harmless(call.invocation_id), "dim"),
        ]
        said = how_it_ended(call) if self.ended else _asked(call, now)
        if self._forgotten:
            said = "its turn was closed, and is not remembered here any more"
        return Content.assemble(*parts, f"   {said}")

    def _show_notice(self) -> None:
        text, style = self.refused, "bold yellow"
        if self.under_way:
            text, style = "asking …", "dim"
        elif self.unknown:
            text = f"? unknown – {text}"
        self._notice.tell(Content.styled(text, style))
        self._notice.display = bool(text)


class ApprovalCard(Card):
    """A call that waits for approval."""

    def __init__(self, call: CallView) -> None:
        """Be the card of this call."""
        super().__init__(call)
        self._approve = Button("Approve", variant="success", compact=True, classes="approve")
        self._edit = Button("Edit", compact=True, classes="edit")
        self._deny = Button("Deny", variant="error", compact=True, classes="deny")
        self._reason = Input(placeholder="reason, told to the model", compact=True)
        self.scope: Select[tuple[Scope, Match]] = Select(
            _SCOPES,
            value=_SCOPES[0][1],
            allow_blank=False,
            compact=True,
            type_to_search=False,
        )
        self._editor = TextArea(soft_wrap=True, compact=True, classes="editor")
        self._difference = WholeText(classes="difference")
        self._offered = frozenset(map(str, Scope))

    def compose_form(self) -> ComposeResult:
        """Yield the editor, and the row that decides."""
        yield self._editor
        yield self._difference
        with Horizontal(classes="deciding"):
            yield self._approve
            yield self.scope
            yield self._edit
            yield self._reason
            yield self._deny

    @property
    def editing(self) -> bool:
        """Whether the editor is open: what stands in it is approved then."""
        return self.has_class("-editing")

    def approve(self) -> None:
        """Approve what is shown: what stands in the editor where that is open."""
        if not self.open_to_decision:
            return
        edited = None
        if self.editing:
            edited, wrong = self._edited()
            if wrong:
                self.complain(wrong)
                return
            if edited is not None and spelt(edited) == spelt(self.call.arguments or {}):
                edited = None
        chosen = self.scope.value
        scope, match = chosen if isinstance(chosen, tuple) else _SCOPES[0][1]
        call = self.call
        self.send(
            Decide(
                turn_id=call.turn_id,
                invocation_id=call.invocation_id,
                approved=True,
                reason=self._reason.value or None,
                scope=scope,
                match=match,
                arguments_digest=call.arguments_digest,
                arguments=edited,
            )
        )

    def deny(self) -> None:
        """Deny it; the reason is told to the model."""
        call = self.call
        self.send(
            Decide(
                turn_id=call.turn_id,
                invocation_id=call.invocation_id,
                approved=False,
                reason=self._reason.value or None,
                arguments_digest=call.arguments_digest,
            )
        )

    def edit(self) -> None:
        """Open the editor, with what was typed there before."""
        if self.ended or not self._abilities.edit_arguments:
            return
        if not self._editor.text:
            self._editor.text = spelt(self.call.arguments or {})
        self.add_class("-editing")
        self._compare()
        self.screen.set_focus(self._editor)

    def leave(self) -> bool:
        """Close the editor; what was typed stays in it, and counts for nothing meanwhile."""
        was = self.editing
        self.remove_class("-editing")
        self._labelled("Approve")
        if was or self._typing():
            self.screen.set_focus(self)
            return True
        return False

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Do what was pressed."""
        event.stop()
        {self._approve: self.approve, self._edit: self.edit, self._deny: self.deny}[event.button]()

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Show what differs."""
        event.stop()
        if self.editing:
            self._compare()

    def _edited(self) -> tuple[Mapping[str, Json] | None, str]:
        try:
            value: Json = freeze(parse(self._editor.text), place="arguments")
        except InvalidValue as error:
            return None, str(error)
        if not isinstance(value, Mapping):
            return None, 'the arguments are no JSON object; write {"name": …}'
        return value, ""

    def _compare(self) -> None:
        edited, wrong = self._edited()
        if wrong or edited is None:
            self._difference.tell([[(harmless(wrong), "bold yellow")]])
            self._labelled("Approve edited")
            return
        found = list(differing(spelt(self.call.arguments or {}), spelt(edited)))
        lines: list[Line] = [[(f"{sign} {line}", _LAST[sign])] for sign, line in found]
        self._difference.tell(lines or [[("nothing differs", "dim")]])
        self._labelled("Approve edited" if found else "Approve")

    def _labelled(self, label: str) -> None:
        """Say on the button what it approves; it is as wide as that."""
        self._approve.label = Content(label)
        self._approve.refresh(layout=True)

    def _told(self) -> None:
        self._edit.display = self._abilities.edit_arguments
        scopes = self._abilities.scopes
        if scopes != self._offered:
            self._offered = scopes
            offered = [it for it in _SCOPES if str(it[1][0]) in scopes]
            self.call_after_refresh(self.scope.set_options, offered or _SCOPES[:1])


class DoubtCard(Card):
    """A call of which nobody knows whether it happened."""

    def __init__(self, call: CallView) -> None:
        """Be the card of this call."""
        super().__init__(call)
        self._retry = Button("Run it again", variant="warning", compact=True, classes="retry")
        self._happened = Button("It happened", compact=True)
        self._failed = Button("It failed", compact=True)
        self._said = Input(placeholder="its result as JSON, or what went wrong", compact=True)

    def compose_form(self) -> ComposeResult:
        """Yield the row that decides."""
        with Horizontal(classes="deciding"):
            yield self._happened
            yield self._failed
            yield self._said
            yield self._retry

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Do what was pressed."""
        event.stop()
        said = self._said.value
        if event.button is self._retry:
            self._resolve(Resolution.RETRY)
        elif event.button is self._failed:
            if not said.strip():
                self.complain("say what went wrong: the model is told")
                return
            self._resolve(Resolution.ERROR, error=said)
        else:
            try:
                value = freeze(parse(said), place="result")
            except InvalidValue as error:
                self.complain(f"its result is needed: {error}")
                return
            self._resolve(Resolution.RESULT, result=value)

    def leave(self) -> bool:
        """Leave the field."""
        if self._typing():
            self.screen.set_focus(self)
            return True
        return False

    def _resolve(
        self, resolution: Resolution, *, result: Json | Absent = ABSENT, error: str | None = None
    ) -> None:
        call = self.call
        self.send(
            Resolve(
                turn_id=call.turn_id,
                invocation_id=call.invocation_id,
                attempt=call.attempt,
                resolution=resolution,
                result=result,
                error=error,
            )
        )

    def _waits(self, call: CallView) -> bool:
        return call.in_doubt

    def _told(self) -> None:
        may = Delivered.RESOLVE_RETRY in self.call.allowed and self._abilities.retry
        self._retry.disabled = not (may and self.open_to_decision)


def refusal(answer: Answered) -> str:
    """Say why nothing came of a decision, and who was first."""
    reason = answer.reason or ""
    meant = REASONS.get(Reason(reason), "") if reason in set(Reason) else ""
    if reason == Reason.DUPLICATE:
        return f"nothing to do: {meant}"
    why = f"{reason} – {meant}" if meant else answer.detail or reason
    first = f"; {answer.first}" if answer.first else ""
    return f"refused: {harmless(why)}{first}"


def how_it_ended(call: CallView) -> str:
    """Say who decided, and how the call stands now."""
    said: list[str] = []
    decision, outcome = call.decision, call.outcome
    cause = None if outcome is None else outcome.cause
    if cause is DenialCause.EXPIRY:
        said.append("denied: nobody decided in time")
    elif cause is DenialCause.INTERRUPT:
        said.append("denied: its turn was interrupted")
    elif decision is not None:
        who = decision.grant_id or decision.by or "somebody"
        what = "approved" if decision.approved else "denied"
        edited = " with other arguments" if decision.arguments is not None else ""
        said.append(f"{what}{edited} by {harmless(who, limit=80)}, {clock_time(decision.at)}")
        if decision.reason:
            said.append(f"“{harmless(decision.reason, limit=200)}”")
    if call.phase.value.lower() not in said[0] if said else True:
        said.append(stands(call))
    return " · ".join(said)


def _asked(call: CallView, now: float) -> str:
    since = call.asked_at if call.gated else call.since
    said = "asked" if call.gated else "in doubt since"
    told = f"{said} {clock_time(since)}"
    if since is not None:
        told += f" ({span(now - since)} ago)"
    if not call.gated:
        return f"{told}: nobody knows whether it happened"
    if call.deadline is None:
        return f"{told}, waits for ever"
    return f"{told}, until {clock_time(call.deadline)} (in {span(call.deadline - now)})"
