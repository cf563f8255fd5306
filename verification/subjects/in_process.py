"""Drives a subject that lives in this process, as if it lived in another.

It is given copies, and what it answers is read as the JSON that it is: whatever it does to what it
was given or has returned, nobody else sees. It cannot be stopped while it hangs: what may hang
belongs into a process of its own (`ProcessDriver`).
"""

from __future__ import annotations

import dis
import gc
import math
import os
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final, TypeVar, cast

import msgspec

from ...wire.known_parts import Known, Repeated
from ..errors import SubjectFailed
from . import sharing
from .answers import NO_RECEIPT, read_receipt
from .child import MAX_ANSWER
from .subject import Capability, Raw, Recoverable, Script, Subject

T = TypeVar("T")

LONGEST: Final = 2_000
"""Characters of what a subject's exception says that an error repeats (K-6)."""

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode
_RAISE: Final = dis.opmap["RAISE_VARARGS"]


class InProcess:
    """The driver of subjects that `make` builds, one for each script.

    A `trusted` one is given the very deliveries, answers plain JSON that it leaves alone, and may
    be copied: our own kernel, which reads both from text.
    """

    def __init__(self, make: Callable[[], Subject], *, name: str, trusted: bool = False) -> None:
        """Build one subject to learn what it declares."""
        subject = make()
        self.name = name
        self.capabilities: frozenset[Capability] = frozenset(subject.capabilities)
        self._make = make
        self._trusted = trusted
        self.shares = trusted and isinstance(subject, sharing.Cloneable)
        self._known = Repeated(read_receipt)

    @property
    def make(self) -> Callable[[], Subject]:
        """What builds a subject."""
        return self._make

    def play(self, run: Raw, scripts: Sequence[Script]) -> list[list[Raw]]:
        """Play scripts, each on a fresh run. Raises `SubjectFailed` when the subject raises."""
        with collector_paused():
            return [self._played(run, script) for script in scripts]

    def play_each(self, run: Raw, batches: Iterable[Sequence[Script]]) -> Iterator[list[list[Raw]]]:
        """Play batches of scripts that may share what they begin with; yield the receipts of each.

        A subject that may be copied plays a shared beginning once (see `sharing`); any other plays
        each script on a fresh run. Raises as `play` does.
        """
        for batch in batches:
            with collector_paused():
                answers = self._shared(run, batch) if self.shares else self.play(run, batch)
            yield answers

    def close(self) -> None:
        """There is nothing to let go of."""

    def _shared(self, run: Raw, scripts: Sequence[Script]) -> list[list[Raw]]:
        together = sharing.Together(scripts)

        def begun() -> sharing.Cloneable:
            together.receipts = []
            subject = cast("sharing.Cloneable", self._make())
            subject.reset(run)
            return subject

        with self._placed(lambda: (scripts[len(together.answers)], len(together.receipts))):
            return together.play(begun, _answer)

    def _played(self, run: Raw, script: Script) -> list[Raw]:
        receipts: list[Raw] = []
        given = (run, script) if self._trusted else (copied(run), copied(script))
        with self._placed(lambda: (script, len(receipts))):
            self._answer(receipts, *given)
        return receipts

    @contextmanager
    def _placed(self, place: Callable[[], tuple[Script, int]]) -> Generator[None]:
        """Tell a failure with its script and its step: how many were answered before it."""
        here = os.getpid()
        try:
            with told_as_failure():
                yield
        except SubjectFailed as failure:
            script, steps = place()
            at = script[steps] if steps < len(script) else "the reset"
            raise SubjectFailed(
                f"{self.name} {failure.how} at step {steps + 1} of a script: {at}",
                script=script,
                how=failure.how,
            ) from failure.__cause__
        finally:
            if os.getpid() != here:  # a subject that forked: its child is no second harness
                os._exit(0)

    def _answer(self, receipts: list[Raw], run: Raw, script: Script) -> None:
        """Play a script, and add each receipt at once: a crash leaves those before it."""
        subject = self._make()
        subject.reset(run)
        known = None if self._trusted else self._known
        for delivery in script:
            answer = _answer(subject, delivery)
            receipts.append(answer if known is None else _read(answer, known))


# ------------------------------------------------------------------------------
# Asking a subject: copies in, plain JSON out, and whatever it raises told as its own failure.


def copied(plain: T) -> T:
    """Return a copy of a delivery, a script or a run: plain JSON, and nothing is shared."""
    return cast("T", _decode(_encode(plain)))


def ask(subject: Subject, delivery: Raw) -> Raw:
    """Deliver a copy, and return the receipt as the JSON that it is.

    Raises `SubjectFailed` when the subject raises, or answers what is no receipt.
    """
    with told_as_failure():
        return _read(_answer(subject, copied(delivery)), Known(read_receipt))


def _read(answer: object, known: Known[Raw]) -> Raw:
    """Return a receipt as it is read from its text; those of one text may be one object."""
    try:
        text = _encode(answer)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise SubjectFailed(f"answered what is no JSON ({_in_words(error)})") from None
    if b"null" in text and not _is_finite(answer):
        raise SubjectFailed(f"answered NaN or an infinity, which is no JSON: {_cut(text)}")
    if len(text) > MAX_ANSWER:
        raise SubjectFailed(f"answered more than {MAX_ANSWER} bytes")
    try:
        return known[text]
    except msgspec.DecodeError:
        raise SubjectFailed(f"answered {_cut(text)}; {NO_RECEIPT}") from None


def _answer(subject: Subject, delivery: Raw) -> Raw:
    if delivery["type"] == "recover":
        return cast("Recoverable", subject).recover()
    return subject.receive(delivery)


def _cut(text: bytes) -> str:
    said = text[:LONGEST].decode(errors="replace")
    return said if len(text) <= LONGEST else f"{said}… ({len(text):,} bytes)"


def _is_finite(value: Any) -> bool:  # noqa: ANN401 - any JSON, from whatever classes
    """Whether no float in it is one that JSON cannot say, and would be written as null."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(map(_is_finite, {**cast("Raw", value)}.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_finite, cast("Sequence[object]", value)))
    return True


@contextmanager
def told_as_failure() -> Generator[None]:
    """Tell whatever is raised inside as a failure of the subject: an exit and the like, too.

    An interrupt from the keyboard is passed on, unless the subject raised it by itself.
    """
    try:
        yield
    except SubjectFailed:
        raise
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and not _raised_by_hand(error.__traceback__):
            raise
        raise SubjectFailed(_raised(error)) from error


def _raised_by_hand(trace: TracebackType | None) -> bool:
    """Whether it comes from a `raise`: a signal comes between two instructions, or in a call."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_code[trace.tb_lasti] == _RAISE


def _raised(error: BaseException) -> str:
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(place.filename)}:{place.lineno}, in {place.name}"  # noqa: PTH119
    return f"raised {type(error).__name__} ({_in_words(error)}) at {where}"


def _in_words(error: BaseException) -> str:
    try:
        return str(error)[:LONGEST]
    except BaseException:  # noqa: BLE001 - a hostile one
        return "it cannot be shown"


# ------------------------------------------------------------------------------
# Keeps the collector from walking over scripts and receipts again and again.


@contextmanager
def collector_paused() -> Generator[None, None, None]:
    """Pause the collector of cycles while a batch is played: receipts hold none."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
