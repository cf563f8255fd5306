"""The file of a host's own configuration: what its members may use, and from where.

Keys, addresses, commands of MCP servers and who is trusted stand here and nowhere else: specs of
agents only name them (W-15). The file itself holds no secret either, but the names of variables of
the environment. `docs/worlds.md` shows a whole file; `host_file` opens what it declares.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import urlsplit

import attrs

from ..agent.providers import MODELS
from ..models.errors import InvalidValue
from ..models.safe_text import harmless
from ..runtime.tools.policy import InDoubt, Policy
from ..toolkits.mcp.declared import CALL_WITHIN, START_WITHIN
from ..toolkits.mcp.servers import SERVERS
from ..toolkits.shell_cmd import ENVIRONMENT, TIMEOUT
from .toml_tables import Table, read_toml

ENDPOINTS: Final = 100
"""Endpoints of models that a host's configuration names at most."""
OF_FILES: Final = "file"
"""Begins the names of models that Python files make: ``file:NAME``."""

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_VARIABLE: Final = re.compile(r"[A-Z_][A-Z0-9_]{0,63}")
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_SECRET: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:sk|pk|rk|ghp|gho|ghs|hf|xox[abprs]|github_pat|glpat)[-_][\w-]{16}"
    r"|(?:AKIA|ASIA|AIza|ya29\.|eyJ)[\w-]{12}|(?:Bearer|Basic) +[\w.~+/=-]{8}|-----BEGIN )"
)
"""What keys begin with, as far as their makers let us know them: a net, and one with holes."""
_INSTEAD: Final = (
    "put it into a variable of the environment, and write the variable's name where a key is due"
)
_TAKES: Final[Mapping[str, frozenset[str]]] = {
    "openai": frozenset({"structured", "reasonless"}),
    "openai-responses": frozenset(),
    "anthropic": frozenset({"structured", "limit"}),
    "google": frozenset({"structured"}),
}
"""What each provider's models take beyond what all of them do."""


@attrs.frozen(kw_only=True)
class Endpoint:
    """Where models are asked. A spec's ``NAME:MODEL`` means a model of the endpoint NAME."""

    provider: str
    key: str | None = None
    """The variable that holds its key; None: its provider's own."""
    base_url: str | None = None
    given: Mapping[str, bool | int | float] = attrs.field(factory=dict[str, bool | int | float])
    """Whatever else its provider's models take: timeout, retries, streams …"""


@attrs.frozen(kw_only=True)
class Server:
    """An MCP server, with the names of variables in place of what they hold."""

    command: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    """Variables that its program gets of ours."""
    cwd: Path | None = None
    url: str | None = None
    headers: Mapping[str, str] = attrs.field(factory=dict[str, str])
    """Variables whose text is sent, by the header's name."""
    bearer: str | None = None
    """The variable of a token that is sent as ``Authorization: Bearer TOKEN``."""
    trusted: bool = False
    policies: Mapping[str, Policy] = attrs.field(factory=dict[str, Policy])
    asks: bool = True
    legacy: bool = False
    roots: tuple[Path, ...] = ()
    start_within: float = START_WITHIN
    call_within: float | None = CALL_WITHIN


@attrs.frozen(kw_only=True)
class Shell:
    """Where `shell_cmd` runs programs, and what they get of the environment."""

    folder: Path
    environment: tuple[str, ...] = ENVIRONMENT
    timeout: float = TIMEOUT
    approval: bool = True


@attrs.frozen(kw_only=True)
class HostFile:
    """All that a host may use. Read by `read_host_file`; used by `open_host_file`."""

    place: str = "host"
    """How messages call it: its path."""
    model_files: tuple[Path, ...] = ()
    endpoints: Mapping[str, Endpoint] = attrs.field(factory=dict[str, Endpoint])
    servers: Mapping[str, Server] = attrs.field(factory=dict[str, Server])
    tool_files: tuple[Path, ...] = ()
    shell: Shell | None = None
    sampling: frozenset[str] = frozenset()
    """The servers that may ask an agent's model, each time once a person agreed (W-68)."""


def read_host_file(path: str | Path) -> HostFile:
    """Return what a host's configuration says. Paths in it are relative to its own folder.

    Raises `InvalidValue`: the file and the field, what is wrong there, and what would be right. It
    repeats no value that might be a secret.
    """
    path = Path(path)
    fields = read_toml(path)
    try:
        return declared_by(fields, path)
    except InvalidValue as error:
        raise InvalidValue(
            place=f"{path}: {error.place}", cause=error.cause, fix=error.fix
        ) from None


def declared_by(fields: Mapping[str, Any], path: Path) -> HostFile:
    """Return what a file of this path declares. Raises `InvalidValue`, whose place is the field."""
    _check_secrets(fields, "")
    file = Table(fields)
    folder = path.absolute().parent
    models, tools, sampling = file.table("models"), file.table("tools"), file.table("sampling")
    endpoints = file.tables("endpoints")
    folders = file.table("shell")
    servers = file.tables("servers")
    if len(endpoints) > ENDPOINTS:
        raise file.wrong("endpoints", f"are {len(endpoints)}", f"name {ENDPOINTS} at most")
    if len(servers) > SERVERS:
        raise file.wrong("servers", f"are {len(servers)}", f"name {SERVERS} at most")
    read = HostFile(
        place=f"{path}",
        model_files=_paths(models, "files", folder),
        endpoints={name: _endpoint(name, it) for name, it in endpoints.items()},
        servers={name: _server(name, it, folder) for name, it in servers.items()},
        tool_files=_paths(tools, "files", folder),
        shell=_shell(folders, folder) if "shell" in file else None,
        sampling=frozenset(sampling.texts("servers") or ()),
    )
    for table in (models, tools, sampling, file):
        table.done()
    if strange := sorted(read.sampling - read.servers.keys()):
        raise sampling.wrong(
            "servers",
            f"names {harmless(strange[0], limit=60)}, which is no server of this file",
            f"name some of {', '.join(read.servers) or 'none: there are no servers'}",
        )
    return read


def _paths(table: Table, name: str, folder: Path) -> tuple[Path, ...]:
    return tuple(folder / it for it in table.texts(name) or ())


def _endpoint(name: str, table: Table) -> Endpoint:
    if not _NAME.fullmatch(name) or name == OF_FILES:
        raise InvalidValue(
            place=table.place,
            cause="is no name of an endpoint" + (": Python files have it" * (name == OF_FILES)),
            fix="call it by lower-case letters, digits, - and _, 64 at most",
        )
    provider = table.text("provider") or (name if name in MODELS else None)
    if provider not in MODELS:
        raise table.wrong(
            "provider",
            "is left out" if provider is None else "names no provider",
            f"give one of {', '.join(MODELS)}",
        )
    numbers: dict[str, bool | int | float | None] = {
        "timeout": table.seconds("timeout"),
        "retries": table.count("retries", least=0),
        "streams": table.flag("streams"),
    }
    for field in sorted(_TAKES[provider]):
        numbers[field] = table.count(field) if field == "limit" else table.flag(field)
    endpoint = Endpoint(
        provider=provider,
        key=_variable(table, "key"),
        base_url=_url(table, "base_url"),
        given={field: value for field, value in numbers.items() if value is not None},
    )
    table.done(fix=_fix_key(table))
    return endpoint


def _server(name: str, table: Table, folder: Path) -> Server:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
        raise InvalidValue(
            place=table.place,
            cause="is no name of a server",
            fix="call it by letters, digits, - and _, 64 at most: its tools' names begin with it",
        )
    command = table.texts("command") or ()
    url = _url(table, "url")
    if bool(command) == (url is not None):
        raise table.wrong(
            "command",
            "and url are both given" if command else "and url are both missing",
            'give command = ["PROGRAM", "ARGUMENT"] for a program, or url for a server that runs',
        )
    for field in ("env", "cwd") if url is not None else ("headers", "bearer"):
        if field in table:
            kind = "a server at a URL" if url is not None else "a program"
            raise table.wrong(field, f"means nothing for {kind}", "leave it out")
    headers = table.table("headers")
    within = table.seconds("call_within")
    server = Server(
        command=command,
        env=tuple(
            _name_of(table, f"env[{n}]", it) for n, it in enumerate(table.texts("env") or ())
        ),
        cwd=None if url is not None else folder / (table.text("cwd") or "."),
        url=url,
        headers={_header(headers, it): _variable(headers, it) or "" for it in headers.names()},
        bearer=_variable(table, "bearer"),
        trusted=table.flag("trusted") or False,
        policies={it: _policy(one) for it, one in table.tables("policies").items()},
        asks=table.flag("asks") is not False,
        legacy=table.flag("legacy") or False,
        roots=_paths(table, "roots", folder),
        start_within=table.seconds("start_within") or START_WITHIN,
        call_within=within or CALL_WITHIN,
    )
    if server.bearer and any(it.lower() == "authorization" for it in server.headers):
        raise table.wrong("bearer", "and headers both say who you are", "leave one of them out")
    table.done(fix=_fix_key(table))
    return server


def _policy(table: Table) -> Policy:
    """Read a policy: what can be said in a file of one (a predicate or a probe cannot)."""
    fields: dict[str, Any] = {
        "approval": table.flag("approval"),
        "approval_timeout": table.seconds("approval_timeout"),
        "timeout": table.seconds("timeout"),
        "lease": table.seconds("lease"),
        "safe_to_repeat": table.flag("safe_to_repeat"),
        "in_doubt": table.text("in_doubt"),
        "sequential": table.flag("sequential"),
        "concurrency": table.count("concurrency"),
    }
    table.done()
    words = [f"{it}" for it in InDoubt if it is not InDoubt.PROBE]
    if fields["in_doubt"] is not None and fields["in_doubt"].replace("_", " ") not in words:
        raise table.wrong("in_doubt", "is none of its words", f"give one of {', '.join(words)}")
    try:
        return Policy(**{name: value for name, value in fields.items() if value is not None})
    except InvalidValue as error:
        raise error.inside(table.place) from None


def _shell(table: Table, folder: Path) -> Shell:
    inside = table.text("folder")
    if inside is None:
        raise table.wrong("folder", "is left out", "name the folder that programs run in")
    named = table.texts("environment")
    approval = table.flag("approval")
    shell = Shell(
        folder=folder / inside,
        environment=ENVIRONMENT
        if named is None
        else tuple(
            _name_of(table, f"environment[{n}]", it, any_case=True) for n, it in enumerate(named)
        ),
        timeout=table.seconds("timeout") or TIMEOUT,
        approval=approval is not False,
    )
    table.done()
    return shell


def _variable(table: Table, name: str) -> str | None:
    """Return the name of a variable; whatever else stands there may be a secret: it is not told."""
    value = table.text(name)
    return None if value is None else _name_of(table, name, value)


def _name_of(table: Table, place: str, value: str, *, any_case: bool = False) -> str:
    if not _VARIABLE.fullmatch(value.upper() if any_case else value):
        raise table.wrong(
            place,
            "is no name of a variable (it is not repeated here: it may be a secret)",
            "write a name of capitals, digits and _, such as OPENAI_API_KEY, and put the secret"
            " into that variable of the environment",
        )
    return value


def _header(table: Table, name: str) -> str:
    if not _HEADER.fullmatch(name):
        raise InvalidValue(
            place=f"{table.place}.{harmless(name, limit=60)}",
            cause="is no name of a header",
            fix="write it as HTTP has it",
        )
    return name


def _url(table: Table, name: str) -> str | None:
    """Return a URL without a user, a query and a fragment: those hold keys."""
    value = table.text(name)
    if value is None:
        return None
    try:
        parts = urlsplit(value)
        fine = parts.scheme.lower() in {"http", "https"} and bool(parts.hostname)
        _ = parts.port
    except ValueError:
        fine, parts = False, urlsplit("")
    if not fine or re.search(r"[\s\x00-\x1f\x7f]", value):
        raise table.wrong(name, "is no URL", "give one that begins with http:// or https://")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise table.wrong(
            name,
            "holds more than a place (it is not repeated here: it may be a secret)",
            "leave user, query and fragment out; name the variable of the key beside it",
        )
    return value


def _fix_key(table: Table) -> str | None:
    """Return the fix for who wrote a key: there is a field for the name of its variable."""
    secret = ("api_key", "apikey", "token", "password", "secret", "authorization")
    if any(name.lower() in secret for name in table.names()):
        return f"write no secret here: {_INSTEAD} (key for models, bearer, headers, env)"
    return None


def _check_secrets(value: object, place: str) -> None:
    """Refuse what looks like a key, wherever it stands; its place is told, and not itself."""
    if isinstance(value, str) and _SECRET.search(value):
        raise InvalidValue(place=place, cause="looks like a secret", fix=_INSTEAD)
    if isinstance(value, Mapping):
        for name, it in cast("Mapping[str, object]", value).items():
            if _SECRET.search(name):
                raise InvalidValue(
                    place=place or "a name",
                    cause="holds a name that looks like a secret",
                    fix=_INSTEAD,
                )
            _check_secrets(
                it, f"{place}.{harmless(name, limit=60)}" if place else harmless(name, limit=60)
            )
    elif isinstance(value, list):
        for number, it in enumerate(cast("list[object]", value)):
            _check_secrets(it, f"{place}[{number}]")
