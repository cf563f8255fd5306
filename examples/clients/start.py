"""Serve an agent and a page with a client of others, which is unmodified and not built.

    python examples/clients/start.py chat    # the AI SDK's useChat
    python examples/clients/start.py agui    # AG-UI's HttpAgent

It needs Node's npm (22 or later) once, to install what the page's package-lock.json names, and
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
PAGES = ("chat", "agui")
AGENTS = HERE.parent / "server" / "agents.py"
PACKAGES = "/node_modules/"


class Page(SimpleHTTPRequestHandler):
    """The files of the page, and of the packages that it is made of; nothing else."""

    def __init__(
        self,
        *args: Any,  # noqa: ANN401
        folder: Path,
        packages: Path,
        server_url: str,
        **more: Any,  # noqa: ANN401
    ) -> None:
        """Serve a folder; packages lie where npm has put them."""
        self._folder = folder
        self._packages = packages
        self._server_url = server_url
        super().__init__(*args, directory=str(folder), **more)

    def do_GET(self) -> None:
        """Answer with a file, or with where the server is."""
        if self.path == "/where.json":
            told = json.dumps({"server": self._server_url}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(told)
        else:
            super().do_GET()

    def translate_path(self, path: str) -> str:
        """Return the file of a path; the server's own class keeps it below its folder."""
        found = Path(super().translate_path(path)).relative_to(self._folder)
        if path.startswith(PACKAGES):
            return str(self._packages.joinpath(*found.parts[1:]))
        return str(self._folder / found)

    def log_message(self, format: str, *_: Any) -> None:  # noqa: A002, ANN401 - the class calls it so
        """Say nothing of each file."""


def installed(folder: Path) -> Path:
    """Return where the packages are: installed beside the page, once."""
    packages = folder / "node_modules"
    if not packages.is_dir():
        npm = shutil.which("npm")
        if npm is None:
            sys.exit("npm is missing: install Node.js 22 or later")
        subprocess.run([npm, "ci", "--ignore-scripts"], cwd=folder, check=True)  # noqa: S603 - ours
    return packages


def main() -> int:
    """Serve both, and say where."""
    asked = argparse.ArgumentParser(description="A page of another client on turnlock serve.")
    asked.add_argument("page", choices=PAGES)
    asked.add_argument("--port", type=int, default=8420, help="the server's; the page has the next")
    asked.add_argument("--packages", type=Path, help="where npm has installed them already")
    given = asked.parse_args()
    folder = HERE / given.page
    packages = given.packages or installed(folder)
    server, page = (f"http://127.0.0.1:{given.port + more}" for more in (0, 1))
    handler = partial(Page, folder=folder, packages=packages, server_url=server)
    with TemporaryDirectory(prefix="turnlock-page-") as kept:
        db = Path(kept) / "agent.db"
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
                ThreadingHTTPServer(("127.0.0.1", given.port + 1), handler).serve_forever()
            except KeyboardInterrupt:
                serving.terminate()
    return 0


if __name__ == "__main__":
    sys.exit(main())
