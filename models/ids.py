"""Every id that the kernel makes, a deterministic function of what it names (K-7)."""

from __future__ import annotations


def escape(part: str) -> str:
    """Write `/` as %2F and `%` as %25, so that joined parts can be told apart again."""
    if "/" in part or "%" in part:
        return part.replace("%", "%25").replace("/", "%2F")
    return part


def invocation_path(scope: str, invocation_id: str) -> str:
    """Return `run/epoch/turn/invocation`; `scope` is what `turn_scope` gave."""
    return f"{scope}/{escape(invocation_id)}"


def execute_id(path: str, attempt: int) -> str:
    """Return `execute/run/epoch/turn/invocation/attempt`; `path` is an `invocation_path`."""
    return f"execute/{path}/{attempt}"


def cancel_id(path: str, attempt: int) -> str:
    """Return `cancel/run/epoch/turn/invocation/attempt`."""
    return f"cancel/{path}/{attempt}"


def idempotency_key(path: str) -> str:
    """Return `call/run/epoch/turn/invocation`, the same for every attempt."""
    return f"call/{path}"


def continue_id(scope: str) -> str:
    """Return `continue/run/epoch/turn`."""
    return f"continue/{scope}"


def wake_id(run_id: str) -> str:
    """Return `wake/run`."""
    return f"wake/{escape(run_id)}"


def grant_id(run_id: str, number: int) -> str:
    """Return `grant/run/number`; grants count from 1 (K-40)."""
    return f"grant/{escape(run_id)}/{number}"


def turn_scope(prefix: str, epoch: int, turn_id: str) -> str:
    """Return `run/epoch/turn`: a turn id may be used again once forgotten, its epoch never is.

    `prefix` is the run id, escaped.
    """
    return f"{prefix}/{epoch}/{escape(turn_id)}"
