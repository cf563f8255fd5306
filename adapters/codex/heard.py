"""What the normaliser makes of what it is told: to be kept, judged, answered, in this order (S-2).

It does nothing itself. Who drives it – a session with a process, a player of transcripts – keeps
the observations, has the deliveries judged, and only then passes on, answers and reports.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import attrs

from ...agent.transients import Transient
from ...models.deliveries import Claim, Delivery
from ..contract import Observation
from .messages import RequestId


class Anomaly(StrEnum):
    """What is kept as it comes, is no error of ours, and is told in diagnostics (S-38)."""

    ITEM_WITHOUT_RAW_CALL = "item_without_raw_call"
    SEEN_ONLY_IN_THE_RAW_STREAM = "seen_only_in_the_raw_stream"
    ONE_ID_TWO_CALLS_AT_ONCE = "one_id_two_calls_at_once"
    CALL_ID_USED_AGAIN_IN_TURN = "call_id_used_again_in_turn"
    COMPLETED_TWICE = "completed_twice"
    OUTCOME_AFTER_SETTLEMENT = "outcome_after_settlement"
    RAN_THOUGH_DENIED = "ran_though_denied"
    DECIDED_ELSEWHERE = "decided_elsewhere"
    ANSWER_UNDELIVERABLE = "answer_undeliverable"
    PAYLOAD_INVALID = "codex_notification_payload_invalid"
    """A known message of which no sense can be made (S-13)."""


@attrs.frozen(kw_only=True)
class Odd:
    """One anomaly, and what it is about, in words."""

    anomaly: Anomaly
    detail: str


@attrs.frozen(kw_only=True)
class Reply:
    """What a request of the runtime is answered: once, and never before what it follows from.

    With an `error` it is refused as one that nobody here knows.
    """

    request: RequestId
    result: Mapping[str, Any] = attrs.field(factory=dict[str, Any])
    error: Mapping[str, Any] | None = None


@attrs.frozen(kw_only=True)
class Permit:
    """The answer that lets something start: written once its claim was kept and accepted (S-21)."""

    claim: Claim
    reply: Reply


@attrs.frozen(kw_only=True)
class Heard:
    """What something that was said, or learnt, comes to; each field after the one before.

    `observations` are kept with the `deliveries`, which are judged in order; then the `permits`:
    each claim is judged, and where it was accepted its reply is written; then the `replies`.
    """

    observations: tuple[Observation, ...] = ()
    deliveries: tuple[Delivery, ...] = ()
    permits: tuple[Permit, ...] = ()
    replies: tuple[Reply, ...] = ()
    transients: tuple[Transient, ...] = ()
    odd: tuple[Odd, ...] = ()


NOTHING = Heard()
