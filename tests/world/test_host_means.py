"""What a host gives: tools by name and pattern, models by turns, and bounds (W-60, section 13)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlock import InvalidValue
from turnlock.agent import Answer, Ended, Question, Said
from turnlock.runtime import Tool, Toolbox
from turnlock.world.member_tools import HostTools
from turnlock.world.model_slots import SPEAKING, SPEAKING_OF_ENDPOINT, Queued, Slots

from ..runtime.virtual import run
from .playing import play, says


def named(*names: str) -> Toolbox:
    async def work() -> None: ...

    return Toolbox([Tool(name=name, call=work, description=name) for name in names])


def test_w_60_a_spec_picks_names_and_patterns() -> None:
    """The same toolbox as long as nothing has changed; unknown names are none."""
    boxes = [named("shell_cmd", "look"), named("web__search", "web__fetch", "files__read")]
    tools = HostTools(boxes)
    assert [*tools.of("r", ("look", "web__*", "nothing"))] == ["look", "web__search", "web__fetch"]
    assert not tools.of("r", ())
    assert tools.of("r", ("look",)) is tools.of("other", ("look",))


def test_w_60_what_a_server_has_now_counts() -> None:
    """A toolbox that is a function is asked each time; of two of one name the first counts."""
    now = [named("web__search")]
    first = named("web__one")
    tools = HostTools((first, lambda _: now[0]))
    before = tools.of("r", ("web__*",))
    assert [*before] == ["web__search", "web__one"] or [*before] == ["web__one", "web__search"]
    now[0] = named("web__fetch", "web__one")
    after = tools.of("r", ("web__*",))
    assert {*after} == {"web__fetch", "web__one"}
    assert after["web__one"] is first["web__one"]


def test_w_60_two_tools_of_one_name_are_refused_at_once() -> None:
    with pytest.raises(InvalidValue, match="look"):
        HostTools([named("look"), named("look")])


def test_w_60_tools_without_a_toolbox_are_refused_at_once() -> None:
    with pytest.raises(InvalidValue, match="no toolbox"):
        HostTools([*named("look").values()])


@attrs.define
class Counted:
    """A model that counts who speaks at once."""

    speaking: list[int]
    most: list[int]
    seconds: float = 1.0

    async def speak(self, question: Question) -> AsyncIterator[Said]:
        self.speaking[0] += 1
        self.most[0] = max(self.most[0], self.speaking[0])
        try:
            await asyncio.sleep(self.seconds)
            yield Ended(Answer(text=str(len(question.messages))))
        finally:
            self.speaking[0] -= 1

    async def close(self) -> None: ...


@given(
    wanted=st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=60),
    cancelled=st.sets(st.integers(0, 59), max_size=20),
)
def test_section_13_so_many_models_speak_at_once(wanted: list[str], cancelled: set[int]) -> None:
    """In all, and of one endpoint; who is not listened to any more gives way."""

    async def it() -> None:
        slots = Slots()
        each = {it: ([0], [0]) for it in wanted}

        async def speak(endpoint: str) -> None:
            inner = Counted(*each[endpoint])
            async for _ in Queued(inner, slots, endpoint=endpoint).speak(Question(())):
                pass

        tasks = [asyncio.ensure_future(speak(it)) for it in wanted]
        await asyncio.sleep(0.5)
        assert sum(it[0][0] for it in each.values()) <= SPEAKING
        for number in cancelled:
            if number < len(tasks):
                tasks[number].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert all(it[1][0] <= SPEAKING_OF_ENDPOINT for it in each.values())
        assert all(it[0][0] == 0 for it in each.values())
        loop = asyncio.get_running_loop()
        assert loop.time() < len(wanted) / 4 + 2.0

    run(it())


def test_section_13_a_hundred_members_speak_by_turns() -> None:
    """All of them answer, eight at once: they have one endpoint."""

    async def it() -> None:
        models = {f"a{number}": says("Yes.", slow=1.0) for number in range(40)}
        played = await play(models)
        async with played.host() as host:
            await played.chat.say("human", "go", message_id="m1")
            await host.idle("plan")
            assert 5.0 <= asyncio.get_running_loop().time() < 7.0
        assert len(await played.said()) == 41

    run(it())


def test_what_is_queued_has_what_its_model_has() -> None:
    """`spec` and `structured` are the model's own."""

    @attrs.define
    class Specified(Counted):
        spec: str = "x:y"

    queued = Queued(Specified([0], [0]), Slots(), endpoint="x")
    assert queued.spec == "x:y"
    with pytest.raises(AttributeError):
        assert queued.structured


def test_a_model_that_raises_does_not_answer(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever it raises: it is asked again, the chat is told, and nobody blames turnlock."""

    async def it() -> None:
        broken = [ValueError("no luck")] * 4
        played = await play({"alice": says(*broken, "At last.")})
        async with played.host() as host:
            await played.chat.say("human", "go", message_id="m1")
            await host.until(lambda: "no luck" in str(caplog.messages))
            (alice,) = (await host.standing("plan")).members
            assert alice.failing == "the model raised ValueError: no luck; see to that model"
            await host.idle("plan")
        assert (await played.said())[1:] == [
            "notice: The model of alice does not answer; it is asked again.",
            "alice: At last.",
        ]

    run(it())
    assert "defect of turnlock" not in caplog.text
