"""``turnlock replay``: what is well passes, whoever decides, with status 0."""

from __future__ import annotations

from pathlib import Path

import pytest

from turnlock.verification.replay.tally import Hostility

from .recordings import CORPUS, answer, batch, call, lines, replayed, turnlock, write


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
    assert told["states_compared"] == sum(injected.values()) // 50
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
    """Gated, and denied with the recorded reason; an error without a text gets one (K-36)."""
    calls = [call("a"), call("b"), call("c")]
    results = [answer("a", "not today", "denied"), answer("b", "", "denied")]
    file = write(tmp_path, lines(batch(calls=calls, results=[*results, answer("c", "", "error")])))

    for decisions in ("approve", "random"):
        told = replayed(file, "--decisions", decisions, "--seed", "3")
        assert told["invocations"]["denied"] >= 2
    shown = turnlock("trace", file, "--run", "talk").output
    assert "not today" in shown
    assert "the tool failed without saying why" in shown
