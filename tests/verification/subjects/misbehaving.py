"""A command that speaks the wire, and does wrong what a step of type `log` asks of it.

It accepts everything, with a fact that tells the run and the step's number.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any


def end(status: int) -> None:
    """End at once, with a word on stderr."""
    sys.stderr.write("out of cheese\n")
    sys.stderr.flush()
    os._exit(status)


def write(text: str) -> None:
    """Write to stdout, at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


def forever(text: str) -> None:
    """Write the same again and again."""
    while True:
        write(text)


def half_a_line() -> None:
    """Begin an answer, and end."""
    write('{"id":')
    end(4)


def close_output() -> None:
    """Close stdout, and stay."""
    os.close(1)
    signal.pause()


def leave_something_running() -> str:
    """Start a process that waits for ever, and return its id."""
    left = subprocess.Popen([sys.executable, "-I", "-S", "-c", "import signal; signal.pause()"])
    return str(left.pid)


AT_ONCE: dict[str, Any] = {
    "exit": lambda: end(3),
    "exit 0": lambda: end(0),
    "be killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "hang": signal.pause,
    "close output": close_output,
    "half a line": half_a_line,
    "babble": lambda: forever('{"id": 0}\n'),
    "one endless line": lambda: forever("x" * 1000),
    "no JSON": lambda: write("hello\n"),
    "no UTF-8": lambda: (sys.stdout.buffer.write(b'"\xff"\n'), sys.stdout.flush()),
    "deep JSON": lambda: write("[" * 100_000 + "\n"),
    "no object": lambda: write("[]\n"),
    "flood stderr": lambda: sys.stderr.write("x" * 1_000_000),
}
RECEIPTS: dict[str, Any] = {
    "no receipt": 5,
    "no verdict": {"facts": [], "effects": []},
    "no reason": {"accepted": False, "facts": [], "effects": []},
    "no facts": {"accepted": True, "effects": []},
    "no effects": {"accepted": True, "facts": []},
    "no fact": {"accepted": True, "facts": [5], "effects": []},
    "no type": {"accepted": True, "facts": [], "effects": [{"effect_id": "x"}]},
    "more fields": {"accepted": True, "facts": [], "effects": [], "colour": 1},
    "large": {"accepted": True, "facts": [{"type": "LARGE", "text": "x" * 100_000}], "effects": []},
}
ANSWERS: dict[str, Callable[[Any], Any]] = {
    "another id": lambda answer: answer | {"id": -1},
    "no scripts": lambda answer: {"id": answer["id"]},
    "a script too few": lambda answer: answer | {"scripts": answer["scripts"][1:]},
    "a receipt too many": lambda answer: (answer["scripts"][-1].append({}), answer)[1],
    "an error without id": lambda _: {"id": None, "error": "no"},
    "an error": lambda answer: {
        "id": answer["id"],
        "error": {"code": "invalid_value", "message": "is bad", "at": "scripts[0][0].x"},
    },
}


def answered(request: dict[str, Any]) -> dict[str, Any]:
    """The answer to a request, with whatever its steps ask for done to it."""
    answer: dict[str, Any] = {"id": request["id"], "scripts": []}
    asked = [step.get("text") for script in request["scripts"] for step in script]
    for script in request["scripts"]:
        receipts: list[Any] = []
        for number, step in enumerate(script):
            fact = {"type": "PLAYED", "run": request["run"]["run_id"], "number": number}
            receipt = {"accepted": True, "facts": [fact], "effects": []}
            if step["type"] == "digest":
                receipt = {"digest": leave_something_running() if "leave" in asked else "d"}
            receipts.append(RECEIPTS.get(step.get("text"), receipt))
        answer["scripts"].append(receipts)
    for text in asked:
        if text in ANSWERS:
            answer = ANSWERS[text](answer)
    return answer


for line in sys.stdin:
    of_line = json.loads(line)
    for steps in of_line["scripts"]:
        for one in steps:
            AT_ONCE.get(one.get("text"), lambda: None)()
    if "only in company" in line and len(of_line["scripts"]) > 1:
        end(5)
    write(json.dumps(answered(of_line)) + "\n")
