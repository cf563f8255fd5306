"""Events fed to a fold, and what it said of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from turnlock.agent.messages import Answer
from turnlock.agent.speaking import Again, CallEnded, Ended, Fold, Said

S = TypeVar("S")


def folded(fold: Fold, events: Iterable[Any]) -> tuple[list[Said], Ended]:
    """What is said since the response began for the last time, and how it ended."""
    said: list[Said] = []
    for event in events:
        for it in fold.feed(event):
            if isinstance(it, Again):
                said.clear()
            else:
                said.append(it)
    return said, fold.end()


def of(kind: type[S], said: Iterable[object]) -> list[S]:
    """What is said of one kind."""
    return [it for it in said if isinstance(it, kind)]


def raw(said: Answer | CallEnded) -> Any:
    """The provider's own message."""
    return said.raw


def faults(answer: Answer) -> list[bool]:
    """Whether each call has one."""
    return [call.fault is not None for call in answer.calls]
