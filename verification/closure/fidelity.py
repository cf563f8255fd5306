"""Whether the keys are faithful: merged states are fired at again along another history.

A key that forgets something merges states which answer differently, and what only the second of
them would show is never seen. So a sample of the merged states is built anew along the history
that was not followed, and has to answer every letter as the state that was explored.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..alphabet.scope import Scope
from ..findings import Finding
from ..oracle.key import key_of
from .counterexample import Replay, difference, flaw_found, path_of
from .explore import Explorer
from .player import Player
from .symmetry import nameless

Answers = list[Any]


def re_expand(explorer: Explorer) -> Finding | None:
    """Return the first merged state that answers otherwise than the one it was merged with."""
    scope, player, steps = explorer.scope, explorer.player, explorer.steps
    known: dict[int, Answers] = {}
    for merge in explorer.merges:
        if merge.number not in known:
            met = answers(scope, player, path_of(steps, merge.number))
            known[merge.number] = met if isinstance(met, list) else []
        path = [*path_of(steps, merge.parent), merge.place]
        found = answers(scope, player, path)
        if isinstance(found, Finding):
            return found
        place = first_unlike(known[merge.number], found, alike=bool(scope.alike))
        if place is not None:
            message = "it answers otherwise than a state with the same key, met along another way"
            return flaw_found(scope, player, [*path, place], "section 12", message)
    return None


def answers(scope: Scope, player: Player, path: list[int]) -> Answers | Finding:
    """Fire every letter at the state that a path leads to; return what can be compared."""
    replay = Replay(scope, player).play(path)
    found: Answers = []
    for place, (given, letter, dt) in enumerate(replay.letters.at(replay.moment.state)):
        twin = player.clone(replay.state)
        player.load(twin)
        now = replay.clock + dt
        reply = player.fire(letter, now)
        reason, facts, effects, after = replay.moment.answer(given, now)
        expected = {"accepted": reason is None, "facts": facts, "effects": effects}
        if reason is not None:
            expected["reason"] = reason
        if not player.agrees(reply, expected):
            return difference(scope, player, path, place)
        since = max(replay.clock, now) - scope.back
        keys = [player.key(twin, since), key_of(after.state, since)]
        if scope.alike:
            keys = [nameless(key, scope.alike) for key in keys]
        kinds = tuple(part["type"] for part in (*facts, *effects))
        found.append((reason, kinds, *keys))
    return found


def first_unlike(known: Answers, found: Answers, *, alike: bool) -> int | None:
    """Return the place of the first answer that differs; with symmetry, of the first one more."""
    if not alike:
        return next(
            (i for i, pair in enumerate(zip(known, found, strict=True)) if pair[0] != pair[1]), None
        )
    left = Counter(known)
    for place, answer in enumerate(found):
        left[answer] -= 1
        if left[answer] < 0:
            return place
    return None
