"""Notes that were kept by their names alone, as notes of the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from ...models.sealed import FIELD, is_sealed
from ...models.values import Json
from .ledger import Domain, Note

_SAID: Final = "said/"
_PART: Final = "part/"
_STOPPED: Final = "stopped/"
_KINDS: Final = {
    "forked": (Domain.THREAD, "forked"),
    "forked/whole": (Domain.THREAD, "whole"),
}
_PREFIXES: Final = {
    "question/": (Domain.APPROVAL, "question"),
    "reply/": (Domain.APPROVAL, "reply"),
}
_OTHER: Final = (Domain.THREAD, "note")


def is_said(name: str) -> bool:
    """Whether a name is that of something said in a conversation, or that it was stopped."""
    return name.startswith((_SAID, _PART, _STOPPED))


def note_of(name: str, value: Json, *, at: float) -> Note:
    """Return the note that was kept under a name; its id is the name, which `body` has, too."""
    if is_said(name):
        domain, kind, body = _message(name, value)
    else:
        found = [it for prefix, it in _PREFIXES.items() if name.startswith(prefix)]
        domain, kind = _KINDS.get(name) or (found[0] if found else _OTHER)
        known = dict(value) if isinstance(value, Mapping) and kind != "note" else {"value": value}
        body = {} if kind == "whole" else known
    return Note(domain=domain, kind=kind, body={**body, "id": name}, at=at, id=name)


def _message(name: str, value: Json) -> tuple[Domain, str, dict[str, Json]]:
    kind = "part" if name.startswith(_PART) else "assistant"
    if name.startswith(_STOPPED):
        return Domain.MESSAGE, "stopped", {}
    if is_sealed(value):
        return Domain.MESSAGE, kind, {"sealed": value[FIELD]}
    if not isinstance(value, Mapping):
        return Domain.THREAD, "note", {"value": value}
    body = dict(cast("Mapping[str, Any]", value))
    role = body.pop("role", None)
    if kind != "part" and role == "user":
        kind = "user"
    return Domain.MESSAGE, kind, body
