"""The makers that the kernel uses for what it emits (see `models.record.unchecked_maker`).

They trust their arguments: every value that goes in here was checked when its delivery was built.
The maker of a fact has its type as a name, `tool_denied` of TOOL_DENIED, and is written when it is
first asked for: a process that starts needs few. It reads what all facts have off the state, the
turn and the invocation; the rest are keyword arguments with the names of the fields.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ..lifecycle.invocation import Decision
from ..models.calls import CallResult
from ..models.effects import Cancel, Continue, Execute, Wake
from ..models.facts import FACTS, ExecutionFact, Fact, GrantFact, LifecycleFact, TurnFact
from ..models.record import unchecked_maker, unchecked_maker_from
from ..models.verdicts import Accepted, Refused
from .state import Owed

_FACT = {
    "run_id": "run.run_id",
    "sequence": "number",
    "commit": "number",  # right for the last fact of a receive; `seal_commit` corrects the others
    "at": "now",
    "input": "input_",
}
_TURN = {**_FACT, "turn_id": "turn.turn_id"}
_INVOCATION = {**_TURN, "invocation_id": "invocation.invocation_id"}
_LIFECYCLE = {
    **_INVOCATION,
    "tool_name": "invocation.tool_name",
    "agent_id": "run.agent_id",
    "agent_name": "run.agent_name",
}

_RECEIVED = ("now", "number", "input_")
_SOURCES: Final = {
    LifecycleFact: (("state", "turn", "invocation", *_RECEIVED), _LIFECYCLE),
    ExecutionFact: (("state", "turn", "invocation", *_RECEIVED), _INVOCATION),
    TurnFact: (("state", "turn", *_RECEIVED), _TURN),
    GrantFact: (("state", *_RECEIVED), _FACT),
}
"""By the base of a fact what its maker is given, and where the fields are read off that."""

_FACTS: Final = {fact.type.lower(): fact for fact in FACTS}


def __getattr__(name: str) -> Callable[..., Fact]:
    """Write the maker of a fact (PEP 562)."""
    if name not in _FACTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    context, fields = _SOURCES[_FACTS[name].__bases__[0]]
    maker = globals()[name] = unchecked_maker_from(
        _FACTS[name], context=context, shorthand={"run": "state.run"}, fields=fields
    )
    return maker


cancel = unchecked_maker(Cancel)
continue_ = unchecked_maker(Continue)
execute = unchecked_maker(Execute)
wake = unchecked_maker(Wake)

accepted = unchecked_maker(Accepted)
refused = unchecked_maker(Refused)
call_result = unchecked_maker(CallResult)
owed = unchecked_maker(Owed)
decision = unchecked_maker(Decision)

_set_commit = vars(Fact)["commit"].__set__


def seal_commit(facts: Sequence[Fact]) -> None:
    """Write into each fact of one receive the sequence of the last of them (K-9).

    Facts are made with their own sequence there, which is right for the last. The others are
    corrected here, before anybody has seen them.
    """
    last = facts[-1].sequence
    for fact in facts[:-1]:
        _set_commit(fact, last)
