"""The kernel on stdin and stdout: section 12, a request a line."""

from __future__ import annotations

import json
import sys

from .mail import Raw
from .subject import ForeignKernel


def answer(request: Raw) -> Raw:
    """Play the scripts of one request, each on a fresh run."""
    scripts: list[list[Raw]] = []
    for script in request["scripts"]:
        kernel = ForeignKernel()
        kernel.reset(request["run"])
        scripts.append(
            [
                kernel.recover() if step["type"] == "recover" else kernel.receive(step)
                for step in script
            ]
        )
    return {"id": request["id"], "scripts": scripts}


def main() -> None:
    """Serve until the input ends."""
    for line in sys.stdin:
        sys.stdout.write(json.dumps(answer(json.loads(line)), allow_nan=False) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
