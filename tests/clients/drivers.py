"""A Node process that plays the steps a test names, and says what its client saw (F-111).

A driver is a module `NAME.mjs` beside this file: it ends with `serve({step, …})` of steps.mjs, and
imports the clients as anybody does. One process plays many scenarios; what it was asked at once it
does at once, and each line that it prints names the step that it is of.

with driving("chat.mjs", place) as driver:
    seen = driver.play("send", chat="c1", text="pay 12")   # what it saw, and what it returned
"""

from __future__ import annotations

import json
import queue
import shutil
import subprocess
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import attrs

from .installed import HERE, NODE

WITHIN: Final = 60.0
"""Seconds that a step has; others may be at work on the machine, too."""


class StepFailed(AssertionError):
    """A step of a driver raised; the driver goes on."""


@attrs.frozen
class Seen:
    """What a step's client saw, in order, and what the step returned."""

    saw: Sequence[Any]
    value: Any


@attrs.define
class Step:
    """A step under way."""

    what: str
    lines: queue.Queue[dict[str, Any]] = attrs.field(factory=queue.Queue[dict[str, Any]])
    saw: list[Any] = attrs.field(factory=list[Any])

    def see(self, within: float = WITHIN) -> Any:
        """Wait for what is seen next. Raises `StopIteration` with what the step returned."""
        try:
            line = self.lines.get(timeout=within)
        except queue.Empty:
            raise TimeoutError(f"{self.what}: nothing for {within:g} s, after {self.saw}") from None
        if "failed" in line:
            raise StepFailed(f"{self.what}: {line['failed']}")
        if "saw" not in line:
            raise StopIteration(line.get("done"))
        self.saw.append(line["saw"])
        return line["saw"]

    def seen(self, within: float = WITHIN) -> Seen:
        """Wait for the end of the step."""
        while True:
            try:
                self.see(within)
            except StopIteration as ended:
                return Seen(self.saw, ended.value)


@attrs.define(eq=False)
class Driver:
    """A process that plays steps."""

    process: subprocess.Popen[str]
    steps: dict[int, Step] = attrs.field(factory=dict[int, Step])
    number: int = 0
    writing: threading.Lock = attrs.field(factory=threading.Lock)

    def begin(self, what: str, **given: Any) -> Step:
        """Begin a step, and let it go on."""
        assert self.process.stdin is not None
        with self.writing:
            self.number += 1
            step = self.steps[self.number] = Step(what)
            line = json.dumps({"id": self.number, "do": what, "given": given})
            self.process.stdin.write(f"{line}\n")
            self.process.stdin.flush()
        return step

    def play(self, what: str, **given: Any) -> Seen:
        """Play a step to its end."""
        return self.begin(what, **given).seen()

    def listen(self) -> None:
        """Hand out what the process prints, until it ends."""
        assert self.process.stdout is not None
        for text in self.process.stdout:
            line = json.loads(text)
            step = self.steps[line["id"]]
            step.lines.put(line)
            if "saw" not in line:
                del self.steps[line["id"]]
        for step in self.steps.values():
            step.lines.put({"failed": f"the driver ended with {self.process.wait()}"})


@contextmanager
def driving(name: str, place: Path) -> Generator[Driver]:
    """Run a driver with the clients that are installed at a place."""
    with TemporaryDirectory(prefix="turnlock-driver-") as folder:
        # Node looks for packages beside a module: there they are, whichever tree the module is of
        (Path(folder) / "node_modules").symlink_to(place / "node_modules")
        for module in HERE.glob("*.mjs"):
            shutil.copyfile(module, Path(folder) / module.name)
        process = subprocess.Popen(
            [str(NODE), "--no-warnings", str(Path(folder) / name)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        driver = Driver(process)
        listening = threading.Thread(target=driver.listen, daemon=True)
        listening.start()
        try:
            yield driver
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            listening.join(10)
            assert process.stdout is not None
            process.stdout.close()
