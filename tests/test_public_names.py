"""The public face: its names are pinned, and each is documented and annotated."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any, get_type_hints

import attrs
import pytest

import turnlock

NAMES = [
    *("Accepted", "Acknowledge", "AddCall", "Call", "CallAdded", "CallResult", "CallView"),
    *("Cancel", "Claim", "ContinuationTaken", "Continue", "CorruptJournal", "Decide"),
    *("Delivery", "DenialCause", "Effect", "Execute", "ExecutionInDoubt"),
    *("ExecutionRetried", "Fact", "FactType", "FailureCause", "GrantExpired"),
    *("GrantIssued", "GrantRevoked", "Inbox", "InboxFull", "Interrupt", "InvalidValue"),
    *("Kernel", "LeaseRenewed", "Limits", "Log", "Lose", "Match", "OpenTurn"),
    *("ProviderCall", "Reason", "Refused", "Reject", "Renew", "Report", "Resolution"),
    *("Resolve", "RetryAuthorised", "Revoke", "Run", "RunView", "Runs", "Scope"),
    *("SealTurn", "Snapshot", "Status", "Tick", "ToolApprovalRequested", "ToolApproved"),
    *("ToolDenied", "ToolExecutionFailed", "ToolExecutionStarted"),
    *("ToolExecutionSucceeded", "TurnInterrupted", "TurnInterrupting", "TurnOpened"),
    *("TurnSealed", "TurnSettled", "TurnView", "TurnlockError", "UnknownRun", "Verdict"),
    *("Wake", "arguments_digest", "delivery_from_json", "effect_from_json"),
    *("fact_from_json", "identify_calls", "snapshot_from_json", "to_json"),
    "verdict_from_json",
]


def test_these_are_public() -> None:
    """A name that comes or goes is a decision: write it here, and in the changelog."""
    assert turnlock.__all__ == NAMES
    assert sorted(turnlock.__all__) == turnlock.__all__


PACKAGES = (
    "turnlock",
    "turnlock.runtime",
    "turnlock.agent",
    "turnlock.toolkits",
    "turnlock.toolkits.mcp",
    "turnlock.world",
    "turnlock.guards",
    "turnlock.verification",
    "turnlock.diagrams",
)


def test_the_names_of_every_public_package_are_pinned() -> None:
    """docs/stability.md promises them: a line of tests/public_names.txt for each."""
    pinned = Path(__file__).with_name("public_names.txt").read_text(encoding="utf-8").split()
    found = [f"{name}.{it}" for name in PACKAGES for it in import_module(name).__all__]

    assert found == pinned


@pytest.mark.parametrize("package", PACKAGES)
def test_a_public_package_says_what_it_is_and_has_what_it_names(package: str) -> None:
    module = import_module(package)

    assert len(set(module.__all__)) == len(module.__all__)
    assert [name for name in module.__all__ if getattr(module, name, None) is None] == []
    assert module.__doc__
    assert len(module.__doc__.split()) > 20
    with pytest.raises(AttributeError, match="has no attribute 'nothing_of_ours'"):
        _ = module.nothing_of_ours


def test_what_few_processes_need_is_imported_when_it_is_asked_for() -> None:
    """The codec brings cattrs and msgspec along, and a guard needs few records of the kernel."""
    code = (
        "import sys, turnlock\n"
        "heavy = {'cattrs', 'msgspec', 'turnlock.models.codec', 'turnlock.engine.snapshot'}\n"
        "heavy |= {'attrs', 'turnlock.models.facts', 'turnlock.models.calls', 'turnlock.views'}\n"
        "assert not heavy & sys.modules.keys(), heavy & sys.modules.keys()\n"
        "assert turnlock.to_json is turnlock.to_json\n"
        "assert sys.modules.keys() >= {'cattrs', 'msgspec'}\n"
        "assert vars(turnlock)['to_json'] is turnlock.models.codec.to_json\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(Path(turnlock.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_name_that_is_not_public_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match=r"^module 'turnlock' has no attribute 'read_fact'$"):
        _ = getattr(turnlock, "read_" + "fact")


def test_the_face_says_what_the_package_is() -> None:
    assert turnlock.__doc__
    for name in ("Kernel", "receive"):
        assert name in turnlock.__doc__


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(turnlock.__file__).parent / "py.typed").is_file()


CLASSES = [name for name in NAMES if inspect.isclass(getattr(turnlock, name))]
FUNCTIONS = [name for name in NAMES if inspect.isfunction(getattr(turnlock, name))]


def test_every_name_is_a_class_a_function_or_the_union() -> None:
    assert set(NAMES) - set(CLASSES) - set(FUNCTIONS) == {"Verdict"}
    assert {turnlock.Accepted, turnlock.Refused} == set(turnlock.Verdict.__args__)


def functions_of(kind: type) -> Iterator[tuple[str, Any]]:
    """What a class of ours and its bases of ours define: methods, and what properties get."""
    ours = [base for base in kind.__mro__ if base.__module__.startswith("turnlock.")]
    for base in ours:
        for name, it in vars(base).items():
            found = (
                it.fget if isinstance(it, property) else inspect.unwrap(getattr(it, "__func__", it))
            )
            if inspect.isfunction(found) and found.__module__.startswith("turnlock."):
                yield f"{base.__name__}.{name}", found


def generated(function: Any) -> bool:
    """Whether attrs wrote it: its source is no file of ours."""
    return "attrs generated" in function.__code__.co_filename


def unannotated(function: Any) -> list[str]:
    """The parameters, and the return, that have no annotation."""
    signature = inspect.signature(function)
    bare = [
        name
        for number, (name, it) in enumerate(signature.parameters.items())
        if it.annotation is it.empty and not (number == 0 and name in {"self", "cls"})
    ]
    return bare + (["return"] if signature.return_annotation is signature.empty else [])


@pytest.mark.parametrize("name", [*CLASSES, *FUNCTIONS])
def test_every_public_name_is_documented(name: str) -> None:
    it = getattr(turnlock, name)
    told = vars(it).get("__doc__") if inspect.isclass(it) else it.__doc__

    assert told
    assert told.splitlines()[0].endswith((".", ":"))
    assert not told.startswith(("Method generated", "An enumeration"))


@pytest.mark.parametrize("name", CLASSES)
def test_every_public_class_is_documented_and_annotated_throughout(name: str) -> None:
    """Methods with docstrings and whole signatures, and a type for every field."""
    kind = getattr(turnlock, name)
    for told, function in functions_of(kind):
        if generated(function):
            continue
        assert unannotated(function) == [], told
        if not function.__name__.startswith("_") or function.__name__.startswith("__"):
            assert function.__doc__, told
    if attrs.has(kind):
        hints = get_type_hints(kind)
        assert [field.name for field in attrs.fields(kind) if field.name not in hints] == []
    elif issubclass(kind, Enum):
        assert all(type(member.value) is str for member in kind)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_public_function_is_annotated(name: str) -> None:
    function = getattr(turnlock, name)

    assert unannotated(function) == []
    assert "return" in get_type_hints(function)
