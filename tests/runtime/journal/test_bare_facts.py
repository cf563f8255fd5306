"""What is read of a journal to fold it folds to what its records do, and fails as they do."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast, get_args, get_type_hints

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlock import CorruptJournal, Fact, FactType, InvalidValue, Kernel, Run
from turnlock.models.codec import VERSION, read, read_delivery, to_json
from turnlock.models.facts import FACTS
from turnlock.models.record import Record, fields_of
from turnlock.runtime.journal.bare_facts import BARE, BARE_FACTS, bare_fact
from turnlock.runtime.journal.rows import RECORDS, Reader, Row, checksum, facts_in
from turnlock.runtime.journal.trusted import UNREADABLE, trusted_fact
from turnlock.verification.fuzz.guided import STEP_BYTES, decode

from ...models.strategies import build, complete, make, records
from .test_trusted import shape
from .test_written_before import RUN, facts_written

Told = tuple[Run, list[Fact]]

CHECKED_ALONE = {
    FactType.TOOL_APPROVAL_REQUESTED: {"arguments", "tool_name"},
    FactType.TOOL_EXECUTION_FAILED: {"cause"},
    FactType.GRANT_ISSUED: {"turn_id"},
    FactType.GRANT_REVOKED: {"turn_id"},
    FactType.GRANT_EXPIRED: {"turn_id"},
}
"""Fields that no fold reads, and without which a line is no fact of its type."""
CHECKED_OF_ALL = {"version", "input"}


def journal_of(data: bytes) -> Told:
    """Play the guided script of these bytes; return the run and what happened in it."""
    raw, script = decode(data)
    kernel = Kernel(read(Run, raw))
    facts: list[Fact] = []
    for step in script:
        if step["type"] != "recover":
            fields = dict(step)
            now = fields.pop("now")
            facts += kernel.receive(read_delivery(fields), now).facts
    return kernel.run, facts


journals = st.binary(min_size=1, max_size=1 + 48 * STEP_BYTES).map(journal_of)


def row_with(lines: Sequence[bytes], run_id: str, *, first: int = 1) -> Row:
    """A row whose checksum holds, whatever its lines are."""
    content, last = b"\n".join(lines), first + len(lines) - 1
    return Row(first, last, content, checksum(content, run_id, first, last))


def folded(run: Run, lines: Sequence[bytes], read: Reader[Any]) -> tuple[Any, ...]:
    """What becomes of these lines: the snapshot part by part, or the error."""
    row = row_with(lines, run.run_id)
    try:
        facts = facts_in(row, run.run_id, after=0, limit=row.last, where="here", read=read)
        kernel = Kernel.recover(run, facts)
    except CorruptJournal as error:
        return "corrupt", error.sequence, error.cause, error.fix
    except InvalidValue as error:
        return "invalid", str(error)
    return "folded", shape(kernel.snapshot()), kernel.pending_effects, kernel.earliest_deadline


@given(journals)
def test_both_ways_fold_to_the_same_snapshot(told: Told) -> None:
    """Every value in it of the same class: -0.0, 1 for 1.0, frozen arguments and results."""
    run, facts = told
    lines = [to_json(fact) for fact in facts]

    assert not any(isinstance(bare_fact(line), Record) for line in lines)
    if lines:
        assert folded(run, lines, BARE_FACTS) == folded(run, lines, RECORDS)
        assert folded(run, lines, BARE_FACTS)[0] == "folded"


@given(journals, st.data())
def test_a_torn_end_is_dropped_by_both(told: Told, data: st.DataObject) -> None:
    """Cut off anywhere, also inside a commit (K-9); or a fact is missing, twice or another's."""
    run, facts = told
    lines = [to_json(fact) for fact in facts]
    if not lines:
        return
    at = data.draw(st.integers(0, len(lines) - 1), label="at")
    other = data.draw(st.integers(0, len(lines) - 1), label="other")
    for damaged in (
        lines[: at + 1],
        [*lines[:at], *lines[at + 1 :], lines[at]],
        [*lines[:at], lines[other], *lines[at + 1 :]],
    ):
        assert folded(run, damaged, BARE_FACTS) == folded(run, damaged, RECORDS)


STRANGE: list[Any] = [
    *(None, True, 0, 1, 2, -1, 1.0, -0.0, 1.5, 2**70, "", "é", "t", [], {}, {"a": [1]}, [{}]),
    *("session", "exact", "decision", "TURN_SEALED", "NONE"),
]


@given(journals, st.data())
def test_a_line_that_is_wrong_is_as_wrong_for_both(told: Told, data: st.DataObject) -> None:
    """A field is missing or holds anything else, in the fact or in one of its calls."""
    run, facts = told
    if not facts:
        return
    lines = [to_json(fact) for fact in facts]
    at = data.draw(st.integers(0, len(lines) - 1), label="at")
    raw = json.loads(lines[at])
    part = data.draw(st.sampled_from([raw, *raw.get("calls", []), raw.get("call", raw)]))
    name = data.draw(st.sampled_from(sorted(part)), label="name")
    value = data.draw(st.sampled_from([..., *STRANGE]), label="value")
    if value is ...:
        del part[name]
    else:
        part[name] = value
    lines[at] = json.dumps(raw).encode()

    assert outcome(run, lines, BARE_FACTS) == outcome(run, lines, RECORDS)


def outcome(run: Run, lines: Sequence[bytes], read: Reader[Any]) -> Any:
    """As `folded`; of an error that nobody expects its class, which tells enough."""
    try:
        return folded(run, lines, read)
    except (AttributeError, TypeError, ValueError, LookupError) as error:
        return type(error)


@given(records(Fact))
def test_any_fact_has_the_fields_of_its_record(fact: Fact) -> None:
    """Whether such a journal can be or not: each value is the record's, and of its class."""
    same_fields(bare_fact(to_json(fact)), fact)


@pytest.mark.parametrize("cls", FACTS, ids=lambda cls: cls.__name__)
def test_each_fact_is_read_bare_with_all_and_with_few_fields(cls: type[Fact]) -> None:
    """No class and no field is left to chance."""
    for fact in (build(cls), make(cls, **complete(cls))):
        same_fields(bare_fact(to_json(fact)), fact)


def same_fields(bare: Any, record: Record) -> None:
    """Hold a bare fact, or a call in one, against the record of the same line."""
    assert not isinstance(bare, Record)
    for name in bare.__struct_fields__:
        value = getattr(bare, name)
        if name == "version":
            assert value == VERSION
        elif name == "calls":
            for one, of in zip(value, cast("Any", record).calls, strict=True):
                same_fields(one, of)
        elif name == "call":
            same_fields(value, cast("Any", record).call)
        elif not isinstance(value, msgspec.Raw):
            assert shape(value) == shape(getattr(record, name)), name


def test_there_is_one_for_each_fact_with_its_name_and_its_fields() -> None:
    """A fact that is new, a field with another name or a new version of records is missed here."""
    assert [bare.type for bare in BARE] == [cls.type for cls in FACTS]
    for bare, cls in zip(BARE, FACTS, strict=True):
        assert bare.__struct_config__.tag == cls.type
        assert {*bare.__struct_fields__} - {"version"} <= {it.name for it in fields_of(cls)}
        assert get_args(get_type_hints(bare)["version"]) == (VERSION,)


def test_an_older_version_folds_as_the_codec_reads_it() -> None:
    """What 0.1 wrote is of version 1: no bare fact, and the same run."""
    written = facts_written()
    now = [to_json(fact) for fact in written]
    before = [line.replace(b'{"version":2', b'{"version":1', 1) for line in now]

    assert all(isinstance(bare_fact(line), Fact) for line in before)
    assert folded(RUN, before, BARE_FACTS) == folded(RUN, now, BARE_FACTS)
    assert folded(RUN, now, BARE_FACTS) == folded(RUN, now, RECORDS)


def test_a_newer_version_is_no_damage_to_either() -> None:
    """Whoever folds is told to leave it alone, with the number of the fact."""
    lines = [to_json(fact) for fact in facts_written()]
    lines[6] = lines[6].replace(b'{"version":2', b'{"version":9', 1)
    for reader in (BARE_FACTS, RECORDS):
        found = folded(RUN, lines, reader)
        assert found[:2] == ("corrupt", 7)
        assert "a newer turnlock wrote it" in found[2]


def test_a_row_is_read_at_once_where_all_of_it_is_asked_for() -> None:
    """Line by line otherwise, so that a page of a long row does not read the rest of it."""
    lines = [to_json(fact) for fact in facts_written()]
    row = row_with(lines, RUN.run_id)

    def read(after: int, limit: int) -> tuple[list[Any], list[str]]:
        met: list[str] = []

        def line(given: bytes) -> Any:
            met.append("line")
            return bare_fact(given)

        def all_of(given: bytes) -> list[Any]:
            met.append("row")
            return list(map(bare_fact, given.split(b"\n")))

        reader = Reader(line, all_of)
        found = facts_in(row, RUN.run_id, after=after, limit=limit, where="here", read=reader)
        return [fact.sequence for fact in found], met

    last = len(lines)
    assert read(0, last) == (list(range(1, last + 1)), ["row"])
    assert read(0, last - 1) == (list(range(1, last)), ["line"] * (last - 1))
    assert read(1, last) == (list(range(2, last + 1)), ["line"] * (last - 1))


def test_lines_that_are_no_lines_of_ours_are_found_when_read_at_once() -> None:
    """An empty one, two in one, one that is broken in two: the count of facts tells."""
    lines = [to_json(fact) for fact in facts_written()]
    first, second, *rest = lines
    broken = first.replace(b",", b",\n", 1)
    for odd in ([b"", *lines], [first + second, *rest], [broken, second, *rest]):
        for reader in (BARE_FACTS, RECORDS):
            found = folded(RUN, odd, reader)
            assert found[:2] == ("corrupt", 1)
            assert "cannot be read" in found[2]


@pytest.mark.parametrize(
    "line", [b"", b"{", b"[]", b"{}", b'{"version":2}', b'{"version":2,"type":"X"}', b"\xff"]
)
def test_what_is_no_line_of_ours_raises_as_it_does_for_a_record(line: bytes) -> None:
    """The very message, since it is the same reader that says it."""
    with pytest.raises(UNREADABLE) as bare:
        bare_fact(line)
    with pytest.raises(UNREADABLE) as record:
        trusted_fact(line)
    assert (type(bare.value), str(bare.value)) == (type(record.value), str(record.value))


def test_what_the_fold_keeps_cannot_be_changed() -> None:
    """Arguments and results are as frozen as those of a record (K-32)."""
    kernel = Kernel(RUN)
    kernel.catch_up([bare_fact(to_json(fact)) for fact in facts_written()])
    assert kernel.turn is not None
    kept = [it.arguments for it in kernel.turn.order if it.arguments is not None]
    assert kept
    for arguments in kept:
        with pytest.raises(TypeError, match="cannot be changed"):
            cast("Any", arguments)["amount"] = 2


def without(bare: Any, name: str) -> Any:
    """The bare fact as if its struct had not this field."""
    fields = [
        (it, object, msgspec.field(default=None)) for it in bare.__struct_fields__ if it != name
    ]
    kind = {"type": bare.type} if hasattr(bare, "type") else {}
    cls = msgspec.defstruct(type(bare).__name__, fields, namespace=kind)
    return cls(**{it: getattr(bare, it) for it, *_ in fields})


@pytest.mark.parametrize("cls", BARE, ids=lambda cls: cls.__name__)
def test_no_field_can_be_left_out_and_none_is_there_for_nothing(cls: Any) -> None:
    """The negative control: without any field that it has the fold of a whole story goes red."""
    told: list[Any] = [bare_fact(to_json(fact)) for fact in facts_written()]
    for fact in told:
        if fact.type is FactType.TOOL_DENIED:  # with an error, which is read where no reason is
            fact.reason, fact.error = None, fact.reason
    assert Kernel.recover(RUN, told).sequence == len(told)
    passed_over = CHECKED_OF_ALL | CHECKED_ALONE.get(cls.type, set())
    for name in cls.__struct_fields__:
        lesser = [without(it, name) if it.type is cls.type else it for it in told]
        if name in passed_over:
            assert Kernel.recover(RUN, lesser).sequence == len(told)
        else:
            with pytest.raises(AttributeError, match=name):
                Kernel.recover(RUN, lesser)


@pytest.mark.parametrize("name", ["provider_call_id", "observed", "arguments", "tool_name"])
def test_no_field_of_a_call_can_be_left_out(name: str) -> None:
    """Likewise of the calls that a turn opens with."""
    told: list[Any] = [bare_fact(to_json(fact)) for fact in facts_written()]
    for fact in told:
        if fact.type is FactType.TURN_OPENED:
            calls = [without(msgspec.structs.replace(it), name) for it in fact.calls]
            fact.calls = tuple(calls)
    with pytest.raises(AttributeError, match=name):
        Kernel.recover(RUN, told)
