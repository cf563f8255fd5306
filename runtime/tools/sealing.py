"""What tools keep secret: sealed with a key of the host, or as a digest alone.

It is sealed on its way to the kernel, and opened on its way to the tool and to the model. So
whatever the kernel knows, the journal keeps and others are shown – facts, snapshots, posts, notes,
streams, telemetry, pictures – holds envelopes, and nothing there has to know of it. The digest that
an approval echoes (K-32) is that of the envelope: it commits to what is in it and tells nothing of
it, so a process without the key can decide, though it cannot see about what.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, cast, runtime_checkable

import attrs

from ...models.calls import CallResult
from ...models.errors import InvalidValue, TurnlockError
from ...models.record import changed
from ...models.sealed import FIELD, TEXT, is_sealed
from ...models.strict_json import parse
from ...models.values import Absent, Json, canonical, freeze, same_json
from .errors import kind_of
from .policy import Keep, is_secretive
from .results import BAD_RESULT, Failed, Outcome, Succeeded, Unknown

if TYPE_CHECKING:
    from .policy import Policy


@runtime_checkable
class Cipher(Protocol):
    """Authenticated encryption with a key of the host's: AES-GCM, say.

    It is called on the loop, for each value that is kept and for each that is read: keep the key in
    memory. `aad` says where the value belongs; an envelope that was moved elsewhere does not open.
    """

    def seal(self, data: bytes, *, aad: bytes) -> bytes:
        """Return the data encrypted, never twice the same."""
        ...

    def open(self, sealed: bytes, *, aad: bytes) -> bytes:
        """Return the data. Raises whatever it likes for what it has not sealed for this `aad`."""
        ...


class SealBroken(TurnlockError):
    """Something that is sealed does not open here: another key, or not what was sealed."""


@attrs.frozen
class Place:
    """Where a value belongs."""

    run_id: str
    turn_id: str
    invocation_id: str

    def aad(self, what: str) -> bytes:
        """Return what binds an envelope to this place."""
        return canonical(["turnlock", self.run_id, self.turn_id, self.invocation_id, what]).encode()


class Seals:
    """What tools declare about keeping, done; with the cipher of the host."""

    def __init__(self, policies: Mapping[str, Policy], cipher: Cipher | None) -> None:
        """Take what the tools declare, by their names.

        Raises `InvalidValue` for one that keeps something sealed where there is no cipher.
        """
        self._policies = policies
        self._cipher = cipher
        for name, policy in policies.items():
            if cipher is None and Keep.SEALED in {policy.keep_arguments, policy.keep_result}:
                raise InvalidValue(
                    place=f"tool {name}",
                    cause="keeps something sealed, and there is no cipher here",
                    fix="give one: Toolbox.of(…, cipher=…), or `cipher = …` in the tools' file",
                )

    def seals_arguments(self, tool: str) -> bool:
        """Whether the arguments of this tool are kept sealed."""
        policy = self._policies.get(tool)
        return policy is not None and policy.keep_arguments is Keep.SEALED

    def is_secretive(self, tool: str) -> bool:
        """Whether anything of this tool is kept otherwise than clear: then its errors are, too."""
        policy = self._policies.get(tool)
        return policy is not None and is_secretive(policy)

    def arguments(
        self, tool: str, arguments: Mapping[str, Json], place: Place, *, known: object = None
    ) -> Mapping[str, Json]:
        """Return arguments as they are kept; `known` is the envelope that is kept already."""
        if not self.seals_arguments(tool):
            return arguments
        return cast("Mapping[str, Json]", self._envelope(arguments, place, "arguments", known))

    def result(self, tool: str, result: Json, place: Place, *, known: object = None) -> Json:
        """Return a result as it is kept."""
        policy = self._policies.get(tool)
        keep = Keep.CLEAR if policy is None else policy.keep_result
        if keep is Keep.DIGEST:
            return result if _is_digest(result) else _digest(result)
        return self._envelope(result, place, "result", known) if keep is Keep.SEALED else result

    def error(
        self, tool: str, error: str, place: Place, *, kind: str = "", known: object = None
    ) -> str:
        """Return an error as it is kept: of a secretive tool it might say too much.

        Where it cannot be sealed only its kind is left.
        """
        if not self.is_secretive(tool) or error.startswith(UNSAID):
            return error
        aad = place.aad("error")
        if error.startswith(TEXT) and self._opens(error.removeprefix(TEXT), aad) is not None:
            return error
        if isinstance(known, str) and self._opens(known.removeprefix(TEXT), aad) == (error,):
            return known
        try:
            return TEXT + self._sealed(error, aad)
        except SealBroken:
            return f"{UNSAID} ({kind})" if kind else UNSAID

    def outcome(self, tool: str, outcome: Outcome, place: Place) -> Outcome:
        """Return what an execution came to as it is kept."""
        if not self.is_secretive(tool):
            return outcome
        if isinstance(outcome, Unknown):
            why = self.error(tool, outcome.why, place, kind="unknown outcome")
            return Unknown(why, outcome.later)
        if isinstance(outcome, Failed):
            error = self.error(tool, outcome.error, place, kind=outcome.kind)
            return Failed(error, outcome.kind)
        try:
            return Succeeded(self.result(tool, outcome.result, place))
        except SealBroken as error:
            return Failed(f"the tool ran, but its result cannot be kept: {error}", BAD_RESULT)

    def results(
        self, told: Sequence[CallResult], run_id: str, turn_id: str
    ) -> tuple[CallResult, ...]:
        """Return the results of a turn as the model is told them. Raises `SealBroken`."""
        if self._cipher is None:
            return tuple(told)
        return tuple(self._told(one, Place(run_id, turn_id, one.invocation_id)) for one in told)

    def _told(self, one: CallResult, place: Place) -> CallResult:
        if not self.is_secretive(one.tool_name):
            return one
        if one.error is not None:
            return changed(one, error=self.clear_error(one.error, place))
        if isinstance(one.result, Absent):
            return one
        return changed(one, result=self.clear_result(one.result, place))

    def given_arguments(self, arguments: Mapping[str, Json], place: Place) -> Mapping[str, Json]:
        """Return arguments as somebody gave them, sealed or not.

        What only looks like an envelope is what was given: a model may write anything.
        """
        if not is_sealed(arguments):
            return arguments
        opened = self._opens(arguments[FIELD], place.aad("arguments"))
        return arguments if opened is None else cast("Mapping[str, Json]", opened[0])

    def clear_arguments(self, arguments: Mapping[str, Json], place: Place) -> Mapping[str, Json]:
        """Return arguments as the tool takes them. Raises `SealBroken`."""
        opened = self._clear(arguments, place, "arguments")
        return opened if isinstance(opened, Mapping) else arguments

    def clear_result(self, result: Json, place: Place) -> Json:
        """Return a result as the model is told it. Raises `SealBroken`."""
        return self._clear(result, place, "result")

    def clear_error(self, error: str, place: Place) -> str:
        """Return an error as the model is told it. Raises `SealBroken`."""
        if self._cipher is None or not error.startswith(TEXT):
            return error
        return str(self._opened(error.removeprefix(TEXT), place.aad("error")))

    def note(self, value: Json, *, run_id: str, name: str) -> Json:
        """Return a note sealed."""
        return self._envelope(value, Place(run_id, "", name), "note", None)

    def clear_note(self, value: Json, *, run_id: str, name: str) -> Json:
        """Return a note as it was said. Raises `SealBroken`."""
        return self._clear(value, Place(run_id, "", name), "note")

    def _envelope(self, value: Json, place: Place, what: str, known: object) -> Json:
        """Seal a value, unless it is sealed for this place; a value that is kept is not changed."""
        aad = place.aad(what)
        if is_sealed(value) and self._opens(value[FIELD], aad) is not None:
            return value
        if is_sealed(known):
            kept = self._opens(known[FIELD], aad)
            if kept is not None and same_json(kept[0], value):
                return known
        return cast("Json", freeze({FIELD: self._sealed(value, aad)}, place="sealed"))

    def _clear(self, value: Json, place: Place, what: str) -> Json:
        if self._cipher is None or not is_sealed(value):
            return value
        return self._opened(value[FIELD], place.aad(what))

    def _sealed(self, value: Json, aad: bytes) -> str:
        if self._cipher is None:
            raise SealBroken("there is no cipher here")
        try:
            sealed = self._cipher.seal(canonical(value).encode(), aad=aad)
            return base64.b64encode(sealed).decode()
        except Exception as error:
            message = f"a value could not be sealed ({kind_of(error)}); look at the cipher"
            raise SealBroken(message) from error

    def _opened(self, sealed: str, aad: bytes) -> Json:
        if self._cipher is None:
            raise SealBroken("there is no cipher here")
        try:
            data = self._cipher.open(base64.b64decode(sealed, validate=True), aad=aad)
            return cast("Json", freeze(parse(data.decode()), place="sealed"))
        except Exception as error:
            message = (
                f"what is sealed at {aad.decode()!a} does not open here ({kind_of(error)}); "
                "start with the cipher and the key that sealed it"
            )
            raise SealBroken(message) from error

    def _opens(self, sealed: str, aad: bytes) -> tuple[Json] | None:
        """Return what is in an envelope, if this is one of ours."""
        try:
            return (self._opened(sealed, aad),)
        except SealBroken:
            return None


UNSAID: Final = "it failed; what it said is not kept"
"""The error of a tool that keeps results as a digest."""


def _digest(result: Json) -> Json:
    data = canonical(result).encode()
    digest: Any = {
        "redacted": True,
        "sha256": hashlib.sha256(data).hexdigest(),
        "bytes": len(data),
    }
    return cast("Json", freeze(digest, place="digest"))


def _is_digest(value: Json) -> bool:
    return (
        isinstance(value, Mapping)
        and set(value) == {"redacted", "sha256", "bytes"}
        and value["redacted"] is True
    )
