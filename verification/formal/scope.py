"""Scopes of the hand-written specification: a TLC configuration, read by us as well.

``docs/spec/turnlock-*.cfg`` say what may be delivered, in the constants of ``turnlock.tla``. TLC
explores the specification over them, and `explore` the kernel, so a scope is stated once.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from itertools import product
from typing import Any, Final, TypeAlias

import attrs

from ...engine.state import State
from ...models.values import arguments_digest
from ..alphabet.symbols import approve, call, deny, of_call, of_turn, open_turn, revoke
from ..errors import HarnessFailed
from ..findings import Raw

MODULE: Final = "turnlock"
RUN: Final = "r"

ARE: Final = "are"
"""The one argument of a call; its value is a word."""
WORDS: Final = ("these", "other", "edited")
"""What arguments are called in the specification."""

_PACKAGE: Final = __name__.removesuffix(".verification.formal.scope")
_CONSTANT: Final = re.compile(r"^    (\w+) = (.+)$", re.MULTILINE)
_WORDS: Final = {"TRUE": "True", "FALSE": "False", "{}": "set()"}
_ABOUT: Final = re.compile(r"\\\* (.+)")

Letter: TypeAlias = tuple[str, Raw]
"""The name of an action, and a delivery without its time."""


def text_of(name: str) -> str:
    """Return the text of a file that stands beside kernel.md."""
    return files(_PACKAGE).joinpath("docs", "spec", name).read_text(encoding="utf-8")


@attrs.frozen(kw_only=True)
class Scope:
    """One configuration: its text, what it says it holds, and its constants as Python values."""

    name: str
    about: str
    text: str
    constants: dict[str, Any] = attrs.field(eq=False)

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - a number or a set
        """Return a constant."""
        return self.constants[name]

    @property
    def run(self) -> Raw:
        """The run object of the wire with the limits of the scope."""
        limits = {
            "calls": self["MaxCalls"],
            "grants": self["MaxGrants"],
            "continuations": self["MaxContinuations"],
            "remembered": self["Capacity"],
            "remember_for": self["RememberFor"],
        }
        return {"run_id": RUN, "limits": limits}

    @property
    def ids(self) -> range:
        """The numbers of its calls."""
        return range(1, self["Calls"] + 1)

    def call(self, number: int, timeout: float | None) -> Raw:
        """Return a call by its number, as `Call` of the specification has it."""
        timed = {} if timeout is None else {"approval_timeout": float(timeout)}
        return call(
            str(number),
            gated=number in self["Gated"],
            observed=number in self["Observed"],
            tool_name="other" if number in self["OtherTool"] else "tool",
            arguments=arguments("other" if number in self["OtherArguments"] else "these"),
            **timed,
        )


def arguments(word: str) -> Raw:
    """Return what the specification calls by a word."""
    return {ARE: word}


def word_of(digest: str) -> str:
    """Return the word for arguments of this digest, which one of ours must have."""
    return next(word for word in WORDS if digest_of(word) == digest)


def read_scope(name: str) -> Scope:
    """Read `turnlock-NAME.cfg`. Raises `HarnessFailed` where it is no scope."""
    return parsed(name, text_of(f"{MODULE}-{name}.cfg"))


def parsed(name: str, text: str) -> Scope:
    """Read the text of a configuration: constants that are numbers, or sets of words or numbers."""
    about = " ".join(_ABOUT.findall(text.split("CONSTANTS", maxsplit=1)[0]))
    constants: dict[str, Any] = {}
    for constant, value in _CONSTANT.findall(text):
        for word, meant in _WORDS.items():
            value = value.replace(word, meant)  # noqa: PLW2901
        try:
            constants[constant] = set() if value == "set()" else ast.literal_eval(value)
        except (SyntaxError, ValueError) as error:
            raise HarnessFailed(f"{name}: {constant} = {value} is read by TLC alone") from error
    return Scope(name=name, about=about, text=text, constants=constants)


def names() -> tuple[str, ...]:
    """Name the scopes that stand beside kernel.md, in the order of their names."""
    folder = files(_PACKAGE).joinpath("docs", "spec")
    found = (re.fullmatch(rf"{MODULE}-(.+)\.cfg", entry.name) for entry in folder.iterdir())
    return tuple(sorted(match[1] for match in found if match))


class Alphabet:
    """What is delivered in a scope: the choices of `Next`, each under the name of its action.

    Attempts, epochs and grants are named as they stand to what counts in a state, as there.
    """

    def __init__(self, scope: Scope) -> None:
        """Make what does not depend on a state."""
        self._scope = scope
        self._fixed = tuple(self._all_fixed())

    def at(self, state: State) -> Iterator[Letter]:
        """Yield the deliveries, in no order that matters."""
        yield from self._fixed
        yield from self._opens(state.epoch)
        turn = state.turn
        for number in self._scope.ids:
            member = None if turn is None else turn.members.get(str(number))
            yield from self._attempts(number, 0 if member is None else member.attempt)
        for grant in state.grants:
            yield "Revoke", revoke(grant.grant_id)

    def _all_fixed(self) -> Iterator[Letter]:
        scope = self._scope
        for turn in scope["Turns"]:
            for number, timeout in product(scope.ids, scope["Timeouts"]):
                yield "AddCall", of_turn("add_call", turn, call=scope.call(number, timeout))
            yield "SealTurn", of_turn("seal_turn", turn)
            for grace in scope["Graces"]:
                yield "Interrupt", of_turn("interrupt", turn, grace=float(grace))
            yield "Acknowledge", of_turn("acknowledge", turn)
            for name in map(str, scope.ids):
                for approval in self._approvals():
                    yield "Approve", approve(turn, name, **approval)
                yield "Deny", deny(turn, name, reason="no")
        for sender, name in product(self._senders, map(str, scope.ids)):
            yield "Reject", of_call("reject", sender, name, error="no")

    @property
    def _senders(self) -> tuple[str | None, ...]:
        return (*self._scope["Turns"], *self._scope["Nobody"])

    def _approvals(self) -> Iterator[Raw]:
        scope = self._scope
        reaching = product(scope["Scopes"] - {"once"}, scope["Matches"], scope["Lasts"])
        once = product(scope["Scopes"] & {"once"}, [None], [None])
        kinds: list[Any] = [*once, *reaching]
        echoes: list[Any] = [*scope["Echoes"]]
        for kind, echo, edit in product(kinds, echoes, scope["Edits"]):
            reach, match, lasts = kind
            fields = {
                "scope": reach,
                "match": match,
                "expires_in": None if lasts is None else float(lasts),
                "arguments_digest": None if echo is None else digest_of(echo),
                "arguments": None if edit is None else arguments(edit),
            }
            yield {name: value for name, value in fields.items() if value is not None}

    def _opens(self, epoch: int) -> Iterator[Letter]:
        scope = self._scope
        choices = product(
            scope["Turns"], scope["Sizes"], scope["Timeouts"], (True, False), (None, 0, 1, 2)
        )
        for turn, size, timeout, sealed, more in choices:
            roster = [scope.call(number, timeout) for number in range(1, size + 1)]
            named = {} if more is None else {"epoch": epoch + more}
            yield "OpenTurn", open_turn(turn, *roster, sealed=sealed, **named)

    def _attempts(self, number: int, attempt: int) -> Iterator[Letter]:
        scope, name = self._scope, str(number)
        near = (attempt - 1, attempt, attempt + 1)
        named: list[Raw] = [{}, *({"attempt": given} for given in near)]
        for turn in scope["Turns"]:
            for given in near:
                for lease in scope["Leases"]:
                    leased = {} if lease is None else {"lease": float(lease)}
                    yield "Claim", of_call("claim", turn, name, attempt=given, **leased)
                for resolution in scope["Resolutions"]:
                    outcome = _OUTCOMES[resolution]
                    yield (
                        f"Resolve{resolution.capitalize()}",
                        of_call(
                            "resolve", turn, name, attempt=given, **{"as": resolution}, **outcome
                        ),
                    )
            for lease in scope["Renewals"]:
                for attempts in named:
                    yield "Renew", of_call("renew", turn, name, lease=float(lease), **attempts)
        for sender, attempts in product(self._senders, named):
            yield "ReportResult", of_call("report", sender, name, result="ok", **attempts)
            yield "ReportError", of_call("report", sender, name, error="no", **attempts)
            if scope["Losses"]:
                yield "Lose", of_call("lose", sender, name, **attempts)


_OUTCOMES: Final[dict[str, Raw]] = {
    "retry": {},
    "result": {"result": "ok"},
    "error": {"error": "no"},
}


@cache
def digest_of(word: str) -> str:
    """Return the digest of the arguments that a word stands for (K-32)."""
    return arguments_digest(arguments(word))
