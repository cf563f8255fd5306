"""From a place in the exploration to a script that shows what is wrong, played from a fresh run."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs

from ..alphabet.scope import Scope
from ..errors import HarnessFailed, SubjectFailed
from ..findings import NO_ANSWER, Finding, Raw
from ..oracle.key import key_of
from ..oracle.moment import Moment
from ..oracle.reading import Given, new_state
from ..oracle.wording import configured, receipt_of
from ..rulebook import accused, first_difference, of_its_story
from .player import Letters, Player, nameless

TECHNIQUE: Final = "closure"
Steps: TypeAlias = Sequence[tuple[int, int, Sequence[Any]]]

Answers: TypeAlias = list[tuple[Any, ...]]

_KIT: Final = tuple(str(Path("verification", part)) for part in ("closure", "oracle", "alphabet"))
"""Where an error speaks against the kit, and not against what is explored."""
_TABLES: Final = str(Path("closure", "rows.py"))
"""Stands before the kernel's tables: what it lacks, they lack."""


def path_of(steps: Steps, number: int) -> list[int]:
    """Return the symbols by which a state was first met, from the fresh run on."""
    path: list[int] = []
    while number > 0:
        number, place, _ = steps[number]
        path.append(place)
    return path[::-1]


def journal_of(steps: Steps, number: int) -> list[Any]:
    """Return the facts of the run by which a state was first met."""
    commits: list[Sequence[Any]] = []
    while number > 0:
        number, _, facts = steps[number]
        commits.append(facts)
    return [fact for commit in reversed(commits) for fact in commit]


class Replay:
    """One script of symbols, played on a fresh run of the player and on the oracle."""

    def __init__(self, scope: Scope, player: Player, letters: Letters | None = None) -> None:
        """Stand at the fresh run. `letters` are the scope's, where they are built already."""
        self.player = player
        self.letters = letters or Letters(scope, player)
        self.moment = Moment(new_state(configured(scope.run)))
        self.state = player.begin()
        self.clock = 0.0
        self.expected: Raw = {}
        self.agrees = True
        self._back = scope.back
        self._given: list[tuple[Given, float]] = []
        self._reply: Any = None

    def step(self, place: int) -> None:
        """Deliver one symbol, and keep what was expected and what came."""
        given, letter, dt = self.letters.at(self.moment.state)[place]
        now = self.clock + dt
        reason, facts, effects, self.moment = self.moment.answer(given, now)
        self.clock = max(self.clock, now)
        self._given.append((given, now))
        self.expected = receipt_of(reason, facts, effects)
        self._reply, self.agrees = None, False
        self.player.load(self.state)
        reply = self.player.fire(letter, now)
        self.agrees = self.player.agrees(reply, self.expected)
        self._reply = reply

    def play(self, path: Sequence[int]) -> Replay:
        """Deliver symbols one after the other."""
        for place in path:
            self.step(place)
        return self

    @property
    def script(self) -> list[Raw]:
        """What was delivered: written where it is told only, as most of it shows that all is well.

        So is what came.
        """
        return [{**given, "now": now} for given, now in self._given]

    @property
    def got(self) -> Raw | None:
        """What came last; None where it raised."""
        return None if self._reply is None else self.player.receipt(self._reply)

    @property
    def key(self) -> Any:  # noqa: ANN401 - hashable
        """The key of the state it has come to."""
        return self.player.key(self.state, self.clock - self._back)


def difference(scope: Scope, player: Player, path: list[int], place: int) -> Finding:
    """Show the answer that differs, at this place or because of a refusal before it.

    At a state all refused letters are fired one after the other. One that changed the state in
    secret shows in a later answer, or, with `place` one past the last letter, only in the key.
    """
    if place < len(scope.symbols):
        replay = Replay(scope, player).play([*path, place])
        if not replay.agrees:
            return _differing(scope, replay, minimal=True)
    for earlier in range(place):
        replay = Replay(scope, player).play(path)
        before, moment, clock = replay.key, replay.moment, replay.clock
        replay.step(earlier)
        replay.clock = clock  # all letters of a state are fired from its clock
        if replay.moment is not moment:
            continue
        if replay.key != before:
            message = "the delivery was refused, and changed the state all the same"
            return _finding(scope, replay, "K-2", message, minimal=True)
        if place < len(scope.symbols):
            replay.step(place)
            if not replay.agrees:
                return _differing(scope, replay, minimal=False)
    replay = Replay(scope, player).play(path)
    moment, clock = replay.moment, replay.clock
    for step, (given, _, dt) in enumerate(replay.letters.at(moment.state)[: place + 1]):
        if step == place or moment.answer(given, clock + dt)[-1] is moment:
            replay.step(step)
            replay.clock = clock
    message = "together the refusals before it change the state"
    return _finding(scope, replay, "K-2", message, minimal=False)


def answers(
    scope: Scope, player: Player, path: list[int], letters: Letters | None = None
) -> Answers | Finding:
    """Fire every letter at the state that a path leads to; return what can be compared.

    As the explorer does: at a copy only where something is to happen; whether the others have
    changed it is looked at in the end.
    """
    replay = Replay(scope, player, letters).play(path)
    state, moment, clock, back = replay.state, replay.moment, replay.clock, scope.back
    before = replay.key
    unchanged: dict[float, list[Any]] = {}
    found: Answers = []
    for place, (given, letter, dt) in enumerate(replay.letters.at(moment.state)):
        now = clock + dt
        reason, facts, effects, after = moment.answer(given, now)
        twin = state if after is moment else player.clone(state)
        player.load(twin)
        reply = player.fire(letter, now)
        if not player.agrees(reply, receipt_of(reason, facts, effects)):
            return difference(scope, player, path, place)
        since = max(clock, now) - back
        keys = unchanged.get(since) if twin is state else None
        if keys is None:
            keys = [player.key(twin, since), key_of(after.state, since)]
            if scope.alike:
                keys = [nameless(key, scope.alike) for key in keys]
            if twin is state:
                unchanged[since] = keys
        kinds = tuple(part["type"] for part in (*facts, *effects))
        found.append((reason, kinds, *keys))
    if replay.key != before:
        return difference(scope, player, path, len(scope.symbols))
    return found


def flaw_found(scope: Scope, player: Player, path: list[int], rule: str, message: str) -> Finding:
    """Show the last step of a path, of which a rule does not hold."""
    return _finding(scope, Replay(scope, player).play(path), rule, message, minimal=True)


def raised(scope: Scope, player: Player, path: list[int], place: int, error: Exception) -> Finding:
    """Show a delivery that made it raise, unless it was the kit itself that raised."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    own = [file for file in files if not file.endswith(_TABLES)]
    if any(part in own[-1] for part in _KIT):
        raise HarnessFailed(f"exploring {scope.name} raised {error!r}") from error
    replay = Replay(scope, player)
    with suppress(type(error)):
        replay.play([*path, place])
    how = f"raised {type(error).__name__}: {error}"
    message = f"it {error.how if isinstance(error, SubjectFailed) else how}"
    return attrs.evolve(_finding(scope, replay, NO_ANSWER, message, minimal=True), got=message)


def _differing(scope: Scope, replay: Replay, *, minimal: bool) -> Finding:
    expected, got = replay.expected, replay.got
    if first_difference(expected, got) is None:
        message = "the answer differs in what a wire may write in two ways, and a kernel may not"
        return _finding(scope, replay, "section 12", message, minimal=minimal)
    found = of_its_story(accused(TECHNIQUE, scope.run, tuple(replay.script), expected, got))
    return attrs.evolve(found, minimal=minimal)


def _finding(scope: Scope, replay: Replay, rule: str, message: str, *, minimal: bool) -> Finding:
    return Finding(
        technique=TECHNIQUE,
        rule=rule,
        message=message,
        run=scope.run,
        script=tuple(replay.script),
        expected=replay.expected,
        got=replay.got,
        minimal=minimal,
    )
