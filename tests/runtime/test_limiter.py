"""How many tools run at once, and who goes first."""

# Looks inside: what is held, and who waits.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from collections import Counter, deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlock.runtime.slots import IN_A_ROW, Bound, Limiter, Place, Slot

from .virtual import run, settled


class Floor:
    """Who has a slot now, and in which order they got it; each leaves when told."""

    def __init__(self, limiter: Limiter) -> None:
        self.limiter = limiter
        self.inside: list[str] = []
        self.order: list[str] = []
        self.leave: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    def ask(
        self,
        name: str,
        *,
        run_id: str = "r",
        tool: str = "t",
        concurrency: int | None = None,
        sequential: bool = False,
    ) -> None:
        def start(_: Slot) -> None:
            self.inside.append(name)
            self.order.append(name)

        slot = Slot(
            run_id=run_id, tool=tool, concurrency=concurrency, sequential=sequential, start=start
        )

        async def hold() -> None:
            self.limiter.ask(slot)
            try:
                await self.leave.setdefault(name, asyncio.Event()).wait()
            finally:
                if slot.taken:
                    self.inside.remove(name)
                self.limiter.give_back(slot)

        self.tasks[name] = asyncio.ensure_future(hold())

    async def goes(self, name: str) -> None:
        self.leave.setdefault(name, asyncio.Event()).set()
        await settled()


def test_the_bounds_of_all_of_a_run_and_of_a_tool_hold_together() -> None:
    """A call takes all its limiter together, or none: nobody waits with half of them."""

    async def play() -> None:
        floor = Floor(Limiter(all_runs=3, each_run=2))
        floor.ask("a1", run_id="a")
        floor.ask("a2", run_id="a")
        floor.ask("a3", run_id="a")
        floor.ask("b1", run_id="b", tool="rare", concurrency=1)
        floor.ask("b2", run_id="b", tool="rare", concurrency=1)
        await settled()
        assert floor.inside == ["a1", "a2", "b1"]

        await floor.goes("b1")
        assert floor.inside == ["a1", "a2", "b2"]

        await floor.goes("a2")
        assert floor.inside == ["a1", "b2", "a3"]
        assert len(floor.limiter) == 3

    run(play())


def test_of_the_sequential_tools_of_a_run_one_runs_in_the_order_of_asking() -> None:
    """Different tools, one line; what is not sequential, and other runs, pass by."""

    async def play() -> None:
        floor = Floor(Limiter(all_runs=9, each_run=9))
        floor.ask("write 1", tool="write", sequential=True)
        floor.ask("move", tool="move", sequential=True)
        floor.ask("write 2", tool="write", sequential=True)
        floor.ask("read", tool="read")
        floor.ask("elsewhere", run_id="s", tool="write", sequential=True)
        await settled()
        assert floor.inside == ["write 1", "read", "elsewhere"]

        await floor.goes("write 1")
        await floor.goes("move")
        await floor.goes("write 2")
        assert [name for name in floor.order if name in {"write 1", "move", "write 2"}] == [
            "write 1",
            "move",
            "write 2",
        ]

    run(play())


def test_who_is_cancelled_while_waiting_takes_nothing_along() -> None:
    """Nor does one that was let in at the very moment of its cancellation."""

    async def play() -> None:
        floor = Floor(Limiter(all_runs=1, each_run=1))
        floor.ask("first", tool="x", sequential=True)
        floor.ask("second", tool="y", sequential=True)
        floor.ask("third", tool="z", sequential=True)
        await settled()

        floor.leave["first"].set()
        floor.tasks["second"].cancel()
        await settled()
        assert floor.inside == ["third"]

        await floor.goes("third")
        assert len(floor.limiter) == 0
        assert not floor.limiter._lines
        assert not floor.limiter._of
        assert not floor.limiter._parked

    run(play())


def test_who_is_cancelled_in_the_middle_of_a_line_is_passed_over() -> None:
    """Also when the line moves in the very tick of the cancellation."""

    async def play() -> None:
        floor = Floor(Limiter(all_runs=2, each_run=2))
        for number in range(5):
            floor.ask(f"call {number}")
        await settled()
        floor.tasks["call 3"].cancel()
        for number in range(2):
            floor.leave[f"call {number}"].set()
        await settled()
        assert floor.inside == ["call 2", "call 4"]

    run(play())


def test_a_slot_given_back_costs_little_however_many_wait() -> None:
    """Each bound stops thousands of runs; what is looked at for one that leaves stays few."""

    async def play() -> None:
        limiter = Limiter(all_runs=64, each_run=16)
        looked = 0
        stopped_by = limiter._stopped_by

        def counted(slot: Slot) -> Bound | None:
            nonlocal looked
            looked += 1
            return stopped_by(slot)

        limiter._stopped_by = counted  # type: ignore[method-assign]

        inside: deque[Slot] = deque()
        for number in range(2_000):
            slot = Slot(run_id=f"r{number}", tool="t", concurrency=4, start=inside.append)
            limiter.ask(slot)
        while inside:
            limiter.give_back(inside.popleft())
        assert looked <= 4 * 2_000

    run(play())


class FirstCome(Limiter):
    """The order that runs do not take turns in: one line for all."""

    def _place(self, run_id: str) -> Place:
        return 0, super()._place(run_id)[1]


@pytest.mark.parametrize(
    ("limiter", "before"),
    [(Limiter, 4 + IN_A_ROW), (FirstCome, 1_000)],
    ids=["in turn", "first come"],
)
def test_a_run_with_one_call_waits_for_none_of_a_thousand(
    limiter: type[Limiter], before: int
) -> None:
    """Four run, and some of those that wait go first; in one line for all, each would."""
    order: list[str] = []
    inside: deque[Slot] = deque()
    slots = limiter(all_runs=4, each_run=4)

    def start(slot: Slot) -> None:
        order.append(slot.run_id)
        inside.append(slot)

    for _ in range(1_000):
        slots.ask(Slot(run_id="a", tool="t", start=start))
    slots.ask(Slot(run_id="b", tool="t", start=start))
    while inside:
        slots.give_back(inside.popleft())
    assert len(order) == 1_001
    assert order.index("b") == before


def test_many_runs_that_flood_wait_for_each_other_in_turn() -> None:
    """However much each asks for, and whenever: none is a round ahead of one that waits."""
    started: Counter[str] = Counter()
    began: Counter[str] = Counter()
    inside: deque[Slot] = deque()
    slots = Limiter(all_runs=3, each_run=3)

    def start(slot: Slot) -> None:
        started[slot.run_id] += 1
        inside.append(slot)

    def ask(run_id: str, calls: int) -> None:
        for _ in range(calls):
            slots.ask(Slot(run_id=run_id, tool="t", start=start))

    ask("a", 300)
    ask("b", 100)
    for step in range(500):
        if step == 50:
            ask("c", 100)
            began.update(started)
        if step >= 50 and started["c"] < 100 and started["b"] < 100:
            moved = [started[name] - began[name] for name in "abc"]
            assert max(moved) - min(moved) <= 2 * IN_A_ROW
        slots.give_back(inside.popleft())
    assert started == {"a": 300, "b": 100, "c": 100}
    assert not slots._asked
    assert not slots._waiting


def test_calls_that_wait_for_threads_do_not_stand_in_the_way_of_others() -> None:
    """However many sync tools hang: they have the slots that are for threads, and no more."""
    order: list[Slot] = []
    slots = Limiter(all_runs=4, each_run=4, threads=2)
    hung = [Slot(run_id="a", tool="t", threaded=True, start=order.append) for _ in range(3)]
    asked = Slot(run_id="a", tool="u", start=order.append)
    for slot in (*hung, asked):
        slots.ask(slot)
    assert order == [*hung[:2], asked]

    slots.give_back(hung[0])
    assert order == [*hung[:2], asked, hung[2]]


def test_a_closed_limiter_lets_nobody_in() -> None:
    """Those that are inside leave as they like."""
    order: list[Slot] = []
    slots = Limiter(all_runs=1, each_run=1)
    for _ in range(2):
        slots.ask(Slot(run_id="a", tool="t", start=order.append))
    slots.close()
    slots.give_back(order[0])
    assert len(order) == 1
    assert len(slots) == 0


ASKED = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.booleans()), max_size=12
)


@given(ASKED, st.integers(1, 4), st.integers(1, 3), st.data())
def test_whoever_asks_comes_in_and_no_bound_is_broken(
    asked: list[tuple[str, str, bool]], all_runs: int, each_run: int, data: st.DataObject
) -> None:
    """Whatever is asked, cancelled and given back, in whatever order."""
    concurrency = {"x": 1, "y": 2, "z": None}

    async def play() -> None:
        floor = Floor(Limiter(all_runs=all_runs, each_run=each_run))
        names = [f"{number}{run_id}{tool}" for number, (run_id, tool, _) in enumerate(asked)]
        for name, (run_id, tool, sequential) in zip(names, asked, strict=True):
            # one tool is either sequential or not
            floor.ask(
                name,
                run_id=run_id,
                tool=tool + "s" * sequential,
                concurrency=concurrency[tool],
                sequential=sequential,
            )
        await settled()
        left = set(names)
        while left:
            check(floor)
            assert floor.inside, "somebody waits, and nobody is inside"
            waiting = [name for name in names if name in left and name not in floor.inside]
            assert not [name for name in waiting if may_start(floor, name, waiting)]
            name = data.draw(st.sampled_from(sorted(left)))
            if name in floor.inside:
                await floor.goes(name)
                left.discard(name)
            elif data.draw(st.booleans()):
                floor.tasks[name].cancel()
                await settled()
                left.discard(name)
        assert len(floor.limiter) == 0
        assert not floor.limiter._lines
        assert not floor.limiter._of

    def kind(name: str) -> tuple[str, str, bool]:
        return asked[int(name.rstrip("abxyz"))]

    def may_start(floor: Floor, name: str, waiting: list[str]) -> bool:
        """Whether no bound stops a call that waits: then it was forgotten."""
        run_id, tool, sequential = kind(name)
        inside = [kind(one) for one in floor.inside]
        before = [kind(one) for one in waiting[: waiting.index(name)]]
        alike = [one for one in inside if one[1:] == (tool, sequential)]
        return (
            len(inside) < all_runs
            and len([one for one in inside if one[0] == run_id]) < each_run
            and len(alike) < (concurrency[tool] or all_runs)
            and not (sequential and [one for one in inside + before if one[::2] == (run_id, True)])
        )

    def check(floor: Floor) -> None:
        assert len(floor.inside) <= all_runs
        for run_id in "ab":
            here = [name for name in floor.inside if name[-2] == run_id]
            assert len(here) <= each_run
        assert sum(1 for name in floor.inside if name.endswith("x")) <= 2

    run(play())


@given(ASKED, st.integers(1, 4), st.integers(1, 3), st.sampled_from("ab"), st.data())
def test_who_is_taken_at_once_passes_nobody_and_who_is_not_does_not_wait(
    asked: list[tuple[str, str, bool]],
    all_runs: int,
    each_run: int,
    run_id: str,
    data: st.DataObject,
) -> None:
    """It is let in where all its bounds let it in and nobody stands before it in its line."""
    concurrency = {"x": 1, "y": 2, "z": None}
    limiter = Limiter(all_runs=all_runs, each_run=each_run)

    def slot(run_id: str, tool: str, sequential: bool) -> Slot:
        return Slot(
            run_id=run_id,
            tool=tool + "s" * sequential,
            concurrency=concurrency[tool],
            sequential=sequential,
            start=lambda _: None,
        )

    slots = [slot(*one) for one in asked]
    for one in slots:
        limiter.ask(one)
    for one in data.draw(st.permutations(slots))[: data.draw(st.integers(0, len(slots)))]:
        limiter.give_back(one)
    inside = [it for it in slots if it.taken]
    waiting = [it for it in slots if not it.taken and it.line in limiter._lines]
    before = dict(limiter._waiting), {line: list(them) for line, them in limiter._lines.items()}

    new = slot(run_id, data.draw(st.sampled_from("xyz")), data.draw(st.booleans()))
    alike = [it for it in inside if it.tool == new.tool]
    free = (
        len(inside) < all_runs
        and sum(it.run_id == run_id for it in inside) < each_run
        and len(alike) < (new.concurrency or all_runs)
        and not (new.sequential and [it for it in inside if it.sequential and it.line == new.line])
        and new.line not in {it.line for it in waiting}
    )
    has_room = limiter.has_room(run_id)
    assert limiter.take(new) is new.taken is free
    assert has_room or not free
    if free:
        limiter.give_back(new)
    after = dict(limiter._waiting), {line: list(them) for line, them in limiter._lines.items()}
    assert free or after == before


def test_a_call_that_is_destroyed_with_its_loop_lets_nobody_in() -> None:
    """Who is let in begins a task, and there is no loop for it; an error gives the slot back."""
    order: list[Slot] = []
    slots = Limiter(all_runs=1, each_run=1)
    for _ in range(3):
        slots.ask(Slot(run_id="a", tool="t", start=order.append))

    async def hold(slot: Slot) -> None:
        with slots.held(slot):
            await asyncio.sleep(0)

    failing, destroyed = hold(order[0]), hold(order[0])
    destroyed.send(None)
    destroyed.close()
    assert len(order) == 1

    failing.send(None)
    with pytest.raises(ZeroDivisionError):
        failing.throw(ZeroDivisionError())
    assert len(order) == 2
