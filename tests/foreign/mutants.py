"""Makes the mistakes of a machine: one small change of the foreign kernel's syntax each."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final, cast
from zlib import crc32

from .planting import MODULES, Bug, source_of
from .rules import rules_at

_COMPARED: Final[dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]]] = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
_REASONS: Final = (
    *("late", "duplicate", "interrupting", "already_settled", "already_started", "not_started"),
    *("unknown_invocation", "no_active_turn", "turn_mismatch", "already_decided", "limit_reached"),
)
_ALIKE: Final = (
    ("now", "latest"),
    ("scope", "match"),
    ("tool", "name"),
    ("lease", "grace"),
    ("turn_id", "invocation_id"),
    ("approve_by", "lease_until"),
    ("reason", "decided_by"),
    ("decided_by", "worker"),
    ("arguments", "result"),
    ("has_result", "approved"),
    ("sealed", "approved"),
    ("over", "not_begun"),
    ("awaits", "gated"),
    ("ready", "not_begun"),
    ("observed", "gated"),
    ("expires_in", "lease"),
    ("epochs", "issued"),
    ("outcome", "decision"),
    ("ends", "digest"),
)
"""Attributes of one type, each taken for the other."""
_PHASES: Final = (
    *("REQUESTED", "APPROVED", "STARTED", "IN_DOUBT", "RETRY", "SUCCEEDED", "FAILED", "DENIED"),
)
_TURNS: Final = ("OPEN", "SEALED", "INTERRUPTING")
_FUNCTIONS: Final = {"min": "max", "max": "min", "all": "any", "any": "all"}
_OFF: Final = {"hexdigest", "sha256", "encode", "deepcopy"}


def mutants(every: int = 1, part: int = 0) -> Iterator[Bug]:
    """Yield one mutant in so many, drawn by their names, that stands where a rule is named.

    `part` says which: each part from 0 has others, and all together are the whole.
    """
    for module in MODULES:
        yield from _of_module(module, lambda name: crc32(name.encode()) % every == part % every)


def mutant_named(name: str) -> Bug | None:
    """Return the mutant of this name, if there is one."""
    module = name.split(":", maxsplit=1)[0].split(".", maxsplit=1)[0]
    return next(_of_module(module, name.__eq__), None) if module in MODULES else None


def _of_module(module: str, drawn: Callable[[str], bool]) -> Iterator[Bug]:
    tree = ast.parse(source_of(module))
    seen, names = {ast.unparse(tree)}, Counter[str]()
    known = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for path in _paths(tree, [tree]):
        rules = rules_at(module, path)
        for operator, changed in _changes(path, known) if rules else ():
            name = f"{_where(module, path)}: {operator}: {_short(path[-1])} -> {_short(changed)}"
            names[name] += 1
            if names[name] > 1:
                name = f"{name} #{names[name]}"
            if not drawn(name):
                continue
            source = _replaced(tree, path, changed)
            if source is not None and source not in seen:
                seen.add(source)
                yield Bug(name=name, kind="mutant", module=module, source=source, rules=rules)


def _short(node: ast.AST | None) -> str:
    if node is None:
        return "nothing"
    text = ast.unparse(ast.fix_missing_locations(node))
    line = " ".join(text.split())
    return line if len(line) <= 90 else f"{line[:87]}..."


def _where(module: str, path: list[ast.AST]) -> str:
    defs = (ast.FunctionDef, ast.ClassDef)
    return ".".join([module, *(node.name for node in path if isinstance(node, defs))])


def _paths(node: ast.AST, path: list[ast.AST]) -> Iterator[list[ast.AST]]:
    """Yield the way down to every node that runs: no annotation, no docstring, no import."""
    for field, value in ast.iter_fields(node):
        if field in {"annotation", "returns", "decorator_list", "type_comment", "bases"}:
            continue
        children = cast("list[object]", value) if isinstance(value, list) else [value]
        for child in children:
            if not isinstance(child, ast.AST) or _silent(child):
                continue
            yield [*path, child]
            yield from _paths(child, [*path, child])


def _silent(node: ast.AST) -> bool:
    if isinstance(node, ast.Import | ast.ImportFrom | ast.Assert):
        return True
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _replaced(tree: ast.Module, path: list[ast.AST], changed: ast.AST | None) -> str | None:
    """Return the source with one node changed (None: taken out); None where nothing is left."""
    memo: dict[int, object] = {}
    if changed is not None:
        memo[id(path[-1])] = changed
    elif isinstance(path[-1], ast.stmt):
        memo[id(path[-1])] = ast.Pass()
    else:
        return None
    return ast.unparse(ast.fix_missing_locations(copy.deepcopy(tree, memo)))


Change = tuple[str, ast.AST | None]


def _changes(path: list[ast.AST], known: set[str]) -> Iterator[Change]:  # noqa: C901, PLR0912 - one case a node
    """Yield what can be changed at the end of a path; `known` are the names of its module."""
    node, parent = path[-1], path[-2]
    match node:
        case ast.Compare():
            yield from _of_compare(node)
        case ast.BoolOp():
            yield from _of_bool(node)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "not dropped", operand
        case ast.Constant():
            yield from _of_constant(node, parent)
        case ast.BinOp():
            yield from _of_arithmetic(node)
        case ast.IfExp():
            yield "if dropped", node.body
            yield "else only", node.orelse
        case ast.Call():
            yield from _of_call(node)
        case ast.Name(ctx=ast.Load()):
            yield from _of_name(node, known)
        case ast.Attribute(ctx=ast.Load()):
            yield from _of_attribute(node)
        case ast.Set() | ast.Tuple(ctx=ast.Load()) if len(node.elts) > 1:
            for place in range(len(node.elts)):
                kept = [item for at, item in enumerate(node.elts) if at != place]
                fewer = ast.Set(kept) if isinstance(node, ast.Set) else ast.Tuple(kept, ast.Load())
                yield "element dropped", fewer
        case ast.Dict() if len(node.keys) > 1:
            for place in range(len(node.keys)):
                keys = [key for at, key in enumerate(node.keys) if at != place]
                values = [value for at, value in enumerate(node.values) if at != place]
                yield "entry dropped", ast.Dict(keys=keys, values=values)
        case ast.comprehension() if node.ifs:
            yield (
                "filter dropped",
                ast.comprehension(target=node.target, iter=node.iter, ifs=[], is_async=0),
            )
        case ast.stmt():
            yield from _of_statement(node)
        case _:
            pass


def _negated(node: ast.expr) -> ast.expr:
    return ast.UnaryOp(op=ast.Not(), operand=node)


def _of_compare(node: ast.Compare) -> Iterator[Change]:
    if len(node.ops) != 1:
        return
    (op,), (right,) = node.ops, node.comparators
    for other in _COMPARED[type(op)]:
        yield "compare", ast.Compare(left=node.left, ops=[other()], comparators=[right])
    if isinstance(right, ast.Constant) and right.value is None:
        if isinstance(op, ast.Is):
            yield "none is falsy", _negated(node.left)
        if isinstance(op, ast.IsNot):
            yield (
                "none is falsy",
                ast.Call(func=ast.Name(id="bool", ctx=ast.Load()), args=[node.left], keywords=[]),
            )


def _of_bool(node: ast.BoolOp) -> Iterator[Change]:
    other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    yield "and/or", ast.BoolOp(op=other, values=node.values)
    for place in range(len(node.values)):
        kept = [value for at, value in enumerate(node.values) if at != place]
        yield "operand dropped", kept[0] if len(kept) == 1 else ast.BoolOp(node.op, kept)


def _of_constant(node: ast.Constant, parent: ast.AST) -> Iterator[Change]:
    value = node.value
    if isinstance(value, bool):
        yield "flipped", ast.Constant(value=not value)
    elif isinstance(value, int | float):
        yield "one more", ast.Constant(value=value + 1)
        yield "one less", ast.Constant(value=value - 1)
    elif isinstance(value, str) and not isinstance(parent, ast.JoinedStr | ast.FormattedValue):
        if value in _REASONS:
            after = _REASONS[(_REASONS.index(value) + 1) % len(_REASONS)]
            yield "another reason", ast.Constant(value=after)
        else:
            yield "another text", ast.Constant(value=f"{value}x" if value else "x")


def _of_arithmetic(node: ast.BinOp) -> Iterator[Change]:
    swapped = {"Add": ast.Sub, "Sub": ast.Add}.get(type(node.op).__name__)
    if swapped is not None:
        yield "arithmetic", ast.BinOp(left=node.left, op=swapped(), right=node.right)
        yield "right dropped", node.left
        yield "left dropped", node.right


def _of_call(node: ast.Call) -> Iterator[Change]:
    called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if called in _OFF:
        return
    if isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
        name = ast.Name(id=_FUNCTIONS[node.func.id], ctx=ast.Load())
        yield "function", ast.Call(func=name, args=node.args, keywords=node.keywords)
    for place in range(len(node.args) - 1):
        args = [*node.args]
        args[place], args[place + 1] = args[place + 1], args[place]
        yield "arguments swapped", ast.Call(func=node.func, args=args, keywords=node.keywords)
    for place in range(len(node.keywords)):
        kept = [word for at, word in enumerate(node.keywords) if at != place]
        yield "keyword dropped", ast.Call(func=node.func, args=node.args, keywords=kept)
    if called == "replace":
        yield "call dropped", node.func.value if isinstance(node.func, ast.Attribute) else None


def _of_name(node: ast.Name, known: set[str]) -> Iterator[Change]:
    for names in (_PHASES, _TURNS):
        if node.id in names:
            others = [name for name in names if name in known and name != node.id]
            for after in dict.fromkeys(others):
                yield "another phase", ast.Name(id=after, ctx=ast.Load())


def _of_attribute(node: ast.Attribute) -> Iterator[Change]:
    for one, other in _ALIKE:
        for before, after in ((one, other), (other, one)):
            if node.attr == before:
                yield "another attribute", ast.Attribute(node.value, after, ast.Load())


def _of_statement(node: ast.stmt) -> Iterator[Change]:
    match node:
        case ast.Expr() | ast.Raise() | ast.AugAssign() | ast.Delete():
            yield "deleted", None
        case ast.Assign() if not isinstance(node.targets[0], ast.Name):
            yield "deleted", None
        case ast.Assign(value=ast.Constant()):
            yield "deleted", None
        case ast.Return() if node.value is not None:
            yield "deleted", None
        case ast.If():
            yield "deleted", None
            yield "negated", ast.If(test=_negated(node.test), body=node.body, orelse=node.orelse)
            yield "always", ast.If(ast.Constant(value=True), node.body, node.orelse)
            if node.orelse:
                yield "else dropped", ast.If(test=node.test, body=node.body, orelse=[])
                yield "never", ast.If(ast.Constant(value=False), node.body, node.orelse)
        case ast.For():
            yield "deleted", None
            backwards = ast.parse(f"reversed([*{ast.unparse(node.iter)}])", mode="eval").body
            yield "backwards", ast.For(node.target, backwards, node.body, node.orelse)
            yield "first only", ast.For(node.target, node.iter, [*node.body, ast.Break()], [])
        case ast.While():
            yield "once", ast.If(test=node.test, body=node.body, orelse=[])
        case _:
            pass
