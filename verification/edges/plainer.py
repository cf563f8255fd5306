"""The same story in plain words: what goes wrong there, too, is not the edge's doing.

Null fields are left out, ids, texts and JSON values become short words, one for each that there
was: what differed still does. Times and sizes stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import attrs

from ..findings import Raw
from ..oracle.reading import canonical, digest_of, make_id

_NAMES: Final = {"turn_id": "T", "invocation_id": "a", "tool_name": "tool", "worker": "w"}


def plainer(run: Raw, script: Sequence[Raw]) -> tuple[Raw, list[Raw]]:
    """Return a run and a script that tell the same in plain words; `script` is not changed."""
    words = _Words(run["run_id"])
    for step in script:
        words.learn(step)
    return {**words.fields(run), "run_id": "r"}, [words.fields(step) for step in script]


@attrs.define
class _Words:
    """What stands for what, by kind: the first of a kind is its first word, and so on."""

    run_id: str
    said: dict[str, dict[str, int]] = attrs.field(factory=dict[str, dict[str, int]])
    digests: dict[str, str] = attrs.field(factory=dict[str, str])

    def learn(self, step: Raw) -> None:
        """Know the digests of all arguments that a step names."""
        for part in (step, step.get("call") or {}, *step.get("calls", ())):
            if part.get("arguments") is not None:
                self.digests[digest_of(part["arguments"])] = digest_of(
                    self.field("arguments", part["arguments"])
                )

    def fields(self, part: Raw) -> Raw:
        """Return a delivery, a call or a run in these words, without what is null."""
        return {
            name: self.field(name, value)
            for name, value in part.items()
            if value is not None or name == "result"
        }

    def field(self, name: str, value: Any) -> Any:  # noqa: ANN401 - JSON
        """Return what stands for the value of a field: itself, if the field holds no words."""
        said = _SAID.get(name)
        return value if said is None else said(self, name, value)

    def number(self, kind: str, value: str) -> int:
        """Count the values of a kind in the order in which they are met."""
        known = self.said.setdefault(kind, {})
        return known.setdefault(value, len(known) + 1)


def _arguments(words: _Words, name: str, value: Raw) -> Raw:
    return {"n": words.number(name, canonical(value))} if value else value


def _calls(words: _Words, _: str, value: Any) -> Any:  # noqa: ANN401 - of a run, a limit
    if not isinstance(value, list):
        return value
    return [words.fields(call) for call in cast("list[Raw]", value)]


def _name(words: _Words, name: str, value: str) -> str:
    return f"{_NAMES[name]}{words.number(name, value)}"


def _text(words: _Words, name: str, value: str) -> str:
    return f"{name} {words.number(name, value)}" if value else value


_SAID: Final[dict[str, Callable[[_Words, str, Any], Any]]] = {
    **dict.fromkeys(_NAMES, _name),
    **dict.fromkeys(("error", "reason", "decided_by", "text"), _text),
    "arguments": _arguments,
    "arguments_digest": lambda words, _, value: words.digests.get(value, "00"),
    "result": lambda words, name, value: f"result {words.number(name, canonical(value))}",
    "call": lambda words, _, value: words.fields(value),
    "calls": _calls,
    "run_id": lambda words, _, value: "r" if value == words.run_id else "other",
    "grant_id": lambda words, _, value: value.replace(make_id("grant", words.run_id), "grant/r"),
}
"""What stands for the value of a field, by its name."""
