"""A guard and nothing else: your own loop around a model, and a tool that must run once.

    python examples/guards/alone.py agent.db

The model is a script here. Start it as often as you like, kill it in the middle, start it twice at
once: the payment is made once, and only after somebody has approved it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from turnlock.guards import BEGINNING, At, Call, CallContext, Guard, InDoubt, NotApproved, Outcome

RUN = "order-17"


def pay(context: CallContext) -> str:
    """Pay, for real. The key is the same for every attempt: a bank that knows keys pays once."""
    with Path("bank.txt").open("a", encoding="utf-8") as bank:
        bank.write(f"{context.idempotency_key} {json.dumps(dict(context.arguments))}\n")
    if "POWER_CUT" in os.environ:
        os.kill(os.getpid(), signal.SIGKILL)
    return f"paid {context.arguments['amount']}"


def model(told: Sequence[str]) -> tuple[str, list[Call], str]:
    """Answer what was told so far: an id, calls, and a text."""
    if not told:
        asked = Call(
            invocation_id="c1",
            tool_name="pay",
            arguments={"amount": 5},
            requires_approval=True,
        )
        return "answer-1", [asked], "I pay."
    return "answer-2", [], f"It is done: {told[-1]}."


def converse(guard: Guard, run: str) -> str:
    """Ask the model, do what it calls for, tell it what came of that, until it calls no more."""
    told: list[str] = []
    turn = BEGINNING
    while True:
        answer, calls, text = model(told)
        guard.open_turn(run, answer, calls, after=turn)
        turn = answer
        for call in calls:
            at = At(run, turn, call.invocation_id)
            outcome = guard.call(at, call.tool_name, call.arguments, pay)
            told.append(words(outcome))
        if not calls:
            return text


def words(outcome: Outcome[str]) -> str:
    """Say to the model how a call ended: a denial and a failure are outcomes, too."""
    said = outcome.value or outcome.error or outcome.reason or "denied"
    return f"{said} (as recorded)" if outcome.replayed else said


def main(db: str) -> int:
    """Converse; say what a person has to do where that is refused."""
    with Guard.open(db) as guard:
        try:
            print(converse(guard, RUN))
        except NotApproved as refused:
            print(f"waits for a person: {refused.at.call}, digest {refused.digest[:32]}")
            return 3
        except InDoubt as doubt:
            print(f"in doubt: attempt {doubt.attempt} of {doubt.at.call}; look at the bank first")
            return 4
    return 0


if __name__ == "__main__":
    if not sys.argv[1:]:
        print("usage: python examples/guards/alone.py agent.db", file=sys.stderr)
        sys.exit(2)
    sys.exit(main(*sys.argv[1:]))
