"""What a tool declares about itself: approval, time, and what to do when nobody knows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from typing import Any, Final, Literal, TypeAlias, TypedDict, TypeVar, cast

import attrs

from ...models.errors import InvalidValue, shown
from ...models.record import flag, number, optional
from ...models.values import Json
from .calling import ToolContext, is_async
from .errors import bounded, said
from .results import ProbeAnswer

DEFAULT_LEASE: Final = 30.0
"""Seconds after which a tool whose host has fallen silent is in doubt (K-34)."""

Predicate: TypeAlias = Callable[[Mapping[str, Any]], bool]
Probe: TypeAlias = Callable[[ToolContext], ProbeAnswer | Awaitable[ProbeAnswer]]


class InDoubt(StrEnum):
    """What becomes of an execution whose outcome nobody knows (K-35)."""

    ASK = "ask"
    """A person decides."""
    RETRY_IF_SAFE = "retry if safe"
    """It is run again if the tool is safe to repeat; otherwise a person decides."""
    PROBE = "probe"
    """The tool's probe finds out; a person decides where it cannot."""
    FAIL = "fail"
    """It has failed, and the model is told that nobody knows whether it happened."""


class Keep(StrEnum):
    """In which form something is kept, and shown to everybody but the tool and the model."""

    CLEAR = "clear"
    """As it is."""
    SEALED = "sealed"
    """Encrypted with a key of the host's; tool and model get it as it is (see `Cipher`)."""
    DIGEST = "digest"
    """Not at all: its SHA-256 and length stand for it, for the model, too."""


InDoubtWord: TypeAlias = InDoubt | Literal["ask", "retry if safe", "retry_if_safe", "probe", "fail"]
KeepWord: TypeAlias = Keep | Literal["clear", "sealed", "digest"]


_Word = TypeVar("_Word", bound=StrEnum)


def _in_words(kind: type[_Word], value: object, place: str) -> _Word:
    """Return what a word stands for; _ may stand for a blank in it."""
    for member in kind:
        if isinstance(value, str) and value.replace("_", " ") == member:
            return member
    words = ", ".join(f'"{it}"' for it in kind)
    raise InvalidValue(
        place=place,
        cause=f"{shown(value)} is none of its words",
        fix=f"give {words}, or a member of {kind.__name__}",
    )


def _in_doubt(value: InDoubtWord | None) -> InDoubt | None:
    return None if value is None else _in_words(InDoubt, value, "in_doubt")


def _keep_arguments(value: KeepWord) -> Keep:
    return _in_words(Keep, value, "keep_arguments")


def _keep_result(value: KeepWord) -> Keep:
    return _in_words(Keep, value, "keep_result")


@attrs.frozen
class ApprovalNeed:
    """Whether a call needs approval; `why` is said where the predicate could not decide."""

    needed: bool
    why: str | None = None


def positive(_: object, field: attrs.Attribute[Any], value: object) -> None:
    """Accept a finite number of seconds above zero."""
    if number(value, place=field.name) <= 0:
        raise InvalidValue(place=field.name, cause=f"{value} is not above 0", fix="give seconds")


def _approval(_: object, field: attrs.Attribute[Any], value: object) -> None:
    if isinstance(value, bool):
        return
    if not callable(value) or is_async(value):
        raise InvalidValue(
            place=field.name,
            cause=f"{shown(value)} is no answer and no plain function",
            fix="give True, False or a sync function of the arguments that returns one of them",
        )


def _probe(_: object, field: attrs.Attribute[Any], value: object) -> None:
    if not callable(value):
        raise InvalidValue(
            place=field.name,
            cause=f"{shown(value)} cannot be called",
            fix="give a function of the ToolContext that returns Happened, Failed, NeverHappened "
            "or StillUnknown",
        )


def _at_least_one(_: object, field: attrs.Attribute[Any], value: object) -> None:
    if type(value) is not int or value < 1:
        raise InvalidValue(
            place=field.name, cause=f"{shown(value)} is no number of calls", fix="give 1 or more"
        )


@attrs.frozen(kw_only=True)
class Policy:
    """How a tool wants to be treated. Contradictions raise `InvalidValue` where it is declared.

    Times are in seconds. None: no bound of its own.
    """

    approval: bool | Predicate = attrs.field(default=False, validator=_approval)
    """Whether a person must agree, or a quick function of the arguments that says so."""
    approval_timeout: float | None = attrs.field(default=None, validator=optional(positive))
    """How long a call waits for a decision before it is denied."""
    timeout: float | None = attrs.field(default=None, validator=optional(positive))
    """How long an execution may take, its result processors and the wait for a thread included."""
    lease: float = attrs.field(default=DEFAULT_LEASE, validator=positive)
    """How long the host may be silent before the execution is in doubt; renewed while it runs."""
    safe_to_repeat: bool = attrs.field(default=False, validator=flag)
    """Whether running it twice, with one idempotency key, is as good as running it once."""
    in_doubt: InDoubt | None = attrs.field(default=None, converter=_in_doubt)
    """What becomes of it when nobody knows whether it happened; see `doubt_rule` for None."""
    probe: Probe | None = attrs.field(default=None, validator=optional(_probe))
    """Finds out whether an execution happened, by its idempotency key for instance."""
    sequential: bool = attrs.field(default=False, validator=flag)
    """Whether it must not run beside another sequential tool of the same run: those start one by
    one in the order of the calls. Tools that are not sequential run beside it all the same."""
    concurrency: int | None = attrs.field(default=None, validator=optional(_at_least_one))
    """How many calls of this tool may run at once, over all runs of one runtime."""

    keep_arguments: Keep = attrs.field(default=Keep.CLEAR, converter=_keep_arguments)
    """In which form the arguments are kept; as a digest they could not be run."""
    keep_result: Keep = attrs.field(default=Keep.CLEAR, converter=_keep_result)
    """In which form the result is kept. Where anything is not kept clear, errors are not either."""

    def __attrs_post_init__(self) -> None:
        """Refuse what cannot be meant."""
        if self.keep_arguments is Keep.DIGEST:
            raise InvalidValue(
                place="keep_arguments",
                cause="is digest, and after a crash nobody could run the call",
                fix="give Keep.SEALED",
            )
        if self.in_doubt is InDoubt.PROBE and self.probe is None:
            raise InvalidValue(
                place="in_doubt",
                cause="is probe, and there is no probe",
                fix="give probe=, a function that finds out, or another in_doubt",
            )
        if self.probe is not None and self.doubt_rule is not InDoubt.PROBE:
            raise InvalidValue(
                place="probe",
                cause=f"is never called, because in_doubt is {self.in_doubt}",
                fix="leave in_doubt out, or the probe",
            )
        if self.approval_timeout is not None and self.approval is False:
            raise InvalidValue(
                place="approval_timeout",
                cause="means nothing, because approval is never asked for",
                fix="give approval=True or a predicate, or leave the timeout out",
            )

    @property
    def doubt_rule(self) -> InDoubt:
        """What is done about an execution whose outcome nobody knows: `in_doubt`, if it is given.

        Else what the tool has: its probe is asked; without one it is run again if it is safe to
        repeat; without either a person is asked. What is not safe is never run again.
        """
        if self.in_doubt is None and self.probe is not None:
            return InDoubt.PROBE
        if self.in_doubt in {None, InDoubt.RETRY_IF_SAFE}:
            return InDoubt.RETRY_IF_SAFE if self.safe_to_repeat else InDoubt.ASK
        return cast("InDoubt", self.in_doubt)

    def needs_approval(self, arguments: Mapping[str, Json]) -> ApprovalNeed:
        """Say whether these arguments need approval; a predicate that fails to say means yes.

        Code of the predicate runs here, and of what it returns: whatever it does, this returns.
        """
        if isinstance(self.approval, bool):
            return ApprovalNeed(needed=self.approval)
        try:
            answer = cast("object", self.approval(arguments))
            if type(answer) is bool:
                return ApprovalNeed(needed=answer)
            why = bounded(f"the approval predicate returned {shown(answer)}, not True or False")
        except BaseException as error:  # noqa: BLE001 - whatever it is, a person decides
            why = f"the approval predicate failed: {said(error)}"
        return ApprovalNeed(needed=True, why=why)


def is_secretive(policy: Policy) -> bool:
    """Whether anything of a tool is kept otherwise than clear."""
    return not policy.keep_arguments is policy.keep_result is Keep.CLEAR


class PolicyFields(TypedDict, total=False):
    """The fields of a policy, as keyword arguments of `tool`."""

    approval: bool | Predicate
    approval_timeout: float | None
    timeout: float | None
    lease: float
    safe_to_repeat: bool
    in_doubt: InDoubtWord | None
    probe: Probe | None
    sequential: bool
    concurrency: int | None
    keep_arguments: KeepWord
    keep_result: KeepWord
