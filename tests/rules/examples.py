"""The smallest of each delivery, call and run: all that is required and nothing else."""

from __future__ import annotations

from typing import Any

from turnlock import (
    Acknowledge,
    AddCall,
    Call,
    Claim,
    Decide,
    Interrupt,
    Log,
    Lose,
    OpenTurn,
    Reject,
    Renew,
    Report,
    Resolve,
    Revoke,
    Run,
    SealTurn,
    Tick,
)

from ..outcome import call

WHOLE: dict[type[Any], dict[str, Any]] = {
    OpenTurn: {"turn_id": "T1", "calls": (), "sealed": False},
    AddCall: {"turn_id": "T1", "call": call("a")},
    SealTurn: {"turn_id": "T1"},
    Decide: {"turn_id": "T1", "invocation_id": "a", "approved": True},
    Claim: {"turn_id": "T1", "invocation_id": "a", "attempt": 1},
    Renew: {"turn_id": "T1", "invocation_id": "a", "lease": 1.0},
    Reject: {"invocation_id": "a", "error": "x"},
    Report: {"invocation_id": "a", "result": None},
    Lose: {"invocation_id": "a"},
    Resolve: {"turn_id": "T1", "invocation_id": "a", "attempt": 1, "resolution": "retry"},
    Interrupt: {"turn_id": "T1"},
    Acknowledge: {"turn_id": "T1"},
    Revoke: {"grant_id": "grant/r/1"},
    Log: {"invocation_id": "a", "text": ""},
    Tick: {},
    Call: {"invocation_id": "a", "tool_name": "t", "arguments": {}, "requires_approval": True},
    Run: {"run_id": "r"},
}
