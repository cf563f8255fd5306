"""A history is linearizable if some order explains it; if none does, it says where it is stuck."""

from __future__ import annotations

from typing import Any

from .histories import History, Operation
from .linearizability import Model, linearized

Raw = dict[str, Any]

RUN: Raw = {"run_id": "r"}
CALL: Raw = {"invocation_id": "a", "tool_name": "ls", "arguments": {}, "requires_approval": False}
OPEN: Raw = {"type": "open_turn", "now": 0.0, "turn_id": "T1", "calls": [CALL]}


def claim(worker: str) -> Raw:
    named = {"turn_id": "T1", "invocation_id": "a"}
    return {"type": "claim", "now": 1.0, **named, "attempt": 1, "worker": worker}


MODEL = Model.of(RUN, [OPEN])


def history(*operations: tuple[Raw, Raw, int, int]) -> list[Operation]:
    return [
        Operation(delivery=delivery, receipt=receipt, invoked=invoked, returned=returned)
        for delivery, receipt, invoked, returned in operations
    ]


def in_order(*deliveries: Raw) -> list[Raw]:
    """The receipts of deliveries that come one after the other."""
    model, receipts = MODEL, list[Raw]()
    for delivery in deliveries:
        receipt, model = model.answer(delivery)
        receipts.append(receipt)
    return receipts


ONE, OTHER = claim("w1"), claim("w2")
WON, LOST = in_order(ONE, OTHER)


def test_what_came_one_after_the_other_is_explained_by_that_order() -> None:
    found = linearized(MODEL, history((ONE, WON, 0, 1), (OTHER, LOST, 2, 3)))

    assert found.stuck is None
    assert [operation.delivery for operation in found.order] == [ONE, OTHER]
    assert found.model.answer(OTHER)[0]["reason"] == "already_started"


def test_of_concurrent_operations_the_later_to_return_may_have_come_first() -> None:
    """The search takes the likelier order first, and comes back from it."""
    found = linearized(MODEL, history((ONE, WON, 0, 3), (OTHER, LOST, 1, 2)))

    assert found.stuck is None
    assert [operation.delivery for operation in found.order] == [ONE, OTHER]
    assert found.tried > 2


def test_what_returned_before_another_began_came_first() -> None:
    """The receipts would fit the other order; real time rules it out."""
    found = linearized(MODEL, history((OTHER, LOST, 0, 1), (ONE, WON, 2, 3)))

    assert found.stuck is not None
    assert (found.order, found.stuck.delivery) == ((), OTHER)
    assert found.expected is not None
    assert found.expected["accepted"]


def test_two_starts_of_one_approval_are_explained_by_no_order() -> None:
    """What a host without a lock may answer: both claims are accepted."""
    (second,) = in_order(OTHER)

    found = linearized(MODEL, history((ONE, WON, 0, 2), (OTHER, second, 1, 3)))

    assert found.stuck is not None
    assert len(found.order) == 1
    assert found.expected is not None
    assert found.expected["reason"] == "already_started"


def test_many_refusals_at_once_cost_no_search() -> None:
    """What changes nothing fits anywhere: sets that were tried are not tried again."""
    log: Raw = {"type": "log", "now": 1.0, "invocation_id": "a", "text": "…"}
    receipt, _ = MODEL.answer(log)
    (wrong,) = in_order(OTHER)
    at_once = [(log, receipt, number, 100 + number) for number in range(10)]

    found = linearized(MODEL, history((ONE, WON, 50, 98), (OTHER, wrong, 51, 99), *at_once))

    assert found.stuck is not None
    assert found.tried < 50_000  # of 12! orders


def test_pairs_that_overlap_are_counted() -> None:
    told = History()
    told.add(ONE, WON, told.stamp())
    first, second = told.stamp(), told.stamp()
    told.add(OTHER, LOST, first)
    told.add(OTHER, LOST, second)

    assert told.overlapping == 1
