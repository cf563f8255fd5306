"""Makes a failing script shorter: by dropping and simplifying, then by searching around the result.

Shrinking alone seldom ends at a minimum: it cannot put one delivery in the place of another. So
every sequence of the shrunk script's own deliveries that is shorter is played too, the shortest
first, as far as the bound allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate, chain, islice, product
from time import perf_counter
from typing import Any, Final, TypeAlias

import attrs

from ...wire.plain import RECOVER
from ..findings import NO_ANSWER, Finding
from ..judging import not_counted
from ..oracle.reading import canonical
from ..rulebook import of_its_story, of_its_tick, tick_after
from ..subjects.subject import Driver, Raw, Script
from ..subjects.watched import hangs, no_answer, watched
from .differences import Expected, difference, expected_receipts, refuse_unlike, unsteady

MAX_PLAYS: Final = 20_000
"""Scripts that are played, at most, to make one failure shorter: seconds, not minutes."""
SECONDS: Final = 20.0
"""Nothing is tried after this: a system may be slow, or take long to start again after a crash."""
LARGEST_BATCH: Final = 256
"""Scripts that are played at once: over a pipe, batching is worth ten times."""

Judge: TypeAlias = Callable[[Sequence[Script]], Iterable[Finding | None]]
"""Plays scripts and tells, for each in its turn, what failed; a finding's script ends there."""


def confirm(driver: Driver, finding: Finding) -> None:
    """Play a failing script again: a system that errs only sometimes is not deterministic.

    Raises `NotDeterministic`. That it crashed is said all the same, if it does so only sometimes.
    """
    if finding.rule == NO_ANSWER:
        return
    run, script = finding.run, finding.script
    (got,) = watched(driver).play(run, [script])
    expected = expected_receipts(run, script)
    with not_counted():
        again = difference(run, script, expected, got, technique=finding.technique)
    if again is None:
        raise unsteady(run, script, finding.got, got[-1])
    if len(again.script) < len(script):
        raise unsteady(run, again.script, again.expected, again.got)
    refuse_unlike(run, script, [*got[:-1], finding.got], got)


def shortened(finding: Finding, driver: Driver, *, plays: int = MAX_PLAYS) -> Finding:
    """Return the shortest finding of the kind that can be made of one, on the same system.

    `minimal` says that every shorter sequence of its deliveries was played, and none failed. Where
    the system hangs, it stays as it is: each trial would take the whole time limit.
    """
    if hangs(finding):
        return finding
    found = shortest(finding, judge_of(driver, finding), plays=plays)
    tick = tick_after(found)
    if tick is None:
        return found
    script = [*found.script, tick]
    (got,) = watched(driver).play(found.run, [script])
    if len(got) < len(script) or no_answer(got[-1]):
        return found
    return of_its_tick(found, expected_receipts(found.run, script)[-1], got[-1])


def judge_of(driver: Driver, finding: Finding) -> Judge:
    """Return what plays scripts for the run of a finding, and holds them against the oracle.

    A wrong answer is looked for where one was found, and a crash where the system crashed.
    """
    return partial(_judged, watched(driver), finding)


def judge_by(fails: Callable[[Script], Finding | None]) -> Judge:
    """Return a judge that asks a predicate, script by script, and never more than it must."""
    return lambda scripts: map(fails, scripts)


def shortest(finding: Finding, judge: Judge, *, plays: int = MAX_PLAYS) -> Finding:
    """Shrink, then search breadth first around the result, until neither finds anything shorter.

    Deterministic, and any failure will do: a shorter script that fails otherwise is taken, too.
    """
    trial = _Trial(judge, plays)
    with not_counted():
        while True:
            finding = trial.shrunk(finding)
            around = trial.first(_shorter_around(finding.script))
            if around is None:
                found = finding
                known = trial.shrank or trial.needs_recovery(finding)
                if known and finding.rule != NO_ANSWER:
                    found = of_its_story(finding)
                return attrs.evolve(found, minimal=trial.complete)
            finding = around


class _Trial:
    """Plays candidates in growing batches, within the bound."""

    def __init__(self, judge: Judge, plays: int) -> None:
        self._judge = judge
        self._left = plays
        self._until = perf_counter() + SECONDS
        self.complete = True
        """Whether the latest candidates were all played, up to the one that failed."""
        self.shrank = False
        """Whether nothing can be dropped from the script any more."""

    def shrunk(self, finding: Finding) -> Finding:
        """Drop chunks, then single steps, then simplify fields, as long as anything helps."""
        while True:
            script = finding.script
            shorter = chain(
                _without_chunks(script), without_suspects(script), _opened_with_calls(script)
            )
            simpler = self.first(chain(shorter, simpler_scripts(script)))
            if simpler is None:
                self.shrank = self.complete
                return finding
            finding = simpler

    def needs_recovery(self, finding: Finding) -> bool:
        """Whether it recovers on the way, and nothing fails without that."""
        without = [step for step in finding.script if step["type"] != RECOVER]
        return without != list(finding.script) and not any(self._judge([without]))

    def first(self, candidates: Iterator[Script]) -> Finding | None:
        """Return the finding of the first candidate that fails."""
        size = 1
        while not self._late and (batch := list(islice(candidates, min(size, self._left)))):
            self._left -= len(batch)
            for found in self._judge(batch):
                if found is not None:
                    return found
                if self._late:
                    break
            size = min(2 * size, LARGEST_BATCH)
        left_out = self._late or (not self._left and next(candidates, None) is not None)
        self.complete = not left_out
        return None

    @property
    def _late(self) -> bool:
        return perf_counter() > self._until


def _judged(
    driver: Driver, finding: Finding, scripts: Sequence[Script]
) -> Iterator[Finding | None]:
    run, crashed = finding.run, finding.rule == NO_ANSWER
    asked = Expected(run)
    left = scripts
    while left:
        batch = left[:1] if crashed else left  # each crash takes with it what is behind it
        played = 0
        for script, got in zip(batch, driver.play(run, batch), strict=True):
            played += 1
            expected = asked.receipts(script)
            found = difference(run, script, expected, got, technique=finding.technique)
            crashes = found is not None and found.rule == NO_ANSWER
            yield found if crashes == crashed else None
            if crashes:
                break
        left = left[played:]


def _without_chunks(script: Script) -> Iterator[Script]:
    """Yield the script without one chunk of it, halves first, single steps last."""
    size = len(script) // 2
    while size:
        for start in range(0, len(script), size):
            yield [*script[:start], *script[start + size :]]
        size //= 2


def without_suspects(script: Script) -> Iterator[Script]:
    """Yield the script without what draws blame if it is there, and may have no part in it.

    A clock that is set back (K-10), and the end of a turn between what was granted and what is not
    covered (K-42): what fails without it has nothing to do with it, whatever else is simpler.
    """
    times = [float(step.get("now", 0.0)) for step in script]
    steady = zip(script, accumulate(times, max), strict=True)
    forwards = [_at(step, now) for step, now in steady]
    if forwards != [*script]:  # a recovery has no time, and stays as it is
        yield forwards
    yield from _in_one_turn(script)


def _in_one_turn(script: Script) -> Iterator[Script]:
    """Yield the script with the last opening's first call added to the turn before instead."""
    openings = [place for place, step in enumerate(script) if step["type"] == "open_turn"]
    if not openings[1:] or not script[openings[-1]]["calls"]:
        return
    before, last = openings[-2:]
    name = f"{script[last]['calls'][0]['invocation_id']}, added"
    added = {
        "type": "add_call",
        "now": script[last].get("now", 0.0),
        "turn_id": script[before]["turn_id"],
        "call": {**script[last]["calls"][0], "invocation_id": name},
    }
    unsealed = {**script[before], "sealed": False}
    for kept in range(before + 1, last + 1):
        yield [*script[:before], unsealed, *script[before + 1 : kept], added, *script[last + 1 :]]


def _opened_with_calls(script: Script) -> Iterator[Script]:
    """Yield the script with one added call in the opening of its turn instead."""
    for place, step in enumerate(script):
        opening = next(
            (
                before
                for before in range(place)
                if script[before]["type"] == "open_turn"
                and step["type"] == "add_call"
                and script[before]["turn_id"] == step["turn_id"]
            ),
            None,
        )
        if opening is not None:
            whole = {**script[opening], "calls": [*script[opening]["calls"], step["call"]]}
            yield [*script[:opening], whole, *script[opening + 1 : place], *script[place + 1 :]]


def _shorter_around(script: Script) -> Iterator[Script]:
    """Yield every shorter sequence of the deliveries of a script, the shortest first."""
    letters = list({canonical(step): step for step in script}.values())
    for length in range(1, len(script)):
        yield from product(letters, repeat=length)


# ------------------------------------------------------------------------------
# Simpler scripts of the same length: less time, fewer calls, fewer and plainer fields.


_OPTIONAL: Final[dict[str, tuple[str, ...]]] = {
    "open_turn": ("epoch", "sealed"),
    "decide": (
        *("reason", "decided_by", "scope", "match"),
        *("expires_in", "arguments_digest", "arguments"),
    ),
    "claim": ("worker", "lease"),
    "renew": ("attempt",),
    "report": ("attempt",),
    "lose": ("attempt",),
    "interrupt": ("reason", "grace"),
}
"""The fields that a delivery can do without (section 3); `run_id` is one of every delivery."""

_PLAIN: Final[dict[str, Any]] = {"result": "ok", "lease": 0.0, "grace": 0.0, "expires_in": 0.0}
"""The plainest value of a field that stays; a falsy result that stays is what fails (K-36)."""

_PLAIN_CALL: Final[Raw] = {"tool_name": "ls", "arguments": {}, "requires_approval": False}


def simpler_scripts(script: Script) -> Iterator[Script]:
    """Yield the script with one thing made simpler.

    Whoever takes the first that still fails, again and again, comes to an end: no change here can
    be taken back by another.
    """
    yield from _quicker(script)
    for place, step in enumerate(script):
        for simpler in _simpler_steps(step):
            yield [*script[:place], simpler, *script[place + 1 :]]


def _quicker(script: Script) -> Iterator[Script]:
    """Take out all the time that passes, or what passes before one step."""
    times = [float(step.get("now", 0.0)) for step in script]
    if any(times):
        yield [_at(step, 0.0) for step in script]
    for place, (before, time) in enumerate(zip([0.0, *times], times, strict=False)):
        if time > before:
            later = zip(script[place:], times[place:], strict=True)
            sooner = [_at(step, max(0.0, now - (time - before))) for step, now in later]
            yield [*script[:place], *sooner]


def _at(step: Raw, now: float) -> Raw:
    return {**step, "now": now} if "now" in step else step


def _simpler_steps(step: Raw) -> Iterator[Raw]:
    for name in dict.fromkeys(("run_id", *_OPTIONAL.get(step["type"], ()), *_nulls(step))):
        if name in step:
            yield {other: step[other] for other in step if other != name}
    for name, plain in _PLAIN.items():
        if name in step and step[name] != plain:
            yield {**step, name: plain}
    for place, call in enumerate(step.get("calls", ())):
        calls = step["calls"]
        yield {**step, "calls": [*calls[:place], *calls[place + 1 :]]}
        for simpler in _simpler_calls(call):
            yield {**step, "calls": [*calls[:place], simpler, *calls[place + 1 :]]}
    if "call" in step:
        yield from ({**step, "call": simpler} for simpler in _simpler_calls(step["call"]))


def _nulls(part: Raw) -> list[str]:
    """Return the fields that are null, and so may be absent (section 3): a result is a value."""
    return [name for name, value in part.items() if value is None and name != "result"]


def _simpler_calls(call: Raw) -> Iterator[Raw]:
    for name in dict.fromkeys(("approval_timeout", "provider_call_id", *_nulls(call))):
        if name in call:
            yield {other: call[other] for other in call if other != name}
    for name, plain in _PLAIN_CALL.items():
        if call[name] != plain:
            yield {**call, name: plain}
