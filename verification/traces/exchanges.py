"""One run's deliveries with their receipts, each held against what the oracle answers.

The oracle is a second reading of the specification that shares no code with the kernel, so this
finds a kernel that is wrong as well as a log that is. Every receipt is compared as a whole; it
stops at the first that differs, since nothing after it has a meaning.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from ...models.codec import read_delivery
from ...models.errors import InvalidValue
from ...models.record import number
from ...wire.plain import DIGEST, RECOVER
from ..oracle.oracle import Oracle
from ..rulebook.blame import blamed
from ..rulebook.difference import described, first_difference, verdict_of
from .impossible import Impossible

Raw: TypeAlias = dict[str, Any]


class Exchanges:
    """The deliveries of one run so far. Memory is that of the oracle's state."""

    __slots__ = ("_oracle", "count")

    def __init__(self, run: Raw) -> None:
        """Begin where nothing has happened; `run` is a run object of the wire."""
        self._oracle = Oracle(run)
        self.count = 0
        """How many deliveries were judged."""

    @property
    def sequence(self) -> int:
        """The sequence of the latest fact; 0 before the first."""
        return int(self._oracle.state["sequence"])

    def take(self, delivery: Raw, receipt: Raw) -> None:
        """Judge the next delivery with its receipt.

        Raises `Impossible` for a receipt that is not the oracle's, and `InvalidValue` for what is
        no delivery. A digest is opaque: it is passed over.
        """
        if delivery.get("type") == DIGEST:
            return
        expected = self._expected(delivery)
        if first_difference(expected, receipt) is not None:
            raise Impossible(
                rule=blamed(delivery, expected, receipt),
                cause=described(delivery, expected, receipt),
                instead=(_told(expected),),
            )
        self.count += 1

    def _expected(self, delivery: Raw) -> Raw:
        oracle = self._oracle
        if delivery.get("type") == RECOVER:  # as the fold of the journal, which is not kept here
            return {"accepted": True, "facts": [], "effects": oracle.pending()}
        fields = dict(delivery)
        if "now" not in fields:
            raise InvalidValue(place="now", cause="is missing", fix="give Unix time in seconds")
        number(fields.pop("now"), place="now")
        read_delivery(fields)
        receipt: Raw = oracle.receive(delivery)
        oracle.journal.clear()  # memory must not grow with the log
        return receipt


def _told(receipt: Raw) -> str:
    parts = [
        f"{name} " + ", ".join(f"{part['type']}{_about(part)}" for part in receipt[name])
        for name in ("facts", "effects")
        if receipt[name]
    ]
    return "; ".join([verdict_of(receipt), *parts])


def _about(part: Raw) -> str:
    about = part.get("invocation_id") or part.get("grant_id") or part.get("turn_id")
    return f" of {about!r}" if about else ""
