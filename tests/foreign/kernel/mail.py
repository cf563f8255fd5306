"""A delivery, read from the JSON object that the wire has for it."""

from __future__ import annotations

import copy
from typing import Any

Raw = dict[str, Any]


class Refuse(Exception):
    """A delivery is refused, for one of the reasons of section 11."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Mail:
    """One delivery: its fields as attributes, absent ones None."""

    def __init__(self, raw: Raw) -> None:
        given: Raw = {
            name: value for name, value in raw.items() if value is not None or name == "result"
        }  # S3 K-36
        given = copy.deepcopy(given)  # K-32
        self.type: str = given["type"]
        self.now: float = given["now"]
        self.run_id: str | None = given.get("run_id")
        self.turn_id: str | None = given.get("turn_id")
        self.invocation_id: str = given.get("invocation_id", "")
        self.attempt: int | None = given.get("attempt")
        self.epoch: int | None = given.get("epoch")
        self.sealed: bool = given.get("sealed", True)  # S3
        self.calls: list[Raw] = [call_spec(call) for call in given.get("calls", [])]
        self.call: Raw = call_spec(given["call"]) if "call" in given else {}
        self.approved: bool = given.get("approved", False)
        self.scope: str = given.get("scope", "once")  # S3 K-40
        self.match: str = given.get("match", "exact")  # S3 K-40
        self.expires_in: float | None = given.get("expires_in")
        self.arguments_digest: str | None = given.get("arguments_digest")
        self.arguments: Raw | None = given.get("arguments")
        self.reason: str | None = given.get("reason")
        self.decided_by: str | None = given.get("decided_by")
        self.worker: str | None = given.get("worker")
        self.lease: float | None = given.get("lease")
        self.has_result: bool = "result" in given  # K-36 K-30
        self.result: Any = given.get("result")
        self.error: str = given.get("error", "")
        self.way: str = given.get("as", "")
        self.grace: float = given.get("grace", 10.0)  # S3 K-53
        self.grant_id: str = given.get("grant_id", "")


def call_spec(raw: Raw) -> Raw:
    """Return a call as the facts carry it: what is null is absent, what has a default is there."""
    spec = {name: value for name, value in raw.items() if value is not None}  # S3
    spec.setdefault("observed", False)  # S3 K-58
    return spec
