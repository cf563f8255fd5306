"""Section 4 of docs/spec/guards.md and the code: methods, their parameters, errors and values."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import attrs
import pytest

from turnlock import TurnlockError, guards
from turnlock.guards import At, Guard, GuardRefused, NotRecorded, Outcome

SPEC = Path(__file__).resolve().parents[2] / "docs" / "spec" / "guards.md"
TEXT = SPEC.read_text(encoding="utf-8").partition("## 4. ")[2].partition("### Examples")[0]
METHOD = re.compile(r"^    def (\w+)\((.*?)\)(?: ->|\s+#|$)", re.MULTILINE | re.DOTALL)
TOLD: dict[str, tuple[type[Any], set[str]]] = {
    name: (getattr(guards, name), set(re.findall(r"\.(\w+)", attributes or "")))
    for name, attributes in re.findall(r"`(\w+)\(((?:\.\w+(?:, )?)+)\)`", TEXT)
}


def methods() -> dict[str, list[str]]:
    """By name the parameters that the text gives a method."""
    return {
        name: re.findall(r"(?:^|, )\s*(\w+)(?=[:=,]|$)", re.sub(r"\[[^\]]*\]", "", given))[1:]
        for name, given in METHOD.findall(TEXT)
    }


@pytest.mark.parametrize("name", sorted(methods()))
def test_each_method_is_there_with_its_parameters_and_has_a_twin(name: str) -> None:
    method = inspect.signature(getattr(Guard, name)).parameters
    told = methods()[name]

    assert [it for it in told if it not in method] == []
    if name == "open":
        return
    twin = inspect.signature(
        getattr(Guard, f"a{name}" if name != "wait_decided" else "await_decided")
    )
    assert list(twin.parameters) == list(method)


def test_each_public_method_is_told() -> None:
    """But for the twins, and what context managers are."""
    public = {it for it in vars(Guard) if not it.startswith("_")}
    twins = {f"a{it}" for it in public} | {"await_decided"}

    assert public - twins == set(methods())


def test_the_reader_finds_what_stands_there() -> None:
    """The negative control."""
    found = methods()

    assert len(found) == 12
    assert found["claim"] == ["at", "tool", "arguments"]
    assert found["decide"][:5] == ["at", "approved", "digest", "by", "reason"]
    assert "policy" in found["once"]


def test_each_error_has_what_is_told_of_it() -> None:
    at = At("r", "t", "c")
    given: dict[str, Any] = {
        "arguments": {}, "attempt": 1, "came": "t", "digest": "d", "reason": "late",
        "since": 1.0, "worker": "w",
    }  # fmt: skip
    assert {*TOLD} >= {"InDoubt", "NotApproved", "Stale", "StillRunning"}
    for kind, attributes in TOLD.values():
        takes = inspect.signature(kind).parameters
        error = kind("why", at=at, **{it: given[it] for it in takes if it in given})
        assert issubclass(kind, GuardRefused)
        assert {it: getattr(error, it) for it in attributes} == {it: given[it] for it in attributes}
    assert issubclass(guards.Forked, guards.Stale)
    assert issubclass(guards.DecidedOtherwise, guards.Stale)
    assert issubclass(guards.Differs, GuardRefused)
    assert issubclass(NotRecorded, TurnlockError)
    assert not issubclass(NotRecorded, GuardRefused)


def test_the_values_have_the_fields_that_are_told() -> None:
    assert [it.name for it in attrs.fields(At)] == ["run", "turn", "call"]
    told = re.search(r"class Outcome\[T\]: (.*)", TEXT)
    assert told is not None
    fields = re.findall(r"(\w+):", told[1])
    assert [it.name for it in attrs.fields(Outcome)] == fields
