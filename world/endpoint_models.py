"""The models that a host makes: of its endpoints, and of its Python files, each made once.

A spec says ``ENDPOINT:MODEL``, an endpoint by its name in the host's configuration; without one of
that name ``PROVIDER:MODEL`` with the provider's own variables. ``file:NAME`` is what a Python file
of the host calls NAME: a model, or a function that returns one, which is given the options.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from ..agent.providers import MODELS, open_model
from ..agent.providers.client import no_key
from ..agent.speaking import Model
from ..models.errors import InvalidValue, TurnlockError, shown
from ..models.safe_text import harmless
from ..models.values import Json, canonical, freeze
from ..runtime.errors import Closed
from ..runtime.log import logger
from ..runtime.tools.errors import said
from ..runtime.tools.toolbox import run_file
from .host_declared import OF_FILES, Endpoint, HostFile
from .spec import AgentSpec
from .variables import sendable

_log = logger(__name__)

MADE: Final = 1_000
"""Models that one host makes, each of its spec and options; one more is refused."""
OWN_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "openai": ("OPENAI_API_KEY",),
    "openai-responses": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
}
"""The variables in which the official clients look for keys."""
OWN_FIELDS: Final = frozenset({
    "model", "messages", "input", "contents", "instructions", "system", "system_instruction",
    "systemInstruction", "tools", "stream", "stream_options", "response_format",
})  # fmt: skip
"""Fields of a request that are ours: no agent's options replace them."""


class Models:
    """Makes the models of specs; the same spec and options are one model, until they are closed."""

    def __init__(self, declared: HostFile) -> None:
        """Run the Python files. Raises `BadToolFile`, `InvalidValue` for a name that is twice."""
        self._declared: Final = declared
        self._of_files: Final = _of_files(declared.model_files)
        self._made: Final[dict[tuple[str, str], Model]] = {}
        self._closed = False

    def __call__(self, spec: AgentSpec) -> Model:
        """Return the model of an agent's spec. Raises what `named` raises."""
        return self.named(spec.model, spec.options)

    def named(self, model: str, options: Mapping[str, Json] | None = None) -> Model:
        """Return the model of this name, with fields of each request.

        Raises `InvalidValue` for one that there is none for, `MissingClient`, and `Closed`.
        """
        if self._closed:
            raise Closed("the host's models are closed; open its file again")
        key = model, canonical(freeze(dict(options or {}), place="options"))
        made = self._made.get(key)
        if made is None:
            if len(self._made) >= MADE:
                raise InvalidValue(
                    place="model",
                    cause=f"{shown(model)} would be model {MADE + 1:,} of this host",
                    fix="have agents share models and options",
                )
            made = self._made[key] = self._open(model, json.loads(key[1]))
        return made

    def _open(self, text: str, options: dict[str, Any]) -> Model:
        first, colon, name = text.partition(":")
        if not colon or not name:
            raise self._unknown(text)
        if first == OF_FILES:
            return self._of_file(name, options)
        if mine := sorted(OWN_FIELDS & options.keys()):
            raise InvalidValue(
                place=f"options.{mine[0]}",
                cause="is a field that is filled in here",
                fix="leave it out; options are such as temperature",
            )
        endpoint = self._declared.endpoints.get(first)
        if endpoint is None:
            if first not in MODELS:
                raise self._unknown(text)
            endpoint = Endpoint(provider=first)
        given: dict[str, Any] = {**endpoint.given, **_key(endpoint, f"endpoints.{first}.key")}
        if endpoint.base_url is not None:
            given["base_url"] = endpoint.base_url
        if options:
            given["extra"] = options
        return open_model(f"{endpoint.provider}:{name}", **given)

    def _of_file(self, name: str, options: dict[str, Any]) -> Model:
        found = self._of_files.get(name)
        if found is None:
            there = ", ".join(self._of_files)
            raise InvalidValue(
                place="model",
                cause=f"no Python file of this host makes {shown(name)}",
                fix=f"the names there are {there}"
                if there
                else "name the file that does under [models] of the host's file (--host-file)",
            )
        try:
            model = found if _is_model(found) else found(**options)
        except Exception as error:
            raise TurnlockError(
                f"model file:{harmless(name, limit=80)} could not be made: {said(error)}"
            ) from error
        if not _is_model(model):
            raise TurnlockError(
                f"model file:{harmless(name, limit=80)} has no speak and close; return a model"
            )
        made: Model = model
        return made

    def _unknown(self, text: str) -> InvalidValue:
        names = dict.fromkeys((*self._declared.endpoints, *MODELS, OF_FILES))
        return InvalidValue(
            place="model",
            cause=f"{shown(text)} names no model of this host",
            fix=f"give ENDPOINT:MODEL, the endpoint one of {', '.join(names)}",
        )

    async def close(self) -> None:
        """Close them all; one that fails in it keeps none of the others open."""
        self._closed = True
        made = list(dict.fromkeys(self._made.values()))
        self._made.clear()
        for model in made:
            try:
                await model.close()
            except Exception as error:  # noqa: BLE001 - a stranger's client may raise anything
                _log.warning("a model was not closed: %s", said(error))


def _key(endpoint: Endpoint, place: str) -> dict[str, str]:
    """Return the key of an endpoint; the provider's own is its client's to find."""
    if endpoint.key is None:
        for variable in filter(os.environ.get, OWN_KEYS[endpoint.provider]):
            sendable(variable, place)
        return {}
    if not os.environ.get(endpoint.key):
        raise no_key(endpoint.key)
    return {"api_key": sendable(endpoint.key, place)}


def _of_files(paths: tuple[Path, ...]) -> dict[str, Any]:
    """Return what Python files call models: objects that speak, and what might make such."""
    found: dict[str, Any] = {}
    at: dict[str, Path] = {}
    for path in paths:
        module = run_file(path, holds="models")
        for name, value in vars(module).items():
            if name.startswith("_") or not (_is_model(value) or _makes(value, module)):
                continue
            if name in at and at[name] != path:
                raise InvalidValue(
                    place=f"models.files: {path}",
                    cause=f"{name} is in {at[name]}, too",
                    fix="call one of them otherwise",
                )
            found[name], at[name] = value, path
    return found


def _is_model(value: object) -> bool:
    return not isinstance(value, type) and all(
        callable(getattr(value, name, None)) for name in ("speak", "close")
    )


def _makes(value: object, module: ModuleType) -> bool:
    maker: Callable[..., object] | None = value if callable(value) else None
    return maker is not None and getattr(maker, "__module__", None) == module.__name__
