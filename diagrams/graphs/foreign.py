"""A `transitions.Machine` as the small graph; the library itself is never imported.

Nested machines are flattened: a state is called by its whole name, and an edge of a parent is drawn
at the parent. What the library accepts silently is shown: a target that is no state is drawn,
and says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Protocol, TypeGuard, cast

from .graph import Edge, Graph, Mark, Move, Node, described, gathered

_AUTOMATIC = "to_"
"""How the library names the triggers that it adds by itself."""
_UNDECLARED = "not a declared state"


class Foreign(Protocol):
    """What is read of a `transitions.Machine`."""

    @property
    def states(self) -> Mapping[Any, Any]:
        """The states, by name."""
        ...

    @property
    def events(self) -> Mapping[str, Any]:
        """The triggers, by name; each has `transitions`, lists by source."""
        ...

    @property
    def initial(self) -> Any:  # noqa: ANN401 - a name, an enum member, a state, a list or None
        """Where it begins."""
        ...


def is_foreign(machine: object) -> TypeGuard[Foreign]:
    """Whether it is a machine of that library, or one made like it."""
    return all(isinstance(getattr(machine, name, None), Mapping) for name in ("states", "events"))


def foreign_graph(machine: Foreign, *, title: str | None) -> Graph:
    """Return its diagram; automatic ``to_<state>`` triggers are left out, and the text says so."""
    separator = str(getattr(getattr(machine, "state_cls", None), "separator", ""))
    paths = {separator.join(path): path for path, _ in _states(machine, ())}
    automatic = (
        frozenset(_AUTOMATIC + name for name in paths)
        if getattr(machine, "auto_transitions", False)
        else frozenset[str]()
    )
    edges = gathered(
        (source, target, move)
        for source, target, move in _moves(machine, (), separator, frozenset(paths))
        if move.input not in automatic
    )
    nodes = _nodes(machine, paths, edges)
    description = described(nodes, edges)
    if automatic:
        description += " Automatic to_<state> triggers, from anywhere to anywhere, are not drawn."
    name = str(getattr(machine, "name", "") or "").removesuffix(": ") or "machine"
    return Graph(
        name=name,
        title=title or name,
        description=description,
        nodes=nodes,
        edges=edges,
    )


def _states(scope: object, above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for state in _inside(scope):
        yield (here := (*above, state.name)), state
        yield from _states(state, here)


def _inside(scope: object) -> Iterable[Any]:
    nested: Mapping[Any, Any] = getattr(scope, "states", {})
    return nested.values()


def _moves(
    scope: object,
    path: tuple[str, ...],
    separator: str,
    known: frozenset[str],
) -> Iterator[tuple[str, str, Move]]:
    """Yield the transitions declared in a scope, then those of the scopes inside it."""
    for trigger, event in getattr(scope, "events", {}).items():
        for listed in event.transitions.values():
            for transition in listed:
                source = _full(transition.source, path, separator, known)
                # no destination is an internal transition: nothing is left or entered
                target = source
                if transition.dest is not None:
                    target = _full(transition.dest, path, separator, known)
                yield source, target, Move(input=str(trigger), guard=_guard(transition))
    for state in _inside(scope):
        yield from _moves(state, (*path, state.name), separator, known)


def _full(name: object, path: tuple[str, ...], separator: str, known: frozenset[str]) -> str:
    """Return the whole name: inside a scope names are relative, unless only the whole is known."""
    own = name.name if isinstance(name, Enum) else str(name)
    relative = separator.join((*path, own))
    return own if own in known and relative not in known else relative


def _guard(transition: Any) -> str:  # noqa: ANN401 - untyped library
    parts = (
        _called(condition.func) if condition.target else f"not {_called(condition.func)}"
        for condition in transition.conditions
    )
    return " and ".join(parts)


def _called(condition: object) -> str:
    if isinstance(condition, str):
        return condition
    return str(getattr(condition, "__name__", type(condition).__name__))


def _named(initial: object) -> Iterator[str]:
    if isinstance(initial, list | tuple):
        for one in cast("Iterable[object]", initial):  # parallel states
            yield from _named(one)
    elif initial is not None:
        yield initial if isinstance(initial, str) else str(getattr(initial, "name", initial))


def _nodes(
    machine: Foreign, paths: Mapping[str, tuple[str, ...]], edges: tuple[Edge, ...]
) -> tuple[Node, ...]:
    """Return the states, then targets that are none."""
    initial = frozenset(_named(machine.initial))
    final = {path for path, state in _states(machine, ()) if getattr(state, "final", False)}
    left = [paths.get(edge.source, ()) for edge in edges if edge.source != edge.target]
    declared = (
        Node(
            name=name, initial=name in initial, terminal=path in final or not _can_leave(path, left)
        )
        for name, path in paths.items()
    )
    unknown = dict.fromkeys(
        name for edge in edges for name in (edge.source, edge.target) if name not in paths
    )
    return (
        *declared,
        *(Node(name=name, terminal=True, mark=Mark.NEVER, note=_UNDECLARED) for name in unknown),
    )


def _can_leave(path: tuple[str, ...], left: Iterable[tuple[str, ...]]) -> bool:
    """Whether an edge leaves it, its parent (which takes it along) or a state inside it."""
    return any(
        source and all(a == b for a, b in zip(path, source, strict=False)) for source in left
    )
