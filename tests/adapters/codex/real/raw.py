"""The binary by itself: its JSON lines, both directions, kept as the recorded transcripts are."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self

PATIENCE: Final = 60.0
"""Seconds for anything that the binary is waited for."""

Said = Callable[[dict[str, Any]], bool]
"""Whether this is the message that is waited for."""


class Tape:
    """What was said by several processes of one story, in the format of the recorded ones."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.changed = threading.Condition()
        self._began = time.monotonic()

    def keep(self, direction: str, message: Any, proc: int | None) -> None:
        """Keep one line, and wake who waits."""
        with self.changed:
            line: dict[str, Any] = {
                "seq": len(self.lines) + 1,
                "t": round(time.monotonic() - self._began, 4),
                "ts": datetime.now(UTC).isoformat(timespec="milliseconds"),
                "dir": direction,
            }
            self.lines.append(line | ({} if proc is None else {"proc": proc}) | {"msg": message})
            self.changed.notify_all()

    def write(self, path: Path) -> None:
        """Write it to a file, a line each."""
        with self.changed:
            path.write_text("".join(f"{json.dumps(line)}\n" for line in self.lines), "utf-8")


class Raw:
    """One process of the binary, spoken to over stdio."""

    def __init__(
        self,
        binary: str,
        *,
        env: Mapping[str, str],
        cwd: Path,
        arguments: Sequence[str] = ("app-server",),
        tape: Tape | None = None,
        proc: int = 0,
    ) -> None:
        self.tape = Tape() if tape is None else tape
        self.proc = proc
        self._ids = itertools.count(1)
        self._writes = threading.Lock()
        self.ended = False
        self.tape.keep("meta", {"event": "spawn", "argv": ["codex", *arguments]}, proc)
        self.process = subprocess.Popen(
            [binary, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=dict(env),
            start_new_session=True,
        )
        self._readers = [
            threading.Thread(target=self._read, daemon=True),
            threading.Thread(target=self._read_stderr, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    # What is said to it

    def send(self, message: Mapping[str, Any]) -> None:
        """Write one line."""
        assert self.process.stdin is not None
        with self._writes:
            self.tape.keep("c2s", dict(message), self.proc)
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()

    def ask(self, method: str, **params: Any) -> int:
        """Send a request; return its id."""
        number = next(self._ids)
        self.send({"method": method, "id": number, "params": params})
        return number

    def answered(self, number: int) -> dict[str, Any]:
        """Return the answer to a request of ours: its `result`, or its `error`."""
        return self.wait(lambda told: told.get("id") == number and "method" not in told)

    def request(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask, and return the result. An error is a failure of the test."""
        told = self.answered(self.ask(method, **params))
        assert "result" in told, f"{method}: {told}"
        result: dict[str, Any] = told["result"]
        return result

    def begin(self, *, experimental: bool = True) -> dict[str, Any]:
        """Say hello, as every client must."""
        client = {"name": "turnlock_tests", "title": "Tests of turnlock", "version": "0.0.1"}
        told = self.request(
            "initialize", clientInfo=client, capabilities={"experimentalApi": experimental}
        )
        self.send({"method": "initialized"})
        return told

    def start_thread(self, **params: Any) -> dict[str, Any]:
        """Start a thread, and return what it is."""
        return self.request("thread/start", **params)

    def start_turn(self, thread: str, text: str = "go", **more: Any) -> str:
        """Start a turn of a thread; return its id."""
        told = self.request(
            "turn/start", threadId=thread, input=[{"type": "text", "text": text}], **more
        )
        turn: str = told["turn"]["id"]
        return turn

    def answer(self, asked: Mapping[str, Any], decision: str) -> None:
        """Answer a request of its."""
        self.send({"id": asked["id"], "result": {"decision": decision}})

    # What it says

    def heard(self, *methods: str) -> list[dict[str, Any]]:
        """Return what it has said so far; of these methods, where some are named."""
        with self.tape.changed:
            return [
                line["msg"]
                for line in self.tape.lines
                if line["dir"] == "s2c"
                and line["proc"] == self.proc
                and (not methods or line["msg"].get("method") in methods)
            ]

    def methods(self) -> list[str]:
        """Return the methods of what it has said, in order."""
        return [told["method"] for told in self.heard() if "method" in told]

    def wait(
        self, said: Said, *, count: int = 1, after: int = 0, seconds: float = PATIENCE
    ) -> dict[str, Any]:
        """Return the count-th message that is it; `after` leaves out so many at the beginning."""

        def found() -> list[dict[str, Any]]:
            return [told for told in self.heard()[after:] if said(told)]

        with self.tape.changed:
            self.tape.changed.wait_for(lambda: len(found()) >= count or self.ended, seconds)
            told = found()
        if len(told) < count:
            state = "it has ended" if self.ended else f"{seconds} s are over"
            raise AssertionError(f"what was waited for did not come, and {state}: {self.methods()}")
        return told[count - 1]

    def wait_for(self, method: str, *, count: int = 1, **params: Any) -> dict[str, Any]:
        """Return the count-th message of a method with such params."""
        return self.wait(
            lambda told: (
                told.get("method") == method
                and params.items() <= (told.get("params") or {}).items()
            ),
            count=count,
        )

    def wait_item(self, kind: str, item_id: str, event: str = "item/completed") -> dict[str, Any]:
        """Return an item once it has started, or completed."""
        told = self.wait(
            lambda told: (
                told.get("method") == event
                and told["params"]["item"]["type"] == kind
                and told["params"]["item"]["id"] == item_id
            )
        )
        item: dict[str, Any] = told["params"]["item"]
        return item

    # Its end

    def close(self, *, seconds: float = 20.0) -> int:
        """Close its stdin; return with what it ended."""
        assert self.process.stdin is not None
        self.tape.keep("meta", {"event": "stdin_closed"}, self.proc)
        with self._writes, contextlib.suppress(OSError):
            self.process.stdin.close()
        return self._reap(seconds)

    def kill(self, number: int = signal.SIGKILL) -> int:
        """Send it a signal; return with what it ended."""
        self.tape.keep(
            "meta", {"event": "signal", "signal": signal.Signals(number).name}, self.proc
        )
        self.process.send_signal(number)
        return self._reap(20.0)

    def _reap(self, seconds: float) -> int:
        status = self.process.wait(seconds)
        for reader in self._readers:
            reader.join(5)
        self.tape.keep("meta", {"event": "stdout_eof", "returncode": status}, self.proc)
        return status

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(20)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(OSError, ValueError):
                if stream is not None:
                    stream.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with contextlib.suppress(ValueError, OSError):
            for line in self.process.stdout:
                self.tape.keep("s2c", json.loads(line), self.proc)
        with self.tape.changed:
            self.ended = True
            self.tape.changed.notify_all()

    def _read_stderr(self) -> None:
        assert self.process.stderr is not None
        with contextlib.suppress(ValueError, OSError):
            for line in self.process.stderr:
                self.tape.keep("stderr", line.decode(errors="replace").rstrip("\n"), self.proc)


def descendants(pid: int) -> Iterator[int]:
    """Yield the processes below one, as Linux tells."""
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in task.read_text(encoding="ascii").split():
                yield int(child)
                yield from descendants(int(child))
