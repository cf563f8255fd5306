"""What happens to calls, grants and the turn, whoever asked for it: by a delivery or by time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from .books import Grant
from .call import DENIED, FAILED, STARTED, SUCCEEDED, Call, decision_of
from .ledger import Ledger
from .mail import Mail, Raw
from .text import joined, just_past
from .turn import INTERRUPTING, OPEN, SEALED


class Acts(Ledger):
    """Each act changes the state, tells its facts, and brings the debts up to date."""

    def _gate(self, call: Call, spec: Raw, source: str) -> None:
        """Ask for the approval of a new call that needs one, unless a grant covers it."""
        if call.gated:  # S4 S6
            grant = self.grants.oldest_for(call.tool, call.digest())  # K-41
            if grant is not None:  # K-41
                self._cover(call, grant)  # K-41
            else:
                timeout = spec.get("approval_timeout")  # S3 K-57
                call.approve_by = None if timeout is None else self.now + timeout  # S4 K-34 K-57
                self._tell_life(
                    call,
                    "TOOL_APPROVAL_REQUESTED",  # S4 K-31
                    source,  # K-59
                    arguments=call.arguments,  # S4
                    arguments_digest=call.digest(),  # K-32 S4
                    deadline=call.approve_by,  # S4
                )
        self.review(call)  # S9 K-3

    def _cover(self, call: Call, grant: Grant) -> None:
        call.approve(None, decision_of("once", None, None))  # K-41 S6 K-32
        self._tell_life(
            call, "TOOL_APPROVED", "grant", scope="once", grant_id=grant.name
        )  # K-41 K-59 S4

    def _deny(
        self, call: Call, source: str, reason: str, cause: str, by: str | None = None
    ) -> None:
        call.finish(DENIED, reason)  # S6
        self._tell_life(
            call, "TOOL_DENIED", source, cause=cause, reason=reason, decided_by=by
        )  # S4 K-59 K-31
        self.review(call)  # K-3

    def _approval_over(self, call: Call) -> None:
        self._deny(call, "approval_over", "approval expired", "expiry")  # S6 K-59 S4
        self._close_if_done()  # K-51

    def _grant(self, call: Call, mail: Mail) -> None:
        """Issue a grant, and approve what it covers."""
        ends = None if mail.expires_in is None else self.now + mail.expires_in  # K-40 K-57
        grant = Grant(
            self.grants.next_name(),  # K-40 K-7
            tool=call.tool,  # K-40
            match=mail.match,  # K-40
            digest=call.digest(),  # K-40 K-32
            scope=mail.scope,  # K-40
            ends=ends,  # K-40
        )
        self.grants.issue(grant)  # K-40
        self._tell(
            "GRANT_ISSUED",  # S4 K-40
            "approve",  # K-59
            self._the_turn().name,
            grant_id=grant.name,  # S4 K-40
            tool_name=grant.tool,  # S4 K-40
            match=grant.match,  # S4 K-40
            arguments_digest=grant.digest,  # S4 K-40 K-32
            scope=grant.scope,  # S4 K-40
            expires_at=ends,  # S4 K-40
        )
        for other in self._the_turn().calls.values():  # K-41
            if other.awaits and grant.covers(other.tool, other.digest()):  # K-41
                self._cover(other, grant)  # K-41
                self.review(other)  # K-41 K-3

    def _grant_over(self, grant: Grant) -> None:
        self._end_grant(grant.name, "GRANT_EXPIRED", "grant_over")  # K-42 K-59

    def _end_grant(self, name: str, kind: str, source: str) -> None:
        del self.grants.live[name]  # K-42
        self._tell(
            kind, source, self.turn.name if self.turn is not None else None, grant_id=name
        )  # S4 K-42

    def _until(self, lease: float | None) -> float | None:
        return None if lease is None else self.now + lease  # K-34 K-57

    def _lose(self, call: Call, source: str) -> None:
        call.lose()  # K-35 S6
        self._tell_work(
            call, "EXECUTION_IN_DOUBT", source, attempt=call.attempt
        )  # S4 K-59 K-35 K-34
        self.review(call)  # K-3 K-53

    def _succeed(self, call: Call, result: Any, source: str) -> None:
        call.finish(SUCCEEDED, result)  # S6 K-30
        self._tell_life(
            call, "TOOL_EXECUTION_SUCCEEDED", source, result=result
        )  # S4 K-30 K-36 K-59
        self.review(call)  # K-3

    def _fail(self, call: Call, error: str, source: str, cause: str) -> None:
        call.finish(FAILED, error)  # S6 K-30
        self._tell_life(
            call, "TOOL_EXECUTION_FAILED", source, error=error, cause=cause
        )  # S4 K-30 K-59
        self.review(call)  # K-3

    def _grace_over(self) -> None:
        for call in self._the_turn().calls.values():  # K-53 S4
            if not call.over:  # K-53
                self._fail(
                    call, "interrupted; outcome unknown", "grace_over", "interrupted"
                )  # K-53 K-59 S4
        self._close_if_done()  # K-53 K-51

    def _close_if_done(self) -> None:
        """Close the turn when each of its calls is over: the one door."""
        turn = self._the_turn()
        if turn.phase == OPEN or not turn.all_over:  # K-50 K-51 K-53
            return  # K-50
        if turn.phase == SEALED:  # S8 K-50 K-53
            self._tell("TURN_SETTLED", "settle", turn.name)  # S4 K-50 K-59
            if turn.calls:  # K-52
                self.owe_continuation(turn)  # K-52
        else:
            self._tell("TURN_INTERRUPTED", "settle", turn.name)  # K-53 S4 K-59
        self.memory.close(turn.name, list(turn.calls), self.now)  # K-54
        self.grants.turn_over()  # K-42 K-40
        self.turn = None  # S8

    # ---------------------------------------------------------------- time

    def _deadlines(self) -> Iterator[tuple[float, int, int, Callable[[], None]]]:
        calls = list(self.turn.calls.values()) if self.turn is not None else []
        for place, call in enumerate(calls):  # K-11 S9 K-34
            if call.awaits and call.approve_by is not None:  # K-11 S6 S9 K-34
                yield call.approve_by, 0, place, partial(self._approval_over, call)  # K-11 S9 K-34
            if call.phase == STARTED and call.lease_until is not None:  # K-11 K-34 S9
                yield (
                    call.lease_until,
                    1,
                    place,
                    partial(self._lose, call, "lease_over"),
                )  # K-11 K-34 S9
        for place, grant in enumerate(self.grants):  # K-11 K-42 S9 K-34
            if grant.ends is not None:  # K-42 S9 K-34
                yield grant.ends, 2, place, partial(self._grant_over, grant)  # K-11 K-42 S9 K-34
        if self.turn is not None and self.turn.phase == INTERRUPTING:  # K-11 K-53 S9 K-34 K-57
            yield self.turn.grace_until, 3, 0, self._grace_over  # K-11 K-53 S9 K-34

    def _let_time_pass(self) -> None:
        while True:  # K-11
            due = [
                deadline for deadline in self._deadlines() if self.now > deadline[0]
            ]  # K-34 K-11
            if not due:
                return
            min(due, key=lambda deadline: deadline[:3])[3]()  # K-11

    def wake(self) -> Raw | None:
        """Return the wake for the earliest deadline, where there is one that can come due."""
        earliest = min((deadline[0] for deadline in self._deadlines()), default=math.inf)  # S9 K-34
        at = just_past(earliest)  # S9 K-34
        if math.isinf(at):  # K-34 S9
            return None  # K-34 S9
        return {"type": "wake", "effect_id": joined("wake", self.name), "at": at}  # S9 K-7

    def all_owed(self) -> list[Raw]:
        """Return every effect that is owed now."""
        wake = self.wake()
        return [*self.owing.values(), *([wake] if wake is not None else [])]  # K-3 S9
