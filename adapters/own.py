"""Our own agent loop and runtime, behind the contract of adapters (S-1, S-10 … S-12).

All runs are performed by one `Runtime`; each is another conversation of one of the server's agents.
The runtime keeps, judges and performs by itself: a session only says what is said next, and when.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from ..agent.conversation import Conversation, Owed
from ..agent.errors import ConversationBroken, LimitReached
from ..agent.keeping import as_said
from ..agent.loop import Agent
from ..agent.providers.client import MissingClient
from ..agent.setup import NamedModel
from ..agent.speaking import Model
from ..models.deliveries import Report
from ..models.effects import Effect
from ..models.errors import InvalidValue, UnknownRun, shown
from ..models.fact import Fact
from ..models.run import OWN, Run
from ..models.safe_text import harmless
from ..models.values import Json
from ..runtime.journal.ledger import Domain, Note, Noted
from ..runtime.runtime import Runtime
from ..runtime.tools.policy import InDoubt
from ..runtime.tools.sealing import SealBroken
from ..runtime.tools.toolbox import Toolbox
from ..views.call_view import CallView, Waits
from .contract import (
    Announced,
    Capabilities,
    CommandRefused,
    Ending,
    Manifest,
    ModelInfo,
    Question,
    Session,
    SessionSpec,
    Sink,
    TurnSent,
    UserMessage,
)

ASIDE: Final = frozenset({"drained", "rested"})
"""Why a session ends whose run is to go on as if nothing had been (S-97)."""


class OwnAdapter:
    """Performs runs of our own kind by the server's agents, on one runtime."""

    def __init__(
        self, *, runtime: Runtime, agents: Mapping[str, Agent], default: str | None = None
    ) -> None:
        """Offer these agents by name; the `default` is the first unless it is named.

        The runtime is the caller's, and is to take nothing over by itself (`Settings.takes_over`):
        it is the manifest of a run that says which agent goes on with it.
        """
        if not agents:
            raise InvalidValue(place="agents", cause="is empty", fix="give at least one agent")
        self.kind: Final = OWN
        self.capabilities: Final = Capabilities()
        self.settings: Final = frozenset({"agent", "model"})
        self.options: Final[frozenset[str]] = frozenset()
        self.keeps_messages: Final = True
        self.runtime: Final = runtime
        self.agents: Final = dict(agents)
        self.default: Final = next(iter(agents)) if default is None else default
        if self.default not in self.agents:
            raise InvalidValue(
                place="default",
                cause=f"{shown(self.default)} is none of the agents",
                fix=f"name one of {', '.join(self.agents)}",
            )

    async def close(self) -> None:
        """Close the models that were made for its sessions."""
        for agent in self.agents.values():
            await agent.close_models()

    async def models(self, *, reload: bool = False) -> tuple[ModelInfo, ...]:  # noqa: ARG002 - they are what the agents have
        """Return the models of the agents, that of the default agent first (S-85)."""
        return tuple(
            ModelInfo(name=name, provider=_provider(name), default=name == self._default_model)
            for name in self._models
        )

    async def check(self, spec: SessionSpec) -> SessionSpec:
        """Return it with its agent's name; `CommandRefused` for what is not offered (S-51)."""
        self._agent(spec)
        self._model(spec)
        return attrs.evolve(spec, agent=spec.agent or self.default)

    async def may_live(self, epoch: Mapping[str, Json]) -> str | None:  # noqa: ARG002 - of the contract
        """Return nothing: who owns a run is what says so for our own (K-35)."""
        return None

    def announced(
        self,
        manifest: Manifest,  # noqa: ARG002 - of the contract
        notes: Sequence[Noted],  # noqa: ARG002
        facts: Sequence[Fact],  # noqa: ARG002
    ) -> Announced | None:
        """Return nothing: we start what runs."""
        return None

    async def create(self, spec: SessionSpec, sink: Sink) -> Session:
        """Own the run, and go on with what it owes, as whoever began it declared it (S-52).

        Raises what `Runtime.open_run` raises.
        """
        agent, model = self._agent(spec), self._model(spec)
        await self.check_conversation(spec)
        run = await self._declared(spec.run_id)
        begun = agent.begin(run=run, runtime=self.runtime, tell=sink.pass_on, model=model)
        try:
            await begun.__aenter__()
        except (ConversationBroken, SealBroken) as error:
            raise CommandRefused("runtime_reference_invalid", str(error)) from error
        except (InvalidValue, MissingClient) as error:  # of its model: a key that is not there, say
            raise CommandRefused("runtime_unavailable", harmless(str(error))) from error
        return OwnSession(begun, sink)

    async def check_conversation(self, spec: SessionSpec) -> None:
        """Raise `CommandRefused` for a run whose notes are no conversation (S-52).

        They are only read: whoever owns such a run would bring it to rest, and could not go on.
        """
        run_id = spec.run_id
        try:
            notes = await self.runtime.notes(run_id)
            Conversation(run_id).load(as_said(notes, self.tools_of(spec).seals, run_id=run_id))
        except UnknownRun:
            return
        except (ConversationBroken, SealBroken) as error:
            raise CommandRefused("runtime_reference_invalid", str(error)) from error

    async def _declared(self, run_id: str) -> Run:
        try:
            return (await self.runtime.journal.entry(run_id)).run
        except UnknownRun:
            return Run(run_id=run_id)

    async def restore(self, manifest: Manifest, sink: Sink) -> Session:
        """Go on with a run, which needs nothing but what it is (S-52)."""
        return await self.create(manifest.spec, sink)

    def tools_of(self, spec: SessionSpec) -> Toolbox:
        """Return the tools that a run of this session has, or would have."""
        of = self._agent(spec).tools or self.runtime.tools_of
        return of(spec.run_id)

    @property
    def _models(self) -> dict[str, Model]:
        """The models by name, that of the default agent first; of one name the first stays."""
        names = [self.default, *(it for it in self.agents if it != self.default)]
        found: dict[str, Model] = {}
        for name in names:
            model = self.agents[name].model
            found.setdefault(_named(model, of=name), model)
        return found

    @property
    def _default_model(self) -> str:
        return _named(self.agents[self.default].model, of=self.default)

    def _agent(self, spec: SessionSpec) -> Agent:
        agent = self.agents.get(self.default if spec.agent is None else spec.agent)
        if agent is None:
            raise CommandRefused(
                "invalid_value",
                f"{shown(spec.agent)} is no agent of this server; it has {', '.join(self.agents)}",
                at="agent",
            )
        return agent

    def _model(self, spec: SessionSpec) -> Model | None:
        if spec.model is None:
            return None
        offered = self._models
        if spec.model not in offered:
            raise CommandRefused(
                "model_unavailable_for_runtime",
                f"{shown(spec.model)} is no model of runs of kind {OWN!r};"
                f" there are {', '.join(offered)}",
            )
        return offered[spec.model]


class OwnSession:
    """One conversation that is performed here now."""

    def __init__(self, agent: Agent, sink: Sink) -> None:
        """Take over an agent that is entered."""
        self._agent = agent
        self._sink = sink
        self._run_id: Final = agent.run_id
        self._runtime: Final = agent.runtime
        self._left = False

    @property
    def epoch(self) -> Mapping[str, Json]:
        """Return which process performs it."""
        return {"process": self._runtime.owner, "settlement": "response"}

    @property
    def at_work(self) -> bool:
        """Whether the model is asked, or calls run that wait for no person."""
        if self._left:
            return False
        conversation = self._agent.conversation
        if conversation.owed is not Owed.RESULTS:
            return True
        turn = conversation.turns[conversation.turn_id or ""]
        return turn.calls.any_waiting_for(Waits.REPORT, Waits.CLAIM, Waits.RETRY)

    async def settled(self) -> None:
        """Go on until a person has the word, or the answers that one prompt may cost are spent.

        Raises what `Agent.run` raises.
        """
        try:
            await self._agent.run()
        except LimitReached as error:
            said = len(self._agent.conversation.said)
            note = Note(
                domain=Domain.ERROR,
                kind="limit_reached",
                body={"text": str(error)},
                at=self._runtime.now(),
                id=f"limit/{said}",
            )
            await self._sink.hear([note], [])

    async def send_turn(self, message: UserMessage, *, message_id: str) -> TurnSent:
        """Have the prompt kept as said; `settled` goes on with it."""
        await self._agent.say(message.text, message_id=message_id)
        return TurnSent()

    async def was_sent(self, message_id: str) -> TurnSent | None:  # noqa: ARG002 - of the contract
        """Say that it was: what is kept as said is gone on with (S-81)."""
        return TurnSent()

    async def interrupt(self, turn_id: str) -> None:
        """Do nothing: the runtime has performed it."""

    async def stop(self, *, reason: str | None, grace: float) -> bool:
        """Stop what goes on: the model that is asked, the turn that is open (K-53)."""
        return await self._agent.interrupt(reason=reason, grace=grace)

    async def perform(self, effect: Effect) -> None:
        """Do nothing: the runtime performs what it owes."""

    async def taken(self, turn_id: str) -> None:
        """Do nothing: the agent takes its results itself."""

    async def learn(self, facts: Sequence[Fact]) -> None:
        """Do nothing: the conversation follows the run."""

    def asks(self, turn_id: str, invocation_id: str) -> bool:  # noqa: ARG002 - of the contract
        """Say that none is: our tools ask a person in their own ways."""
        return False

    def unanswered(self) -> Sequence[Question]:
        """Return none: our tools ask a person in their own ways."""
        return ()

    async def evidence(self, doubts: Sequence[CallView]) -> Sequence[Report]:  # noqa: ARG002 - of the contract
        """Return nothing: the runtime asks the tools themselves (K-35)."""
        return ()

    def kill(self) -> None:
        """Do nothing: the runtime performs nothing of a run that it lost."""

    def doubts(self) -> tuple[CallView, ...]:
        """Return the calls in doubt that nobody settles but a person (K-35)."""
        if self._left:
            return ()
        return tuple(call for call in self._agent.doubts() if self._asks(call))

    def _asks(self, call: CallView) -> bool:
        if call.run_id != self._run_id:
            return True
        tool = self._runtime.tools(call.run_id).get(call.tool_name)
        return tool is None or tool.policy.doubt_rule in {InDoubt.ASK, InDoubt.PROBE}

    async def terminate(self, *, why: str, grace: float) -> Ending:
        """Stop what goes on; what runs may report for so many seconds.

        Where it is put aside, by a server that stops say, what only waits for a person or a model
        is left as it stands: it needs no process, and the next one goes on with it.
        """
        is_ours = self._run_id in self._runtime.runs
        if is_ours and (why not in ASIDE or self._runs()):
            await self._agent.interrupt(reason=why, grace=grace)
        return Ending(why=why)

    def _runs(self) -> bool:
        """Whether calls run."""
        conversation = self._agent.conversation
        turn = conversation.turns.get(conversation.turn_id or "")
        return turn is not None and turn.calls.any_waiting_for(Waits.REPORT)

    async def leave(self) -> None:
        """Let the run go; whoever opens it next goes on."""
        if not self._left:
            self._left = True
            await self._agent.__aexit__(None, None, None)


def _named(model: Model, *, of: str) -> str:
    """Return the name of a model: its text, what it says itself, or its agent's."""
    name = model.name if isinstance(model, NamedModel) else getattr(model, "spec", None)
    return name if isinstance(name, str) and name else of


def _provider(name: str) -> str | None:
    provider, colon, _ = name.partition(":")
    return provider if colon else None
