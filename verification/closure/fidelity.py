"""Whether the keys are faithful: merged states are fired at again along another history.

A key that forgets something merges states which answer differently, and what only the second of
them would show is never seen. So a sample of the merged states is built anew along the history
that was not followed, and has to answer every letter as the state that was explored.
"""

from __future__ import annotations

from collections import Counter

from ..findings import Finding
from .counterexample import Answers, answers, flaw_found, path_of
from .explore import Explorer


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
