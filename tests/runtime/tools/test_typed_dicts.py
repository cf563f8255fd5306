"""TypedDicts of typing's, which pydantic refuses before Python 3.12: taken wherever they stand."""

# Those of typing's are what is asked about here.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import dataclasses
import sys
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NotRequired,
    Optional,
    Required,
    TypedDict,
    TypeVar,
    Union,
)

import pytest
import typing_extensions
from pydantic import Field, with_config

from turnlock.agent.structured import form_of
from turnlock.models.errors import InvalidValue
from turnlock.runtime import tool
from turnlock.runtime.tools.arguments import check
from turnlock.runtime.tools.errors import BadArguments
from turnlock.runtime.tools.typed_dicts import with_readable_dicts

T = TypeVar("T")
BEFORE_3_12 = sys.version_info < (3, 12)


class Place(TypedDict):
    """Where it is."""

    city: Annotated[str, Field(min_length=2)]
    street: NotRequired[str]


class Stay(Place, total=False):
    nights: Required[int]
    at: list[Place]
    next: Optional[Stay]  # noqa: UP045 - another class than with |


class Box(TypedDict, Generic[T]):
    held: T


@with_config(title="Closed one")
class Titled(TypedDict):
    number: int


Given = TypedDict("Given", {"not": int})


@dataclasses.dataclass
class Holder:
    place: Place


def takes(hint: Any) -> Any:
    def f(x: Any) -> None: ...

    f.__annotations__["x"] = hint
    return tool(f)


STAY: Any = {
    "city": "Bern",
    "nights": 1,
    "at": [{"city": "Bonn"}],
    "next": {"nights": 2, "city": "Ulm"},
}
TAKEN: list[tuple[Any, Any, Any]] = [
    (Place, {"city": "Bern"}, {"city": "B"}),
    (Place, {"city": "Bern", "street": "a"}, {"city": "Bern", "stret": "a"}),
    (Stay, STAY, {"city": "Bern"}),
    (Stay, STAY, STAY | {"next": {"city": "Ulm"}}),
    (Stay, STAY, STAY | {"at": [{}]}),
    (list[Place], [{"city": "Bern"}], [{}]),
    (dict[str, list[Place]], {"a": [{"city": "Bern"}]}, {"a": [{"city": 1}]}),
    (Place | None, None, {}),
    (Union[int, Place], {"city": "Bern"}, "Bern"),  # noqa: UP007 - another class than with |
    (Annotated[list[Place], Field(max_length=1)], [{"city": "Bern"}], [{"city": "Bern"}] * 2),
    (Box[Place], {"held": {"city": "Bern"}}, {"held": {}}),
    (Box[int], {"held": 1}, {"held": "1"}),
    (Titled, {"number": 1}, {"number": 1, "other": 2}),
    (Given, {"not": 1}, {}),
    (Place | Literal["home"], "home", "away"),
]


@pytest.mark.parametrize(("hint", "good", "bad"), TAKEN)
def test_w_59_those_of_typing_are_taken(hint: Any, good: Any, bad: Any) -> None:
    """As arguments and as the form of an answer, as deep as they stand."""
    it = takes(hint)

    assert check(it, {"x": good}) == {"x": good}
    with pytest.raises(BadArguments):
        check(it, {"x": bad})
    assert form_of(hint).schema["type"] == "object"


def test_the_schema_is_the_same_as_of_those_of_typing_extensions() -> None:
    """Names, what is required, docstrings and configurations."""

    class Spot(typing_extensions.TypedDict):
        """Where it is."""

        city: Annotated[str, Field(min_length=2)]
        street: NotRequired[str]

    other = dict(form_of(Spot).schema) | {"title": "Place"}
    assert form_of(Place).schema == other
    assert form_of(Titled).schema["title"] == "Closed one"


def test_what_needs_nothing_stays_itself() -> None:
    """The negative control: no hint is made anew in vain."""
    for hint in (
        int,
        list[int],
        Annotated[list[int], 1],
        Literal["a"],
        Holder,
        None,
        Any,
        tuple[()],
    ):
        assert with_readable_dicts(hint) is hint
    assert (with_readable_dicts(Place) is Place) is not BEFORE_3_12


@pytest.mark.skipif(not BEFORE_3_12, reason="pydantic reads them")
def test_where_it_cannot_be_rebuilt_the_error_names_the_fix() -> None:
    """A dataclass has its hints itself, and values of that class are wanted."""
    for declare in (takes, form_of):
        with pytest.raises(InvalidValue) as told:
            declare(Holder)
        assert told.value.fix == "write: from typing_extensions import TypedDict"


def test_a_name_that_is_not_there_is_told() -> None:
    class Here(TypedDict):
        number: Inside

    class Inside(TypedDict):
        number: int

    for declare in (takes, form_of):
        with pytest.raises(InvalidValue, match="Inside"):
            declare(Here)
