"""People decide otherwise than when it was recorded: the program goes on as it did, and is told.

What the program does is on tape. So an approval that we deny runs all the same, as if somebody else
had let it, and an interrupt stops nothing: what ran though it was denied is told (S-38), and the
journal never says denied of what we let start.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

import attrs
import pytest

from turnlock.adapters.codex.heard import Anomaly
from turnlock.adapters.codex.messages import Notified, object_of
from turnlock.adapters.codex.normaliser import Normaliser
from turnlock.adapters.codex.played import Normalises
from turnlock.adapters.codex.transcripts import Said, Settlement, Step, Told

from ...runtime.crash.depth import DEEP
from .recordings import NAMES, begun, played, recording, some, wrong

Otherwise: TypeAlias = Callable[[Sequence[Step]], list[Step]]


def answers(step: Step) -> bool:
    """Whether the client answers a request with it."""
    return isinstance(step, Told) and "method" not in step.message


def decision(step: Step) -> object:
    """Return what an answer decides, None where it decides nothing."""
    return object_of(step.message.get("result")).get("decision") if isinstance(step, Told) else None


def contrary(steps: Sequence[Step]) -> list[Step]:
    """Approve what was declined, and decline what was approved."""
    return [_contrary(it) if answers(it) else it for it in steps]


def _contrary(step: Step) -> Step:
    decided = decision(step)
    if decided is None or not isinstance(step, Told):
        return step
    approved = isinstance(decided, dict) or str(decided).startswith("accept")
    result = {"decision": "decline" if approved else "accept"}
    return attrs.evolve(step, message={**step.message, "result": result})


def nobody(steps: Sequence[Step]) -> list[Step]:
    """Answer nothing."""
    return [it for it in steps if not answers(it)]


def two_clients(steps: Sequence[Step]) -> list[Step]:
    """Answer everything twice, and the second time the contrary."""
    return [it for step in steps for it in ([step, _contrary(step)] if answers(step) else [step])]


OTHERWISE: Final[dict[str, Otherwise]] = {
    "contrary": contrary,
    "nobody": nobody,
    "two_clients": two_clients,
}
LATE: Final = (0, 1, 2, 5) if DEEP else (0, 2)


@pytest.mark.parametrize("late", LATE)
@pytest.mark.parametrize("how", OTHERWISE)
@pytest.mark.parametrize("name", NAMES)
def test_whatever_people_decide_the_run_stays_whole(name: str, how: str, late: int) -> None:
    """UC-005: each request is answered once, by what was decided first (S-36, S-42)."""
    play = played(begun(name, late=late), OTHERWISE[how](recording(name).steps))
    assert wrong(play) == []


def interrupted(steps: Sequence[Step], place: int) -> list[Step]:
    """Interrupt the turn that goes on after a message."""
    step, named = steps[place], dict[str, object]()
    for it in steps[: place + 1]:
        if isinstance(it, Said) and isinstance(it.message, Notified):
            params, turn = it.message.params, object_of(it.message.params.get("turn"))
            if it.message.method == "turn/started":
                named = {"threadId": params["threadId"], "turnId": turn["id"]}
    if not named:
        return [*steps]
    message = {"method": "turn/interrupt", "id": 999, "params": named}
    asked = Told(seq=step.seq, at=step.at, process=step.process, message=message)
    return [*steps[: place + 1], asked, *steps[place + 1 :]]


@pytest.mark.parametrize("name", NAMES)
def test_an_interrupt_comes_at_any_place(name: str) -> None:
    """UC-004: the journal never says denied of what ran, and says nothing of it (S-38, S-45)."""
    steps = recording(name).steps
    for place in some(name, "interrupted"):
        for late in LATE:
            play = played(begun(name, late=late), interrupted(steps, place))
            assert wrong(play) == [], f"interrupted after seq {steps[place].seq}, {late} late"


def test_what_ran_though_it_was_denied_is_told() -> None:
    """The control: the recorded client let it run, and here it is denied (S-38)."""
    play = played(begun("02_cmd_accept"), contrary(recording("02_cmd_accept").steps))
    (run,) = play.runs.values()
    assert Anomaly.RAN_THOUGH_DENIED in {it.anomaly for it in run.odd}


# ------------------------------------------------------------------------------
# Limits and settlements that the recordings have not.


def of_few(calls: int) -> Callable[..., Normalises]:
    """Return what makes normalisers whose turns have so many calls at most."""

    def made(*, run_id: str, thread_id: str, settlement: Settlement, worker: str) -> Normalises:
        return Normaliser(
            run_id=run_id,
            thread_id=thread_id,
            settlement=settlement,
            worker=worker,
            calls_limit=calls,
        )

    return made


@pytest.mark.parametrize("calls", [1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_a_full_turn_is_followed_by_the_next(name: str, calls: int) -> None:
    """Section 15: a turn that reaches the limit of calls is sealed, the next one opened."""
    play = played(begun(name, makes=of_few(calls)), recording(name).steps)
    assert wrong(play) == []
    for run in play.runs.values():
        of_turns = Counter(turn_id for turn_id, _ in run.witness.lives)
        assert max(of_turns.values(), default=0) <= calls


def settled_by(settlement: Settlement) -> Callable[..., Normalises]:
    """Return what makes normalisers with a settlement that nobody asked for."""

    def made(*, run_id: str, thread_id: str, worker: str, **_: object) -> Normalises:
        return Normaliser(run_id=run_id, thread_id=thread_id, settlement=settlement, worker=worker)

    return made


@pytest.mark.parametrize("settlement", ["response", "turn"])
@pytest.mark.parametrize("name", NAMES)
def test_either_settlement_holds_for_any_recording(name: str, settlement: Settlement) -> None:
    """S-32: raw events that never say where a response ends, or that come though unasked."""
    assert wrong(played(begun(name, makes=settled_by(settlement)), recording(name).steps)) == []


# ------------------------------------------------------------------------------
# What the model asked for, counted.


def raw_calls(name: str) -> Iterator[tuple[str, str]]:
    """Yield upstream turn and call id of each call in the raw stream, a repeated one once."""
    seen: set[object] = set()
    for step in recording(name).steps:
        message = step.message if isinstance(step, Said) else None
        if not isinstance(message, Notified) or message.method != "rawResponseItem/completed":
            continue
        item = object_of(message.params.get("item"))
        if str(item.get("type")).endswith("_call") and item.get("id") not in seen:
            seen.add(item.get("id"))
            yield str(message.params["turnId"]), str(item.get("call_id"))


@pytest.mark.parametrize("name", [it for it in NAMES if it.startswith("raw_")])
def test_each_call_of_the_model_is_one_invocation(name: str) -> None:
    """Not one more, whatever else is said of it, and not one less (S-31, S-33)."""
    play = played(begun(name), recording(name).steps)
    found = Counter(
        (turn_id.partition("#")[0], str(life.call.provider_call_id))
        for run in play.runs.values()
        for (turn_id, _), life in run.witness.lives.items()
        if not str(life.call.provider_call_id).startswith("elicitation/")  # of a tool, not a model
    )
    assert found == Counter(raw_calls(name))
