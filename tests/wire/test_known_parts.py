"""Known parts: a line is answered alike, whether it was read by its parts or as a whole."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnlock.wire import known_parts
from turnlock.wire.answers import answer
from turnlock.wire.known_parts import Known, Repeated, RequestReader
from turnlock.wire.requests import Request, read_request

from ..random_scripts import run, script

COMPACT = (",", ":")
SPACED = (", ", ": ")


def line_of(request: dict[str, Any], separators: tuple[str, str] = COMPACT) -> bytes:
    """A request as a client writes it."""
    return json.dumps(request, separators=separators).encode()


def requests(seed: int) -> dict[str, Any]:
    """A valid request: a few scripts of a few deliveries, some of them for harnesses."""
    rng = random.Random(f"known parts {seed}")
    of = run(rng)
    scripts = [script(rng, rng.randrange(5), of) for _ in range(rng.randrange(1, 4))]
    scripts[0].append({"type": rng.choice(["digest", "recover"])})
    return {"id": rng.choice([seed, str(seed), None, 1.0]), "run": of, "scripts": scripts}


LINES = [
    line_of(requests(seed), separators) for seed in range(12) for separators in (COMPACT, SPACED)
]


def both(line: bytes, reader: RequestReader) -> tuple[bytes, bytes]:
    """The answers by parts and by the strict reader."""
    return answer(line, reader.read), answer(line)


# ------------------------------------------------------------------------------------ the quick way


@pytest.mark.parametrize("line", LINES)
def test_a_composed_line_needs_no_strict_reader(
    line: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else everything here would be compared with itself."""
    strictly = read_request(line)

    def fail(_: bytes) -> Request:
        raise AssertionError

    monkeypatch.setattr(known_parts, "read_request", fail)
    reader = RequestReader()

    for end in (b"", b"\n", b"\r\n"):
        assert reader.read(line + end) == strictly


def test_a_part_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a suite sends again costs a look-up: the very delivery is used again."""
    line = line_of({"id": 1, "run": {"run_id": "r"}, "scripts": [[{"type": "tick", "now": 1}]] * 2})
    reader = RequestReader()
    first, again = reader.read(line), reader.read(line)

    assert first.run is again.run
    assert first.scripts[0][0] is first.scripts[1][0] is again.scripts[0][0]


# ------------------------------------------------------------------- damage: always the same answer

ODD = [
    b'{"id":1,"run":{"run_id":"r"},"scripts":[[{"type":"tick","now":0,"now":1}]]}',
    b'{"id":1,"run":{"run_id":"r"},"run":{"run_id":"s"},"scripts":[]}',
    b'{"id":1,"run":{"run_id":"r"},"scripts":[],"scripts":[]}',
    b'{"id":1,"id":2,"run":{"run_id":"r"},"scripts":[]}',
    b'{"id":1,"run":{"run_id":"r"},"scripts":[],"colour":1}',
    b'{"run":{"run_id":"r"},"id":1,"scripts":[]}',
    b'{"id":1,"run":{"run_id":"r"},"scripts":null}',
    b'{"id":1,"run":null,"scripts":[]}',
    b'{"id":1,"run":{"run_id":"r","run_id":"r"},"scripts":[]}',
    b'{"id":[],"run":{"run_id":"r"},"scripts":[]}',
    b'{"id":1e999,"run":{"run_id":"r"},"scripts":[]}',
    b'{"id":"\\ud800","run":{"run_id":"r"},"scripts":[]}',
    b'{"\xff":1,"run":{"run_id":"r"},"scripts":[]}',
    b'{"id":"\xff","run":{"run_id":"r"},"scripts":[]}',
    b'{"id":"\xed\xa0\x80","run":{"run_id":"r"},"scripts":[]}',
    b'{"id": 1,"run":{"run_id":"r"},"scripts":[]}',
    b'{"id":1,"run":{"run_id":"r"},"scripts":[ ]}',
    b'{"id":1,"run":{"run_id":"r"},"scripts":[[],[null]]}',
    b'{"id":1,"run":{"run_id":"r"},"scripts":[{}]}',
    b'{"id":1,"run":{"run_id":"r"},"scripts":[[{"type":"tick","now":NaN}]]}',
    b'{"id":1,"run":{"run_id":"r"},"scripts":[[{"type":"tick","now":1e999}]]}',
    b'{"id":1,"run":{"run_id":"r"},"scripts":[[{"type":"tick","now":"0"}]]}',
    b'{"id":1,"run":{"run_id":"r"},"scripts":[[{"type":"log","invocation_id":"a","text":"\xff"}]]}',
    b'{"id":1,"run":{"run_id":"r"},"scripts":[[{"type":"recover","now":'
    + b"[" * 960 + b"]" * 960 + b"}]]}",
    b'{"id":1,"run":{"run_id":"r"},"scripts":[[{"type":"report","invocation_id":"a","now":0,'
    b'"result":' + b"[" * 99 + b"]" * 99 + b"}]]}",
    b'{"id":1,"run":{"run_id":"r"},"scripts":' + b"[" * 5_000,
    b'{"id":1,"run":{"run_id":"r"},"scripts":[[{"type":"tick","now":' + b"9" * 5_000 + b"}]]}",
]  # fmt: skip


@pytest.mark.parametrize("line", ODD, ids=range(len(ODD)))
def test_odd_lines_are_answered_alike(line: bytes) -> None:
    """Twice: also when the parts that were right are known."""
    reader = RequestReader()

    for _ in range(2):
        quick, strict = both(line, reader)
        assert quick == strict


DAMAGE = st.tuples(
    st.sampled_from(["cut", "put", "swap", "repeat"]),
    st.integers(0, 2**16),
    st.integers(1, 12),
    st.binary(min_size=1, max_size=4)
    | st.sampled_from(
        [b"{", b"}", b"[", b"]", b",", b":", b'"', b" ", b"0", b"null", b"\\", b"e9"]
    ),
)


def damaged(line: bytes, how: tuple[str, int, int, bytes]) -> bytes:
    """A line with one part of it cut out, replaced, preceded by something, or said twice."""
    kind, place, length, text = how
    at = place % len(line)
    before, part, after = line[:at], line[at : at + length], line[at + length :]
    if kind == "cut":
        return before + after
    if kind == "put":
        return before + text + part + after
    if kind == "swap":
        return before + text + after
    return before + part + part + after


@settings(max_examples=600)
@given(st.lists(st.tuples(st.sampled_from(LINES), st.none() | DAMAGE), min_size=1, max_size=4))
def test_damaged_lines_are_answered_alike(
    told: list[tuple[bytes, tuple[str, int, int, bytes] | None]],
) -> None:
    """Whatever the reader knows by then, and whatever is broken: text and place of errors too."""
    reader = RequestReader()
    for line, how in told:
        quick, strict = both(line if how is None else damaged(line, how), reader)
        assert quick == strict


def test_the_comparison_sees_a_reader_that_drops_repeated_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The negative control: without the check that the parts make the line, it is found."""

    def composed(*_: object) -> bytes:
        return ODD[2]

    monkeypatch.setattr(known_parts._Parts, "composed", composed)  # pyright: ignore[reportPrivateUsage]
    quick, strict = both(ODD[2], RequestReader())

    assert quick != strict


# -------------------------------------------------------------------------------------- bounds, K-6


def ticks(count: int, *, text: str = "") -> bytes:
    """A request with so many different deliveries."""
    steps = [{"type": "log", "now": n, "invocation_id": "a", "text": text} for n in range(count)]
    return line_of({"id": 1, "run": {"run_id": "r"}, "scripts": [steps]})


def test_the_known_parts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """In number; and the answer stays the same when they are dropped amid a line."""
    monkeypatch.setattr(known_parts, "KNOWN_PARTS", 10)
    reader = RequestReader()

    assert answer(ticks(25), reader.read) == answer(ticks(25))
    assert len(reader._steps) == 5  # pyright: ignore[reportPrivateUsage]


def test_long_parts_are_not_kept() -> None:
    """In bytes, too: one delivery may hold many."""
    reader = RequestReader()
    reader.read(ticks(3, text="x" * known_parts.LONGEST_KNOWN_PART))

    assert len(reader._steps) == 0  # pyright: ignore[reportPrivateUsage]


# ------------------------------------------------------------------------------- what is kept of it


def test_of_what_comes_once_nothing_is_kept() -> None:
    """The plain one keeps each part at once; the other what comes again."""
    plain, repeated = Known(bytes.decode), Repeated(bytes.decode)
    texts = [b"a", b"b", b"a", b"a"]
    assert [plain[text] for text in texts] == [repeated[text] for text in texts] == [*"abaa"]
    assert (dict(plain), dict(repeated)) == ({b"a": "a", b"b": "b"}, {b"a": "a"})


def test_what_comes_again_is_one_object() -> None:
    """From the second time on: whoever compares it may compare it once."""
    reader = Repeated(json.loads)
    first, second, third = (reader[b"[]"] for _ in range(3))
    assert first == second == third
    assert first is not second
    assert second is third


@pytest.mark.parametrize("kind", [Known, Repeated])
def test_k_6_what_is_kept_is_bounded(
    kind: type[Known[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many parts come, and however often; a long one never is."""
    monkeypatch.setattr(known_parts, "KNOWN_PARTS", 3)
    monkeypatch.setattr(known_parts, "LONGEST_KNOWN_PART", 2)
    reader = kind(bytes.decode)
    for number in range(40):
        assert reader[b"%d" % (number // 4)] == str(number // 4)
        assert len(reader) <= 3
        assert reader[b"long"] == "long"
    assert reader
    assert b"long" not in reader
