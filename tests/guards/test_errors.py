"""What a guard refuses is told wherever it is caught: it crosses processes, and can be copied."""

from __future__ import annotations

import copy
import pickle

import pytest

from turnlock.guards import (
    At,
    DecidedOtherwise,
    Differs,
    Forked,
    GuardRefused,
    InDoubt,
    NotApproved,
    NotRecorded,
    Stale,
    StillRunning,
    errors,
)

AT = At("r", "t", "c")

ERRORS: tuple[GuardRefused | NotRecorded, ...] = (
    NotApproved("waits", at=AT, digest="0", arguments={"amount": 5}),
    InDoubt("who knows", at=AT, attempt=2, worker="here:7", since=1.5),
    StillRunning("runs", at=AT, worker=None),
    Stale("over", at=AT, reason="late"),
    Forked("twice", at=AT, came="t2"),
    DecidedOtherwise("too late", at=AT, reason="already_decided"),
    Differs("other arguments", at=AT),
    NotRecorded("no JSON", at=AT),
)


@pytest.mark.parametrize("error", ERRORS, ids=lambda it: type(it).__name__)
def test_a_refusal_survives_being_copied_and_pickled(error: GuardRefused | NotRecorded) -> None:
    """A host that runs tools in a pool of processes is told what was refused, not how it failed."""
    for again in (copy.copy(error), copy.deepcopy(error), pickle.loads(pickle.dumps(error))):  # noqa: S301 - our own
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)
        assert again.at == AT


def test_each_refusal_is_among_them() -> None:
    kinds = {it for it in vars(errors).values() if isinstance(it, type)}
    ours = {it for it in kinds if issubclass(it, GuardRefused | NotRecorded)}
    assert ours - {GuardRefused} == {type(it) for it in ERRORS}
