"""One turn: its calls in the order of the model's response, and how far it is."""

from __future__ import annotations

from .call import Call
from .mail import Raw

OPEN, SEALED, INTERRUPTING = "OPEN", "SEALED", "INTERRUPTING"


class Turn:
    """The calls that one model response asked for."""

    def __init__(self, name: str, epoch: int, sealed: bool) -> None:
        self.name = name
        self.epoch = epoch
        self.phase = SEALED if sealed else OPEN  # S8 K-21 K-22
        self.calls: dict[str, Call] = {}
        self.grace_until = 0.0

    @property
    def all_over(self) -> bool:
        """Whether each of its calls has come to its end."""
        return all(call.over for call in self.calls.values())  # K-50 K-53

    def add(self, spec: Raw) -> Call:
        """Take one more call, last in the expected order."""
        call = Call(spec)
        self.calls[call.name] = call  # K-50
        return call

    def results(self) -> list[Raw]:
        """Return what became of its calls, in the expected order."""
        return [call.told() for call in self.calls.values()]  # K-52
