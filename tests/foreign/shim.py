"""The foreign kernel on stdin and stdout, a request a line; with a bug where one is named."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from .bugs import bug_named
from .planting import kernel_class

Raw = dict[str, Any]


def answer(make: Callable[[], Any], request: Raw) -> Raw:
    """Play the scripts of one request, each on a fresh run."""
    scripts: list[list[Raw]] = []
    for script in request["scripts"]:
        kernel = make()
        kernel.reset(request["run"])
        scripts.append(
            [
                kernel.recover() if step["type"] == "recover" else kernel.receive(step)
                for step in script
            ]
        )
    return {"id": request["id"], "scripts": scripts}


def main(names: list[str]) -> None:
    """Serve until the input ends."""
    make = kernel_class(bug_named(names[0]) if names else None)
    for line in sys.stdin:
        sys.stdout.write(json.dumps(answer(make, json.loads(line)), allow_nan=False) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
