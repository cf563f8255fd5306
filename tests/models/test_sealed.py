"""What people are shown of values that a journal holds sealed."""

from __future__ import annotations

import pytest

from turnlock.models.sealed import (
    FIELD,
    HIDDEN,
    TEXT,
    is_sealed,
    is_sealed_body,
    shown_json,
    shown_text,
)
from turnlock.models.values import Json, canonical

ENVELOPES: tuple[Json, ...] = ({FIELD: "YWJj"},)
CLEAR: tuple[Json, ...] = (None, "sealed", [], {}, {FIELD: 1}, {FIELD: "YWJj", "more": 1})


@pytest.mark.parametrize("value", ENVELOPES)
def test_an_envelope_is_shown_as_one(value: Json) -> None:
    assert is_sealed(value)
    assert shown_json(value) == HIDDEN


@pytest.mark.parametrize("value", CLEAR)
def test_what_only_looks_like_one_is_shown(value: Json) -> None:
    """The control: anything else is canonical JSON."""
    assert not is_sealed(value)
    assert shown_json(value) == canonical(value)


def test_a_sealed_text_is_not_shown() -> None:
    assert shown_text(f"{TEXT}YWJj") == HIDDEN
    assert shown_text("clear") == "clear"


def test_the_body_of_a_sealed_note_is_its_id_and_an_envelope() -> None:
    """Anything more, or less, is no sealed note."""
    assert is_sealed_body({"id": "said/1", "sealed": "QQ=="})
    assert is_sealed_body({"sealed": "QQ=="})
    assert not is_sealed_body({"id": "said/1"})
    assert not is_sealed_body({"id": "said/1", "sealed": "QQ==", "text": "x"})
    assert not is_sealed_body({"id": "said/1", "sealed": 1})
