"""Of record classes only what a process needs is written, and what is written is one thing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar, cast

import attrs
import pytest

import turnlock
from turnlock.models.record import Record, fields_of, record, unchecked_maker

ONE_RECEIVE = """
from turnlock import Call, Kernel, OpenTurn, Run
from turnlock.engine import unchecked
from turnlock.models import record
call = Call(invocation_id="a", tool_name="ls", arguments={}, requires_approval=True)
Kernel(Run(run_id="r")).receive(OpenTurn(turn_id="t", calls=(call,)), 0.0)
print(*sorted(kind.__name__ for kind in record._WRITTEN))
print(*(name for name, it in vars(unchecked).items() if "Twin" in getattr(it, "__globals__", ())))
"""


def test_one_receive_writes_few_of_the_sixty_classes_and_thirty_makers() -> None:
    """What an import costs hangs on it: the constructors took a quarter of that."""
    done = subprocess.run(
        [sys.executable, "-c", ONE_RECEIVE],
        env={"PYTHONPATH": str(Path(turnlock.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    classes, makers = (line.split() for line in done.stdout.splitlines())
    assert classes == ["Call", "Delivery", "Limits", "OpenTurn", "Run"]
    assert makers == ["tool_approval_requested", "turn_opened", "accepted", "decision"]


def test_a_maker_is_written_when_it_is_first_called_even_with_what_it_refuses() -> None:
    @record
    class Told(Record):
        number: int

    make = unchecked_maker(Told)

    def code() -> Any:
        return cast("Any", make).__code__

    unwritten = code()
    with pytest.raises(TypeError, match=r"make\(\) missing 1 required keyword-only .*'number'"):
        make()  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    written = code()
    assert make(number=1) == Told(number=1)
    assert code() is written is not unwritten


def test_two_who_call_a_maker_at_once_make_the_same() -> None:
    """Each writes it, and the one who is done first has made a whole record all the same."""

    @record
    class Told(Record):
        number: int

    make: Any = unchecked_maker(Told)
    make.__globals__["write"]()
    first = make(number=1)
    make.__globals__["write"]()

    assert (first, make(number=2)) == (Told(number=1), Told(number=2))
    assert type(first) is type(make(number=2)) is Told


def test_two_who_ask_at_once_get_the_same_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    """The codec resolves the types of fields once: another set of them would still hold texts."""

    @record
    class Slow(Record):
        number: int = 3

    define, others = attrs.define, list[Any]()

    def interrupted(*given: Any, **settings: Any) -> Any:
        monkeypatch.undo()
        others.append(fields_of(Slow))
        return define(*given, **settings)

    monkeypatch.setattr(attrs, "define", interrupted)

    assert Slow(number=4).number == 4
    [other] = others
    assert fields_of(Slow) is other


def test_a_class_without_a_constructor_of_its_own_uses_that_of_the_record() -> None:
    """Whoever derives from a record first must not be given what belongs to the record."""

    @record
    class First(Record):
        number: int

    class Below(First):
        pass

    made: Any = Below
    assert made(number=1).number == 1
    assert "__init__" not in vars(Below)
    assert vars(First)["__init__"] is made.__init__
    with pytest.raises(TypeError, match=r"First\.__init__\(\) missing 1 required keyword-only"):
        made()


def test_it_is_called_as_it_was_declared_and_has_a_slot_for_each_field_alone() -> None:
    """A name within another is what pickle finds it by; what stands in the class takes no slot."""

    @record
    class Told(Record):
        number: int
        kind: ClassVar[str] = "told"

    assert Told.__qualname__.endswith("slot_for_each_field_alone.<locals>.Told")
    assert vars(Told)["__slots__"] == ("number",)
    assert Told(number=1).kind == "told"
