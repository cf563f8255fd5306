"""A user's own kernel in this process: explored by what it declares, in the words of the wire."""

from __future__ import annotations

from typing import Any

import pytest

from turnlock.verification.alphabet.scope import Scope
from turnlock.verification.alphabet.symbols import (
    TICK,
    Attempt,
    call,
    of_call,
    of_turn,
    open_turn,
    symbols,
)
from turnlock.verification.closure.technique import check_subject
from turnlock.verification.findings import NO_ANSWER, Result, Status
from turnlock.verification.oracle.oracle import Oracle
from turnlock.verification.subjects.subject import Capability

Raw = dict[str, Any]

SMALL = Scope(
    name="small",
    about="two calls, leases, doubt",
    run={"run_id": "r", "limits": {"remember_for": 1}},
    symbols=(
        *symbols(
            [
                open_turn("T", call("a"), call("b")),
                *[
                    of_call("claim", "T", "a", attempt=Attempt(1), worker=worker, lease=1.0)
                    for worker in ("v", "w")
                ],
                of_call("report", "T", "a", result=1),
                of_call("report", "T", "a", error="no"),
                of_call("resolve", "T", "a", attempt=Attempt(), **{"as": "retry"}),
                of_call("reject", "T", "b", error="no"),
                of_turn("acknowledge", "T"),
            ]
        ),
        *symbols([TICK], dt=1.0),
    ),
)


class Strangers:
    """Somebody's kernel: here the oracle, which speaks the wire, and its own digest."""

    capabilities = frozenset({Capability.CLONE, Capability.DIGEST, Capability.RECOVER})

    def __init__(self) -> None:
        self.oracle = Oracle({"run_id": "unset"})

    def reset(self, run: Raw) -> None:
        self.oracle = Oracle(run)

    def receive(self, delivery: Raw) -> Raw:
        return self.oracle.receive(delivery)

    def recover(self) -> Raw:
        return self.oracle.receive({"type": "recover"})

    def digest(self) -> Any:
        return self.oracle.key(self.oracle.state["at"] or 0.0)

    def clone(self) -> Strangers:
        twin = type(self)()
        twin.oracle = self.oracle.clone()
        return twin


class Polite(Strangers):
    """It accepts a second report."""

    def receive(self, delivery: Raw) -> Raw:
        receipt = super().receive(delivery)
        if receipt.get("reason") == "conflicting_duplicate":
            return {"accepted": True, "facts": [], "effects": []}
        return receipt


class Forgetful(Strangers):
    """Its digest does not say who holds an invocation, nor for how long."""

    def digest(self) -> Any:
        _, rows = self.oracle.key(0.0)  # type: ignore[misc]
        return tuple(row[:4] for row in rows)  # type: ignore[has-type]


class Lossy(Strangers):
    """It recovers a fresh run."""

    def recover(self) -> Raw:
        self.oracle = Oracle(self.oracle.run)
        return {"accepted": True, "facts": [], "effects": []}


class Owing(Strangers):
    """It recovers, and then says that nothing is owed."""

    def recover(self) -> Raw:
        return {**super().recover(), "effects": []}


class Mute(Strangers):
    """It answers what is no receipt."""

    def receive(self, delivery: Raw) -> Raw:
        return {"ok": True}


class Unrecoverable(Strangers):
    """It does not declare recovery, and has none."""

    capabilities = frozenset({Capability.CLONE, Capability.DIGEST})

    def recover(self) -> Raw:
        raise NotImplementedError


class Talkative(Strangers):
    """Its digest counts the deliveries: exploring it would never end."""

    def digest(self) -> Any:
        return self.oracle.state["sequence"], super().digest()


def checked(make: type[Strangers], *, bound: int = 5_000) -> Result:
    """What the closure says of it, on a small scope."""
    return check_subject(make, scopes=(SMALL,), progress=lambda _: None, bound=bound)


@pytest.mark.parametrize("make", [Strangers, Unrecoverable])
def test_a_right_kernel_holds(make: type[Strangers]) -> None:
    """No false alarm, and all of it is explored; what is undeclared is not asked for."""
    result = checked(make)

    assert result.status is Status.HOLDS
    assert result.figures["complete"] == 1


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (Polite, "K-30"),
        (Forgetful, "section 12"),
        (Lossy, "K-2"),
        (Owing, "K-3"),
        (Mute, NO_ANSWER),
    ],
)
def test_a_wrong_one_is_found(make: type[Strangers], rule: str) -> None:
    """Each by its own check, with a script."""
    result = checked(make)

    assert result.status is Status.VIOLATED
    assert result.findings[0].rule == rule
    assert result.findings[0].script


def test_a_digest_that_tells_too_much_ends_at_the_bound() -> None:
    """It is told that not all was explored."""
    result = checked(Talkative, bound=100)

    assert result.figures["complete"] == 0
