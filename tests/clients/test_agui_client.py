"""AG-UI's own client, unmodified (F-112, F-60 … F-66).

Each scenario has a thread and an amount of its own, so that it can be seen that its tool has run
once.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import attrs
import pytest

from .conftest import Drive
from .drivers import Driver
from .served import APP, RUNNER, Clients, secret_of

CALL: Final = "1.c1"
Event = dict[str, Any]
_numbers: Final = itertools.count(1)


@attrs.define
class Tab:
    """One client of one thread."""

    driver: Driver
    name: str
    last: Event = attrs.field(factory=dict[str, Any])

    def play(self, what: str, **given: Any) -> Event:
        """Have it do something; return what it has then."""
        self.last = self.driver.play(what, agent=self.name, **given).value or self.last
        return self.last

    @property
    def messages(self) -> list[Event]:
        """What it shows."""
        found: list[Event] = self.last["messages"]
        return found

    @property
    def over(self) -> str | None:
        """How its latest stream ended; None where it did not."""
        events: Sequence[Event] = self.last["events"]
        last = events[-1] if events else Event()
        if last.get("type") == "RUN_ERROR":
            return str(last["code"])
        return str(last["outcome"]["type"]) if last.get("type") == "RUN_FINISHED" else None

    @property
    def asked(self) -> list[str]:
        """The calls that it is asked about."""
        return [it["toolCallId"] for it in self.last["interrupts"]]

    def refused(self) -> list[str]:
        """Why answers of its latest request were not taken."""
        events: Sequence[Event] = self.last["events"]
        return [it["value"]["reason"] for it in events if it.get("name") == "DELIVERY_REFUSED"]

    def end(self, call: str = CALL) -> str | None:
        """What it shows of the end of a call."""
        found = [it["content"] for it in self.messages if it.get("toolCallId") == call]
        assert len(found) <= 1
        return str(found[0]) if found else None


@attrs.define
class Thread:
    """A run of its own, and the clients that show it."""

    server: Clients
    driver: Driver
    number: int = attrs.field(factory=lambda: next(_numbers))
    tabs: int = 0

    @property
    def run(self) -> str:
        """The name of its run."""
        return f"thread-{self.number:06}"

    @property
    def amount(self) -> int:
        """What is paid here and nowhere else."""
        return 200_000 + self.number

    def paid(self, amount: int | None = None) -> int:
        """How often it was."""
        return self.server.did[f"pay {self.amount if amount is None else amount}"]

    def tab(self, who: str = APP) -> Tab:
        """Open the thread as a page that has nothing."""
        self.tabs += 1
        tab = Tab(self.driver, f"{self.run}/{self.tabs}")
        tab.play("open", url=self.server.url, token=secret_of(who), thread=self.run)
        return tab

    def asks(self, prompt: str | None = None) -> Tab:
        """Open the thread, and have it stand before its question."""
        tab = self.tab()
        tab.play("say", text=prompt or f"pay {self.amount}", id="m1")
        assert tab.over == "interrupt"
        return tab

    def decide(self, *, approved: bool) -> None:
        """Decide elsewhere, as anna."""
        (call,) = self.server.calls(self.run)
        assert self.server.decide(self.run, call, approved=approved).status_code == 200

    def plain(self, tab: Tab) -> Any:
        """What a client shows, without what is of this scenario alone."""
        text = json.dumps(tab.messages).replace(self.run, "RUN")
        return json.loads(text.replace(str(self.amount), "AMOUNT"))

    def check(self, tab: Tab) -> None:
        """Whoever opens the thread now sees the same, but for what he has said himself."""
        other = self.tab()
        other.play("run")
        assert other.messages == tab.messages
        assert other.over == tab.over


@pytest.fixture
def thread(server: Clients, drive: Drive) -> Callable[[], Thread]:
    """Make threads."""
    return lambda: Thread(server, drive("agui.mjs"))


def test_f_112_approve(thread: Callable[[], Thread]) -> None:
    """The tool runs once, and the client shows its end and what the model says of it."""
    it = thread()
    tab = it.asks()
    assert (it.paid(), tab.asked) == (0, [CALL])
    tab.play("answer", payload={"approved": True})
    assert (tab.over, tab.asked, tab.last["error"]) == ("success", [], None)
    assert tab.end() == f"paid {it.amount}"
    assert [m["role"] for m in tab.messages] == ["user", "assistant", "tool", "assistant"]
    assert [m["id"] for m in tab.messages] == ["m1", "said/2", f"result/{CALL}", "said/3"]
    assert tab.last["state"]["turnlock"]["cursor"]
    assert it.paid() == 1
    it.check(tab)


def test_f_112_deny(thread: Callable[[], Thread]) -> None:
    """Nothing runs, and the reason is shown."""
    it = thread()
    tab = it.asks()
    tab.play("answer", payload={"approved": False, "reason": "too dear"})
    assert tab.over == "success"
    assert json.loads(tab.end() or "") == {"denied": "too dear"}
    assert it.paid() == 0
    it.check(tab)


def test_f_112_edit(thread: Callable[[], Thread]) -> None:
    """What runs are the edited arguments, once; the question was about the others."""
    it = thread()
    tab, other = it.asks(), it.amount + 500_000
    tab.play("answer", payload={"approved": True, "arguments": {"amount": other}})
    assert tab.over == "success"
    assert tab.end() == f"paid {other}"
    assert (it.paid(), it.paid(other)) == (0, 1)
    (told,) = it.server.facts(it.run, "TOOL_APPROVED")
    assert (told["arguments"], told["decided_by"]) == ({"amount": other}, APP)
    it.check(tab)


def test_f_112_two_questions(thread: Callable[[], Thread]) -> None:
    """The client answers both at once, each as it likes."""
    it = thread()
    other = it.amount + 500_000
    tab = it.asks(f"look pay {it.amount} pay {other}")
    assert tab.asked == ["1.c2", "1.c3"]
    yes, no = ({"status": "resolved", "payload": {"approved": it}} for it in (True, False))
    tab.play("answer", of={"1.c2": yes, "1.c3": no})
    assert tab.over == "success"
    assert (it.paid(), it.paid(other)) == (1, 0)
    assert tab.end("1.c2") == f"paid {it.amount}"
    assert "denied" in (tab.end("1.c3") or "")
    it.check(tab)


def test_f_112_two_questions_of_which_one_is_left(thread: Callable[[], Thread]) -> None:
    """What is cancelled decides nothing, and is asked again alone."""
    it = thread()
    other = it.amount + 500_000
    tab = it.asks(f"pay {it.amount} pay {other}")
    left = {"status": "cancelled"}
    tab.play("answer", payload={"approved": True}, of={"1.c2": left})
    assert (tab.over, tab.asked) == ("interrupt", ["1.c2"])
    assert (it.paid(), it.paid(other)) == (1, 0)
    tab.play("answer", payload={"approved": True})
    assert (tab.over, it.paid(), it.paid(other)) == ("success", 1, 1)
    it.check(tab)


@pytest.mark.parametrize("approved", [True, False])
def test_f_112_late_duplicate(thread: Callable[[], Thread], *, approved: bool) -> None:
    """The same answer again, once all is over: it holds, and nothing happens twice."""
    it = thread()
    tab = it.asks()
    tab.play("answer", payload={"approved": approved})
    before, resume = tab.messages, tab.last["resume"]
    tab.play("run", resume=resume)
    assert (tab.over, tab.messages, tab.refused()) == ("success", before, [])
    assert it.paid() == approved
    it.check(tab)


@pytest.mark.parametrize("approved", [True, False])
def test_f_112_flipped_duplicate(thread: Callable[[], Thread], *, approved: bool) -> None:
    """The other answer, once all is over: it is told what was decided, and nothing changes."""
    it = thread()
    tab = it.asks()
    tab.play("answer", payload={"approved": approved})
    (said,) = tab.last["resume"]
    before = tab.messages
    tab.play("run", resume=[{**said, "payload": {"approved": not approved}}])
    assert (tab.over, tab.messages) == ("success", before)
    (reason,) = tab.refused()
    assert reason in {"late", "already_settled", "already_decided"}
    assert it.paid() == approved
    it.check(tab)


@pytest.mark.parametrize("approved", [True, False])
def test_f_112_decided_elsewhere(thread: Callable[[], Thread], *, approved: bool) -> None:
    """The client still asks its person: the answer is told who was first, and what came of it."""
    it = thread()
    tab = it.asks()
    it.decide(approved=approved)
    tab.play("answer", payload={"approved": not approved})
    assert tab.over == "success"
    (told,) = [e["value"] for e in tab.last["events"] if e.get("name") == "DELIVERY_REFUSED"]
    assert told["call"]["decision"]["by"] == "anna"
    assert told["call"]["decision"]["approved"] is approved
    assert it.paid() == approved
    it.check(tab)


def test_f_112_abandoned(thread: Callable[[], Thread]) -> None:
    """Nobody answers: the question stands in the console, and whoever comes is asked it."""
    it = thread()
    left = it.asks()
    other = it.tab()
    other.play("run")
    assert (other.over, other.asked, other.messages) == ("interrupt", [CALL], left.messages)
    it.decide(approved=True)
    other.play("answer", status="cancelled")
    assert (other.over, other.end()) == ("success", f"paid {it.amount}")
    assert it.paid() == 1
    it.check(other)


def test_f_112_a_second_turn_with_the_same_provider_ids(thread: Callable[[], Thread]) -> None:
    """The calls are other ones, and each has its own end."""
    it = thread()
    tab = it.asks()
    tab.play("answer", payload={"approved": False})
    tab.play("say", text=f"pay {it.amount}", id="m2")
    assert (tab.over, tab.asked) == ("interrupt", ["2.c1"])
    tab.play("answer", payload={"approved": True})
    assert tab.over == "success"
    assert "denied" in (tab.end("1.c1") or "")
    assert tab.end("2.c1") == f"paid {it.amount}"
    assert it.paid() == 1
    it.check(tab)


def test_f_112_a_client_that_may_not_decide(thread: Callable[[], Thread]) -> None:
    """F-11: what its agent asked for it cannot approve; whoever may still can."""
    it = thread()
    tab = it.tab(RUNNER)
    tab.play("say", text=f"pay {it.amount}", id="m1")
    tab.play("answer", payload={"approved": True})
    assert "403" in tab.last["error"]
    assert (tab.asked, it.paid()) == ([CALL], 0)
    it.decide(approved=True)
    tab.play("answer", status="cancelled")
    assert (tab.over, it.paid()) == ("success", 1)


def uncut(it: Thread) -> tuple[Any, int, int]:
    """What a client has that lost nothing, and how many events its two requests had."""
    tab = it.asks(f"look pay {it.amount}")
    first = len(tab.last["events"])
    tab.play("answer", payload={"approved": True})
    assert tab.over == "success"
    return it.plain(tab), first, len(tab.last["events"])


def cut_first(it: Thread, after: int, how: str) -> Tab:
    """Lose the first stream after so many events, and go on."""
    tab = it.tab()
    tab.play("cuts", after=after, how=how)
    tab.play("say", text=f"look pay {it.amount}", id="m1")
    tab.play("cuts", after=None)
    if tab.asked:  # all but the end of the connection had come
        return tab
    tab.play("run")
    assert tab.over == "interrupt"
    return tab


def cut_second(it: Thread, after: int, how: str) -> Tab:
    """Lose the second one: the client still has its interrupts, and says the same again."""
    tab = it.asks(f"look pay {it.amount}")
    tab.play("cuts", after=after, how=how)
    tab.play("answer", payload={"approved": True})
    resume = tab.last["resume"]
    tab.play("cuts", after=None)
    if tab.over is None:
        tab.play("run", resume=resume)
    assert tab.refused() == []
    return tab


@pytest.mark.parametrize("how", ["error", "close"])
def test_f_112_a_cut_after_every_single_event(thread: Callable[[], Thread], how: str) -> None:
    """Of both requests: the messages are those of an uncut turn, and each tool has run once."""
    whole, first, second = uncut(thread())
    assert (first, second) > (10, 10)
    stride = 1 if how == "error" else 4  # it ends as if all had been said

    def lose(which: int, after: int) -> None:
        it = thread()
        tab = (cut_first, cut_second)[which](it, after, how)
        if which == 0:
            tab.play("answer", payload={"approved": True})
        assert tab.over == "success", (which, after)
        assert it.plain(tab) == whole, (which, after)
        assert it.paid() == 1
        assert len(it.server.facts(it.run, "TOOL_EXECUTION_STARTED")) == 2

    cuts = [(0, it) for it in range(0, first + 1, stride)]
    cuts += [(1, it) for it in range(0, second + 1, stride)]
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(lose, *it) for it in cuts]:
            done.result()


def test_f_112_a_cut_that_nobody_mends_is_seen(thread: Callable[[], Thread]) -> None:
    """The negative control: a client that does not ask again lacks what it lacks."""
    whole, first, _ = uncut(thread())
    other = thread()
    tab = other.tab()
    tab.play("cuts", after=first // 2)
    tab.play("say", text=f"look pay {other.amount}", id="m1")
    assert (tab.over, tab.last["error"]) == (None, "the network is gone")
    assert other.plain(tab) != whole[: len(tab.messages)]
