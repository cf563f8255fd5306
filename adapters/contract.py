"""What a server asks of a runtime that performs runs, and what it is told by it (S-10 … S-13).

An adapter is a class that fits `RuntimeAdapter`; nothing is registered by import. The kernel judges
everything: a session says what it has heard as observations and deliveries, and performs effects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import attrs

from ..agent.transients import Transient
from ..models.calls import Call
from ..models.deliveries import Delivery, Report, Scope
from ..models.effects import Effect
from ..models.errors import TurnlockError
from ..models.fact import Fact
from ..models.run import OWN
from ..models.values import Json
from ..models.verdicts import Verdict
from ..runtime.journal.ledger import Note, Noted
from ..views.call_view import CallView

Observation: TypeAlias = Note
"""What an external runtime said: a note of any domain but message and session."""

Settlement: TypeAlias = Literal["response", "turn"]
"""What a turn of the kernel is in another runtime: one response, or all of a turn (S-31, S-32)."""

VERSION = 1
"""Of manifests: one of a later version is not read (S-52)."""


@attrs.frozen(kw_only=True)
class Capabilities:
    """What runs of a kind can do (S-11); interrupt and terminate are always allowed (S-12)."""

    approve: bool = True
    deny: bool = True
    interrupt: bool = True
    terminate: bool = True
    steer: bool = False
    restore: bool = True
    models: bool = True
    resolve: bool = True
    retry: bool = True
    edit_arguments: bool = True
    scopes: tuple[Scope, ...] = (Scope.ONCE, Scope.TURN, Scope.SESSION)
    settlement: Settlement = "response"
    execution: Literal["owned", "observed", "both"] = "owned"


@attrs.frozen(kw_only=True)
class ModelInfo:
    """A model that runs of a kind may have."""

    name: str
    provider: str | None = None
    default: bool = False


@attrs.frozen(kw_only=True)
class SessionSpec:
    """What a session is to be: the `session` note of its manifest (S-50)."""

    run_id: str
    kind: str = OWN
    agent: str | None = None
    model: str | None = None
    cwd: str | None = None
    approval_policy: str | None = None
    sandbox: str | None = None
    options: Mapping[str, Json] = attrs.field(factory=dict[str, Json])
    parent: str | None = None
    """The run whose sub-agent it is (S-56)."""


@attrs.frozen(kw_only=True)
class Manifest:
    """The fold of the `session` notes of a run: what it is, and its latest process (S-50)."""

    spec: SessionSpec
    epoch: Mapping[str, Json] | None = None
    """`process`, `host`, `thread_id`, `runtime_version`, `settlement` of the latest one."""
    closed: Mapping[str, Json] | None = None
    """How the latest session ended; None while none has since the latest epoch."""
    version: int = VERSION


@attrs.frozen(kw_only=True)
class Announced:
    """What a dead process has only announced of its last turn: it may have run (S-23)."""

    turn_id: str
    """Of the kernel, and unused: the turn that is opened for it, where none is open that is a part
    of the same turn there."""
    calls: tuple[Call, ...]


@attrs.frozen(kw_only=True)
class UserMessage:
    """What a person says."""

    text: str


@attrs.frozen(kw_only=True)
class TurnSent:
    """A message that the runtime has taken; `turn_id` where a turn of its own is known."""

    turn_id: str | None = None
    steered: bool = False


@attrs.frozen(kw_only=True)
class Question:
    """A call that asks the user something (S-28)."""

    run_id: str
    turn_id: str
    invocation_id: str


@attrs.frozen(kw_only=True)
class Ending:
    """How a session ended (S-54)."""

    why: str
    """`terminated`, `orphaned`, `drained`, `rested`, `failed`, or `fenced`."""
    exit_status: int | None = None
    said: str = ""
    """The last of what its process wrote to standard error, made harmless."""


class Sink(Protocol):
    """What an adapter says of a run."""

    @property
    def run_id(self) -> str:
        """The run that it is said of."""
        ...

    async def hear(
        self, observations: Sequence[Observation], deliveries: Sequence[Delivery]
    ) -> tuple[Verdict, ...]:
        """Keep the observations, then have the deliveries judged; all is durable then (S-10)."""
        ...

    def pass_on(self, transient: Transient) -> None:
        """Pass on what is not kept (S-75)."""
        ...

    async def ended(self, ending: Ending) -> None:
        """Learn that the session has ended by itself (S-54)."""
        ...

    def child(self, thread_id: str, *, settlement: Settlement) -> Sink:
        """Return what is said of a thread that this one has begun: a run of its own (S-56).

        It is made with the first that is kept of it. What is kept of it is learnt by this session,
        which performs it.
        """
        ...

    async def owns(self) -> bool:
        """Whether the run is ours still; the journal is asked, if need be (S-44)."""
        ...

    def now(self) -> float:
        """Return the Unix time by which observations are stamped."""
        ...

    async def worker_for(self, process: str) -> str:
        """Return an opaque id for a process; the journal keeps what it stands for (S-50)."""
        ...


class Session(Protocol):
    """A run that is being performed now."""

    @property
    def epoch(self) -> Mapping[str, Json]:
        """What its `epoch` note says: `process`, `host`, `thread_id`, and so on (S-50)."""
        ...

    @property
    def at_work(self) -> bool:
        """Whether something goes on in it that waits for no person."""
        ...

    async def settled(self) -> None:
        """Go on until nothing is owed, and a message may be sent (S-83). Raises what ends it."""
        ...

    async def send_turn(self, message: UserMessage, *, message_id: str) -> TurnSent:
        """Have the runtime take a message that was kept (S-81)."""
        ...

    async def was_sent(self, message_id: str) -> TurnSent | None:
        """Look up, after a crash, whether the runtime took a message; None: nobody knows (S-81)."""
        ...

    async def interrupt(self, turn_id: str) -> None:
        """Perform an interrupt, after the kernel's verdict (S-45)."""
        ...

    async def stop(self, *, reason: str | None, grace: float) -> bool:
        """Stop what goes on, between turns as well; False where nothing did."""
        ...

    async def perform(self, effect: Effect) -> None:
        """Perform an execute, cancel or continue of this run."""
        ...

    async def taken(self, turn_id: str) -> None:
        """Return once the runtime has gone on from the results of a turn of the kernel (S-29)."""
        ...

    async def learn(self, facts: Sequence[Fact]) -> None:
        """Learn facts once they are kept: a denial, say (S-42)."""
        ...

    def asks(self, turn_id: str, invocation_id: str) -> bool:
        """Whether a call is a question to the user, which a person may answer (S-28)."""
        ...

    def unanswered(self) -> Sequence[Question]:
        """Return the questions to the user that wait, of its run and those of its sub-agents."""
        ...

    async def evidence(self, doubts: Sequence[CallView]) -> Sequence[Report]:
        """Return how calls in doubt ended, where the runtime has kept that (S-27)."""
        ...

    def kill(self) -> None:
        """End the process at once, and write nothing to it any more: the run is another's (S-49).

        What follows is `terminate`, as for any session.
        """
        ...

    async def terminate(self, *, why: str, grace: float) -> Ending:
        """End what goes on, and the process that performs it (S-47); the run is owned still."""
        ...

    async def leave(self) -> None:
        """Let the run go, once how it ended is kept; done again, it changes nothing."""
        ...


class RuntimeAdapter(Protocol):
    """What speaks to the runtimes of one kind."""

    @property
    def kind(self) -> str:
        """The kind of its runs (K-61)."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What they can do."""
        ...

    @property
    def settings(self) -> frozenset[str]:
        """Which of `agent`, `model`, `cwd`, `approval_policy`, `sandbox` a run of it may name."""
        ...

    @property
    def options(self) -> frozenset[str]:
        """Which `options` a run of it may name."""
        ...

    @property
    def keeps_messages(self) -> bool:
        """Whether its sessions keep what is said themselves, as our own do (`said/N`)."""
        ...

    async def models(self, *, reload: bool = False) -> tuple[ModelInfo, ...]:
        """Return the models that a run may have (S-85)."""
        ...

    async def check(self, spec: SessionSpec) -> SessionSpec:
        """Return it with what it leaves out. Raises `CommandRefused` for what no session can be."""
        ...

    async def may_live(self, epoch: Mapping[str, Json]) -> str | None:
        """Return why the process of an epoch may live still; None: it is known to be dead (S-49).

        The words are shown to clients: they name no host and no process (F-6).
        """
        ...

    def announced(
        self, manifest: Manifest, notes: Sequence[Noted], facts: Sequence[Fact]
    ) -> Announced | None:
        """Return what the last process announced and nobody added, by all that is kept (S-23)."""
        ...

    async def create(self, spec: SessionSpec, sink: Sink) -> Session:
        """Begin a session for a run that is declared and has its `session` note (S-51)."""
        ...

    async def restore(self, manifest: Manifest, sink: Sink) -> Session:
        """Begin a session for a run that had one (S-52)."""
        ...


class CommandRefused(TurnlockError):
    """A command that was not done; `code` is its name for clients (S-84)."""

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        at: str | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        """Say which, and why in words for people; `at` is the path of a field, for what is 422."""
        super().__init__(detail)
        self.code = code
        self.at = at
        self.extra: Mapping[str, Any] = dict(extra or {})
