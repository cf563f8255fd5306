"""The envelope of an entry: bytes joined, once for all (F-6, F-7, F-8, S-60, S-63, S-65, S-76)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlock import Call, Claim, Kernel, OpenTurn, Run
from turnlock.adapters.correlation import Completeness, Correlation, EnvelopeMismatch
from turnlock.models.codec import to_json
from turnlock.models.strict_json import parse
from turnlock.models.workers import opaque
from turnlock.runtime.journal.ledger import START, Cursor, Domain, Gap, LedgerEntry, LedgerPage
from turnlock.server.envelope import Envelopes, event_id
from turnlock.server.shown import Failed, GapShown, Sent

OLD = "turnlock:host.example:4711:boot:1.2:333:abcd"


def claimed(worker: str | None) -> bytes:
    """The fact of a claim by this worker, as a journal keeps it."""
    kernel = Kernel(Run(run_id="r"))
    call = Call(invocation_id="c", tool_name="t", arguments={}, requires_approval=False)
    kernel.receive(OpenTurn(turn_id="t", calls=(call,)), 1.0)
    claim = Claim(turn_id="t", invocation_id="c", attempt=1, worker=worker)
    (fact,) = kernel.receive(claim, 2.0).facts
    return to_json(fact)


def sent(*entries: LedgerEntry, run_id: str = "r", after: Cursor = START) -> list[Any]:
    page = LedgerPage(entries=entries, head=entries[-1].cursor)
    return [
        json.loads(it.envelope) if isinstance(it, Sent) else it
        for it in Envelopes(run_id).of(page, after=after)
    ]


def test_f_7_the_envelope_of_a_fact_has_its_bytes_as_they_were_kept() -> None:
    """F-7, F-4: nothing of the fact is changed, down to the byte; one line."""
    content = claimed("w/0123")
    entry = LedgerEntry(Cursor(2), 1795330556.9, content)
    (it,) = Envelopes("r1").of(LedgerPage(entries=[entry], head=Cursor(2)), after=Cursor(1, 1))
    assert isinstance(it, Sent)
    assert it.envelope == (
        b'{"event_id":"event/r1/2","run_id":"r1","cursor":"2","after":"1.1",'
        b'"occurred_at":1795330556.9,"correlation":null,"fact":' + content + b"}"
    )
    assert it.sse == b"id: 2\ndata: " + it.envelope + b"\n\n"
    assert it.nameless == b"data: " + it.envelope + b"\n\n"
    assert json.loads(it.text) == {"type": "event", "run_id": "r1", "data": json.loads(it.envelope)}


def test_f_8_a_note_stands_in_place_of_a_fact() -> None:
    """F-8, S-63: with the correlation that was kept beside it."""
    note = b'{"body":{"id":"said/2"},"domain":"message","kind":"assistant"}'
    about = Correlation(thread_id="t", turn_id="u", completeness=Completeness.COMPLETE)
    (told,) = sent(LedgerEntry(Cursor(0, 3), 1.0, note, about.line(), Domain.MESSAGE))
    assert told == {
        "event_id": "event/r/0.3",
        "run_id": "r",
        "cursor": "0.3",
        "after": "",
        "occurred_at": 1.0,
        "correlation": about.body(),
        "note": json.loads(note),
    }


def test_f_6_a_worker_that_names_a_host_is_sent_as_a_digest_and_it_alone_is_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """F-6, S-50: the same digest each time; what only looks like one stays as it is."""
    decoded: list[bytes] = []

    def noting(content: bytes) -> Any:
        decoded.append(content)
        return parse(content)

    monkeypatch.setattr("turnlock.server.envelope.parse", noting)
    old, new, nobody = (LedgerEntry(Cursor(n), 1.0, claimed(worker)) for n, worker in (
        (1, OLD), (2, "w/01"), (3, None),
    ))  # fmt: skip
    first, second, third = sent(old, new, nobody)
    assert first["fact"]["worker"] == opaque(OLD) == sent(old)[0]["fact"]["worker"]
    assert first["fact"] == {**json.loads(old.content), "worker": opaque(OLD)}
    assert (second["fact"]["worker"], third["fact"].get("worker")) == ("w/01", None)
    assert decoded == [old.content, old.content]
    looks = LedgerEntry(Cursor(1), 1.0, b'{"arguments":{"worker":"' + OLD.encode() + b'"}}')
    assert sent(looks)[0]["fact"] == json.loads(looks.content)


@given(st.text(min_size=1, max_size=12), st.integers(0, 10**18), st.integers(0, 10**18))
def test_s_60_ids_are_escaped_and_tell_each_entry_apart(
    run_id: str, number: int, part: int
) -> None:
    """S-60, K-7: event/run/sequence[.part]; the run's slashes and percents are no joints."""
    named = event_id(run_id, Cursor(number, part))
    assert named.count("/") == 2
    _, run, place = named.split("/")
    assert run.replace("%2F", "/").replace("%25", "%") == run_id
    assert place == (f"{number}.{part}" if part else str(number))
    if number or part:
        entry = LedgerEntry(Cursor(number, part), 1.5, b"{}")
        (told,) = sent(entry, run_id=run_id)
        assert (told["event_id"], told["run_id"]) == (named, run_id)
        assert told["cursor"] == str(Cursor(number, part))


def test_s_60_after_names_the_entry_shown_before_or_the_end_of_a_gap() -> None:
    """S-60, S-71, S-76: an entry that cannot be shown is none that was."""
    entries = [
        LedgerEntry(Cursor(1), 1.0, b"{}"),
        LedgerEntry(Cursor(2), 1.0, b"torn"),
        LedgerEntry(Cursor(3), 2.0, b"{}"),
        LedgerEntry(Cursor(3, 4), 2.0, b"{}", None, Domain.PLAN),
    ]
    gaps = [Gap(first=Cursor(3, 1), last=Cursor(3, 3)), Gap(first=Cursor(3, 5), last=Cursor(3, 9))]
    page = LedgerPage(entries=entries, head=Cursor(3, 9), gaps=gaps)
    told = Envelopes("r").of(page, after=Cursor(0, 7))
    assert [type(it) for it in told] == [Sent, Failed, Sent, GapShown, Sent, GapShown]
    afters = [json.loads(it.envelope)["after"] for it in told if isinstance(it, Sent)]
    assert afters == ["0.7", "1", "3.3"]
    assert isinstance(told[1], Failed)
    failed: Any = json.loads(told[1].data)
    assert failed["event_id"] == "event/r/2"
    assert failed["problem"]["title"] == "translation_failed"


@given(st.lists(st.integers(0, 3), min_size=1, max_size=20), st.integers(0, 40))
def test_any_prefix_and_then_the_rest_equal_all_at_once(notes: list[int], cut: int) -> None:
    """Pages may end anywhere: the bytes of each entry are the same."""
    entries = [
        LedgerEntry(Cursor(number, part), number / 7, b"{}", None, Domain.ITEM if part else None)
        for number, count in enumerate(notes, 1)
        for part in range(count + 1)
    ]
    head = entries[-1].cursor
    cut = min(cut, len(entries))
    whole = Envelopes("r").of(LedgerPage(entries=entries, head=head), after=START)
    first = Envelopes("r").of(LedgerPage(entries=entries[:cut], head=head), after=START)
    after = entries[cut - 1].cursor if cut else START
    rest = Envelopes("r").of(LedgerPage(entries=entries[cut:], head=head), after=after)
    assert [it.sse for it in [*first, *rest]] == [it.sse for it in whole]


@pytest.mark.parametrize(
    "fields",
    [
        {"thread_id": None, "turn_id": "t"},
        {"thread_id": "t", "approval_id": "a"},
        {"thread_id": "t", "completeness": "complete"},
        {"thread_id": ""},
        {"thread_id": 5},
        {"thread_id": "\ud800"},
        {"thread_id": "t", "completeness": "whole"},
        {"thread_id": "t", "more": 1},
        {},
    ],
)
def test_s_65_an_envelope_that_is_not_whole_is_refused_where_it_is_built(
    fields: dict[str, Any],
) -> None:
    """S-65: so it never reaches the journal."""
    empty = {"turn_id": None, "item_id": None, "approval_id": None, "completeness": "partial"}
    with pytest.raises(EnvelopeMismatch) as caught:
        Correlation.of({**empty, **fields})
    assert caught.value.code == "runtime_event_envelope_mismatch"
    good = Correlation.of({**empty, "thread_id": "t"})
    assert Correlation.of(good.body()) == good


def test_s_62_the_domains_of_notes() -> None:
    """S-62: those, and no others."""
    told = "thread turn item approval message plan diff usage error session raw_protocol"
    assert {str(it) for it in Domain} == set(told.split())
