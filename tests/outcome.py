"""What scripts say: calls going in, the whole outcome of a delivery coming out, in few words."""

from __future__ import annotations

from dataclasses import dataclass, replace

from turnlock import Call, Cancel, Continue, Effect, Execute, Fact, Reason, Verdict, Wake
from turnlock.models.facts import CallAdded, ExecutionFact, GrantFact, LifecycleFact, TurnFact
from turnlock.models.values import Json


def call(
    invocation_id: str, tool: str = "ls", *, timeout: float | None = None, **arguments: Json
) -> Call:
    """A call that needs no approval."""
    return Call(
        invocation_id=invocation_id,
        tool_name=tool,
        arguments=arguments,
        requires_approval=False,
        approval_timeout=timeout,
    )


def gated(
    invocation_id: str, tool: str = "ls", *, timeout: float | None = None, **arguments: Json
) -> Call:
    """A call that needs approval."""
    return Call(
        invocation_id=invocation_id,
        tool_name=tool,
        arguments=arguments,
        requires_approval=True,
        approval_timeout=timeout,
    )


@dataclass(frozen=True)
class Outcome:
    """The whole outcome of one delivery: accepted or why not, what happened, what is asked."""

    reason: Reason | None
    facts: tuple[str, ...]
    asks: tuple[str, ...] = ()

    def asking(self, *asks: str) -> Outcome:
        """The same outcome with these effects."""
        return replace(self, asks=asks)


def happens(*facts: str) -> Outcome:
    """Accepted, with these facts and no effects."""
    return Outcome(reason=None, facts=facts)


def refused(reason: Reason, *facts: str) -> Outcome:
    """Refused; the facts are those of deadlines that came due."""
    return Outcome(reason=reason, facts=facts)


def tell(fact: Fact) -> str:
    """A fact in two words: its name, and whom it is about."""
    match fact:
        case LifecycleFact() | ExecutionFact():
            whom = fact.invocation_id
        case CallAdded():
            whom = fact.call.invocation_id
        case GrantFact():
            whom = fact.grant_id
        case TurnFact():
            whom = fact.turn_id
        case _:
            raise AssertionError(fact)
    return f"{fact.type} {whom}"


def ask(effect: Effect) -> str:
    """An effect in a few words."""
    match effect:
        case Execute() | Cancel():
            return f"{effect.type} {effect.invocation_id} {effect.attempt}"
        case Continue():
            return f"continue {effect.turn_id}"
        case Wake():
            return f"wake {effect.at}"
        case _:
            raise AssertionError(effect)


def told(verdict: Verdict) -> Outcome:
    """A verdict as an outcome."""
    return Outcome(
        reason=verdict.reason,
        facts=tuple(map(tell, verdict.facts)),
        asks=tuple(ask(effect) for effect in verdict.effects if not isinstance(effect, Wake)),
    )
