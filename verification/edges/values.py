"""Edges about JSON values: objects, text and numbers that languages take for others (K-32, S)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, Final

from ..alphabet.slice import RECOVER
from ..alphabet.symbols import approve, call, of_call, of_turn, open_turn
from ..findings import Raw
from ..oracle.reading import digest_of
from .edge import RESULT, Edge, Steps, at, executed, script


def shown(*values: Any) -> Steps:  # noqa: ANN401 - JSON
    """Ask for each value in turn, as arguments, and let it be approved by the digest of it.

    Then each is the result of its call: the first outcome, with the next value as a second one.
    """
    names = [f"a{number}" for number in range(len(values))]
    calls = [
        call(name, gated=True, arguments={"of": value})
        for name, value in zip(names, values, strict=True)
    ]
    approvals = [
        approve("shown", name, arguments_digest=digest_of({"of": value}))
        for name, value in zip(names, values, strict=True)
    ]
    outcomes = [
        (*executed("shown", name, result=value), of_call("report", "shown", name, result=second))
        for name, value, second in zip(names, values, (*values[1:], *values), strict=False)
    ]
    return at(0.0, open_turn("shown", *calls), *approvals, *chain.from_iterable(outcomes))


def failed(*texts: str) -> Steps:
    """Let each text be the error of a call, with the next one as a second outcome."""
    names = [f"e{number}" for number in range(len(texts))]
    outcomes = [
        of_call(kind, "failed", name, **fields)
        for name, text, second in zip(names, texts, (*texts[1:], *texts), strict=False)
        for kind, fields in (
            ("claim", {"attempt": 1}),
            ("report", {"error": text}),
            ("report", {"error": second}),
        )
    ]
    return at(0.0, open_turn("failed", *map(call, names)), *outcomes)


def told_apart(values: Sequence[Any]) -> Steps:
    """Let nobody take one value for the next: as results, edited arguments and grants.

    The first is the outcome, every other a second one; the first is the edit, every other another
    one; the first is what a grant covers, all of them are asked for in a turn after that.
    """
    first = values[0]
    calls = [
        call(f"g{number}", gated=True, arguments={"of": value})
        for number, value in enumerate(values)
    ]
    return at(
        1.0,
        open_turn("T1", call("a"), call("b", gated=True), call("c", gated=True)),
        of_call("claim", "T1", "a", attempt=1),
        *[of_call("report", "T1", "a", result=value) for value in (first, *values)],
        *[approve("T1", "b", arguments={"of": value}) for value in (first, *values)],
        approve("T1", "c", arguments={"of": first}, scope="session"),
        RECOVER,
        *executed("T1", "b", result={"of": first}),
        *[of_call("report", "T1", "b", result={"of": value}) for value in values],
        *executed("T1", "c"),
        open_turn("T2", *calls),
        RECOVER,
    )


_ORDERED: Final[Raw] = {"a": {"c": [1, 2], "d": None}, "b": 1, "aa": 2}
_TURNED: Final[Raw] = {"b": 1, "aa": 2, "a": {"d": None, "c": [1, 2]}}
_BY_CODE_POINT: Final[Raw] = dict.fromkeys(
    (
        *("\U0001f600", "\uffee", "\ue000", "\u20ac", "\u00e9", "e\u0301", "z", "a", "_", "Z"),
        *("A", "10", "9", "1", "", " ", "-", "a b", "aa"),
    ),
    1,
)
_READS_LIKE: Final = (
    *("null", "None", "true", "1", "1.0", "-0", "NaN", "[]", '{"a": 1}', '"a"', "error"),
    *(" ", "\n", "a\n", "a\r\nb", "a\0b", "\u00a0"),
)
_OWNED: Final[Raw] = {
    name: {"of": name}
    for name in (
        *("__proto__", "constructor", "toString", "hasOwnProperty", "length", "then", "type"),
        *("__class__", "self", "class", "$ref", "@type", "", "0", "-1", "null", "true"),
    )
}
_WORDS: Final = (
    "caf\u00e9 \u6f22\u5b57 \u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd",
    "\U0001f600 \U0001f469\u200d\U0001f4bb \U0001d518",
    "\u00df \u0130 \u0131 \ufb01 \u00a0",
)
_ESCAPES: Final = (
    "".join(map(chr, range(0x20))),
    "\x7f\x80\x9f",
    "\u2028\u2029\ufeff\ufffd\ufffe\uffff",
    "\"quoted\" \\back\\ /slash/ 'single' `tick`",
    "<b>&amp;</b> \\u0041 \\n %41 ${x} {{x}}",
    "\r\n\t end of line \r\n",
)
_LARGE: Final = (
    *(2**53, 2**53 + 1, 2**53 + 2, 2**63 - 1, 2**63, 2**64, 2**64 + 1),
    *(-(2**53) - 1, -(2**63) - 1, 10**30, 10**30 + 1),
)
_FLOATS: Final = (
    *(0.1, 0.1 + 0.2, 0.3, 1e-4, 1e-5, 1e-7, 1.5e-7, 5e-324, 2.2250738585072014e-308),
    *(100.0, 123456.0, 1e15, 1e16, 1.5e16, 1e21, 1e22, 1e23, 123456789012345680.0),
    *(1.7976931348623157e308, -1e-7, -1e21, 1700000000.1234567, 1.0000000000000002, 4.35),
)
_ALIKE: Final[tuple[Any, ...]] = (
    *(0, 0.0, -0.0, False, None, "", "0", [], {}, [0], [0.0], [-0.0], [False], [""]),
    *({"n": [0]}, {"n": [0.0]}, {"n": [False]}, [1], [1.0], [True]),
)


def _nested(depth: int, leaf: Any) -> Any:  # noqa: ANN401 - JSON
    value = leaf
    for level in range(depth):
        value = [value] if level % 2 else {"in": value}
    return value


LONG: Final = "a  long\ttext \u00e9\n" * 7_000
"""A hundred kilobytes, with spaces."""

SCRIPTS: Final = (
    Edge(
        name="keys in another order",
        about="objects that are equal whatever the order of their keys, and lists that are not",
        rules=("K-30", "K-32", "K-40"),
        steps=script(
            at(
                0.0,
                open_turn(
                    "T1",
                    call("a", gated=True, arguments=_ORDERED),
                    call("b", gated=True, arguments=_TURNED),
                    call("c", gated=True, arguments=_ORDERED),
                    call("d", gated=True, arguments={"a": {"c": [2, 1], "d": None}, "b": 1}),
                ),
                approve("T1", "a", arguments=_ORDERED),
                approve("T1", "a", arguments=_TURNED),
                approve("T1", "b", arguments_digest=digest_of(_ORDERED).upper(), scope="session"),
                approve("T1", "b", arguments_digest=digest_of(_ORDERED), scope="session"),
                *executed("T1", "a", result=_ORDERED),
                of_call("report", "T1", "a", result=_TURNED),
                of_call("report", "T1", "a", result={**_ORDERED, "b": 2}),
                RECOVER,
                of_call("claim", "T1", "b", attempt=1),
                of_call("lose", "T1", "b"),
                of_call("resolve", "T1", "b", attempt=1, **RESULT, result=_TURNED),
                of_call("report", "T1", "b", result=_ORDERED),
                of_call("report", "T1", "b", result={"a": {"c": [2, 1], "d": None}}),
                *executed("T1", "c", result=[1, 2]),
                of_call("report", "T1", "c", result=[2, 1]),
                of_call("reject", "T1", "d", error="no"),
                open_turn("T2", call("a", gated=True, arguments=_TURNED)),
            ),
        ),
    ),
    Edge(
        name="keys by code point",
        about="keys beyond ASCII and beyond U+FFFF, upper and lower case, numbers, empty: sorted",
        rules=("K-32",),
        steps=script(
            shown(_BY_CODE_POINT, {"n": _BY_CODE_POINT}),
            told_apart([_BY_CODE_POINT, {}]),
        ),
    ),
    Edge(
        name="keys that languages own",
        about="keys like __proto__, constructor, length and class: keys like any other",
        rules=("K-32",),
        steps=script(shown(_OWNED, {"__proto__": None}, {}), told_apart([_OWNED, {}])),
    ),
    Edge(
        name="text beyond ASCII",
        about="letters of other scripts and emoji in arguments, results, errors, reasons and names",
        rules=("K-32", "section 4"),
        run={"run_id": "r\u00e9", "agent_id": "\u6f22", "agent_name": "\U0001f600 \u00e9"},
        steps=script(
            shown(*_WORDS),
            told_apart(_WORDS),
            at(
                2.0,
                approve("T2", "g1", reason=_WORDS[0], decided_by=_WORDS[1], arguments={"n": 1}),
                of_call("claim", "T2", "g1", attempt=1, worker=_WORDS[1]),
                of_call("report", "T2", "g1", error=_WORDS[0]),
                of_call("report", "T2", "g1", error=_WORDS[0]),
                of_call("reject", "T2", "g0", error=_WORDS[1]),
                of_turn("interrupt", "T2", reason=_WORDS[2]),
            ),
        ),
    ),
    Edge(
        name="escapes",
        about="control characters, line separators, quotes, backslashes, markup: kept as they came",
        rules=("K-32", "K-30"),
        steps=script(
            shown(*_ESCAPES, *({text: 1} for text in _ESCAPES)),
            told_apart(_ESCAPES),
            at(2.0, *[of_call("log", "T2", "g0", text=text) for text in _ESCAPES]),
            at(2.0, of_call("reject", "T2", "g1", error=_ESCAPES[0])),
        ),
    ),
    Edge(
        name="one letter, two spellings",
        about="composed and decomposed letters, blanks around and inside: different texts",
        rules=("K-32", "K-30"),
        steps=script(
            shown("\u00e9", "e\u0301"),
            told_apart(
                [
                    "\u00e9",
                    "e\u0301",
                    "E\u0301",
                    " \u00e9",
                    "\u00e9 ",
                    "\u00e9\n",
                    "\u212b",
                    "\u00c5",
                ]
            ),
        ),
    ),
    Edge(
        name="text that reads like something else",
        about="text that looks like null, a number, JSON or nothing: told as it came",
        rules=("K-30", "K-36"),
        steps=script(shown(*_READS_LIKE), failed(*_READS_LIKE), told_apart(["1", 1, "null", None])),
    ),
    Edge(
        name="null inside",
        about="null as a value in objects and lists: it is there, and counts",
        rules=("K-32", "section 3"),
        steps=script(
            shown(None, {"n": None}, [None], {}),
            told_apart([{"n": None}, {}, {"n": [None]}, {"n": []}, {"n": {}}, [None], [], None]),
        ),
    ),
    Edge(
        name="integers beyond 2^53",
        about="whole numbers that no float holds: neither rounded nor taken for their neighbours",
        rules=("K-32", "K-30"),
        steps=script(
            shown(*_LARGE),
            told_apart([2**53 + 1, 2**53, float(2**53), 2**64 + 1, 2**64, 10**30 + 1, 10**30]),
        ),
    ),
    Edge(
        name="floats as canonical JSON writes them",
        about="floats whose text differs between languages: exponents, whole ones, the smallest",
        rules=("K-32", "K-30"),
        steps=script(shown(*_FLOATS), told_apart([0.1 + 0.2, 0.3, 0.30000000000000002])),
    ),
    Edge(
        name="zero in every form",
        about="0, 0.0, -0.0, false, null and what is empty, bare and in lists: none is another",
        rules=("K-32", "K-36", "K-30"),
        steps=script(shown(*_ALIKE), told_apart(_ALIKE)),
    ),
    Edge(
        name="values inside values",
        about="lists and objects sixty deep that differ at the bottom alone",
        rules=("K-32", "K-30"),
        steps=script(
            shown(_nested(60, 1)), told_apart([_nested(60, 1), _nested(60, 2), _nested(59, 1)])
        ),
    ),
    Edge(
        name="a hundred kilobytes",
        about="long text with spaces in arguments, results and errors: whole, to the last letter",
        rules=("K-30", "K-32"),
        steps=at(
            0.0,
            open_turn("T", call("a", gated=True, arguments={"text": LONG}), call("b"), call("c")),
            approve("T", "a", arguments_digest=digest_of({"text": f"{LONG}!"})),
            approve("T", "a", arguments_digest=digest_of({"text": LONG})),
            *executed("T", "a", result=LONG),
            of_call("report", "T", "a", result=f"{LONG}!"),
            of_call("report", "T", "a", result=LONG.strip()),
            of_call("claim", "T", "b", attempt=1),
            of_call("report", "T", "b", error=LONG),
            of_call("report", "T", "b", error=f"{LONG}!"),
            of_call("reject", "T", "c", error=LONG.replace("  ", " ")),
        ),
    ),
)
