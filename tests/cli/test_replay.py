"""``turnlock replay``: what is well passes with status 0, and a kernel that is wrong is found out."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import attrs
import pytest

from turnlock import (
    Accepted,
    Claim,
    Continue,
    Delivery,
    Execute,
    Fact,
    Kernel,
    Reason,
    Refused,
    Report,
    Run,
    Verdict,
)
from turnlock.cli.tally import Hostility

from .recordings import CORPUS, answer, batch, call, launch, lines, replayed, turnlock, write


def test_the_corpus_passes_in_a_hostile_world() -> None:
    """Every turn settles and continues once, and every kind of hostility was tried and refused."""
    told = replayed(CORPUS, "--hostile", "5")

    assert told["turns_settled"] == told["continuations"] == told["batches"] == 58
    assert told["executions"] == sum(told["invocations"].values())
    injected = told["hostile"]
    assert set(injected) == {str(kind) for kind in Hostility}
    recorded = injected["recorded"]
    assert sum(injected.values()) == 5 * told["deliveries"]["honest"] + recorded
    assert sum(told["refusals"].values()) == sum(injected.values())
    assert len(told["refusals"]) >= 20
    assert told["recoveries"] == 2 * told["conversations"]


@pytest.mark.parametrize("decisions", ["approve", "deny", "random"])
@pytest.mark.parametrize("seed", range(5))
def test_it_passes_whoever_decides_and_whatever_the_order(decisions: str, seed: int) -> None:
    told = replayed(CORPUS, "--hostile", "3", "--decisions", decisions, "--seed", str(seed))

    assert told["failures"] == []
    denied = told["invocations"]["denied"]
    calls = sum(told["invocations"].values())
    assert {"approve": denied == 0, "deny": denied == calls, "random": 0 < denied < calls}[
        decisions
    ]


def test_one_seed_is_one_outcome() -> None:
    """The same output for the same seed, another one for another seed."""
    options = ("replay", CORPUS, "--hostile", "2", "--decisions", "random", "--no-timing")
    one, same = turnlock(*options, "--seed", "1"), turnlock(*options, "--seed", "1")
    other = turnlock(*options, "--seed", "2")

    assert one.output == same.output != other.output
    assert one.exit_code == other.exit_code == 0
    assert "deliveries a second" not in one.output


def test_the_report_names_what_was_counted() -> None:
    result = turnlock("replay", CORPUS, "--hostile", "1")

    assert result.exit_code == 0
    for name in (
        *("turns settled", "continuations", "invocations succeeded", "tool executions"),
        *("deliveries, hostile", "deliveries a second", "refused, by reason", "duplicated"),
        *("run_mismatch", "oddities of the recording", "calls without a result"),
    ):
        assert name in result.output
    assert result.output.splitlines()[-1].startswith("OK 58 turns settled, 58 continuations sent")


def test_recorded_denials_stay_denials(tmp_path: Path) -> None:
    """Gated and denied with the recorded reason, whoever decides; an error is never empty (K-36)."""
    calls = [call("a"), call("b"), call("c")]
    results = [answer("a", "not today", "denied"), answer("b", "", "denied")]
    file = write(tmp_path, lines(batch(calls=calls, results=[*results, answer("c", "", "error")])))

    for decisions in ("approve", "random"):
        told = replayed(file, "--decisions", decisions, "--seed", "3")
        assert told["invocations"]["denied"] >= 2
    shown = turnlock("trace", file, "--run", "talk").output
    assert "not today" in shown
    assert "the tool failed without saying why" in shown


# Negative controls: kernels that are wrong on purpose


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
        return attrs.evolve(verdict, effects=tuple(effects))


class ContinuesTwice(Rewrites):
    def rewritten(self, effect: Continue) -> tuple[Continue, ...]:
        return (effect, effect)


class NeverContinues(Rewrites):
    def rewritten(self, effect: Continue) -> tuple[Continue, ...]:
        return ()


class DropsAResult(Rewrites):
    def rewritten(self, effect: Continue) -> tuple[Continue, ...]:
        return (attrs.evolve(effect, results=effect.results[:-1]),)


class TurnsResultsAround(Rewrites):
    def rewritten(self, effect: Continue) -> tuple[Continue, ...]:
        return (attrs.evolve(effect, results=tuple(reversed(effect.results))),)


class RunsOtherArguments(Kernel):
    def receive(self, delivery: Delivery, now: float) -> Verdict:
        verdict = super().receive(delivery, now)
        effects = tuple(
            attrs.evolve(effect, arguments={"rm": "-rf"}) if isinstance(effect, Execute) else effect
            for effect in verdict.effects
        )
        return attrs.evolve(verdict, effects=effects)


class RefusalsCount(Kernel):
    def receive(self, delivery: Delivery, now: float) -> Verdict:
        verdict = super().receive(delivery, now)
        if isinstance(verdict, Refused) and verdict.reason is Reason.LATE:
            self.state.sequence += 1
        return verdict


class RefusalsChangeSilently(Kernel):
    """Only a look at the whole state can see this one."""

    def receive(self, delivery: Delivery, now: float) -> Verdict:
        verdict = super().receive(delivery, now)
        if isinstance(verdict, Refused):
            self.state.grants.issued += 1
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
    def recover(cls, run: Run, facts: Iterable[Fact], **options: Any) -> Kernel:
        return super().recover(run, list(facts)[:-3], **options)


class CannotRecover(Kernel):
    @classmethod
    def recover(cls, run: Run, facts: Iterable[Fact], **options: Any) -> Kernel:
        return super().recover(run, list(facts)[1:], **options)


class SkipsASequence(Kernel):
    def receive(self, delivery: Delivery, now: float) -> Verdict:
        verdict = super().receive(delivery, now)
        return attrs.evolve(verdict, facts=verdict.facts[1:])


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
    monkeypatch.setattr("turnlock.cli.courier.Kernel", wrong)

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
    monkeypatch.setattr("turnlock.cli.courier.Kernel", StartsTwice)

    assert turnlock("replay", CORPUS).exit_code == 0


# The command in its surroundings


def test_ask_needs_a_terminal() -> None:
    result = turnlock("replay", CORPUS, "--decisions", "ask")

    assert result.exit_code == 2
    assert "--decisions ask needs a terminal on standard input" in result.output
    assert "choose --decisions approve, deny or random" in result.output


def test_ask_shows_tool_and_arguments_and_does_as_told(tmp_path: Path) -> None:
    """One y and one n on a terminal: the first call runs, the second is denied."""
    calls = [call("a", "look", '{"at": "\\u001b[2Jstars"}'), call("b", "dig", '{"deep": 1}')]
    file = write(tmp_path, lines(batch(calls=calls, results=[])))
    keyboard, terminal = pty.openpty()
    command = launch(
        *("-m", "turnlock", "replay", file, "--decisions", "ask", "--json", "--seed", "1"),
        stdin=terminal,
    )
    os.write(keyboard, b"y\nn\n")
    output, prompts = command.communicate(timeout=30)
    os.close(keyboard)
    os.close(terminal)

    assert command.returncode == 0
    assert b'"succeeded": 1' in output
    assert b'"denied": 1' in output
    assert b"look {" in prompts
    assert b'"deep": 1' in prompts
    assert b"\x1b[2J" not in prompts
    assert prompts.count(b"Run it? [y/n]") == 2


def test_a_closed_pipe_shows_no_traceback() -> None:
    for arguments in (("replay", CORPUS), ("trace", CORPUS), ("replay", CORPUS, "--json")):
        command = launch("-m", "turnlock", *arguments)
        assert command.stdout is not None
        command.stdout.close()
        assert command.stderr is not None
        errors = command.stderr.read()
        assert command.wait(timeout=30) == 1
        command.stderr.close()
        assert command.stdin is not None
        command.stdin.close()
        assert b"Traceback" not in errors
        assert b"Exception ignored" not in errors


def test_ctrl_c_shows_no_traceback(tmp_path: Path) -> None:
    file = write(tmp_path, lines(*(batch(turn=turn) for turn in range(20_000))))
    command = launch("-m", "turnlock", "replay", file, "--hostile", "20")
    time.sleep(2)
    command.send_signal(signal.SIGINT)
    output, errors = command.communicate(timeout=30)

    assert command.returncode == 1
    assert output == b""
    assert b"Traceback" not in errors


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_told() -> None:
    with Path("/dev/full").open("wb") as full:
        command = launch("-m", "turnlock", "replay", CORPUS, stdout=full)
        _, errors = command.communicate(timeout=30)

    assert command.returncode == 1
    assert b"the output cannot be written (No space left on device)" in errors
    assert b"Traceback" not in errors


LOADED = """
import sys
{what}
loaded = {{"rich", "click", "msgspec", "cattrs"}} & set(sys.modules)
print(*sorted(loaded), file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("what", "heavy"),
    [
        ("import turnlock", {"rich", "click", "msgspec", "cattrs"}),
        ("from turnlock.cli.main import main; main(['stdio'], standalone_mode=False)", {"rich"}),
    ],
    ids=["import turnlock", "turnlock stdio"],
)
def test_what_is_not_needed_is_not_loaded(what: str, heavy: set[str]) -> None:
    command = launch("-c", LOADED.format(what=what), stdin=subprocess.DEVNULL)
    _, loaded = command.communicate(timeout=30)

    assert command.returncode == 0
    assert heavy.isdisjoint(loaded.decode().split())


def test_help_and_version_tell_the_exit_status() -> None:
    shown = turnlock("--help").output
    assert all(name in shown for name in ("replay", "trace", "stdio"))
    assert turnlock("--version").output.startswith("turnlock ")
    for name in ("replay", "trace"):
        shown = turnlock(name, "--help").output
        assert "Exit status:" in shown
        assert "2  wrong usage, or not one batch could be read" in shown
    assert turnlock("nonsense").exit_code == 2
    assert turnlock("replay").exit_code == 2


def test_the_demo_ends_with_its_verdict(tmp_path: Path) -> None:
    """`make demo` without make: twice the same, status 0, the verdict in the last line."""
    (tmp_path / "turnlock").write_text(f'#!/bin/sh\nexec "{os.sys.executable}" -m turnlock "$@"\n')  # type: ignore[attr-defined]
    (tmp_path / "turnlock").chmod(0o755)
    demo = Path(CORPUS).parents[1] / "demo.sh"
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": str(demo.parents[1] / "src"),
    }
    outputs = [
        subprocess.run(["bash", str(demo)], env=environment, capture_output=True, check=True).stdout  # noqa: S607
        for _ in range(2)
    ]

    assert outputs[0] == outputs[1]
    assert outputs[0].decode().splitlines()[-1].startswith("OK 58 turns settled")
    assert "TURN_SETTLED" in outputs[0].decode()
