"""Forms as people are shown them: whatever stands in a log, nothing harms who looks (W-67)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnlock.models.errors import InvalidValue
from turnlock.world.entries import Question
from turnlock.world.questions import check_reply, form_fields

from ..depth import DEEP

_ODD = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                ["type", "enum", "items", "oneOf", "const", "title", "default", "$ref"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)
_PART = st.fixed_dictionaries(
    {"type": st.sampled_from(["string", "integer", "boolean", "array", "number", "object", 1])},
    optional=dict.fromkeys(("enum", "items", "oneOf", "anyOf", "title", "default", "format"), _ODD),
)
_FORM = st.fixed_dictionaries(
    {"type": st.sampled_from(["object", "string", None])},
    optional={
        "properties": st.dictionaries(st.sampled_from(["a", "b", "pin"]), _PART | _ODD) | _ODD,
        "required": st.lists(st.sampled_from(["a", "x"]), unique=True) | _ODD,
    },
)


@given(schema=_FORM | _ODD, content=st.dictionaries(st.sampled_from(["a", "b", "x"]), _ODD))
@settings(max_examples=400 if DEEP else 120, deadline=None)
def test_w_67_any_form_is_shown_or_not_and_any_answer_fits_or_not(
    schema: Any, content: dict[str, Any]
) -> None:
    """No form of another program raises anything; what a form has is harmless to show."""
    fields = form_fields(schema)
    if fields is None:
        return
    assert all(it.title.isprintable() and it.description.isprintable() for it in fields)
    assert "pin" not in {it.name for it in fields if it.kind == "string" and not it.choices}
    asks = Question(
        run="r", turn="t", invocation="a", attempt=1, server="s", text="?", schema=schema
    )
    try:
        check_reply(asks, content)
    except InvalidValue:
        return
    assert content.keys() <= {it.name for it in fields}
    assert content.keys() >= {it.name for it in fields if it.required}


def test_w_67_a_question_without_a_form_takes_an_empty_answer() -> None:
    """And nothing in it."""
    asks = Question(run="r", turn="t", invocation="a", attempt=1, server="s", text="?")
    assert form_fields(None) == ()
    check_reply(asks, {})
    with pytest.raises(InvalidValue):
        check_reply(asks, {"a": 1})
