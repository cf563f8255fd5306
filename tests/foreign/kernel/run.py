"""A run: it takes deliveries and answers with receipts."""

from __future__ import annotations

from collections.abc import Callable

from .acts import Acts
from .call import FAILED, IN_DOUBT, RETRY, SUCCEEDED, Call, decision_of
from .mail import Mail, Raw, Refuse
from .turn import INTERRUPTING, SEALED, Turn


class Run(Acts):
    """One conversation of an agent: its journal, its turn, its grants, its debts."""

    # ---------------------------------------------------------------- receiving

    def receive(self, raw: Raw) -> Raw:
        """Judge one delivery at its `now`, and return the receipt."""
        mail = Mail(raw)
        self.now = max(mail.now, self.latest)  # K-10
        self._facts, self._fresh = [], []
        wake = self.wake()
        owed = set(self.continuations)  # K-22
        self._let_time_pass()  # K-11
        receipt: Raw = {"accepted": True}
        try:
            self._judge(mail, owed)
        except Refuse as refused:
            receipt = {"accepted": False, "reason": refused.reason}
        effects = [self.owing[key] for key in self._fresh if key in self.owing]  # K-3
        after = self.wake()
        if after is not None and after != wake:  # S9 K-3
            effects.append(after)  # S9 K-3
        return {**receipt, "facts": self._facts, "effects": effects}

    def _judge(self, mail: Mail, owed: set[str]) -> None:
        """Take a delivery; `owed` are the turns whose continuation was owed before it came."""
        if mail.run_id is not None and mail.run_id != self.name:  # S5
            raise Refuse("run_mismatch")  # S5
        if mail.type == "acknowledge" and mail.turn_id not in owed:  # K-22
            raise Refuse("no_continuation")  # K-22
        take: Callable[[Mail], None] = getattr(self, f"_on_{mail.type}")
        take(mail)

    # ---------------------------------------------------------------- admission

    def _find(self, mail: Mail, *, claiming: bool = False) -> Call:
        """Return the call that a delivery names (section 5)."""
        turn, name = self.turn, mail.invocation_id
        if mail.turn_id is not None:  # S5 K-20
            if turn is None or turn.name != mail.turn_id:  # S5 K-20
                raise Refuse(self._elsewhere(mail.turn_id, (mail.turn_id, name)))  # S5 K-20
        else:
            remembered = self.memory.holds_call(name, self.now)  # S5 K-20 K-54
            if turn is not None and name in turn.calls:  # S5 K-20
                if remembered:  # S5 K-20
                    raise Refuse("ambiguous_invocation")  # S5 K-20
            elif remembered:  # S5 K-54
                raise Refuse("late")  # S5 K-54
            elif turn is None:  # S5
                raise Refuse("no_active_turn")  # S5
        if name not in turn.calls:  # S5 K-20
            raise Refuse("unknown_invocation")  # S5 K-20
        call = turn.calls[name]  # S5 K-20
        call.check_attempt(mail.attempt, claiming)  # S5 K-33
        return call

    def _elsewhere(self, turn_id: str, entry: tuple[str, ...]) -> str:
        """Tell why a turn that is named is not the active one."""
        if self.memory.holds(entry, self.now):  # S5 K-54 K-22 K-20
            return "late"  # S5 K-54 K-22 K-20
        return "no_active_turn" if self.turn is None else "turn_mismatch"  # S5 K-22 K-20

    def _reach(self, mail: Mail) -> Turn:
        """Return the active turn, which a delivery must name (K-22)."""
        if self.turn is None or self.turn.name != mail.turn_id:  # K-22
            raise Refuse(self._elsewhere(str(mail.turn_id), (str(mail.turn_id),)))  # K-22
        return self.turn

    # ---------------------------------------------------------------- the turn

    def _on_open_turn(self, mail: Mail) -> None:
        name, calls = str(mail.turn_id), mail.calls
        if self.turn is not None:  # K-21
            raise Refuse("turn_open" if self.turn.name == name else "turn_busy")  # K-21
        if self.memory.holds((name,), self.now) or name in self.continuations:  # K-21 K-54
            raise Refuse("turn_reused")  # K-21 K-54
        if mail.epoch is not None and mail.epoch != self.epochs + 1:  # K-21 K-55
            raise Refuse("stale_epoch")  # K-21 K-55
        if len({call["invocation_id"] for call in calls}) < len(calls):  # K-21
            raise Refuse("duplicate_invocation")  # K-21
        if mail.sealed and not calls:  # K-21
            raise Refuse("empty_turn")  # K-21
        if len(calls) > self.limits["calls"]:  # K-56
            raise Refuse("limit_reached")  # K-56
        if len(self.continuations) >= self.limits["continuations"]:  # K-56
            raise Refuse("limit_reached")  # K-56
        self.epochs += 1  # K-21 K-55
        self.turn = Turn(name, self.epochs, mail.sealed)  # K-21 K-7
        self._tell(
            "TURN_OPENED", "open_turn", name, epoch=self.epochs, sealed=mail.sealed, calls=calls
        )  # S4 K-59
        for spec in calls:  # S4
            self._gate(self.turn.add(spec), spec, "open_turn")  # S4 K-59

    def _on_add_call(self, mail: Mail) -> None:
        turn = self._reach(mail)  # K-22
        if turn.phase == SEALED:  # K-22 S8
            raise Refuse("turn_sealed")  # K-22 S8
        if turn.phase == INTERRUPTING:  # K-22 S8
            raise Refuse("interrupting")  # K-22 S8
        if mail.call["invocation_id"] in turn.calls:  # K-22
            raise Refuse("duplicate_invocation")  # K-22
        if len(turn.calls) >= self.limits["calls"]:  # K-56
            raise Refuse("limit_reached")  # K-56
        self._tell("CALL_ADDED", "add_call", turn.name, call=mail.call)  # S4 K-59 S8
        self._gate(turn.add(mail.call), mail.call, "add_call")  # S4 K-59

    def _on_seal_turn(self, mail: Mail) -> None:
        turn = self._reach(mail)  # K-22
        if turn.phase == SEALED:  # K-22 S8
            raise Refuse("duplicate")  # K-22 S8
        if turn.phase == INTERRUPTING:  # K-22 S8
            raise Refuse("interrupting")  # K-22 S8
        turn.phase = SEALED  # S8
        self._tell("TURN_SEALED", "seal_turn", turn.name)  # S4 K-59 S8
        self._close_if_done()  # S8 K-50

    def _on_interrupt(self, mail: Mail) -> None:
        turn = self._reach(mail)  # K-22
        if turn.phase == INTERRUPTING:  # K-53 S8
            raise Refuse("duplicate")  # K-53 S8
        turn.phase = INTERRUPTING  # K-53 S8
        turn.grace_until = self.now + mail.grace  # K-53
        self._tell(
            "TURN_INTERRUPTING",
            "interrupt",
            turn.name,
            grace_until=turn.grace_until,
            reason=mail.reason,
        )  # S4 K-59 K-53
        for call in turn.calls.values():  # K-53 S4
            if call.not_begun:  # K-53
                self._deny(call, "interrupt", "interrupted", "interrupt")  # K-53 K-59
            elif call.phase == RETRY:  # K-53 S6
                call.phase = IN_DOUBT  # K-53 S6
            self.review(call)  # K-53 K-3
        self._close_if_done()  # S8 K-50

    def _on_acknowledge(self, mail: Mail) -> None:
        self._tell("CONTINUATION_TAKEN", "acknowledge", mail.turn_id)  # S4 K-59 K-52
        self.taken(str(mail.turn_id))  # K-52

    # ---------------------------------------------------------------- approval

    def _on_decide(self, mail: Mail) -> None:
        call = self._find(mail)  # S5
        if not call.awaits:  # S6 K-31
            raise call.second_decision(mail)  # S6 K-31
        if not mail.approved:  # S6
            self._deny(
                call, "deny", mail.reason or "denied", "decision", mail.decided_by
            )  # S4 K-59 K-42
            call.decision = ("denied",)  # S6
            self._close_if_done()  # K-51
            return
        shown = mail.arguments_digest  # K-32
        if shown is not None and shown != call.digest():  # K-32
            raise Refuse("arguments_mismatch")  # K-32
        lasting = mail.scope != "once"  # K-40
        if lasting and len(self.grants.live) >= self.limits["grants"]:  # K-56
            raise Refuse("limit_reached")  # K-56
        call.approve(mail.arguments, decision_of(mail.scope, mail.match, mail.arguments))  # S6 K-32
        self._tell_life(
            call,
            "TOOL_APPROVED",  # S4 K-31 S6
            "approve",  # K-59
            scope=mail.scope,  # S4 K-40
            match=mail.match if lasting else None,  # S4
            arguments=mail.arguments,  # S4 K-32
            reason=mail.reason,  # S4
            decided_by=mail.decided_by,  # S4
        )
        self.review(call)  # S9 K-3
        if lasting:  # K-40
            self._grant(call, mail)  # K-40

    def _on_revoke(self, mail: Mail) -> None:
        if mail.grant_id not in self.grants.live:  # K-22
            raise Refuse("unknown_grant")  # K-22
        self._end_grant(mail.grant_id, "GRANT_REVOKED", "revoke")  # K-42 K-59

    # ---------------------------------------------------------------- execution

    def _on_claim(self, mail: Mail) -> None:
        call = self._find(mail, claiming=True)  # S5 K-33
        call.check_claim(mail)  # S6 K-33
        again = call.phase == RETRY  # K-31
        call.start(mail.worker, self._until(mail.lease))  # K-33 K-34 K-57
        held = {
            "attempt": call.attempt,
            "worker": call.worker,
            "lease_until": call.lease_until,
        }  # S4 K-33 K-34
        if again:  # K-31
            self._tell_work(call, "EXECUTION_RETRIED", "claim", **held)  # K-31 S4 K-59 K-33
        else:
            self._tell_life(
                call, "TOOL_EXECUTION_STARTED", "claim", arguments=call.arguments, **held
            )  # K-31 K-33 S4 K-59
        self.review(call)  # K-33 K-3

    def _on_renew(self, mail: Mail) -> None:
        call = self._find(mail)  # S5
        call.check_running("lease_lost")  # S6 K-34
        call.lease_until = self._until(mail.lease)  # K-34
        self._tell_work(
            call, "LEASE_RENEWED", "renew", attempt=call.attempt, lease_until=call.lease_until
        )  # S4 K-59 K-34

    def _on_reject(self, mail: Mail) -> None:
        call = self._find(mail)  # S5
        call.check_reject()  # S6
        self._fail(call, mail.error, "reject", "rejected")  # S6 K-59 S4
        self._close_if_done()  # K-51

    def _on_report(self, mail: Mail) -> None:
        call = self._find(mail)  # S5
        if mail.has_result:  # K-36
            call.check_outcome(SUCCEEDED, mail.result)  # S6 K-30
            self._succeed(call, mail.result, "report_result")  # S6 K-59
        else:
            call.check_outcome(FAILED, mail.error)  # S6 K-30
            self._fail(call, mail.error, "report_error", "reported")  # S6 K-59 S4
        self._close_if_done()  # K-51

    def _on_lose(self, mail: Mail) -> None:
        call = self._find(mail)  # S5
        call.check_running("duplicate")  # S6
        self._lose(call, "lose")  # K-35 K-59

    def _on_resolve(self, mail: Mail) -> None:
        call = self._find(mail)  # S5
        call.check_resolve(mail.way, self._the_turn().phase == INTERRUPTING)  # S6 K-35
        if mail.way == "retry":  # S6 K-31
            call.phase = RETRY  # S6 K-31 S9
            self._tell_work(
                call, "RETRY_AUTHORISED", "resolve_retry", attempt=call.attempt
            )  # S4 K-59 K-31
            self.review(call)  # K-31 K-3
            return
        if mail.way == "result":  # S6
            self._succeed(call, mail.result, "resolve_result")  # S6 K-59
        else:
            self._fail(call, mail.error, "resolve_error", "resolved")  # S6 K-59 S4
        self._close_if_done()  # K-51

    def _on_log(self, mail: Mail) -> None:
        """Diagnostics are taken and forgotten (section 3)."""

    def _on_tick(self, mail: Mail) -> None:
        """Time has passed, and what it brought has happened already (K-11)."""
