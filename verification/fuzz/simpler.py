"""Simpler scripts of the same length: less time, fewer calls, fewer and plainer fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ..subjects.subject import Raw, Script

_OPTIONAL: Final[dict[str, tuple[str, ...]]] = {
    "open_turn": ("epoch", "sealed"),
    "decide": (
        *("reason", "decided_by", "scope", "match"),
        *("expires_in", "arguments_digest", "arguments"),
    ),
    "claim": ("worker", "lease"),
    "renew": ("attempt",),
    "report": ("attempt",),
    "lose": ("attempt",),
    "interrupt": ("reason", "grace"),
}
"""The fields that a delivery can do without (section 3); `run_id` is one of every delivery."""

_PLAIN: Final[dict[str, Any]] = {"result": None, "lease": 0.0, "grace": 0.0, "expires_in": 0.0}
"""The plainest value of a field that stays."""

_PLAIN_CALL: Final[Raw] = {"tool_name": "ls", "arguments": {}, "requires_approval": False}


def simpler_scripts(script: Script) -> Iterator[Script]:
    """Yield the script with one thing made simpler.

    Whoever takes the first that still fails, again and again, comes to an end: no change here can
    be taken back by another.
    """
    yield from _quicker(script)
    for place, step in enumerate(script):
        for simpler in _simpler_steps(step):
            yield [*script[:place], simpler, *script[place + 1 :]]


def _quicker(script: Script) -> Iterator[Script]:
    """Take out all the time that passes, or what passes before one step."""
    times = [float(step.get("now", 0.0)) for step in script]
    if any(times):
        yield [_at(step, 0.0) for step in script]
    for place, (before, time) in enumerate(zip([0.0, *times], times, strict=False)):
        if time > before:
            later = zip(script[place:], times[place:], strict=True)
            sooner = [_at(step, max(0.0, now - (time - before))) for step, now in later]
            yield [*script[:place], *sooner]


def _at(step: Raw, now: float) -> Raw:
    return {**step, "now": now} if "now" in step else step


def _simpler_steps(step: Raw) -> Iterator[Raw]:
    for name in ("run_id", *_OPTIONAL.get(step["type"], ())):
        if name in step:
            yield {other: step[other] for other in step if other != name}
    for name, plain in _PLAIN.items():
        if name in step and step[name] != plain:
            yield {**step, name: plain}
    for place, call in enumerate(step.get("calls", ())):
        calls = step["calls"]
        yield {**step, "calls": [*calls[:place], *calls[place + 1 :]]}
        for simpler in _simpler_calls(call):
            yield {**step, "calls": [*calls[:place], simpler, *calls[place + 1 :]]}
    if "call" in step:
        yield from ({**step, "call": simpler} for simpler in _simpler_calls(step["call"]))


def _simpler_calls(call: Raw) -> Iterator[Raw]:
    for name in ("approval_timeout", "provider_call_id"):
        if name in call:
            yield {other: call[other] for other in call if other != name}
    for name, plain in _PLAIN_CALL.items():
        if call[name] != plain:
            yield {**call, name: plain}
