"""The manifest of a run: notes of domain `session`, one for each step, none ever changed (S-50)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from ..adapters.contract import VERSION, CommandRefused, Ending, Manifest, SessionSpec
from ..models.run import OWN, Run
from ..models.safe_text import harmless
from ..models.values import Json
from ..runtime.journal.ledger import Domain, Note, Noted

SESSION: Final = "session"
EPOCH: Final = "epoch"
CLOSED: Final = "closed"
STDERR: Final = 4 * 1024
"""Characters that are kept of what a process said last (section 15)."""


@attrs.frozen(kw_only=True)
class Kept:
    """The manifest as it is kept, and how many notes of each kind it is the fold of."""

    manifest: Manifest
    first: SessionSpec | None = None
    """What it was when it was created."""
    sessions: int = 0
    epochs: int = 0
    closings: int = 0

    @property
    def run(self) -> Run:
        """The run, as it was declared for it."""
        return Run(run_id=self.manifest.spec.run_id, kind=self.manifest.spec.kind)

    @property
    def why_closed(self) -> str | None:
        """Why its latest session ended; None where it did not, as far as is known."""
        closed = self.manifest.closed
        return None if closed is None else str(closed.get("why"))


def session_note(spec: SessionSpec, *, number: int, at: float) -> Note:
    """Return the first step of a session: what it is to be."""
    body = {
        "version": VERSION,
        "kind": spec.kind,
        "agent": spec.agent,
        "model": spec.model,
        "cwd": spec.cwd,
        "approval_policy": spec.approval_policy,
        "sandbox": spec.sandbox,
        "options": spec.options,
        "parent": spec.parent,
    }
    return _note(SESSION, number, body, at)


def epoch_note(epoch: Mapping[str, Json], *, number: int, at: float) -> Note:
    """Return the step that says who performs it from now on."""
    return _note(EPOCH, number, epoch, at)


def closed_note(ending: Ending, *, number: int, at: float) -> Note:
    """Return the last step: how it ended."""
    told: dict[str, Json] = {"why": ending.why}
    if ending.exit_status is not None:
        told["exit_status"] = ending.exit_status
    if ending.said:
        told["said"] = harmless(ending.said[-STDERR:])
    return _note(CLOSED, number, {"ending": told}, at)


def _note(kind: str, number: int, body: Mapping[str, Any], at: float) -> Note:
    return Note(domain=Domain.SESSION, kind=kind, body=body, at=at, id=f"{kind}/{number}")


def kept_of(run_id: str, notes: Iterable[Noted]) -> Kept | None:
    """Return the fold of a run's manifest; None where it has none.

    Manifests of older versions are read as what they left out: a missing kind is `own`. Raises
    `CommandRefused` (`runtime_reference_invalid`) for one of a later version, or that is none.
    """
    kept: Kept | None = None
    for noted in notes:
        note = noted.note
        if note.domain is not Domain.SESSION:
            continue
        if note.kind == SESSION:
            spec, version = _spec(run_id, note.body)
            manifest = (
                Manifest(spec=spec, version=version)
                if kept is None
                else attrs.evolve(kept.manifest, spec=spec, version=version)
            )
            kept = attrs.evolve(kept or Kept(manifest=manifest, first=spec), manifest=manifest)
            kept = attrs.evolve(kept, sessions=kept.sessions + 1)
        elif kept is None:
            raise _invalid(run_id, f"its manifest begins with {harmless(note.kind, limit=80)!r}")
        elif note.kind == EPOCH:
            manifest = attrs.evolve(kept.manifest, epoch=note.body, closed=None)
            kept = attrs.evolve(kept, manifest=manifest, epochs=kept.epochs + 1)
        elif note.kind == CLOSED:
            ending = note.body.get("ending")
            closed: Mapping[str, Json] = ending if isinstance(ending, Mapping) else {}
            manifest = attrs.evolve(kept.manifest, closed=closed)
            kept = attrs.evolve(kept, manifest=manifest, closings=kept.closings + 1)
    return kept


def check_no_child(manifest: Manifest) -> None:
    """Raise `CommandRefused` for a sub-agent's run: its parent's session performs it (S-56)."""
    spec = manifest.spec
    if spec.parent is not None:
        raise no_run_of_its_own(spec.run_id, spec.parent)


def no_run_of_its_own(run_id: str, parent: str) -> CommandRefused:
    """Return the refusal of what would perform the run of a sub-agent, or of an agent's tool."""
    return CommandRefused(
        "run_inactive",
        f"run {harmless(run_id)!r} is of another one's agent: it goes on with the run that called"
        f" it; say it to {harmless(parent)!r}",
    )


def check_thread(run_id: str, manifest: Manifest) -> None:
    """Raise for a manifest of another kind than ours whose epoch names no thread (S-52)."""
    epoch = manifest.epoch
    if manifest.spec.kind != OWN and epoch is not None and not epoch.get("thread_id"):
        raise _invalid(run_id, "its manifest names no thread")


def _spec(run_id: str, body: Mapping[str, Json]) -> tuple[SessionSpec, int]:
    version = body.get("version", 0)
    if type(version) is not int or version > VERSION:
        raise _invalid(run_id, f"its manifest has version {version!r}, and {VERSION} is known here")
    options = body.get("options")
    try:
        spec = SessionSpec(
            run_id=run_id,
            kind=_text(body, "kind") or OWN,
            agent=_text(body, "agent"),
            model=_text(body, "model"),
            cwd=_text(body, "cwd"),
            approval_policy=_text(body, "approval_policy"),
            sandbox=_text(body, "sandbox"),
            options=options if isinstance(options, Mapping) else {},
            parent=_text(body, "parent"),
        )
    except TypeError as error:
        raise _invalid(run_id, f"its manifest is damaged: {error}") from error
    return spec, version


def _text(body: Mapping[str, Json], name: str) -> str | None:
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{name} is no text")
    return value


def _invalid(run_id: str, cause: str) -> CommandRefused:
    return CommandRefused(
        "runtime_reference_invalid",
        f"run {harmless(run_id)!r} cannot be gone on with: {cause}",
    )
