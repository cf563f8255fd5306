"""Two answers to one delivery, side by side: which fields differ, and which are alike.

An answer is a receipt of the wire, or whatever a system under test gave instead of one. Facts are
paired by what they say of whom, effects by their ids; numbers are equal by value, because a kernel
in another language writes 1 for 1.0; `commit` may be left out, since the wire does not demand it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, Final, TypeAlias, cast

import attrs

from ...models.safe_text import harmless
from ...views.phrases import answered as receipt_told
from ...views.phrases import named
from ...views.wording import VALUE, value_text
from ...wire.plain import alike, is_receipt
from ..drawing.tables import Table

SHOWN: Final = 24
"""Fields of a comparison that are shown; those that differ go before those that are alike."""
_VALUE: Final = 200
_NUMBERING: Final = frozenset({"at", "sequence", "commit"})
"""What merely numbers a fact is named as the difference only if nothing else differs."""

Raw: TypeAlias = Mapping[str, Any]


class Presence(Enum):
    """Stands for the value of what is there, or is not, where that is all that counts."""

    THERE = "there"
    NOTHING = "nothing"


NOTHING: Final = Presence.NOTHING
_THERE: Final = Presence.THERE


@attrs.frozen(kw_only=True)
class Pair:
    """One field in both answers, in words."""

    part: str
    """The fact or the effect; empty for what is of the whole answer."""
    name: str
    """The field of the part; empty where all of it is there or is not, or is alike."""
    expected: str
    got: str
    differs: bool

    @property
    def field(self) -> str:
        """Return the part and the field."""
        return f"{self.part} {self.name}".strip()


@attrs.frozen(kw_only=True)
class Comparison:
    """Both answers, field by field, in the order in which a receipt has them."""

    pairs: tuple[Pair, ...]
    left_out: int
    """Fields beyond `SHOWN`."""
    difference: str
    """Names the field that differs first, and says how; empty where none does."""

    @property
    def table(self) -> Table:
        """Return it as a table."""
        return Table(
            title="Expected and got",
            head=("", "field", "expected", "got"),
            rows=tuple(
                ("≠" if pair.differs else "=", pair.field, pair.expected, pair.got)
                for pair in self.pairs
            ),
            note="; ".join(filter(None, (self.difference, self.more))),
        )

    @property
    def more(self) -> str:
        """Say how much is left out, if anything is."""
        return f"{self.left_out:,} more fields are left out" if self.left_out else ""


def compared(expected: object, got: object) -> Comparison:
    """Hold two answers against each other."""
    if is_receipt(expected) and is_receipt(got):
        pairs = list(_paired(_parts(cast("Raw", expected)), _parts(cast("Raw", got))))
    else:
        pairs = [_pair("the answer", "", expected, NOTHING if got is None else got)]
    differing = [pair for pair in pairs if pair.differs]
    telling = [pair for pair in differing if pair.name not in _NUMBERING]
    alike_too = [pair for pair in pairs if not pair.differs]
    kept = set(map(id, [*differing, *alike_too][:SHOWN]))
    return Comparison(
        pairs=tuple(pair for pair in pairs if id(pair) in kept),
        left_out=len(pairs) - len(kept),
        difference=next(map(_difference, telling or differing), ""),
    )


def _difference(pair: Pair) -> str:
    expected, got = (harmless(said, limit=VALUE) for said in (pair.expected, pair.got))
    return f"differs at {pair.field}: expected {expected}, got {got}"


def answered(answer: object) -> str:
    """Tell an answer on one line; what is no receipt is shown as JSON."""
    if is_receipt(answer):
        return receipt_told(cast("Raw", answer))
    return "no receipt" if answer is None else f"no receipt: {value_text(answer)}"


def _parts(receipt: Raw) -> dict[str, Raw]:
    """Return the verdict, the facts and the effects under names that pair them."""
    parts: dict[str, Raw] = {
        "": {name: receipt[name] for name in ("accepted", "reason") if name in receipt}
    }
    for what in ("fact", "effect"):
        for part in cast("list[Raw]", receipt[f"{what}s"]):
            name = f"{what} {named(part)}"
            number = 2
            while name in parts:
                name = f"{what} {named(part)} #{number}"
                number += 1
            parts[name] = part
    return parts


def _paired(expected: Mapping[str, Raw], got: Mapping[str, Raw]) -> Iterator[Pair]:
    for part in dict.fromkeys((*expected, *got)):
        there = [_THERE if part in side else NOTHING for side in (expected, got)]
        fields = list(_fields(part, expected.get(part, {}), got.get(part, {})))
        if part and (NOTHING in there or not any(pair.differs for pair in fields)):
            yield _pair(part, "", *there)
        else:
            yield from fields


def _fields(part: str, expected: Raw, got: Raw) -> Iterator[Pair]:
    for name in dict.fromkeys((*expected, *got)):
        if name != "type" and not (name == "commit" and name not in got):
            yield _pair(part, name, expected.get(name, NOTHING), got.get(name, NOTHING))


def _pair(part: str, name: str, expected: object, got: object) -> Pair:
    return Pair(
        part=part,
        name=name,
        expected=_said(expected),
        got=_said(got),
        differs=not alike(expected, got),
    )


def _said(value: object) -> str:
    return value.value if isinstance(value, Presence) else value_text(value, limit=_VALUE)
