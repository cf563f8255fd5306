"""Deliveries and receipts of the wire in plain words, and who sends what."""

from __future__ import annotations

from typing import Final, cast

from ...views import phrases
from ...views.delivery_phrases import DELIVERED, delivered
from ...views.wording import LONG
from ..findings import Raw
from ..rulebook import is_receipt

_SENDER: Final = {
    "decide": "person",
    "revoke": "person",
    "resolve": "person",
    "claim": "executor",
    "renew": "executor",
    "report": "executor",
    "tick": "clock",
}


def sender(delivery: Raw) -> str:
    """Return who sends such a delivery."""
    return _SENDER.get(str(delivery.get("type")), "host")


def is_delivery(step: Raw) -> bool:
    """Whether a step is a delivery of the wire: histories and logs hold other things, too."""
    kind = step.get("type")
    return kind in DELIVERED - {"digest"} and ("now" in step or kind == "recover")


def told(delivery: Raw) -> str:
    """Tell one delivery in a sentence without its time; one that has no words is shown as JSON."""
    return delivered(delivery, LONG)


def answered(receipt: object) -> str:
    """Tell a receipt: the verdict, the facts, the effects; what is no receipt is shown as JSON."""
    if not is_receipt(receipt):
        return "no receipt" if receipt is None else compact(receipt)
    return phrases.answered(cast("Raw", receipt))


def compact(value: object) -> str:
    """Return JSON text; what is no JSON is shown as Python shows it."""
    return LONG.value(value)


def printable(text: str) -> str:
    r"""Escape what steers terminals or may not stand in XML: control characters, surrogates.

    Names come from the system under test, and may be hostile. Line ends and tabs stay.
    """
    return "".join(
        character
        if character.isprintable() or character in "\n\t "
        else character.encode("unicode_escape", "surrogatepass").decode("ascii")
        for character in text
    )
