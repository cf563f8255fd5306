"""Recorded text, made safe to look at."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlock.models.safe_text import CUT, harmless, harmless_lines


@given(st.text())
def test_nothing_steers_hides_or_breaks_a_line(text: str) -> None:
    """Whatever can be seen stays as it is; everything else is an escape that is printable."""
    shown = harmless(text)

    assert shown.isprintable()
    assert harmless(shown) == shown
    if text.isascii() and text.isprintable():
        assert shown == text


@given(st.text(), st.integers(min_value=1, max_value=40))
def test_a_limit_holds_and_what_was_cut_says_so(text: str, limit: int) -> None:
    """The limit counts what is shown, escapes and the mark of the cut included."""
    whole, shown = harmless(text), harmless(text, limit=limit)

    assert len(shown) <= limit
    if len(whole) <= limit:
        assert shown == whole
    else:
        assert len(shown) == limit
        assert shown.endswith(CUT)
        assert whole.startswith(shown[:-1])


@given(st.text())
def test_lines_stay_lines(text: str) -> None:
    shown = harmless_lines(text)

    assert shown.split("\n") == [harmless(line) for line in text.split("\n")]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain – é 漢 ✓", "plain – é 漢 ✓"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("é\x1b", r"é\x1b"),
        ("a\r\nb\tc", r"a\r\nb\tc"),
        ("pay\u202e51", r"pay\u202e51"),
        ("in\u200bvisible\ufeff", r"in\u200bvisible\ufeff"),
        ("half \ud800", r"half \ud800"),
        ("blank\u3164\u2800\uffa0", r"blank\u3164\u2800\uffa0"),
        ("hi\U000e0141\ufe00", r"hi\U000e0141\ufe00"),
        ("\u26a0\ufe0f", "\u26a0\ufe0f"),
        ("\u26a0\ufe0f\ufe0f", "\u26a0\ufe0f" + r"\ufe0f"),
    ],
)
def test_examples(text: str, shown: str) -> None:
    """Control characters, bidirectional overrides, zero width, halves of characters; what counts as
    printable and is not seen, in which a text may hide another. A sign may ask for its picture."""
    assert harmless(text) == shown


def test_a_limit_of_nothing_leaves_the_mark_alone() -> None:
    """There is no room for less than the mark that something was cut."""
    assert harmless("abc", limit=0) == CUT
    assert harmless("", limit=0) == ""
