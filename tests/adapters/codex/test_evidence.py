"""Which execution a message is about (S-33, S-34)."""

from __future__ import annotations

from typing import Any

from turnlock.adapters.codex.evidence import Instance, Instances, KernelTurn, Upstream
from turnlock.adapters.codex.items import Item, RawCall, item_of

from .saying import command, mcp, patch


def item(**fields: Any) -> Item:
    """Return an item as it is read."""
    found = item_of({"item": fields})
    assert found is not None
    return found


def opened(instances: Instances, read: Item) -> Instance:
    """Open an instance for an announced item."""
    made = instances.open(read.id, read.tool_name, read.arguments, KernelTurn(Upstream("u")))
    made.item_kind, made.process_id, made.began = read.kind, read.process_id, read.began
    return made


def test_names_are_unique_in_a_turn_whatever_ids_come() -> None:
    """S-33: `~2`, `~3`; also where an id looks like one that was made."""
    instances = Instances()
    turn = KernelTurn(Upstream("u"))

    names = [instances.open(it, "t", {}, turn).name for it in ("a", "a", "a~2", "a", "a~2", "a")]

    assert names == ["a", "a~2", "a~2~2", "a~3", "a~2~3", "a~4"]


def test_an_announcement_is_a_repeat_while_nothing_speaks_against_it() -> None:
    """S-33: the process and the command of a live one."""
    instances = Instances()
    first = opened(instances, item(**command()))

    assert instances.announced(item(**command())) is first
    assert instances.announced(item(**command(process="7"))) is first
    first.process_id = "7"
    assert instances.announced(item(**command(process="8"))) is None
    assert instances.announced(item(**command(text="rm"))) is None


def test_an_announcement_that_its_end_overtook_is_a_repeat() -> None:
    """S-33a: by its process, or by the time that it was announced."""
    instances = Instances()
    ways: list[dict[str, Any]] = [{"process": "7"}, {"startedAtMs": 5}]
    for more in ways:
        made = opened(instances, item(**command("x", **more)))
        made.settled = True
        assert instances.announced(item(**command("x", **more))) is made
    assert instances.announced(item(**command("x"))) is None


def test_an_end_is_that_of_its_process() -> None:
    """S-33: of two with one id; without one, of what runs."""
    instances = Instances()
    first = opened(instances, item(**command(process="7")))
    second = opened(instances, item(**command(process="8")))

    assert instances.ended(item(**command(process="8"))) is second
    assert instances.ended(item(**command(process="7"))) is first
    assert instances.ended(item(**command(process="9"))) is None
    assert instances.ended(item(**mcp("c"))) is None


def test_a_request_is_about_what_was_announced_with_its_command() -> None:
    """S-33: any other command is another instance."""
    instances = Instances()
    first = opened(instances, item(**command()))

    assert instances.asked_for("c", {"command": "ls", "cwd": "/w"}) is first
    assert instances.asked_for("c", {"command": "rm", "cwd": "/w"}) is None
    assert instances.asked_for("d", None) is None
    first.runs = True
    assert instances.asked_for("c", {"command": "ls", "cwd": "/w"}) is None


def test_calls_with_one_id_are_told_apart_by_their_command() -> None:
    """S-33, S-38: the raw stream says what each of them asked for."""
    instances = Instances()
    turn = KernelTurn(Upstream("u"))
    for name in ("one", "two"):
        made = instances.open("c", "exec_command", {}, turn)
        made.raw = RawCall(id=name, call_id="c", tool_name="t", arguments={"cmd": name})

    found = instances.announced(item(**command(text="bash -lc two")))

    assert found is not None
    assert found.name == "c~2"
    assert instances.raw_output("c") is instances.of("c")[0]


def test_a_call_that_a_cut_stream_asks_for_again_is_the_same_until_it_began() -> None:
    """S-38: what was only announced before the cut is announced anew."""
    instances = Instances()
    turn = KernelTurn(Upstream("u"))
    made = instances.open("c", "t", {}, turn)
    made.raw = again = RawCall(id="2", call_id="c", tool_name="t", arguments={})

    assert instances.raw_call(again) is None
    turn.response_ended = True
    assert instances.raw_call(again) is made
    made.runs = True
    assert instances.raw_call(again) is None


def test_what_is_no_execution_is_none() -> None:
    """What is said or thought, what a provider runs, and what nobody called (W-55)."""
    kinds = ("agentMessage", "reasoning", "webSearch", "plan", "somethingNew")
    assert [item_of({"item": {"type": it, "id": "x"}}) for it in kinds] == [None] * 5
    told = {"type": "subAgentActivity", "id": "subagent-completed-1", "kind": "completed"}
    assert item_of({"item": told}) is None
    assert item(type="newToolCall", id="x", tool="t", status="inProgress").tool_name == "t"
    assert item(**patch()).tool_name == "patch"


def test_ended_ones_are_forgotten_in_time() -> None:
    """S-6: the oldest first, and never one that goes on."""
    instances = Instances()
    turn = KernelTurn(Upstream("u"))
    live = instances.open("live", "t", {}, turn)
    for number in range(5_000):
        instances.end(instances.open(f"i{number}", "t", {}, turn))

    assert instances.of("live") == [live]
    assert not instances.of("i0")
    assert len([*instances]) == 4_097
