"""One invocation, which changes in place."""

from __future__ import annotations

from typing import Any

from .mail import Mail, Raw, Refuse
from .text import canonical, digest

REQUESTED, APPROVED, STARTED, IN_DOUBT = "REQUESTED", "APPROVED", "STARTED", "IN_DOUBT"
RETRY, SUCCEEDED, FAILED, DENIED = "RETRY_AUTHORISED", "SUCCEEDED", "FAILED", "DENIED"

Decision = tuple[str | None, ...]


def decision_of(scope: str, match: str | None, edited: Any) -> Decision:
    """Return what tells one approval from another."""
    counts = match if scope != "once" else None  # S6
    return ("approved", scope, counts, None if edited is None else canonical(edited))  # S6


class Call:
    """What one tool call of a turn has come to."""

    def __init__(self, spec: Raw) -> None:
        self.spec = spec
        self.name: str = spec["invocation_id"]
        self.tool: str = spec["tool_name"]
        self.arguments: Raw = spec["arguments"]
        self.observed: bool = spec["observed"]  # K-58
        self.gated: bool = spec["requires_approval"]  # S6
        self.phase = REQUESTED
        self.attempt = 0
        self.worker: str | None = None
        self.lease_until: float | None = None
        self.approve_by: float | None = None
        self.decision: Decision | None = None
        self.outcome: tuple[str, Any] | None = None
        self.debts: set[str] = set()

    @property
    def over(self) -> bool:
        """Whether it has come to its end."""
        return self.phase in {SUCCEEDED, FAILED, DENIED}  # K-50 K-53 S6 K-33

    @property
    def awaits(self) -> bool:
        """Whether it waits for somebody's approval."""
        return self.phase == REQUESTED and self.gated  # S6 S9 K-11 K-41

    @property
    def not_begun(self) -> bool:
        """Whether no executor has ever started it."""
        return self.phase in {REQUESTED, APPROVED}  # S6 K-53

    @property
    def ready(self) -> bool:
        """Whether an executor may claim it and nobody has."""
        if self.observed:  # K-58 S9 K-33
            return False  # K-58 S9 K-33
        if self.phase == REQUESTED:  # S9 K-33
            return not self.gated  # S9 K-33
        return self.phase in {APPROVED, RETRY}  # S9 K-33 K-31

    def digest(self) -> str:
        """Return the digest of the arguments that would run."""
        return digest(self.arguments)  # K-32

    def check_attempt(self, attempt: int | None, claiming: bool) -> None:
        """Refuse an attempt that is neither the owed nor the current one."""
        if attempt is None:  # S5 K-33
            return
        if claiming and self.ready:  # S5 K-33
            expected = self.attempt + 1  # S5 K-33
        elif self.attempt > 0:  # S5 K-33
            expected = self.attempt  # S5 K-33
        else:
            return  # S5 K-33
        if attempt != expected:  # S5 K-33
            raise Refuse("stale_attempt")  # S5 K-33

    def second_decision(self, mail: Mail) -> Refuse:
        """Tell a decision that comes when none is awaited (D)."""
        if self.decision is None:  # S6
            return Refuse(
                "already_decided" if self.phase == DENIED else "not_awaiting_approval"
            )  # S6
        if mail.approved:  # S6
            asked = decision_of(mail.scope, mail.match, mail.arguments)  # S6
        else:
            asked = ("denied",)  # S6
        return Refuse("duplicate" if asked == self.decision else "already_decided")  # S6

    def check_claim(self, mail: Mail) -> None:
        """Refuse a claim where nothing can be started."""
        if self.over:  # S6 K-33
            raise Refuse("already_settled")  # S6 K-33
        if self.awaits:  # S6 K-33
            raise Refuse("not_approved")  # S6 K-33
        if self.phase == IN_DOUBT:  # S6 K-33 K-35
            raise Refuse("not_authorised")  # S6 K-33 K-35
        if self.phase == STARTED:  # S6 K-33
            mine = mail.worker is not None and mail.worker == self.worker  # S6
            raise Refuse("duplicate" if mine else "already_started")  # S6 K-33

    def check_running(self, lost: str) -> None:
        """Refuse what only a started call can be asked (renew, lose)."""
        if self.over:  # S6 K-34 K-35
            raise Refuse("already_settled")  # S6 K-34 K-35
        if self.not_begun:  # S6 K-34 K-35
            raise Refuse("not_started")  # S6 K-34 K-35
        if self.phase != STARTED:  # S6 K-34 K-35
            raise Refuse(lost)  # S6 K-34 K-35

    def check_reject(self) -> None:
        """Refuse to say of a started call that it could not be started."""
        if self.over:  # S6 K-30
            raise Refuse("already_settled")  # S6 K-30
        if not self.not_begun:  # S6
            raise Refuse("already_started")  # S6

    def check_outcome(self, kind: str, payload: Any) -> None:
        """Refuse an outcome before the start, and a second one (S)."""
        if self.phase == DENIED:  # S6
            raise Refuse("already_settled")  # S6
        if self.not_begun:  # S6 K-33
            raise Refuse("not_started")  # S6 K-33
        if self.outcome is not None:  # S6 K-30
            same = self.outcome[0] == kind and canonical(self.outcome[1]) == canonical(
                payload
            )  # S6 K-30
            raise Refuse("duplicate" if same else "conflicting_duplicate")  # S6 K-30

    def check_resolve(self, way: str, interrupting: bool) -> None:
        """Refuse to resolve what is not in doubt, and a retry where there can be none."""
        if self.over:  # S6 K-35
            raise Refuse("already_settled")  # S6 K-35
        if self.phase not in {IN_DOUBT, RETRY}:  # S6 K-35
            raise Refuse("not_in_doubt")  # S6 K-35
        if way == "retry":  # S6 K-35
            if self.observed:  # K-58
                raise Refuse("not_owned")  # K-58 S6
            if interrupting:  # S6 K-35 K-53
                raise Refuse("interrupting")  # S6 K-35 K-53
            if self.phase == RETRY:  # S6 K-35
                raise Refuse("duplicate")  # S6 K-35

    def approve(self, edited: Any, decision: Decision) -> None:
        """Take an approval."""
        self.phase = APPROVED  # S6 S9 K-33 K-41
        self.decision = decision  # S6
        if edited is not None:  # K-32
            self.arguments = edited  # K-32

    def start(self, worker: str | None, lease_until: float | None) -> None:
        """Take a claim."""
        self.phase = STARTED  # S6 S9 K-33
        self.attempt += 1  # K-33
        self.worker = worker  # S6 K-33
        self.lease_until = lease_until  # K-34

    def lose(self) -> None:
        """Nobody knows what became of it."""
        self.phase = IN_DOUBT  # S6 K-35 K-34 S9

    def finish(self, phase: str, payload: Any) -> None:
        """Take its one outcome."""
        self.phase = phase  # S6 K-30 K-31 K-50
        self.outcome = (phase, payload)  # K-30 K-52

    def told(self) -> Raw:
        """Say its outcome as a continuation has it."""
        phase, payload = self.outcome or (self.phase, None)
        shown: Raw = {
            "invocation_id": self.name,
            "tool_name": self.tool,
            "status": phase.lower(),
        }  # S9 K-52
        shown[{SUCCEEDED: "result", FAILED: "error"}.get(phase, "reason")] = payload  # S9 K-52
        if "provider_call_id" in self.spec:  # S3
            shown["provider_call_id"] = self.spec["provider_call_id"]  # S3
        return shown
