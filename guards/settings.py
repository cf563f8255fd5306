"""How a guard is set up: its times, in seconds, and what is declared about tools and runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import attrs

from ..models.errors import InvalidValue, shown
from ..models.record import instance, optional, seconds
from ..models.run import Limits
from ..runtime.tools.policy import Policy, is_secretive, positive


def check_policy(policy: object, *, place: str) -> None:
    """Raise `InvalidValue` for what is no policy, or keeps a secret."""
    if not isinstance(policy, Policy):
        raise InvalidValue(place=place, cause=f"{shown(policy)} is no Policy", fix="give a Policy")
    if is_secretive(policy):
        raise InvalidValue(
            place=place,
            cause="keeps something sealed, or as a digest, and a guard has no cipher",
            fix="keep it clear; or hand the tool a reference to its secret",
        )


def _policies(_: object, field: attrs.Attribute[Any], value: object) -> None:
    given = shown(value)
    known = cast("Mapping[object, object]", value if isinstance(value, Mapping) else {None: value})
    for name, policy in known.items():
        if not isinstance(name, str):
            raise InvalidValue(
                place=field.name,
                cause=f"{given} is no mapping with the names of tools",
                fix="give Policy objects by the names of their tools",
            )
        check_policy(policy, place=f"{field.name}[{name!r}]")


@attrs.frozen(kw_only=True)
class Settings:
    """What `Guard.open` is told, besides the journal. Raises `InvalidValue`."""

    lease: float = attrs.field(validator=positive)
    """After so long a silence a claim is in doubt, unless its tool's policy says otherwise."""
    wait: float = attrs.field(validator=seconds)
    """So long a call is waited for that another runs."""
    patience: float = attrs.field(validator=seconds)
    """So long a run is tried again that somebody owns for a moment."""
    policies: Mapping[str, Policy] = attrs.field(validator=_policies)
    limits: Limits | None = attrs.field(validator=optional(instance(Limits)))
    """Those of runs that are begun here."""
