"""What must hold of a small world that has come to rest, by rules of its own.

No mention is parsed here as the world does it, and nothing of what a member is thought to be is
asked: the logs, the notes, the facts and what tools did are looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from turnlock.engine.kernel import Kernel
from turnlock.models.fact import Fact, FactType
from turnlock.models.ids import escape
from turnlock.runtime.journal.contract import Entry
from turnlock.runtime.journal.ledger import Domain, Note
from turnlock.runtime.writer import fold_run

from .crash.checks import turn_of
from .small_world import CHAT, LOG, SETTINGS, Small


def addressed_in(text: str) -> tuple[set[str], set[str]]:
    """Who is addressed by a text of the words that are used here, and who else is named in it."""
    addressed: set[str] = set()
    named: set[str] = set()
    for line in text.splitlines():
        begins = True
        for word in line.split():
            begins = begins and word.startswith("@")
            if word.startswith("@"):
                (addressed if begins else named).add(word[1:].lower())
    return addressed, named


def is_answered(body: Mapping[str, Any], agent: str) -> bool:
    """The table of section 4, told again."""
    if body["kind"] != "message" or body["role"] == "system":
        return False
    if body["role"] == "agent" and body["sender"] == agent:
        return False
    if body["role"] == "world":
        return True
    addressed, named = addressed_in(body["text"])
    if addressed:
        return agent in addressed
    return body["role"] == "person" and not named


AFTER_THE_END: Final = frozenset(
    {
        FactType.TURN_OPENED,
        FactType.CALL_ADDED,
        FactType.TOOL_APPROVAL_REQUESTED,
        FactType.TOOL_APPROVED,
        FactType.TOOL_EXECUTION_STARTED,
        FactType.EXECUTION_RETRIED,
    }
)
"""What must not happen to a run that is over: nothing begins there."""


async def violations(small: Small) -> Sequence[str]:
    """Return what is wrong with a world that has come to rest."""
    log = await small.kept.entries(LOG)
    wrong = [*small.failed, *_of_log(log)]
    configuration = await small.world.configuration()
    present = {it.run_id: it for it in configuration.members(CHAT)}
    runs = {it.run.run_id: it.run async for it in small.kept.run_entries()}
    for run_id, run in runs.items():
        notes = [
            (it.note.id or it.note.kind, it.note)
            for it in await small.kept.notes(run_id, domain=Domain.MESSAGE)
        ]
        facts = [fact async for fact in small.kept.facts(run_id)]
        kernel = await fold_run(run, small.kept)
        heard, _ = heard_in(notes)
        member = present.get(run_id)
        agent = run_id.rpartition("/")[2].partition("#")[0]
        answerable = [it.number for it in log if is_answered(_body(it), agent)]
        if member is None:
            wrong += _of_ended(run_id, small, notes, facts, kernel)
            expected = [it for it in answerable if it in set(heard)]
        else:
            begins = configuration.begins_at(member)
            expected = [it for it in answerable if it > begins]
        if heard != expected:
            wrong.append(f"{run_id} has heard {heard}, and should have {expected}")
        wrong += _of_answers(run_id, log, notes, is_present=member is not None)
        wrong += _of_executions(run_id, facts, small)
        if kernel.busy:
            wrong.append(f"{run_id} has something under way")
    for run_id, member in present.items():
        unheard = [it.number for it in log if is_answered(_body(it), member.agent)]
        if run_id not in runs and unheard and unheard[-1] > configuration.begins_at(member):
            wrong.append(f"{run_id} has heard nothing of {unheard}")
    return wrong


def _of_log(log: Sequence[Entry]) -> Iterator[str]:
    numbers = [it.number for it in log]
    if numbers != [*range(1, len(numbers) + 1)]:
        yield f"the log has the numbers {numbers}"
    if len({it.entry_id for it in log}) != len(log):
        yield "an id stands twice in the log"


def heard_in(notes: Sequence[tuple[str, Note]]) -> tuple[list[int], list[int]]:
    """The numbers of the entries that were heard or passed, in order; and those passed."""
    heard: list[int] = []
    passed: list[int] = []
    for note_id, note in notes:
        body: Mapping[str, Any] = note.body
        if note_id.startswith("passed/"):
            passed.append(int(note_id.removeprefix("passed/")))
            heard.append(passed[-1])
        elif body.get("heard") is not None:
            heard.append(body["heard"]["number"])
    return heard, passed


def _of_answers(
    run_id: str, log: Sequence[Entry], notes: Sequence[tuple[str, Note]], *, is_present: bool
) -> Iterator[str]:
    """Yield where a prompt has two answers in the log, and an answer was not published."""
    prefix = f"{run_id}/said/"
    published = {
        int(it.entry_id.removeprefix(prefix)) for it in log if it.entry_id.startswith(prefix)
    }
    said = {
        int(note_id.removeprefix("said/")): note.body
        for note_id, note in notes
        if note_id.startswith("said/")
    }
    prompt = 0
    answered: Counter[int] = Counter()
    for number in sorted(said):
        if "calls" not in said[number]:
            prompt = number
        elif number in published:
            answered[prompt] += 1
    if published - set(said):
        yield f"{run_id} has published {published - set(said)}, and never said it"
    if any(count > 1 for count in answered.values()):
        yield f"{run_id} has answered {answered}"
    if is_present:
        final = {it for it in said if _is_final(said, it)}
        if final != published:
            yield f"{run_id} has published {sorted(published)} of {sorted(final)}"


def _is_final(said: Mapping[int, Mapping[str, Any]], number: int) -> bool:
    """Whether a note is an answer without calls that says something to others."""
    body = said[number]
    if "calls" not in body or body["calls"]:
        return False
    text = (body["text"] or "").replace("<world>PASS</world>", "").strip()
    return bool(text)


def _of_executions(run_id: str, facts: Sequence[Fact], small: Small) -> Iterator[str]:
    """Yield executions that nobody allowed."""
    approved: set[tuple[str, str]] = set()
    allowed = 0
    gated: set[tuple[str, str]] = set()
    for fact in facts:
        call = (turn_of(fact), getattr(fact, "invocation_id", ""))
        if fact.type is FactType.TOOL_APPROVAL_REQUESTED:
            gated.add(call)
        elif fact.type is FactType.TOOL_APPROVED:
            approved.add(call)
        elif fact.type in {FactType.TOOL_EXECUTION_STARTED, FactType.EXECUTION_RETRIED}:
            allowed += 1
            if call in gated - approved:
                yield f"{run_id}: {call} began without approval"
    ran = [key for _, key in small.ran if f"/{escape(run_id)}/" in key]
    if len(ran) > allowed:
        yield f"{run_id}: {len(ran)} executions, and {allowed} were allowed"


def _of_ended(
    run_id: str,
    small: Small,
    notes: Sequence[tuple[str, Note]],
    facts: Sequence[Fact],
    kernel: Kernel,
) -> Iterator[str]:
    """Yield what happened to a run after it was over, beyond the time in which that is seen."""
    since = small.ended.get(run_id)
    if since is None:
        yield f"{run_id} is over, and nobody ended it"
        return
    seen = since + 2 * SETTINGS.poll
    late = [fact.type for fact in facts if fact.at > seen and fact.type in AFTER_THE_END]
    if late:
        yield f"{run_id} was ended, and then {late} happened"
    said = [note_id for note_id, note in notes if note.at > seen and note_id.startswith("said/")]
    if said:
        yield f"{run_id} was ended, and then {said} was said"
    if kernel.grants:
        yield f"{run_id} was ended, and has grants"


def _body(entry: Entry) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", entry.body)
