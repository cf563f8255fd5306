"""What is kept of a message beside the facts: as it came, with the ids it is about (S-13, S-63)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from ...runtime.journal.ledger import Domain, Note
from ..correlation import Completeness, Correlation
from .messages import object_of

ASSISTANT: Final = "assistant"
"""The kind of the note of a message that has ended."""
UNDELIVERABLE: Final = "answer_undeliverable"
"""The kind of the observation that an outcome could not be handed over any more (S-28)."""
_OF_ITEMS: Final = frozenset({Domain.ITEM, Domain.APPROVAL, Domain.MESSAGE})
"""What is about an item: it is whole with the item's id."""


class Notes:
    """The notes of one thread."""

    def __init__(self, thread_id: str) -> None:
        """Make those of this thread."""
        self._thread_id: Final = thread_id
        self._correlated = lru_cache(maxsize=64)(self._correlation)

    def observed(self, domain: Domain, method: str, params: Mapping[str, Any], at: float) -> Note:
        """Return the observation of a message."""
        turn_id = params.get("turnId")
        if turn_id is None:
            turn_id = object_of(params.get("turn")).get("id")
        item_id = params.get("itemId") or params.get("callId")
        if item_id is None:
            item = object_of(params.get("item"))
            item_id = item.get("call_id") or item.get("id")
        about = self._correlated(domain, _id(turn_id), _id(item_id), _id(params.get("approvalId")))
        return Note(domain=domain, kind=method, body=params, at=at, correlation=about)

    def message(self, turn_id: str, item_id: str, text: str, at: float) -> Note:
        """Return the note of a message that has ended."""
        return Note(
            domain=Domain.MESSAGE,
            kind=ASSISTANT,
            body={"id": said_id(turn_id, item_id), "text": text, "item_id": item_id},
            at=at,
            correlation=self._correlated(Domain.MESSAGE, turn_id, item_id, None),
        )

    def undeliverable(self, turn_id: str, item_id: str, call: Mapping[str, str], at: float) -> Note:
        """Return the observation that nobody waits for an outcome any more (S-28)."""
        about = self._correlated(Domain.ITEM, turn_id, item_id, None)
        return Note(domain=Domain.ITEM, kind=UNDELIVERABLE, body=call, at=at, correlation=about)

    def _correlation(
        self, domain: Domain, turn_id: str | None, item_id: str | None, approval_id: str | None
    ) -> Mapping[str, Any]:
        """Return the ids of a note; whole where it has all that one of its domain has (S-63)."""
        whole = turn_id is not None and (item_id is not None or domain not in _OF_ITEMS)
        return Correlation(
            thread_id=self._thread_id,
            turn_id=turn_id,
            item_id=item_id,
            approval_id=approval_id if turn_id or item_id else None,
            completeness=Completeness.COMPLETE if whole else Completeness.PARTIAL,
        ).body()


def said_id(turn_id: str, item_id: str) -> str:
    """Return the id of a message: of its turn and its item, whose ids models use again."""
    return f"{turn_id}/{item_id}"


def _id(found: object) -> str | None:
    return found if isinstance(found, str) and found else None
