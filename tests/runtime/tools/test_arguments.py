"""Arguments against type hints: what fits comes through, what does not is told with its place."""

from __future__ import annotations

import dataclasses
import datetime as dt
import pickle
from typing import Annotated, Any, Literal, NamedTuple, NotRequired

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from turnlock.models.values import freeze
from turnlock.runtime.tools.arguments import check
from turnlock.runtime.tools.calling import ToolContext
from turnlock.runtime.tools.errors import BadArguments
from turnlock.runtime.tools.tool import tool


@dataclasses.dataclass
class Item:
    price: float
    tags: dict[str, int] = dataclasses.field(default_factory=dict[str, int])


class Box(BaseModel):
    items: list[Item]


class Options(TypedDict):
    fast: bool
    retries: NotRequired[int]


@dataclasses.dataclass
class Even:
    number: int

    def __post_init__(self) -> None:
        if self.number % 2:
            raise ValueError("is odd")


@tool
def order(  # noqa: PLR0917 - one of each
    items: list[Item],
    context: ToolContext,
    box: Box | None = None,
    options: Options | None = None,
    colour: Literal["red", "blue"] = "red",
    sizes: dict[str, dict[str, int]] | None = None,
    at: dt.datetime | None = None,
    pair: tuple[int, str] | None = None,
    even: Even | None = None,
    anything: Any = None,
    count: int | str = 0,
) -> None: ...


def test_what_fits_is_made_what_the_hints_say() -> None:
    got = check(
        order,
        freeze(
            {
                "items": [{"price": 1, "tags": {"a": 1}}],
                "box": {"items": [{"price": 2.5}]},
                "options": {"fast": True},
                "colour": "blue",
                "sizes": {"a": {"b": 1}},
                "at": "2026-01-02T03:04:05Z",
                "pair": [1, "x"],
                "anything": {"deep": [1, {"er": None}]},
                "count": "many",
            },
            place="arguments",
        ),
    )
    assert got == {
        "items": [Item(price=1.0, tags={"a": 1})],
        "box": Box(items=[Item(price=2.5)]),
        "options": {"fast": True},
        "colour": "blue",
        "sizes": {"a": {"b": 1}},
        "at": dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC),
        "pair": (1, "x"),
        "anything": {"deep": [1, {"er": None}]},
        "count": "many",
    }


def test_a_tool_may_change_what_it_gets_and_the_record_stays() -> None:
    """Arguments in the journal are frozen; a tool gets plain lists and dicts of its own."""
    arguments: Any = {"items": [], "anything": {"list": [1]}}
    frozen = freeze(arguments, place="arguments")
    got = check(order, frozen)
    got["anything"]["list"].append(2)
    assert frozen == arguments == {"items": [], "anything": {"list": [1]}}


def test_what_is_not_given_is_left_to_the_functions_default() -> None:
    assert check(order, {"items": []}) == {"items": []}
    assert check(order, {"items": [], "anything": None}) == {"items": [], "anything": None}


GOOD = {"price": 1.0}


MISFITS: list[tuple[Any, str, str, str]] = [
    ({}, "items", "is missing", "give it"),
    ({"items": [{}]}, "items[0].price", "is missing", "give it"),
    ({"items": 3}, "items", "3 is int", "give array"),
    ({"items": None}, "items", "None is null", "give array"),
    ({"items": [GOOD, GOOD, {"price": "x"}]}, "items[2].price", "'x' is str", "give float"),
    ({"items": [{"price": True}]}, "items[0].price", "True is bool", "give float"),
    ({"items": [{"price": 1, "tax": 2}]}, "items[0].tax", "is not taken", "price, tags"),
    ({"items": [], "box": {"items": [], "q": 1}}, "box.q", "is not taken", "items"),
    ({"items": [], "options": {"fast": True, "q": 1}}, "options.q", "is not", "fast, retries"),
    ({"items": [], "options": {}}, "options.fast", "is missing", "give it"),
    ({"items": [], "context": {}}, "context", "is not taken", "items, box, options"),
    ({"items": [], "nope": 1}, "nope", "is not taken", "items, box, options"),
    ({"items": [], "colour": "green"}, "colour", "'green' does not", '"enum":["red","blue"]'),
    ({"items": [], "colour": 3}, "colour", "3 does not fit: Input should", "red"),
    ({"items": [], "count": 1.5}, "count", "1.5 is float", "give int | str"),
    ({"items": [], "count": 1.0}, "count", "1.0 is float", "give int | str"),
    ({"items": [], "sizes": {"a": {"b": 1, "c d": "x"}}}, "sizes.a.c d", "'x' is str", "int"),
    ({"items": [], "sizes": {"a": {}, "b": 2}}, "sizes.b", "2 is int", "give object"),
    ({"items": [{"price": 1, "tags": {"a": 1, "b": []}}]}, "items[0].tags.b", "[] is", "int"),
    ({"items": [], "at": "soon"}, "at", "fit: Input should be a valid datetime", "string"),
    ({"items": [], "pair": [1, 2]}, "pair[1]", "2 is int", "give str"),
    ({"items": [], "pair": [1]}, "pair[1]", "is missing", "give it"),
    ({"items": [], "pair": [1, "x", 3]}, "pair", "[1, 'x', 3] does not fit", "array"),
    (
        {"items": [], "even": {"number": 3}},
        "even",
        "{'number': 3} does not fit: Value error, is odd",
        "num",
    ),
    ({"items": [{"price": 10**400}]}, "items[0].price", "is too large", "smaller"),
    ({"items": float("nan")}, "items", "nan is no JSON number", "finite"),
    ({"items": [], "anything": {1: 2}}, "anything", "has the key 1", "text keys"),
    ([], "arguments", "[] is no object", "give a JSON object"),
]


@pytest.mark.parametrize(("arguments", "place", "cause", "fix"), MISFITS)
def test_what_does_not_fit_is_told(arguments: Any, place: str, cause: str, fix: str) -> None:
    """Place, cause and what would be right."""
    with pytest.raises(BadArguments) as told:
        check(order, arguments)
    assert told.value.place == place
    assert cause in told.value.cause
    assert fix in told.value.fix


class Cat(BaseModel):
    type: Literal["cat"]
    lives: int


class Dog(BaseModel):
    type: Literal["dog"]
    tricks: list[str]


Animal = Annotated[Cat | Dog, Field(discriminator="type")]


class Spot(NamedTuple):
    item: Item
    name: str


@dataclasses.dataclass
class Fragile:
    number: int

    def __post_init__(self) -> None:
        raise OSError("no disk")


@tool
def zoo(  # noqa: PLR0917 - one of each
    animal: Annotated[Animal | None, Field(description="Who.")] = None,
    herd: list[Animal] | None = None,
    pack: list[Cat | Dog] | None = None,
    by_number: dict[int, str] | None = None,
    spot: Spot | None = None,
    both: tuple[Item, int] | None = None,
    plain: Annotated[Item, Field(description="What.")] | None = None,
    fragile: Fragile | None = None,
) -> None: ...


ZOO_MISFITS: list[tuple[Any, str, str]] = [
    ({"animal": {"type": "cat", "lives": 9, "tricks": []}}, "animal.tricks", "is not taken"),
    ({"animal": {"type": "dog", "tricks": [3]}}, "animal.tricks[0]", "3 is int"),
    (
        {"animal": {"type": "cow"}},
        "animal",
        "does not fit: Input tag 'cow' found using 'type' does",
    ),
    ({"animal": {"lives": 9}}, "animal", "does not fit: Unable to extract tag using discriminator"),
    ({"pack": [{"type": "dog", "tricks": [3]}]}, "pack[0].tricks[0]", "3 is int"),
    ({"pack": [{"type": "cat", "lives": "9"}]}, "pack[0].lives", "'9' is str"),
    ({"pack": [3]}, "pack[0]", "3 is int"),
    (
        {"herd": [{"type": "cat", "lives": 9}, {"type": "dog", "tricks": [], "x": 1}]},
        "herd[1].x",
        "is not taken",
    ),
    ({"by_number": {"x": "y"}}, "by_number", "has the wrong key 'x': Input should be a valid int"),
    ({"spot": [{"price": 1, "x": 1}, "n"]}, "spot[0].x", "is not taken"),
    ({"spot": {"item": {"price": 1}, "name": "", "x": 1}}, "spot.x", "is not taken"),
    ({"both": [{"price": 1, "x": 1}, 2]}, "both[0].x", "is not taken"),
    ({"both": "x"}, "both", "'x' is str"),
    ({"plain": {"price": 1, "x": 1}}, "plain.x", "is not taken"),
    ({"plain": []}, "plain", "[] is array"),
    ({"fragile": {"number": 1}}, "arguments", "OSError: no disk"),
]


@pytest.mark.parametrize(("arguments", "place", "cause"), ZOO_MISFITS)
def test_types_of_every_make_are_looked_into(arguments: Any, place: str, cause: str) -> None:
    """Tagged unions, named tuples, tuples, keys that are no text, types with remarks."""
    with pytest.raises(BadArguments) as told:
        check(zoo, arguments)
    assert told.value.place == place
    assert cause in told.value.cause


def test_types_of_every_make_are_made() -> None:
    assert check(
        zoo,
        {
            "animal": {"type": "dog", "tricks": ["sit"]},
            "herd": [{"type": "cat", "lives": 9}],
            "pack": [{"type": "dog", "tricks": []}],
            "by_number": {"1": "one"},
            "spot": [{"price": 1}, "n"],
        },
    ) == {
        "animal": Dog(type="dog", tricks=["sit"]),
        "herd": [Cat(type="cat", lives=9)],
        "pack": [Dog(type="dog", tricks=[])],
        "by_number": {1: "one"},
        "spot": Spot(Item(price=1.0), "n"),
    }


def test_what_is_repeated_is_bounded() -> None:
    """However large the arguments are, the message stays one that can be sent to a model."""
    large: list[Any] = [
        {"items": "x" * 100_000},
        {"items": [], "colour": "x" * 100_000},
        {"items": [], "x" * 100_000: 1},
        {"items": [], "even": {"number": 1, "x" * 100_000: 1}},
    ]
    for arguments in large:
        with pytest.raises(BadArguments) as told:
            check(order, arguments)
        assert len(str(told.value)) < 1_000


def test_an_error_survives_pickling() -> None:
    error = BadArguments(place="a", cause="b", fix="c")
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    assert type(copy) is BadArguments
    assert (copy.place, copy.cause, copy.fix) == ("a", "b", "c")
