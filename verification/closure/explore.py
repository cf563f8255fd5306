"""Closure: at every reachable state fire the whole alphabet, and merge equal states.

Every answer is compared with the oracle's, whole. Breadth first, so the first script that shows a
violation is as short as any. The oracle says first whether anything will happen: where nothing
does, the kernel is fired at as it stands, and its key is looked at once, after all of them; else at
a clone.
"""

from __future__ import annotations

import random
import sys
from collections import Counter, deque
from collections.abc import Hashable, Sequence
from typing import Any, Final, NamedTuple

import attrs

from ..alphabet.scope import Scope
from ..findings import Finding
from ..oracle.key import key_of
from ..oracle.moment import Moment
from ..oracle.reading import State, new_state
from ..oracle.wording import configured, receipt_of
from .counterexample import Answers, answers, difference, flaw_found, journal_of, path_of, raised
from .player import Flaw, Letters, Player, Reply, nameless
from .rows import met_unread

SAMPLE: Final = 40
"""Merged states of a scope that are looked at again along another history."""


FORGETFUL: Final = "section 12", "its key takes for one state what the oracle tells apart"
TALKATIVE: Final = "section 12", "its key tells apart what the oracle takes for one state"


class Standing(NamedTuple):
    """A state that is still to be fired at."""

    number: int
    state: Any
    moment: Moment
    clock: float
    key: Hashable
    folded: Any
    """What recovery makes of the journal by which it was met."""


class Merge(NamedTuple):
    """Where a step led to a state that was known already."""

    parent: int
    place: int
    number: int


class Explorer:
    """One exploration under way. States are numbered from 0 in the order in which they are met."""

    def __init__(
        self,
        scope: Scope,
        player: Player,
        *,
        stop_at_first: bool = True,
        seed: int = 0,
        bound: int | None = None,
    ) -> None:
        """Stand at the fresh run. With `bound`, no more states than that are met."""
        self.scope = scope
        self.player = player
        self.letters = Letters(scope, player)
        self.findings: list[Finding] = []
        self.steps: list[tuple[int, int, Sequence[Any]]] = []
        """For each state: from which one it was first met, by which symbol, with which facts."""
        self.reasons: Counter[str | None] = Counter()
        self.phases: Counter[tuple[Any, ...]] = Counter()
        self.met: Counter[str] = Counter()
        """Rows that were met, though the kernel did not read them (see `rows`)."""
        self.merges: list[Merge] = []
        self.transitions = 0
        self._stop_at_first = stop_at_first
        self._stopped = False
        self._bound = bound or sys.maxsize
        self._back = scope.back
        self._random = random.Random(seed)  # noqa: S311 - draws a sample, no secret
        self._merged = 0
        self._waiting: deque[Standing] = deque()
        self._numbers: dict[Hashable, int] = {}
        self._partner: dict[Hashable, Hashable] = {}

    def run(self) -> bool:
        """Explore; return whether the fixpoint was reached."""
        moment = Moment(new_state(configured(self.scope.run)))
        begun = self.player.begin()
        origin = Standing(-1, begun, moment, 0.0, None, self.player.begin())
        self._arrive(origin, -1, begun, moment, 0.0, ())
        while self._waiting and len(self.steps) < self._bound and not self._stopped:
            self._expand(self._waiting.popleft())
        return not self._waiting and not self._stopped

    def _expand(self, at: Standing) -> None:
        """Fire every letter at one state. This is the loop that has to be fast."""
        player, reasons = self.player, self.reasons
        load, fire = player.load, player.fire
        number, state, moment, clock, key, _ = at
        answer = moment.answer
        letters = self.letters.at(moment.state)
        clocks = {clock}
        place = -1
        load(state)
        self._note_phases(moment)
        try:
            for place, (given, letter, dt) in enumerate(letters):
                if self._stopped:
                    break
                now = clock + dt
                reason, facts, effects, after = answer(given, now)
                reasons[reason] += 1
                if after is not moment:
                    self._happen(at, place, (reason, facts, effects, after))
                    load(state)
                    continue
                reply = fire(letter, now)
                if reply.reason != reason or reply.facts or reply.effects:
                    self._differs(number, place)
                elif now > clock and now not in clocks:
                    clocks.add(now)
                    self._arrive(at, place, state, moment, now, ())
            else:
                place = len(letters)
                if player.key(state, clock - self._back) != key:
                    self._differs(number, place)
        except Exception as error:  # noqa: BLE001 - whatever it raises speaks against it
            self._raised(number, place, error)
        self.transitions += place

    def _happen(self, at: Standing, place: int, expected: tuple[Any, ...]) -> None:
        """Fire a letter at which something happens, at a clone."""
        player = self.player
        _, letter, dt = self.letters.current[place]
        now = at.clock + dt
        twin = player.clone(at.state)
        player.load(twin)
        reply: Reply = player.fire(letter, now)
        reason, facts, effects, after = expected
        if not player.agrees(reply, receipt_of(reason, facts, effects)):
            self._differs(at.number, place)
            return
        if len(facts) > 1:
            self.met.update(met_unread(at.moment.state["turn"], facts))
        if self._arrive(at, place, twin, after, max(at.clock, now), reply.facts):
            flaw = player.step_flaw(reply, at.state, twin)
            if flaw is not None:
                self._flawed(at.number, place, *flaw)

    def _arrive(  # noqa: PLR0913, PLR0917 - the parts of a step
        self,
        came_from: Standing,
        place: int,
        state: Any,  # noqa: ANN401 - the player's
        moment: Moment,
        clock: float,
        facts: Sequence[Any],
    ) -> bool:
        """Merge the state that a step led to, or put it in the queue; say whether it is new."""
        player, parent, folded = self.player, came_from.number, came_from.folded
        since = clock - self._back
        key = player.key(state, since)
        number, doubt = self._number(key, moment.state, since)
        if doubt is None and number < len(self.steps):
            self._sample(parent, place, number)
            return False
        journal = [*journal_of(self.steps, parent), *facts]
        if doubt is None:
            self.steps.append((parent, place, facts))
        try:
            folded = player.refold(folded, facts) if facts else folded
            flaw = player.state_flaw(state, moment.owed, journal, folded) or doubt
        except Exception as error:  # noqa: BLE001 - as in _expand
            flaw = "K-2", f"recovering this journal raised {type(error).__name__}: {error}"
        if flaw is not None:
            self._flawed(parent, place, *flaw, ahead=flaw is doubt)
            return False
        self._waiting.append(Standing(number, state, moment, clock, key, folded))
        return True

    def _number(self, key: Any, state: State, since: float) -> tuple[int, Flaw | None]:  # noqa: ANN401
        """Give a state its number by its two keys, and say whether these tell the same apart.

        A digest that is not exact may tell more apart than the oracle's key, and its times count
        from the latest fact (section 12).
        """
        following = len(self.steps)
        oracle_key: Any = key_of(state, since)
        if not self.player.exact:
            told = key_of(state, state["at"] or 0.0)
            if self._partner.setdefault(key, told) != told:
                return following, FORGETFUL
            return self._numbers.setdefault((key, oracle_key), following), None
        alike = self.scope.alike
        if alike:
            key, oracle_key = nameless(key, alike), nameless(oracle_key, alike)
        number = self._numbers.setdefault(key, following)
        partner = self._partner.setdefault(oracle_key, following)
        if number == partner:
            return number, None
        if number == following:
            del self._numbers[key]
            return following, TALKATIVE
        if partner == following:
            del self._partner[oracle_key]
        return following, FORGETFUL

    def _sample(self, parent: int, place: int, number: int) -> None:
        """Keep some merges, each as likely as any other."""
        self._merged += 1
        if len(self.merges) < SAMPLE:
            self.merges.append(Merge(parent, place, number))
            return
        chosen = int(self._random.random() * self._merged)
        if chosen < SAMPLE:
            self.merges[chosen] = Merge(parent, place, number)

    def _note_phases(self, moment: Moment) -> None:
        turn = moment.state["turn"]
        if turn is not None:
            self.phases[turn["turn_id"], None, turn["phase"]] += 1
            for record in turn["records"]:
                self.phases[turn["turn_id"], record["invocation_id"], record["phase"]] += 1

    def _differs(self, number: int, place: int) -> None:
        path = path_of(self.steps, number)
        self._add(difference(self.scope, self.player, path, place))

    def _flawed(
        self, number: int, place: int, rule: str, message: str, *, ahead: bool = False
    ) -> None:
        """Tell a flaw of a state; with `ahead`, rather a wrong answer in it, if it gives one."""
        path = [*path_of(self.steps, number), place] if number >= 0 else []
        if ahead and isinstance(shown := answers(self.scope, self.player, path), Finding):
            self._add(attrs.evolve(shown, minimal=False))
            return
        self._add(flaw_found(self.scope, self.player, path, rule, message))

    def _raised(self, number: int, place: int, error: Exception) -> None:
        path = path_of(self.steps, number)
        self._add(raised(self.scope, self.player, path, place, error))

    def _add(self, finding: Finding) -> None:
        self.findings.append(finding)
        self._stopped = self._stop_at_first


# ------------------------------------------------------------------------------
# Whether the keys are faithful: merged states are fired at again along another history.
#
# A key that forgets something merges states which answer differently, and what only the second of
# them would show is never seen. So a sample of the merged states is built anew along the history
# that was not followed, and has to answer every letter as the state that was explored.


def re_expand(explorer: Explorer) -> Finding | None:
    """Return the first merged state that answers otherwise than the one it was merged with."""
    scope, player, steps = explorer.scope, explorer.player, explorer.steps
    letters = explorer.letters
    known: dict[int, Answers] = {}
    for merge in explorer.merges:
        if merge.number not in known:
            met = answers(scope, player, path_of(steps, merge.number), letters)
            known[merge.number] = met if isinstance(met, list) else []
        path = [*path_of(steps, merge.parent), merge.place]
        found = answers(scope, player, path, letters)
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
