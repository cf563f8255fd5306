"""A conversation with those of the agents that are tools in it, each a run of its own.

The run of such an agent is named by the call it answers, which has one name at each attempt
(`ToolContext.idempotency_key`): after a crash the call is repeated, opens the same run, and that
goes on where it stopped. So nothing in it is done twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import attrs

from ..models.errors import TurnlockError, UnknownRun
from ..models.ids import idempotency_key
from ..models.run import Run
from ..runtime.executions import INTERRUPTED
from ..runtime.log import logger
from ..runtime.runtime import Runtime
from ..runtime.tools.calling import ToolContext
from ..runtime.tools.errors import ToolCancelled
from ..runtime.tools.policy import InDoubt, Policy
from ..runtime.tools.tool import Tool
from ..runtime.tools.toolbox import Toolbox
from ..views.call_view import CallView, Waits
from .approving import Approvals
from .errors import HookFailed, LimitReached, ModelError
from .events import CallUpdate, Event, Hear, RunResult
from .messages import Prompt, Stop, Tokens
from .setup import Configure, NamedModel, Setup
from .talk import Talk

_log = logger(__name__)

LEASE: Final = 300.0
"""Seconds of silence after which a call of an agent is in doubt; a crash is known without it."""
FAILED: Final[Mapping[type[TurnlockError], str]] = {
    HookFailed: "the agent was stopped by an error of the program that it runs in; what its calls"
    " did, they did. Go on without it",
    LimitReached: "the agent was stopped before it was done, since it had used up what it may for"
    " one prompt; what its calls did, they did. Ask it for less at once",
    ModelError: "the agent's own model did not answer; what its calls did, they did. Ask it again"
    " later, or go on without it",
}
"""What a model is told of an agent that failed; why exactly, its program is told."""
STOPPING: Final = 1.0
"""Seconds that the calls of an agent have to end, when the call that it answers is interrupted."""


class Conversing:
    """A conversation that is open here, and those that its calls have begun."""

    def __init__(  # noqa: PLR0913 - what those share that are open together
        self,
        *,
        run: Run,
        runtime: Runtime,
        setup: Setup,
        approvals: Approvals | None,
        models: set[NamedModel],
        hear: Hear,
        configure: Configure | None = None,
    ) -> None:
        """Prepare; nothing is owned before it is opened. `models` are those to be closed once."""
        if isinstance(setup.model, NamedModel):
            setup.model.open()
            models.add(setup.model)
        self._models = models
        self.children: Final[dict[str, Conversing]] = {}
        """By their runs."""
        self.talk: Final = Talk(
            run=run,
            runtime=runtime,
            setup=attrs.evolve(setup, tools=self._bound),
            hear=self._heard,
            configure=configure,
        )
        self._tools_of = setup.tools or runtime.tools_of
        self._given: Toolbox | None = None
        self._tools = Toolbox()
        self._approvals = approvals
        self._looking = False
        self._hear = hear

    async def open(self) -> None:
        """Own the run, and perform what it owes. Raises what `Runtime.open_run` raises."""
        await self.talk.open()
        self._look_soon()
        for call in self.doubts():
            self._warn(call)
        await self._stop_left_over()

    def pending(self) -> tuple[CallView, ...]:
        """Return the calls that wait for a person, here and in what was begun here."""
        below = (call for child in self.children.values() for call in child.pending())
        return (*self.talk.pending(), *below)

    def doubts(self) -> tuple[CallView, ...]:
        """Return the calls of which nobody knows what became, here and in what was begun here."""
        conversation = self.talk.conversation
        turn = conversation.turns.get(conversation.turn_id or "")
        own = () if turn is None else turn.calls.waiting_for(Waits.RESOLUTION)
        return (*own, *(call for child in self.children.values() for call in child.doubts()))

    def result(self) -> RunResult:
        """Return what came of the latest prompt."""
        conversation = self.talk.conversation
        answers = conversation.answers
        return RunResult(
            text=conversation.text,
            stop=answers[-1].stop if answers else Stop.OTHER,
            tokens=sum((answer.tokens for answer in answers), Tokens()),
            answers=len(answers),
            run_id=self.talk.run_id,
            interrupted=conversation.interrupted,
        )

    async def perform(self, context: ToolContext, setup: Setup, prompt: str) -> str:
        """Have another agent work for a call of this conversation, and return what it says."""
        run = run_of(context.idempotency_key)
        child = self.children[run.run_id] = self._child(run, setup)
        drain: float | None = None
        try:
            await child.open()
            if not child.talk.conversation.said:
                await child.talk.say(Prompt(text=prompt))
            await child.talk.go_on()
        except asyncio.CancelledError:
            drain = 0.0
            if context.why_cancelled == INTERRUPTED:
                drain = STOPPING
                await child.talk.interrupt(reason=INTERRUPTED, grace=STOPPING)
            raise
        except (HookFailed, LimitReached, ModelError) as error:  # nobody goes on there
            await child.talk.interrupt(reason="it failed", grace=STOPPING)
            _log.warning("the agent that answers %s failed: %s", context.idempotency_key, error)
            kind = next(it for it in FAILED if isinstance(error, it))
            raise kind(FAILED[kind]) from error
        finally:
            del self.children[run.run_id]
            await child.talk.close(drain=drain)
        result = child.result()
        if result.interrupted:
            raise ToolCancelled("it was stopped before it had an answer")
        return result.text

    def _child(self, run: Run, setup: Setup) -> Conversing:
        return Conversing(
            run=run,
            runtime=self.talk.runtime,
            setup=setup,
            approvals=self._approvals,
            models=self._models,
            hear=self._heard_below,
        )

    async def _stop_left_over(self) -> None:
        """Stop the agents whose calls were interrupted when nobody was there to tell them."""
        conversation, runtime = self.talk.conversation, self.talk.runtime
        turn = conversation.turns.get(conversation.turn_id or "")
        tools = self._tools_of(self.talk.run_id)
        for call in () if turn is None or turn.grace_until is None else turn.calls:
            asked = tools.get(call.tool_name)
            if not isinstance(asked, AgentTool):
                continue
            run = run_of(idempotency_key(call.path))
            with suppress(UnknownRun):  # it had not begun
                if not (await runtime.journal.entry(run.run_id)).busy:
                    continue
                child = self._child(run, asked.setup)
                try:
                    await child.open()
                    await child.talk.interrupt(reason=INTERRUPTED, grace=STOPPING)
                finally:
                    await child.talk.close(drain=0.0)

    def _bound(self, run_id: str) -> Toolbox:
        """Return the tools of this run; those that are agents work for it."""
        given = self._tools_of(run_id)
        if given is not self._given:
            tools = (it.bound(self) if isinstance(it, AgentTool) else it for it in given.values())
            self._given, self._tools = given, Toolbox(tools, cipher=given.cipher)
        return self._tools

    def _heard(self, event: Event) -> None:
        self._hear(event)
        if isinstance(event, CallUpdate):
            self._look_soon()
            if event.call.waits is Waits.RESOLUTION:
                self._warn(event.call)

    def _warn(self, call: CallView) -> None:
        """Say that a person has to say what became of a call; without it nothing goes on."""
        asked = self._bound(call.run_id).get(call.tool_name)
        if asked is None or asked.policy.doubt_rule is InDoubt.ASK:
            _log.warning(
                "%s of %r is in doubt: it was started, and nobody knows whether it happened; find"
                " out, and say so with Agent.resolve or turnlock resolve",
                call.path,
                call.tool_name,
            )

    def _heard_below(self, event: Event) -> None:
        if isinstance(event, CallUpdate):
            self._hear(event)

    def _look_soon(self) -> None:
        """Have people asked about what waits, once for all that changes at the same time."""
        if self._approvals is not None and not self._looking:
            self._looking = True
            asyncio.get_running_loop().call_soon(self._look)

    def _look(self) -> None:
        self._looking = False
        if self._approvals is not None:
            self._approvals.look(self.talk.runtime, self.talk.run_id, self.talk.pending())


def run_of(key: str) -> Run:
    """Return the run of the agent that answers a call, by the call's idempotency key (K-7)."""
    return Run(run_id=key)


async def _belongs_to_nobody(prompt: str) -> str:
    raise ToolCancelled(f"no agent has this tool: give it to one in tools=[…] ({prompt!r})")


@attrs.frozen(kw_only=True, eq=False)
class AgentTool(Tool):
    """An agent as a tool: it is asked by a prompt, and its last answer is the result.

    It is safe to repeat, whatever its own tools do: they are called in a run of its own, which is
    gone on with. What waits for approval there waits for the same people.
    """

    setup: Setup

    def bound(self, host: Conversing) -> Tool:
        """Return the tool as it works for one conversation."""
        setup = self.setup

        async def ask(prompt: str, context: ToolContext) -> str:
            return await host.perform(context, setup, prompt)

        return Tool(
            name=self.name,
            call=ask,
            description=self.description,
            policy=self.policy,
            delegates=True,
        )


def agent_tool(setup: Setup, *, name: str, description: str, approval: bool = False) -> Tool:
    """Return an agent of this setup as a tool. Raises `InvalidValue`."""
    return AgentTool(
        name=name,
        call=_belongs_to_nobody,
        description=description,
        policy=Policy(
            approval=approval,
            safe_to_repeat=True,
            in_doubt=InDoubt.RETRY_IF_SAFE,
            lease=LEASE,
        ),
        setup=attrs.evolve(setup, tools=setup.tools or ()),
    )
