"""Edges about what only correlates: whose run it is, which agent's, and the ids of a provider."""

from __future__ import annotations

from typing import Final

from ..alphabet.slice import RECOVER
from ..alphabet.symbols import approve, call, of_call, of_turn, open_turn
from ..findings import Raw
from .edge import Edge, Steps, at, executed


def _life() -> Steps:
    """Open a turn, let every kind of fact about its calls happen, and take its continuation."""
    return at(
        0.0,
        open_turn("T", call("a"), call("b", gated=True), call("c"), call("d", gated=True)),
        approve("T", "b"),
        RECOVER,
        *executed("T", "a"),
        of_call("claim", "T", "b", attempt=1),
        of_call("report", "T", "b", attempt=1, error="no"),
        of_call("reject", "T", "c", error="no"),
        of_call("decide", "T", "d", approved=False),
        of_turn("acknowledge", "T"),
    )


def _agent(**said: str) -> Raw:
    return {"run_id": "r", **said}


SCRIPTS: Final = (
    Edge(
        name="a run of another kind",
        about="a run that another runtime performs: it is answered, and owed, like the own (K-61)",
        rules=("K-3", "section 9"),
        run={"run_id": "r", "kind": "another"},
        steps=_life(),
    ),
    Edge(
        name="an agent with an id alone",
        about="an agent that has an id and no name: its facts tell the id",
        rules=("section 4",),
        run=_agent(agent_id="agent 7"),
        steps=_life(),
    ),
    Edge(
        name="an agent with a name alone",
        about="an agent that has a name and no id: its facts tell the name",
        rules=("section 4",),
        run=_agent(agent_name="Ada"),
        steps=_life(),
    ),
    Edge(
        name="the ids of a provider",
        about="calls with a provider's id, some of them another call's own: they never identify",
        rules=("K-20", "K-21"),
        steps=at(
            0.0,
            open_turn(
                "T",
                call("a", provider_call_id="b"),
                call("b", provider_call_id="a"),
                call("c", provider_call_id="p"),
                call("d", provider_call_id="p", gated=True),
                call("e", provider_call_id=""),
                call("f", provider_call_id=None),
                sealed=False,
            ),
            of_call("claim", "T", "p", attempt=1),
            approve("T", "p"),
            of_call("reject", None, "p", error="no"),
            of_turn("add_call", "T", call=call("p", provider_call_id="c")),
            of_turn("add_call", "T", call=call("c", provider_call_id="q")),
            RECOVER,
            *executed("T", "b", result="of b"),
            of_call("reject", "T", "c", error="of c"),
            *executed("T", "p", result="of p"),
            of_turn("interrupt", "T"),
            open_turn("U", call("a", provider_call_id="b"), call("b", provider_call_id="a")),
            *executed("U", "b", result="of b"),
            of_call("reject", "U", "a", error="of a"),
            RECOVER,
        ),
    ),
    Edge(
        name="turns that differ by case or space",
        about="what is asked of a turn under nearly its id: none of it is for the one that is open",
        rules=("K-22", "K-53"),
        steps=at(
            0.0,
            open_turn("Turn", call("a"), sealed=False),
            *[
                asked
                for name in ("turn", "TURN", "Turn ", " Turn", "T\u00fcrn", "Tur")
                for asked in (
                    of_turn("add_call", name, call=call("b")),
                    of_turn("seal_turn", name),
                    of_turn("interrupt", name),
                    of_turn("acknowledge", name),
                )
            ],
            RECOVER,
            *executed("Turn", "a"),
            of_turn("seal_turn", "TURN"),
            of_turn("seal_turn", "Turn"),
            *[of_turn("acknowledge", name) for name in ("turn", "Turn ", "Turn")],
            *[of_turn("interrupt", name) for name in ("turn", "Turn ", "Turn")],
        ),
    ),
)
