"""Libraries of state machines: a bare event of each, on one machine that goes round for ever.

The same four phases and four events without conditions and callbacks, as each library's own guide
declares them. Making the machine is not timed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Protocol

from timing import Work, timed

PEERS: Final = ("python-statemachine", "automat")
"""As PyPI calls them; the third, transitions, is in trigger.py."""


def event_work(package: str, rounds: int) -> Work:
    """Make a work that sends a machine of this package round so many times."""
    events = _EVENTS[package]()
    _go(1, events)
    return timed(rounds * len(events), partial(_go, rounds, events))


def _go(rounds: int, events: Sequence[Callable[[], object]]) -> None:
    approve, claim, report, again = events
    for _ in range(rounds):
        approve()
        claim()
        report()
        again()


def _statemachine() -> Sequence[Callable[[], object]]:
    from statemachine import State, StateMachine  # noqa: PLC0415 - may be missing

    class Life(StateMachine):
        requested = State(initial=True)
        approved = State()
        started = State()
        succeeded = State()
        approve = requested.to(approved)
        claim = approved.to(started)
        report = started.to(succeeded)
        again = succeeded.to(requested)

    machine: Any = Life()
    return machine.approve, machine.claim, machine.report, machine.again


class _Life(Protocol):
    def approve(self) -> None: ...
    def claim(self) -> None: ...
    def report(self) -> None: ...
    def again(self) -> None: ...


class _Nothing:
    """What automat keeps for a machine: here nothing."""


def _automat() -> Sequence[Callable[[], object]]:
    from automat import TypeMachineBuilder  # noqa: PLC0415 - may be missing

    builder = TypeMachineBuilder(_Life, _Nothing)
    requested, approved = builder.state("requested"), builder.state("approved")
    started, succeeded = builder.state("started"), builder.state("succeeded")
    requested.upon(_Life.approve).to(approved).returns(None)
    approved.upon(_Life.claim).to(started).returns(None)
    started.upon(_Life.report).to(succeeded).returns(None)
    succeeded.upon(_Life.again).to(requested).returns(None)
    machine = builder.build()(_Nothing())
    return machine.approve, machine.claim, machine.report, machine.again


_EVENTS: Final[dict[str, Callable[[], Sequence[Callable[[], object]]]]] = {
    "python-statemachine": _statemachine,
    "automat": _automat,
}
