"""What a host gives its members: models, which speak when it is their turn, and tools (W-60)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from ..agent.setup import Setup
from ..agent.speaking import Model
from ..models.errors import InvalidValue, shown
from ..runtime.tools.toolbox import Toolbox
from .configuration import AgentConfig
from .endpoint_models import Models
from .host_declared import HostFile
from .member_tools import HostTools, Toolboxes
from .model_slots import Queued, Slots
from .spec import AgentSpec

ModelsOf: TypeAlias = Mapping[str, Model] | Callable[[Any], Model]
"""The models of a host: by the text in a spec, or a function of an `AgentSpec` that returns its
model, the same one each time, or raises `TurnlockError`."""


class Provided:
    """The models and tools of one host; those that are given are the giver's to close."""

    def __init__(self, models: ModelsOf | None, toolboxes: Toolboxes) -> None:
        """Hold these; without models those of the providers. Raises `InvalidValue`."""
        self._own: Final = Models(HostFile()) if models is None else None
        self._models: Final[ModelsOf] = self._own or {} if models is None else models
        self._tools: Final = HostTools(toolboxes)
        self._slots: Final = Slots()
        self._setups: dict[int, Setup] = {}
        """By the entries of the specs."""

    async def close(self) -> None:
        """Close the models that were made here."""
        if self._own is not None:
            await self._own.close()

    def setup(self, config: AgentConfig) -> Setup:
        """Return what an agent's answers are asked with; made once for each entry of its spec.

        Raises what making its model raises.
        """
        spec, made = config.spec, self._setups.get(config.entry)
        if made is None:
            made = self._setups[config.entry] = Setup(
                model=self.queued(self._model(spec), spec.model),
                tools=(),
                instructions=spec.instructions,
                answer_limit=spec.answer_limit,
                token_limit=spec.token_limit,
                start=spec.start.value,
                history=spec.history,
                configuration=config.entry,
            )
        return made

    def keep(self, configs: Iterable[AgentConfig]) -> None:
        """Forget what was made for other specs than these."""
        entries = {config.entry for config in configs}
        self._setups = {entry: it for entry, it in self._setups.items() if entry in entries}

    def tools(self, run_id: str, config: AgentConfig | None) -> Toolbox:
        """Return the tools of a member whose agent this is; none, where it is none any more."""
        return self._tools.of(run_id, () if config is None else config.spec.tools)

    def queued(self, model: Model, named: str) -> Model:
        """Return a model that waits for its turn among those of its endpoint."""
        return Queued(model, self._slots, endpoint=named.partition(":")[0])

    def _model(self, spec: AgentSpec) -> Model:
        models = self._models
        if callable(models):
            return models(spec)
        if spec.model not in models:
            raise InvalidValue(
                place="model",
                cause=f"this host has no model {shown(spec.model)}",
                fix=f"give one of {', '.join(sorted(models)) or 'none: it has none'}",
            )
        return models[spec.model]
