"""What the owner of a server says of all its Codex runs, and what a client may ask (S-51)."""

from __future__ import annotations

from typing import Final

import attrs

from ...models.errors import InvalidValue, shown
from ..contract import CommandRefused, SessionSpec

KIND: Final = "codex"
"""The kind of the runs that ``codex app-server`` performs (K-61)."""
SANDBOXES: Final = ("read-only", "workspace-write", "danger-full-access")
"""What commands may touch, by the runtime's own names, the strictest first."""
POLICIES: Final = ("untrusted", "on-request", "never")
"""What the runtime asks about, by its own names, the strictest first: each command, what its model
wants to have run outside of the sandbox, nothing."""


@attrs.frozen(kw_only=True)
class CodexSettings:
    """What all Codex runs of a server have in common; a run may be bounded further, never less."""

    command: tuple[str, ...] = (KIND,)
    """What starts it; ``app-server`` stands behind."""
    sandbox: str = "workspace-write"
    approval_policy: str = "on-request"
    model: str | None = None
    """The model of runs that name none; None: what the runtime's own configuration says."""
    cwd: str | None = None
    """Where runs work that name no folder."""

    def __attrs_post_init__(self) -> None:
        """Raise `InvalidValue` for names that the runtime does not know."""
        for place, value, known in (
            ("sandbox", self.sandbox, SANDBOXES),
            ("approval_policy", self.approval_policy, POLICIES),
        ):
            if value not in known:
                raise InvalidValue(
                    place=place, cause=f"{shown(value)} is none", fix=f"give {', '.join(known)}"
                )
        if not self.command or not self.command[0]:
            raise InvalidValue(
                place="command", cause="is empty", fix="give the executable, such as codex"
            )

    def fitted(self, spec: SessionSpec) -> SessionSpec:
        """Return what a run asks for, with what it leaves out (S-51).

        Raises `CommandRefused` (`invalid_value`) for what is no setting, or allows more than this.
        """
        return attrs.evolve(
            spec,
            model=spec.model or self.model,
            cwd=spec.cwd or self.cwd,
            sandbox=_bounded("sandbox", spec.sandbox, by=self.sandbox, of=SANDBOXES),
            approval_policy=_bounded(
                "approval_policy", spec.approval_policy, by=self.approval_policy, of=POLICIES
            ),
        )


def _bounded(place: str, asked: str | None, *, by: str, of: tuple[str, ...]) -> str:
    """Return what is asked for, where it is as strict at least as what the owner says."""
    if asked is None:
        return by
    allowed = of[: of.index(by) + 1]
    if asked not in allowed:
        raise CommandRefused(
            "invalid_value",
            f"{shown(asked)} is not allowed here: give {' or '.join(allowed)}, or leave it out",
            at=place,
        )
    return asked
