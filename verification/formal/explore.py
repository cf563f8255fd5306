"""The kernel itself, explored over the alphabet of a scope of the hand-written specification.

Steps are those of the specification: a delivery that is accepted, time that passes, one deadline
that is over, a recovery from the journal. The kernel takes all deadlines of a receive at once: its
receipt is folded deadline by deadline, since state is the fold of facts (K-2). `seen` is what
``View`` shows there of a state, computed from the kernel's own.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import attrs
import msgspec

from ...engine.evolve import fold
from ...engine.state import State
from ...lifecycle.invocation import Invocation
from ...models.deliveries import Delivery
from ...models.facts import LIFECYCLE_FAMILY, Fact, TurnOpened
from ...models.inputs import Input
from ...turn.memory import Grant
from ..alphabet.symbols import TICK
from ..closure.kernel_player import KernelPlayer
from .scope import ARE, Alphabet, Scope, word_of

Seen: TypeAlias = Hashable
Step: TypeAlias = tuple[Seen, tuple[tuple[str, str], ...], Seen]
"""What is seen of a state, the facts of a step by type and input, what is seen after it."""
Lives: TypeAlias = Mapping[str, tuple[str, ...]]

DEADLINES: Final[dict[Input | None, str]] = {
    Input.APPROVAL_OVER: "ApprovalOver",
    Input.LEASE_OVER: "LeaseOver",
    Input.GRANT_OVER: "GrantOver",
    Input.GRACE_OVER: "GraceOver",
}
MANY: Final = 2
"""Attempts are told apart as none, the first and later ones, as in ``SeenCall``."""
_encode: Final = msgspec.json.Encoder().encode


class Node(NamedTuple):
    """A state at a time, with the history that it was met by."""

    state: State
    now: float
    lives: Lives
    """The lifecycle facts of each invocation of the active turn, in order."""
    folded: State
    """What a recovery makes of the journal's whole commits (K-2, K-9)."""
    unfolded: tuple[Fact, ...] = ()
    """The facts of a commit of which more deadlines are to come."""


@attrs.frozen(kw_only=True)
class Walk:
    """What was met: so many states, transitions by the name of their action, and each step."""

    states: int
    actions: Mapping[str, int]
    steps: Mapping[Step, int] = attrs.field(factory=dict[Step, int], repr=False)

    @property
    def transitions(self) -> int:
        """All of them."""
        return sum(self.actions.values())


def explore(scope: Scope) -> Walk:
    """Walk breadth first from a fresh run to the last state."""
    return _Explorer(scope).walk()


class _Explorer:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._player = KernelPlayer(scope.run)
        self._alphabet = Alphabet(scope)
        self._built: dict[bytes, Delivery] = {}
        self._tick = self._player.build(TICK)

    def walk(self) -> Walk:
        player = self._player
        first = Node(player.begin(), 0.0, {}, player.begin())
        known = {seen(first)}
        waiting = deque([first])
        actions: Counter[str] = Counter()
        steps: Counter[Step] = Counter()
        while waiting:
            node = waiting.popleft()
            before = seen(node)
            for action, after, facts in self._steps(node):
                key = seen(after)
                actions[action] += 1
                said = tuple([(str(fact.type), str(fact.input)) for fact in facts])
                steps[before, said, key] += 1
                if key not in known:
                    known.add(key)
                    waiting.append(after)
        return Walk(states=len(known), actions=actions, steps=steps)

    def _steps(self, node: Node) -> Iterator[tuple[str, Node, Sequence[Fact]]]:
        """Yield what can happen in a state: one deadline where one is over, else all there is."""
        if _overdue(node):
            yield self._deadline(node)
            return
        for seconds in self._scope["Seconds"]:
            yield "Advance", node._replace(now=node.now + seconds), ()
        yield "Recover", node._replace(state=node.folded), ()
        player = self._player
        scratch = player.clone(node.state)
        for action, raw in self._alphabet.at(node.state):
            player.load(scratch)
            verdict = player.fire(self._build(raw), node.now)
            if verdict.facts:
                yield action, self._after(node, scratch, verdict.facts), verdict.facts
                scratch = player.clone(node.state)

    def _deadline(self, node: Node) -> tuple[str, Node, Sequence[Fact]]:
        player = self._player
        player.load(player.clone(node.state))
        facts = _first_deadline(player.fire(self._tick, node.now).facts)
        after = player.clone(node.state)
        fold(after, facts)
        after.tidy_deadlines()
        return DEADLINES[facts[0].input], self._after(node, after, facts), facts

    def _after(self, node: Node, state: State, facts: Sequence[Fact]) -> Node:
        folded, unfolded = node.folded, (*node.unfolded, *facts)
        if facts[-1].sequence == facts[-1].commit:
            folded, unfolded = self._player.refold(folded, unfolded), ()
        return Node(state, node.now, _lives_after(node.lives, facts), folded, unfolded)

    def _build(self, raw: dict[str, Any]) -> Delivery:
        text = _encode(raw)
        built = self._built.get(text)
        if built is None:
            built = self._built[text] = self._player.build(raw)
        return built


def _overdue(node: Node) -> bool:
    earliest = node.state.earliest_deadline
    return earliest is not None and earliest < node.now


def _first_deadline(facts: Sequence[Fact]) -> Sequence[Fact]:
    """Take what the first deadline brought: a grace over ends many, and the door comes last."""
    input_ = facts[0].input
    taken = 1
    if input_ == Input.GRACE_OVER:
        taken = sum(fact.input == input_ for fact in facts)
    if len(facts) > taken and facts[taken].input == Input.SETTLE:
        taken += 1
    return facts[:taken]


def _lives_after(lives: Lives, facts: Sequence[Fact]) -> Lives:
    after = {} if isinstance(facts[0], TurnOpened) else dict(lives)
    for fact in facts:
        if isinstance(fact, LIFECYCLE_FAMILY):
            name = fact.invocation_id
            after[name] = (*after.get(name, ()), str(fact.type))
    return after


# ------------------------------------------------------------------------------
# `View`: two states from which everything goes on alike are one.


def seen(node: Node) -> Seen:
    """Return what the specification's ``View`` shows of a state, in its words."""
    state, now = node.state, node.now
    turn, active = state.turn, None
    if turn is not None:
        active = (
            turn.turn_id,
            str(turn.phase),
            _since(turn.grace_until, now),
            tuple([int(member.invocation_id) for member in turn.order]),
            tuple([_call(member, now) for member in turn.order]),
            tuple([node.lives.get(member.invocation_id, ()) for member in turn.order]),
        )
    return (
        active,
        frozenset(
            (
                owed.effect.turn_id,
                tuple([(int(it.invocation_id), it.status.upper()) for it in owed.effect.results]),
            )
            for owed in state.continuations.values()
        ),
        tuple([_grant(grant, now) for grant in state.grants]),
        tuple(
            (closed.turn_id, None if name is None else int(name), _since(closed.at, now))
            for closed in state.memory.alive(now=now)
            for name in (*closed.invocation_ids[closed.first :], None)
        ),
    )


def _since(time: float | None, now: float) -> int | None:
    return None if time is None else int(time - now)


def _call(member: Invocation, now: float) -> Seen:
    arguments = None if member.terminal else member.arguments
    return (
        str(member.phase),
        member.requires_approval,
        member.observed,
        min(member.attempt, MANY),
        _since(member.deadline, now),
        member.tool_name,
        None if arguments is None else arguments[ARE],
    )


def _grant(grant: Grant, now: float) -> Seen:
    return (
        grant.tool_name,
        str(grant.match),
        word_of(grant.arguments_digest),
        str(grant.scope),
        _since(grant.expires_at, now),
    )
