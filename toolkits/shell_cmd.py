"""The tool ``shell_cmd``: one program of the machine, inside a folder, without a shell (W-61).

There is no shell: nothing is expanded, piped or redirected. What is looked at before is looked at
by descriptor where the system lets us, so that a link put there meanwhile leads nowhere. It is no
sandbox: the program may do whatever its user may, so a person is asked first. What has left its
process group (``setsid``) is not found; where it holds the output still, the result says so.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from ..models.errors import InvalidValue, shown
from ..runtime.tools.calling import ToolContext
from ..runtime.tools.policy import InDoubt, Policy, Predicate
from ..runtime.tools.tool import Tool
from .running import KEPT_BYTES, Ran, Running

TIMEOUT: Final = 120.0
"""Seconds that a program may run, unless told otherwise."""
ENVIRONMENT: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TZ")
"""Variables that a program gets of the host's own, unless told otherwise."""


def shell(
    *,
    folder: str | Path,
    environment: Sequence[str] = ENVIRONMENT,
    timeout: float = TIMEOUT,
    approval: bool | Predicate = True,
) -> Tool:
    """Return the tool ``shell_cmd``, whose programs run in a folder, and below it.

    Of the host's variables they get those named in `environment`. `timeout` is in seconds. Raises
    `InvalidValue` for a folder that is none.
    """
    root = Path(folder).resolve()
    if not root.is_dir():
        raise InvalidValue(place="folder", cause=f"{root} is no folder", fix="name one that exists")
    names = tuple(environment)
    if isinstance(environment, str) or not all(map(_is_variable, names)):
        raise InvalidValue(
            place="environment",
            cause=f"{shown(environment)} is no list of names of variables",
            fix='give names: ["PATH", "HOME"]; their values are the host\'s',
        )

    def shell_cmd(
        context: ToolContext,
        command: str,
        parameters: list[str] = [],  # noqa: B006 - it is not changed
        directory: str = ".",
    ) -> Ran:
        return _run(root, names, (command, *parameters), directory, context)

    return Tool(
        name="shell_cmd",
        call=shell_cmd,
        description=_DESCRIPTION,
        policy=Policy(approval=approval, in_doubt=InDoubt.ASK, timeout=timeout),
    )


_DESCRIPTION: Final = f"""Run one program, and wait until it has ended.

command: its name, or its path, from `directory` (./build.sh) or whole (/usr/bin/env). There is no
shell: no pipes, no redirection, no variables, no patterns. parameters: its arguments, one each.
directory: where it runs, below the folder it is confined to. Its standard input is empty. Of its
outputs {KEPT_BYTES // 1024} kB each are returned, the first half and the last. When the call ends,
by timeout or interrupt too, whatever it has started is ended with it."""


def _is_variable(name: object) -> bool:
    return isinstance(name, str) and bool(name) and "=" not in name and "\0" not in name


def _run(
    root: Path, names: Sequence[str], words: Sequence[str], directory: str, context: ToolContext
) -> Ran:
    """Run a program and return what became of it. Runs in a thread of the tool's own."""
    for number, word in enumerate(words):
        if "\0" in word:
            place = "command" if number == 0 else f"parameters[{number - 1}]"
            raise InvalidValue(place=place, cause="holds a NUL character", fix="leave it out")
    environment = {name: os.environ[name] for name in names if name in os.environ}
    with _opened(root, directory) as (descriptor, inside):
        program = _found(words[0], root, inside, environment.get("PATH", os.defpath))
        try:
            process = subprocess.Popen(  # noqa: S603 - a person has approved it
                words,
                executable=program,
                cwd=f"/proc/self/fd/{descriptor}",
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise InvalidValue(
                place="command",
                cause=f"{shown(words[0])} cannot be started ({error})",
                fix="name a program, with fewer or shorter parameters if they are too long",
            ) from None
    return Running(process, context).ended()


@contextmanager
def _opened(root: Path, directory: str) -> Generator[tuple[int, Path]]:
    """Open a directory below the root, links resolved; yield its descriptor and its real path.

    Each step from the root is opened without following a link: the path is resolved already, so
    whatever is a link now was put there since.
    """
    inside = _below(root, directory)
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    with ExitStack() as opened:
        descriptor = None
        for step in (str(root), *inside.relative_to(root).parts):
            try:
                descriptor = os.open(step, flags, dir_fd=descriptor)
            except OSError as error:
                why = error.strerror or "cannot be opened"
                raise _outside("directory", directory, why) from None
            opened.callback(os.close, descriptor)
        if descriptor is None:
            raise AssertionError(root)
        yield descriptor, inside


def _below(root: Path, directory: str) -> Path:
    try:
        real = (root / directory).resolve(strict=True)
    except (OSError, ValueError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise _outside("directory", directory, why) from None
    if not real.is_relative_to(root):
        raise _outside("directory", directory, "leads out of the folder")
    return real


def _outside(place: str, given: str, why: str) -> InvalidValue:
    return InvalidValue(
        place=place,
        cause=f"{shown(given)}: {why}",
        fix="give a path below the folder that programs are confined to, such as .",
    )


def _found(command: str, root: Path, inside: Path, path: str) -> str:
    """Return the file of a program, by its name or by its path.

    Links may lead anywhere, as that of a virtual environment's python does: what they lead to could
    be named by its own path. But the steps of a relative path stay below the root.
    """
    if "/" in command:
        program = inside / command
        climbs = not Path(os.path.normpath(program)).is_relative_to(root)
        if climbs and not Path(command).is_absolute():
            raise _outside("command", command, "leads out of the folder")
        return str(program)
    for folder in path.split(os.pathsep):
        file = os.path.join(folder, command)  # noqa: PTH118 - Path.is_file raises where it may not look
        if os.path.isabs(folder) and os.path.isfile(file) and os.access(file, os.X_OK):  # noqa: PTH113, PTH117 - as above
            return file
    raise InvalidValue(
        place="command",
        cause=f"there is no program {shown(command)} on the PATH",
        fix="name one that is installed; there is no shell, so nothing built into one",
    )
