"""What a guard is given that cannot be meant: said at once, by its name, and nothing has happened.

Ids come from frameworks and models, and whoever gives one that is no text must stop nobody else.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from turnlock.guards import At, Call, CallContext, Guard, NotApproved, Policy, Resolution, Scope
from turnlock.guards.once import once_at
from turnlock.models.errors import InvalidValue
from turnlock.runtime.errors import NoJournal

HERE = At("r", "t", "c")
PAY: Mapping[str, Any] = {"amount": 5}


class Text(str):
    """A text that could answer otherwise each time it is asked (K-32)."""

    __slots__ = ()


def call(arguments: Any = PAY) -> Call:
    return Call(invocation_id="c", tool_name="pay", arguments=arguments, requires_approval=False)


def never(_: CallContext) -> str:
    raise AssertionError("it ran")


def _open(guard: Guard, **given: Any) -> None:
    told: dict[str, Any] = {"run": "r", "turn": "t2", "calls": [], **given}
    guard.open_turn(told.pop("run"), told.pop("turn"), told.pop("calls"), **told)


def _call(guard: Guard, **given: Any) -> object:
    told: dict[str, Any] = {"at": HERE, "tool": "pay", "arguments": PAY, "fn": never, **given}
    return guard.call(
        told.pop("at"), told.pop("tool"), told.pop("arguments"), told.pop("fn"), **told
    )


def _once(guard: Guard, **given: Any) -> object:
    told: dict[str, Any] = {"at": At("w", None, "e"), "tool": "pay", "fn": never, **given}
    return guard.once(told.pop("at"), told.pop("tool"), PAY, told.pop("fn"), **told)


def _decide(guard: Guard, **given: Any) -> None:
    told: dict[str, Any] = {"at": HERE, "approved": True, "digest": "0" * 64, **given}
    guard.decide(told.pop("at"), **told)


def _waiting(guard: Guard, *, run: Any) -> object:
    return guard.waiting(run)


def _look(guard: Guard, *, call: Any) -> object:
    return guard.look(At("r", "t", call))


def _continues(guard: Guard, *, turn: Any) -> object:
    return guard.continuation("r", turn)


NO_TEXTS: tuple[Any, ...] = (b"a", None, 5, Text("a"), "\ud800")

WRONG: dict[str, tuple[str, Callable[[Guard], object]]] = {
    **{f"run {it!r}": ("run", partial(_open, run=it)) for it in NO_TEXTS},
    **{f"turn {it!r}": ("turn", partial(_open, turn=it)) for it in (b"a", 5, "\ud800")},
    **{f"after {it!r}": ("after", partial(_open, after=it)) for it in (b"a", 5)},
    **{f"waiting {it!r}": ("run", partial(_waiting, run=it)) for it in NO_TEXTS},
    **{f"look {it!r}": ("call", partial(_look, call=it)) for it in NO_TEXTS},
    **{f"continues {it!r}": ("run", partial(_continues, turn=it)) for it in (5, None)},
    "no turn": ("turn", lambda g: _open(g, turn=None)),
    "abandons": ("abandons: 'all' is not one of", lambda g: _open(g, abandons="all")),
    "calls of none": ("calls: None is no list", lambda g: _open(g, calls=None)),
    "one call": ("calls", lambda g: _open(g, calls=call())),
    "calls as text": ("calls", lambda g: _open(g, calls="c")),
    "no call": (r"calls\[0\]: 'c' is not a Call", lambda g: _open(g, calls=["c"])),
    "at": ("at", lambda g: _call(g, at=("r", "t", "c"))),
    "at of once": ("at", lambda g: _once(g, at="w")),
    "at of look": ("at", lambda g: g.look("r")),  # type: ignore[arg-type]
    "at of decide": ("at", lambda g: _decide(g, at="r")),
    "at of resolve": ("at", lambda g: g.resolve("r", Resolution.RETRY)),  # type: ignore[arg-type]
    "tool": ("tool", lambda g: _call(g, tool=b"pay")),
    "arguments": ("arguments: .* not a JSON object", lambda g: _call(g, arguments=[1])),
    "no arguments": ("arguments", lambda g: _call(g, arguments=None)),
    "nan": ("arguments.amount", lambda g: _call(g, arguments={"amount": float("nan")})),
    "fn": ("fn: 5 is no function", lambda g: _call(g, fn=5)),
    "encode": ("encode", lambda g: _call(g, encode=None)),
    "decode": ("decode", lambda g: _call(g, decode="json")),
    "suspends": ("suspends", lambda g: _call(g, suspends=[ValueError])),
    "suspends of one": ("suspends", lambda g: _call(g, suspends=ValueError)),
    "suspends of texts": ("suspends", lambda g: _call(g, suspends=("ValueError",))),
    "fn of once": ("fn", lambda g: _once(g, fn=None)),
    "policy": ("policy: 'gated' is no Policy", lambda g: _once(g, policy="gated")),
    "policy with a secret": ("policy", lambda g: _once(g, policy=Policy(keep_result="sealed"))),
    "approved": ("approved", lambda g: _decide(g, approved="no")),
    "digest": ("digest", lambda g: _decide(g, digest=b"0")),
    "by": ("by", lambda g: _decide(g, by=5)),
    "reason": ("reason", lambda g: _decide(g, reason="\ud800")),
    "scope": ("scope", lambda g: _decide(g, scope="ever")),
    "match": ("match", lambda g: _decide(g, match="like")),
    "edited": ("arguments", lambda g: _decide(g, arguments=[5])),
    "resolution": ("resolution", lambda g: g.resolve(HERE, "again")),  # type: ignore[arg-type]
    "within": ("within", lambda g: g.wait_decided(HERE, within=float("nan"))),
    "within of text": ("within", lambda g: g.wait_decided(HERE, within="1")),  # type: ignore[arg-type]
}  # fmt: skip


def test_what_cannot_be_meant_is_told_by_its_name_and_nothing_happens(tmp_path: Path) -> None:
    """Each in turn on one guard: none of them stops it, or leaves anything behind."""
    with Guard.open(tmp_path / "agent.db") as guard:
        guard.open_turn("r", "t", [call()])
        for name, (said, asked) in WRONG.items():
            with pytest.raises(InvalidValue, match=f"^{said}") as told:
                asked(guard)
            assert told.value.fix, name
            assert guard.look(HERE).attempt == 0, name
        assert guard.call(HERE, "pay", PAY, lambda _: "paid").value == "paid"
        assert guard.waiting("r") == ()
    with Guard.open(tmp_path / "agent.db") as guard, pytest.raises(InvalidValue):
        asyncio.run(guard.acall(HERE, "pay", PAY, 5))  # type: ignore[call-overload]


def test_words_are_taken_for_the_members_that_have_them(tmp_path: Path) -> None:
    """And the same decision again is the same one, however it was said."""
    with Guard.open(tmp_path / "agent.db", policies={"pay": Policy(approval=True)}) as guard:
        guard.open_turn("r", "t", iter([call()]), abandons="waiting")  # type: ignore[arg-type]
        with pytest.raises(NotApproved) as asked:
            guard.call(HERE, "pay", PAY, never)
        words: dict[str, Any] = {"scope": "turn", "match": "tool"}
        guard.decide(HERE, approved=True, digest=asked.value.digest, **words)
        guard.decide(HERE, approved=True, digest=asked.value.digest, **words)
        claim = guard.claim(HERE, "pay", PAY)
        assert guard.look(HERE).attempt == 1
        claim.lost()  # type: ignore[union-attr]
        guard.resolve(HERE, "retry")  # type: ignore[arg-type]
        guard.resolve(HERE, "retry")  # type: ignore[arg-type]
        assert Scope("turn") is Scope.TURN


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"lease": "3"}, "lease"),
        ({"lease": 0}, "lease"),
        ({"wait": None}, "wait"),
        ({"wait": float("inf")}, "wait"),
        ({"patience": -1}, "patience"),
        ({"policies": None}, "policies: None is no mapping"),
        ({"policies": {"pay": None}}, r"policies\['pay'\]: None is no Policy"),
        ({"policies": {5: Policy()}}, "policies"),
        ({"policies": {"pay": Policy(keep_result="sealed")}}, "a guard has no cipher"),
        ({"limits": 1}, "limits: 1 is not a Limits"),
    ],
)
def test_a_guard_that_cannot_be_meant_makes_no_journal(
    tmp_path: Path, given: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidValue, match=said):
        Guard.open(tmp_path / "agent.db", **given)
    assert not (tmp_path / "agent.db").exists()


@pytest.mark.parametrize("place", [b"agent.db", None])
def test_a_place_that_is_no_text_is_told(place: Any) -> None:
    with pytest.raises(NoJournal, match="is no text"):
        Guard.open(place)


def test_a_predicate_for_this_one_is_asked_in_a_thread_and_under_its_bound(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As that of a tool: what it does holds up nobody, and a person is asked."""
    monkeypatch.setattr("turnlock.runtime.declared.ANSWER", 0.2)
    over = threading.Event()

    def hangs(_: Mapping[str, Any]) -> bool:
        return over.wait(60)

    with Guard.open(tmp_path / "agent.db") as guard, pytest.raises(NotApproved):
        guard.once(At("w", None, "e"), "pay", PAY, never, policy=Policy(approval=hangs))
    assert "did not answer" in caplog.text
    over.set()


def test_an_id_that_is_cut_is_like_no_other() -> None:
    """Whoever chooses ids cannot choose one that another's digest makes."""
    cut = once_at(At("a" * 300, None, "e"))
    head, digest = cut.run.split("%~")
    run = head.removeprefix("once/")
    for other in (
        At(run, None, digest),
        At(run, None, f"%~{digest}"),
        At(f"{run}%~{digest}", "", ""),
    ):
        assert once_at(other).run != cut.run
