"""Serve an agent and a page with AG-UI's HttpAgent, which is unmodified and not built.

    python examples/clients/agui/start.py

It needs Node's npm (22 or later) once, to install what package-lock.json names, and
`pip install 'turnlock[server]'`. The page asks for the token that is printed. ^C ends both.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

HERE = Path(__file__).resolve().parent
AGENTS = HERE.parents[1] / "server" / "agents.py"
PACKAGES = "/node_modules/"


class Page(SimpleHTTPRequestHandler):
    """The files of the page, and of the packages that it is made of; nothing else."""

    def __init__(self, *args: Any, packages: Path, server_url: str, **more: Any) -> None:  # noqa: ANN401
        """Serve from here; packages lie where npm has put them."""
        self._packages = packages
        self._server_url = server_url
        super().__init__(*args, directory=str(HERE), **more)

    def do_GET(self) -> None:
        """Answer with a file, or with where the server is."""
        if self.path != "/where.json":
            super().do_GET()
            return
        told = json.dumps({"server": self._server_url}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(told)

    def translate_path(self, path: str) -> str:
        """Return the file of a path; the server's own class keeps it below its folder."""
        found = Path(super().translate_path(path)).relative_to(HERE)
        if path.startswith(PACKAGES):
            return str(self._packages.joinpath(*found.parts[1:]))
        return str(HERE / found)

    def log_message(self, *_: Any) -> None:  # noqa: ANN401
        """Say nothing of each file."""


def page_server(port: int, *, packages: Path, server_url: str) -> ThreadingHTTPServer:
    """Return what serves the page on the loopback."""
    handler = partial(Page, packages=packages, server_url=server_url)
    return ThreadingHTTPServer(("127.0.0.1", port), handler)


def installed() -> Path:
    """Return where the packages are: installed beside this file, once."""
    packages = HERE / "node_modules"
    if not packages.is_dir():
        npm = shutil.which("npm")
        if npm is None:
            sys.exit("npm is missing: install Node.js 22 or later")
        subprocess.run([npm, "ci", "--ignore-scripts"], cwd=HERE, check=True)  # noqa: S603 - ours
    return packages


def main() -> int:
    """Serve both, and say where."""
    asked = argparse.ArgumentParser(description="An AG-UI page on turnlock serve.")
    asked.add_argument("--port", type=int, default=8420, help="the server's; the page has the next")
    asked.add_argument("--packages", type=Path, help="where npm has installed them already")
    given = asked.parse_args()
    packages = given.packages or installed()
    server, page = (f"http://127.0.0.1:{given.port + more}" for more in (0, 1))
    with TemporaryDirectory(prefix="turnlock-agui-") as folder:
        db = Path(folder) / "agent.db"
        options = ["--db", str(db), "--agent", str(AGENTS), "--port", str(given.port)]
        command = [sys.executable, "-m", "turnlock", "serve", *options, "--origin", page]
        with subprocess.Popen(command) as serving:  # noqa: S603 - ours
            token = Path(f"{db}.token")
            while not token.exists():
                if serving.poll() is not None:
                    return 1
                time.sleep(0.05)
            print(f"  page     {page}/\n  token    {token.read_text().strip()}", flush=True)
            try:
                page_server(given.port + 1, packages=packages, server_url=server).serve_forever()
            except KeyboardInterrupt:
                serving.terminate()
    return 0


if __name__ == "__main__":
    sys.exit(main())
