"""A command that speaks the wire: the oracle, wrong or failing in the way that its argument names.

crash             it ends at an interrupt
wrong then crash  it accepts claims that are to be refused, and ends at whatever comes next
hang second       it hangs at the second script of its life
babble            it writes to stdout beside its answers
"""

import json
import os
import sys
import time
from typing import Any

from turnlock.verification.oracle.oracle import Oracle

WAY = sys.argv[1]


def end() -> None:
    """End with a word on stderr."""
    sys.stderr.write("out of cheese\n")
    sys.stderr.flush()
    os._exit(3)


def played(run: Any, script: list[Any]) -> list[Any]:
    """The receipts of one script, as far as it gets."""
    oracle, wrong = Oracle(run), False
    receipts: list[Any] = []
    for delivery in script:
        if wrong or (WAY == "crash" and delivery["type"] == "interrupt"):
            end()
        receipt: Any = oracle.receive(delivery)
        if WAY == "wrong then crash" and delivery["type"] == "claim" and "reason" in receipt:
            receipt = {"accepted": True, "facts": [], "effects": []}
            wrong = True
        receipts.append(receipt)
    return receipts


scripts = 0
for line in sys.stdin:
    request = json.loads(line)
    answers: list[Any] = []
    for one in request["scripts"]:
        scripts += 1
        if WAY == "hang second" and scripts == 2:
            time.sleep(600)
        answers.append(played(request["run"], one))
    if WAY == "babble":
        print("here is your answer:")
    print(json.dumps({"id": request["id"], "scripts": answers}), flush=True)
