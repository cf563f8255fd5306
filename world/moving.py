"""Worlds that move: written into a file while they run, and read into another journal (W-72).

    await export_world(journal, "demo", "demo.world")
    await import_world(other, "demo.world", world="demo-2")

An import is read to its end before anything of it is kept. What is kept is the runs, then the logs
of the chats, then the world's: only with its last entry is the world there, and an import that was
broken off is finished by the same one again. It brings no authority: see `disarming`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import Final, cast

import attrs

from ..agent.conversation import Conversation
from ..engine.kernel import Kernel
from ..models.errors import InvalidValue, TurnlockError, shown
from ..models.facts import Fact
from ..models.record import changed
from ..models.sealed import is_sealed_body
from ..models.values import Json, freeze, same_json
from ..runtime.forking import keep_history, refuse_sealed, renamed_facts
from ..runtime.journal.contract import Entry, Journal
from ..runtime.journal.ledger import Noted
from ..runtime.journal.logs import LOG_ENTRIES, given_entry
from ..runtime.scheduling import Clock, SteadyClock
from .configuration import Configuration
from .disarming import Disarmed, check_honest, disarm, without_unopened
from .entries import OF_WORLDS, AgentPut, WorldMade, read_entry, read_world_entry
from .export_lines import Ended, ExportError, Header, LogBegins, Logged, Ran, items_of
from .exporting import PAGE, Exported, configured_in, export_world, heard_in, is_known
from .names import chat_of, check_id, member_of
from .renaming import Renaming

__all__ = ["ExportError", "Exported", "Imported", "export_world", "import_world"]

BEGUN: Final = "begun"
"""The id of the entry that says which import a world's name is taken for."""


@attrs.frozen(kw_only=True)
class Imported:
    """What was read into a journal, and what was taken from it."""

    world: str
    was: str
    """The name of the world in the file."""
    chats: int
    entries: int
    runs: int
    facts: int
    """Those that came along."""
    revoked: int
    """Grants."""
    rejected: int
    """Calls that were allowed elsewhere, and had not begun."""
    lost: int
    """Calls that had begun elsewhere."""
    digest: str


async def import_world(
    journal: Journal,
    path: str | os.PathLike[str],
    *,
    world: str | None = None,
    clock: Clock | None = None,
) -> Imported:
    """Read a world from a file into a journal that has no world of this name.

    `world` is another name for it; what it keeps sealed opens under its own name alone. Its agents
    have no tools until they are put again. Raises `ExportError`, and has kept nothing, for a file
    that is not as it was written and for a name that is taken; all else the journal raises.
    """
    now = (clock or journal.clock or SteadyClock()).now()
    plan = await _examined(Path(path), world, now)
    return await _Importing(journal, Path(path), plan, now).write()


async def check_export(path: str | os.PathLike[str], *, world: str | None = None) -> None:
    """Read a file as an import does, and write nothing. Raises `ExportError`."""
    await _examined(Path(path), world, SteadyClock().now())


@attrs.define
class _Plan:
    """What a file holds, once it was read to its end."""

    renaming: Renaming
    configuration: Configuration
    last: dict[str, int] = attrs.field(factory=dict[str, int])
    """By log: how many entries."""
    said: dict[str, int] = attrs.field(factory=dict[str, int])
    """By run: the largest number of an answer that stands in its chat."""
    ids: set[str] = attrs.field(factory=set[str])
    """Of the entries of the log that is being read."""
    runs: dict[str, Disarmed] = attrs.field(factory=dict[str, Disarmed])
    facts: int = 0
    digest: str = ""


async def _examined(path: Path, world: str | None, now: float) -> _Plan:
    """Read a file to its end, and fold all that it holds. Raises `ExportError`."""
    into = None if world is None else check_id(world, place="world")
    plan = _Plan(Renaming("", ""), Configuration(world=""))
    for item in items_of(path):
        try:
            if isinstance(item, Header):
                plan.renaming = Renaming(item.world, into or item.world)
                plan.configuration = Configuration(world=item.world)
            elif isinstance(item, LogBegins):
                _check_log(plan, item)
            elif isinstance(item, Logged):
                _check_entry(plan, item)
            elif isinstance(item, Ran):
                _check_run(plan, item, now)
            else:
                plan.digest = item.digest
        except ExportError:
            raise
        except (TurnlockError, ValueError) as error:
            raise ExportError(f"export {path}: {error}; nothing was imported") from error
        await asyncio.sleep(0)
    if not plan.configuration.made:
        raise ExportError(f"export {path}: it holds no world; nothing was imported")
    return plan


def _check_log(plan: _Plan, begins: LogBegins) -> None:
    world, chat = plan.renaming.old, chat_of(begins.log)
    if begins.log != world and (chat is None or chat.world != world):
        raise _wrong(begins.log, "is no log of this world")
    if begins.last > LOG_ENTRIES:
        raise _wrong(begins.log, f"has more than {LOG_ENTRIES:,} entries")
    plan.last[begins.log] = begins.last
    plan.ids.clear()


def _check_entry(plan: _Plan, logged: Logged) -> None:
    entry = logged.entry
    if entry.entry_id in plan.ids:
        raise _wrong(logged.log, f"has two entries of the id {shown(entry.entry_id)}")
    plan.ids.add(entry.entry_id)
    given_entry(logged.log, entry.entry_id, entry.body, at=entry.at)
    if logged.log == plan.renaming.old:
        plan.configuration = plan.configuration.after([entry])
        return
    read_entry(entry, log=logged.log)
    run_id, word, number = [*entry.entry_id.rsplit("/", 2), "", ""][:3]
    if word == "said" and number.isdecimal():
        plan.said[run_id] = max(plan.said.get(run_id, 0), int(number))


def _check_run(plan: _Plan, ran: Ran, now: float) -> None:
    run, member = ran.run, member_of(ran.run.run_id)
    if member is None or not is_known(run, plan.configuration):
        raise _wrong(run.run_id, "is no member of this world")
    if run.run_id in plan.runs:
        raise _wrong(run.run_id, "stands there twice")
    if not run.agent_id == run.agent_name == member.agent:
        raise _wrong(run.run_id, "says that it is another agent")
    check_honest(ran.facts, now=now)
    kernel = Kernel.recover(run, ran.facts)
    plan.runs[run.run_id] = disarm(kernel, now=now)
    plan.facts += len(ran.facts)
    _check_notes(plan, ran, plan.last.get(member.log, 0))
    if plan.renaming.old != plan.renaming.new:
        refuse_sealed(run.run_id, ran.facts, ran.notes)
    if not any(is_sealed_body(it.note.body) for it in ran.notes):
        conversation = Conversation(run.run_id)
        conversation.load(it.note for it in ran.notes)
        if len(conversation.said) < plan.said.get(run.run_id, 0):
            raise _wrong(run.run_id, "lacks notes of what stands in its chat")


def _check_notes(plan: _Plan, ran: Ran, last: int) -> None:
    """Raise for notes that no journal would keep, and for one made of what is not there."""
    run, ids = ran.run, set[str]()
    for noted in ran.notes:
        noted.note.sized(run.run_id)
        if noted.note.id in ids:
            raise _wrong(run.run_id, f"has two notes of the id {shown(noted.note.id)}")
        if noted.note.id is not None:
            ids.add(noted.note.id)
        if heard_in(noted.note) > last:
            raise _wrong(run.run_id, f"has heard more than the {last:,} entries of its chat")
        if configured_in(noted.note) > plan.configuration.number:
            raise _wrong(run.run_id, "was asked under a configuration that is not there")


def _wrong(what: str, cause: str) -> InvalidValue:
    return InvalidValue(place=what, cause=cause, fix="export the world again")


class _Importing:
    """A world on its way into a journal."""

    def __init__(self, journal: Journal, path: Path, plan: _Plan, now: float) -> None:
        self._journal = journal
        self._path = path
        self._plan = plan
        self._renaming = plan.renaming
        self._now = now

    async def write(self) -> Imported:
        plan, renaming = self._plan, self._renaming
        await self._take_name()
        async for item in self._items():
            if isinstance(item, Ran):
                await self._run(item)
        async for item in self._items():
            if isinstance(item, Logged) and item.log != renaming.old:
                await self._append(item.log, renaming.entry(item.entry))
        async for item in self._items():
            if isinstance(item, Logged) and item.log == renaming.old:
                await self._append(item.log, self._of_world(item.entry))
        taken = plan.runs.values()
        return Imported(
            world=renaming.new,
            was=renaming.old,
            chats=len(plan.last) - 1,
            entries=sum(plan.last.values()),
            runs=len(plan.runs),
            facts=plan.facts,
            revoked=sum(it.revoked for it in taken),
            rejected=sum(it.rejected for it in taken),
            lost=sum(it.lost for it in taken),
            digest=plan.digest,
        )

    async def _items(self) -> AsyncIterator[Header | LogBegins | Logged | Ran]:
        """Yield what the file holds, which must be what it was."""
        for item in items_of(self._path):
            if not isinstance(item, Ended):
                yield item
            elif item.digest != self._plan.digest:
                raise self._taken("its file was changed meanwhile: import it again")
            await asyncio.sleep(0)

    async def _take_name(self) -> None:
        """Say which import the name is for. Raises `ExportError` where it is another's."""
        name, log = self._renaming.new, f".import/{self._renaming.new}"
        body: dict[str, Json] = {"export": self._plan.digest, "was": self._renaming.old}
        begun = await self._journal.find_entry(log, BEGUN)
        if begun is None:
            await self._check_free()
            try:
                await self._journal.append_entry(log, BEGUN, body, at=self._now)
            except InvalidValue as error:
                raise self._taken("another import of this name has just begun") from error
        elif not same_json(begun.body, body):
            raise self._taken("the import of another file into this name was begun: finish that")
        elif (await self._configuration()).made:
            raise self._taken(f"world {name} is there already")

    async def _check_free(self) -> None:
        name = self._renaming.new
        for log in await self._journal.logs(name):
            if log.name == name or log.name.startswith(f"{name}/"):
                raise self._taken(f"log {log.name} is there already")
        async for entry in self._journal.run_entries(forgotten=True):
            member = member_of(entry.run.run_id)
            if member is not None and member.world == name:
                raise self._taken(f"run {entry.run.run_id} is there already")

    async def _configuration(self) -> Configuration:
        it = Configuration(world=self._renaming.new)
        while page := await self._journal.entries(it.log, after=it.number, limit=PAGE):
            it = it.after(page)
        return it

    async def _run(self, ran: Ran) -> None:
        """Keep a run, and take from it what would run unasked."""
        run = changed(ran.run, run_id=self._renaming.run(ran.run.run_id))
        await self._journal.declare(run)
        history = tuple(renamed_facts(ran.facts, run.run_id))
        notes = [self._renaming.note(it) for it in without_unopened(ran.notes, history)]
        kept = [fact async for fact in self._journal.facts(run.run_id)]
        noted = await self._journal.notes(run.run_id)
        same = all(map(_same_note, noted, notes)) and len(noted) <= len(notes)
        if not same or not _goes_on(kept, history):
            raise self._taken(f"run {run.run_id} is there already, and another one")
        history = max(history, tuple(kept), key=len)
        kernel = Kernel.recover(run, history)
        history += disarm(kernel, now=self._now).facts
        await keep_history(self._journal, kernel, history, notes[len(noted) :])

    async def _append(self, log: str, entry: Entry) -> None:
        name = self._renaming.log(log)
        try:
            entered = await self._journal.append_entry(
                name, entry.entry_id, entry.body, at=entry.at
            )
        except InvalidValue as error:
            raise self._taken(f"log {name} has something else already ({error})") from error
        if entered.number != entry.number:
            raise self._taken(f"log {name} has something else already, at {entered.number}")

    def _of_world(self, entry: Entry) -> Entry:
        """Return an entry of the world's log: agents have no tools, and the world waits for all."""
        said = read_world_entry(entry)
        body = dict(cast("Mapping[str, Json]", entry.body)) if said.kind in OF_WORLDS else {}
        if isinstance(said, AgentPut) and said.spec.tools:
            body["spec"] = {**cast("Mapping[str, Json]", body["spec"]), "tools": []}
            body["was"] = {"tools": list(said.spec.tools)}
        elif isinstance(said, WorldMade):
            body["until"] = self._plan.last[self._renaming.old]
            if self._renaming.old != self._renaming.new:
                body["was"] = self._renaming.old
        else:
            return entry
        return attrs.evolve(entry, body=freeze(body, place="body"))

    def _taken(self, cause: str) -> ExportError:
        return ExportError(
            f"export {self._path}: {cause}; import it into another file, or under another name"
        )


def _same_note(one: Noted, other: Noted) -> bool:
    return (one.note.id, one.note.content()) == (other.note.id, other.note.content())


def _goes_on(kept: Iterable[Fact], history: tuple[Fact, ...]) -> bool:
    """Whether what is kept are the first facts of a history, or all of them and more."""
    return all(one == other for one, other in zip(kept, history, strict=False))
