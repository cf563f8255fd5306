"""What a person was shown of a call, and the command that decides about exactly that (K-32).

An invocation id means something only within its turn (K-20), and providers use their ids again: who
names a call by its id alone may decide about another one. So a decision names the turn, and the
digest of the arguments or the attempt, as they were shown, and is about that call or about none.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any, Final, TypeVar

import attrs
import click

from ..models.calls import Call
from ..models.facts import CallAdded, Fact, TurnOpened
from ..models.safe_text import harmless, harmless_lines
from ..models.sealed import HIDDEN, is_sealed
from ..models.values import Json, arguments_digest
from ..views.call_view import CallView
from ..views.turn_view import TurnView
from .places import Place

F = TypeVar("F", bound=Callable[..., Any])

DIGEST: Final = 32
"""Hex characters of a digest that are shown: 128 bits. Who chooses both of two arguments needs 2^64
trials until these are alike; with 16 characters it would be 2^32, which is a minute's work."""
LEAST_DIGEST: Final = 16
"""Hex characters of a digest that a person must give at least: of those shown, as many as one may
have the patience to type. They are held against one call, of the turn that is named as well."""
_WHOLE_DIGEST: Final = 64
_COMMAND: Final = 2_000
"""Characters of a command line that is shown: nobody pastes a longer one."""
NAME: Final = 60
"""Characters of an id or a tool where it only helps to tell calls apart."""
_LISTED: Final = 20


SEALED: Final = f"  {HIDDEN}, or made to look so: only who has the key can tell (--tools FILE)"
"""Beside arguments in an envelope: a provider may send one, so whoever decides is shown it raw."""


class NotShown(click.ClickException):
    """What was shown does not wait any more: nothing is decided, and the status is 1."""


class LikeAnother(click.UsageError):
    """The name, which is no id, may mean another call of the turn, too."""


def digest_of(call: CallView) -> str:
    """Return the digest of a call's arguments: that which a decision echoes (K-32), or the same."""
    return call.arguments_digest or arguments_digest(call.arguments or {})


def short_digest(call: CallView) -> str:
    """Return the digest of a call's arguments as far as it is shown."""
    return digest_of(call)[:DIGEST]


@attrs.frozen(kw_only=True)
class Named:
    """Which call is meant, as far as it was said or shown. None: not said."""

    call: str | None = None
    """Its id, else its tool."""
    turn_id: str | None = None
    epoch: int | None = None
    digest: str | None = None
    """The digest of its arguments, or how that begins."""
    attempt: int | None = None
    tool_name: str | None = None
    by_id: bool = False
    """Whether `call` is its id, and no tool."""

    @classmethod
    def of(cls, call: CallView) -> Named:
        """Name this very call: what is used again of it, id, turn id or arguments, is another."""
        return cls(
            call=call.invocation_id,
            turn_id=call.turn_id,
            epoch=call.epoch,
            digest=digest_of(call),
            attempt=call.attempt,
            tool_name=call.tool_name,
        )

    @property
    def bound(self) -> bool:
        """Whether it says what was shown: the turn, and the digest or the attempt."""
        return self.turn_id is not None and (self.digest, self.attempt) != (None, None)

    def fits(self, call: CallView) -> bool:
        """Whether this may be the call, whatever its id."""
        return (
            self.turn_id in {None, call.turn_id}
            and self.epoch in {None, call.epoch}
            and self.attempt in {None, call.attempt}
            and self.tool_name in {None, call.tool_name}
            and (self.digest is None or digest_of(call).startswith(self.digest))
        )

    def found(self, calls: Iterable[CallView]) -> list[CallView]:
        """Return those that it may be."""
        fitting = [it for it in calls if self.fits(it)]
        by_id = [it for it in fitting if self.call in {None, it.invocation_id}]
        if by_id or self.by_id:
            return by_id
        return [it for it in fitting if it.tool_name == self.call]

    def __str__(self) -> str:
        """Say what was said."""
        said = (
            ("call", self.call),
            ("turn", self.turn_id),
            ("epoch", self.epoch),
            ("attempt", self.attempt or None),
            ("digest", self.digest and self.digest[:DIGEST]),
        )
        return ", ".join(f"{what} {_name(it)}" for what, it in said if it is not None)


@attrs.frozen(kw_only=True)
class Waiting:
    """What a person can decide about, in a run as it is."""

    what: str
    """What the calls do: wait for approval, or are in doubt."""
    calls: tuple[CallView, ...]
    others: tuple[str, ...]
    """The ids of the calls of the open turn that are none of these."""

    @classmethod
    def for_approval(cls, turn: TurnView | None) -> Waiting:
        """Return the calls that ask for approval."""
        return cls._of(turn, "waits for approval", lambda call: call.gated)

    @classmethod
    def in_doubt(cls, turn: TurnView | None) -> Waiting:
        """Return the calls of which nobody knows whether they happened."""
        return cls._of(turn, "is in doubt", lambda call: call.in_doubt)

    @classmethod
    def _of(cls, turn: TurnView | None, what: str, wanted: Callable[[CallView], bool]) -> Waiting:
        calls = () if turn is None else tuple(filter(wanted, turn.calls))
        here = {it.invocation_id for it in calls}
        asked = () if turn is None else (it.invocation_id for it in turn.calls)
        others = tuple(it for it in asked if it not in here)
        return cls(what=what, calls=calls, others=others)

    def call(
        self, named: Named, *, bound: bool, asked: Mapping[str, Call] | None = None
    ) -> CallView:
        """Return the one call that is named.

        A name that is `bound` says what was shown: where that does not wait (any more), it is
        `NotShown`. Otherwise what names no call, or several, is wrong usage; so is a bound name
        without an id that may mean another call of the turn, which was decided meanwhile. `asked`
        are the calls of the turn by their ids, as far as they are known.
        """
        found = named.found(self.calls)
        if len(found) == 1 and not (bound and self._others_fit(named, found[0], asked or {})):
            if bound and found[0].in_doubt and named.attempt is None and found[0].attempt > 1:
                raise click.UsageError(
                    f"it was started again; say which is meant:\n{_lines(found)}"
                )
            return found[0]
        if bound and not found:
            raise NotShown(
                f"nothing was decided: no call that {self.what} is the one that was shown ({named})"
                f"; {self._listed(self.calls)}"
            )
        error = LikeAnother if len(found) == 1 else click.UsageError
        raise error(self._unclear(found, named))

    def _others_fit(self, named: Named, found: CallView, asked: Mapping[str, Call]) -> bool:
        """Whether the name, which is no id, may mean a call that does not wait (any more)."""
        if named.call == found.invocation_id:
            return False
        others = [asked.get(it) for it in self.others]
        return any(
            it is None
            or (
                named.call in {None, it.tool_name}
                and arguments_digest(it.arguments).startswith(named.digest or "")
            )
            for it in others
        )

    def _unclear(self, found: Sequence[CallView], named: Named) -> str:
        if not self.calls:
            return f"no call of this run {self.what}; turnlock show tells what it does"
        if len(found) == 1:
            return f"its turn had another call like it; say which, by its id:\n{_lines(found)}"
        if named.call is None or found:
            verb = "are in doubt" if self.what == "is in doubt" else "wait"
            count = len(found or self.calls)
            return f"{count} calls {verb}; say which, by its id:\n{_lines(found or self.calls)}"
        wanted = repr(harmless(named.call, limit=NAME))
        return f"no call {wanted} {self.what}; these do:\n{_lines(self.calls)}"

    def _listed(self, calls: Sequence[CallView]) -> str:
        return f"now there is:\n{_lines(calls)}" if calls else "there is none now"


def calls_asked(facts: Iterable[Fact]) -> dict[str, Call]:
    """Return the calls of a run's latest turn, by their ids, from all its facts."""
    asked: dict[str, Call] = {}
    for fact in facts:
        if isinstance(fact, TurnOpened):
            asked = {it.invocation_id: it for it in fact.calls}
        elif isinstance(fact, CallAdded):
            asked[fact.call.invocation_id] = fact.call
    return asked


def _lines(calls: Sequence[CallView]) -> str:
    lines = [f"  {_name(it.invocation_id)}  {_name(it.tool_name)}{_where(it)}" for it in calls]
    if len(lines) > _LISTED:
        lines[_LISTED:] = [f"  … and {len(lines) - _LISTED} more"]
    return "\n".join(lines)


def _where(call: CallView) -> str:
    return f"  turn {_name(call.turn_id)}, {bound_by(call)}"


def bound_by(call: CallView) -> str:
    """Say what a decision about a call names, beside its turn."""
    attempt = f"attempt {call.attempt}, " if call.attempt else ""
    return f"epoch {call.epoch}, {attempt}digest {short_digest(call)}"


def _name(text: object) -> str:
    return harmless(str(text), limit=NAME)


def whole(call: CallView) -> Iterator[str]:
    """Yield the lines that tell all of a call to whoever decides about it: nothing is cut."""
    asks = "wants to run" if call.gated else "is in doubt: it may have happened, or run still"
    yield f"{harmless(call.tool_name)} {harmless(call.invocation_id)} {asks}"
    yield f"  turn {harmless(call.turn_id)}, {bound_by(call)}"
    yield whole_arguments(call.arguments or {})
    if is_sealed(call.arguments):
        yield SEALED


def about(call: CallView) -> str:
    """Name a call at the end of a question, where its arguments cannot have pushed it away."""
    names = call.tool_name, call.invocation_id, call.turn_id
    tool, invocation, turn = (harmless(name, limit=NAME) for name in names)
    return f"{tool} ({invocation}, turn {turn})"


def whole_arguments(arguments: Mapping[str, Json]) -> str:
    """Return arguments as lines of JSON, harmless, and nothing of them is cut."""
    return harmless_lines(json.dumps(arguments, indent=2, ensure_ascii=False))


def naming_options(*, attempt: bool = False) -> Callable[[Callable[..., None]], Any]:
    """Return a decorator that adds the options which say what was shown, beside the call.

    The command is given the `Named` that they make with its argument `call`.
    """
    fields = ["call", "turn_id", "epoch", "digest", *(["attempt"] if attempt else [])]

    def decorate(command: Callable[..., None]) -> Any:  # noqa: ANN401 - for click's decorators
        @wraps(command)
        def with_name(**given: Any) -> None:  # noqa: ANN401 - what click was told of
            command(named=Named(**{name: given.pop(name) for name in fields}), **given)

        for option in (
            click.option(
                "--epoch",
                type=int,
                metavar="N",
                help="The number of its turn, as shown: a host may use a turn's id again.",
            ),
            digest_option,
            click.option("--turn", "turn_id", metavar="ID", help="Its turn, as shown."),
        ):
            with_name = option(with_name)
        if attempt:
            which = click.option("--attempt", type=int, metavar="N", help="Its attempt, as shown.")
            with_name = which(with_name)
        return with_name

    return decorate


def _digest(_: click.Context, __: click.Parameter, text: str | None) -> str | None:
    if text is None:
        return None
    if not LEAST_DIGEST <= len(text) <= _WHOLE_DIGEST or not re.fullmatch("[0-9a-fA-F]+", text):
        raise click.BadParameter(
            f"give the {LEAST_DIGEST} to {_WHOLE_DIGEST} hex characters that turnlock show prints"
        )
    return text.lower()


def digest_option(function: F) -> F:
    """Add the option that says what a call's arguments were, as they were shown."""
    return click.option(
        "--digest", metavar="HEX", callback=_digest, help="Of its arguments, as shown."
    )(function)


def demand(call: CallView, *, place: Place) -> None:
    """Raise that it must be said what was shown: without a terminal nobody is shown anything."""
    bound = "--attempt" if call.in_doubt else "--digest"
    shown = command_line("show", call.run_id, place=place) or "turnlock show"
    raise click.UsageError(
        "standard input is no terminal, so nobody can be shown what is decided: give --turn and"
        f" {bound} of what you were shown; {shown} prints the whole command"
    )


def command_line(verb: str, *named: str, place: Place, **options: str | int) -> str | None:
    """Return a command ready to paste into a shell: it says what it says and is nothing else.

    None where no command line can say it: a NUL, or more text than anybody pastes.
    """
    option, where = place.option
    texts = [*named, where, *map(str, options.values())]
    if any("\0" in text for text in texts) or sum(map(len, texts)) > _COMMAND:
        return None
    words = [f"--{name} {_word(str(value))}" for name, value in options.items()]
    words.append(f"--{option} {_word(where)}")
    places = list(map(_word, named))
    if any(text.startswith("-") for text in named):
        words += ["--", *places]  # an id is no option
    else:
        words[:0] = places
    return " ".join(["turnlock", verb, *words])


def _word(text: str) -> str:
    """Return a text as one word of a shell, with what cannot be printed as octal escapes."""
    if harmless(text) == text:
        return shlex.quote(text)
    return "$'" + "".join(map(_escaped, text)) + "'"


def _escaped(character: str) -> str:
    if harmless(character) == character and character not in "\\'!":
        return character
    return "".join(f"\\{byte:03o}" for byte in character.encode())


def deciding_line(verb: str, call: CallView, *, place: Place) -> str | None:
    """Return the command that decides about this call and no other; None where none can say it."""
    bound: dict[str, str | int] = {"turn": call.turn_id, "epoch": call.epoch}
    if call.in_doubt:
        bound["attempt"] = call.attempt
    else:
        bound["digest"] = short_digest(call)
    return command_line(verb, call.run_id, call.invocation_id, place=place, **bound)
