"""Subjects in this process that do what they must not, each in one way."""

from __future__ import annotations

import copy
import os
import signal
from collections.abc import Callable
from typing import Any, NoReturn, cast

from turnlock.verification.subjects.subject import Raw

from ..wrong_kernels import Right


class Spoils(Right):
    """Right, but it changes whatever it was given and has returned, at once and later."""

    def reset(self, run: Raw) -> None:
        super().reset(copy.deepcopy(run))
        _spoil(run)
        self.seen: list[Any] = []

    def receive(self, delivery: Raw) -> Any:
        told = copy.deepcopy(super().receive(copy.deepcopy(delivery)))
        for earlier in [*self.seen, delivery]:
            _spoil(earlier)
        self.seen += [delivery, told]
        return told


def _spoil(value: Any) -> None:
    """Change everything in it that can be changed."""
    if isinstance(value, dict):
        fields = cast("Raw", value)
        for part in list(fields.values()):
            _spoil(part)
        fields.update(now=-1.0, turn_id="spoilt", type="spoilt", spoilt=True)
    elif isinstance(value, list):
        items: list[Any] = value  # pyright: ignore[reportUnknownVariableType]
        for part in items:
            _spoil(part)
        items.append("spoilt")


class Reuses(Right):
    """Right, but all its answers are one object, which it fills anew each time."""

    def answer(self, delivery: Raw, right: Raw) -> Any:
        self.__dict__.setdefault("told", {}).clear()
        self.told.update(right)
        return self.told

    told: Raw


class Hostile:
    """An object that raises whatever is asked of it."""

    def _no(self, *_: object) -> NoReturn:
        raise RuntimeError("touched")

    __eq__ = __hash__ = __repr__ = __str__ = __bool__ = __len__ = __iter__ = _no


class HostileDict(dict[str, Any]):
    """A receipt whose every method lies: it is the JSON that it is all the same."""

    def __eq__(self, _: object) -> bool:
        return True

    def __ne__(self, _: object) -> bool:
        return False

    __hash__ = None

    def get(self, *_: object) -> Any:
        raise RuntimeError("touched")

    def __getitem__(self, _: object) -> Any:
        raise RuntimeError("touched")


class HostileError(Exception):
    """It cannot be told."""

    def __str__(self) -> str:
        raise RuntimeError("touched")

    __repr__ = __str__


YES: Raw = {"accepted": True, "facts": [], "effects": []}


def endless() -> Any:
    """A receipt that holds itself."""
    held: Raw = {**YES}
    held["facts"] = [held]
    return held


def recurse() -> Any:
    return recurse()


def fails(error: BaseException) -> Callable[[], Any]:
    def fail() -> Any:
        raise error

    return fail


def forks() -> Any:
    """Two processes return from here: one of them may not go on as a second harness."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        return {**YES, "effects": [{"type": f"child ended {status}"}]}
    return YES


def interrupted() -> Any:
    """Somebody presses Ctrl-C."""
    signal.raise_signal(signal.SIGINT)
    return YES


CRASHES: dict[str, tuple[Callable[[], Any], str]] = {
    "raises": (fails(ValueError("no")), "raised ValueError (no) at hostile.py:"),
    "exits": (fails(SystemExit(0)), "raised SystemExit (0)"),
    "presses Ctrl-C": (fails(KeyboardInterrupt()), "raised KeyboardInterrupt ()"),
    "runs out of memory": (fails(MemoryError()), "raised MemoryError ()"),
    "never comes back": (recurse, "raised RecursionError ("),
    "cannot be told": (fails(HostileError()), "raised HostileError (it cannot be shown)"),
    "stops a generator": (fails(GeneratorExit()), "raised GeneratorExit ()"),
    "answers nothing": (lambda: None, "answered null; a receipt is {"),
    "answers text": (lambda: "ok", 'answered "ok"; a receipt is {'),
    "answers an empty object": (dict, "answered {}; a receipt is {"),
    "answers an object that fights": (Hostile, "answered what is no JSON ("),
    "hides one in a receipt": (lambda: {**YES, "facts": [Hostile()]}, "answered what is no JSON ("),
    "answers NaN": (
        lambda: {**YES, "facts": [{"type": "X", "at": float("nan")}]},
        "answered NaN or an infinity",
    ),
    "answers itself": (endless, "answered what is no JSON ("),
    "answers a refusal for no reason": (lambda: {**YES, "accepted": False}, "; a receipt is {"),
    "answers a lone surrogate": (
        lambda: {**YES, "facts": [{"type": "\ud800"}]},
        "answered what is no JSON (",
    ),
}
"""What a subject may do in place of answering, and what is said of it."""
