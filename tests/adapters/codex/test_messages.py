"""Lines of `codex app-server`: what is a message, and what ends its process (S-13, S-34)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlock.adapters.codex.messages import (
    DEEP,
    Answered,
    Asked,
    Message,
    NotAMessage,
    Notified,
    read,
)
from turnlock.models.values import freeze


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"method":"a","params":{"x":1},"new":2}', Notified("a", {"x": 1})),
        (b'{"method":"a"}', Notified("a", {})),
        (b'{"method":"a","params":[1]}', Notified("a", {})),
        (b'{"method":"a","id":0}', Asked(0, "a", {})),
        (b'{"method":"a","id":"0"}', Asked("0", "a", {})),
        (b'{"id":1,"result":{}}', Answered(1, {})),
        (b'{"id":1,"result":null}', Answered(1, None)),
        (b'{"id":1,"error":{"code":-1}}', Answered(1, None, {"code": -1})),
    ],
)
def test_a_line_is_a_message(line: bytes, message: Message) -> None:
    """Unknown fields do no harm, an unknown method is one; ids are as JSON has them (S-34)."""
    assert read(line) == message
    assert type(getattr(read(line), "id", 0)) is type(getattr(message, "id", 0))


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[]",
        b"3",
        b"{}",
        b'{"id":1}',
        b'{"method":3}',
        b'{"method":"a","id":true}',
        b'{"method":"a","id":1.5}',
        b'{"method":"a","params":{"x":"\xff"}}',
        b'{"method":"a","params":{"x":"\\ud800"}}',
        b'{"method":"a","params":{"x":1e999}}',
        b'{"method":"a","params":{"x":%b}}' % (b"9" * 2_467),
        b'{"method":"a","params":' + b"[" * 100_000,
    ],
)
def test_what_is_no_message_says_so(line: bytes) -> None:
    """S-13: its process is ended, since nobody knows what else was lost."""
    with pytest.raises(NotAMessage):
        read(line)


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    ),
    st.integers(0, 200),
)
def test_what_is_read_can_be_kept(value: Any, depth: int) -> None:
    """S-13: however deep it is nested; what is not too deep is as it came."""
    for _ in range(depth):
        value = [value]

    message = read(json.dumps({"method": "a", "params": {"x": value}}).encode("utf-8", "replace"))

    assert isinstance(message, Notified)
    freeze({"body": message.params, "wrapped": {"told": message.params}}, place="note")
    if depth < DEEP // 2 and "\\u" not in json.dumps(value):
        assert message.params["x"] == value
