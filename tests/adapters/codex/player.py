"""A process on stdio that plays one recorded process of a transcript, as `codex app-server` was.

    python player.py TRANSCRIPT PROC [options]

PROC is the number of the process in the transcript; `next`, with `--count FILE`, is one more than
was played last. It says what was recorded, in order, and where the client said something it waits
until this one does. What may differ without fault is let be: the text of prompts, parameters that
we add, the order of answers, a client that asks less than the recorded one did (it read the
thread, or asked for what was refused), and what codex is asked beside (`thread/read`,
`model/list`). Ids of our requests are put in place of the recorded ones. Anything else ends it with
status 3 and a line on standard error that names the place: a second answer to one request, another
decision, an answer to what was never asked, a thread or turn that nobody knows, a method out of
place.

What our side never says is taken for what it says instead (S-35): `accept` for
`acceptForSession` and an amendment; `turn/interrupt`, or nothing, for `cancel`. Raw events that
nobody recorded are refused, so that the client falls back (S-32).

It ends as the recorded one did: by its own signal where that was killed, or once its input ends.
Closed input ends it at any time with status 0, as codex does; with `--whole` that is a fault, too.
Faults are asked for by the number (`seq`) of a recorded message; see `--help`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NoReturn, cast

Line = dict[str, Any]

WRONG: Final = 3
BESIDE: Final = frozenset(
    {"thread/read", "thread/list", "thread/turns/list", "thread/items/list", "model/list"}
    | {"thread/backgroundTerminals/list", "thread/backgroundTerminals/clean"}
)
"""What may be asked at any time, and need not be."""
SAME: Final = ("threadId", "turnId", "expectedTurnId")
"""Parameters that only what the process has said can fill."""
MODELS: Final[Line] = {
    "data": [
        {"id": "gpt-5.5", "model": "gpt-5.5", "displayName": "GPT-5.5", "isDefault": True},
        {"id": "gpt-5.2-codex", "model": "gpt-5.2-codex", "isDefault": False},
    ],
    "nextCursor": None,
}
"""What it answers to `model/list`, which nobody recorded."""
OVERLOADED: Final[Line] = {"code": -32001, "message": "Server overloaded; retry later."}
HUGE: Final = (16 << 20) + 1


class Fault(Exception):
    """The client said what it should not have said."""


class Closed(Exception):
    """The client has closed our input."""


class Pipe:
    """Standard input and output, line by line, and what passed there."""

    def __init__(self, log: Path | None) -> None:
        self._part = b""
        self._lines: list[bytes] = []
        self._ended = False
        self._log = log

    def note(self, event: str, **more: object) -> None:
        """Keep for the test what happened, at once, whatever becomes of this process."""
        if self._log is not None:
            told = json.dumps({"event": event, "at": time.time(), **more}) + "\n"
            with self._log.open("a", encoding="utf-8") as log:
                log.write(told)

    def say(self, data: bytes) -> None:
        """Write all of it."""
        view = memoryview(data)
        while view:
            view = view[os.write(1, view) :]

    def said(self, *, wait: bool) -> Line | None:
        """Return what the client says next; None where nothing is there and nobody waits.

        Raises `Closed` once it says no more, and `Fault` for what is no message.
        """
        while not self._lines:
            if self._ended:
                raise Closed
            if not wait and not select.select([0], [], [], 0)[0]:
                return None
            data = os.read(0, 1 << 16)
            self._ended = not data
            *lines, self._part = (self._part + data).split(b"\n")
            self._lines += lines
        line = self._lines.pop(0)
        try:
            told = json.loads(line)
        except ValueError as error:
            raise Fault(f"a line that is no JSON: {line[:200]!r}") from error
        if not isinstance(told, dict):
            raise Fault(f"a line that is no message: {line[:200]!r}")
        message = cast("Line", told)
        self.note("heard", message=message)
        return message


class Player:
    """One recorded process, played once."""

    def __init__(self, entries: list[Line], options: argparse.Namespace, pipe: Pipe) -> None:
        self._entries = entries
        self._options = options
        self._pipe = pipe
        self._at = 0
        """Where in the entries it stands."""
        self._early: list[Line] = []
        """What the client has said, and is not yet waited for."""
        self._ids: dict[Any, Any] = {}
        """Ids of the client's requests by those of the recorded ones."""
        self._never_asked: set[Any] = set()
        """Recorded requests that this client did not make: nor are they answered."""
        self._asked: set[str] = set()
        """Requests of ours that it was told of, as JSON."""
        self._answered: set[str] = set()
        self._answers = {it["msg"]["id"]: it for it in entries if _is_answer(it, "s2c")}
        self._starts_raw = any(
            it["msg"].get("params", {}).get("experimentalRawEvents")
            for it in entries
            if _method(it) == "thread/start"
        )
        self._hooks = _hooks(options.hooks)

    @property
    def seq(self) -> int:
        """Where it stands, as the transcript counts."""
        entries = self._entries
        return int(entries[min(self._at, len(entries) - 1)]["seq"]) if entries else 0

    def play(self) -> int:
        """Play to the end; return the status to end with."""
        while self._at < len(self._entries):
            entry = self._entries[self._at]
            self._hear_all()
            if entry["dir"] == "s2c":
                self._say(entry)
            elif entry["dir"] == "c2s":
                self._wait_for(entry)
            elif entry["dir"] == "stderr":
                sys.stderr.write(f"{entry['msg']}\n")
                sys.stderr.flush()
            else:
                ended = self._happens(entry["msg"])
                if ended is not None:
                    return ended
            self._at += 1
            self._after(int(entry["seq"]))
        self._until_closed()
        return 0

    # What it says

    def _say(self, entry: Line) -> None:
        message = dict(entry["msg"])
        seq = int(entry["seq"])
        if seq in self._options.drop:
            return
        if _is_answer(entry, "s2c"):
            if message["id"] in self._never_asked:
                return
            message["id"] = self._ids[message["id"]]
        elif "id" in message:
            self._asked.add(json.dumps(message["id"]))
        after = self._entries[self._at + 1 : self._at + 2]
        if seq in self._options.swap and after and after[0]["dir"] == "s2c":
            self._at += 1
            self._say(after[0])
        for _ in range(1 + (seq in self._options.double)):
            self._write(message, seq)

    def _write(self, message: Line, seq: int) -> None:
        self._pipe.note("said", seq=seq, message=message)
        self._pipe.say(json.dumps(message).encode() + b"\n")

    # What is said to it

    def _hear_all(self) -> None:
        """Take what the client has said by now, and see that it may have."""
        try:
            while (told := self._pipe.said(wait=False)) is not None:
                self._heard(told)
        except Closed:
            if not self._options.whole or self._is_owed():
                raise

    def _is_owed(self) -> bool:
        """Whether the recorded client said something that ours has not, from here on."""
        ahead = (entry for entry in self._entries[self._at :] if entry["dir"] == "c2s")
        return not all(self._may_be_missing(entry) for entry in ahead)

    def _heard(self, told: Line) -> None:
        method = told.get("method")
        if method is None:
            self._heard_answer(told)
        elif not isinstance(method, str):
            raise Fault(f"a message without a method: {told}")
        elif method in self._options.overloaded:
            self._options.overloaded.remove(method)
            self._reply(told, error=OVERLOADED)
        elif method == "thread/start" and self._is_raw(told) and not self._starts_raw:
            self._reply(told, error={"code": -32600, "message": _NEEDS_EXPERIMENTAL})
        elif method in BESIDE:
            self._reply_beside(told, method)
        elif method == "turn/interrupt" and self._cancels():
            self._reply(told, result={})
        elif (entry := self._expected(told)) is not None:
            self._early.append(told)
            self._fail(told, method, entry)
        elif (refused := self._refused_before(told)) is not None:
            self._reply(told, error=refused["error"])
        else:
            raise Fault(f"{method}, which is not waited for here: {json.dumps(told)[:500]}")

    def _expected(self, told: Line) -> Line | None:
        """Return what the recorded client says from here on, as this one does now."""
        said = list(self._early)
        for entry in self._entries[self._at :]:
            if entry["dir"] != "c2s" or _method(entry) is None:
                continue
            same = next((it for it in said if self._is_same(entry, it)), None)
            if same is not None:
                said.remove(same)
            elif self._is_same(entry, told):
                return entry
        return None

    def _refused_before(self, told: Line) -> Line | None:
        """Return how the same was refused, where that was played already without being asked."""
        for entry in self._entries[: self._at]:
            if entry["dir"] == "c2s" and self._is_same(entry, told) and self._was_refused(entry):
                answer: Line = self._answers[entry["msg"]["id"]]["msg"]
                return answer
        return None

    def _was_refused(self, entry: Line) -> bool:
        return "error" in self._answers.get(entry["msg"].get("id"), {}).get("msg", {})

    def _fail(self, told: Line, method: str, entry: Line) -> None:
        """Leave a request without its answer, or refuse it, where that was asked for."""
        if method in self._options.refuse:  # what follows from it does not follow
            self._early.remove(told)
            self._reply(told, error=_refusal(method))
        elif method in self._options.never_answer:
            self._never_asked.add(entry["msg"].get("id"))
            self._pipe.note("not answered", method=method)

    def _heard_answer(self, told: Line) -> None:
        request = json.dumps(told.get("id"))
        if "id" not in told or ("result" in told) == ("error" in told):
            raise Fault(f"neither a request nor an answer: {json.dumps(told)[:500]}")
        if request not in self._asked:
            raise Fault(f"an answer to request {request}, which was never made")
        if request in self._answered:
            raise Fault(f"a second answer to request {request}")
        self._answered.add(request)
        if (answered := self._hooks.get("answered")) is not None:
            answered(told)
        recorded = self._recorded_answer(request)
        if recorded is None:
            if self._options.any_answer:
                return
            raise Fault(f"an answer to request {request}, which nobody answered when recorded")
        wrong = _differs(recorded["msg"], told)
        if wrong and not self._options.any_answer:
            raise Fault(f"an answer to request {request} that {wrong}")
        self._early.append(told)

    def _recorded_answer(self, request: str) -> Line | None:
        found = (it for it in self._entries if _is_answer(it, "c2s"))
        return next((it for it in found if json.dumps(it["msg"]["id"]) == request), None)

    def _wait_for(self, entry: Line) -> None:
        """Wait until the client says what the recorded one did; or see that it need not."""
        if self._may_be_missing(entry):
            self._leave_out(entry)
            return
        while (told := self._said_early(entry)) is None:
            found = self._pipe.said(wait=True)
            if found is not None:
                self._heard(found)
            if self._may_be_missing(entry):
                self._leave_out(entry)
                return
        self._early.remove(told)
        if "method" in told and "id" in told:
            self._ids[entry["msg"]["id"]] = told["id"]

    def _leave_out(self, entry: Line) -> None:
        if "method" in entry["msg"]:
            self._never_asked.add(entry["msg"].get("id"))

    def _said_early(self, entry: Line) -> Line | None:
        for told in self._early:
            if "method" in entry["msg"]:
                if self._is_same(entry, told):
                    return told
            elif "method" not in told and _same_id(told, entry["msg"]):
                return told
        return None

    def _may_be_missing(self, entry: Line) -> bool:
        """Whether a client may leave out what the recorded one said here."""
        message, method = entry["msg"], _method(entry)
        if self._said_early(entry) is not None:
            return False
        if method is not None:
            return method in BESIDE or self._was_refused(entry)
        request = json.dumps(message["id"])
        decision = message.get("result", {}).get("decision")
        if request not in self._asked and not self._will_ask(request):
            return True  # of another process: whoever recorded this tried what came of it
        ended = decision == "cancel" and request in self._answered
        return ended or self._answered_before(entry) or self._was_resolved(entry)

    def _will_ask(self, request: str) -> bool:
        ahead = (it["msg"] for it in self._entries[self._at :] if it["dir"] == "s2c")
        return any("method" in it and json.dumps(it.get("id")) == request for it in ahead)

    def _answered_before(self, entry: Line) -> bool:
        """Whether the recorded client had answered the same request already."""
        before = self._entries[: self._at]
        return any(_is_answer(it, "c2s") and _same_id(it["msg"], entry["msg"]) for it in before)

    def _was_resolved(self, entry: Line) -> bool:
        """Whether the turn of the request was interrupted before: the answer came too late."""
        for it in reversed(self._entries[: self._at]):
            if it["dir"] == "s2c" and json.dumps(it["msg"].get("id")) == json.dumps(
                entry["msg"]["id"]
            ):
                if "method" in it["msg"]:
                    return False
            elif _method(it) in {"turn/completed", "turn/interrupt"}:
                return True
        return False

    def _cancels(self) -> bool:
        """Whether the recorded client said `cancel` here, where we interrupt the turn (S-35)."""
        for entry in self._entries[self._at :]:
            if _is_answer(entry, "c2s"):
                if entry["msg"].get("result", {}).get("decision") == "cancel":
                    self._answered.add(json.dumps(entry["msg"]["id"]))
                    return True
            elif _method(entry) == "turn/interrupt":
                return False
        return False

    def _reply(self, told: Line, **answer: object) -> None:
        if "id" in told:
            self._write({"id": told["id"], **answer}, self.seq)

    def _reply_beside(self, told: Line, method: str) -> None:
        """Answer as the recorded process did last, or first does later."""
        if method in self._options.never_answer:
            self._pipe.note("not answered", method=method)
            return
        if method in self._options.refuse:
            self._reply(told, error=_refusal(method))
            return
        given = [
            it["msg"]
            for entry in (*reversed(self._entries[: self._at]), *self._entries[self._at :])
            if _method(entry) == method and entry["dir"] == "c2s"
            if (it := self._answers.get(entry["msg"]["id"])) is not None
        ]
        if given:
            self._reply(told, **{k: v for k, v in given[0].items() if k != "id"})
        elif method == "model/list":
            self._reply(told, result=MODELS)
        else:
            self._reply(told, error={"code": -32600, "message": f"no {method} was recorded"})

    def _is_raw(self, told: Line) -> bool:
        return bool(told.get("params", {}).get("experimentalRawEvents"))

    def _is_same(self, entry: Line, told: Line) -> bool:
        """Whether a request is the recorded one: of the same thread and turn, whatever else."""
        recorded, given = entry["msg"].get("params", {}), told.get("params", {})
        return (
            _method(entry) == told.get("method")
            and ("id" in told) == ("id" in entry["msg"])
            and all(recorded.get(name) == given.get(name) for name in SAME)
        )

    # What happens to it

    def _happens(self, meta: Line) -> int | None:
        """Let happen what happened; return the status where it ends by that."""
        event = meta["event"]
        if event == "stdin_closed":
            self._until_closed()
        elif event in {"kill", "signal"} and self._options.kill == "wait":
            hang()
        elif event in {"kill", "signal"}:
            self._pipe.note("killed", signal=meta["signal"])
            if meta["signal"] in {signal.SIGKILL, "SIGKILL"}:  # else it ended as it says next
                die(self._pipe, self.seq)
        elif event == "stdout_eof" and meta["returncode"] == -signal.SIGKILL:
            die(self._pipe, self.seq)
        elif event == "stdout_eof":
            return max(int(meta["returncode"]), 0)
        return None

    def _until_closed(self) -> None:
        """Wait until the client closes our input; it may still ask what is asked beside."""
        try:
            while True:
                told = self._pipe.said(wait=True)
                if told is not None:
                    self._heard(told)
        except Closed:
            self._pipe.note("closed", seq=self.seq)

    # Faults that were asked for

    def _after(self, seq: int) -> None:
        options = self._options
        if seq in options.wait_after:
            path = Path(options.wait_after[seq])
            self._pipe.note("waits", seq=seq)
            while not path.exists():
                time.sleep(0.01)
        if seq == options.garbage_after:
            self._pipe.say(b"this is no JSON\n")
        if seq == options.huge_after:
            self._pipe.say(b'{"method":"x","params":{"text":"' + b"x" * HUGE + b'"}}\n')
        if seq == options.half_line_after:
            self._pipe.say(b'{"method":"turn/compl')
            die(self._pipe, seq)
        if seq == options.close_stdout_after:
            self._pipe.note("closed stdout", seq=seq)
            os.close(1)
            hang()
        if seq == options.die_after:
            die(self._pipe, seq)
        if seq == options.exit_after:
            self._pipe.note("exits", seq=seq)
            os._exit(7)
        if seq == options.hang_after:
            self._pipe.note("hangs", seq=seq)
            hang()


def hang() -> NoReturn:
    """Do nothing any more, whatever is said or closed, until a signal ends it."""
    while True:
        signal.pause()


def die(pipe: Pipe, seq: int) -> NoReturn:
    """End at once, as by the kernel's hand."""
    pipe.note("dies", seq=seq)
    os.kill(os.getpid(), signal.SIGKILL)
    hang()


def leave_grandchild(pipe: Pipe, how: str) -> None:
    """Leave a process that holds our pipes; `escaped` has left our process group, too."""
    if (child := os.fork()) == 0:
        if how == "escaped":
            os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.close(0)
        hang()
    pipe.note("grandchild", pid=child)


def flood_stderr() -> None:
    """Have a child of ours write to standard error without end, as long as we live."""
    parent = os.getpid()
    if os.fork() == 0:
        os.close(0)
        os.close(1)
        while os.getppid() == parent:
            os.write(2, b"\x1b[31mnoise\x07 " * 1_000 + b"\n")
        os._exit(0)


_NEEDS_EXPERIMENTAL: Final = (
    "thread/start.experimentalRawEvents requires experimentalApi capability"
)


def _refusal(method: str) -> Line:
    return {"code": -32600, "message": f"{method} is refused \x1b[31m"}


def _method(entry: Mapping[str, Any]) -> str | None:
    message = entry["msg"]
    return cast("Line", message).get("method") if isinstance(message, dict) else None


def _is_answer(entry: Line, direction: str) -> bool:
    return entry["dir"] == direction and "method" not in entry["msg"]


def _same_id(one: Line, other: Line) -> bool:
    """Whether two messages have one id, as JSON has it: `0` is not `"0"`."""
    return json.dumps(one.get("id")) == json.dumps(other.get("id"))


def _differs(recorded: Line, told: Line) -> str:
    """Say how an answer is another one than was recorded; nothing where it is as good."""
    if ("error" in recorded) != ("error" in told):
        return "is an error, or is none, unlike what was recorded"
    mine, given = _decision(recorded), _decision(told)
    return "" if mine == given else f"says {given!r}, where {mine!r} was said"


def _decision(answer: Line) -> object:
    """Return what an answer decides; what codex would remember is only an `accept` of ours."""
    result: Line = answer.get("result") or {}
    decision: object = result.get("decision")
    if decision == "acceptForSession" or isinstance(decision, dict):
        return "accept"
    return decision


def _hooks(path: Path | None) -> dict[str, Callable[[Line], object]]:
    """Load a script of the test: its `answered(message)` is called before an answer is used."""
    if path is None:
        return {}
    names: dict[str, Any] = {}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)  # noqa: S102 - ours
    return {name: it for name, it in names.items() if callable(it)}


def entries_of(path: Path, proc: int) -> list[Line]:
    """Read what one process said and was said to, and what happened to it."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        entries = [json.loads(line) for line in lines if line.strip()]
    found = [entry for entry in entries if entry.get("proc") == proc]
    if not found:
        raise SystemExit(f"player: {path.name} has no process {proc}")
    return found


def _pair(text: str) -> tuple[int, str]:
    seq, _, path = text.partition(":")
    return int(seq), path


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=str(__doc__).partition("\n")[0], allow_abbrev=False
    )
    say = parser.add_argument
    say("transcript", type=Path)
    say("proc", help="its number in the transcript, or `next`")
    say("codex", nargs="*", help="what codex would be told: ignored")
    say("--count", type=Path, help="where `next` counts")
    say("--log", type=Path, help="keep here, a JSON line each, what passes and happens")
    say("--whole", action="store_true", help="input that is closed too early is a fault")
    say("--any-answer", action="store_true", help="let other decisions than the recorded ones be")
    say("--hooks", type=Path, help="a script whose answered(message) is called at each answer")
    say(
        "--kill", choices=("self", "wait"), default="self", help="where the recorded one was killed"
    )
    for name, what in (
        ("die", "be killed"),
        ("exit", "end with status 7"),
        ("hang", "do nothing more"),
        ("garbage", "write a line that is no JSON"),
        ("half-line", "write half a line and die"),
        ("huge", "write a line of more than 16 MiB"),
        ("close-stdout", "close the output, and live on"),
    ):
        say(f"--{name}-after", type=int, metavar="SEQ", help=what)
    for name, what in (("drop", "lose"), ("double", "say twice"), ("swap", "say after the next")):
        say(f"--{name}", type=int, action="append", default=[], metavar="SEQ", help=what)
    say("--wait-after", type=_pair, action="append", default=[], metavar="SEQ:FILE", help="until")
    for name in ("never-answer", "refuse", "overloaded"):
        say(f"--{name}", action="append", default=[], metavar="METHOD", help="a request of ours")
    say("--ignore-sigterm", action="store_true")
    say("--grandchild", choices=("plain", "escaped"), help="leave a process that holds the pipes")
    say("--flood-stderr", action="store_true")
    say("--never-read", action="store_true", help="hang from the start")
    options, _ = parser.parse_known_args()
    options.wait_after = dict(options.wait_after)
    return options


def _number(options: argparse.Namespace) -> int:
    if options.proc != "next":
        return int(options.proc)
    with options.count.open("ab") as count:
        count.write(b".")
        count.flush()
        return int(count.tell()) - 1


def main() -> int:
    """Play, and return how to end."""
    options = _options()
    number = _number(options)
    pipe = Pipe(options.log)
    pipe.note("starts", proc=number, pid=os.getpid())
    if options.ignore_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if options.grandchild:
        leave_grandchild(pipe, options.grandchild)
    if options.flood_stderr:
        flood_stderr()
    if options.never_read:
        hang()
    player = Player(entries_of(options.transcript, number), options, pipe)
    try:
        status = player.play()
    except Fault as fault:
        sys.stderr.write(f"player: at seq {player.seq}: {fault}\n")
        pipe.note("fault", seq=player.seq, what=str(fault))
        return WRONG
    except BrokenPipeError:
        pipe.note("closed", seq=player.seq)
        return 0
    except Closed:
        pipe.note("closed", seq=player.seq)
        if options.whole:
            sys.stderr.write(f"player: at seq {player.seq}: its input was closed before the end\n")
            return WRONG
        return 0
    pipe.note("played", status=status)
    return status


if __name__ == "__main__":
    sys.exit(main())
