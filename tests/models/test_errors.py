"""Errors name the place, the cause and the fix; only a caller's own mistake raises (K-8)."""

# ruff: noqa: S301 - what is unpickled here was pickled here

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from turnlock.models.errors import (
    SHOWN,
    BadTable,
    CorruptJournal,
    InboxFull,
    InvalidValue,
    TurnlockError,
    UnknownRun,
    shown,
)


@pytest.mark.parametrize("kind", [InvalidValue, CorruptJournal, BadTable, UnknownRun, InboxFull])
def test_one_base_catches_all(kind: type[Exception]) -> None:
    assert issubclass(kind, TurnlockError)
    assert kind.__doc__


def test_an_invalid_value_is_a_value_error_in_three_parts() -> None:
    error = InvalidValue(place="calls[2].tool_name", cause="is empty", fix="give a name")

    assert isinstance(error, ValueError)
    assert str(error) == "calls[2].tool_name: is empty; give a name"
    assert (error.place, error.cause, error.fix) == (
        "calls[2].tool_name",
        "is empty",
        "give a name",
    )


def test_an_invalid_value_without_a_place_still_reads() -> None:
    assert str(InvalidValue(place="", cause="is no object", fix="x")) == "value: is no object; x"


@pytest.mark.parametrize(
    ("place", "outer", "seen"),
    [
        ("turn_id", "scripts[0][3]", "scripts[0][3].turn_id"),
        ("[0].x", "calls", "calls[0].x"),
        ("", "calls[1]", "calls[1]"),
    ],
)
def test_an_error_can_be_seen_from_further_out(place: str, outer: str, seen: str) -> None:
    error = InvalidValue(place=place, cause="c", fix="f").inside(outer)

    assert (error.place, error.cause, error.fix) == (seen, "c", "f")
    assert str(error) == f"{seen}: c; f"


def test_a_corrupt_journal_names_the_fact() -> None:
    error = CorruptJournal(sequence=7, cause="it follows fact 5", fix="give all")

    assert str(error) == "fact 7: it follows fact 5; give all"
    assert (error.sequence, error.cause, error.fix) == (7, "it follows fact 5", "give all")


def test_an_unknown_run_reads_like_any_other_message() -> None:
    """KeyError would put quotes around it."""
    error = UnknownRun("no run 'r': open it first")

    assert isinstance(error, KeyError)
    assert str(error) == "no run 'r': open it first"


@pytest.mark.parametrize(
    "error",
    [
        InvalidValue(place="a", cause="b", fix="c"),
        CorruptJournal(sequence=1, cause="b", fix="c"),
        UnknownRun("no run"),
    ],
)
def test_errors_survive_being_copied_and_pickled(error: Exception) -> None:
    """So they can cross a process pool, as exceptions do."""
    for again in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)


class Unprintable:
    def __repr__(self) -> str:
        raise ValueError


def deep() -> Any:
    value: Any = 0
    for _ in range(100_000):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        ("a\n", r"'a\n'"),
        ("\ud800", r"'\ud800'"),
        ("x" * 10_000, "'" + "x" * (SHOWN - 1) + "…"),
        (list(range(1000)), repr(list(range(1000)))[:SHOWN] + "…"),
        (10**5_000, "a value of type int that cannot be shown"),
        (deep(), "a value of type list that cannot be shown"),
        (Unprintable(), "a value of type Unprintable that cannot be shown"),
    ],
    ids=range(8),
)
def test_a_message_shows_a_value_in_few_characters(value: Any, text: str) -> None:
    assert shown(value) == text
    assert len(shown(value)) <= SHOWN + 1
