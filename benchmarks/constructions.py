"""What a receive emits, built again: by public constructors, and by the kernel's own makers.

Each is compiled into a function with literal keywords, because that is how code builds records:
a call with ``**fields`` would cost more.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from turns import RUN, Timed

from turnlock import Accepted, Call, Continue, Kernel, OpenTurn, Verdict
from turnlock.engine import unchecked
from turnlock.engine.kernel import state_of
from turnlock.models.record import Record, fields_of

Build: TypeAlias = Callable[[], None]
Construction: TypeAlias = tuple[Any, list[str], list[str]]
"""What is called, the names that it is given by position, the fields that it is given by name."""


def verdicts_of(deliveries: Sequence[Timed]) -> list[Verdict]:
    """Return what a fresh kernel says of them; all must be accepted."""
    verdicts = Kernel(RUN).receive_many(deliveries)
    if refused := [verdict for verdict in verdicts if not isinstance(verdict, Accepted)]:
        raise AssertionError(refused)
    return verdicts


def emitted(verdicts: Sequence[Verdict]) -> list[Record]:
    """Return all facts, effects, results of continuations and verdicts, in order of building."""
    return [record for verdict in verdicts for record in _parts(verdict)]


def _parts(verdict: Verdict) -> Iterator[Record]:
    yield from verdict.facts
    for effect in verdict.effects:
        if isinstance(effect, Continue):
            yield from effect.results
        yield effect
    yield verdict


def by_constructors(records: Sequence[Record]) -> Build:
    """Return a function that builds equal records by their public constructors."""
    calls: list[Construction] = [
        (type(record), [], [field.name for field in fields_of(type(record)) if field.init])
        for record in records
    ]
    return _compiled(records, calls, {})


def by_makers(records: Sequence[Record], deliveries: Sequence[Timed]) -> Build:
    """Return a function that builds equal records by the makers that the kernel uses for them.

    The makers of facts read run, turn and invocation off objects: the delivery that opens the turn
    and its calls have all that they read.
    """
    opening = next(item for item, _ in deliveries if isinstance(item, OpenTurn))
    calls = {call.invocation_id: call for call in opening.calls}
    state = state_of(Kernel(RUN))
    plan: list[Construction] = []
    context: dict[str, object] = {"state": state, "turn": opening}
    for index, record in enumerate(records):
        maker = getattr(unchecked, _maker_name(record))
        parameters = inspect.signature(maker).parameters.values()
        positional = [item.name for item in parameters if item.kind is not item.KEYWORD_ONLY]
        keywords = [
            item.name
            for item in parameters
            if item.kind is item.KEYWORD_ONLY
            and (item.default is item.empty or getattr(record, item.name) is not item.default)
        ]
        own: dict[str, object] = {
            "now": getattr(record, "at", None),
            "number": getattr(record, "sequence", None),
            "invocation": _call_of(record, calls),
            "input_": getattr(record, "input", None),
        }
        context |= {f"{name}_{index}": value for name, value in own.items()}
        given = [f"{name}_{index}" if name in own else name for name in positional]
        plan.append((maker, given, keywords))
    return _compiled(records, plan, context)


def _call_of(record: Record, calls: dict[str, Call]) -> Call | None:
    return calls.get(getattr(record, "invocation_id", ""))


def _maker_name(record: Record) -> str:
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", type(record).__name__).lower()
    return "continue_" if name == "continue" else name


def _compiled(
    records: Sequence[Record],
    calls: Sequence[Construction],
    context: dict[str, object],
) -> Build:
    names = dict(context)
    lines = ["def build():"]
    for index, (record, (function, given, keywords)) in enumerate(zip(records, calls, strict=True)):
        names[f"build_{index}"] = function
        arguments = list(given)
        for keyword in keywords:
            names[f"{keyword}_{index}"] = getattr(record, keyword)
            arguments.append(f"{keyword}={keyword}_{index}")
        lines.append(f"    build_{index}({', '.join(arguments)})")
    exec("\n".join(lines), names)  # noqa: S102 - made of names of fields and parameters alone
    build: Build = names["build"]  # type: ignore[assignment]
    return build
