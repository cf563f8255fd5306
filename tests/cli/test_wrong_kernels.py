"""The negative controls of ``turnlock replay``: a kernel that is wrong is found out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs
import pytest

from turnlock import (
    Accepted,
    Claim,
    Continue,
    Delivery,
    Execute,
    Kernel,
    Reason,
    Refused,
    Report,
    Run,
    Verdict,
)
from turnlock.engine.kernel import state_of
from turnlock.models.fact import Foldable

from .recordings import CORPUS, turnlock


def changed(record: Any, **fields: Any) -> Any:
    """The record with other fields; only `attrs` itself knows that it is one of its classes."""
    return attrs.evolve(record, **fields)


class AcceptsDuplicates(Kernel):
    def receive(self, delivery: Delivery, now: float) -> Verdict:
        verdict = super().receive(delivery, now)
        if isinstance(verdict, Refused) and verdict.reason is Reason.DUPLICATE:
            return Accepted(facts=(), effects=())
        return verdict


class StartsTwice(Kernel):
    def receive(self, delivery: Delivery, now: float) -> Verdict:
        verdict = super().receive(delivery, now)
        if isinstance(delivery, Claim) and verdict.reason in {
            Reason.DUPLICATE,
            Reason.ALREADY_STARTED,
        }:
            return Accepted(facts=(), effects=())
        return verdict


class Rewrites(Kernel):
    """Does something to the continuations."""

    def rewritten(self, effect: Continue) -> tuple[Continue, ...]:
        raise NotImplementedError

    def receive(self, delivery: Delivery, now: float) -> Verdict:
        verdict = super().receive(delivery, now)
        effects = [
            new
            for effect in verdict.effects
            for new in (self.rewritten(effect) if isinstance(effect, Continue) else (effect,))
        ]
        if not isinstance(verdict, Accepted):
            return verdict
        rewritten: Accepted = changed(verdict, effects=tuple(effects))
        return rewritten


class ContinuesTwice(Rewrites):
    def rewritten(self, effect: Continue) -> tuple[Continue, ...]:
        return (effect, effect)


class NeverContinues(Rewrites):
    def rewritten(self, effect: Continue) -> tuple[Continue, ...]:
        return ()


class DropsAResult(Rewrites):
    def rewritten(self, effect: Continue) -> tuple[Continue, ...]:
        return (changed(effect, results=effect.results[:-1]),)


class TurnsResultsAround(Rewrites):
    def rewritten(self, effect: Continue) -> tuple[Continue, ...]:
        return (changed(effect, results=tuple(reversed(effect.results))),)


class RunsOtherArguments(Kernel):
    def receive(self, delivery: Delivery, now: float) -> Verdict:
        verdict = super().receive(delivery, now)
        effects = tuple(
            changed(effect, arguments={"rm": "-rf"}) if isinstance(effect, Execute) else effect
            for effect in verdict.effects
        )
        if not isinstance(verdict, Accepted):
            return verdict
        rewritten: Accepted = changed(verdict, effects=effects)
        return rewritten


class RefusalsCount(Kernel):
    def receive(self, delivery: Delivery, now: float) -> Verdict:
        verdict = super().receive(delivery, now)
        if isinstance(verdict, Refused) and verdict.reason is Reason.LATE:
            state_of(self).sequence += 1
        return verdict


class RefusalsChangeSilently(Kernel):
    """Only a look at the whole state can see this one."""

    def receive(self, delivery: Delivery, now: float) -> Verdict:
        verdict = super().receive(delivery, now)
        if isinstance(verdict, Refused):
            state_of(self).grants.issued += 1
        return verdict


class RefusesReports(Kernel):
    def receive(self, delivery: Delivery, now: float) -> Verdict:
        if isinstance(delivery, Report) and delivery.error is not None:
            return Refused(reason=Reason.LATE)
        return super().receive(delivery, now)


class Raises(Kernel):
    def receive(self, delivery: Delivery, now: float) -> Verdict:
        verdict = super().receive(delivery, now)
        if verdict.reason is Reason.UNKNOWN_GRANT:
            raise KeyError("grant")
        return verdict


class ForgetsOnRecovery(Kernel):
    @classmethod
    def recover(cls, run: Run, facts: Iterable[Foldable], **options: Any) -> Kernel:
        return super().recover(run, list(facts)[:-3], **options)


class CannotRecover(Kernel):
    @classmethod
    def recover(cls, run: Run, facts: Iterable[Foldable], **options: Any) -> Kernel:
        return super().recover(run, list(facts)[1:], **options)


class SkipsASequence(Kernel):
    def receive(self, delivery: Delivery, now: float) -> Verdict:
        verdict = super().receive(delivery, now)
        if not isinstance(verdict, Accepted):
            return verdict
        rewritten: Accepted = changed(verdict, facts=verdict.facts[1:])
        return rewritten


WRONG = [
    (AcceptsDuplicates, "was accepted"),
    (StartsTwice, "ran again"),
    (ContinuesTwice, "the turn continued 2 times, not 1"),
    (NeverContinues, "the turn continued 0 times, not 1"),
    (DropsAResult, "the continuation's results are not the recorded ones, in order"),
    (TurnsResultsAround, "the continuation's results are not the recorded ones, in order"),
    (RunsOtherArguments, "asks for another call"),
    (RefusalsCount, "was refused, and yet added facts, effects or sequence numbers"),
    (RefusalsChangeSilently, "was refused, and yet changed the state"),
    (RefusesReports, "was refused: late"),
    (Raises, "made the kernel raise KeyError('grant')"),
    (ForgetsOnRecovery, "a kernel recovered from the journal"),
    (CannotRecover, "the journal cannot be recovered: fact 2"),
    (SkipsASequence, "has the sequence"),
]


@pytest.mark.parametrize(("wrong", "told"), WRONG, ids=[wrong.__name__ for wrong, _ in WRONG])
def test_a_wrong_kernel_is_found_out(
    monkeypatch: pytest.MonkeyPatch, wrong: type[Kernel], told: str
) -> None:
    """Status 1, FAILED in the last line, and the first failures with file, line, run and turn."""
    monkeypatch.setattr("turnlock.verification.replay.checked_kernel.Kernel", wrong)

    result = turnlock("replay", CORPUS, "--hostile", "5")

    assert result.exit_code == 1
    assert result.exception is None or isinstance(result.exception, SystemExit)
    last = result.output.splitlines()[-1]
    assert last.startswith("FAILED ")
    failures = [line for line in result.output.splitlines() if line.startswith("failed: ")]
    assert 1 <= len(failures) <= 10
    assert any(told in failure for failure in failures)
    for failure in failures:
        assert failure.startswith(f"failed: {CORPUS}:")
        assert " run " in failure
        assert " turn " in failure


def test_without_hostility_a_wrong_kernel_may_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control of the control: what only hostile deliveries show is seen through them alone."""
    monkeypatch.setattr("turnlock.verification.replay.checked_kernel.Kernel", StartsTwice)

    assert turnlock("replay", CORPUS).exit_code == 0
