"""What the wire says in more than one way, said in one: nulls, absent limits; and plain copies."""

# ruff: noqa: ANN401, D401 - it reads like the text, and JSON may be anything

# pyright: reportUnknownVariableType=false

from __future__ import annotations

from typing import Any, Final

from .reading import Given

DEFAULT_LIMITS: Final[dict[str, Any]] = {
    "remembered": 1024,
    "remember_for": 300,
    "calls": 10_000,
    "grants": 1_000,
    "continuations": 1_000,
}


def configured(run: dict[str, Any]) -> dict[str, Any]:
    """The run object with every limit said (K-54, K-56)."""
    asked: dict[str, Any] = run.get("limits") or {}
    limits = {**DEFAULT_LIMITS, **{name: it for name, it in asked.items() if it is not None}}
    return {
        "run_id": run["run_id"],
        "kind": "own" if run.get("kind") is None else run["kind"],
        "agent_id": run.get("agent_id"),
        "agent_name": run.get("agent_name"),
        "limits": limits,
    }


def well_formed(delivery: dict[str, Any]) -> Given:
    """Section 3: an optional field that is null is absent, except `result`."""
    given: Given = {
        name: value for name, value in delivery.items() if value is not None or name == "result"
    }
    if "call" in given:
        given["call"] = call_without_nulls(given["call"])
    if "calls" in given:
        given["calls"] = [call_without_nulls(call) for call in given["calls"]]
    return given


def call_without_nulls(call: dict[str, Any]) -> dict[str, Any]:
    """The same for a call, which says whether it is observed (K-58). Its arguments stay."""
    said = {name: value for name, value in call.items() if value is not None}
    return {**said, "observed": said.get("observed", False)}


def receipt_of(reason: str | None, facts: list[Any], effects: list[Any]) -> dict[str, Any]:
    """Section 12: what is answered; only a refusal has a reason."""
    if reason is None:
        return {"accepted": True, "facts": facts, "effects": effects}
    return {"accepted": False, "reason": reason, "facts": facts, "effects": effects}


_HOLDS: Final = (dict, list)


def copy_of(value: Any) -> Any:
    """A copy of a JSON value that shares nothing which can be changed."""
    if isinstance(value, dict):
        return {
            name: copy_of(item) if isinstance(item, _HOLDS) else item
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [copy_of(item) if isinstance(item, _HOLDS) else item for item in value]
    return value
