"""An agent: a model, its tools, and one conversation, which goes on where it stopped.

    async with Agent(model=model, tools=[weather, pay], journal="agent.db") as agent:
        print(await agent.run("What is the weather?"))

All that was said and done is in the journal before anything follows from it (see `conversation`):
the same lines after a crash go on where it stopped.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Final, Self, TypeVar, overload

import attrs

from ..models.deliveries import Resolution
from ..models.errors import InvalidValue
from ..models.run import Run
from ..models.values import ABSENT, Absent, Json
from ..models.verdicts import Verdict
from ..runtime.errors import Closed
from ..runtime.journal.contract import Journal, open_journal
from ..runtime.journal.memory import MemoryJournal
from ..runtime.runtime import Runtime
from ..runtime.scheduling import Clock
from ..runtime.settings import Settings
from ..runtime.telemetry import Telemetry
from ..runtime.tools.tool import Tool
from ..runtime.tools.toolbox import ToolsOf
from ..views.call_view import CallView
from .approving import Approvals, Approve, AskApproval, Deny, decide, resolve
from .asking import tell_nobody
from .conversation import Conversation
from .delegating import Conversing, agent_tool
from .errors import ModelError
from .events import Event, Events, RunResult
from .messages import Prompt
from .setup import ANSWERS, AfterAnswer, BeforeAnswer, Configure, NamedModel, Setup, Start, Tools
from .speaking import JsonSchema, Model
from .structured import Form, Misfit, form_of
from .transients import Transient

T = TypeVar("T")

GRACE: Final = 10.0
"""Seconds in which what runs may still report, once its turn was interrupted (K-53)."""


class Agent:
    """One conversation of a model with its tools. Enter it in the loop that it is to live in.

    It has a runtime of its own, or performs its run on one that is shared: give `runtime` to each
    of many agents, and none of them polls by itself.
    """

    def __init__(  # noqa: PLR0913 - each but the model has a default that serves
        self,
        *,
        model: Model | str,
        tools: Tools | None = None,
        instructions: str = "",
        run: str | Run = "agent",
        journal: str | os.PathLike[str] | Journal | None = None,
        runtime: Runtime | None = None,
        approve: AskApproval | None = None,
        answer_limit: int = ANSWERS,
        token_limit: int | None = None,
        before_answer: BeforeAnswer | None = None,
        after_answer: AfterAnswer | None = None,
        start: Start = "whole",
        history: int | None = None,
        asks_again: int = 0,
        configure: Configure | None = None,
        checks_grants: bool = False,
        tell: Callable[[Transient], None] = tell_nobody,
        settings: Settings | None = None,
        clock: Clock | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        """Prepare; nothing is owned before it is entered.

        `model` is yours to close, or a text as `open_model` takes it, ``PROVIDER:NAME``: then it is
        made when the agent is entered, and closed when it is left. Without `tools` it has those of
        the `runtime` that it shares (W-60), or none. `journal` is a file or URL,
        which is opened and closed here, or one that is yours; without any, all is in memory.
        `approve` is asked about calls that wait (see `AskApproval`), also of agents that are tools.
        With `start="early"` a call starts as soon as the model has closed it, while it still speaks
        (W-58). With `history` the model is told of at most so many prompts (W-35); where its answer
        is empty it is asked again up to `asks_again` times (W-28). `configure` says before each
        answer what counts for it, in place of what is given here (W-34). With `checks_grants` a
        grant is revoked whose tool was declared otherwise when it was asked for. `tell` hears what
        is said as transients of the entry `RUN/said/N`, and must not raise. A shared `runtime` is
        yours to enter and to leave, and has journal, settings, clock and telemetry of its own.
        Raises `InvalidValue`.
        """
        self._setup: Final = Setup(
            model=model,
            tools=tools,
            instructions=instructions,
            answer_limit=answer_limit,
            token_limit=token_limit,
            before_answer=before_answer,
            after_answer=after_answer,
            start=start,
            history=history,
            asks_again=asks_again,
            checks_grants=checks_grants,
            tell=tell,
        )
        self._configure = configure
        own = (journal, settings, clock, telemetry)
        if runtime is not None and any(given is not None for given in own):
            raise InvalidValue(
                place="runtime",
                cause="is shared, and has a journal, settings, clock and telemetry of its own",
                fix="give these to the Runtime",
            )
        self._run: Final = Run(run_id=run) if isinstance(run, str) else run
        self._shared = runtime
        self._journal = MemoryJournal() if journal is None else journal
        self._settings = attrs.evolve(settings or Settings(), takes_over=False)
        self._clock = clock
        self._telemetry = telemetry
        self._approve = approve
        self._conversing: Conversing | None = None
        self._models: set[NamedModel] = set()
        self._begun_from: Agent | None = None
        """Whose models these are to close, where it is a conversation of many (`begin`)."""
        self._watching: set[Events] = set()
        self._line = asyncio.Lock()
        self._exit = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Own the run, and perform what it owes. Raises what `Runtime.open_run` raises."""
        if self._conversing is not None:
            raise InvalidValue(
                place=f"run {self.run_id!r}", cause="is entered already", fix="make another Agent"
            )
        self._line = asyncio.Lock()  # of this loop: the last may have been another
        async with AsyncExitStack() as stack:
            runtime = self._shared
            if runtime is None:
                journal = self._journal
                if not isinstance(journal, Journal):
                    journal = await stack.enter_async_context(await open_journal(journal))
                runtime = Runtime(
                    journal=journal,
                    settings=self._settings,
                    clock=self._clock,
                    telemetry=self._telemetry,
                )
                await stack.enter_async_context(runtime)
            approvals = None if self._approve is None else Approvals(self._approve)
            if approvals is not None:
                stack.push_async_callback(approvals.close)
            if self._begun_from is None:
                stack.push_async_callback(self.close_models)
            self._conversing = Conversing(
                run=self._run,
                runtime=runtime,
                setup=self._setup,
                approvals=approvals,
                models=self._models,
                hear=self._hear,
                configure=self._configure,
            )
            stack.push_async_exit(self._leave)
            await self._conversing.open()
            self._exit = stack.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Hand the run over; after an error at once, otherwise when what runs has ended."""
        await self._exit.__aexit__(kind, error, traceback)

    async def run(self, prompt: str | None = None, *, heard: Json = None) -> RunResult:
        """Say something to the model, and return what came of it when a person has the word again.

        What is owed from before is done first. A prompt waits until those that came before it are
        done, in order. The same prompt again, while it is unfinished – after a crash, or after an
        error – is gone on with, and not said twice; where a hook failed after its last answer was
        kept, its result is returned. Without a prompt, go on with what is owed. `heard` is any
        JSON to be kept with it; what it came with last is never said twice.

        Raises `ModelError` when the model does not answer, `LimitReached`, `HookFailed`, and
        `RunFenced` once the run is somebody else's, or the agent was left; what is owed then is
        done by the next call.
        """
        return await self._ran(_prompt(prompt, heard), None)

    @overload
    async def ask(self, prompt: str, output: type[T]) -> T: ...
    @overload
    async def ask(self, prompt: str, output: JsonSchema) -> Json: ...

    async def ask(self, prompt: str, output: type[Any] | JsonSchema) -> Any:
        """Do as `run` does, and return the answer as a value of a type, or that a schema allows.

        Types are what pydantic knows, as a BaseModel, a dataclass or list[int] (W-59). An answer
        that does not fit is told back twice. Raises `ModelError` for the third, or where it was
        interrupted; and what `run` and `form_of` raise.
        """
        form = form_of(output)
        result = await self._ran(Prompt(text=prompt, output=form.schema), None, form=form)
        try:
            return form.read(result.text)
        except Misfit as misfit:
            cause = "it was interrupted" if result.interrupted else f"it does not fit: {misfit}"
            raise ModelError(
                f"run {self.run_id!r}: there is no answer in the form that was asked for ({cause});"
                " say what is wanted in other words, or give a simpler form"
            ) from misfit

    async def stream(
        self, prompt: str | None = None, *, heard: Json = None
    ) -> AsyncGenerator[Event]:
        """Do as `run` does, and yield what happens meanwhile; the last is the `RunResult`.

        Who stops listening (`aclose`) stops the work as well; it is gone on with by the next call.
        """
        events = Events()
        working = asyncio.ensure_future(self._ran(_prompt(prompt, heard), events))
        working.add_done_callback(lambda _: events.end())
        try:
            async for event in events:
                yield event
            yield await working
        finally:
            working.cancel()
            await asyncio.wait([working])

    def run_sync(self, prompt: str | None = None, *, heard: Json = None) -> RunResult:
        """Enter the agent, do as `run` does, and leave it: for scripts without a loop.

        Raises `InvalidValue` where a loop is running, or the runtime is shared.
        """
        if self._shared is not None or _loop_is_running():
            raise InvalidValue(
                place="run_sync",
                cause="is called where a loop is running",
                fix="write: async with agent: await agent.run(…)",
            )

        async def play() -> RunResult:
            async with self:
                return await self.run(prompt, heard=heard)

        return asyncio.run(play())

    @property
    def run_id(self) -> str:
        """The id of its run."""
        return self._run.run_id

    @property
    def runtime(self) -> Runtime:
        """The runtime that performs it. Raises `Closed` where it is not entered."""
        return self._entered.talk.runtime

    @property
    def conversation(self) -> Conversation:
        """What was said and done. Raises `Closed` where it is not entered."""
        return self._entered.talk.conversation

    def pending(self) -> tuple[CallView, ...]:
        """Return the calls that wait for a person, those of agents that are tools as well."""
        return self._entered.pending()

    async def decide(self, call: CallView, decision: Approve | Deny) -> Verdict:
        """Decide about a call of `pending()`: for what was shown, and nothing else (K-32).

        Raises `BadArguments` for edited arguments that its tool does not take: it waits still.
        """
        return await decide(self.runtime, call, decision)

    def doubts(self) -> tuple[CallView, ...]:
        """Return the calls that were started, and of which nobody knows what became (K-35).

        Where the tool's policy is to ask, they wait for `resolve`, and the agent for them.
        """
        return self._entered.doubts()

    async def resolve(
        self,
        call: CallView,
        resolution: Resolution,
        *,
        result: Json | Absent = ABSENT,
        error: str | None = None,
    ) -> Verdict:
        """Say what became of a call of `doubts()`, or that it is to be run again (K-35)."""
        return await resolve(self.runtime, call, resolution, result=result, error=error)

    async def interrupt(self, *, reason: str | None = None, grace: float = GRACE) -> bool:
        """Stop what goes on, and return once a person has the word; False where nothing did.

        A prompt that is just being said is stopped, too. Calls that have not started are denied,
        what runs may still report for `grace` seconds
        (K-53); the model is told with the next prompt. Agents that are tools are stopped, too.
        """
        return await self._entered.talk.interrupt(reason=reason, grace=grace)

    async def give_up(self, because: Json) -> bool:
        """Keep that the answer that is owed is not asked for any more, and why, as any JSON.

        For a host that hands a conversation over at a limit: a person has the word, and a higher
        limit later does not bring the answer back. Returns False where none is owed.
        """
        return await self._entered.talk.give_up(because)

    def as_tool(self, *, name: str, description: str, approval: bool = False) -> Tool:
        """Return a tool that has an agent like this one answer a prompt, in a run of its own.

        It takes model, tools, instructions, limits and hooks from here, and has no tools without
        `tools`, wherever it runs; who enters it performs it,
        and is asked for its approvals. This agent itself need not be entered.
        """
        return agent_tool(self._setup, name=name, description=description, approval=approval)

    def begin(
        self,
        *,
        run: str | Run,
        runtime: Runtime,
        tell: Callable[[Transient], None] = tell_nobody,
        model: Model | None = None,
    ) -> Agent:
        """Return another conversation of this agent, to be entered: one of many on one runtime.

        It has what this one has, but for what is given, and no watchers. This agent itself need not
        be entered. Models that are known by a text are made once for all of them, and stay open
        until `close_models`.
        """
        setup = self._setup
        begun = Agent(
            model=model or setup.model,
            tools=setup.tools,
            instructions=setup.instructions,
            run=run,
            runtime=runtime,
            approve=self._approve,
            answer_limit=setup.answer_limit,
            token_limit=setup.token_limit,
            before_answer=setup.before_answer,
            after_answer=setup.after_answer,
            start=setup.start,
            history=setup.history,
            asks_again=setup.asks_again,
            configure=self._configure,
            checks_grants=setup.checks_grants,
            tell=tell,
        )
        begun._models = self._models
        begun._begun_from = self
        return begun

    async def close_models(self) -> None:
        """Close the models that were made for it, and for what was begun from it."""
        while self._models:
            await self._models.pop().close()

    @property
    def model(self) -> Model:
        """Its model."""
        return self._setup.model

    @property
    def tools(self) -> ToolsOf | None:
        """Which tools its runs have now; None: those of the runtime."""
        return self._setup.tools

    async def say(
        self,
        prompt: str,
        *,
        message_id: str | None = None,
        heard: Json = None,
        output: JsonSchema | None = None,
    ) -> None:
        """Have a prompt kept, once all before is done; `run` goes on with it.

        With a `message_id` it is said once, whatever comes between. `output` is the form of its
        answer, as `ask` takes it. Raises as `run` does.
        """
        said = Prompt(text=prompt, output=output, heard=heard, message_id=message_id)
        conversing = self._entered
        async with self._line:
            conversing.talk.form = None
            await conversing.talk.say(said)

    @property
    def _entered(self) -> Conversing:
        if self._conversing is None:
            raise Closed(f"run {self.run_id!r}: enter the agent first (async with agent: …)")
        return self._conversing

    async def _ran(
        self, prompt: Prompt | None, events: Events | None, *, form: Form[Any] | None = None
    ) -> RunResult:
        conversing = self._entered
        async with self._line:
            if events is not None:
                self._watching.add(events)
            conversing.talk.form = form
            try:
                if prompt is not None:
                    await conversing.talk.say(prompt)
                await conversing.talk.go_on()
                return conversing.result()
            finally:
                if events is not None:
                    self._watching.discard(events)

    def _hear(self, event: Event) -> None:
        for events in self._watching:
            events.add(event)

    async def _leave(
        self,
        _: type[BaseException] | None,
        error: BaseException | None,
        __: TracebackType | None,
    ) -> None:
        conversing, self._conversing = self._conversing, None
        if conversing is not None:
            await conversing.talk.close(drain=None if error is None else 0.0)


def _prompt(prompt: str | None, heard: Json) -> Prompt | None:
    return None if prompt is None else Prompt(text=prompt, heard=heard)


def _loop_is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
