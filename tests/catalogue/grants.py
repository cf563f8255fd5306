"""Bugs in grants: what an approval covers beyond its own call, and until when (K-40 … K-42)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from turnlock.engine.state import State
from turnlock.lifecycle.invocation import Invocation
from turnlock.lifecycle.phases import Guard, Phase
from turnlock.models.fact import FactType
from turnlock.models.facts import Fact, GrantIssued, GrantRevoked
from turnlock.models.inputs import Input
from turnlock.models.record import changed
from turnlock.turn.memory import Grant, Grants
from turnlock.turn.turn import Turn

from .bug import Family, Shelf
from .field import Field
from .planting import Evolver, Maker, around, folding, making, moves, replaced, row


def _any_arguments(self: Grants, tool_name: str, _: str) -> Grant | None:
    return next((grant for grant in self if grant.tool_name == tool_name), None)


def _any_tool(self: Grants, tool_name: str, arguments_digest: str) -> Grant | None:
    alike = (tool_name, arguments_digest)
    return next(
        (g for g in self if g.tool_name == alike[0] or g.arguments_digest == alike[1]), None
    )


def _the_newest(self: Grants, tool_name: str, arguments_digest: str) -> Grant | None:
    covering = [g for g in self if g.covers in {(tool_name, arguments_digest), (tool_name, None)}]
    return covering[-1] if covering else None


def _nothing(*_: object) -> None:
    return


def _not_revoked(_: Evolver) -> Evolver:
    def fold(_: State, __: Turn | None, ___: GrantRevoked) -> None:
        return

    return fold


def _never_expiring(real: Evolver) -> Evolver:
    def fold(state: State, turn: Turn | None, fact: GrantIssued) -> None:
        real(state, turn, changed(fact, expires_at=None))

    return fold


def _ending_all(self: Grants) -> None:
    for grant in list(self):
        self.end(grant.grant_id)


def _number_freed(real: Callable[[Grants, str], None]) -> Callable[[Grants, str], None]:
    def end(self: Grants, grant_id: str) -> None:
        real(self, grant_id)
        self.issued = max((grant.number for grant in self), default=0)

    return end


def _for_what_was_shown(real: Maker) -> Maker:
    def make(state: State, turn: Turn, invocation: Invocation, *of: Any) -> list[Fact]:
        shown = invocation.digest
        facts = real(state, turn, invocation, *of)
        return [
            changed(fact, arguments_digest=shown) if isinstance(fact, GrantIssued) else fact
            for fact in facts
        ]

    return make


def _what_waits_goes_on_waiting(real: Maker) -> Maker:
    def make(state: State, turn: Turn, invocation: Invocation, *of: Any) -> list[Fact]:
        return real(state, turn, invocation, *of)[:2]

    return make


_bug: Final = Shelf(Family.GRANTS)

BUGS: Final = (
    _bug(
        "any arguments",
        "a grant for exact arguments covers the tool with any",
        "K-41",
        replaced(Grants, "covering", _any_arguments),
        Field.ANY_ARGUMENTS,
        also=("K-40",),
    ),
    _bug(
        "any tool",
        "a grant covers another tool that has the same arguments",
        "K-41",
        replaced(Grants, "covering", _any_tool),
        also=("K-40",),
    ),
    _bug(
        "the newest grant",
        "a call is approved by the newest grant that covers it, not the oldest",
        "K-41",
        replaced(Grants, "covering", _the_newest),
    ),
    _bug(
        "a grant for nothing",
        "a grant covers no call that comes later",
        "K-41",
        replaced(Grants, "covering", _nothing),
        also=("K-42",),
    ),
    _bug(
        "what waits goes on waiting",
        "a grant does not approve the calls that wait and that it covers",
        "K-41",
        making(FactType.TOOL_APPROVED, _what_waits_goes_on_waiting),
        also=("K-40",),
    ),
    _bug(
        "not revoked",
        "a grant that was revoked stays in force",
        "K-42",
        folding(GrantRevoked, _not_revoked),
        Field.NOT_REVOKED,
    ),
    _bug(
        "a grant without end",
        "a grant never expires",
        "K-42",
        folding(GrantIssued, _never_expiring),
        also=("K-11", "K-34", "section 9"),
    ),
    _bug(
        "a grant outlives its turn",
        "a grant for one turn is still in force after it",
        "K-42",
        replaced(Grants, "end_with_turn", _nothing),
        also=("K-40",),
    ),
    _bug(
        "no grant outlives a turn",
        "a grant for the session ends with the turn",
        "K-42",
        replaced(Grants, "end_with_turn", _ending_all),
        also=("K-40",),
    ),
    _bug(
        "a number twice",
        "the number of a grant that has ended is given to another",
        "K-40",
        around(Grants, "end", _number_freed),
    ),
    _bug(
        "granted as shown",
        "a grant is for the arguments that were shown, not for those that run",
        "K-32",
        making(FactType.TOOL_APPROVED, _for_what_was_shown),
        also=("K-40",),
    ),
    _bug(
        "grants beyond the limit",
        "grants in force are not limited",
        "K-56",
        row(
            Phase.REQUESTED,
            Input.APPROVE,
            Guard.GRANTS_FULL,
            **moves(Phase.APPROVED, FactType.TOOL_APPROVED),
        ),
    ),
)
