"""The forms of a log: whose line each is, where it breaks off, what is no line of a log."""

from __future__ import annotations

import io
import json

import pytest

from turnlock.models.codec import to_json
from turnlock.verification.traces.log import check
from turnlock.verification.traces.outcome import Kind
from turnlock.wire import log
from turnlock.wire.log import TooManyRuns
from turnlock.wire.stdio import serve

from .recorded import Line, broken, checked, exchanges, journal, journals, recorded, text

RUN_ID = next(iter(recorded()))


def test_interleaved_runs_are_told_apart_by_their_id() -> None:
    """Line by line in turns, each journal of the corpus conforms by itself."""
    whole = [[to_json(fact) for fact in facts] for facts in journals().values()]
    longest = max(map(len, whole))
    lines = [of[at] for at in range(longest) for of in whole if at < len(of)]

    outcome = checked(*lines)

    assert outcome.broken is None
    assert outcome.torn == ()
    assert {run.run_id: run.sequence for run in outcome.runs} == {
        run_id: len(facts) for run_id, facts in journals().items()
    }


def test_two_runs_that_share_an_id_are_told() -> None:
    """Two conversations under one run id: the second numbers its facts from 1 again."""
    first, second = (
        [json.loads(to_json(fact)) for fact in facts] for facts in [*journals().values()][:2]
    )
    renamed = [{**fact, "run_id": first[0]["run_id"]} for fact in second]

    found = broken(*(line for pair in zip(first, renamed, strict=False) for line in pair))

    assert (found.line, found.rule) == (2, "K-9")
    assert "two kernels wrote this run, or two runs share an id" in found.cause


@pytest.mark.parametrize("line", [0, 2, 9, 10, 11])
def test_a_last_line_that_is_torn_conforms_up_to_there(line: int) -> None:
    """Cut off inside a line, the log conforms as far as it goes; what is cut off is told."""
    lines = [json.dumps(fact).encode() + b"\n" for fact in journal()]
    commits = [fact["commit"] for fact in journal()]
    whole = next((at for at in range(line, 0, -1) if commits[at - 1] == at), 0)

    for end in range(1, len(lines[line]) - 1, 3):
        outcome = check([*lines[:line], lines[line][:end]])

        assert outcome.broken is None
        assert outcome.torn[0].line == line + 1
        assert "breaks off inside this line" in outcome.torn[0].cause
        assert [cut.incomplete for cut in outcome.torn[1:]] == [line - whole] * (line > whole)
        assert all(run.sequence == whole for run in outcome.runs)


def test_a_last_line_without_its_line_feed_is_whole() -> None:
    """Only the line feed is missing: nothing is lost."""
    outcome = check(text(*journal())[:-1].splitlines(keepends=True))

    assert (outcome.broken, outcome.torn) == (None, ())


def test_a_log_that_ends_inside_a_commit_is_told() -> None:
    """K-9: the success stands there, TURN_SETTLED of the same commit does not."""
    outcome = checked(*journal()[:10])

    assert outcome.broken is None
    assert [(cut.incomplete, cut.run_id) for cut in outcome.torn] == [(1, journal()[0]["run_id"])]
    assert "a recovery drops what comes after fact 9" in outcome.torn[0].cause
    assert outcome.runs[0].sequence == 9


GARBAGE: dict[str, tuple[bytes, int | None, str]] = {
    "text": (b"hello", 1, "is no JSON"),
    "a text in the middle": (b'{"type": oops}', 10, "is no JSON"),
    "not a number": (b'{"type": NaN}', 10, "no JSON number"),
    "no UTF-8": (b'{"type": "\xff"}', 11, "is no UTF-8"),
    "two objects": (b"{} {}", 4, "is no JSON"),
    "a list": (b"[1]", None, "is no JSON object"),
    "another object": (b'{"level": "info"}', None, "is no line of a log; give a fact"),
    "a delivery without a receipt": (b'{"delivery": {}}', None, "receipt: is no JSON object"),
    "a key that stands twice": (b'{"run": {"run_id": "a"}, "run": 1}', None, "stands twice"),
    "a run that is none": (b'{"run": {"run_id": ""}}', None, "run.run_id: is empty"),
    "a field that is not known": (
        b'{"delivery": {}, "receipt": {}, "mood": 1}',
        None,
        "mood: is no known field",
    ),
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_is_told_with_its_line_and_column(name: str) -> None:
    """What is no line of a log is told where it stands, among lines that are."""
    garbage, column, why = GARBAGE[name]

    found = broken(*journal()[:2], garbage, *journal()[2:])

    assert (found.line, found.column) == (3, column)
    assert why in found.cause


def test_a_delivery_that_stands_alone_is_told_for_what_it_is() -> None:
    """Its type is none of a fact's."""
    found = broken({"type": "open_turn", "turn_id": "T1", "calls": []})

    assert "type: 'open_turn' is no known type" in found.cause


def test_blank_lines_are_passed_over_and_counted() -> None:
    found = broken(*journal()[:2], b"", b"  ", b"x")

    assert found.line == 5


def test_a_fact_with_a_key_twice_is_refused() -> None:
    """A parser that lets the last of two win would not see it."""
    line = to_json(next(iter(journals().values()))[0])
    twice = line.replace(b'"sequence":1,', b'"sequence":7,"sequence":1,')

    assert "stands twice" in broken(twice).cause


def test_a_run_is_judged_by_the_limits_it_declares() -> None:
    """A turn id that is used again conforms where nothing is remembered, and only there."""
    facts = journal()
    again = [
        {**fact, "sequence": fact["sequence"] + 12, "commit": fact["commit"] + 12, "at": 2e9}
        for fact in facts[:1]
    ]
    again[0]["epoch"] = 2
    configured = {"run": {"run_id": facts[0]["run_id"], "limits": {"remember_for": 1e9}}}

    assert checked(*facts, *again).broken is None  # forgotten long before
    assert broken(configured, *facts, *again).rule == "K-54"


def test_a_run_is_declared_once_and_first() -> None:
    facts = journal()
    run_id = facts[0]["run_id"]
    one, other = ({"run": {"run_id": run_id, "agent_id": name}} for name in "ab")

    assert checked(one, one).broken is None
    assert "configured otherwise" in broken(one, other).cause
    assert "configured otherwise" in broken(*facts[:1], one).cause


def test_the_agent_of_an_undeclared_run_stays_the_same() -> None:
    """Its first lifecycle fact says who the run's agent is; another cannot come later."""
    facts = [
        {**fact, "agent_id": "ann"} if fact["type"].startswith("TOOL_") else fact
        for fact in journal()
    ]

    assert checked(*facts).broken is None
    facts[7]["agent_id"] = "bob"
    found = broken(*facts)
    assert (found.line, "agent_id is 'bob', not 'ann'" in found.cause) == (8, True)


def test_more_runs_than_are_held_are_no_log_for_us(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "RUNS", 2)
    first = journal()[0]
    lines = [{**first, "run_id": name} for name in "abc"]

    assert checked(*lines[:2]).judged == 2
    with pytest.raises(TooManyRuns, match="more than 2 runs"):
        checked(*lines)


def test_deliveries_with_receipts_conform() -> None:
    """What the kernel answered to real data is what the oracle answers."""
    for run_id in recorded():
        outcome = checked(*exchanges(run_id))

        assert outcome.broken is None
        assert [(run.run_id, run.kind) for run in outcome.runs] == [(run_id, Kind.DELIVERIES)]


def test_a_receipt_that_is_wrong_is_told() -> None:
    lines = exchanges(RUN_ID)
    at = next(at for at, line in enumerate(lines) if line["delivery"]["type"] == "claim")
    lines.insert(at + 1, json.loads(json.dumps(lines[at])))  # one approval, two starts

    found = broken(*lines)

    assert (found.line, found.rule) == (at + 2, "K-33")
    assert "claim was to be refused as duplicate and was accepted" in found.cause
    assert found.instead == ("refused as duplicate",)


def test_a_receipt_of_several_runs_says_whose_it_is() -> None:
    """Without run_id, deliveries of two runs cannot be told apart: that is said, not guessed."""
    one, other = (
        [{**line, "run_id": name} for line in exchanges(name)] for name in [*recorded()][:2]
    )

    assert (
        checked(*(line for pair in zip(one, other, strict=False) for line in pair)).broken is None
    )
    nameless = {name: value for name, value in one[1].items() if name != "run_id"}
    found = broken(one[0], other[0], nameless)
    assert found.line == 3
    assert "does not say whose it is" in found.cause


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"type": "pause"}, "delivery.type: 'pause' is no known type"),
        ({"now": None}, "delivery.now: None is not a number"),
        ({"mood": 1}, "delivery.mood: is no known field"),
    ],
)
def test_a_delivery_that_cannot_be_built_is_told(change: Line, why: str) -> None:
    """K-8: the oracle is asked about well-formed deliveries alone."""
    lines = exchanges(RUN_ID)
    lines[1]["delivery"] |= change

    found = broken(*lines)

    assert found.line == 2
    assert why in found.cause


def test_a_recovery_owes_what_was_owed() -> None:
    """{"type": "recover"} between deliveries is judged by all the effects still owed."""
    first = exchanges(RUN_ID)[0]
    owed: list[Line] = first["receipt"]["effects"]

    def recovered(*effects: Line) -> Line:
        receipt = {"accepted": True, "facts": [], "effects": [*effects]}
        return {"delivery": {"type": "recover"}, "receipt": receipt}

    assert checked(first, recovered(*owed)).judged == 2
    found = broken(first, recovered(owed[0], *owed))
    assert (found.line, found.rule) == (2, "K-3")


def spoken(*deliveries: Line) -> tuple[Line, Line]:
    request = {"id": 1, "run": {"run_id": "r"}, "scripts": [list(deliveries)]}
    answered = io.BytesIO()
    serve(io.BytesIO(json.dumps(request).encode()), answered)
    return request, json.loads(answered.getvalue())


CALL: Line = {"invocation_id": "a", "tool_name": "ls", "arguments": {}, "requires_approval": False}
OPEN: Line = {"type": "open_turn", "now": 1.0, "turn_id": "T1", "calls": [CALL]}
CLAIM: Line = {"type": "claim", "now": 2.0, "turn_id": "T1", "invocation_id": "a", "attempt": 1}


def test_what_was_said_on_the_wire_is_judged() -> None:
    """A request and its answer, each script on a fresh run; malformed requests are passed over."""
    request, right = spoken(OPEN, CLAIM, {"type": "digest"}, {"type": "recover"})
    malformed, refused = spoken({"type": "pause"})

    outcome = checked(request, {**malformed, "id": 2}, {**refused, "id": 2}, right)

    assert outcome.broken is None
    assert [(run.kind, run.count, run.sequence) for run in outcome.runs] == [(Kind.SCRIPTS, 3, 2)]


def test_a_wrong_answer_on_the_wire_is_told() -> None:
    request, right = spoken(OPEN, CLAIM)
    wrong = json.loads(json.dumps(right))
    wrong["scripts"][0][1]["facts"][0]["attempt"] = 2

    found = broken(request, wrong)
    assert (found.line, found.rule) == (2, "K-33")
    assert found.cause.startswith("scripts[0][1]: in the answer to claim, facts[0].attempt")

    del wrong["scripts"][0][1]
    assert "one receipt for each delivery" in broken(request, wrong).cause
    assert "no request 1 waits for an answer" in broken(right).cause
    assert "scripts: is no JSON array" in broken(request, {**right, "scripts": 1}).cause


def test_requests_that_nobody_answers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "PENDING", 2)
    request, _ = spoken(OPEN)

    assert "more than 2 requests wait" in broken(*({**request, "id": n} for n in range(3))).cause
