"""A driver for whom a crash is an answer: what came before it is heard, and held to the rules.

A system that crashes takes its batch with it, and all that it had answered there. So the scripts of
that batch are played again one by one up to the one that crashes, and that one step by step: its
receipts, and in the place of the one that never came `{"no answer": what happened}`. Whoever
compares answers meets a wrong one before the crash first, in whatever technique. What would have
come after a crash is not played: those answers are shorter, or empty.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, cast, runtime_checkable

from ..errors import SubjectFailed
from ..findings import NO_ANSWER, Finding
from .child import HANGS
from .in_process import InProcess
from .subject import Driver, Raw, Script


@runtime_checkable
class Streaming(Protocol):
    """A driver that sends batches ahead, and yields the receipts of each in turn."""

    def play_each(self, run: Raw, batches: Iterable[Sequence[Script]]) -> Iterator[list[list[Raw]]]:
        """Play batches of scripts."""
        ...


class Watched:
    """Plays as another driver does, and never raises `SubjectFailed`."""

    def __init__(self, driver: Driver) -> None:
        """Take over its name and what it declares."""
        self.name = driver.name
        self.capabilities = driver.capabilities
        self.shares = isinstance(driver, InProcess) and driver.shares
        """Whether it plays what scripts of a batch share once, and goes on from copies."""
        self._driver = driver

    def play(self, run: Raw, scripts: Sequence[Script]) -> list[list[Raw]]:
        """Play scripts up to a crash."""
        try:
            return self._driver.play(run, scripts)
        except SubjectFailed as failure:
            return self._up_to_crash(run, scripts, failure)

    def play_each(self, run: Raw, batches: Iterable[Sequence[Script]]) -> Iterator[list[list[Raw]]]:
        """Play batches up to the one in which it crashes; a driver that can works ahead."""
        if not isinstance(self._driver, Streaming):
            for batch in batches:
                answers = self.play(run, batch)
                yield answers
                if any(got and no_answer(got[-1]) for got in answers):
                    return
            return
        sent: deque[Sequence[Script]] = deque()

        def noted() -> Iterator[Sequence[Script]]:
            for batch in batches:
                sent.append(batch)
                yield batch

        try:
            for answers in self._driver.play_each(run, noted()):
                sent.popleft()
                yield answers
        except SubjectFailed as failure:
            yield self._up_to_crash(run, sent[0], failure)

    def close(self) -> None:
        """Close the driver."""
        self._driver.close()

    def _up_to_crash(
        self, run: Raw, scripts: Sequence[Script], failure: SubjectFailed
    ) -> list[list[Raw]]:
        answers: list[list[Raw]] = []
        for script in scripts:
            try:
                if script != failure.script:
                    answers += self._driver.play(run, [script])
                    continue
            except SubjectFailed as again:
                failure = again
            answers.append(self._by_steps(run, script, failure))
            break
        else:  # together only, and no script of them by itself
            answers[-1] = [*answers[-1], {NO_ANSWER: failure.how}]
        return answers + [[] for _ in scripts[len(answers) :]]

    def _by_steps(self, run: Raw, script: Script, failure: SubjectFailed) -> list[Raw]:
        """Return the receipts of a script up to its crash: each start of it is played alone.

        One by one and not by halves, because a hang then costs one time limit, and none again for
        the step that is left when no other hangs.
        """
        receipts: list[Raw] = []
        for length in range(1, len(script) + 1):
            if length == len(script) and failure.how.startswith(HANGS):
                return [*receipts, {NO_ANSWER: failure.how}]
            try:
                (receipts,) = self._driver.play(run, [script[:length]])
            except SubjectFailed as again:
                return [*receipts, {NO_ANSWER: again.how}]
        how = f"{failure.how}\nand not when the same script was played again"
        return [*receipts, {NO_ANSWER: how}]


def watched(driver: Driver) -> Watched:
    """Return a driver that does not raise where its system crashes."""
    return driver if isinstance(driver, Watched) else Watched(driver)


def no_answer(receipt: Raw) -> str:
    """Say what came in the place of an answer; nothing where one came."""
    return cast("str", receipt.get(NO_ANSWER, "")) if "accepted" not in receipt else ""


def hangs(finding: Finding) -> bool:
    """Whether the system did not answer in time: each further try would take all of it, too."""
    return finding.rule == NO_ANSWER and f": it {HANGS}" in finding.message
