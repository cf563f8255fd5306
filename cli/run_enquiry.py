"""What a runtime asks the user (S-28): its questions, and what is typed as an answer to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

import attrs

from ..models.safe_text import harmless, harmless_lines
from ..models.values import Json
from ..views.call_view import CallView

_TEXT: Final = 2_000
"""Characters of a question that are shown."""
_OPTION: Final = 400


@attrs.frozen(kw_only=True)
class Enquired:
    """One question: an option is named by its number, anything else is said as it was typed."""

    id: str
    text: str
    options: tuple[str, ...] = ()
    """Their labels, as the runtime gave them."""
    details: tuple[str, ...] = ()
    """What stands beside each of them."""

    def lines(self) -> Iterator[str]:
        """Yield what is shown of it, made harmless."""
        yield harmless_lines(self.text[:_TEXT])
        for number, (label, detail) in enumerate(
            zip(self.options, self.details, strict=True), start=1
        ):
            beside = f" – {detail}" if detail else ""
            yield harmless(f"  {number}  {label}{beside}", limit=_OPTION)

    def answer(self, typed: str) -> str:
        """Return what was meant."""
        if typed.isascii() and typed.isdecimal() and 1 <= int(typed[:4]) <= len(self.options):
            return self.options[int(typed[:4]) - 1]
        return typed


def enquired_by(call: CallView) -> tuple[Enquired, ...]:
    """Return the questions of a call; none where it asks in another form."""
    return tuple(map(_enquired, _objects((call.arguments or {}).get("questions"))))


def answered(said: Mapping[str, str]) -> Json:
    """Return the answers by the ids of their questions, as the runtime takes them."""
    return {"answers": {name: {"answers": (text,)} for name, text in said.items()}}


def _objects(value: object) -> list[Mapping[str, Any]]:
    """Return the objects of a list; what is none of either is left out."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return []
    several = cast("Sequence[object]", value)
    return [cast("Mapping[str, Any]", it) for it in several if isinstance(it, Mapping)]


def _enquired(asked: Mapping[str, Any]) -> Enquired:
    named = _objects(asked.get("options"))
    return Enquired(
        id=str(asked.get("id")),
        text=str(asked.get("question") or asked.get("header") or ""),
        options=tuple(str(it.get("label")) for it in named),
        details=tuple(str(it.get("description") or "") for it in named),
    )
