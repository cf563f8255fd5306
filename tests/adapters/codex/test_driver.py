"""What is said of a thread is kept, then judged, and only then answered; in its order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, Final

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlock.adapters.codex.driver import AHEAD, Driver, Unkept, joined
from turnlock.adapters.codex.heard import NOTHING, Heard, Permit, Reply
from turnlock.adapters.codex.messages import Asked, Notified
from turnlock.adapters.contract import Ending, Observation, Settlement
from turnlock.agent.transients import Transient
from turnlock.models.deliveries import Claim, Delivery, SealTurn
from turnlock.models.errors import InvalidValue
from turnlock.models.fact import Fact
from turnlock.models.reasons import Reason
from turnlock.models.verdicts import Accepted, Refused, Verdict
from turnlock.runtime.errors import JournalError, RunFenced
from turnlock.runtime.journal.ledger import Domain, Note

from ...runtime.virtual import run

OK: Final = Accepted(facts=(), effects=())


@attrs.define
class Ledger:
    """A sink that keeps what it hears, in order; `script` says what goes wrong next."""

    log: list[Any] = attrs.field(factory=list[Any])
    script: deque[Exception | Verdict] = attrs.field(factory=deque[Exception | Verdict])
    ours: bool = True
    gate: asyncio.Event | None = None

    async def hear(
        self, observations: Sequence[Observation], deliveries: Sequence[Delivery]
    ) -> tuple[Verdict, ...]:
        """Keep it, or fail."""
        if self.gate is not None:
            await self.gate.wait()
        await asyncio.sleep(0)
        said = self.script.popleft() if self.script else OK
        if isinstance(said, Exception):
            raise said
        self.log += [it.kind for it in observations]
        self.log += [named(it) for it in deliveries]
        return tuple(said for _ in deliveries)

    def pass_on(self, transient: Transient) -> None:
        """Say it."""

    async def ended(self, ending: Ending) -> None:
        """Never."""

    @property
    def run_id(self) -> str:
        """Return one."""
        return "r"

    def child(self, thread_id: str, *, settlement: Settlement) -> Ledger:
        """Return another."""
        return Ledger(log=[thread_id, settlement])

    async def owns(self) -> bool:
        """Say whether the run is ours."""
        self.log.append("owns?")
        return self.ours

    def now(self) -> float:
        """Return the time."""
        return asyncio.get_running_loop().time()

    async def worker_for(self, process: str) -> str:
        """Return one."""
        return process


def named(delivery: Delivery) -> str:
    """Name a delivery in a log."""
    of = delivery.invocation_id if isinstance(delivery, Claim) else ""
    return f"{delivery.type}{of}"


def note(kind: str, **more: Any) -> Note:
    """An observation."""
    return Note(domain=Domain.ITEM, kind=kind, body={}, at=1.0, **more)


def claim(of: str = "c") -> Claim:
    """A claim."""
    return Claim(turn_id="t", invocation_id=of, attempt=1, worker="w")


SEAL: Final = SealTurn(turn_id="t")


@attrs.define
class Told:
    """Is driven: says for each message and fact what the test wrote down for it."""

    says: dict[str, Heard]
    learns: Callable[[Sequence[Fact]], Heard] = lambda _: NOTHING
    taken: list[str] = attrs.field(factory=list[str])

    def take(self, message: Notified | Asked, *, at: float) -> Heard:
        """Say it, or fail."""
        self.taken.append(message.method)
        said = self.says[message.method]
        assert at >= 0
        return said

    def learn(self, facts: Sequence[Fact], *, at: float) -> Heard:
        """Say it."""
        self.taken.append("facts")
        return self.learns(facts)

    def process_ended(self, *, at: float) -> Heard:
        """Say that it ended."""
        return Heard(observations=(note("ended"),))


@attrs.define
class Driven:
    """A driver, its sink, and what was written."""

    told: Told
    ledger: Ledger
    driver: Driver
    task: asyncio.Task[None]

    async def says(self, *methods: str) -> None:
        """Have the process say this."""
        for method in methods:
            await self.driver.put(Notified(method, {}))

    async def ends(self) -> list[Any]:
        """End the process once nothing is left to be done; return what was kept and written."""
        await asyncio.sleep(60)
        self.driver.end()
        await self.task
        return self.ledger.log


def driving(
    says: dict[str, Heard], ledger: Ledger | None = None, *, answers: bool = True, **more: Any
) -> Driven:
    """Begin to drive."""
    ledger = ledger or Ledger()

    async def answer(reply: Reply) -> bool:
        ledger.log.append(f"wrote {reply.request}")
        return answers

    told = Told(says)
    driver = Driver(ledger, **more)
    driver.answer = answer
    return Driven(told, ledger, driver, asyncio.create_task(driver.run(told)))


def plays(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run on a loop whose time is its own."""
    run(work())


LETS: Final = Heard(
    observations=(note("asked"),),
    permits=(Permit(claim=claim(), reply=Reply(request=7, result={"decision": "accept"})),),
)


def test_s_21_an_answer_that_lets_start_follows_its_claim() -> None:
    """Kept, claimed, ours still (S-44), written: in this order, and nothing between."""

    async def play() -> None:
        it = driving({"asks": LETS})
        await it.says("asks")
        assert await it.ends() == ["asked", "claimc", "owns?", "wrote 7", "ended"]

    plays(play)


@pytest.mark.parametrize("reason", [Reason.ALREADY_SETTLED, Reason.INTERRUPTING, Reason.DUPLICATE])
def test_s_21_nothing_is_let_start_whose_claim_was_refused(reason: Reason) -> None:
    """The interrupt was first: `accept` is never written (UC-004)."""

    async def play() -> None:
        it = driving({"asks": LETS}, Ledger(script=deque([OK, Refused(reason=reason)])))
        await it.says("asks")
        assert "wrote 7" not in await it.ends()

    plays(play)


def test_s_44_who_lost_the_run_writes_nothing() -> None:
    """The claim was kept by then; whoever has the run now finds it in doubt."""

    async def play() -> None:
        it = driving({"asks": LETS}, Ledger(ours=False))
        await it.says("asks")
        with pytest.raises(RunFenced):
            await it.task
        assert it.ledger.log == ["asked", "claimc", "owns?"]

    plays(play)


def test_s_47_nothing_is_let_start_once_it_is_being_ended() -> None:
    """What was said is kept all the same."""

    async def play() -> None:
        it = driving({"asks": LETS})
        it.driver.let_nothing()
        await it.says("asks")
        assert await it.ends() == ["asked", "ended"]

    plays(play)


def test_s_21_a_claim_that_the_journal_kept_without_saying_so_lets_start() -> None:
    """Asked again it is our own duplicate: otherwise the process would wait for ever."""

    async def play() -> None:
        script: deque[Exception | Verdict] = deque(
            [OK, JournalError("who knows"), Refused(reason=Reason.DUPLICATE)]
        )
        it = driving({"asks": LETS}, Ledger(script=script))
        await it.says("asks")
        assert await it.ends() == ["asked", "claimc", "owns?", "wrote 7", "ended"]

    plays(play)


def test_s_10_nothing_is_written_before_it_is_kept_however_long_that_takes() -> None:
    """Section 14: the journal fails for a while; order and answers are as if it had not."""

    async def play() -> None:
        says = {
            "one": Heard(observations=(note("one"),), deliveries=(SEAL,)),
            "two": Heard(observations=(note("two"),), replies=(Reply(request=1, result={}),)),
        }
        script: deque[Exception | Verdict] = deque([JournalError("full")] * 9)
        it = driving(says, Ledger(script=script))
        await it.says("one", "two")
        assert await it.ends() == ["one", "seal_turn", "two", "wrote 1", "ended"]

    plays(play)


def test_a_journal_that_fails_for_too_long_ends_the_process() -> None:
    """Section 14: after 30 s, `runtime_unavailable`, and nothing was written."""

    async def play() -> None:
        broken: deque[Exception | Verdict] = deque([JournalError("full")] * 10_000)
        it = driving({"asks": LETS}, Ledger(script=broken))
        began = asyncio.get_running_loop().time()
        await it.says("asks")
        with pytest.raises(Unkept) as raised:
            await it.task
        assert raised.value.code == "runtime_unavailable"
        assert 29 < asyncio.get_running_loop().time() - began < 31
        assert it.ledger.log == []

    plays(play)


def test_a_journal_that_hangs_ends_the_process_too() -> None:
    """It need not fail: it is the waiting that has a bound."""

    async def play() -> None:
        it = driving({"asks": LETS}, Ledger(gate=asyncio.Event()), within=5.0)
        await it.says("asks")
        with pytest.raises(Unkept):
            await it.task

    plays(play)


def test_section_15_no_more_than_so_many_messages_are_ahead_of_what_is_kept() -> None:
    """Then the process is not read further; once they are kept it is."""

    async def play() -> None:
        ledger = Ledger(gate=asyncio.Event())
        it = driving({"one": Heard(observations=(note("one"),))}, ledger)
        read = 0

        async def reads() -> None:
            nonlocal read
            while True:
                await it.says("one")
                read += 1

        reader = asyncio.create_task(reads())
        for _ in range(AHEAD * 3):
            await asyncio.sleep(0)
        assert read <= AHEAD
        assert ledger.gate is not None
        ledger.gate.set()
        for _ in range(AHEAD):
            await asyncio.sleep(0)
        assert read > AHEAD
        reader.cancel()
        it.task.cancel()

    plays(play)


def test_s_42_facts_are_learnt_before_what_was_only_read() -> None:
    """A decision does not wait behind a flood."""

    async def play() -> None:
        it = driving({"one": Heard(observations=(note("one"),))})
        await it.says(*["one"] * 10)
        it.driver.learn(())
        await it.ends()
        assert it.told.taken[0] == "facts"

    plays(play)


def test_s_28_an_answer_that_nobody_waits_for_is_observed() -> None:
    """The report is a fact all the same."""

    async def play() -> None:
        says = {"asks": Heard(replies=(Reply(request="q", result={}),))}
        it = driving(says, answers=False)
        await it.says("asks")
        assert await it.ends() == ["wrote q", "answer_undeliverable", "ended"]

    plays(play)


def test_s_13_what_no_sense_is_made_of_is_observed() -> None:
    """A defect of ours in one message ends no run."""

    async def play() -> None:
        it = driving({"good": Heard(observations=(note("good"),))})
        await it.says("bad", "good")
        assert await it.ends() == ["bad", "good", "ended"]

    plays(play)


def test_a_note_that_cannot_be_kept_takes_nothing_else_with_it() -> None:
    """A message that has another content under its id: what it came with is kept and judged."""

    async def play() -> None:
        wrong = InvalidValue(place="note", cause="is another", fix="give it another id")
        heard = Heard(observations=(note("said", id="said/1"), note("one")), deliveries=(SEAL,))
        it = driving({"both": heard}, Ledger(script=deque([wrong])))
        await it.says("both")
        assert await it.ends() == ["one", "seal_turn", "ended"]

    plays(play)


heards = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.booleans()), max_size=12).map(
    lambda shapes: [
        Heard(
            observations=tuple(note(f"o{at}.{part}") for part in range(notes)),
            deliveries=tuple(claim(f"d{at}.{part}") for part in range(given)),
            replies=(Reply(request=at, result={}),) if answers else (),
        )
        for at, (notes, given, answers) in enumerate(shapes)
    ]
)


def order(of: Sequence[Heard]) -> list[str]:
    """All that is kept and written, in order."""
    found: list[str] = []
    for it in of:
        found += [one.kind for one in it.observations]
        found += [named(one) for one in it.deliveries]
        found += [f"wrote {one.request}" for one in it.replies]
    return found


@given(heards)
def test_s_10_what_is_kept_together_stands_as_if_it_were_not(given_heards: list[Heard]) -> None:
    """Joined or not, the journal and the pipe have one order."""
    together = [*joined(given_heards)]
    assert order(together) == order(given_heards)
    alone = [it for it in given_heards if it.deliveries or it.replies or it.observations]
    assert len(together) <= max(1, len(given_heards))
    only = all(not it.deliveries and not it.replies for it in given_heards)
    if alone and only:
        assert len(together) == 1


def test_the_driver_ends_when_it_is_cancelled() -> None:
    """Nothing of it goes on."""

    async def play() -> None:
        it = driving({})
        await asyncio.sleep(0)
        it.task.cancel()
        with suppress(asyncio.CancelledError):
            await it.task
        assert it.task.cancelled()

    plays(play)
