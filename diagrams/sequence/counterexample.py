"""What a kernel did wrong, as a sequence diagram: a finding of ``turnlock verify --json``.

The script is played on our own kernel. Up to the last step, the one that is answered wrongly, the
diagram tells what is right; there it shows what was expected and what was got.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias, cast

import attrs

from ...models.codec import read
from ...models.errors import InvalidValue, shown
from ...models.run import Run
from ...models.strict_json import parse
from ...views.wording import SHORT
from ..recordings.recorder import moments_of
from ..recordings.recording import Recording
from .answers import Comparison, answered, compared
from .bounding import bounded
from .messages import KERNEL, Kind, Message, Step
from .picture import SequencePicture, described
from .steps import told

Raw: TypeAlias = Mapping[str, Any]

FORMAT: Final = 1
"""Of reports and of regression files."""
_FIELDS: Final[dict[str, type | tuple[type, ...]]] = {
    "rule": str,
    "message": str,
    "run": Mapping,
    "script": (list, tuple),
}


@attrs.frozen(kw_only=True)
class Listed:
    """One finding of a report, with what a reader needs to choose it.

    `id` is its fingerprint where the report gives one: 16 hexadecimal digits, stable from run to
    run. Else it is the technique and a number, such as ``guided-2``.
    """

    id: str
    technique: str
    rule: str
    message: str
    steps: int
    finding: Raw


def findings_in(report: Raw) -> tuple[Listed, ...]:
    """Return the findings of a report, as `turnlock verify --json` writes it, in its order.

    Raises `InvalidValue` for what is no such report.
    """
    if report.get("format") != FORMAT or not isinstance(report.get("results"), list):
        raise InvalidValue(
            place="format",
            cause="that is no report of this format",
            fix=f'give what `turnlock verify --json` wrote, with "format": {FORMAT}',
        )
    return tuple(_listed(report))


def counterexample_picture(finding: Raw) -> SequencePicture:
    """Draw one finding of a report, as raw JSON.

    Raises `InvalidValue`, with the place, for what is no finding and for a run or a script that
    our kernel cannot read.
    """
    return _drawn(_checked(finding), with_answers=True)


def regression_picture(text: str) -> SequencePicture:
    """Draw the script of a regression file: what is right, as our kernel answers it.

    The first line is the header, each other one a delivery. Raises `InvalidValue`, with the line.
    """
    values: list[Any] = []
    for place, line in enumerate(text.splitlines(), start=1):
        try:
            values.append(parse(line))
        except InvalidValue as error:
            raise error.inside(f"line {place}") from None
    header = values[0] if values else None
    if not isinstance(header, dict) or cast("Raw", header).get("format") != FORMAT:
        raise InvalidValue(
            place="line 1",
            cause="that is no header of a regression of this format",
            fix='begin with {"format": 1, "rule": "K-…", "message": "…", "run": {…}}',
        )
    return _drawn(_checked({**header, "script": values[1:]}), with_answers=False)


def _listed(report: Raw) -> Iterator[Listed]:
    known = {
        (violation.get("rule"), violation.get("message"), violation.get("steps")): violation
        for violation in _objects(report.get("violations"), "violations")
    }
    numbers: Counter[str] = Counter()
    for place, result in enumerate(_objects(report["results"], "results")):
        for finding in _objects(result.get("findings"), f"results[{place}].findings"):
            technique = str(finding.get("technique"))
            steps = len(finding.get("script") or ())
            numbers[technique] += 1
            violation = known.pop((finding.get("rule"), finding.get("message"), steps), {})
            yield Listed(
                id=str(violation.get("fingerprint") or f"{technique}-{numbers[technique]}"),
                technique=technique,
                rule=str(finding.get("rule")),
                message=str(finding.get("message")),
                steps=steps,
                finding=finding,
            )


def _objects(value: object, place: str) -> list[Raw]:
    """Return the objects of a list; none where there is no list at all."""
    items: list[object] = [] if value is None else [value]
    if isinstance(value, list):
        items = cast("list[object]", value)
    for item in items:
        if not isinstance(item, dict):
            raise InvalidValue(
                place=place, cause=f"{shown(item)} is no object", fix="give a whole report"
            )
    return cast("list[Raw]", items)


def _checked(finding: Raw) -> Raw:
    for name, kind in _FIELDS.items():
        if not isinstance(finding.get(name), kind):
            raise InvalidValue(
                place=name,
                cause=f"{shown(finding.get(name))} cannot be the {name} of a finding",
                fix="give one finding of a report, or a whole regression file",
            )
    return finding


def _drawn(finding: Raw, *, with_answers: bool) -> SequencePicture:
    run = read(Run, finding["run"], place="run")
    steps = told(Recording(run=run, moments=tuple(moments_of(run, finding["script"]))))
    comparison = None
    if with_answers:
        comparison = compared(finding.get("expected"), finding.get("got"))
        steps = (*steps[:-1], *(_judged(one, finding, comparison) for one in steps[-1:]))
    message = finding["message"].rstrip(". ")
    return SequencePicture(
        name=f"{SHORT.plain(finding['rule'])}: {message}",
        steps=bounded(steps),
        summary=f"{described(steps)} What is wrong: {message}.",
        comparison=comparison,
    )


def _judged(step: Step, finding: Raw, comparison: Comparison) -> Step:
    """Return the last step with both answers in place of what our kernel makes of it."""
    delivery = [message for message in step.messages if message.kind is Kind.DELIVERY]
    notes = (
        (Kind.EXPECTED, f"expected: {answered(finding.get('expected'))}"),
        (Kind.GOT, f"got: {answered(finding.get('got'))}"),
        (Kind.DIFFERENCE, comparison.difference),
    )
    answers = [
        Message(kind=kind, sender=KERNEL, receiver=KERNEL, name=kind, words=words)
        for kind, words in notes
        if words
    ]
    return attrs.evolve(step, messages=(*delivery, *answers))
