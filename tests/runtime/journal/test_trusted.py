"""Facts read by the short way are those that the codec reads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given

import turnlock
from turnlock.models import codec
from turnlock.models.codec import fact_from_json, to_json
from turnlock.models.fact import Fact
from turnlock.models.facts import FACTS
from turnlock.models.record import Record, fields_of
from turnlock.runtime.journal import trusted
from turnlock.runtime.journal.trusted import UNREADABLE, trusted_fact

from ...models.strategies import build, complete, make, records

ONE_READ = """
import sys
from turnlock.runtime.journal import trusted
print(*trusted._BUILDERS)
trusted.trusted_fact(sys.stdin.buffer.read())
print(*trusted._BUILDERS)
"""


def shape(value: Any) -> Any:
    """A value with the class of each of its parts: 1 is not 1.0, a list not a frozen one."""
    kind: Any = type(cast("object", value))
    if issubclass(kind, Record):
        return kind, {field.name: shape(getattr(value, field.name)) for field in fields_of(kind)}
    if issubclass(kind, dict):
        return kind, {key: shape(item) for key, item in value.items()}
    if issubclass(kind, list | tuple):
        return kind, [shape(item) for item in value]
    return kind, value


@given(records(Fact))
def test_any_fact_is_read_as_the_codec_reads_it(fact: Fact) -> None:
    """Field for field, class for class, the frozen JSON inside and the digests of calls too."""
    line = to_json(fact)

    assert shape(trusted_fact(line)) == shape(fact_from_json(line)) == shape(fact)


@pytest.mark.parametrize("cls", FACTS, ids=lambda cls: cls.__name__)
def test_each_fact_is_read_with_all_and_with_few_fields(cls: type[Fact]) -> None:
    """No class and no field is left to chance."""
    for fact in (build(cls), make(cls, **complete(cls))):
        assert shape(trusted_fact(to_json(fact))) == shape(fact)


def test_what_comes_out_cannot_be_changed() -> None:
    """A record is as frozen as one that was built by its constructor."""
    fact: Any = trusted_fact(to_json(make(FACTS[0], **complete(FACTS[0]))))

    with pytest.raises(AttributeError):
        fact.sequence = 7
    with pytest.raises(TypeError):
        fact.arguments["n"] = 2


def test_an_older_version_goes_through_the_codec(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which knows how to upgrade it; the short way knows only what is written today."""
    fact = build(FACTS[0])
    line = to_json(fact).replace(b'"tool_name"', b'"tool"')
    monkeypatch.setattr(codec, "VERSION", 3)
    monkeypatch.setattr(trusted, "VERSION", 3)

    def rename(raw: dict[str, Any]) -> dict[str, Any]:
        return {("tool_name" if name == "tool" else name): raw[name] for name in raw}

    monkeypatch.setitem(codec.UPGRADES, 2, rename)

    assert trusted_fact(line) == fact


@pytest.mark.parametrize(
    "line", [b"", b"{", b"[]", b"{}", b'{"version":1}', b'{"version":1,"type":"X"}', b"\xff"]
)
def test_what_is_no_line_of_ours_raises(line: bytes) -> None:
    """One of the errors that are taken for damage."""
    with pytest.raises(UNREADABLE):
        trusted_fact(line)


@pytest.mark.parametrize("cls", [FACTS[0], FACTS[-1]], ids=lambda cls: cls.__name__)
def test_a_process_makes_what_reads_a_type_when_it_first_meets_one(cls: type[Fact]) -> None:
    """All of them at the import were an eighth of what it takes to load `turnlock show`."""
    done = subprocess.run(
        [sys.executable, "-c", ONE_READ],
        input=to_json(build(cls)),
        env={"PYTHONPATH": str(Path(turnlock.__file__).parents[1])},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode().splitlines() == ["", str(cls.type)]
