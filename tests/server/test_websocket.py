"""The stream as WebSocket (F-50 … F-52)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from turnlock import Call, Run
from turnlock.models.diagnostics import ToolLog
from turnlock.runtime.journal.ledger import Cursor, Domain
from turnlock.server import websocket
from turnlock.server.app import App
from turnlock.server.connections import TRANSPORT
from turnlock.server.deltas import Piece
from turnlock.server.hub import Hub, HubSettings
from turnlock.server.routing import Role
from turnlock.server.sockets import MESSAGE
from turnlock.server.websocket import PROTOCOL

from ..runtime.virtual import run, settled
from . import faces, sockets
from .ledgers import WrittenLedgers
from .sockets import Closed, Socket, scope_of
from .test_sse import R, served


def test_f_50_many_runs_on_one_socket() -> None:
    """F-50, F-8: subscribed, events, live, delta, gap; unsubscribe; ping."""

    async def play() -> None:
        written = WrittenLedgers()
        for run_id in (R, "r2"):
            written.fact(run_id)
            written.note(run_id)
            written.note(run_id, Domain.MESSAGE, id="said/1", text="é")
        written.prune("r2")
        async with served(written) as it, sockets.opened(it.app) as socket:
            await socket.say(type="subscribe", id=1, run_id=R, after="")
            heard = await socket.until("live")
            assert [told["type"] for told in heard] == [
                "subscribed", "event", "event", "event", "live",
            ]  # fmt: skip
            assert heard[0] == {"type": "subscribed", "id": 1, "head": "1.2"}
            assert heard[1]["run_id"] == R
            assert heard[1]["data"]["fact"]["sequence"] == 1
            assert heard[3]["data"]["note"]["body"] == {"id": "said/1", "text": "é"}
            assert heard[4] == {"type": "live", "run_id": R, "cursor": "1.2"}
            await socket.say(type="subscribe", id="two", run_id="r2", after="1")
            heard = await socket.until("live")
            assert heard[1] == {
                "type": "gap", "run_id": "r2", "from": "1.1", "to": "1.1", "reason": "pruned",
            }  # fmt: skip
            assert heard[2]["data"]["after"] == "1.1"
            written.fact(R)
            assert (await socket.hear())["data"]["cursor"] == "2"
            it.hub.pass_on(R, Piece(item="said/2", kind="text", text="hm"))
            assert await socket.hear() == {
                "type": "delta", "run_id": R, "item": "said/2", "kind": "text", "text": "hm",
            }  # fmt: skip
            await socket.say(type="unsubscribe", id=1)
            assert await socket.hear() == {"type": "ended", "id": 1}
            assert not it.hub.is_watched(R)
            await socket.say(type="ping")
            assert await socket.hear() == {"type": "pong"}
            await socket.say(type="subscribe", id=1, run_id=R, after="2")
            assert (await socket.until("live"))[0]["head"] == "2"

    run(play())


def test_f_50_what_cannot_be_followed_is_an_error_with_its_id() -> None:
    """F-51: the socket stays, whatever was asked for; an id in use is refused."""

    async def play() -> None:
        written = WrittenLedgers()
        written.fact(R)
        async with served(written) as it, sockets.opened(it.app) as socket:
            asked: tuple[tuple[dict[str, Any], str], ...] = (
                ({"run_id": "other", "after": ""}, "unknown_run"),
                ({"run_id": R, "after": "01"}, "bad_cursor"),
                ({"run_id": R, "after": "7"}, "cursor_ahead"),
                ({"run_id": R, "after": 7}, "invalid_value"),
                ({"run_id": R, "after": "", "more": 1}, "invalid_value"),
                ({"after": ""}, "invalid_value"),
            )
            for number, (fields, code) in enumerate(asked):
                await socket.say(type="subscribe", id=number, **fields)
                told = await socket.hear()
                assert (told["type"], told["id"]) == ("error", number)
                assert told["problem"]["title"] == code
                if code in {"unknown_run", "cursor_ahead"}:
                    assert await socket.hear() == {"type": "ended", "id": number}
            await socket.say(type="subscribe", id=9, run_id=R, after="")
            await socket.until("live")
            await socket.say(type="subscribe", id=9, run_id=R, after="")
            assert (await socket.hear())["problem"]["at"] == "id"
            await socket.say(type="unsubscribe", id=10)
            assert (await socket.hear())["problem"]["at"] == "id"

    run(play())


MALFORMED: list[str | bytes] = [
    "", "{", "[]", "1", "null", '"subscribe"', "{}", '{"type": 1}', '{"type": "no"}',
    '{"type": "ping", "type": "ping"}', '{"type": "ping", "more": 1}', '{"type":"ping","id":NaN}',
    '{"type": "subscribe"}', '{"type": "subscribe", "id": null, "run_id": "r", "after": ""}',
    '{"type": "subscribe", "id": {}, "run_id": "r", "after": ""}', b'{"type": "ping"}', b"\xff",
    '{"type": "subscribe", "id": 1.5, "run_id": "r"}', '{"id": 7, "type": "decide"}',
    '{"type": "subscribe", "id": "\\ud800", "run_id": "\\ud800"}', "[" * 5_000, "9" * 5_000,
    '{"type": "unsubscribe", "id": true}', "\ud800",
]  # fmt: skip


def test_f_51_what_is_malformed_is_an_error_and_the_socket_stays() -> None:
    """F-51: with the id of the message, where it says one."""

    async def play() -> None:
        written = WrittenLedgers()
        async with served(written) as it, sockets.opened(it.app, Role.DECIDE) as socket:
            for text in MALFORMED:
                await socket.raw(text)
                told = await socket.hear()
                assert told["type"] == "error", text
                assert told["problem"]["status"] in {400, 413, 422}
                assert told["problem"]["type"].startswith("urn:turnlock:")
                assert told.get("id") == (7 if '"id": 7' in str(text) else told.get("id"))
            await socket.raw(" " * (MESSAGE + 1))
            assert (await socket.hear())["problem"]["title"] == "too_large"
            await socket.say(type="ping", id=3)
            assert await socket.hear() == {"type": "pong", "id": 3}

    run(play())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda it: st.lists(it, max_size=3) | st.dictionaries(st.text(max_size=5), it, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(["type", "id", "run_id", "after", "body", "diagnostics", "x"])
FRAMES = st.one_of(
    st.text(max_size=40),
    st.binary(max_size=40),
    st.dictionaries(
        NAMES,
        JSON | st.sampled_from([*websocket.SAID, R, "", "1", 1, 2, {"turn_id": "t"}]),
        max_size=5,
    ).map(json.dumps),
)


@given(st.lists(FRAMES, min_size=1, max_size=12))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_f_51_no_frame_breaks_the_socket(frames: list[str | bytes]) -> None:
    """F-51: a fuzzer of frames; a ping at the end is answered."""

    async def play() -> None:
        written = WrittenLedgers()
        written.fact(R)
        async with served(written) as it, sockets.opened(it.app) as socket:
            for frame in frames:
                await socket.raw(frame)
            await socket.say(type="ping", id="last")
            heard = await socket.until("pong")
            while heard[-1].get("id") != "last":
                heard = await socket.until("pong")
        assert it.hub.subscribers == 0

    run(play())


def test_f_50_who_may_and_who_may_not() -> None:
    """F-14, F-11: Host, Origin and token before it is accepted; roles with each message."""

    async def play() -> None:
        async with served(WrittenLedgers()) as it:
            for scope, status in (
                (scope_of(Role.LOOK, [PROTOCOL], Host="evil.example"), 421),
                (scope_of(Role.LOOK, [PROTOCOL], Origin="https://evil.example"), 403),
                (scope_of(None, [PROTOCOL]), 401),
                (scope_of(None, [PROTOCOL], Authorization="Bearer no"), 401),
                (scope_of(Role.LOOK, ["turnlock.v2"]), 400),
            ):
                socket = Socket(it.app, scope)
                with pytest.raises(Closed) as refused:
                    await socket.open()
                assert refused.value.code == status
                await socket.close()
            async with sockets.opened(it.app, Role.LOOK) as looking:
                for kind in ("decide", "interrupt", "resolve"):
                    await looking.say(type=kind, id=kind, run_id="r1", body={})
                    told = await looking.hear()
                    assert (told["type"], told["id"], told["status"]) == ("answer", kind, 403)
                    assert told["body"]["title"] == "forbidden"

    run(play())


def test_f_50_whoever_asks_for_no_subprotocol_is_told_the_same_without_one() -> None:
    """F-50: what is chosen is what was asked for; others alone are refused, as above."""

    async def play() -> None:
        written = WrittenLedgers()
        written.fact(R)
        async with served(written) as it:
            for asked, chosen in (
                ([], None),
                ([PROTOCOL], PROTOCOL),
                (["turnlock.v2", PROTOCOL], PROTOCOL),
            ):
                socket = Socket(it.app, scope_of(Role.LOOK, asked))
                assert await socket.open() == chosen
                await socket.say(type="subscribe", id=1, run_id=R, after="")
                heard = await socket.until("live")
                assert [told["type"] for told in heard] == ["subscribed", "event", "live"]
                await socket.close()

    run(play())


def test_f_51_the_socket_closes_1008_with_its_token_1013_with_the_server_and_4409(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """F-51, F-13: each code for its reason, and nothing is left behind; none is a defect."""

    async def play() -> None:
        written = WrittenLedgers()
        written.fact(R)
        async with served(written, settings=HubSettings(of_a_run=300)) as it:
            async with sockets.opened(it.app) as socket:
                for number in range(websocket.SUBSCRIPTIONS + 1):
                    await socket.say(type="subscribe", id=number, run_id=R, after="1")
                assert await _code(socket) == 4409
            await settled()
            assert it.hub.subscribers == 0
            async with sockets.opened(it.app) as socket:
                await socket.say(type="subscribe", id=1, run_id=R, after="")
                await socket.until("live")
                it.it.face.tokens.replace({})
                assert await _code(socket) == 1008
        async with served(written) as it, sockets.opened(it.app) as socket:
            await socket.say(type="subscribe", id=1, run_id=R, after="")
            await socket.until("live")
            it.hub.close()
            assert await _code(socket) == 1013
        assert "defect" not in caplog.text

    async def _code(socket: Socket) -> int:
        try:
            while True:
                await socket.hear()
        except Closed as closed:
            return closed.code

    run(play())


def test_f_50_a_decision_is_answered_as_over_http() -> None:
    """F-50: answer {id, status, body}; the receipt and the refusal are HTTP's."""

    async def play() -> None:
        async with served(WrittenLedgers()) as it, sockets.opened(it.app, Role.DECIDE) as socket:
            await socket.say(type="decide", id=5, run_id="nobody", body={"turn_id": "t"})
            told = await socket.hear()
            assert (told["type"], told["id"], told["status"]) == ("answer", 5, 422)
            runtime = it.it.runtime
            await runtime.open_run(Run(run_id="r1"), on_continue=_taken_on)
            gated = Call(invocation_id="c", tool_name="pay", arguments={}, requires_approval=True)
            await runtime.open_turn("r1", [gated], turn_id="t")
            (call,) = runtime.pending("r1")
            body = {
                "turn_id": call.turn_id,
                "invocation_id": call.invocation_id,
                "approved": False,
                "arguments_digest": call.arguments_digest,
            }
            await socket.say(type="decide", id=6, run_id="r1", body=body)
            told = await socket.hear()
            assert (told["id"], told["status"], told["body"]["accepted"]) == (6, 200, True)
            await socket.say(type="decide", id=7, run_id="r1", body=body)
            again = await socket.hear()
            assert (again["id"], again["body"]["accepted"]) == (7, False)

    run(play())


def test_f_50_the_list_of_runs_and_what_changes_in_it() -> None:
    """F-50: runs, then run {ENTRY} for each that changed, at most 4 a second for each."""

    async def play() -> None:
        async with (
            faces.opened() as made,
            Hub(journal=made.journal, runtime=made.runtime) as hub,
        ):
            app = App(attrs.evolve(made.face, hub=hub), ())
            runtime = made.runtime
            await runtime.open_run(Run(run_id="r1"), on_continue=_taken_on)
            async with sockets.opened(app) as socket:
                await socket.say(type="runs", id=2)
                told = await socket.hear()
                assert (told["type"], told["id"]) == ("runs", 2)
                assert [it["run_id"] for it in told["runs"]] == ["r1"]
                gated = Call(
                    invocation_id="c", tool_name="pay", arguments={}, requires_approval=True
                )
                await runtime.open_turn("r1", [gated], turn_id="t")
                told = await socket.hear()
                assert (told["type"], told["run_id"], told["waiting"]) == ("run", "r1", 1)
                assert told["status"] == "awaiting_approval"
                began = asyncio.get_running_loop().time()
                await runtime.deny("r1", turn_id="t", invocation_id="c")
                for number in range(20):
                    await runtime.open_turn("r1", [gated], turn_id=f"t{number}")
                    await runtime.deny("r1", turn_id=f"t{number}", invocation_id="c")
                heard = 0
                while told["sequence"] < (await made.journal.entry("r1")).sequence:
                    told = await socket.hear()
                    heard += 1
                passed = asyncio.get_running_loop().time() - began
                assert heard <= 4 * passed + 2
                await made.journal.declare(Run(run_id="r2"))
                while told["run_id"] != "r2":
                    told = await socket.hear()
                await socket.say(type="unsubscribe", id=2)
                assert (await socket.until("ended"))[-1] == {"type": "ended", "id": 2}

    run(play())


async def _taken_on(_: object) -> None:
    """Nobody has a model here."""


def test_a_kill_at_every_byte_of_a_socket_loses_nothing() -> None:  # noqa: C901 - one story
    """Section 10, F-52: subscribed again after the last one had, nothing misses or comes twice."""

    async def play() -> None:
        written = WrittenLedgers()
        for number in range(3):
            written.fact(R, n=number)
            written.note(R, Domain.MESSAGE, id=f"said/{number}")
        everything = written.shown(R)
        async with served(written) as it:
            most, is_whole = 0, False
            while not is_whole:
                first, is_whole = await _taken(it.app, "", most)
                second: list[str] = []
                if not is_whole:
                    second, _ = await _taken(it.app, first[-1] if first else "", None)
                assert first + second == everything
                most += 1
            assert most > 1_000
            assert it.hub.subscribers == 0

    async def _taken(app: App, after: str, most: int | None) -> tuple[list[str], bool]:
        cursors: list[str] = []
        async with sockets.opened(app, most=most) as socket:
            await socket.say(type="subscribe", id=1, run_id=R, after=after)
            return cursors, await _take(socket, cursors)

    async def _take(socket: Socket, cursors: list[str]) -> bool:
        try:
            while True:
                told = await socket.hear()
                if told["type"] == "event":
                    cursors.append(told["data"]["cursor"])
                if told["type"] == "live":
                    return True
        except Closed:
            return False

    run(play())


def test_f_43_a_socket_that_reads_nothing_is_cut_and_harms_no_other() -> None:
    """F-43: its transport is aborted; another socket hears all meanwhile."""

    async def play() -> None:
        written = WrittenLedgers()
        written.fact(R)
        async with served(written) as it:
            scope = scope_of(Role.LOOK, [PROTOCOL])
            slow = Socket(it.app, scope)

            class Transport:
                aborted = False

                def get_write_buffer_size(self) -> int:
                    return 9

                def abort(self) -> None:
                    self.aborted = True
                    slow.hang_up()
                    slow.reads.set()

            transport = scope[TRANSPORT] = Transport()
            await slow.open()
            await slow.say(type="subscribe", id=1, run_id=R, after="")
            await slow.until("live")
            slow.reads.clear()
            async with sockets.opened(it.app) as quick:
                await quick.say(type="subscribe", id=1, run_id=R, after="")
                await quick.until("live")
                for number in range(100):
                    written.fact(R, n=number)
                    assert (await quick.hear())["data"]["cursor"] == str(number + 2)
            assert not transport.aborted
            await asyncio.sleep(70)
            assert transport.aborted
            await slow.close()
            assert (it.hub.subscribers, it.hub.counts.cut) == (0, 1)

    run(play())


def test_f_44_diagnostics_are_mixed_in_if_asked() -> None:
    """F-44: refusals and logs, no facts: they have no cursor."""

    async def play() -> None:
        written = WrittenLedgers()
        written.fact(R)
        async with served(written) as it, sockets.opened(it.app) as socket:
            await socket.say(type="subscribe", id=1, run_id=R, after="", diagnostics=True)
            await socket.until("live")
            await settled()
            it.log(ToolLog(run_id=R, at=1.0, text="hm"))
            told = await socket.hear()
            assert (told["type"], told["run_id"]) == ("diagnostic", R)
            assert (told["data"]["type"], told["data"]["text"]) == ("TOOL_LOG", "hm")
            assert Cursor.read("") < Cursor(1)

    run(play())
