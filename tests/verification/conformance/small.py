"""A slice that is small enough for k = 1 in a test."""

from turnlock.verification.alphabet.slice import RECOVER, Slice, run_with
from turnlock.verification.alphabet.symbols import TICK, call, of_call, open_turn, symbols

SMALL = Slice(
    name="small",
    about="one call",
    run=run_with(remembered=0),
    symbols=symbols(
        [
            open_turn("T", call("a")),
            of_call("claim", "T", "a", attempt=1),
            of_call("report", "T", "a", result=1),
            of_call("report", "T", "a", result=True),
            TICK,
            RECOVER,
        ]
    ),
)
