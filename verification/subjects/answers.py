"""Answers of a command, read and held to what section 12 of kernel.md says of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

import msgspec

from ...models.errors import shown
from ...wire.known_parts import Repeated
from ..errors import SubjectFailed
from .subject import Raw, Script

RECEIPT: Final = (
    '{"accepted": true or false, "reason": a text if refused, "facts": [{"type": a text, …}, …], '
    '"effects": [{"type": a text, …}, …]}'
)
NO_RECEIPT: Final = f"a receipt is {RECEIPT}"
DIGEST: Final = '{"digest": a text}'

_decode: Final = msgspec.json.Decoder().decode


class _Parts(msgspec.Struct):
    id: int
    scripts: list[list[msgspec.Raw]]
    error: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_split: Final = msgspec.json.Decoder(_Parts).decode


class AnswerReader:
    """Reads the answers of one system; what comes again and again is not read each time.

    Receipts of one text may be one object, to be read only.
    """

    def __init__(self) -> None:
        """Know nothing yet."""
        self._receipts = Repeated(read_receipt)

    def read(self, line: bytes, request_id: int, scripts: Sequence[Script]) -> list[list[Raw]]:
        """Return the receipts that an answer holds, or raise as `receipts_of` does."""
        try:
            parts = _split(line)
            if not _asked_for(parts, request_id, scripts):
                return receipts_of(line, request_id, scripts)
            known = self._receipts
            return [[known[bytes(text)] for text in script] for script in parts.scripts]
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return receipts_of(line, request_id, scripts)  # which knows what is wrong, and where


def _asked_for(parts: _Parts, request_id: int, scripts: Sequence[Script]) -> bool:
    """Say whether an answer has the outward form of one that holds receipts only."""
    return (
        parts.error is msgspec.UNSET
        and parts.id == request_id
        and [*map(len, parts.scripts)] == [*map(len, scripts)]
        and not any(delivery["type"] == "digest" for script in scripts for delivery in script)
    )


def read_receipt(text: bytes) -> Raw:
    """Return the receipt of a text. Raises `msgspec.DecodeError` where it is none."""
    receipt = _decode(text)
    if not _is_receipt(receipt):
        raise msgspec.DecodeError
    return cast("Raw", receipt)


def receipts_of(line: bytes, request_id: int, scripts: Sequence[Script]) -> list[list[Raw]]:
    """Return the receipts that the answer to a request holds: one for each delivery.

    Raises `SubjectFailed` with what is wrong. Fields that section 12 does not name are left alone.
    """
    try:
        raw = _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        text = shown(line.decode(errors="replace"))
        raise SubjectFailed(f"answered what is no JSON ({error}): {text}") from None
    if not isinstance(raw, dict):
        raise SubjectFailed(f"answered {shown(raw)}, which is no JSON object")
    answer = cast("Raw", raw)
    if "error" in answer:  # which may have no id, if the request could not be read
        raise SubjectFailed("answered with an error: " + _error(answer["error"]))
    if answer.get("id") != request_id:
        raise SubjectFailed(f"answered request {shown(answer.get('id'))}, not {request_id}")
    played = _list_of(answer.get("scripts"), len(scripts), "scripts")
    for index, (script, receipts) in enumerate(zip(scripts, played, strict=True)):
        _check_script(script, receipts, f"scripts[{index}]")
    return cast("list[list[Raw]]", played)


def _check_script(script: Script, raw: object, place: str) -> None:
    receipts = _list_of(raw, len(script), place)
    for index, (delivery, receipt) in enumerate(zip(script, receipts, strict=True)):
        digest = delivery["type"] == "digest"
        if not (_is_digest if digest else _is_receipt)(receipt):
            wanted = DIGEST if digest else RECEIPT
            where = f"{place}[{index}]"
            raise SubjectFailed(f"answered {shown(receipt)} as {where}; a receipt is {wanted}")


def _list_of(raw: object, length: int, place: str) -> list[object]:
    if not isinstance(raw, list):
        raise SubjectFailed(f"answered {shown(raw)} as {place}, which is no list")
    items = cast("list[object]", raw)
    if len(items) != length:
        raise SubjectFailed(f"answered {len(items)} items as {place}, which asked for {length}")
    return items


def _is_receipt(receipt: object) -> bool:
    if not isinstance(receipt, dict):
        return False
    told = cast("Raw", receipt)
    accepted = told.get("accepted")
    return (
        (accepted is True or (accepted is False and type(told.get("reason")) is str))
        and _are_typed(told.get("facts"))
        and _are_typed(told.get("effects"))
    )


def _are_typed(records: object) -> bool:
    if not isinstance(records, list):
        return False
    for record in cast("list[object]", records):  # all() would cost more than what it checks
        if not isinstance(record, dict) or type(cast("Raw", record).get("type")) is not str:
            return False
    return True


def _is_digest(receipt: object) -> bool:
    return isinstance(receipt, dict) and type(cast("Raw", receipt).get("digest")) is str


def _error(error: object) -> str:
    if not isinstance(error, dict):
        return shown(error)
    return ", ".join(f"{name} {shown(value)}" for name, value in cast("Raw", error).items())
