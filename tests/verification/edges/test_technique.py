"""Edges as a technique: what is wrong at an edge is told by its name and its rule, all of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from turnlock.verification.edges import technique
from turnlock.verification.edges.edge import Edge
from turnlock.verification.edges.edges import EDGES
from turnlock.verification.edges.technique import check, edges_of, first_failure
from turnlock.verification.errors import NotDeterministic
from turnlock.verification.findings import NO_ANSWER, Profile, Result, Status
from turnlock.verification.subjects.in_process import InProcess
from turnlock.verification.subjects.kernel import kernel_driver
from turnlock.verification.subjects.subject import Driver
from turnlock.verification.techniques import TECHNIQUES

from ..oracle_subject import OracleSubject, Right

Raw = dict[str, Any]
BY_NAME = {edge.name: edge for edge in EDGES}
SMALL = tuple(edge for edge in EDGES if len(edge.steps) <= 120 and edge.name != "a thousand calls")


def silent(_: str) -> None:
    """Nobody listens."""


def checked(driver: Driver, *names: str) -> Result:
    """What these edges say of a system."""
    edges = [BY_NAME[name] for name in names]
    return check(driver, profile=Profile.DEV, progress=silent, edges=edges)


class Truthy(Right):
    """Takes every limit of zero for one that was not given."""

    def reset(self, run: Raw) -> None:
        given: Raw = run.get("limits") or {}
        limits = {name: value for name, value in given.items() if value}
        super().reset({**run, "limits": limits})


class Trimming(Right):
    """Takes blanks off the ids of calls."""

    def receive(self, delivery: Raw) -> Raw:
        if "invocation_id" in delivery:
            delivery = {**delivery, "invocation_id": delivery["invocation_id"].strip() or " "}
        return super().receive(delivery)


class Forgetful(Right):
    """Never asks for a continuation, whatever the ids are like."""

    def receive(self, delivery: Raw) -> Raw:
        receipt = super().receive(delivery)
        receipt["effects"] = [one for one in receipt["effects"] if one["type"] != "continue"]
        return receipt


class Raising(Right):
    """Raises at a grace of zero."""

    def receive(self, delivery: Raw) -> Raw:
        if delivery.get("grace") == 0:
            raise ZeroDivisionError("division by zero")
        return super().receive(delivery)


class RaisingAfterwards(Truthy):
    """Takes a limit of zero for none, and raises one step later."""

    def receive(self, delivery: Raw) -> Raw:
        if delivery["type"] == "tick":
            raise RuntimeError("too much")
        return super().receive(delivery)


class RecoversWrongly(OracleSubject):
    """Owes nothing any more once it has recovered."""

    def recover(self) -> Raw:
        return {**super().recover(), "effects": []}


class Wavering(Right):
    """Answers the first delivery of every other run otherwise."""

    runs = 0

    def reset(self, run: Raw) -> None:
        super().reset(run)
        Wavering.runs += 1

    def receive(self, delivery: Raw) -> Raw:
        receipt = super().receive(delivery)
        return receipt if Wavering.runs % 2 else {**receipt, "effects": []}


def subject(make: Callable[[], Any]) -> Driver:
    """A driver of what `make` builds."""
    return InProcess(make, name="test")


def test_our_own_kernel_holds_at_every_edge() -> None:
    """Each is played as it is, and with a crash after every step."""
    result = check(kernel_driver(), profile=Profile.CI, progress=silent)

    assert result.status is Status.HOLDS
    assert result.findings == ()
    assert result.figures["edges"] == len(EDGES)
    assert int(result.figures["scripts"]) > 1.5 * len(EDGES)
    assert "examples" in result.guarantee


def test_it_is_a_technique_of_its_own() -> None:
    """Black box, needing no capability, in every profile."""
    (edges,) = [one for one in TECHNIQUES if one.name == "edges"]

    assert edges.black_box
    assert edges.needs == ()


def test_a_finding_names_its_edge_and_its_rule() -> None:
    """Short, as other techniques tell theirs."""
    result = checked(subject(Truthy), "a run with no room")

    assert result.status is Status.VIOLATED
    (finding,) = result.findings
    assert finding.technique == "edges"
    assert finding.rule == "K-56"
    assert finding.message.endswith("(edge: a run with no room)")
    assert len(finding.script) == 1
    assert finding.minimal


def test_one_edge_hides_no_other() -> None:
    """Whoever fails in one script is asked all the others."""
    names = ("a run with no room", "nulls in a decision", "a run without continuations")

    result = checked(subject(Truthy), *names)

    assert result.figures["edges"] == 3
    assert [finding.message.partition("edge: ")[2] for finding in result.findings] == [
        "a run with no room)",
        "a run without continuations)",
    ]


def test_the_rule_of_the_edge_is_named_where_the_edge_makes_the_difference() -> None:
    """Without blanks in the ids the same story is answered rightly: it is about the ids."""
    (finding,) = checked(subject(Trimming), "ids that differ by case or space").findings

    assert finding.rule in BY_NAME["ids that differ by case or space"].rules


def test_what_is_wrong_in_plain_words_too_keeps_its_rule() -> None:
    """The control: who never continues breaks K-52, whatever the script is about."""
    edge = BY_NAME["empty is not absent"]
    assert "K-52" not in edge.rules

    (finding,) = checked(subject(Forgetful), edge.name).findings

    assert finding.rule == "K-52"


def test_recovery_is_asked_after_every_step() -> None:
    """Only of a system that declares it; what it owes then is compared, too."""
    name = "a timeout of zero"
    assert checked(subject(Right), name).figures["scripts"] == 1

    (finding,) = checked(subject(RecoversWrongly), name).findings

    assert finding.rule == "K-3"


def test_a_crash_is_told_when_there_is_nothing_wrong_before_it() -> None:
    """The other edges are asked all the same."""
    told: list[str] = []
    edges = [BY_NAME["a lease and a grace of zero"], BY_NAME["nulls in a decision"]]

    result = check(subject(Raising), profile=Profile.DEV, progress=told.append, edges=edges)

    assert {finding.rule for finding in result.findings} == {NO_ANSWER}
    assert "division by zero" in result.findings[0].got
    assert any(line.startswith("nulls in a decision") for line in told)


def test_a_crash_after_a_wrong_answer_is_told_as_the_wrong_answer() -> None:
    """A turn that was not to be opened, and the tick that raises after it."""
    (finding,) = checked(subject(RaisingAfterwards), "a run without continuations").findings

    assert finding.technique == "edges"
    assert finding.rule == "K-56"
    assert finding.script[-1]["type"] == "open_turn"


def test_a_system_that_answers_in_two_ways_is_told_so() -> None:
    """It is not blamed for either answer."""
    with pytest.raises(NotDeterministic):
        checked(subject(Wavering), *[edge.name for edge in SMALL])


def test_without_its_script_nothing_is_found() -> None:
    """The control: the edge is what finds it."""
    without: list[Edge] = [edge for edge in edges_of(Profile.DEV) if edge.run.get("limits") is None]
    few = [edge for edge in without if edge in SMALL]

    assert checked(subject(Truthy), *[edge.name for edge in few]).status is Status.HOLDS


def test_a_failure_is_made_shorter_within_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than so many scripts are played for it, and then it is told as it is."""
    monkeypatch.setattr(technique, "MAX_SHORTENED", 0)

    (finding,) = checked(subject(Forgetful), "ids that begin alike").findings

    assert not finding.minimal
    assert len(finding.script) > 5


def test_the_first_failure_is_told_as_it_was_found() -> None:
    """For whoever counts what is found: nothing is made shorter."""
    finding = first_failure(subject(Truthy), profile=Profile.DEV)

    assert finding is not None
    assert finding.script[-1]["type"] == "open_turn"
    assert first_failure(kernel_driver(), profile=Profile.DEV) is None
