"""Messages lost, doubled, overtaken and made up, people who decide otherwise: the run stays whole.

Whatever is said in whatever order (S-33a): nothing raises, no execute is owed for what is observed,
nothing is left STARTED once the process has ended, each request is answered at most once, and every
refusal of the kernel is explained.
"""

from __future__ import annotations

import random
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from turnlock.adapters.codex.messages import Asked, Notified, read
from turnlock.adapters.codex.refusals import explained
from turnlock.models.calls import Call
from turnlock.models.deliveries import (
    AddCall,
    Claim,
    Decide,
    Interrupt,
    OpenTurn,
    Report,
    SealTurn,
)
from turnlock.models.reasons import Reason
from turnlock.models.verdicts import Refused
from turnlock.views.live import calls_of

from ...runtime.crash.depth import DEEP
from .driving import OURS, Driven, Line, Playing, lines, scenarios

NAMES: Final = scenarios()
DIED: Final = Line("meta", {"event": "stdout_eof"}, b"")
PLAYS: Final = 3_000 if DEEP else 120


def checked(playing: Playing) -> None:
    """Demand what must hold of every run."""
    for driven in playing.threads.values():
        driven.drain()
        assert driven.broken == []
        unexplained = [(it.delivery, it.refused.reason) for it in driven.refusals if it.why is None]
        assert unexplained == []


def end_of_process(told: list[Line], place: int, most: int) -> int:
    """Return how far a line may move: no message outlives its process."""
    end = place
    while end + 1 < len(told) and end < place + most and told[end + 1].direction != "meta":
        end += 1
    return end


def mutated(told: list[Line], chance: random.Random) -> list[Line]:
    """Lose, double and delay a few messages."""
    told = list(told)
    for _ in range(chance.randint(0, 6)):
        places = [place for place, it in enumerate(told) if it.direction == "s2c"]
        if not places:
            break
        place = chance.choice(places)
        match chance.choice(("lost", "doubled", "overtaken")):
            case "lost":
                del told[place]
            case "doubled":
                told.insert(chance.randint(place, end_of_process(told, place, 4)), told[place])
            case _:
                end = end_of_process(told, place, chance.randint(1, 4))
                told.insert(end, told.pop(place))
    if chance.random() < 0.3:
        told = [*told[: chance.randrange(len(told) + 1)], DIED]
    return told


def meddle(driven: Driven, chance: random.Random) -> None:
    """Decide, interrupt and run as people and executors may, at any time."""
    turn = driven.kernel.turn
    if turn is not None and chance.random() < 0.03:
        grace = chance.choice((0.0, 0.02, 10.0))
        driven.judge(Interrupt(turn_id=turn.turn_id, grace=grace), ours=True)
    if chance.random() < 0.1:
        for call in tuple(calls_of(driven.kernel)):
            ids: dict[str, Any] = {"turn_id": call.turn_id, "invocation_id": call.invocation_id}
            if call.gated and chance.random() < 0.5:
                driven.judge(Decide(approved=chance.random() < 0.6, **ids), ours=True)
            elif not call.observed and chance.random() < 0.5:
                driven.judge(Claim(attempt=1, worker=OURS, **ids), ours=True)
                if chance.random() < 0.6:
                    driven.judge(Report(result="x", **ids), ours=True)
    driven.step()


@settings(max_examples=PLAYS, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    name=st.sampled_from(NAMES),
    seed=st.integers(0, 2**32),
    lag=st.sampled_from([0, 1, 3, 8]),
    limit=st.sampled_from([1, 2, 3, 10_000]),
    settlement=st.sampled_from([None, "turn", "response"]),
    meddles=st.booleans(),
)
def test_whatever_comes_the_run_stays_whole(
    *, name: str, seed: int, lag: int, limit: int, settlement: str | None, meddles: bool
) -> None:
    """S-2, S-20, S-26, S-33a, S-36, S-39: as the head of this file says."""
    chance = random.Random(seed)
    playing = Playing(lag=lag, limit=limit, settlement=settlement)
    for line in mutated(lines(name), chance):
        playing.line(line)
        for driven in tuple(playing.threads.values()) if meddles else ():
            meddle(driven, chance)
    checked(playing)


@pytest.mark.parametrize("name", NAMES if DEEP else ["05_parallel_mixed", "26_unknown_tool"])
def test_each_message_lost_doubled_overtaken_or_the_last(name: str) -> None:
    """S-26, S-33a: at every place of a transcript."""
    told = lines(name)
    for place, line in enumerate(told):
        if line.direction != "s2c":
            continue
        swapped = [*told[place + 1 : place + 2], line]
        for faulty in (
            told[:place] + told[place + 1 :],
            told[: place + 1] + told[place:],
            told[:place] + swapped + told[place + 2 :],
            [*told[: place + 1], DIED],
        ):
            playing = Playing()
            for it in faulty:
                playing.line(it)
            checked(playing)


METHODS: Final = (
    *("turn/started", "turn/completed", "item/started", "item/completed", "error"),
    *("rawResponseItem/completed", "rawResponse/completed", "serverRequest/resolved"),
    *("item/commandExecution/outputDelta", "item/agentMessage/delta"),
    *("item/fileChange/patchUpdated", "item/commandExecution/requestApproval"),
    *("item/fileChange/requestApproval", "item/permissions/requestApproval"),
    *("item/tool/call", "item/tool/requestUserInput", "mcpServer/elicitation/request"),
    *("execCommandApproval", "applyPatchApproval", "nobody/knows"),
)
IDS: Final = st.sampled_from(["u", "v", "c", "d", "", "x" * 300])
KINDS: Final = st.sampled_from(
    ["commandExecution", "fileChange", "mcpToolCall", "dynamicToolCall", "collabAgentToolCall"]
)
NONE: Final = st.builds(list[Any])
NOTHING: Final = st.builds(dict[str, Any])
ITEMS: Final = st.fixed_dictionaries(
    {"type": KINDS | st.text(max_size=8), "id": IDS},
    optional={
        "command": st.sampled_from(["ls", "rm"]),
        "cwd": st.just("/w"),
        "changes": NONE,
        "server": IDS,
        "tool": IDS,
        "arguments": st.none() | st.dictionaries(IDS, st.integers()),
        "status": st.sampled_from(["inProgress", "completed", "failed", "declined", "odd"]),
        "processId": st.none() | st.sampled_from(["1", "2"]),
        "call_id": IDS,
        "output": st.none() | st.text(max_size=3),
        "name": IDS,
    },
)
JSON: Final[st.SearchStrategy[Any]] = (
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | NONE
)
PARAMS: Final = st.fixed_dictionaries(
    {"threadId": st.just("T")},
    optional={
        "turnId": IDS | JSON,
        "turn": st.fixed_dictionaries({"id": IDS}) | JSON,
        "item": ITEMS | JSON,
        "itemId": IDS | JSON,
        "callId": IDS | JSON,
        "approvalId": st.none() | IDS,
        "requestId": st.integers(0, 3) | JSON,
        "command": st.sampled_from(["ls", "rm"]) | st.just(["ls"]) | JSON,
        "changes": NONE | JSON,
        "fileChanges": NOTHING | JSON,
        "permissions": NOTHING | JSON,
        "questions": st.just([{"id": "q"}]) | JSON,
        "tool": IDS | JSON,
        "serverName": IDS | JSON,
        "willRetry": st.booleans(),
        "delta": st.text(max_size=3) | JSON,
        "_meta": st.just({"codex_approval_kind": "mcp_tool_call"}) | JSON,
    },
)


def message_of(method: str, params: dict[str, Any], request: int | None) -> Notified | Asked:
    return Notified(method, params) if request is None else Asked(request, method, params)


MESSAGES: Final = st.builds(
    message_of,
    st.sampled_from(METHODS),
    PARAMS,
    st.none() | st.integers(0, 5),
)


@settings(max_examples=PLAYS, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    told=st.lists(MESSAGES, max_size=40),
    seed=st.integers(0, 2**32),
    settlement=st.sampled_from(["turn", "response"]),
)
def test_whatever_a_runtime_may_say_nothing_raises(
    told: list[Notified | Asked], seed: int, settlement: str
) -> None:
    """S-13: messages that no Codex ever said, in any order, with any payload."""
    chance = random.Random(seed)
    driven = Driven("T", settlement=settlement, limit=3)
    for message in told:
        driven.take(message)
        meddle(driven, chance)
    driven.drain()
    driven.process_ended()

    assert driven.broken == []
    assert [it.refused.reason for it in driven.refusals if it.why is None] == []


def test_what_is_nested_too_deep_or_too_long_is_kept_all_the_same() -> None:
    """S-13: as its text; the journal holds 100 levels of what is said."""
    deep = b"[" * 120 + b"]" * 120
    line = (
        b'{"method":"item/completed","params":{"threadId":"T","turnId":"u","item":{"type":'
        b'"mcpToolCall","id":"m","server":"s","tool":"t","arguments":%b,"result":%b,'
        b'"status":"completed"}}}' % (deep, deep)
    )
    message = read(line)
    assert isinstance(message, Notified)
    driven = Driven("T", settlement="turn")

    driven.take(message)

    assert [it.type.name for it in driven.facts][-1] == "TOOL_EXECUTION_SUCCEEDED"
    assert driven.odd == []


CALL: Final = Call(
    invocation_id="c", tool_name="t", arguments={}, requires_approval=False, observed=True
)


@pytest.mark.parametrize(
    ("delivery", "reason"),
    [
        (OpenTurn(turn_id="u", calls=(CALL,), sealed=False), Reason.TURN_BUSY),
        (OpenTurn(turn_id="u", calls=(CALL,), sealed=False), Reason.TURN_REUSED),
        (AddCall(turn_id="u", call=CALL), Reason.DUPLICATE_INVOCATION),
        (AddCall(turn_id="u", call=CALL), Reason.LIMIT_REACHED),
        (AddCall(turn_id="u", call=CALL), Reason.TURN_SEALED),
        (SealTurn(turn_id="u"), Reason.DUPLICATE),
        (SealTurn(turn_id="u"), Reason.NO_ACTIVE_TURN),
        (Claim(turn_id="u", invocation_id="c", attempt=1), Reason.NOT_APPROVED),
        (Report(turn_id="u", invocation_id="c", result=1), Reason.NOT_STARTED),
        (Report(turn_id="u", invocation_id="c", result=1), Reason.RUN_MISMATCH),
        (Decide(turn_id="u", invocation_id="c", approved=True), Reason.ALREADY_DECIDED),
        (
            Decide(turn_id="u", invocation_id="c", approved=True, decided_by="runtime"),
            Reason.ARGUMENTS_MISMATCH,
        ),
    ],
)
def test_a_refusal_that_is_a_defect_is_not_explained_away(delivery: Any, reason: Reason) -> None:
    """S-38, the negative control: only the races that there are have a reason."""
    assert explained(delivery, Refused(reason=reason)) is None
