"""One long story that meets every delivery and every fact, and a crowd that wants to spoil it."""

from __future__ import annotations

from turnlock import (
    Acknowledge,
    AddCall,
    Call,
    Claim,
    Decide,
    Delivery,
    Fact,
    Interrupt,
    Kernel,
    Limits,
    Log,
    Lose,
    Match,
    OpenTurn,
    Reject,
    Renew,
    Report,
    Resolution,
    Resolve,
    Revoke,
    Run,
    Scope,
    SealTurn,
    Tick,
    Verdict,
)
from turnlock.models.values import Json

from ..outcome import call, gated

RUN = Run(run_id="r", agent_id="agent", agent_name="Ada", limits=Limits(calls=4, grants=1))
"""The limits are met: T2 has four calls, and most of the time one grant is in force."""

OBSERVED = Call(
    invocation_id="o", tool_name="sh", arguments={}, requires_approval=False, observed=True
)

Line = tuple[float, Delivery]


def approve(
    turn: str,
    invocation: str,
    scope: Scope = Scope.ONCE,
    match: Match = Match.EXACT,
    *,
    expires_in: float | None = None,
    digest: str | None = None,
) -> Decide:
    return Decide(
        turn_id=turn,
        invocation_id=invocation,
        approved=True,
        scope=scope,
        match=match,
        expires_in=expires_in,
        arguments_digest=digest,
    )


def deny(turn: str, invocation: str) -> Decide:
    return Decide(turn_id=turn, invocation_id=invocation, approved=False)


def claim(
    turn: str,
    invocation: str,
    attempt: int = 1,
    *,
    worker: str | None = None,
    lease: float | None = None,
) -> Claim:
    return Claim(
        turn_id=turn, invocation_id=invocation, attempt=attempt, worker=worker, lease=lease
    )


def report(
    turn: str | None, invocation: str, result: Json = "ok", *, attempt: int | None = None
) -> Report:
    return Report(turn_id=turn, invocation_id=invocation, result=result, attempt=attempt)


def fail(turn: str, invocation: str) -> Report:
    return Report(turn_id=turn, invocation_id=invocation, error="boom")


def retry(turn: str, invocation: str, attempt: int = 1) -> Resolve:
    return Resolve(
        turn_id=turn,
        invocation_id=invocation,
        attempt=attempt,
        resolution=Resolution.RETRY,
    )


STORY: tuple[Line, ...] = (
    # T1 streams in: an approval expires, a lease runs out, a retry is authorised and succeeds.
    (0.0, OpenTurn(turn_id="T1", calls=(gated("a", n=1, timeout=50.0),), sealed=False, epoch=1)),
    (1.0, AddCall(turn_id="T1", call=call("b", "pay"))),
    (2.0, AddCall(turn_id="T1", call=gated("c", n=1))),
    (3.0, AddCall(turn_id="T1", call=gated("d", "rm", timeout=2.0))),
    (4.0, claim("T1", "b", worker="w1", lease=10.0)),
    (4.5, Renew(turn_id="T1", invocation_id="b", lease=4.0)),
    (6.0, Tick()),
    (7.0, SealTurn(turn_id="T1")),
    (8.0, approve("T1", "a", Scope.SESSION, expires_in=20.0)),
    (10.0, Tick()),
    (11.0, retry("T1", "b")),
    (12.0, claim("T1", "b", 2, worker="w2", lease=100.0)),
    (13.0, Log(turn_id="T1", invocation_id="b", text="50 %")),
    (14.0, report("T1", "b", {"paid": True}, attempt=2)),
    (15.0, claim("T1", "a")),
    (16.0, Reject(invocation_id="c", error="bad arguments")),
    (17.0, fail("T1", "a")),
    (18.0, Acknowledge(turn_id="T1")),
    # T2 has the ids of T1 again; it is interrupted while one call runs and one is in doubt.
    (19.0, OpenTurn(turn_id="T2", calls=(gated("a", n=1), gated("b", n=2), call("c"), call("d")))),
    (20.0, claim("T2", "c")),
    (21.0, Lose(turn_id="T2", invocation_id="c")),
    (22.0, deny("T2", "b")),
    (23.0, claim("T2", "d", worker="w1", lease=100.0)),
    (24.0, claim("T2", "a", lease=100.0)),
    (24.5, retry("T2", "c")),
    (26.0, Interrupt(turn_id="T2", grace=10.0)),
    (27.0, report("T2", "a", [])),
    (28.5, Tick()),
    (37.0, Tick()),
    # T3 has grants for its turn and for the session; its continuation stays owed.
    (38.0, OpenTurn(turn_id="T3", calls=(gated("a", "sh"), gated("b", "sh", n=2), gated("e")))),
    (39.0, approve("T3", "a", Scope.TURN, Match.TOOL)),
    (40.0, Revoke(grant_id="grant/r/2")),
    (41.0, approve("T3", "e")),
    (42.0, claim("T3", "a")),
    (43.0, Lose(turn_id="T3", invocation_id="a", attempt=1)),
    (
        44.0,
        Resolve(
            turn_id="T3",
            invocation_id="a",
            attempt=1,
            resolution=Resolution.ERROR,
            error="it was not paid",
        ),
    ),
    (45.0, claim("T3", "b")),
    (46.0, report("T3", "b", None)),
    (47.0, claim("T3", "e")),
    (48.0, report(None, "e", 0)),
    # T4 keeps its turn's grant until it closes, and nobody says what became of its call.
    # Another runtime started T4's `o`, and was lost.
    (49.0, OpenTurn(turn_id="T4", calls=(gated("q", "sh"), gated("p", timeout=60.0), OBSERVED))),
    (49.2, claim("T4", "o")),
    (49.4, Lose(turn_id="T4", invocation_id="o")),
    (50.0, approve("T4", "q", Scope.TURN)),
    (51.0, claim("T4", "q", lease=60.0)),
)

NO_SUCH_DIGEST = "00"


def _crowd_of(turn: str, invocation: str) -> tuple[Delivery, ...]:
    """Every way to meddle with one invocation of one turn."""
    return (
        approve(turn, invocation),
        approve(turn, invocation, Scope.SESSION, Match.TOOL),
        approve(turn, invocation, digest=NO_SUCH_DIGEST),
        deny(turn, invocation),
        claim(turn, invocation),
        claim(turn, invocation, 2, worker="w2"),
        claim(turn, invocation, 99),
        Renew(turn_id=turn, invocation_id=invocation, lease=1.0),
        Reject(turn_id=turn, invocation_id=invocation, error="x"),
        report(turn, invocation, "other"),
        report(turn, invocation, [], attempt=99),
        report(None, invocation, "other"),
        fail(turn, invocation),
        Lose(turn_id=turn, invocation_id=invocation),
        retry(turn, invocation),
        Resolve(
            turn_id=turn,
            invocation_id=invocation,
            attempt=1,
            resolution=Resolution.RESULT,
            result=1,
        ),
    )


def _crowd_about(turn: str) -> tuple[Delivery, ...]:
    """Every way to meddle with one turn."""
    return (
        *(line for name in "abcdz" for line in _crowd_of(turn, name)),
        OpenTurn(turn_id=turn, calls=()),
        OpenTurn(turn_id=turn, calls=(call("a"),), epoch=99),
        OpenTurn(turn_id=turn, calls=(call("a"), call("a"))),
        OpenTurn(turn_id=turn, calls=tuple(call(name) for name in "vwxyz")),
        AddCall(turn_id=turn, call=call("a")),
        SealTurn(turn_id=turn),
        Interrupt(turn_id=turn),
        Acknowledge(turn_id=turn),
    )


CROWD: tuple[Delivery, ...] = (
    *(line for turn in ("T1", "T2", "T3", "T9") for line in _crowd_about(turn)),
    Revoke(grant_id="grant/r/1"),
    Revoke(grant_id="grant/r/99"),
    retry("T4", "o"),
    Tick(run_id="another run"),
    report("T1", "a"),
)


def journal() -> list[Fact]:
    """All the facts of the story."""
    kernel = Kernel(RUN)
    return [fact for now, line in STORY for fact in kernel.receive(line, now).facts]


def tell_on(kernel: Kernel, lines: tuple[Line, ...]) -> list[Verdict]:
    """Give a kernel these lines."""
    return [kernel.receive(line, now) for now, line in lines]
