"""What agents say in a whole server, as a stream shows it: deltas, and agents that are tools."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from turnlock.agent.loop import Agent
from turnlock.server.face import ServerSettings
from turnlock.server.opening import Options, opened
from turnlock.server.shown import Delta, Sent

from ..agent.speakers import Speaker, asked, by_answers, speech
from .peers import spec

RUN = "r/%é"
CHILD = "call/r%2F%25é/1/t1/c1"


def asker() -> Agent:
    """An agent that has another one answer first."""
    below = Agent(model=Speaker([speech("I am below.")]))
    tool = below.as_tool(name="ask", description="Ask the one below.")
    speeches = [speech("I ask.", asked("ask", call_id="c1", prompt="who?")), speech("Done.")]
    return Agent(model=Speaker(speeches, which=by_answers), tools=[tool])


def test_f_8_a_delta_is_superseded_by_the_message_of_its_item_and_s_56_children(
    tmp_path: Path,
) -> None:
    """F-8: its item is the id of the note that ends it, in the run of the agent that says it."""

    async def play() -> None:
        options = Options(
            db=str(tmp_path / "agent.db"),
            agents={"asker": asker()},
            settings=ServerSettings(),
            listen=("127.0.0.1",),
        )
        deltas: list[dict[str, Any]] = []
        notes: dict[str, list[str]] = {}
        facts: dict[str, list[str]] = {}
        async with opened(options) as it, asyncio.timeout(30):
            sessions, hub = it.face.sessions, it.face.hub
            assert sessions is not None
            await sessions.create(spec(RUN))
            subscription = hub.subscribe(RUN, children=True)
            await subscription.open()
            await sessions.prompt(RUN, text="go", message_id="m1")
            async for batch in subscription:
                for shown in batch:
                    if isinstance(shown, Delta):
                        deltas.append(json.loads(shown.data))
                    elif isinstance(shown, Sent):
                        told = json.loads(shown.envelope)
                        if "note" in told:
                            notes.setdefault(shown.run_id, []).append(told["note"]["body"]["id"])
                        else:
                            facts.setdefault(shown.run_id, []).append(told["fact"]["type"])
                if "said/3" in notes.get(RUN, ()) and "said/2" in notes.get(CHILD, ()):
                    break
            subscription.close()
            assert await hub.family.of(RUN) == (CHILD,)
        assert notes[CHILD] == ["said/1", "said/2"]
        assert "TOOL_EXECUTION_SUCCEEDED" in facts[RUN]
        said = {(one["run_id"], one["item"]) for one in deltas}
        assert said <= {
            (RUN, "said/2"),
            (RUN, "said/2/0"),
            (RUN, "said/3"),
            (CHILD, "said/2"),
        }
        assert (RUN, "said/3") in said

    asyncio.run(play())
