"""Servers of PostgreSQL for tests: begun, stopped, killed, copied and promoted by them.

All are on loopback, each on a port of its own, with its data in a folder of `Ground`. Whatever
becomes of the tests, no server outlives them: see warden.py.
"""

from __future__ import annotations

import asyncio
import atexit
import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from ctypes import CDLL
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import asyncpg
import attrs

from .installed import Installed, found_or_skipped
from .warden import alive, children, mounts, signalled, stop, unmount

WARDEN: Final = Path(__file__).with_name("warden.py")
PATIENCE: Final = 60.0
"""Seconds that a server has for what it is told."""
MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a folder of our own is made there
ROOM: Final = 2 << 30
"""Bytes that must be free there: a server begins with 40 MB."""
SUPERUSER: Final = "postgres"
ALWAYS: Final = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "shared_buffers": "16MB",
    "dynamic_shared_memory_type": "mmap",  # one that is killed leaves nothing outside of its folder
    "max_wal_senders": "8",
    "fsync": "off",
    "full_page_writes": "off",
    "jit": "off",
    "log_min_messages": "log",
    "lc_messages": "C",
}
"""Settings of each, unless it is told otherwise."""
SAFE: Final = {"fsync": "on", "full_page_writes": "on"}
"""Settings of those that are killed, and asked afterwards what is there."""

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"


@attrs.define(eq=False)
class Cluster:
    """One server and its data."""

    installed: Installed
    data: Path
    port: int
    _process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it is, for whoever may do everything in it."""
        return f"postgresql://{SUPERUSER}@127.0.0.1:{self.port}/postgres"

    @property
    def log(self) -> str:
        """What it has said."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    @property
    def _log(self) -> Path:
        return self.data.parent / "log"

    @property
    def process(self) -> int:
        """The number of its first process."""
        assert self._process is not None, "the server was not begun"
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether it ended by itself."""
        return self._process is not None and self._process.poll() is not None

    def configure(self, **settings: str) -> None:
        """Change settings; they count from the next start, or from `reload`."""
        with (self.data / "postgresql.conf").open("a", encoding="utf-8") as file:
            for name, value in settings.items():
                file.write(f"{name} = '{value}'\n")

    def start(self) -> None:
        """Begin it, and wait until it answers; a standby answers those who read."""
        assert self._process is None, "the server runs"
        account = self.installed.account
        with self._log.open("ab") as log:
            self._process = subprocess.Popen[bytes](
                [self.installed.program("postgres"), "-D", str(self.data), "-p", str(self.port)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env={"PATH": os.defpath, "LC_ALL": "C"},
                start_new_session=True,  # nor is it interrupted where the tests are
                **(account.started_as if account else {}),
            )
        self._wait()

    def stop(self, *, mode: signal.Signals = signal.SIGINT) -> None:
        """End it in an orderly way; SIGQUIT is at once, as after a failure."""
        if self._process is not None:
            self._process.send_signal(mode)
            self._process.wait(PATIENCE)
            self._process = None

    def kill(self) -> None:
        """Kill all its processes; what the system has of its files is still written."""
        assert self._process is not None, "the server was not begun"
        self._process.send_signal(signal.SIGSTOP)  # begins no more
        began = children(self.process)
        self._process.kill()
        self._process.wait()
        for child in began:
            signalled(child, signal.SIGKILL)
        until = time.monotonic() + PATIENCE
        while any(map(alive, began)):
            assert time.monotonic() < until, "processes of a killed server stay"
            time.sleep(0.002)
        self._process = None

    def restart(self) -> None:
        """Stop and begin it."""
        self.stop()
        self.start()

    def freeze(self) -> None:
        """Let it hang: connections are taken by the system, and nobody answers."""
        for process in (self.process, *children(self.process)):
            signalled(process, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        for process in (*children(self.process), self.process):
            signalled(process, signal.SIGCONT)

    def reload(self) -> None:
        """Read the settings again."""
        self.sql("SELECT pg_reload_conf()")

    def promote(self) -> None:
        """Make a standby the primary."""
        self.sql("SELECT pg_promote(true, 60)")

    @asynccontextmanager
    async def session(self, **given: Any) -> AsyncGenerator[Connection]:
        """A connection of one's own, as from a person's psql."""
        connection = cast("Connection", await asyncpg.connect(self.url, **given))
        try:
            yield connection
        finally:
            connection.terminate()
            await asyncio.sleep(0)  # for its socket

    def sql(self, *statements: str) -> Any:
        """Have statements done, and return the last one's first value; not from a loop."""

        async def done() -> Any:
            async with self.session() as connection:
                for statement in statements[:-1]:
                    await connection.execute(statement)
                return await connection.fetchval(statements[-1])

        return asyncio.run(done())

    def close(self) -> None:
        """End it, and remove all that it had."""
        if self._process is not None:
            stop(self._process.pid)
            self._process.wait()
            self._process = None
        else:
            self._remove_shared_memory()
        for mounted in mounts(self.data):
            unmount(mounted)
        shutil.rmtree(self.data.parent, ignore_errors=True)

    def _remove_shared_memory(self) -> None:
        """A killed server leaves a piece of shared memory, which it takes off when it starts."""
        try:  # one that was killed has left its own, and it is removed while this looks
            lines = (self.data / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            lines = []
        if len(lines) > 6 and len(lines[6].split()) == 2:
            CDLL(None).shmctl(int(lines[6].split()[1]), 0, None)

    def _state(self) -> str | None:
        """As the server has written it into its file; None as long as it has not."""
        try:  # one that was killed has left its own, and it is removed while this looks
            lines = (self.data / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            lines = []
        own = len(lines) > 7 and lines[0] == str(self.process)
        return lines[7].strip() if own else None

    def _wait(self) -> None:
        until = time.monotonic() + PATIENCE
        while self._state() not in {"ready", "standby"}:
            assert self._process is not None
            if self._process.poll() is not None or time.monotonic() > until:
                self.stop(mode=signal.SIGKILL)
                raise OSError(f"the server did not start: {self.log[-2_000:]}")
            time.sleep(0.005)


@attrs.define(eq=False)
class Ground:
    """Where all servers of one process of tests have their data, and who stops them after it."""

    installed: Installed
    folder: Path
    _warden: subprocess.Popen[bytes]
    _made: list[Cluster] = attrs.Factory(list[Cluster])
    _numbers: Iterator[int] = attrs.Factory(itertools.count)

    @classmethod
    def begun(cls, found: Installed) -> Ground:
        """Make the folder. Pytest's own are closed to the server's account; so is none of these."""
        folder = Path(tempfile.mkdtemp(prefix="turnlock-postgres-", dir=_roomy())).resolve()
        folder.chmod(0o755)
        warden = subprocess.Popen(
            [sys.executable, "-I", str(WARDEN), str(folder)],
            stdin=subprocess.PIPE,
            cwd="/",
            start_new_session=True,
        )
        ground = cls(found, folder, warden)
        atexit.register(ground.close)
        return ground

    def cluster(
        self, *, size: str | None = None, wal_size: str | None = None, **settings: str
    ) -> Cluster:
        """Make a server, which is not begun yet.

        With a size, its data is in a file system of its own, of so many bytes, with which root can
        have a full disk; with the other, its log of transactions is. `OSError` where such a file
        system cannot be had.
        """
        place = self._place()
        data = place / "data"
        if size is not None:
            data.mkdir()
            self._mount(data, size)
        shutil.copytree(self._template(), data, symlinks=True, dirs_exist_ok=True)
        if size is not None or wal_size is not None:
            wal = place / "pg_wal"
            wal.mkdir()
            if wal_size is not None:
                self._mount(wal, wal_size)
            shutil.copytree(data / "pg_wal", wal, dirs_exist_ok=True)
            shutil.rmtree(data / "pg_wal")
            (data / "pg_wal").symlink_to(wal)
        return self._kept(place, **{**ALWAYS, **settings})

    def standby(self, of: Cluster, *, name: str, **settings: str) -> Cluster:
        """Copy a server that runs into another, which follows it under this name."""
        place = self._place()
        self.installed.give(place)
        target = f"host=127.0.0.1 port={of.port} user={SUPERUSER} application_name={name}"
        self.installed.run(
            "pg_basebackup",
            *("--pgdata", str(place / "data"), "--dbname", target),
            *("--write-recovery-conf", "--checkpoint=fast", "--wal-method=stream", "--no-sync"),
        )
        return self._kept(place, **settings)

    def close(self) -> None:
        """Stop all, and remove the folder."""
        atexit.unregister(self.close)
        for cluster in self._made:
            cluster.close()
        self._made.clear()
        assert self._warden.stdin is not None
        self._warden.stdin.close()
        self._warden.wait(PATIENCE)

    def _kept(self, place: Path, **settings: str) -> Cluster:
        cluster = Cluster(self.installed, place / "data", free_port())
        cluster.configure(**settings)
        self.installed.give(place)
        self._made.append(cluster)
        return cluster

    def _place(self) -> Path:
        place = self.folder / f"{next(self._numbers)}"
        place.mkdir()
        return place

    @staticmethod
    def _mount(place: Path, size: str) -> None:
        mounted = subprocess.run(
            ["/bin/mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)],
            check=False,
            capture_output=True,
            text=True,
        )
        if mounted.returncode != 0:
            raise OSError(f"no file system of {size} can be had: {mounted.stderr.strip()}")

    def _template(self) -> Path:
        """The data of a new server; made once, and copied, which takes a tenth of the time."""
        template = self.folder / "template"
        if not template.exists():
            template.mkdir()
            self.installed.give(template)
            self.installed.run(
                "initdb",
                *("--pgdata", str(template), "--username", SUPERUSER, "--auth", "trust"),
                *("--encoding", "UTF8", "--no-locale", "--no-sync", "--wal-segsize", "1"),
            )
        return template


def _roomy() -> str | None:
    """Memory, if there is enough: what is killed is a process, and never the machine."""
    try:
        return str(MEMORY) if shutil.disk_usage(MEMORY).free > ROOM else None
    except OSError:
        return None


def free_port() -> int:
    """A port of loopback that nobody has now."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


_grounds: dict[Path, Ground] = {}


def ground(found: Installed | None = None) -> Ground:
    """The one of this process; without a server to run, the test is skipped, and fails in CI."""
    found = found or found_or_skipped()
    if found.folder not in _grounds:
        _grounds[found.folder] = Ground.begun(found)
    return _grounds[found.folder]


@contextmanager
def cluster(
    *, size: str | None = None, wal_size: str | None = None, **settings: str
) -> Generator[Cluster]:
    """A server of a test's own, begun, and removed at the end."""
    made = ground().cluster(size=size, wal_size=wal_size, **settings)
    try:
        made.start()
        yield made
    finally:
        made.close()
