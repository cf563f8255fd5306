"""Models behind the official clients of their providers, each an extra (W-50)."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from ...models.errors import InvalidValue, shown
from ..speaking import Model

MODELS: Final = {
    "openai": ("chat_completions", "ChatCompletionsModel"),
    "openai-responses": ("responses", "ResponsesModel"),
    "anthropic": ("anthropic", "AnthropicModel"),
    "google": ("google", "GoogleModel"),
}
"""The module and the class of each provider's models."""


def open_model(spec: str, **options: Any) -> Model:  # noqa: ANN401 - each provider has its own
    """Return the model ``PROVIDER:NAME``, its client imported now.

    All take `base_url`, `api_key` and `timeout` (seconds of silence); what else one takes, its
    class says. Raises `InvalidValue` for another provider, and `MissingClient`.
    """
    provider, colon, name = spec.partition(":")
    if provider not in MODELS or not colon or not name:
        raise InvalidValue(
            place="model",
            cause=f"{shown(spec)} names no model of a provider",
            fix=f"give one as PROVIDER:NAME, with {', '.join(MODELS)} for the provider",
        )
    module, kind = MODELS[provider]
    made: Model = getattr(import_module(f".{module}", __name__), kind)(model=name, **options)
    return made
