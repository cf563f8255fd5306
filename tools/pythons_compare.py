"""What `make pythons` runs inside of each Python: kernel, codec, wire and oracle, held together.

    python tools/pythons_compare.py SCRIPTS        # in this Python, with its own msgspec

First the examples of docs/spec/wire-examples.jsonl, then so many seeded random scripts that the
oracle guides (`verification/fuzz/guided.py`), each answered by the wire and by the oracle. Prints
one line of JSON; ends with status 1 at the first difference, which it prints.

msgspec is compiled, and not to be had for WebAssembly from npm. There `stand_in` takes its place
and does in plain Python what the codec and the wire ask of it: writing JSON. Reading is ours.
"""

from __future__ import annotations

import json
import platform
import random
import sys
import types
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
EXAMPLES: Final = ROOT / "docs" / "spec" / "wire-examples.jsonl"
BYTES: Final = 1 + 4 * 40
"""Of a random script: its run, and forty steps."""


class Struct:
    """Fields by position, in the order of their annotations, or as `defstruct` names them."""

    fields: tuple[str, ...] = ()
    defaults: dict[str, Any] = {}  # noqa: RUF012 - replaced, never changed
    tag: str | None = None

    def __init_subclass__(cls, **_: object) -> None:
        """Take the fields from the annotations."""
        cls.fields = cls.fields or tuple(cls.__annotations__)

    def __init__(self, *values: object) -> None:
        """Take the values, in the order of the fields."""
        self.values = values


class Raw(bytes):
    """JSON text that is written as it is."""

    __slots__ = ()


def defstruct(
    name: str, fields: list[tuple[Any, ...]], *, tag: str | None = None, **_: object
) -> type[Struct]:
    """Return a struct whose fields with a default are left out where they have it."""
    body: dict[str, Any] = {
        "fields": tuple(field[0] for field in fields),
        "defaults": {field[0]: field[2] for field in fields if len(field) > 2},  # noqa: PLR2004
        "tag": tag,
    }
    return type(name, (Struct,), body)


def same(one: object, other: object) -> bool:
    """Whether a value is its default: None, True, a text; 1 is not True."""
    return one is other or (type(one) is type(other) and one == other)


def plain(value: Any) -> Any:  # noqa: ANN401 - any JSON, with structs and raw text in it
    """Return a value as the standard library can write it."""
    if isinstance(value, Raw):
        return json.loads(value)
    if isinstance(value, Struct):
        said: dict[str, Any] = {} if value.tag is None else {"type": value.tag}
        for name, it in zip(value.fields, value.values, strict=True):
            if name not in value.defaults or not same(it, value.defaults[name]):
                said[name] = plain(it)
        return said
    if isinstance(value, dict):
        return {str(name): plain(it) for name, it in value.items()}
    if isinstance(value, list | tuple):
        return [plain(it) for it in value]
    return value


def encode(value: object) -> bytes:
    """Return a value as compact JSON."""
    return json.dumps(plain(value), separators=(",", ":"), ensure_ascii=False).encode()


def stand_in() -> None:
    """Let `import msgspec` find what is above."""
    msgspec: Any = types.ModuleType("msgspec")
    msgspec.Struct, msgspec.Raw, msgspec.defstruct = Struct, Raw, defstruct
    msgspec.json = types.ModuleType("msgspec.json")
    msgspec.json.encode = encode
    msgspec.json.Encoder = lambda: types.SimpleNamespace(encode=encode)
    sys.modules["msgspec"], sys.modules["msgspec.json"] = msgspec, msgspec.json


class Differs(Exception):
    """The wire and what it is held against say different things."""


def answered(run: dict[str, Any], script: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the receipts of one script, as a client of the wire reads them."""
    from turnlock.wire.answers import answer  # noqa: PLC0415 - after `stand_in`

    line = json.dumps({"id": 1, "run": run, "scripts": [script]})
    told = json.loads(answer(line.encode()))
    if "error" in told:
        raise Differs(f"{told['error']} for {line}")
    (receipts,) = told["scripts"]
    return list(receipts)


def shows(said: Any, wanted: Any) -> bool:  # noqa: ANN401 - any JSON
    """Whether all that is wanted is there: more fields may be, and `wake` effects are left out."""
    if isinstance(wanted, dict):
        return isinstance(said, dict) and all(
            name in said and shows(said[name], it) for name, it in wanted.items()
        )
    if isinstance(wanted, list):
        kept = [it for it in said if not (isinstance(it, dict) and it.get("type") == "wake")]
        return len(kept) == len(wanted) and all(map(shows, kept, wanted))
    return type(said) is type(wanted) and bool(said == wanted)


def examples() -> int:
    """Hold the wire against the examples of the specification; return how many there are."""
    lines = [line for line in EXAMPLES.read_text(encoding="utf-8").splitlines() if line.strip()]
    for line in lines:
        example = json.loads(line)
        run = {"run_id": "r", "limits": {}, **example.get("run", {})}
        for said, wanted in zip(answered(run, example["script"]), example["receipts"], strict=True):
            if not shows(said, wanted):
                raise Differs(f"{example['title']}: {said} and not {wanted}")
    return len(lines)


def scripts(count: int) -> int:
    """Hold the wire against the oracle in so many random scripts; return their steps."""
    from turnlock.verification.fuzz.guided import follow  # noqa: PLC0415 - after `stand_in`

    steps = 0
    for seed in range(count):
        decoded = follow(random.Random(seed).randbytes(BYTES))  # noqa: S311 - to draw, not to hide
        said = answered(decoded.run, decoded.script)
        for step, one, other in zip(decoded.script, said, decoded.expected, strict=True):
            if one != json.loads(json.dumps(other)):
                raise Differs(f"seed {seed}, {step}: the wire says {one}, the oracle {other}")
        steps += len(said)
    return steps


def main() -> int:
    """Compare, and say what was compared."""
    if sys.platform == "emscripten":
        stand_in()
    try:
        told = {
            "python": platform.python_version(),
            "platform": sys.platform,
            "examples": examples(),
            "scripts": int(sys.argv[1]),
            "steps": scripts(int(sys.argv[1])),
        }
    except Differs as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps(told))
    return 0


if __name__ == "__main__":
    sys.exit(main())
