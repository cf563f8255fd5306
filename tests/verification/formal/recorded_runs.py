"""Random journals, and what may go wrong with one: commits lost, doubled, moved, altered."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from itertools import groupby
from typing import Any, Final

from turnlock import Kernel, Run
from turnlock.models.codec import read, read_delivery, to_json, write
from turnlock.models.facts import Fact
from turnlock.verification.fuzz.guided import STEP_BYTES, decode

Line = dict[str, Any]
Commit = list[Line]

SPOKEN: Final = (
    *("type", "input", "turn_id", "invocation_id", "tool_name", "grant_id", "scope", "match"),
    *("cause", "attempt", "epoch", "sealed", "arguments", "arguments_digest", "at", "deadline"),
    *("lease_until", "grace_until", "expires_at", "calls", "call", "commit", "sequence"),
)
"""The fields of which the specification says something; the rest it leaves alone."""


def journal(rng: random.Random, steps: int, number: int = 0) -> tuple[Run, list[Commit]]:
    """Play a guided script on the kernel; return what it wrote, commit by commit."""
    raw, script = decode(bytes([number]) + rng.randbytes(steps * STEP_BYTES))
    run = read(Run, {**raw, "run_id": "r"})
    kernel, facts = Kernel(run), list[Fact]()
    for step in script:
        now = step.pop("now", 0.0)
        if step["type"] != "recover":
            facts += kernel.receive(read_delivery(step), now).facts
    lines = [json.loads(to_json(fact)) for fact in facts]
    return run, [list(commit) for _, commit in groupby(lines, key=lambda line: line["commit"])]


def dropped(rng: random.Random, commits: list[Commit]) -> list[Commit]:
    place = rng.randrange(len(commits))
    return [*commits[:place], *commits[place + 1 :]]


def doubled(rng: random.Random, commits: list[Commit]) -> list[Commit]:
    place = rng.randrange(len(commits))
    return [*commits[: place + 1], *commits[place:]]


def swapped(rng: random.Random, commits: list[Commit]) -> list[Commit]:
    place = rng.randrange(max(1, len(commits) - 1))
    return [*commits[:place], *commits[place : place + 2][::-1], *commits[place + 2 :]]


def shortened(rng: random.Random, commits: list[Commit]) -> list[Commit]:
    """One fact of a commit is lost; what is left says that it is whole."""
    place = rng.randrange(len(commits))
    commit = commits[place]
    lost = rng.randrange(len(commit))
    return [*commits[:place], [*commit[:lost], *commit[lost + 1 :]], *commits[place + 1 :]]


def joined(rng: random.Random, commits: list[Commit]) -> list[Commit]:
    """Two receives are written as one."""
    place = rng.randrange(max(1, len(commits) - 1))
    both = [line for commit in commits[place : place + 2] for line in commit]
    told = [{**line, "at": both[0]["at"]} for line in both]
    return [*commits[:place], told, *commits[place + 2 :]]


def altered(rng: random.Random, commits: list[Commit]) -> list[Commit]:
    """One field of one fact has the value of another fact, or one near by."""
    lines = [line for commit in commits for line in commit]
    line = rng.choice(lines)
    field = rng.choice([name for name in SPOKEN if name in line])
    others = [other[field] for other in lines if other.get(field) not in (None, line[field])]
    if isinstance(line[field], int | float):
        others += [line[field] + more for more in (-1, 1)]
    if not others:
        return commits
    changed = {**line, field: rng.choice(others)}
    return [[changed if it is line else it for it in commit] for commit in commits]


HARMS: Final[tuple[Callable[[random.Random, list[Commit]], list[Commit]], ...]] = (
    dropped,
    doubled,
    swapped,
    shortened,
    joined,
    altered,
    altered,
    altered,
)


def numbered(commits: list[Commit]) -> list[Commit]:
    """Numbers made right again, so that they do not give away what else is wrong."""
    after, latest = list[Commit](), 0
    for commit in commits:
        ends = latest + len(commit)
        told = enumerate(commit, start=latest + 1)
        after.append([{**line, "sequence": place, "commit": ends} for place, line in told])
        latest = ends
    return after


def log(run: Run, commits: list[Commit]) -> list[bytes]:
    """The lines of a log: the run, then its facts."""
    declared = {"run": write(run)}
    lines = [declared, *(line for commit in commits for line in commit)]
    return [json.dumps(line).encode() + b"\n" for line in lines]
