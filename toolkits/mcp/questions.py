"""What a server asks a person while one of its tools runs, and what may be answered (W-67)."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias, cast

import attrs

from ...models.ids import escape
from ...models.safe_text import harmless, harmless_lines
from ...models.values import Json, freeze
from ...runtime.tools.calling import ToolContext
from ...runtime.tools.errors import BadArguments, bounded
from ...runtime.tools.schemas import Schema

QUESTIONS: Final = 20
"""Questions of one call; any further is declined."""
MESSAGE: Final = 4_000
"""Characters of a question; the rest is cut off, and that is seen."""
FORM_BYTES: Final = 64_000
"""Bytes of the form's schema; a larger form is declined."""
FIELDS: Final = 50
"""Fields of a form; one with more is declined."""
KINDS: Final = ("string", "number", "integer", "boolean", "array")
"""What a field of a form may be, in JSON Schema."""

# Whoever asks for one of these is not answered: MCP forbids forms that ask for them. The words are
# looked for in a field's name, title and description, whichever way they are put together:
# "apiKey", "API key" and "api_key" are the same. A field that takes true or false, or one of some
# values that it names, can hold no secret.
SECRET_FORMATS: Final = frozenset({"password", "secret", "token", "key", "credential"})
SECRET_WORDS: Final = frozenset({
    "password", "passwords", "passwd", "pwd", "passphrase", "passcode", "pin", "otp", "totp",
    "secret", "secrets", "token", "tokens", "jwt", "key", "keys", "apikey", "privatekey",
    "credential", "credentials", "mnemonic", "cvv", "cvc", "ssn", "iban",
})  # fmt: skip
SECRET_PHRASES: Final = frozenset({
    "pass word", "pass phrase", "pass code", "card number", "credit card", "security code",
    "seed phrase", "recovery phrase", "recovery code", "one time code", "social security",
})  # fmt: skip

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


@attrs.frozen(kw_only=True)
class Field:
    """One field of a form, its texts made harmless; `name` is as the answer must have it."""

    name: str
    title: str
    description: str
    kind: str
    """One of `KINDS`; an ``array`` holds texts."""
    required: bool
    choices: tuple[str, ...]
    """The only values that it takes; none: any of its kind."""
    default: Json


@attrs.frozen
class Accept:
    """The form, filled in: values by the names of its fields."""

    content: Mapping[str, Any]


@attrs.frozen
class Decline:
    """A person does not want to answer."""


@attrs.frozen
class Cancel:
    """A person put the question away, without a decision."""


Reply: TypeAlias = Accept | Decline | Cancel


@attrs.frozen(kw_only=True)
class Question:
    """What a server asks, on behalf of which call."""

    question_id: str
    """``question/RUN/TURN/INVOCATION/ATTEMPT/K``, each part escaped as in K-7."""
    server: str
    run_id: str
    turn_id: str
    invocation_id: str
    attempt: int
    tool_name: str
    message: str
    """Harmless to show, and bounded."""
    form: Mapping[str, Json]
    """The JSON Schema of the answer: an object of plain values."""
    mistake: str | None = None
    """Why what was answered before does not fit, where it is asked again."""
    secretive: bool = False
    """Whether its tool keeps something secret: neither this nor its answer may be kept."""

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields of the form, in its order."""
        return fields_of(self.form)

    def check(self, content: Mapping[str, Any]) -> None:
        """Raise `BadArguments` where an answer does not fit the form."""
        check_answer(self.form, content)


Elicit: TypeAlias = Callable[[Question], Awaitable[Reply]]
"""Asks a person. It is cancelled where the call ends first, or its server has died."""


def fields_of(form: Mapping[str, Any]) -> tuple[Field, ...]:
    """Return the fields of a form, in its order."""
    required: Any = form.get("required") or ()
    return tuple(
        _field(name, part, required=name in required) for name, part in _properties(form).items()
    )


def check_answer(form: Mapping[str, Any], content: Mapping[str, Any]) -> None:
    """Raise `BadArguments` where an answer does not fit a form."""
    fields = _properties(form)
    if strange := sorted(content.keys() - fields.keys()):
        raise BadArguments(
            place=bounded(strange[0], limit=100),
            cause="is no field of the form",
            fix=f"the fields are {', '.join(fields) or 'none'}",
        )
    Schema(form).check(cast("Mapping[str, Json]", freeze(dict(content), place="answer")))


def why_not(form: Mapping[str, Any]) -> str | None:
    """Return why a form is declined without asking anybody, or None."""
    try:
        if len(json.dumps(form)) > FORM_BYTES:
            return f"its form has more than {FORM_BYTES:,} bytes"
        Schema(cast("Mapping[str, Json]", freeze(dict(form), place="form")))
    except (ValueError, RecursionError) as error:
        return f"its form is no JSON Schema of an object ({error})"
    fields = _properties(form)
    if len(fields) > FIELDS:
        return f"its form has more than {FIELDS} fields"
    for name, part in fields.items():
        if part.get("type") not in KINDS:
            return f"its field {harmless(name, limit=100)} is of no kind that a form has"
        if (why := _why_secret(name, part)) is not None:
            return why
    return None


def question_of(  # noqa: PLR0913 - what a question is made of
    context: ToolContext,
    number: int,
    *,
    server: str,
    message: str,
    form: Mapping[str, Any],
    secretive: bool = False,
) -> Question:
    """Return the question with this number, from 1, of a call."""
    place = (context.run_id, context.turn_id, context.invocation_id, f"{context.attempt}")
    return Question(
        question_id="/".join(("question", *map(escape, place), f"{number}")),
        server=server,
        run_id=context.run_id,
        turn_id=context.turn_id,
        invocation_id=context.invocation_id,
        attempt=context.attempt,
        tool_name=context.tool_name,
        message=harmless_lines(bounded(message, limit=MESSAGE)),
        form=cast("Mapping[str, Json]", freeze(dict(form), place="form")),
        secretive=secretive,
    )


def _properties(form: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """Return the fields; one that may be anything (true, in JSON Schema) has an empty schema."""
    fields: Any = form.get("properties") or {}
    return {
        name: cast("Mapping[str, Any]", part) if isinstance(part, Mapping) else {}
        for name, part in fields.items()
    }


def _why_secret(name: str, part: Mapping[str, Any]) -> str | None:
    if part.get("type") == "boolean" or _choices(part):
        return None
    asked = f"its field {harmless(name, limit=100)} asks for a secret"
    if f"{part.get('format')}".lower() in SECRET_FORMATS or part.get("writeOnly") is True:
        return asked
    for text in (name, part.get("title"), part.get("description")):
        words = [word.lower() for word in _WORD.findall(f"{text or ''}")]
        phrases = f" {' '.join(words)} "
        if SECRET_WORDS & set(words) or any(f" {it} " in phrases for it in SECRET_PHRASES):
            return asked
    return None


def _choices(part: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the only values that a field takes, however MCP lets a form say them."""
    items = part.get("items")
    named = cast("Mapping[str, Any]", items) if isinstance(items, Mapping) else part
    listed = named.get("enum") or [
        cast("Mapping[str, Any]", it).get("const")
        for it in named.get("oneOf") or named.get("anyOf") or ()
        if isinstance(it, Mapping)
    ]
    return tuple(it for it in listed if isinstance(it, str))


def _field(name: str, part: Mapping[str, Any], *, required: bool) -> Field:
    return Field(
        name=name,
        title=harmless(f"{part.get('title') or name}", limit=100),
        description=harmless(f"{part.get('description') or ''}", limit=1_000),
        kind=part["type"],
        required=required,
        choices=_choices(part),
        default=part.get("default"),
    )
