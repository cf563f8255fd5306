"""Edges about ids: alike but for case or space, alike when joined, like numbers or properties."""

from __future__ import annotations

from typing import Final

from ..alphabet.slice import RECOVER
from ..alphabet.symbols import (
    TICK,
    approve,
    call,
    deny,
    of_call,
    of_turn,
    open_turn,
    revoke,
)
from ..findings import Raw
from .edge import RETRY, Edge, Steps, at, executed, script

_SPELLINGS: Final = ("a", "A", " a", "a ", "a\t", "\u00e1", "a\u0301", "\u0430", " ", "a\u200b")
"""Of one letter, in ten ways; the eighth is Cyrillic."""
_SEPARATORS: Final = ("/", ":", "|", ",", "-", "_", ".", "#", " ", "\x00", "%2F", "::", "->")
_OTHER_RUNS: Final = ("R", "r ", " r", "r/1", "r%", "run")
_LONG: Final = "x" * 300


def _life(turn_id: str, names: tuple[str, ...]) -> Steps:
    """Open a turn with these calls, claim all, report the last first, ask for none that is not."""
    return (
        open_turn(turn_id, *map(call, names)),
        *[of_call("claim", turn_id, name, attempt=1, worker=f"{name}w") for name in names],
        *[of_call("report", turn_id, name, result=f"of {name}") for name in reversed(names)],
        *[of_call("report", turn_id, name, result=f"of {name}") for name in names[:2]],
    )


def _joined(separator: str) -> Steps:
    """Close a turn whose id and call join to what others join to, and ask for those."""
    turn_id = f"T{separator}3"
    return (
        open_turn(turn_id, call("a")),
        of_call("reject", turn_id, "a", error="no"),
        of_call("report", "T", f"3{separator}a", result="ok"),
        of_call("report", "T", "3", result="ok"),
        of_call("report", f"{turn_id}{separator}a", "a", result="ok"),
        of_turn("interrupt", f"{turn_id}{separator}a"),
        of_turn("acknowledge", turn_id),
    )


_DELIVERIES: Final[tuple[Raw, ...]] = (
    open_turn("T", call("a"), call("b", gated=True), call("d", gated=True), sealed=False),
    of_turn("add_call", "T", call=call("c")),
    of_turn("seal_turn", "T"),
    deny("T", "d"),
    approve("T", "b", scope="session"),
    of_call("claim", "T", "a", attempt=1, lease=1.0),
    of_call("renew", "T", "a", lease=2.0),
    of_call("lose", "T", "a"),
    of_call("resolve", "T", "a", attempt=1, **RETRY),
    of_call("claim", "T", "a", attempt=2),
    of_call("report", None, "a", result="ok"),
    of_call("reject", "T", "c", error="no"),
    of_call("log", "T", "a", text="hm"),
    revoke("grant/r/1"),
    TICK,
    of_call("reject", "T", "b", error="no"),
    of_turn("acknowledge", "T"),
    open_turn("T2", call("a")),
    of_turn("interrupt", "T2"),
)
"""One of each type at least, all of them to be accepted."""

SCRIPTS: Final = (
    Edge(
        name="another run's deliveries",
        about="every type of delivery with the id of another run, alike but for case or space",
        rules=("section 5",),
        steps=tuple(
            one
            for number, delivery in enumerate(_DELIVERIES)
            for one in at(
                0.0,
                {**delivery, "run_id": _OTHER_RUNS[number % len(_OTHER_RUNS)]},
                {**delivery, "run_id": "r"},
            )
        ),
    ),
    Edge(
        name="ids that differ by case or space",
        about="calls, workers and turns of one letter in ten spellings: ten of each",
        rules=("K-20", "K-33", "K-54"),
        steps=script(
            at(
                0.0,
                *_life("T", _SPELLINGS),
                *[of_call("report", name, "a", result="ok") for name in ("t", "T ", " T")],
                open_turn("\u00e9", call("a")),
                of_call("reject", "\u00e9", "a", error="no"),
                of_call("report", "e\u0301", "a", result="ok"),
                open_turn("t", call("a"), call("b")),
                of_call("claim", "T ", "a", attempt=1),
                of_call("claim", "t", "A", attempt=1),
                of_call("claim", "t", "a", attempt=1, worker="w"),
                of_call("claim", "t", "a", attempt=1, worker="W"),
                of_call("claim", "t", "a", attempt=1, worker="w "),
                of_call("claim", "t", "a", attempt=1, worker="w"),
                of_call("claim", "t", "b", attempt=1, worker="\u00e1"),
                of_call("claim", "t", "b", attempt=1, worker="a\u0301"),
                RECOVER,
                of_turn("acknowledge", "t"),
                of_turn("acknowledge", "T"),
            )
        ),
    ),
    Edge(
        name="tools that differ by case or space",
        about="a grant for a tool covers that tool, not one of nearly the same name",
        rules=("K-40", "K-41"),
        steps=at(
            0.0,
            open_turn(
                "T",
                *[
                    call(f"c{number}", gated=True, tool_name=name)
                    for number, name in enumerate(
                        ("ls", "LS", "ls ", "l", "lss", "ls/ls", "caf\u00e9", "cafe\u0301", "ls")
                    )
                ],
            ),
            approve("T", "c0", scope="session", match="tool"),
            approve("T", "c6", scope="turn", match="exact"),
            approve("T", "c4", scope="turn", match="tool"),
            RECOVER,
            of_turn("interrupt", "T"),
            open_turn("T2", *[call(n, gated=True, tool_name=n) for n in ("lss", "ls", "Ls")]),
        ),
    ),
    Edge(
        name="ids that join alike",
        about="turn T with call 3/a against turn T/3 with call a and turn T/3/a, for 13 separators",
        rules=("K-20", "K-54", "K-21"),
        run={"run_id": "r", "limits": {"continuations": 2}},
        steps=at(
            0.0,
            *[step for separator in _SEPARATORS for step in _joined(separator)],
            open_turn("U", call("x")),
            of_call("reject", "U", "x", error="no"),
            open_turn("U/x", call("U")),
            of_call("report", "U/x", "x", result="ok"),
            of_call("reject", "U/x", "U", error="no"),
            of_turn("acknowledge", "U"),
            of_turn("acknowledge", "U/x"),
            open_turn("x", call("U/x")),
            of_call("reject", None, "U/x", error="no"),
            of_call("lose", None, "U/x"),
        ),
    ),
    Edge(
        name="slashes and percent signs",
        about="ids with / and % in every part, escaped before and not: no two effects share an id",
        rules=("K-7", "K-3"),
        run={"run_id": "r/1%2F"},
        steps=script(
            at(
                0.0,
                open_turn(
                    "T/%",
                    *map(call, ("a/b", "a%2Fb", "a%252Fb", "a%2fb", "a//b%%", "a", "a/1", "/")),
                    call("g", gated=True, approval_timeout=1.0),
                    call("h", gated=True),
                ),
                approve("T/%", "g", scope="session"),
                revoke("grant/r%2F1%252F/1"),
                revoke("grant/r/1%2F/1"),
                *[of_call("claim", "T/%", name, attempt=1) for name in ("a", "a/b", "a%2Fb")],
                RECOVER,
                *[of_call("report", "T/%", name, result=1) for name in ("a/b", "a%2Fb")],
                of_turn("interrupt", "T/%", grace=1.0),
                of_call("report", "T/%", "a", result=1),
            )
        ),
    ),
    Edge(
        name="what ids need not escape",
        about="ids of blanks, marks and other letters: only / and % are written otherwise",
        rules=("K-7",),
        run={"run_id": "r \u00e9+"},
        steps=at(
            0.0,
            open_turn(
                "T ?&=#",
                *map(call, (" ", "\u00e9", "e\u0301", "\u6f22", "\U0001f600", ":@!$'()*,;")),
                *map(call, ("\x00\x1f\x7f", "\u2028", '"\\', "<>[]{}|^`", "~._-+")),
                call("g", gated=True),
            ),
            approve("T ?&=#", "g", scope="session"),
            of_call("claim", "T ?&=#", "\u00e9", attempt=1),
            of_turn("interrupt", "T ?&=#", grace=1.0),
            RECOVER,
        ),
    ),
    Edge(
        name="ids like numbers and words",
        about="ids that are numbers or words of a language: kept in the order of the opening",
        rules=("K-52", "K-20"),
        steps=at(
            0.0,
            *_life("1", ("10", "9", "b", "2", "02", "0", "-1", "1.0", "1e0", "a", "1")),
            of_call("report", "01", "10", result="ok"),
            of_call("report", "1.0", "10", result="ok"),
            *_life("true", ("null", "true", "false", "NaN", "undefined", "None", "nil")),
            of_turn("acknowledge", "True"),
            RECOVER,
            of_turn("acknowledge", "true"),
        ),
    ),
    Edge(
        name="ids that languages own",
        about="ids like __proto__ and constructor: unknown until there is one, then like any other",
        rules=("K-20", "K-52", "K-42"),
        steps=at(
            0.0,
            open_turn("toString", call("__proto__"), call("constructor"), call("length")),
            *[
                of_call("claim", "toString", name, attempt=1)
                for name in ("hasOwnProperty", "valueOf", "__proto__", "constructor", "__class__")
            ],
            of_call("report", "constructor", "__proto__", result="ok"),
            of_call("report", "toString", "__proto__", result="ok"),
            of_turn("acknowledge", "__proto__"),
            revoke("constructor"),
            RECOVER,
            of_call("report", None, "constructor", result={"__proto__": 1}),
            of_call("reject", "toString", "length", error="no"),
            of_call("report", "hasOwnProperty", "__proto__", result="ok"),
            of_call("lose", None, "valueOf"),
            open_turn("__proto__", call("then", gated=True, tool_name="constructor")),
            of_call("claim", "__proto__", "then", attempt=1, worker="__proto__"),
            approve("__proto__", "then", scope="session", match="tool"),
            *executed("__proto__", "then"),
            open_turn("then", call("a", gated=True, tool_name="toString")),
            of_turn("acknowledge", "__proto__"),
        ),
    ),
    Edge(
        name="ids that begin alike",
        about="ids of which one begins or ends with another, long ones that differ at the end",
        rules=("K-20", "K-33"),
        steps=at(
            0.0,
            *_life("T1", ("a", "aa", "a1", "a10", "1a", f"{_LONG}1", f"{_LONG}2")),
            *_life("T", ("aa", "a")),
            of_call("report", "T1", "aaa", result="ok"),
            of_call("report", "T10", "a", result="ok"),
            of_call("report", f"T1{_LONG}", "a", result="ok"),
            of_call("lose", None, _LONG),
            open_turn("T10", call("a10", gated=True), call("a1", gated=True, tool_name="l")),
            approve("T10", "a10", scope="session", match="tool"),
            revoke("grant/r/"),
            revoke("grant/r/10"),
            revoke("grant/r/01"),
            of_call("lose", None, "a10"),
            of_call("claim", "T10", "a100", attempt=1),
            of_call("claim", "T10", "a", attempt=1),
            RECOVER,
            revoke("grant/r/1"),
            *executed("T10", "a10"),
        ),
    ),
)
