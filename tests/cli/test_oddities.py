"""Recordings that are odd: what providers really send is no fault, is served, and is counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from turnlock.verification.replay.lines import Problems
from turnlock.verification.replay.recording import read_recording

from .recordings import CORPUS, answer, batch, call, lines, replayed, turnlock, write

UNREADABLE_ARGUMENTS = [
    ("", "is no JSON"),
    ("{", "is no JSON"),
    ("[]", "[] is not a JSON object"),
    ("3", "3 is not a JSON object"),
    ("null", "None is not a JSON object"),
    ('{"a": NaN}', "NaN is no JSON number"),
    ('{"a": 1, "a": 2}', "the key 'a' stands twice"),
    ('{"a": "\\ud800"}', "holds a lone surrogate"),
    ('{"a": ' + "[" * 150 + "]" * 150 + "}", "nested deeper than 100 levels"),
    ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
]


@pytest.mark.parametrize(("args", "cause"), UNREADABLE_ARGUMENTS, ids=lambda text: text[:20])
def test_arguments_that_cannot_be_read_are_rejected_as_a_host_would(
    tmp_path: Path, args: str, cause: str
) -> None:
    """Without a result the call is rejected with the cause, with one it runs."""
    file = write(tmp_path, lines(batch(calls=[call(args=args)], results=[])))
    served = replayed(file, "--hostile", "3")
    assert served["invocations"] == {"succeeded": 0, "failed": 1, "denied": 0}
    assert served["executions"] == 0
    assert served["oddities"]["calls whose arguments are no JSON object"] == 1

    shown = turnlock("trace", file, "--run", "talk")
    assert "TOOL_EXECUTION_FAILED" in shown.output
    assert "the arguments cannot be read" in shown.output

    file = write(tmp_path, lines(batch(calls=[call(args=args)])))
    assert replayed(file)["invocations"] == {"succeeded": 1, "failed": 0, "denied": 0}

    problems = Problems()
    ((_, read),) = read_recording(file, problems).conversations[0].turns
    assert cause in (read.calls[0].fault or "")
    assert read.calls[0].arguments == {"text": args}


def test_ids_that_are_missing_repeated_reused_or_with_slashes_all_go_through(
    tmp_path: Path,
) -> None:
    """Whatever a provider does with ids, every call is settled and told back (K-20)."""
    calls = [call(None), call(""), {"name": "look", "args": "{}"}, call("noid-3")]
    calls += [call("a"), call("a"), call("a/b/%2F"), call("call~1")]
    results = [answer("a", "first a"), answer("noid-3"), answer(None, "the first without an id")]
    results += [answer("a", "broken", "error"), answer("a/b/%2F", "no", "denied")]
    file = write(
        tmp_path, lines(*(batch(turn=turn, calls=calls, results=results) for turn in range(3)))
    )

    served = replayed(file, "--hostile", "8")

    assert served["invocations"] == {"succeeded": 18, "failed": 3, "denied": 3}
    assert served["oddities"] == {
        "calls without a result": 9,
        "calls without an id": 12,
        "ids repeated in one batch": 3,
        "ids used in an earlier turn": 6,
    }


def test_results_that_answer_no_call_are_hostile_material_and_counted(tmp_path: Path) -> None:
    """One with an unknown id, one too many, and one that happens to have an id that we made up."""
    strays = [answer("nobody"), answer("a", "again"), answer("call~2"), answer("", "for whom?")]
    file = write(
        tmp_path, lines(batch(calls=[call(), call("noid-1")], results=[answer(), *strays]))
    )

    served = replayed(file)

    assert served["oddities"]["results that answer no call"] == 4
    assert served["hostile"] == {"recorded": 4}
    assert served["failures"] == []


def test_conversations_may_interleave_and_turns_come_in_any_order(tmp_path: Path) -> None:
    """They are sorted; a repeated turn number gets a suffix, a batch without calls no answer."""
    file = write(
        tmp_path,
        lines(
            batch(turn=2),
            batch(conv="other"),
            batch(turn=1),
            batch(turn=1, streaming=True),
            batch(turn=-3, calls=[], results=[]),
        ),
    )

    conversations = read_recording(file, Problems()).conversations
    assert [one.run_id for one in conversations] == ["talk", "other"]
    assert [turn_id for turn_id, _ in conversations[0].turns] == ["-3", "1", "1~2", "2"]

    served = replayed(file)
    assert (served["turns_settled"], served["continuations"]) == (5, 4)
    assert served["oddities"] == {
        "batches out of order": 2,
        "ids used in an earlier turn": 2,
        "batches without a call": 1,
        "repeated turn numbers": 1,
    }


def test_one_name_in_two_sources_is_two_conversations(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        lines(
            batch(source="x"), batch(source="y"), batch(source="y", turn=1), batch(conv="x#talk")
        ),
    )

    conversations = read_recording(file, Problems()).conversations

    assert [one.run_id for one in conversations] == ["x#talk", "y#talk", "x#talk~2"]


def test_more_than_the_schema_is_allowed(tmp_path: Path) -> None:
    """Recordings carry more: times, approvals, whatever their recorder saw."""
    more = batch(kind="codex", approval_requested=["2026-01-01"], started=[], ended=None)

    assert replayed(write(tmp_path, lines(more)))["problems"] == []


def test_many_repeats_stay_cheap(tmp_path: Path) -> None:
    """Thousands of batches of one turn number, of calls of one id: no quadratic naming."""
    file = write(tmp_path, lines(*(batch(calls=[], results=[]) for _ in range(10_000))))
    conversation = read_recording(file, Problems()).conversations[0]
    assert conversation.turns[-1][0] == "0~10000"

    file = write(tmp_path, lines(batch(calls=[call()] * 3_000, results=[])))
    assert replayed(file)["invocations"]["succeeded"] == 3_000


def test_the_shipped_corpus_reads_without_a_problem() -> None:
    """And it has what it is there for; its licences stand beside it."""
    problems = Problems()
    recording = read_recording(CORPUS, problems)
    batches = [one for talk in recording.conversations for _, one in talk.turns]

    assert list(problems.lines()) == []
    assert 40 <= len(batches) <= 60
    assert Path(CORPUS).stat().st_size < 60_000
    assert max(len(one.calls) for one in batches) >= 5
    assert len({one.provider for one in batches}) >= 5
    assert any(one.streaming for one in batches)
    assert any(result.status == "error" for one in batches for result in one.results)
    licences = Path(CORPUS).with_name("SOURCES.md").read_text(encoding="utf-8")
    for one in batches:
        repository, _, path = one.source.partition(":")
        assert repository in licences
        assert f"`{path}`" in licences
    assert json.loads(Path(CORPUS).read_bytes().splitlines()[0])["kind"]
