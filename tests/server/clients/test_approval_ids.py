"""What names a question to clients of others (F-66)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlock.server.clients.approval_ids import LONGEST, ApprovalId

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
ATTEMPTS = st.integers(1, 2**53 - 1)


@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_f_66_an_id_is_the_array_without_spaces(
    run: str, turn: str, name: str, digest: str
) -> None:
    """Whatever the ids hold, it is read back as what was written."""
    made = ApprovalId(run_id=run, turn_id=turn, invocation_id=name, arguments_digest=digest)

    assert json.loads(str(made)) == [run, turn, name, digest]
    assert ApprovalId.read(str(made)) == made
    assert not made.is_of_doubt


@given(TEXTS, TEXTS, TEXTS, st.none() | TEXTS, ATTEMPTS)
def test_f_66_that_of_a_doubt_says_its_attempt(
    run: str, turn: str, name: str, digest: str | None, attempt: int
) -> None:
    """So what was said of one attempt never settles the next."""
    made = ApprovalId(
        run_id=run, turn_id=turn, invocation_id=name, arguments_digest=digest, attempt=attempt
    )

    assert ApprovalId.read(str(made)) == made
    assert made.is_of_doubt
    assert json.loads(str(made)) == [run, turn, name, digest, attempt]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        '["r","t","c"]',
        '["r","t","c",""]',
        '["","t","c","d"]',
        '["r","t","c",null]',
        '["r","t",3,"d"]',
        '["r", "t", "c", "d"]',
        '["r","t","c","d","e"]',
        '["r","t","c","d",0]',
        '["r","t","c","d",-1]',
        '["r","t","c","d",1.0]',
        '["r","t","c","d",true]',
        '["r","t","c","d",null]',
        '["r","t","c","d",9007199254740992]',
        '["r","t","c","d",1,2]',
        '["\\u0072","t","c","d"]',
        '["r","t","c","\\ud800"]',
        '["r","t","c","\ud800"]',
        '{"run_id":"r"}',
        '["r","t","c","d"]x',
        '["r","t","c","' + "d" * LONGEST + '"]',
    ],
)
def test_f_66_any_other_text_names_nothing(text: str) -> None:
    """It is read strictly: what was never written decides nothing."""
    assert ApprovalId.read(text) is None


@given(st.text())
def test_f_66_no_text_makes_it_fail(text: str) -> None:
    """Hostile text is nothing, or what it says."""
    found = ApprovalId.read(text)

    assert found is None or str(found) == text
