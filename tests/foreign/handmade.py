"""Plants a mistake that somebody wrote: a few words of a module, and what stands there instead."""

from __future__ import annotations

import attrs

from .planting import Bug, source_of
from .rules import RECOVERY, spelled, uncommented


@attrs.define
class Shelf:
    """Mistakes of one kind: called with the parts of one, it keeps it."""

    kind: str
    bugs: list[Bug] = attrs.field(factory=list[Bug])

    def __call__(self, name: str, rules: str, module: str, *words: str) -> None:
        """Keep a mistake: `words` are what stands there and what shall, in turn.

        `rules` are those that a reader would take for the right blame, spelled as in the comments
        of the kernel; of a recovery those of all recoveries, too. The comments themselves are no
        part of the words. Raises `ValueError` where the words stand not once, or the mistake has no
        rule.
        """
        source = uncommented(source_of(module))
        for old, new in zip(map(uncommented, words[::2]), words[1::2], strict=True):
            if source.count(old) != 1:
                raise ValueError(f"{name}: {old!r} stands {source.count(old)} times in {module}")
            source = source.replace(old, new)
        accepted = spelled(rules)
        if module == "restore":
            accepted |= RECOVERY
        if not accepted:
            raise ValueError(f"{name} names no rule")
        bug = Bug(name=name, kind=self.kind, module=module, source=source, rules=accepted)
        self.bugs.append(bug)
