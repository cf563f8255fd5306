"""What a run keeps beside its turn: the grants in force, and the memory of what has closed."""

from __future__ import annotations

from collections.abc import Iterator

from .text import joined


class Grant:
    """One approval that counts for more than its own call."""

    def __init__(
        self, name: str, *, tool: str, match: str, digest: str, scope: str, ends: float | None
    ) -> None:
        self.name = name
        self.tool = tool
        self.match = match
        self.digest = digest
        self.scope = scope
        self.ends = ends

    def covers(self, tool: str, digest: str) -> bool:
        """Whether it approves a call of this tool with these arguments."""
        return tool == self.tool and (self.match == "tool" or digest == self.digest)  # K-40 K-41


class Grants:
    """The grants in force, in the order in which they were issued."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self.issued = 0
        self.live: dict[str, Grant] = {}

    def __iter__(self) -> Iterator[Grant]:
        return iter(self.live.values())

    def next_name(self) -> str:
        """Return the id of the next grant."""
        return joined("grant", self._run_id, self.issued + 1)  # K-40 K-7

    def issue(self, grant: Grant) -> None:
        """Put a grant in force."""
        self.issued += 1  # K-40
        self.live[grant.name] = grant  # K-40

    def oldest_for(self, tool: str, digest: str) -> Grant | None:
        """Return the oldest grant that covers a call."""
        for grant in self:  # K-41 S4
            if grant.covers(tool, digest):  # K-41
                return grant  # K-41 S4
        return None

    def turn_over(self) -> None:
        """Let the grants of the turn that closes end."""
        for grant in list(self):  # K-42 K-40
            if grant.scope == "turn":  # K-42 K-40
                del self.live[grant.name]  # K-42 K-40


class Memory:
    """What has closed lately: turns, and the calls of each."""

    def __init__(self, most: int, seconds: float) -> None:
        self._most = most
        self._seconds = seconds
        self.closed: dict[tuple[str, ...], float] = {}

    def close(self, turn_id: str, names: list[str], at: float) -> None:
        """Remember a turn's calls, in order, and then the turn."""
        for name in names:  # K-54
            self._enter((turn_id, name), at)  # K-54
        self._enter((turn_id,), at)  # K-54

    def _enter(self, entry: tuple[str, ...], at: float) -> None:
        self.closed.pop(entry, None)  # K-54
        self.closed[entry] = at  # K-54
        while len(self.closed) > self._most:  # K-54 K-6
            del self.closed[next(iter(self.closed))]  # K-54

    def holds(self, entry: tuple[str, ...], now: float) -> bool:
        """Whether an entry is still remembered."""
        at = self.closed.get(entry)  # K-54 K-20
        return at is not None and now - at <= self._seconds  # K-54

    def holds_call(self, name: str, now: float) -> bool:
        """Whether any remembered turn held a call of this name."""
        calls = [
            entry for entry in self.closed if len(entry) == 2 and entry[1] == name
        ]  # K-54 K-20
        return any(self.holds(entry, now) for entry in calls)  # K-54 K-20
