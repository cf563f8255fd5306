"""What facts and effects look like as JSON: structs that msgspec encodes without a detour.

`write` of the codec makes an object of plain dicts, for readers in Python. Here the same object is
only ever encoded, so that a struct of the fields that are given does: at half the cost, and byte
for byte the same text (tests/wire/test_shapes.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import attrs
import msgspec

from ..models.calls import Call, CallResult
from ..models.codec import ALWAYS_WRITTEN, nested_records
from ..models.effects import EFFECTS
from ..models.facts import FACTS
from ..models.record import Record, fields_of

Shape: TypeAlias = Callable[[Any], msgspec.Struct]
"""Makes the struct of a record: its type first, then the fields that are given."""


def _make_shape(cls: type[Record]) -> Shape:
    """Return a function that hands the fields of this class to its struct.

    It is generated, because reading fields by name in a loop would cost what the struct saves.
    """
    fields = [field for field in fields_of(cls) if field.init]
    required = [
        field.name
        for field in fields
        if field.default is attrs.NOTHING or field.name in ALWAYS_WRITTEN
    ]
    optional = {field.name: field.default for field in fields if field.name not in required}
    tag = getattr(cls, "type", None)
    struct = msgspec.defstruct(
        cls.__name__,
        [*((name, Any) for name in required), *((n, Any, told) for n, told in optional.items())],
        omit_defaults=True,
        gc=False,  # it lives until it is encoded
        tag=tag and str(tag),
        tag_field=tag and "type",
    )
    known: dict[str, Any] = {"Struct": struct}
    arguments: list[str] = []
    for name in (*required, *optional):
        nested = nested_records(cls).get(name)
        if nested is None:
            arguments.append(f"record.{name}")
            continue
        known[f"of_{name}"] = SHAPES[nested.kind]
        each = f"[of_{name}(item) for item in record.{name}]"
        arguments.append(each if nested.many else f"of_{name}(record.{name})")
    source = f"def make(record): return Struct({', '.join(arguments)})"
    exec(source, known)  # noqa: S102 - made of field names alone
    made: Shape = known["make"]
    return made


SHAPES: Final[dict[type[Record], Shape]] = {}
"""How each class is shaped; those that stand in others first."""
for _cls in (Call, CallResult, *FACTS, *EFFECTS):
    SHAPES[_cls] = _make_shape(_cls)
