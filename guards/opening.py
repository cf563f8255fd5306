"""What opens a turn, or what is in its way: a pure function of a run as it is (guards.md 3).

A turn is opened by the model's response, whole and sealed. That response proves that the model was
told what came before, and closes what nobody has started: so a stale approval finds a closed turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeGuard

from ..engine.kernel import Kernel
from ..engine.reading import LiveTurn
from ..models.calls import Call
from ..models.deliveries import (
    Acknowledge,
    Delivery,
    Interrupt,
    OpenTurn,
    Resolution,
    SealTurn,
)
from ..models.errors import InvalidValue, shown
from ..models.record import any_text, choice, field, instances, optional, record
from ..models.values import same_json
from ..turn.phases import TurnPhase
from ..views.call_view import CallView, Waits, resolved
from ..views.live import calls_of
from .claiming import ungated
from .errors import Differs, Forked, GuardRefused
from .past import Past
from .values import BEGINNING, Abandons, At
from .visits import Step

ABANDONED = "the conversation went on without it"
"""Why a turn is interrupted whose calls nobody has started."""
NEVER_AGAIN = "it was to be run again, and the conversation went on before it was"
"""The error of a call whose retry was authorised, and not begun when the next answer came."""


def _listed(given: object) -> Sequence[Call]:
    if _is_list(given):
        return tuple(given)
    cause = f"{shown(given)} is no list"
    raise InvalidValue(place="calls", cause=cause, fix="give a list of Call")


def _is_list(given: object) -> TypeGuard[Iterable[Call]]:
    return isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping)


@record
class Opening:
    """A turn that is to be opened: the calls of one answer, and the turn that it answers."""

    run: str
    turn: str
    calls: Sequence[Call] = field(converter=_listed, validator=instances(Call))
    after: str | None = field(validator=optional(any_text))
    abandons: Abandons = field(converter=choice(Abandons))

    def __attrs_post_init__(self) -> None:
        """Refuse what no run could take. Raises `Differs` for two calls with one id."""
        twice = [
            it for it, count in Counter(c.invocation_id for c in self.calls).items() if count > 1
        ]
        if twice:
            raise Differs(
                f"turn {self.turn!r} of run {self.run!r} has two calls with the id {twice[0]!r};"
                " give each an id of its own (turnlock.models.identify)",
                at=At(self.run, self.turn, twice[0]),
            )
        observed = [call.invocation_id for call in self.calls if call.observed]
        if observed:
            raise InvalidValue(
                place=f"call {observed[0]}",
                cause="is observed: another runtime starts it, and a guard could not hold it",
                fix="leave observed out",
            )

    def __call__(self, kernel: Kernel, past: Past) -> Step[CallView | GuardRefused | None]:
        """Say what opens it: None where it is open then, a call that is in its way, or a refusal.

        Raises `Unread`.
        """
        if past.has(kernel, self.turn):
            return Step(answer=self._opened_before(kernel, past))
        most = kernel.run.limits.calls
        if len(self.calls) > most:
            raise InvalidValue(
                place="calls",
                cause=f"turn {self.turn!r} has {len(self.calls)} calls, and the run takes {most}",
                fix="open the run with larger Limits",
            )
        forked = self._forked(kernel, past)
        if forked is not None:
            return Step(answer=forked)
        in_the_way = next((it for it in calls_of(kernel) if self._is_kept(it)), None)
        if in_the_way is not None:
            return Step(answer=in_the_way)
        return Step(deliveries=tuple(self._deliveries(kernel)), answer=None)

    def _deliveries(self, kernel: Kernel) -> Sequence[Delivery]:
        run_id = self.run
        found: list[Delivery] = [
            Acknowledge(run_id=run_id, turn_id=owed.turn_id) for owed in kernel.continuations
        ]
        if kernel.turn is not None:
            found += self._closing(kernel, kernel.turn)
        empty = not self.calls
        found.append(
            OpenTurn(
                run_id=run_id,
                turn_id=self.turn,
                calls=tuple(self.calls),
                sealed=not empty,
                epoch=kernel.epoch + 1,
            )
        )
        if empty:
            found.append(SealTurn(run_id=run_id, turn_id=self.turn))
        return found

    def _closing(self, kernel: Kernel, turn: LiveTurn) -> Iterator[Delivery]:
        """Yield what closes the open turn, in which nothing runs, and nothing is in the dark.

        A retry that was authorised and not begun has failed: somebody has said that the attempt
        before it does not count. An interrupt would leave it in doubt until time has passed.
        """
        unfinished = tuple(calls_of(kernel))
        retries = [call for call in unfinished if call.retry_authorised]
        for call in retries:
            yield resolved(call, Resolution.ERROR, error=NEVER_AGAIN)
        if len(retries) == len(unfinished) and turn.phase is TurnPhase.SEALED:
            yield Acknowledge(run_id=self.run, turn_id=turn.turn_id)
        else:
            yield Interrupt(run_id=self.run, turn_id=turn.turn_id, reason=ABANDONED, grace=0.0)

    def _is_kept(self, call: CallView) -> bool:
        """Whether an unfinished call keeps the turn that it is of from being closed."""
        if self.abandons is Abandons.NOTHING:
            return True
        return call.waits in {Waits.REPORT, Waits.RESOLUTION}

    def _opened_before(self, kernel: Kernel, past: Past) -> GuardRefused | None:
        """Hold the calls against those of the turn that was opened under this name."""
        turn = kernel.turn
        if turn is not None and turn.turn_id == self.turn:
            gated = {call.invocation_id for call in self.calls if call.requires_approval}
            for it in turn.order:
                if it.invocation_id in gated and it.owed and not it.requires_approval:
                    return ungated(At(self.run, self.turn, it.invocation_id))
            known = {
                it.invocation_id: (it.tool_name, it.arguments)
                for it in turn.order
                if it.arguments is not None and it.decision is None
            }
            if len(known) == len(turn.order) and _same(known, self.calls):
                return None
        told = past.told(self.turn)
        known = {name: (it.tool_name, it.arguments) for name, it in told.opened.items()}
        if _same(known, self.calls):
            return None
        return Differs(
            f"turn {self.turn!r} of run {self.run!r} was opened with other calls"
            f" ({', '.join(known) or 'none'}); an answer needs a name of its own",
            at=At(self.run, self.turn, ""),
        )

    def _forked(self, kernel: Kernel, past: Past) -> Forked | None:
        """Say whether another answer came to the turn that this one answers. Raises `Unread`.

        A turn that no guard has seen says nothing: guards may be switched on in mid-conversation.
        Nor does an answer without calls: nothing came of it.
        """
        if self.after is None:
            return None
        since = past.since(kernel, None if self.after == BEGINNING else self.after)
        came = next((name for name, calls in since or () if calls), None)
        if came is None:
            return None
        before = "at its beginning" if self.after == BEGINNING else f"after turn {self.after!r}"
        return Forked(
            f"run {self.run!r}: {before} came turn {came!r}, and turn {self.turn!r} would be a"
            " second answer; go on from the latest, or give the branch a run of its own",
            at=At(self.run, self.turn, ""),
            came=came,
        )


def _same(known: Mapping[str, tuple[str, object]], calls: Sequence[Call]) -> bool:
    """Whether these are the calls that are known, in their order."""
    return list(known) == [call.invocation_id for call in calls] and all(
        call.tool_name == tool and same_json(call.arguments, arguments)  # type: ignore[arg-type]
        for call, (tool, arguments) in zip(calls, known.values(), strict=True)
    )
