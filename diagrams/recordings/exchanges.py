"""Deliveries of one run, each with the receipt that somebody's kernel gave."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar, cast

from ...models.checks import number
from ...models.codec import Raw, read_delivery, read_effect, read_fact, write
from ...models.errors import InvalidValue, shown
from ...models.reasons import Reason
from ...models.run import Run
from .playing import DIGEST, RECOVER
from .recording import Moment, Recording

T = TypeVar("T")


class Exchanges:
    """The deliveries of one run so far. Receipts are believed: `turnlock check` judges them."""

    def __init__(self, run: Run) -> None:
        """Begin where nothing has happened."""
        self._run = run
        self._clock = -math.inf
        self._moments: list[Moment] = []

    def take(self, delivery: Raw, receipt: Raw) -> None:
        """Take the next delivery with its receipt. Raises `InvalidValue`.

        What harnesses ask for, a recovery or a digest, is no receive and is passed over.
        """
        if delivery.get("type") in {RECOVER, DIGEST}:
            return
        fields = dict(delivery)
        now = number(fields.pop("now", None), place="delivery.now")
        raw_facts = _list(receipt, "facts")
        common = {"run_id": self._run.run_id}
        if raw_facts:  # our journals mark what K-9 joins; section 12 does not ask for it
            common["commit"] = raw_facts[-1].get("sequence", 0)
        facts = tuple(
            _read(f"receipt.facts[{place}]", read_fact, {**common, **raw})
            for place, raw in enumerate(raw_facts)
        )
        effects = tuple(
            _read(f"receipt.effects[{place}]", read_effect, raw)
            for place, raw in enumerate(_list(receipt, "effects"))
        )
        self._clock = max(facts[-1].at, self._clock) if facts else self._clock
        self._moments.append(
            Moment(
                at=max(now, self._clock),
                delivery=write(_read("delivery", read_delivery, fields)),
                facts=facts,
                effects=effects,
                reason=_reason(receipt),
            )
        )

    def recording(self) -> Recording:
        """Return what was read."""
        return Recording(run=self._run, moments=tuple(self._moments))


def _read(place: str, reader: Callable[[Raw], T], raw: Raw) -> T:
    try:
        return reader(raw)
    except InvalidValue as error:
        raise error.inside(place) from None


def _list(receipt: Raw, name: str) -> list[Raw]:
    """Return the facts or the effects of a receipt, each an object."""
    items: Any = receipt.get(name, [])
    if not isinstance(items, list) or not all(
        isinstance(item, dict) for item in cast("list[object]", items)
    ):
        raise InvalidValue(
            place=f"receipt.{name}", cause="is no list of objects", fix="give it as on the wire"
        )
    return cast("list[Raw]", items)


def _reason(receipt: Raw) -> Reason | None:
    accepted, reason = receipt.get("accepted"), receipt.get("reason")
    if accepted is True and reason is None:
        return None
    if accepted is False and reason in set(Reason):
        return Reason(reason)
    raise InvalidValue(
        place="receipt",
        cause=f"accepted is {shown(accepted)} and the reason {shown(reason)}",
        fix="give accepted: true, or accepted: false with a reason of section 11",
    )
