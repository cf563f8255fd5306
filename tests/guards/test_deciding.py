"""People decide once: about what was shown, in its turn; said again it changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from turnlock.guards.engine import Engine
from turnlock.guards.errors import DecidedOtherwise, Differs, InDoubt, Stale, StillRunning
from turnlock.guards.values import At
from turnlock.models.calls import Status
from turnlock.models.deliveries import Match, Resolution, Scope
from turnlock.models.errors import InvalidValue
from turnlock.models.run import Limits
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.memory import MemoryJournal

from ..runtime.faulty_journal import FaultyJournal
from ..runtime.virtual import run
from .engines import GATED, call, claimed, conforms, engine, facts_of, open_turn, replayed

A = At("r", "t1", "a")


async def asked(journal: Journal, **more: Any) -> tuple[Engine, str]:
    """Open a turn in which `a` waits; return its digest."""
    guard = engine(journal, policies=GATED, **more)
    await open_turn(guard, "t1", call("a", "pay", {"n": 5}), call("b"))
    (pending,) = await guard.waiting("r")
    assert (pending.at, pending.tool, pending.arguments) == (A, "pay", {"n": 5})
    return guard, pending.digest


def test_an_approval_lets_it_begin_once() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        guard, digest = await asked(journal)
        await guard.decide(A, approved=True, digest=digest, by="ada")
        assert await guard.waiting("r") == ()
        await guard.succeeded(await claimed(guard, "a", "pay", {"n": 5}), 1)
        assert (await replayed(guard, "a", "pay", {"n": 5})).value == 1
        await conforms(journal)

    run(play())


@pytest.mark.parametrize("moment", ["at once", "running", "ended", "closed", "long ago"])
@pytest.mark.parametrize("approved", [True, False])
def test_the_same_decision_again_changes_nothing_and_another_is_refused(
    moment: str, approved: bool
) -> None:
    async def play() -> None:
        journal = FaultyJournal(MemoryJournal())
        guard, digest = await asked(journal)
        await guard.decide(A, approved=approved, digest=digest, by="ada")
        if moment != "at once":
            if approved:
                held = await claimed(guard, "a", "pay", {"n": 5})
                if moment != "running":
                    await guard.succeeded(held, 1)
            if moment in {"closed", "long ago"}:
                await guard.succeeded(await claimed(guard, "b"), 1)
            if moment == "long ago":
                await open_turn(guard, "t2", call("a"), after="t1")
        before = await facts_of(journal)
        await guard.decide(A, approved=approved, digest=digest, by="bob")
        with pytest.raises(DecidedOtherwise) as refused:
            await guard.decide(A, approved=not approved, digest=digest)
        assert (refused.value.at, refused.value.reason) == (A, "already_decided")
        assert await facts_of(journal) == before

    run(play())


def test_an_approval_of_more_or_of_other_arguments_is_another_decision() -> None:
    async def play() -> None:
        guard, digest = await asked(MemoryJournal())
        more: dict[str, Any] = {"scope": Scope.TURN, "match": Match.TOOL, "arguments": {"n": 4}}
        await guard.decide(A, approved=True, digest=digest, **more)
        await guard.decide(A, approved=True, digest=digest, **more)
        others: list[dict[str, Any]] = [
            {"scope": Scope.SESSION},
            {"match": Match.EXACT},
            {"arguments": {"n": 3}},
        ]
        for other in others:
            with pytest.raises(DecidedOtherwise):
                await guard.decide(A, approved=True, digest=digest, **{**more, **other})

    run(play())


def test_a_decision_about_other_arguments_than_were_shown_differs() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        guard, digest = await asked(journal)
        before = await facts_of(journal)
        with pytest.raises(Differs):
            await guard.decide(A, approved=True, digest="0" * 64)
        with pytest.raises(Differs):
            await guard.decide(A, approved=False, digest="")
        assert await facts_of(journal) == before
        await guard.decide(A, approved=True, digest=digest)
        with pytest.raises(Differs):
            await guard.decide(A, approved=True, digest="0" * 64)

    run(play())


def test_a_decision_about_what_asks_nobody_or_is_unknown_is_stale() -> None:
    async def play() -> None:
        guard, digest = await asked(MemoryJournal())
        for at, reason in (
            (At("r", "t1", "b"), "not_awaiting_approval"),
            (At("r", "t1", "z"), "unknown_invocation"),
            (At("r", "t9", "a"), "unknown_invocation"),
            (At("x", "t1", "a"), "unknown_invocation"),
        ):
            with pytest.raises(Stale) as refused:
                await guard.decide(at, approved=True, digest=digest)
            assert refused.value.reason == reason
            assert not isinstance(refused.value, DecidedOtherwise)

    run(play())


def test_a_decision_names_its_turn() -> None:
    async def play() -> None:
        guard, digest = await asked(MemoryJournal())
        with pytest.raises(InvalidValue, match=r"at\.turn"):
            await guard.decide(At("r", None, "a"), approved=True, digest=digest)
        with pytest.raises(InvalidValue, match=r"at\.turn"):
            await guard.resolve(At("r", None, "a"), Resolution.RETRY)

    run(play())


def test_an_approval_of_an_id_that_a_later_turn_used_again_is_stale() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        guard, digest = await asked(journal)
        await open_turn(guard, "t2", call("a", "pay", {"n": 5}), after="t1")
        before = await facts_of(journal)
        with pytest.raises(Stale) as refused:
            await guard.decide(A, approved=True, digest=digest)
        assert refused.value.reason == "late"
        assert await facts_of(journal) == before
        await guard.decide(At("r", "t2", "a"), approved=True, digest=digest)

    run(play())


def test_a_grant_approves_what_comes_and_no_more_than_fit_are_given() -> None:
    async def play() -> None:
        guard, digest = await asked(MemoryJournal(), limits=Limits(grants=1))
        await guard.decide(A, approved=True, digest=digest, scope=Scope.SESSION)
        await guard.succeeded(await claimed(guard, "a", "pay", {"n": 5}), 1)
        await guard.succeeded(await claimed(guard, "b"), 1)
        await open_turn(guard, "t2", call("a", "pay", {"n": 5}), call("b", "pay", {"n": 6}))
        await claimed(guard, "a", "pay", {"n": 5}, turn="t2")
        (other,) = await guard.waiting("r")
        with pytest.raises(Stale) as refused:
            await guard.decide(other.at, approved=True, digest=other.digest, scope=Scope.SESSION)
        assert refused.value.reason == "limit_reached"
        await guard.decide(other.at, approved=True, digest=other.digest)

    run(play())


@pytest.mark.parametrize("resolution", Resolution)
def test_somebody_says_what_became_of_what_is_in_doubt(resolution: Resolution) -> None:
    async def play() -> None:
        journal = MemoryJournal()
        guard = engine(journal)
        await open_turn(guard, "t1", call("a"), call("b"))
        await guard.lost(await claimed(guard, "a"))
        said: dict[Resolution, dict[str, Any]] = {
            Resolution.RESULT: {"result": None},
            Resolution.ERROR: {"error": "never arrived"},
            Resolution.RETRY: {},
        }
        told = said[resolution]
        await guard.resolve(A, resolution, **told)
        before = await facts_of(journal)
        await guard.resolve(A, resolution, **told)
        assert await facts_of(journal) == before
        if resolution is Resolution.RETRY:
            assert (await claimed(guard, "a")).attempt == 2
            return
        outcome = await replayed(guard, "a")
        is_result = resolution is Resolution.RESULT
        assert outcome.status is (Status.SUCCEEDED if is_result else Status.FAILED)
        others: list[tuple[Resolution, dict[str, Any]]] = [
            (Resolution.RETRY, {}),
            (Resolution.RESULT, {"result": 0}),
            (Resolution.ERROR, {"error": "otherwise"}),
        ]
        for other, payload in others:
            with pytest.raises(DecidedOtherwise):
                await guard.resolve(A, other, **payload)
        await guard.succeeded(await claimed(guard, "b"), 1)
        await guard.resolve(A, resolution, **told)
        await conforms(journal)

    run(play())


def test_what_runs_or_has_not_begun_is_in_no_doubt() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        guard = engine(journal)
        await open_turn(guard, "t1", call("a"))
        with pytest.raises(Stale) as refused:
            await guard.resolve(A, Resolution.RETRY)
        assert refused.value.reason == "not_in_doubt"
        held = await claimed(guard, "a")
        for one in (guard, engine(journal)):
            with pytest.raises(StillRunning):
                await one.resolve(A, Resolution.RETRY)
        await guard.lost(held)
        with pytest.raises(InDoubt):
            await claimed(guard, "a")
        with pytest.raises(InvalidValue):
            await guard.resolve(A, Resolution.RESULT)

    run(play())
