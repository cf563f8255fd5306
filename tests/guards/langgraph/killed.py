"""Agents that are killed, each in a process of its own; the frameworks are imported once.

`python -c "from tests.guards.langgraph.killed import main; main()" FOLDER` leaves FOLDER/NAME.db,
.saver and .ledger for each scenario: what the next process finds.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from langchain_core.messages import AIMessage

from turnlock.guards.guard import Guard

from .kit import THREAD, Bank, FileSaver, agent, ask, go, pays, says


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def written(place: Path, amount: int) -> None:
    """Pay: what stands in the ledger has happened, whoever is killed then."""
    with place.with_suffix(".ledger").open("a") as ledger:
        ledger.write(f"{amount}\n")


def in_the_tool(place: Path, way: str, *, guarded: bool) -> None:
    def during(amount: int) -> None:
        written(place, amount)
        kill()

    guard = Guard.open(place.with_suffix(".db")) if guarded else None
    saver = FileSaver(place.with_suffix(".saver"))
    go(agent(says(pays()), [Bank(during).pay], guard=guard, saver=saver), ask(), way=way)


def in_the_next_answer(place: Path, *, guarded: bool, records: bool = False) -> None:
    """With durability "exit": what was paid stands in no checkpoint."""

    def each() -> Iterator[AIMessage | str]:
        yield pays()
        kill()

    guard = Guard.open(place.with_suffix(".db")) if guarded else None
    model = says()
    model.messages = each()
    bank = Bank(lambda amount: written(place, amount))
    saver = FileSaver(place.with_suffix(".saver"))
    it = agent(model, [bank.pay], guard=guard, saver=saver, records_model=records)
    it.invoke(ask(), THREAD, durability="exit")


SCENARIOS: dict[str, Callable[[Path], None]] = {
    "tool-bare": lambda place: in_the_tool(place, "invoke", guarded=False),
    "tool-invoke": lambda place: in_the_tool(place, "invoke", guarded=True),
    "tool-astream": lambda place: in_the_tool(place, "astream", guarded=True),
    "tool-moved-on": lambda place: in_the_tool(place, "invoke", guarded=True),
    "answer-bare": lambda place: in_the_next_answer(place, guarded=False),
    "answer-guarded": lambda place: in_the_next_answer(place, guarded=True),
    "answer-records": lambda place: in_the_next_answer(place, guarded=True, records=True),
}


def main() -> None:
    """Fork before anything is opened: each scenario starts from the same fresh process."""
    for name, scenario in SCENARIOS.items():
        child = os.fork()
        if child == 0:
            try:
                scenario(Path(sys.argv[1], name))
            finally:
                os._exit(3)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status) or os.WTERMSIG(status) != signal.SIGKILL:
            sys.exit(f"{name} was not killed: {status}")
