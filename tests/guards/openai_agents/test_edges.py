"""A guard that is off is seen; what a tool raises, returns and is given is what it was bare."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agents import RunContextWrapper, ToolOutputImage, UserError
from agents.testing import function_call

from turnlock.guards import Differs, GuardRefused, NotRecorded, Stale
from turnlock.guards.guard import Guard

from .stage import Stage, pays, says, told


def test_a_tool_without_hooks_is_refused(guard: Guard) -> None:
    async def story() -> None:
        stage = Stage(guard, pays(5), says(), gated=False)
        with pytest.raises(Stale, match=r"give Runner\.run hooks=GuardHooks\(guard\)"):
            await stage.ask(hooks=None)
        assert stage.paid == []

    asyncio.run(story())


@pytest.mark.parametrize("context", [None, {}, {"turnlock_run": ""}, {"turnlock_run": 7}, object()])
def test_a_run_without_an_id_is_refused(guard: Guard, context: object) -> None:
    async def story() -> None:
        stage = Stage(guard, pays(5), says(), gated=False)
        with pytest.raises(Stale, match=r'context=\{"turnlock_run": "…"\}'):
            await stage.ask(context=context)
        assert stage.paid == []

    asyncio.run(story())


def test_a_context_given_anew_is_refused(guard: Guard) -> None:
    """It does not know which turn the state is in."""

    async def story() -> None:
        stage = Stage(guard, pays(5), says())
        state = await stage.approved()
        with pytest.raises(GuardRefused):
            await stage.go_on(state, context={"turnlock_run": "r1"})
        assert stage.paid == []

    asyncio.run(story())


def test_what_tools_keep_in_their_context_is_the_users_own(guard: Guard) -> None:
    async def story() -> None:
        async def pay(context: RunContextWrapper[Any], amount: int) -> str:
            context.context["paid"] = context.context.get("paid", 0) + amount
            return "paid"

        context: dict[str, Any] = {"turnlock_run": "r1"}
        stage = Stage(guard, pays(5), pays(6, ids="d"), says(), pay=pay, gated=False)
        result = await stage.ask(context=context)
        assert context == {"turnlock_run": "r1", "paid": 11}
        assert dict(result.context_wrapper.context).keys() == {*context, "turnlock_turns"}

    asyncio.run(story())


@pytest.mark.parametrize("guarded", [False, True])
def test_a_failure_is_told_as_the_sdk_tells_it_and_recorded_once(
    guard: Guard, *, guarded: bool
) -> None:
    async def story() -> None:
        tries: list[int] = []

        async def pay(amount: int) -> str:
            tries.append(amount)
            raise ValueError("no money")

        def worded(_: RunContextWrapper[Any], error: Exception) -> str:
            return f"failed: {error}"

        stage = Stage(
            guard if guarded else None,
            pays(5),
            says(),
            says(),
            pay=pay,
            failure_error_function=worded,
        )
        state = await stage.approved()
        assert told(await stage.go_on(state)) == ["failed: no money"]
        again = told(await stage.go_on(state))
        assert again == [f"failed: {'ValueError: ' if guarded else ''}no money"]
        assert tries == ([5] if guarded else [5, 5])

    asyncio.run(story())


@pytest.mark.parametrize("guarded", [False, True])
def test_a_failure_that_is_no_text_ends_the_run(guard: Guard, *, guarded: bool) -> None:
    async def story() -> None:
        async def pay(amount: int) -> str:
            raise ValueError(f"no money for {amount}")

        stage = Stage(
            guard if guarded else None, pays(5), says(), pay=pay, failure_error_function=None
        )
        state = await stage.approved()
        for _ in range(2):
            with pytest.raises(UserError, match=r"Error running tool pay: .*no money for 5"):
                await stage.go_on(state)

    asyncio.run(story())


def test_a_result_that_is_no_json_is_never_had_again(guard: Guard) -> None:
    async def story() -> None:
        async def pay(amount: int) -> object:
            paid.append(amount)
            return object()

        paid: list[int] = []
        stage = Stage(guard, pays(5), says(), pay=pay)
        state = await stage.approved()
        with pytest.raises(NotRecorded):
            await stage.go_on(state)
        with pytest.raises(GuardRefused):
            await stage.go_on(state)
        assert paid == [5]

    asyncio.run(story())


def test_an_image_is_recorded_and_replayed(guard: Guard) -> None:
    async def story() -> None:
        async def pay(amount: int) -> ToolOutputImage:
            return ToolOutputImage(image_url=f"https://example.org/{amount}.png")

        stage = Stage(guard, pays(5), says(), says(), pay=pay)
        state = await stage.approved()
        for _ in range(2):
            items = (await stage.go_on(state)).to_input_list()
            shown: list[Any] = [it for it in items if it.get("type") == "function_call_output"]
            assert shown[0]["output"][0]["image_url"] == "https://example.org/5.png"

    asyncio.run(story())


@pytest.mark.parametrize("raw", ["{", "[5]", '{"amount": NaN}', '{"amount": "many"}'])
def test_arguments_that_no_tool_takes_run_nothing(guard: Guard, raw: str) -> None:
    async def story() -> None:
        stage = Stage(guard, [function_call("pay", raw, call_id="c1")], says(), gated=False)
        result = await stage.ask()
        assert told(result) == ["An error occurred while running the tool. Please try again."]
        assert stage.paid == []

    asyncio.run(story())


def test_arguments_are_held_as_the_model_gave_them(guard: Guard) -> None:
    """The SDK validates "5" to 5: what was opened, approved and claimed is what was said."""

    async def story() -> list[int]:
        stage = Stage(guard, [function_call("pay", '{"amount": "5"}', call_id="c1")], says())
        await stage.go_on(await stage.approved())
        return stage.paid

    assert asyncio.run(story()) == [5]


def test_who_asks_by_arguments_asks_in_turnlock_as_well(guard: Guard) -> None:
    async def much(_: Any, arguments: dict[str, Any], __: str) -> bool:
        return bool(arguments["amount"] > 10)

    async def story() -> list[int]:
        stage = Stage(guard, pays(5, 50), says(), gated=much)
        asked = await stage.ask()
        assert [it.call_id for it in asked.interruptions] == ["c2"]
        assert stage.paid == [5]
        state = asked.to_state()
        await stage.approve(state)
        await stage.go_on(state)
        return stage.paid

    assert asyncio.run(story()) == [5, 50]


def test_what_was_shown_is_what_is_approved(guard: Guard) -> None:
    async def story() -> None:
        stage = Stage(guard, pays(5), says())
        asked = await stage.ask()
        state = asked.to_state()
        item = asked.interruptions[0]
        item.raw_item.arguments = '{"amount": 4}'  # type: ignore[union-attr]
        with pytest.raises(Differs):
            await stage.approve(state, item)
        assert len(await guard.awaiting("r1")) == 1, "it waits still"

    asyncio.run(story())
