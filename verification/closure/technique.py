"""Closure as a technique: the scopes of a profile, explored to their fixpoints."""

from __future__ import annotations

import gc
import multiprocessing
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from time import perf_counter, process_time
from typing import Any, Final, cast

import attrs

from ...models.reasons import Reason
from ..alphabet.scope import Scope
from ..alphabet.scopes import CI, DEV, NIGHTLY
from ..alphabet.symbols import Symbol
from ..findings import Coverage, Finding, Profile, Progress, Result, Status
from ..rulebook.attribution import input_of
from ..subjects.in_process import InProcess
from ..subjects.subject import Explorable
from .counterexample import TECHNIQUE
from .explore import Explorer, re_expand
from .kernel_player import KernelPlayer
from .rows import POSSIBLE, counted_rows, read_rows
from .subject_player import SubjectPlayer

SCOPES: Final[Mapping[Profile, tuple[Scope, ...]]] = {
    Profile.DEV: DEV,
    Profile.CI: CI,
    Profile.NIGHTLY: NIGHTLY,
}

GUARANTEE: Final = (
    "In every state that the alphabets can reach, however often and in whatever order their "
    "deliveries come, every delivery is answered as kernel.md says, in every field, and every "
    "state keeps the rules. Nothing is said of deliveries outside of the alphabets, nor of more "
    "invocations than a scope has."
)
BOUND: Final = 5_000
"""States after which exploring a user's kernel ends: its digest may tell too much apart."""


def check(*, profile: Profile, progress: Progress, jobs: int = 2, seed: int = 0) -> Result:
    """Explore the scopes of a profile on our own kernel, in up to `jobs` processes at a time.

    `seed` draws the sample of merged states that are looked at again. The figures say how fast all
    of it was, and how fast one process.
    """
    began = perf_counter()
    done: list[Exploration] = []
    for found in explorations(SCOPES[profile], jobs=jobs, seed=seed):
        progress(
            f"{found.scope}: {found.states:,} states, {found.transitions:,} transitions, "
            f"{found.seconds:.1f} s"
        )
        done.append(found)
    return _result(done, perf_counter() - began)


def explorations(scopes: Sequence[Scope], *, jobs: int, seed: int = 0) -> Iterator[Exploration]:
    """Explore scopes on our kernel; side by side where a process can be forked without harm.

    The large ones stand last, and are begun first.
    """
    one = partial(explore, seed=seed)
    backwards = list(reversed(scopes))
    alone = threading.active_count() == 1 and "fork" in multiprocessing.get_all_start_methods()
    if jobs == 1 or not alone:
        yield from map(one, backwards)
        return
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("fork")) as pool:
        yield from pool.map(one, backwards)


def explore(scope: Scope, *, stop_at_first: bool = True, seed: int = 0) -> Exploration:
    """Explore one scope on our kernel as it is in this process, in this thread.

    Whatever it raises is a finding, too.
    """
    explorer = Explorer(scope, KernelPlayer(scope.run), stop_at_first=stop_at_first, seed=seed)
    with counted_rows() as tables:
        found = _explored(explorer)
        return attrs.evolve(found, rows=read_rows(tables) + explorer.met)


def check_driver(
    driver: InProcess, *, profile: Profile, progress: Progress, seed: int = 0
) -> Result:
    """Explore what a user's kernel in this process declares: one that can be copied and told apart.

    The scopes of `dev` in `ci`, too, and those of `ci` at night: another kernel is slower, and its
    digest cannot be told without names. In `dev` those that need that are left out.
    """
    make = cast("Callable[[], Explorable]", driver.make)
    scopes = SCOPES[Profile.CI if profile is Profile.NIGHTLY else Profile.DEV]
    if profile is Profile.DEV:
        scopes = tuple(scope for scope in scopes if not scope.alike)
    return check_subject(make, scopes=scopes, progress=progress, seed=seed)


def check_subject(
    make: Callable[[], Explorable],
    *,
    scopes: Iterable[Scope] = DEV,
    progress: Progress,
    bound: int = BOUND,
    seed: int = 0,
) -> Result:
    """Explore scopes on a user's kernel in this process: one that declares CLONE and DIGEST.

    `make` builds subjects. Symmetry is not used, since a digest cannot be looked into. A scope of
    more than `bound` states is left there, and `complete` says so.
    """
    began = perf_counter()
    done: list[Exploration] = []
    for scope in scopes:
        plain = attrs.evolve(scope, alike=frozenset())
        done.append(
            _explored(Explorer(plain, SubjectPlayer(make, scope.run), seed=seed, bound=bound))
        )
        progress(f"{scope.name}: {done[-1].states:,} states")
    return _result(done, perf_counter() - began)


def _explored(explorer: Explorer) -> Exploration:
    began = process_time()
    with _without_collector():
        complete = explorer.run()
        findings = list(explorer.findings)
        if not findings:
            unfaithful = re_expand(explorer)
            findings += [unfaithful] if unfaithful is not None else []
    scope = explorer.scope
    return Exploration(
        scope=scope.name,
        states=len(explorer.steps),
        transitions=explorer.transitions,
        complete=complete,
        seconds=process_time() - began,
        findings=tuple(findings),
        reasons={str(why): n for why, n in explorer.reasons.items() if why is not None},
        pairs=counted(scope.symbols, explorer.phases),
        re_expanded=len(explorer.merges),
    )


@contextmanager
def _without_collector() -> Generator[None]:
    """Spare the collector: a million states are kept, and none of them is a cycle."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _result(done: Sequence[Exploration], seconds: float) -> Result:
    rows: Counter[str] = Counter(dict.fromkeys(POSSIBLE, 0))
    reasons: Counter[str] = Counter({str(reason): 0 for reason in Reason})
    pairs: Counter[str] = Counter({row.partition(" [")[0]: 0 for row in POSSIBLE})
    for found in done:
        reasons.update(found.reasons)
        pairs.update(found.pairs)
        rows.update(found.rows)
    for row, count in rows.items():
        pair = row.partition(" [")[0]
        pairs[pair] = pairs[pair] or min(count, 1)  # by a deadline or a grant: not counted
    findings = tuple(finding for found in done for finding in found.findings)
    transitions = sum(found.transitions for found in done)
    missed = [row for row in POSSIBLE if not rows[row]]
    ours = any(rows.values())
    covered: dict[str, int | str] = {
        "rows_covered": len(POSSIBLE) - len(missed),
        "rows_possible": len(POSSIBLE),
        "rows_not_covered": ", ".join(missed) or "none",
    }
    return Result(
        technique=TECHNIQUE,
        status=Status.VIOLATED if findings else Status.HOLDS,
        guarantee=GUARANTEE,
        figures={
            "scopes": len(done),
            "complete": sum(found.complete for found in done),
            "states": sum(found.states for found in done),
            "transitions": transitions,
            "transitions_per_second": round(transitions / seconds),
            "transitions_per_second_and_process": round(
                transitions / sum(found.seconds for found in done)
            ),
            "merged_states_fired_at_again": sum(found.re_expanded for found in done),
            **(covered if ours else {}),  # what rows another kernel has cannot be seen
            "reasons_covered": sum(count > 0 for count in reasons.values()),
            "reasons_possible": len(reasons),
        },
        findings=findings,
        coverage=Coverage(
            reasons=dict(reasons), pairs=dict(pairs), rows=dict(rows) if ours else {}
        ),
        seconds=seconds,
    )


# ------------------------------------------------------------------------------
# What exploring one scope found, as plain data that another process can send back.


@attrs.frozen(kw_only=True)
class Exploration:
    """`complete` says that every reachable state was met: its fixpoint.

    `transitions` are states × symbols, every one of them fired. `rows` says how often each row of
    both tables was read, by name; `reasons` counts the refusals, `pairs` how often which input came
    to which phase. `seconds` is CPU time. `re_expanded` are the merged states that were fired at
    again along another history.
    """

    scope: str
    states: int
    transitions: int
    complete: bool
    seconds: float
    findings: tuple[Finding, ...] = ()
    rows: Mapping[str, int] = attrs.field(factory=dict[str, int])
    reasons: Mapping[str, int] = attrs.field(factory=dict[str, int])
    pairs: Mapping[str, int] = attrs.field(factory=dict[str, int])
    re_expanded: int = 0

    @property
    def holds(self) -> bool:
        """Whether nothing speaks against it, and nothing is left."""
        return self.complete and not self.findings


# ------------------------------------------------------------------------------
# How often which input came to which phase, as the oracle saw it (verification.md, coverage).


def counted(symbols: Iterable[Symbol], phases: Mapping[tuple[Any, ...], int]) -> dict[str, int]:
    """Return how often each `phase × input` was met.

    `phases` says in how many states (turn, invocation or None, phase) held; in each of them every
    symbol was delivered. Counted are those that name the turn.
    """
    counts: dict[str, int] = {}
    inputs: dict[tuple[str, str | None], list[str]] = {}
    for symbol in symbols:
        delivery = symbol.delivery
        if "turn_id" in delivery and delivery["type"] not in {"open_turn", "acknowledge", "log"}:
            about = (delivery["turn_id"], delivery.get("invocation_id"))
            inputs.setdefault(about, []).append(input_of(delivery))
    for (turn_id, invocation_id, phase), states in phases.items():
        for name in inputs.get((turn_id, invocation_id), ()):
            pair = f"{phase} × {name}"
            counts[pair] = counts.get(pair, 0) + states
    return counts
