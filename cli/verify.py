"""``turnlock verify``: the proof kit at the command line."""

from __future__ import annotations

import errno
import platform
import shlex
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Final

import attrs
import click

from ..models.errors import InvalidValue, TurnlockError
from ..runtime.version import version
from ..verification.errors import HarnessFailed
from ..verification.findings import Finding, Profile
from ..verification.regressions import file_name, written
from ..verification.reports.baseline import Known, now_passing, read_baseline, to_baseline
from ..verification.reports.html import to_html
from ..verification.reports.json_report import to_json
from ..verification.reports.junit import to_junit
from ..verification.reports.report import EXIT_STATUS, Report, Verdict
from ..verification.reports.stories import OWN_COMMAND, printable
from ..verification.reports.terminal import to_text
from ..verification.subjects.kernel import kernel_driver
from ..verification.subjects.process import ProcessDriver
from ..verification.subjects.subject import Capability, Driver
from ..verification.techniques import NAMES, verify
from .main import not_written
from .replay_finding import replayed

_HELP: Final = """Prove a kernel: our own, or any command that speaks the wire.

With --replay a finding of an earlier run is played again, and nothing else.
Without --sut our own kernel is verified, from inside too. A system under test is a command that
answers JSON lines as docs/wire.md says. What it can do beyond receiving it declares by
--capability; what it does not declare is skipped by name.

\b
Exit status:
  0  every check holds
  1  a violation, or a baseline entry that now passes
  2  wrong usage
  3  no verdict: the harness failed, a technique could not be run, or Ctrl-C
  4  the system under test is not deterministic
  5  the system under test crashed, hung, or answered what is no receipt
"""

_FILE: Final = click.Path(dir_okay=False, path_type=Path)
_FOLDER: Final = click.Path(file_okay=False, path_type=Path)


class _NoVerdict(click.ClickException):
    exit_code = EXIT_STATUS[Verdict.HARNESS_FAILED]


@contextmanager
def _or_no_verdict() -> Generator[None]:
    """End what was interrupted, or cannot be told, as no verdict: 1 would say a violation."""
    try:
        yield
    except KeyboardInterrupt:
        raise _NoVerdict("interrupted: there is no verdict; run it again") from None
    except HarnessFailed as error:
        raise _NoVerdict(printable(str(error))) from error
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise  # whoever read the output has seen enough
        raise _NoVerdict(not_written(error)) from error


@click.command("verify", help=_HELP, short_help="Prove a kernel: ours, or yours.")
@click.option("--sut", metavar="COMMAND", help="The system under test, as a shell would split it.")
@click.option(
    "--capability",
    "capabilities",
    multiple=True,
    type=click.Choice([Capability.RECOVER.value]),
    help="What the system under test offers beside receiving.",
)
@click.option(
    "--profile",
    type=click.Choice([profile.value for profile in Profile]),
    default=Profile.CI.value,
    show_default=True,
    help="How much: dev for every save, ci for every push, nightly for the night.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Draws the random scripts.")
@click.option(
    "--only", multiple=True, type=click.Choice(NAMES), help="This technique alone; may be repeated."
)
@click.option("--timeout", type=float, default=60.0, show_default=True, help="Seconds an answer.")
@click.option(
    "--processes",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Copies of the system under test that share the scripts.",
)
@click.option("--junit", type=_FILE, help="Write JUnit XML there: one case for each rule.")
@click.option("--html", type=_FILE, help="Write one self-contained page there.")
@click.option("--json", "json_file", type=_FILE, help="Write everything there, for programs.")
@click.option(
    "--baseline", type=_FILE, help="Known violations: they fail nothing, until they pass."
)
@click.option("--write-baseline", type=_FILE, help="Write what was found there, as known.")
@click.option(
    "--findings", type=_FOLDER, help="Write each finding into this folder, as a file to replay."
)
@click.option(
    "--replay",
    multiple=True,
    metavar="FINDING",
    help="Play this finding again and nothing else: a file, or - for a line that a report shows;"
    " may be repeated.",
)
@_or_no_verdict()
def command(  # noqa: PLR0913 - one parameter an option
    *,
    sut: str | None,
    capabilities: Sequence[str],
    profile: str,
    seed: int,
    only: Sequence[str],
    timeout: float,
    processes: int,
    junit: Path | None,
    html: Path | None,
    json_file: Path | None,
    baseline: Path | None,
    write_baseline: Path | None,
    findings: Path | None,
    replay: Sequence[str],
) -> None:
    """Run the techniques, write what was asked for, and end with the status."""
    known = _known(baseline)
    for file in (junit, html, json_file, write_baseline):
        _try(file)
    driver = _driver(sut, capabilities, timeout=timeout, processes=processes)
    try:
        if replay:
            sys.exit(replayed(replay, driver))
        began, started = perf_counter(), datetime.now(UTC)
        results, stops = verify(
            driver,
            profile=Profile(profile),
            seed=seed,
            progress=_tell,
            only=only or NAMES,
        )
        report = Report(
            subject=driver.name if driver else "turnlock",
            profile=Profile(profile),
            seed=seed,
            versions=_versions(),
            started=started.isoformat(timespec="seconds"),
            seconds=perf_counter() - began,
            command=shlex.join(["turnlock", *sys.argv[1:]]),
            results=results,
            stops=stops,
            known=tuple(entry.fingerprint for entry in known),
            stdio=driver.name if driver else OWN_COMMAND,
        )
        if known and not stops:
            passing = now_passing(known, results, driver or kernel_driver())
            report = attrs.evolve(report, now_passing=passing)
        click.echo(to_text(report))
        _write(junit, lambda: to_junit(report))
        _write(html, lambda: to_html(report, drawn=drawn))
        _write(json_file, lambda: to_json(report))
        _write(write_baseline, lambda: to_baseline(report.violations))
        _keep(findings, report)
    finally:
        if driver is not None:
            driver.close()
    sys.exit(report.exit_status)


def drawn(finding: Finding) -> str:
    """Return the sequence of a finding for a page; nothing for what our kernel cannot play."""
    from ..diagrams.drawing.tables import in_page  # noqa: PLC0415 - most runs draw nothing
    from ..diagrams.sequence.counterexample import counterexample_picture  # noqa: PLC0415

    try:
        return in_page(counterexample_picture(attrs.asdict(finding)).svg())
    except TurnlockError:
        return ""


def _driver(
    sut: str | None, capabilities: Sequence[str], *, timeout: float, processes: int
) -> Driver | None:
    if sut is None:
        if capabilities:
            raise click.UsageError("--capability is for --sut; our own kernel declares its own")
        return None
    declared = frozenset(map(Capability, capabilities))
    try:
        driver = ProcessDriver(sut, timeout=timeout, processes=processes, capabilities=declared)
        driver.start()
    except InvalidValue as error:
        option = "sut" if error.place == "command" else error.place
        raise click.UsageError(f"--{option}: {error.cause}; {error.fix}") from error
    except HarnessFailed as error:
        raise click.UsageError(f"--sut: {error}") from error
    return driver


def _known(baseline: Path | None) -> tuple[Known, ...]:
    if baseline is None:
        return ()
    try:
        return read_baseline(baseline.read_bytes())
    except OSError as error:
        raise click.UsageError(f"--baseline {baseline}: {error.strerror}") from error
    except InvalidValue as error:
        raise click.UsageError(f"--baseline {baseline}: {error}") from error


def _versions() -> dict[str, str]:
    own = version("a checkout that is not installed")
    return {"turnlock": own, "python": platform.python_version(), "platform": platform.platform()}


def _keep(folder: Path | None, report: Report) -> None:
    if folder is None or not report.violations:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.UsageError(f"{folder} cannot be made ({error.strerror})") from error
    for violation in report.violations:
        file = folder / file_name(violation.finding)
        _write(file, partial(written, violation.finding))
        click.echo(f"kept: {file}")


def _try(file: Path | None) -> None:
    """Refuse a file that cannot be written before an hour is spent on what it is to hold."""
    if file is None or file.is_fifo() or file.is_char_device():  # a pipe is opened once
        return
    new = not file.exists()
    with _told_of(file), file.open("ab"):
        pass
    if new:
        file.resolve().unlink()  # where a link leads, not the link


def _write(file: Path | None, text: Callable[[], str]) -> None:
    if file is not None:
        with _told_of(file):
            file.write_text(text(), encoding="utf-8")


@contextmanager
def _told_of(file: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise click.UsageError(f"{file} cannot be written ({error.strerror})") from error


def _tell(what: str) -> None:
    """Show progress on a terminal, in one line that the next one overwrites."""
    if sys.stderr.isatty():
        click.echo(f"\r\033[K{what}", nl=False, err=True)
