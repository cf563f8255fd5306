"""The card of a question: what a tool asks a person, as a form (W-67).

As any card it stays as it is while somebody types in it, and has one answer under way at most; once
there is a reply, whoever gave it, it says so and folds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, cast

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Button, Input, Select

from ..models.errors import InvalidValue
from ..models.safe_text import harmless, harmless_lines
from ..models.strict_json import parse
from ..models.values import Json
from ..world.entries import Question
from ..world.names import member_of
from ..world.questions import FormField, check_reply, form_fields
from .chat_heard import Replied
from .chat_watched import OpenQuestion
from .parts import Told
from .texts import clock_time

_YES_NO: Final = (("yes", True), ("no", False))


class QuestionCard(Vertical, can_focus=True):
    """One question that waits for a reply."""

    class Replying(Message):
        """Somebody has replied: have it kept, and tell the card what came of it."""

        def __init__(self, card: QuestionCard, content: Mapping[str, Json] | None) -> None:
            """Say what was replied; None declines."""
            self.card: Final = card
            self.content: Final = content
            super().__init__()

    def __init__(self, question: OpenQuestion) -> None:
        """Be the card of this question."""
        super().__init__(classes="card question")
        self.question: Final = question
        body = question.body
        self.fields: Final = form_fields(body.get("schema"))
        """The fields of its form; None: nothing but declining it can be said."""
        self.filled: Final[dict[str, Input | Select[Any]]] = {}
        """What each field is filled in by, by its name."""
        self._head = Told(classes="head")
        self._ids = Told(classes="ids")
        self._text = Told(classes="asked")
        self._notice = Told(classes="notice")
        self._send = Button("Reply", variant="success", compact=True, classes="approve")
        self._decline = Button("Decline", variant="error", compact=True, classes="deny")
        self.under_way = False
        """Whether a reply was sent, and nothing is known of it."""
        self.ended = False
        """Whether there is a reply."""
        self.refused = ""
        """Why nothing came of the last reply."""
        self._may_decide = False

    @property
    def open_to_decision(self) -> bool:
        """Whether a reply may be sent now."""
        return self._may_decide and not (self.under_way or self.ended)

    def compose(self) -> ComposeResult:
        """Yield its parts."""
        yield self._head
        yield self._ids
        yield self._text
        for field in self.fields or ():
            widget = self.filled[field.name] = _widget(field)
            label = Told(classes="label")
            label.tell(_label(field))
            with Horizontal(classes="field"):
                yield label
                yield widget
        with Horizontal(classes="deciding"):
            yield self._send
            yield self._decline
        yield self._notice

    def on_mount(self) -> None:
        """Show what is asked, all of it."""
        body = self.question.body
        member = member_of(f"{body.get('run')}")
        who = "" if member is None else f" for {member.agent}"
        name = harmless(f"{body.get('server')}", limit=80)
        asked = f"   asked {clock_time(self.question.at)}"
        head = Content.assemble(("? ", "bold magenta"), (f"{name} asks{who}", "bold"), asked)
        self._head.tell(head)
        call = (f"{body.get('turn')}", f"{body.get('invocation')}")
        self._ids.tell(Content(harmless(" · ".join(("call", *call)), limit=300)))
        self._text.tell(Content(harmless_lines(f"{body.get('text')}")))
        if self.fields is None:
            self.complain("its form cannot be shown: it can only be declined")
        self._send.display = self.fields is not None

    def tell(self, *, replied: str | None, may_decide: bool) -> None:
        """Update it: whether there is a reply, and whether what is shown is what is."""
        self._may_decide = may_decide
        if replied is not None and not self.ended:
            self.ended, self.under_way = True, False
            self.complain(f"replied: {replied}")
        for it in self.query(Button):
            it.disabled = not self.open_to_decision
        typing = self.has_focus_within and self.screen.focused is not self
        self.set_class(self.ended and not typing, "-folded")
        self.set_class(self.ended, "-ended")

    def answered(self, answer: Replied) -> None:
        """Take what became of the reply that was under way."""
        self.under_way = False
        if answer.accepted is None:
            why = harmless(answer.detail, limit=300)
            self.complain(f"? unknown – nobody has answered: {why}; the stream will tell")
        elif not answer.accepted:
            self.complain(f"refused: {harmless(answer.detail, limit=500)}")
        for it in self.query(Button):
            it.disabled = not self.open_to_decision

    def reply(self) -> None:
        """Send what stands in the form, if it fits."""
        if not self.open_to_decision or self.fields is None:
            return
        try:
            content = {
                field.name: _value(field, self.filled[field.name])
                for field in self.fields
                if field.required or not _is_empty(self.filled[field.name])
            }
            self._check(content)
        except InvalidValue as error:
            self.complain(str(error))
            return
        self._reply(content)

    def decline(self) -> None:
        """Say that it is not answered."""
        if self.open_to_decision:
            self._reply(None)

    def complain(self, text: str) -> None:
        """Say what is wrong, or what came of it."""
        self.refused = text
        self._notice.tell(Content.styled(text, "dim" if self.ended else "bold yellow"))

    def leave(self) -> bool:
        """Leave the field; return whether one had the focus."""
        if self.has_focus_within and self.screen.focused is not self:
            self.screen.set_focus(self)
            return True
        return False

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Do what was pressed."""
        event.stop()
        if event.button is self._send:
            self.reply()
        else:
            self.decline()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Return goes to the button: nothing is sent by it alone."""
        event.stop()
        self.screen.set_focus(self._send)

    def _reply(self, content: Mapping[str, Json] | None) -> None:
        self.under_way = True
        self.complain("asking …")
        for it in self.query(Button):
            it.disabled = True
        self.post_message(self.Replying(self, content))

    def _check(self, content: Mapping[str, Json]) -> None:
        body = self.question.body
        check_reply(
            Question(
                run="-", turn="-", invocation="-", attempt=1, server="-", text="",
                schema=body.get("schema"),
            ),
            content,
        )  # fmt: skip


def _widget(field: FormField) -> Input | Select[Any]:
    """Return what a field is filled in by."""
    if field.kind == "boolean":
        return _select(field, _YES_NO)
    if field.choices and field.kind == "string":
        return _select(field, tuple((harmless(it, limit=80), it) for it in field.choices))
    hint = "text, text …" if field.kind == "array" else field.kind
    default = "" if field.default is None else f"{field.default}"
    if field.kind == "array":
        hint = harmless(", ".join(field.choices), limit=80) or hint
        default = ""
    return Input(value=default, placeholder=hint, compact=True)


def _select(field: FormField, options: tuple[tuple[str, Any], ...]) -> Select[Any]:
    known = field.default in [value for _, value in options]
    default = field.default if known else Select.NULL
    return Select(options, value=default, allow_blank=True, compact=True, type_to_search=False)


def _label(field: FormField) -> Content:
    mark = " *" if field.required else ""
    more = f"  {field.description}" if field.description else ""
    return Content.assemble((f"{field.title}{mark}", "bold"), (more, "dim"))


def _is_empty(widget: Input | Select[Any]) -> bool:
    return not widget.value if isinstance(widget, Input) else widget.is_blank()


def _value(field: FormField, widget: Input | Select[Any]) -> Json:
    """Return what was typed, as the field's kind has it. Raises `InvalidValue`."""
    if _is_empty(widget) and (isinstance(widget, Select) or field.kind not in {"string", "array"}):
        raise InvalidValue(place=field.title, cause="is left out", fix="fill it in: it is needed")
    if isinstance(widget, Select):
        return cast("Json", widget.value)
    text = widget.value
    if field.kind == "array":
        return [it.strip() for it in text.split(",") if it.strip()]
    if field.kind == "string":
        return text
    try:
        number = parse(text.strip())
    except InvalidValue:
        number = None
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise InvalidValue(
            place=field.title, cause=f"{json.dumps(text[:40])} is no {field.kind}", fix="give one"
        )
    return number
