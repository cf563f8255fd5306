"""Hints beyond Python's plain types: pydantic reads them, and nothing is dropped in silence."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import functools
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired

import annotated_types
import attrs
import msgspec
import pydantic
import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from typing_extensions import Doc, TypeAliasType, TypedDict

import turnlock
from turnlock.models.errors import InvalidValue
from turnlock.runtime import BadArguments, Tool, Toolbox, ToolContext, tool
from turnlock.runtime.tools.arguments import check
from turnlock.runtime.tools.performing import perform
from turnlock.runtime.tools.results import Succeeded

from .scene import context, play


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Person(BaseModel):
    """Somebody who pays."""

    name: str = Field(min_length=1, description="The whole name.")
    since: dt.date | None = None


@pydantic.dataclasses.dataclass
class Account:
    number: Annotated[str, Field(pattern="^[A-Z]{2}[0-9]+$")]


class Options(TypedDict):
    fast: bool
    note: NotRequired[str]


@dataclasses.dataclass
class Tree:
    name: str
    branches: list[Tree] = dataclasses.field(default_factory=list["Tree"])


def even(value: int) -> int:
    if value % 2:
        raise ValueError("must be even")
    return value


@tool
def everything(  # noqa: PLR0917 - one of each
    context: ToolContext,
    person: Person,
    account: Account,
    options: Options,
    colour: Colour = Colour.RED,
    at: dt.datetime | None = None,
    key: uuid.UUID | None = None,
    amount: Annotated[decimal.Decimal, Field(ge=0, description="In euros.")] = decimal.Decimal(1),
    count: Annotated[int, AfterValidator(even), annotated_types.Interval(ge=0, lt=10)] = 2,
    who: Annotated[str, Doc("Who asks.")] = "me",
    pair: tuple[int, str] = (1, "a"),
    tags: Annotated[set[str], Field(max_length=2)] = frozenset(),  # type: ignore[assignment]
    tree: Tree | None = None,
    mode: Literal["a", "b"] = "a",
) -> None: ...


GIVEN: dict[str, Any] = {
    "person": {"name": "Ada"},
    "account": {"number": "DE1"},
    "options": {"fast": True},
}


def test_a_schema_says_all_that_the_hints_say() -> None:
    parameters: Any = everything.parameters

    assert parameters["required"] == ["person", "account", "options"]
    assert parameters["additionalProperties"] is False
    assert parameters["properties"] == {
        "person": {"$ref": "#/$defs/Person"},
        "account": {"$ref": "#/$defs/Account"},
        "options": {"$ref": "#/$defs/Options"},
        "colour": {"$ref": "#/$defs/Colour", "default": "red"},
        "at": {
            "anyOf": [{"format": "date-time", "type": "string"}, {"type": "null"}],
            "default": None,
        },
        "key": {"anyOf": [{"format": "uuid", "type": "string"}, {"type": "null"}], "default": None},
        "amount": {
            "anyOf": [{"minimum": 0, "type": "number"}, {"type": "string"}],
            "description": "In euros.",
            "default": "1",
        },
        "count": {"exclusiveMaximum": 10, "minimum": 0, "type": "integer", "default": 2},
        "who": {"type": "string", "default": "me", "description": "Who asks."},
        "pair": {
            "maxItems": 2,
            "minItems": 2,
            "prefixItems": [{"type": "integer"}, {"type": "string"}],
            "type": "array",
            "default": [1, "a"],
        },
        "tags": {"items": {"type": "string"}, "maxItems": 2, "type": "array", "uniqueItems": True},
        "tree": {"anyOf": [{"$ref": "#/$defs/Tree"}, {"type": "null"}], "default": None},
        "mode": {"enum": ["a", "b"], "type": "string", "default": "a"},
    }
    definitions: Any = parameters["$defs"]
    assert definitions["Person"] == {
        "title": "Person",
        "description": "Somebody who pays.",
        "type": "object",
        "properties": {
            "name": {"description": "The whole name.", "minLength": 1, "type": "string"},
            "since": {
                "anyOf": [{"format": "date", "type": "string"}, {"type": "null"}],
                "default": None,
            },
        },
        "required": ["name"],
        "additionalProperties": False,
    }
    assert all(
        it.get("additionalProperties", it.get("enum")) is not None for it in definitions.values()
    )
    assert definitions["Account"]["properties"]["number"]["pattern"] == "^[A-Z]{2}[0-9]+$"


def test_what_fits_is_made_what_the_hints_name() -> None:
    got = check(
        everything,
        GIVEN
        | {
            "colour": "blue",
            "at": "2026-01-02T03:04:05Z",
            "key": "12345678-1234-5678-1234-567812345678",
            "amount": 1.25,
            "tags": ["x"],
            "tree": {"name": "a", "branches": [{"name": "b"}]},
        },
    )

    assert got == {
        "person": Person(name="Ada"),
        "account": Account("DE1"),
        "options": {"fast": True},
        "colour": Colour.BLUE,
        "at": dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC),
        "key": uuid.UUID("12345678-1234-5678-1234-567812345678"),
        "amount": decimal.Decimal("1.25"),
        "tags": {"x"},
        "tree": Tree("a", [Tree("b")]),
    }


MISFITS: list[tuple[dict[str, Any], str, str]] = [
    ({"person": {"name": ""}}, "person.name", "'' does not fit: String should have at least 1"),
    ({"person": {"name": "A", "age": 3}}, "person.age", "is not taken here"),
    ({"person": {}}, "person.name", "is missing"),
    ({"person": "Ada"}, "person", "'Ada' is str"),
    ({"account": {"number": "1"}}, "account.number", "does not fit: String should match pattern"),
    ({"options": {"fast": "yes"}}, "options.fast", "'yes' is str"),
    ({"options": {"fast": True, "slow": True}}, "options.slow", "is not taken here"),
    ({"colour": "green"}, "colour", "'green' does not fit: Input should be 'red' or 'blue'"),
    ({"colour": "RED"}, "colour", "does not fit"),
    ({"key": "x"}, "key", "does not fit: Input should be a valid UUID"),
    ({"at": 1767322800}, "at", "does not fit: Input should be a valid datetime"),
    ({"amount": -1}, "amount", "does not fit: Input should be greater than or equal to 0"),
    ({"amount": "NaN"}, "amount", "does not fit: Input should be a finite number"),
    ({"count": 3}, "count", "does not fit: Value error, must be even"),
    ({"count": 10}, "count", "does not fit: Input should be less than 10"),
    ({"count": "2"}, "count", "'2' is str"),
    ({"count": 2.0}, "count", "2.0 is float"),
    ({"count": True}, "count", "True is bool"),
    ({"count": 1 << 2_000}, "count", "is too large"),
    ({"tags": ["a", "b", "c"]}, "tags", "should have at most 2 items"),
    ({"tree": {"name": "a", "branches": [{"name": 3}]}}, "tree.branches[0].name", "3 is int"),
    ({"stranger": 1}, "stranger", "is not taken here"),
]


@pytest.mark.parametrize(("given", "place", "cause"), MISFITS)
def test_what_does_not_fit_is_told_with_its_place(
    given: dict[str, Any], place: str, cause: str
) -> None:
    """Strictly: nothing is converted that JSON could have said itself."""
    with pytest.raises(BadArguments) as told:
        check(everything, GIVEN | given)
    assert told.value.place == place
    assert cause in told.value.cause
    assert told.value.fix


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")


class OpenBelow(BaseModel):
    inside: list[Open]


class Strange:
    pass


class Struct(msgspec.Struct):
    number: int


@attrs.frozen
class Attrs:
    number: int


@dataclasses.dataclass
class Beside:
    number: Annotated[int, msgspec.Meta(ge=0)]


class BesideInModel(BaseModel):
    number: Annotated[int, "of apples"]


class BesideInDict(TypedDict):
    number: NotRequired[Annotated[int, Doc("of apples")]]


Apples = TypeAliasType("Apples", Annotated[int, "of apples"])

LOST: list[tuple[Any, str]] = [
    (Strange, "its type is nothing that a model could give: Unable to generate pydantic-core"),
    (Struct, "its type is nothing that a model could give"),
    (Attrs, "its type is nothing that a model could give"),
    (Callable[[int], int], "its type is nothing that a model could give"),
    (list[ToolContext], "its type is nothing that a model could give"),
    (Annotated[int, msgspec.Meta(ge=0)], "pydantic does not read msgspec.Meta(ge=0)"),
    (list[Annotated[int, "of apples"]], "pydantic does not read 'of apples'"),
    (Apples, "pydantic does not read 'of apples'"),
    (Annotated[int, annotated_types.Unit("m")], "pydantic does not read Unit"),
    (Beside, "pydantic does not read msgspec.Meta(ge=0)"),
    (list[Beside] | None, "pydantic does not read msgspec.Meta(ge=0)"),
    (BesideInModel, "pydantic does not read 'of apples'"),
    (BesideInDict, "pydantic does not read Doc('of apples')"),
    (Annotated[str, Field(ge=3)], "ge constrains nothing of str"),
    (Annotated[list[int], Field(pattern="a")], "pattern constrains nothing of list"),
    (Annotated[int, annotated_types.Len(1, 3)], "min_length constrains nothing of int"),
    (Annotated[int | str, Field(ge=3)], "ge constrains nothing of int | str"),
    (Annotated[int, pydantic.Strict(strict=False)], "strict=False has no effect"),
    (Annotated[int, Field(default=3)], "its Field has a default"),
    (Annotated[int, Field(alias="n")], "its Field says alias"),
    (list[pydantic.OnErrorOmit[int]], "OnErrorOmit drops what does not fit"),
    (Iterable[int], "Iterable is checked only while the tool reads it"),
    (Open, "Open allows any further field"),
    (OpenBelow, "Open allows any further field"),
]


@pytest.mark.parametrize(("hint", "cause"), LOST)
def test_what_would_be_dropped_is_an_error_where_the_tool_is_made(hint: Any, cause: str) -> None:
    """The error names the parameter and says what to do."""

    def f(x: Any, y: int) -> None: ...

    f.__annotations__["x"] = hint
    with pytest.raises(InvalidValue) as told:
        tool(f)
    assert told.value.place == "tool f.parameter x"
    assert cause in told.value.cause
    assert told.value.fix


KEPT: list[tuple[Any, Any, dict[str, Any]]] = [
    (
        Annotated[int | None, Field(ge=3)],
        2,
        {"anyOf": [{"minimum": 3, "type": "integer"}, {"type": "null"}]},
    ),
    (
        Annotated[dt.date, Field(gt=dt.date(2026, 1, 1))],
        "2025-01-01",
        {"format": "date", "type": "string"},
    ),
    (Annotated[float, annotated_types.Gt(0)], 0.0, {"exclusiveMinimum": 0, "type": "number"}),
    (Annotated[str, annotated_types.Predicate(str.isdigit)], "a", {"type": "string"}),
    (Annotated[decimal.Decimal | None, Field(ge=0)], -1, {}),
    (pydantic.conint(ge=3), 2, {"minimum": 3, "type": "integer"}),
    (pydantic.AwareDatetime, "2026-01-01T00:00:00", {"format": "date-time", "type": "string"}),
    (Annotated[Any, Field(title="T", examples=[1])], None, {"title": "T", "examples": [1]}),
]


@pytest.mark.parametrize(("hint", "bad", "schema"), KEPT)
def test_what_is_not_lost_is_taken(hint: Any, bad: Any, schema: dict[str, Any]) -> None:
    """The negative control: these constrain, in the schema or in the check at least."""

    def f(x: Any) -> None: ...

    f.__annotations__["x"] = hint
    it = tool(f)
    if bad is not None:
        with pytest.raises(BadArguments):
            check(it, {"x": bad})
    if schema:
        assert dict(it.parameters["properties"]["x"]) == schema  # type: ignore[index,call-overload,arg-type]


@pytest.mark.parametrize(("levels", "fits"), [(50, True), (90, True), (200, False), (5_000, False)])
def test_arguments_that_are_nested_deeply_are_taken_or_refused_in_words(
    levels: int, fits: bool
) -> None:
    """By either reader: neither Python's stack nor pydantic's parser is in the way."""

    def plain(x: Any) -> None: ...

    def typed(x: Any, y: dt.date | None = None) -> None: ...

    value: Any = 1
    for _ in range(levels):
        value = [value]
    for it in (tool(plain), tool(typed)):
        if fits:
            assert check(it, {"x": value}) == {"x": value}
        else:
            with pytest.raises(BadArguments, match="nested deeper"):
                check(it, {"x": value})


def test_a_field_for_a_default_is_refused() -> None:
    """The function itself would be called with it."""

    def f(x: int = Field(ge=3)) -> None: ...

    with pytest.raises(InvalidValue, match=r"tool f.parameter x: its default is a Field"):
        tool(f)


def test_code_of_a_type_that_raises_anything_is_a_misfit() -> None:
    @pydantic.dataclasses.dataclass
    class Bad:
        number: int

        def __post_init__(self) -> None:
            raise OSError("no disk")

    def f(x: Any) -> None: ...

    f.__annotations__["x"] = Bad
    with pytest.raises(BadArguments, match="OSError: no disk"):
        check(tool(f), {"x": {"number": 1}})


GOOGLE = """Pay for some items.

At once.

Args:
    items: What to pay for,
        each by its name.
    note (str, optional): What to write.
    context: Not for the model.

Returns:
    The receipt.
"""
NUMPY = """Pay for some items.

At once.

Parameters
----------
items : list of str
    What to pay for,
    each by its name.
note : str, optional
    What to write.

Returns
-------
str
    The receipt.
"""
REST = """Pay for some items.

At once.

:param items: What to pay for,
    each by its name.
:type items: list
:param note: What to write.
:returns: The receipt.
"""


def documented(text: str, **fields: Any) -> Tool:
    def pay(items: list[str], context: ToolContext, note: str = "") -> str:
        return f"{items} {context} {note}"

    pay.__doc__ = text
    return tool(**fields)(pay)


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, REST], ids=["Google", "NumPy", "reST"])
def test_what_a_docstring_says_of_parameters_goes_to_them(text: str) -> None:
    """And the rest of it to the tool: nothing is lost, nothing is said twice."""
    it = documented(text)
    properties: Any = it.parameters["properties"]

    assert (
        " ".join(properties["items"]["description"].split()) == "What to pay for, each by its name."
    )
    assert properties["note"]["description"] == "What to write."
    assert it.description.startswith("Pay for some items.\n\nAt once.")
    assert "The receipt." in it.description
    assert "What to" not in it.description


def test_a_docstring_that_describes_no_parameters_is_the_description() -> None:
    text = "Pay.\n\nNote: the items are no\n    arguments: of anything.\n\nReturns:\n    It."
    assert documented(text).description == text


def test_with_a_schema_of_its_own_a_docstring_stays_whole() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"items": {}, "note": {}}}
    assert documented(GOOGLE, parameters=schema).description == GOOGLE.strip()


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (GOOGLE.replace("note (", "notes ("), "describes notes, which is no parameter"),
        (NUMPY.replace("note :", "notes :"), "describes notes, which is no parameter"),
        (REST.replace("param note", "param notes"), "describes notes, which is no parameter"),
        (REST.replace("param note", "param items"), "describes items twice"),
    ],
)
def test_a_docstring_that_describes_what_is_not_there_is_refused(text: str, cause: str) -> None:
    with pytest.raises(InvalidValue) as told:
        documented(text)
    assert told.value.place == "tool pay.docstring"
    assert cause in told.value.cause


def test_numpy_may_describe_two_parameters_at_once() -> None:
    text = "Pay.\n\nParameters\n----------\nitems, note : str\n    What there is."
    properties: Any = documented(text).parameters["properties"]
    assert (
        properties["items"]["description"] == properties["note"]["description"] == "What there is."
    )


def test_of_partial_the_docstring_is_that_of_its_function() -> None:
    def pay(items: list[str], account: str) -> None: ...

    pay.__doc__ = "Pay.\n\nArgs:\n    items: What.\n    account: Whose, which no model gives."
    it = tool(name="pay")(functools.partial(pay, account="mine"))
    properties: Any = it.parameters["properties"]
    assert it.description == "Pay."
    assert properties["items"]["description"] == "What."
    assert "account" not in properties


@pytest.mark.parametrize(
    "text",
    [
        "Pay.\n\nArguments:\n\nThere are none.",
        "Pay.\n\nAttributes:\n    anything: at all.\n\nArgs:\n",
    ],
)
def test_what_only_looks_like_a_description_of_parameters_stays_as_it_is(text: str) -> None:
    assert documented(text).description == text.strip()


def test_a_parameter_is_described_in_one_place() -> None:
    def f(x: Annotated[int, Field(description="One thing.")]) -> None:
        """F.

        Args:
            x: Another thing.
        """

    with pytest.raises(InvalidValue, match="parameter x: is described 2 times"):
        tool(f)


class Shop:
    """An object with tools of its own."""

    def __init__(self, name: str) -> None:
        self.name = name

    @tool
    def buy(self, what: str, context: ToolContext) -> str:
        """Buy something.

        Args:
            what: Its name.
        """
        return f"{what} at {self.name}, {context.invocation_id}"

    @tool(name="slowly", safe_to_repeat=True)
    async def buy_slowly(self, what: Annotated[str, Field(min_length=2)]) -> str:
        return f"{what} slowly at {self.name}"

    @staticmethod
    @tool
    def open_from(hour: int) -> int:
        return hour

    @tool
    @staticmethod
    def open_until(hour: int) -> int:
        return hour

    @classmethod
    def named(cls, name: str) -> str:
        return f"{cls.__name__} {name}"


def test_a_method_is_a_tool_of_each_object() -> None:
    """`self` is not the model's to give, and each object's tool calls that object."""
    one, two = Shop("one"), Shop("two")

    assert one.buy.parameters["properties"] == {
        "what": {"type": "string", "description": "Its name."}
    }
    assert one.buy.description == "Buy something."
    for shop in (one, two):
        for it, result in (
            (shop.buy, f"bread at {shop.name}, a"),
            (shop.buy_slowly, f"bread slowly at {shop.name}"),
        ):
            given = check(it, {"what": "bread"})
            got = play(functools.partial(_performed, it, given))
            assert got == Succeeded(result)
    assert one.buy_slowly.policy.safe_to_repeat
    assert Toolbox.of(one.buy, two.buy_slowly, one.open_from, Shop.open_until).keys() == {
        "buy",
        "slowly",
        "open_from",
        "open_until",
    }
    assert tool(Shop.named).parameters["required"] == ["name"]
    assert tool(one.open_from.call).parameters["required"] == ["hour"]


async def _performed(it: Tool, given: Any, pool: Any) -> Any:
    return await perform(it, context(), given, threads=pool)


def test_a_method_without_its_object_is_no_tool_of_a_toolbox() -> None:
    with pytest.raises(InvalidValue) as told:
        Toolbox.of(Shop.buy)
    assert told.value.place == "tool buy"
    assert "a method without its object" in told.value.cause
    assert "buy" in told.value.fix


def test_partial_and_a_context_anywhere() -> None:
    def send(
        to: Person, context: Annotated[ToolContext, "not asked"], text: str, *, key: str
    ) -> Any:
        return [to.name, context.run_id, text, key]

    it = tool(name="send")(functools.partial(send, key="secret", text="hello"))
    assert set(it.parameters["properties"]) == {"to"}  # type: ignore[arg-type]
    given = check(it, {"to": {"name": "Ada"}})
    got = play(functools.partial(_performed, it, given))
    assert got == Succeeded(["Ada", "r", "hello", "secret"])


WITHOUT = """
import sys
hidden = {"pydantic", "docstring_parser"}
class Hider:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in hidden:
            raise ImportError(f"{name} is hidden")
sys.meta_path.insert(0, Hider())
import turnlock.agent, turnlock.runtime
from turnlock.runtime import tool, ToolContext
from turnlock.models.errors import InvalidValue
import datetime

@tool
def plain(a: int, context: ToolContext, b: list[str] | None = None, c: dict[str, float] = {}):
    "Do it."

def dated(at: datetime.date) -> int: ...
def documented(a: int) -> int:
    '''Do it.

    Args:
        a: A number.
    '''

for it in (dated, documented):
    try:
        tool(it)
    except InvalidValue as error:
        print(error)
"""


def test_plain_hints_need_no_library_and_others_name_the_extra() -> None:
    """Importing loads none of them; what needs one says so where the tool is made."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT],
        env={"PYTHONPATH": str(Path(turnlock.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    first, second = done.stdout.splitlines()
    assert first.startswith("tool dated.parameter at: its type needs pydantic")
    assert second.startswith(
        "tool documented.docstring: describes parameters, and docstring-parser"
    )
    assert "pip install 'turnlock[tools]'" in first
    assert "pip install 'turnlock[tools]'" in second


def test_plain_tools_load_no_library_where_it_is_there() -> None:
    code = (
        "import sys, turnlock.agent, turnlock.toolkits\n"
        "from turnlock.runtime import tool\n"
        "def f(a: int, b: str | None = None) -> int: 'Do it.'\n"
        "tool(f)\n"
        "extras = {'pydantic', 'docstring_parser', 'annotated_types'}\n"
        "assert not extras & sys.modules.keys()\n"
    )
    env = {"PYTHONPATH": str(Path(turnlock.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", code], env=env, check=True)


def test_a_text_beside_a_type_describes_the_parameter() -> None:
    """It is told, not dropped; and a type that is plain beside it needs no pydantic."""

    def f(x: Annotated[int, "of apples"], y: Annotated[int | None, "or none"]) -> None: ...

    def g(x: Annotated[dt.date, "the day", Field(gt=dt.date(2026, 1, 1))]) -> None: ...

    plain: Any = tool(f).parameters["properties"]
    typed: Any = tool(g).parameters["properties"]

    assert tool(f).is_plain
    assert plain["x"] == {"type": "integer", "description": "of apples"}
    assert plain["y"]["description"] == "or none"
    assert typed["x"] == {"type": "string", "format": "date", "description": "the day"}


@pytest.mark.parametrize(
    "hint",
    [
        Annotated[int, "one", "two"],
        Annotated[int, "one", Doc("two")],
        Annotated[int, "one", Field(description="two")],
        Annotated[int, Doc("one"), Field(description="two")],
    ],
)
def test_two_texts_beside_a_type_are_an_error(hint: Any) -> None:
    """Which of them is meant is not guessed; the same text twice, the control, is one."""

    def f(x: Any) -> None: ...

    f.__annotations__["x"] = hint
    with pytest.raises(InvalidValue, match=r"tool f\.parameter x: is described 2 times"):
        tool(f)

    f.__annotations__["x"] = Annotated[int, "one", Doc("one")]
    assert tool(f).parameters["properties"]["x"]["description"] == "one"  # type: ignore[index,call-overload]
